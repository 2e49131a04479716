"""Cells and tables of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpusim.reports.quantities import percent


@dataclass(frozen=True)
class Cell:
    """A table's cell: its text, its sort key, its heat from 0 to 1, a place of the page."""

    text: str
    value: float | str
    heat: float = 0.0
    link: str = ""


@dataclass(frozen=True)
class Table:
    """A table with a caption; of each column, whether it holds numbers."""

    caption: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[Cell, ...], ...]


def text(content: str) -> Cell:
    """Return a cell with text, sorted as it is written."""
    return Cell(content, content)


def number(value: int) -> Cell:
    """Return a cell with a whole number."""
    return Cell(f"{value:,}", value)


def counted(counts: Sequence[int]) -> list[Cell]:
    """Return a column of counts, without the zeros."""
    return [Cell(f"{count:,}" if count else "", count) for count in counts]


def shares(fractions: Sequence[float]) -> list[Cell]:
    """Return a column of fractions of the time, with their heat."""
    most = max(fractions, default=0.0) or 1.0
    return [Cell(percent(one) if one else "", one, one / most) for one in fractions]
