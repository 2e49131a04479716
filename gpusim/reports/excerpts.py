"""Reports cut to one screen: tables with their heaviest rows, in the order of the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from rich.text import Text

from gpusim.reports.columns import Columns
from gpusim.reports.folding import pieces
from gpusim.reports.layout import DIM, plural

SCREEN = 60  # lines of a report without --all
LEAST_ROWS = 4  # of a table, however full the screen
LEAST_HEIGHT = 14  # of a table of source lines with these rows, folded, and its title

Row = TypeVar("Row")


def height(lines: Iterable[Text], width: int) -> int:
    """Return the number of lines on a terminal of a width."""
    return sum(1 for line in lines for _ in pieces(line, width))


def fitting(sections: Sequence[Sequence[Text]], room: int, width: int) -> list[Sequence[Text]]:
    """Return sections, the most important first, without those that have no room any more."""
    kept: list[Sequence[Text]] = []
    for section in sections:
        needed = height(section, width)
        kept.append(section if needed <= room else ())
        room -= height(kept[-1], width)
    return kept


def heaviest(
    rows: Sequence[Row],
    weights: Sequence[float],
    table: Callable[[Sequence[Row]], Columns],
    room: int,
    width: int,
) -> tuple[list[Text], list[Row]]:
    """Return a table of the heaviest rows in at most `room` lines, and the rows left out.

    Rows keep their order, and `LEAST_ROWS` stay in any case.
    """
    order = sorted(range(len(rows)), key=lambda place: -weights[place])
    for count in range(len(rows), -1, -1):
        chosen = set(order[:count])
        lines = table([rows[place] for place in sorted(chosen)]).lines(width)
        if len(lines) <= room or count <= LEAST_ROWS:
            return lines, [row for place, row in enumerate(rows) if place not in chosen]
    raise AssertionError("unreachable: a table without rows fits")


def others(count: int, noun: str, note: str = "", several: str = "") -> list[Text]:
    """Return the line that counts what is left out; nothing where that is nothing."""
    said = f"  {plural(count, f'other {noun}', several)}{note}: --all"
    return [Text(said, DIM)] if count > 0 else []
