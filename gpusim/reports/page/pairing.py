"""Two kernels side by side: their figures with ratios, and their lines where these match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from gpusim.reports.page.tables import Cell, Table, text
from gpusim.reports.quantities import duration, interval, percent
from gpusim.tracing.counters import COUNTERS

if TYPE_CHECKING:
    from gpusim.reports.page.sections import SourceRow, Subject

SIDES = "AB"


@dataclass(frozen=True)
class Half:
    """A kernel's line in a pair: its number, its text and its figures as text."""

    number: int
    text: str
    figures: tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """A row of two kernels' lines; `is_same` where the text is that of both."""

    halves: tuple[Half | None, Half | None]
    is_same: bool


def comparison(subjects: Sequence[Subject]) -> Table:
    """Return kernels side by side: predicted time, and every counter that one of them has.

    Of two, the last column is the second one's value over the first one's.
    """
    rows: list[tuple[Cell, ...]] = []
    forecasts = [subject.forecast for subject in subjects if subject.forecast is not None]
    is_pair = len(subjects) == len(SIDES)
    if len(forecasts) == len(subjects):
        times = [forecast.time_us for forecast in forecasts]
        texts = [duration(time) for time in times]
        rows.append((text("predicted duration"), *_compared(times, texts, is_pair)))
        ends = [interval(*forecast.interval_us) for forecast in forecasts]
        rows.append((text("90 % interval"), *map(text, ends), *([text("")] if is_pair else [])))
        held = [forecast.first.occupancy.fraction for forecast in forecasts]
        shares = [percent(one, 0) for one in held]
        rows.append((text("occupancy"), *_compared(held, shares, is_pair)))
        limiters = [text(forecast.first.limiter.name) for forecast in forecasts]
        rows.append((text("limiter"), *limiters, *([text("")] if is_pair else [])))
    for name in COUNTERS:
        counts = [subject.trace.counters.get(name, 0) for subject in subjects]
        if any(counts):
            texts = [f"{count:,}" for count in counts]
            rows.append((text(name), *_compared(counts, texts, is_pair)))
    names = tuple((subject.label or subject.trace.kernel, True) for subject in subjects)
    ratio = (("B / A", True),) if is_pair else ()
    return Table("Figures of the launches", (("figure", False), *names, *ratio), tuple(rows))


def _compared(values: Sequence[float], texts: Sequence[str], is_pair: bool) -> Iterator[Cell]:
    """Yield cells with a heat from the least value to the largest, and the ratio of two."""
    least, span = min(values), max(values) - min(values)
    for value, shown in zip(values, texts, strict=True):
        yield Cell(shown, value, (value - least) / span if span else 0.0)
    if is_pair:
        ratio = values[1] / values[0] if values[0] else 0.0
        yield Cell(f"{ratio:.2f}" if values[0] else "", ratio)


def pairs(first: Sequence[SourceRow], second: Sequence[SourceRow]) -> tuple[Pair, ...]:
    """Return the lines of two kernels: equal ones in one row, the others beside each other."""
    one, other = ([row.text.strip() for row in rows] for rows in (first, second))
    found: list[Pair] = []
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        left, right = list(map(_half, first[a:b])), list(map(_half, second[c:d]))
        for place in range(max(len(left), len(right))):
            halves = tuple(side[place] if place < len(side) else None for side in (left, right))
            found.append(Pair((halves[0], halves[1]), kind == "equal"))
    return tuple(found)


def _half(row: SourceRow) -> Half:
    return Half(row.number, row.text, tuple(cell.text for cell in row.cells))
