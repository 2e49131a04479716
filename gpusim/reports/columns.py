"""Tables of text: columns of natural width, some of them folded to fit the terminal.

rich's own tables squeeze every column and take ten times as long, noticeable in a command that
should answer in half a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

GAP = 2

Cell = str | tuple[str, str]  # text, or text and style


@dataclass(frozen=True)
class Column:
    """A heading, the alignment of its text, and the treatment of text that is too long.

    `overflow` is "never", or "fold": text goes on in the next line, `hang` columns further in,
    broken at spaces or before underscores. Nothing is left out.
    """

    heading: str
    align: str = "right"
    overflow: str = "never"
    hang: int = 0


class Columns:
    """A table under construction: add rows, then ask for its lines."""

    def __init__(self, *columns: Column, gap: int = GAP) -> None:
        self.columns = columns
        self.gap = gap
        self.rows: list[list[tuple[str, str]]] = []

    def row(self, *cells: Cell) -> None:
        """Add a row of texts, each alone or with a style."""
        self.rows.append([cell if isinstance(cell, tuple) else (cell, "") for cell in cells])

    def widths(self, width: int) -> list[int]:
        """Return the columns' widths; flexible columns share the width left by the others."""
        needed = [
            max(len(column.heading), *(len(row[i][0]) for row in self.rows), 0)
            for i, column in enumerate(self.columns)
        ]
        over = sum(needed) + self.gap * (len(needed) - 1) - width
        for i, column in enumerate(self.columns):
            if over > 0 and column.overflow != "never":
                given = min(over, needed[i] - max(8, len(column.heading)))
                needed[i] -= max(0, given)
                over -= max(0, given)
        return needed

    def lines(self, width: int) -> list[Text]:
        """Return the heading and the rows as lines of at most `width` columns."""
        widths = self.widths(width)
        headings = [(column.heading, "dim") for column in self.columns]
        result = []
        for row in [headings, *self.rows] if any(c.heading for c in self.columns) else self.rows:
            for part in self._wrapped(row, widths):
                result.append(self._line(part, widths, width))
        return result

    def _wrapped(
        self, row: Sequence[tuple[str, str]], widths: Sequence[int]
    ) -> list[list[tuple[str, str]]]:
        pieces = []
        for (text, style), column, width in zip(row, self.columns, widths, strict=True):
            parts = [text] if len(text) <= width else folded(text, width, column.hang)
            pieces.append([(part, style) for part in parts])
        height = max(len(parts) for parts in pieces)
        return [
            [parts[i] if i < len(parts) else ("", "") for parts in pieces] for i in range(height)
        ]

    def _line(self, row: Sequence[tuple[str, str]], widths: Sequence[int], width: int) -> Text:
        line = Text(no_wrap=True, overflow="crop")
        for i, ((text, style), column, space) in enumerate(
            zip(row, self.columns, widths, strict=True)
        ):
            before = " " * (space - len(text)) if column.align == "right" else ""
            line.append((" " * self.gap if i else "") + before)
            line.append(text, style or None)
            if column.align != "right":
                line.append(" " * (space - len(text)))
        line.rstrip()
        line.truncate(width)
        return line


def folded(text: str, width: int, hang: int = 0) -> list[str]:
    """Return a text in pieces of at most `width`, broken at a space or before an underscore.

    All but the first are indented as the text is, and by `hang` more.
    """
    parts = []
    indent = " " * min(len(text) - len(text.lstrip()) + hang, width // 2)
    while len(text) > width:
        at = text.rfind(" ", 0, width + 1)
        if at <= max(width // 3, len(indent)):
            at = text.rfind("_", 0, width + 1)
        if at <= max(width // 3, len(indent)):
            at = width
        parts.append(text[:at].rstrip())
        text = indent + text[at:].lstrip()
    return [*parts, text]


def beside(left: Sequence[Text], right: Sequence[Text], width: int) -> list[Text] | None:
    """Return two tables side by side, None where they do not fit in `width` columns."""
    start = max(line.cell_len for line in left) + 6
    if start + max(line.cell_len for line in right) > width:
        return None
    result = []
    for i in range(max(len(left), len(right))):
        line = left[i].copy() if i < len(left) else Text()
        if i < len(right):
            line.append(" " * (start - line.cell_len))
            line.append_text(right[i])
        result.append(line)
    return result
