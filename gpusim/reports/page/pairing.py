"""Kernels side by side: a sentence for each step, figures with ratios, lines where these match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

from gpusim.prediction.uncertainty import judged
from gpusim.reports.certainty import in_order
from gpusim.reports.changes import changes
from gpusim.reports.page.tables import Cell, Table, text
from gpusim.reports.quantities import duration, interval, percent
from gpusim.tracing.counters import COUNTERS

if TYPE_CHECKING:
    from gpusim.reports.page.sections import SourceRow, Subject

MOST_BESIDE = 3  # more kernels beside each other have no room for their lines


@dataclass(frozen=True)
class Half:
    """A kernel's line beside others: its number, its text, its part of the time."""

    number: int
    text: str
    time: str


@dataclass(frozen=True)
class BesideRow:
    """A row of lines, None where a kernel has none; `is_same` where the text is that of all."""

    halves: tuple[Half | None, ...]

    @property
    def is_same(self) -> bool:
        """Whether all kernels have this line."""
        return len({half and half.text.strip() for half in self.halves}) == 1


def verdicts(subjects: Sequence[Subject]) -> Iterator[str]:
    """Yield a sentence for each kernel after the first: its time over the one before, and why."""
    for before, after in pairwise(subjects):
        if before.forecast is None or after.forecast is None:
            continue
        ratio = after.forecast.time_us / before.forecast.time_us
        reasons = changes(before.forecast.first, after.forecast.first)
        why = f": {', '.join(reasons)}" if reasons else ""
        yield f"{_name(after)} takes {ratio:.2f} times as long as {_name(before)}{why}."


def _name(subject: Subject) -> str:
    return subject.label or subject.trace.kernel


def comparison(subjects: Sequence[Subject]) -> Table:
    """Return kernels side by side: predicted time, and every counter that one of them has.

    After each kernel after the first stands its value over that of the kernel before.
    """
    rows: list[tuple[Cell, ...]] = []
    forecasts = [subject.forecast for subject in subjects if subject.forecast is not None]
    if len(forecasts) == len(subjects):
        times = [forecast.time_us for forecast in forecasts]
        rows.append((text("predicted duration"), *_compared(times, [*map(duration, times)])))
        ends = [interval(*forecast.interval_us) for forecast in forecasts]
        rows.append((text("90 % interval"), *_spaced(ends)))
        orders = [in_order(judged(forecasts[0].timed, one.timed)) for one in forecasts[1:]]
        rows.append((text("measured pairs in this order"), *_spaced(["", *orders])))
        held = [forecast.first.occupancy.fraction for forecast in forecasts]
        rows.append((text("occupancy"), *_compared(held, [percent(one, 0) for one in held])))
        limiters = [forecast.first.limiter.name for forecast in forecasts]
        rows.append((text("limiter"), *_spaced(limiters)))
    for name in COUNTERS:
        counts = [subject.trace.counters.get(name, 0) for subject in subjects]
        if any(counts):
            rows.append((text(name), *_compared(counts, [f"{count:,}" for count in counts])))
    names = [(_name(subject), True) for subject in subjects]
    columns = [names[0], *(one for name in names[1:] for one in (name, ("ratio", True)))]
    return Table("Figures of the launches", (("figure", False), *columns), tuple(rows))


def _compared(values: Sequence[float], texts: Sequence[str]) -> Iterator[Cell]:
    """Yield cells with a heat from the least value to the largest, and the ratio of each step."""
    least, span = min(values), max(values) - min(values)
    for place, (value, shown) in enumerate(zip(values, texts, strict=True)):
        yield Cell(shown, value, (value - least) / span if span else 0.0)
        if place:
            before = values[place - 1]
            yield Cell(f"{value / before:.2f}" if before else "", value / before if before else 0)


def _spaced(texts: Sequence[str]) -> Iterator[Cell]:
    """Yield cells without ratios."""
    for place, shown in enumerate(texts):
        yield text(shown)
        if place:
            yield text("")


def beside(sources: Sequence[Sequence[SourceRow]]) -> tuple[BesideRow, ...]:
    """Return the lines of kernels: equal ones in one row, the others beside each other."""
    rows: list[list[Half | None]] = [[_half(row)] for row in sources[0]]
    for width, source in enumerate(sources[1:], 1):
        known = [next(half.text.strip() for half in reversed(row) if half) for row in rows]
        new = [_half(row) for row in source]
        texts = [half.text.strip() for half in new]
        joined: list[list[Half | None]] = []
        matched = SequenceMatcher(None, known, texts, autojunk=False)
        for _, a, b, c, d in matched.get_opcodes():
            for place in range(max(b - a, d - c)):
                left = rows[a + place] if a + place < b else [None] * width
                joined.append([*left, new[c + place] if c + place < d else None])
        rows = joined
    return tuple(BesideRow(tuple(row)) for row in rows)


def _half(row: SourceRow) -> Half:
    return Half(row.number, row.text, row.time.text if row.time else "")
