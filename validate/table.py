"""Tables: Markdown in columns, which also reads well at a terminal, and rows of CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path


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


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file, without its comment."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(line for line in file if not line.startswith("#"))
