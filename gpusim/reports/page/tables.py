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


@dataclass(frozen=True)
class Counts:
    """A column beside lines or instructions; a minor one is hidden where the pane is narrow.

    `is_of_all` where all that is executed has a count: a constant count needs no column.
    """

    name: str
    cells: tuple[Cell, ...]
    is_minor: bool = False
    is_of_all: bool = False

    @property
    def count(self) -> str:
        """The first count."""
        return next((cell.text for cell in self.cells if cell.text), "")

    @property
    def is_empty(self) -> bool:
        """Whether no row has a count."""
        return not self.count

    @property
    def is_repeated(self) -> bool:
        """Whether all that is executed has one and the same count."""
        counts = [cell.text for cell in self.cells if cell.text]
        return self.is_of_all and len(counts) > 1 and len(set(counts)) == 1


@dataclass(frozen=True)
class CountColumns:
    """Columns with different counts, and a sentence with those that are the same in every row."""

    columns: tuple[Counts, ...]
    same: str

    @classmethod
    def of(cls, columns: Sequence[Counts], rows: str) -> CountColumns:
        """Divide columns; `rows` names a row, as in "each line"."""
        known = [one for one in columns if not one.is_empty]
        repeated = [f"{one.count} {one.name}" for one in known if one.is_repeated]
        same = f"{rows}: {', '.join(repeated)}" if repeated else ""
        return cls(tuple(one for one in known if not one.is_repeated), same)

    @property
    def minor(self) -> tuple[int, ...]:
        """The places of the minor columns."""
        return tuple(place for place, one in enumerate(self.columns) if one.is_minor)

    def row(self, place: int) -> tuple[Cell, ...]:
        """Return the cells of a row."""
        return tuple(one.cells[place] for one in self.columns)


def text(content: str) -> Cell:
    """Return a cell with text, sorted as it is written."""
    return Cell(content, content)


def number(value: int) -> Cell:
    """Return a cell with a whole number."""
    return Cell(f"{value:,}", value)


def counted(counts: Sequence[int]) -> tuple[Cell, ...]:
    """Return a column of counts, without the zeros."""
    return tuple(Cell(f"{count:,}" if count else "", count) for count in counts)


def shares(fractions: Sequence[float]) -> tuple[Cell, ...]:
    """Return a column of fractions of the time, with their heat."""
    most = max(fractions, default=0.0) or 1.0
    return tuple(Cell(percent(one) if one else "", one, one / most) for one in fractions)
