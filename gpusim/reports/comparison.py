"""Two launches side by side: time with its interval, counters, and whether their results agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rich.text import Text

from gpusim.prediction.sweeps.jobs import Forecast
from gpusim.prediction.uncertainty import is_tie
from gpusim.reports.columns import Column, Columns
from gpusim.reports.generators import code_of
from gpusim.reports.layout import BAD, DIM, TITLE, heading, size
from gpusim.reports.quantities import duration, interval, percent, rate
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.records import Trace


@dataclass(frozen=True, eq=False)
class Side:
    """One of two launches: its kernel as it was named, its prediction, its trace, its outputs."""

    name: str
    forecast: Forecast
    trace: Trace
    outputs: Any


class Agreed(Protocol):
    """Whether two launches leave the same in an array."""

    @property
    def agrees(self) -> bool:
        """Whether they do."""

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""


def comparison_document(sides: Sequence[Side], found: Sequence[Agreed]) -> dict[str, Any]:
    """Return the comparison, ready for JSON."""
    first, second = (side.forecast for side in sides)
    return {
        "sides": [
            {**side.forecast.to_dict(), "name": side.name, "counters": dict(side.trace.counters)}
            for side in sides
        ],
        "speedup": first.time_us / second.time_us,
        "tie": is_tie(first, second),
        "outputs": [one.to_dict() for one in found],
        "agree": all(one.agrees for one in found),
    }


def comparison_report(sides: Sequence[Side], found: Sequence[Agreed], width: int) -> Iterator[Text]:
    """Yield the comparison as lines of at most `width` columns."""
    table = Columns(
        Column("", "left"), Column("A", overflow="fold"), Column("B", overflow="fold"),
        Column("B / A"),
    )  # fmt: skip
    for name, values in _rows(sides):
        table.row((name, DIM), *values, "")
    times = [side.forecast.time_us for side in sides]
    table.row(
        ("duration", TITLE),
        *((duration(time), TITLE) for time in times),
        (f"{times[1] / times[0]:.2f}", "cyan"),
    )
    intervals = [interval(*side.forecast.interval_us) for side in sides]
    tie = "a tie" if is_tie(sides[0].forecast, sides[1].forecast) else ""
    table.row(("90 % interval", DIM), *intervals, (tie, "yellow"))
    for name in COUNTERS:
        counts = [side.trace.counters.get(name, 0) for side in sides]
        if any(counts):
            ratio = f"{counts[1] / counts[0]:.2f}" if counts[0] else ""
            table.row(name, *(f"{count:,}" for count in counts), (ratio, "cyan"))
    yield from table.lines(width)
    yield heading("Results", "of arrays that either launch changes")
    for one in found:
        yield Text(f"  {one}", "" if one.agrees else BAD)
    if not found:
        yield Text("  neither changes an array")


def _rows(sides: Sequence[Side]) -> Iterator[tuple[str, list[str]]]:
    """Yield what describes the launches."""
    forecasts = [side.forecast for side in sides]
    firsts = [forecast.first for forecast in forecasts]
    yield "kernel", [side.name for side in sides]
    yield "device", [forecast.device.name for forecast in forecasts]
    yield "grid", [size(first.launch.grid) for first in firsts]
    yield "block", [size(first.launch.block) for first in firsts]
    yield "code", [code_of(first.prepared.program) for first in firsts]
    yield "limiter", [first.limiter.name for first in firsts]
    yield "useful bandwidth", [rate(forecast.gbps) for forecast in forecasts]
    yield "of the DRAM's peak", [percent(forecast.peak_fraction) for forecast in forecasts]
