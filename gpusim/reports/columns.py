"""Tables of text: columns of natural width, some of them folded to fit the terminal.

`rich.table` has no cell over several columns and no hanging indents, which source lines need at
80 columns, and breaks names within words. It takes 19 ms of CPU time more, 5 of them to import,
of the 0.33 s of `gpusim trace reduce2`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from rich.text import Text

GAP = 2
TAB = 4
ROOMY, NARROW = 24, 8  # columns of text that folds: before headings do, and at least
# Where a word may be broken: before an underscore or a member's dot, after an opening bracket.
_JOINT = re.compile(r"(?=_)|(?=\.[A-Za-z])|(?<=[(\[,])")

Cell = str | tuple[str, str]  # text, or text and style


@dataclass(frozen=True)
class Column:
    """A heading, the alignment of its text, and the treatment of text that is too long.

    `overflow` is "never", "fold" (text goes on in the next line, `hang` columns further in) or
    "span" (text goes on across the columns on its right, whose cells follow below). Nothing is
    left out.
    """

    heading: str
    align: str = "right"
    overflow: str = "never"
    hang: int = 0


@dataclass(frozen=True)
class Fit:
    """The layout of a table in `width` columns: the width of each of its columns, their gap."""

    width: int
    widths: Sequence[int]
    gap: int

    @property
    def over(self) -> int:
        """How much too wide the table is."""
        return sum(self.widths) + self.gap * (len(self.widths) - 1) - self.width

    def right_of(self, column: int) -> int:
        """Return the width from the begin of a column to the end of the line."""
        return self.width - sum(self.widths[:column]) - self.gap * column


class Columns:
    """A table under construction: add rows, then take its lines."""

    def __init__(self, *columns: Column, gap: int = GAP) -> None:
        self.columns = columns
        self.gap = gap
        self.rows: list[list[tuple[str, str]]] = []

    def row(self, *cells: Cell) -> None:
        """Add a row of texts, each alone or with a style; tabs are as wide as `TAB`."""
        styled = [cell if isinstance(cell, tuple) else (cell, "") for cell in cells]
        self.rows.append([(text.expandtabs(TAB), style) for text, style in styled])

    def without_zeros(self) -> Columns:
        """Return the table without the columns that have only zeros (".") below a heading."""
        kept = [
            place
            for place, column in enumerate(self.columns)
            if not column.heading or any(row[place][0] not in ("", ".") for row in self.rows)
        ]
        made = Columns(*(self.columns[place] for place in kept), gap=self.gap)
        made.rows = [[row[place] for place in kept] for row in self.rows]
        return made

    def fit(self, width: int) -> Fit:
        """Return the layout in `width` columns.

        Where the table is too wide, texts fold that may; where that leaves them little room,
        headings fold too, and last the gap shrinks.
        """
        headings = [column.heading for column in self.columns]
        cells = [
            max((len(row[i][0]) for row in self.rows), default=0) for i in range(len(headings))
        ]
        made = Fit(width, _largest(map(len, headings), cells), self.gap)
        made = self._shrunk(made, ROOMY)
        if made.over > 0:
            words = (max(map(len, heading.split()), default=0) for heading in headings)
            made = self._shrunk(replace(made, widths=_largest(words, cells)), NARROW)
        if made.over > 0:
            made = self._shrunk(replace(made, gap=1), NARROW)
        return made

    def _shrunk(self, made: Fit, least: int) -> Fit:
        """Return a layout with columns narrower whose text may fold, to `least` columns each."""
        over, widths = made.over, list(made.widths)
        for i, column in enumerate(self.columns):
            if over > 0 and column.overflow != "never":
                given = max(0, min(over, widths[i] - max(least, len(column.heading))))
                widths[i] -= given
                over -= given
        return replace(made, widths=widths)

    def lines(self, width: int) -> list[Text]:
        """Return the heading and the rows as lines of at most `width` columns."""
        made = self.fit(width)
        return [
            self._line(line, made)
            for lines in (self._headings(made), *(self._wrapped(row, made) for row in self.rows))
            for line in lines
        ]

    def _headings(self, made: Fit) -> list[list[tuple[str, str]]]:
        """Return the headings as lines, the last word of each on the last."""
        if not any(column.heading for column in self.columns):
            return []
        parts = [
            wrap(column.heading, max(1, room)) or [""]
            for column, room in zip(self.columns, made.widths, strict=True)
        ]
        height = max(map(len, parts))
        padded = [[""] * (height - len(one)) + one for one in parts]
        return [[(one[i], "dim") for one in padded] for i in range(height)]

    def _wrapped(self, row: Sequence[tuple[str, str]], made: Fit) -> list[list[tuple[str, str]]]:
        """Return a row as lines; the cells beside one that spans them stand at its end."""
        pieces: list[list[str]] = []
        above = 0
        for i, ((text, _), column) in enumerate(zip(row, self.columns, strict=True)):
            room, spans = made.widths[i], column.overflow == "span"
            if len(text) <= room:
                parts = [text]
            else:
                parts = folded(text, made.right_of(i) if spans else room, column.hang)
            if spans and len(parts[-1]) > room:
                parts.append("")
            pieces.append([""] * above + parts)
            above += len(parts) - 1 if spans else 0
        height = max(map(len, pieces))
        return [
            [
                (parts[i] if i < len(parts) else "", style)
                for parts, (_, style) in zip(pieces, row, strict=True)
            ]
            for i in range(height)
        ]

    def _line(self, row: Sequence[tuple[str, str]], made: Fit) -> Text:
        line = Text(no_wrap=True, overflow="crop")
        for i, ((text, style), column) in enumerate(zip(row, self.columns, strict=True)):
            padding = " " * (made.widths[i] - len(text))
            line.append(
                (" " * made.gap if i else "") + (padding if column.align == "right" else "")
            )
            line.append(text, style or None)
            if column.align != "right":
                line.append(padding)
        line.rstrip()
        line.truncate(made.width)
        return line


def _largest(one: Iterable[int], other: Iterable[int]) -> list[int]:
    return [max(pair) for pair in zip(one, other, strict=True)]


def folded(text: str, width: int, hang: int = 0) -> list[str]:
    """Return a text in pieces of at most `width`; all but the first are indented as the text is.

    `hang` is what they are indented more. Pieces end at spaces, or else where names have joints.
    """
    parts = []
    indent = " " * min(len(text) - len(text.lstrip()) + hang, width // 2)
    while len(text) > width:
        at = _break(text, width, max(width // 3, len(indent)))
        parts.append(text[:at].rstrip())
        text = indent + text[at:].lstrip()
    return [*parts, text]


def _break(text: str, width: int, least: int) -> int:
    """Return where a text breaks: beyond `least`, at `width` where it has no better place."""
    space = text.rfind(" ", 0, width + 1)
    if space > least:
        return space
    joints = (found.start() for found in _JOINT.finditer(text, 0, width + 2))
    return max((at for at in joints if least < at <= width), default=width)


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
