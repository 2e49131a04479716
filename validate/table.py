"""Markdown tables in columns, which also read well at a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]], text: int = 1) -> list[str]:
    """Return a Markdown table in columns; the first `text` of them are text, the others numbers."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]
    rule = ["---" if k < text else "--:" for k in range(len(head))]

    def line(row: Sequence[str], fill: str = " ") -> str:
        aligned = (
            cell.ljust(width, fill) if k < text else cell.rjust(width, fill)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return f"| {' | '.join(aligned)} |"

    return [line(cells[0]), line(rule, "-"), *map(line, cells[1:])]
