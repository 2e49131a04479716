"""Two launches side by side: time with its interval, counters, and whether their results agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Protocol

from rich.text import Text

from gpusim.errors import InputError
from gpusim.launch.description import LaunchDescription
from gpusim.launch.views import Shown
from gpusim.prediction.sweeps.jobs import Forecast
from gpusim.prediction.uncertainty import Judgement, Timed, judged
from gpusim.reports.columns import Column, Columns
from gpusim.reports.generators import code_of
from gpusim.reports.launches import launches_lines
from gpusim.reports.layout import BAD, DIM, TITLE, heading, size
from gpusim.reports.quantities import duration, interval, percent, rate
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.records import Trace

FACTS = (
    "device",
    "n",
    "n of counters, results",
    "grid",
    "block",
    "code",
    "limiter",
    "useful bandwidth",
    "of the DRAM's peak",
)


@dataclass(frozen=True, eq=False)
class Side:
    """One of two launches, as it was named: a run and prediction, or the saved JSON of either.

    `facts` are texts by the names of `FACTS`. `timed` is None without a prediction, `outputs`
    without a run; `document` is that of a prediction, empty where it was saved.
    """

    name: str
    document: Mapping[str, Any]
    facts: Mapping[str, str]
    counters: Mapping[str, int]
    timed: Timed | None = None
    outputs: Any = None
    description: LaunchDescription | None = None

    @property
    def time_us(self) -> float | None:
        """The predicted time, None without a prediction."""
        return None if self.timed is None else self.timed.time_us

    @property
    def interval_us(self) -> tuple[float, float] | None:
        """The interval of the time, None without a prediction."""
        return None if self.timed is None else self.timed.interval_us


def launched_side(name: str, forecast: Forecast, trace: Trace, outputs: Any) -> Side:
    """Return a launch that was run and predicted."""
    first, counters = forecast.first, dict(trace.counters)
    timed, run = (_size(one.description) for one in (forecast.job, trace))
    facts = {
        "device": forecast.device.name,
        **({"n": timed} if timed else {}),
        **({"n of counters, results": run} if run != timed else {}),
        "grid": size(first.launch.grid),
        "block": size(first.launch.block),
        "code": code_of(first.prepared.program),
        "limiter": first.limiter.name,
        "useful bandwidth": rate(forecast.gbps),
        "of the DRAM's peak": percent(forecast.peak_fraction),
    }
    document = {**forecast.to_dict(), "name": name, "counters": counters}
    return Side(name, document, facts, counters, forecast.timed, outputs, forecast.job.description)


def _size(description: LaunchDescription | None) -> str:
    """Return the number of elements of a launch, "" for one without."""
    n = None if description is None else description.n
    return "" if n is None else f"{int(n.value):,}"


def saved_side(name: str, document: Mapping[str, Any]) -> Side:
    """Return the launch of a document of `gpusim predict --json` or `gpusim trace --json`.

    Raises InputError for any other document.
    """
    try:
        if "passes" in document:
            first = document["passes"][0]
            facts = {
                "device": str(document["device"]),
                "limiter": str(first["limiter"]),
                "useful bandwidth": rate(document["gbps"]),
                "of the DRAM's peak": percent(document["peak_fraction"]),
                **_launch(first),
            }
            return Side(name, {}, facts, {}, _saved_time(document))
        counted = {key: int(one["value"]) for key, one in document["counters"].items()}
        return Side(name, {}, _launch(document), counted)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        raise InputError(
            f"{name} is not a document of gpusim predict --json or gpusim trace --json"
        ) from None


def _saved_time(document: Mapping[str, Any]) -> Timed:
    """Return the time of a saved prediction."""
    low, high = map(float, document["interval_us"])
    first = document["passes"][0]
    known = first["interval"]
    return Timed(
        float(document["time_us"]),
        (low, high),
        (document["device_id"], *document["without"], *document["set"].items()),
        str(known["gpu"]),
        str(known["code"]),
        document["operation"] is not None,
        (document["kernel"], document["n"]),
        tuple(first["block"]),
    )


def _launch(document: Mapping[str, Any]) -> dict[str, str]:
    """Return grid, block and code of a saved launch."""
    return {
        "grid": size(tuple(document["grid"])),
        "block": size(tuple(document["block"])),
        "code": str(document["generator"]),
    }


class Agreed(Protocol):
    """Whether two launches leave equal elements in an array."""

    @property
    def agrees(self) -> bool:
        """Whether they do."""

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""


def comparison_document(sides: Sequence[Side], found: Sequence[Agreed] | None) -> dict[str, Any]:
    """Return the comparison, ready for JSON; without results of runs, `found` is None."""
    first, second = (side.time_us for side in sides)
    found_order = _judged(sides)
    return {
        "sides": [dict(side.document) for side in sides if side.document],
        "saved": [
            {
                "side": letter,
                "name": side.name,
                "time_us": side.time_us,
                "interval_us": side.interval_us and list(side.interval_us),
                "counters": dict(side.counters),
            }
            for letter, side in zip("AB", sides, strict=True)
            if not side.document
        ],
        "speedup": first / second if first and second else None,
        "tie": None if found_order is None else found_order.is_tie,
        "comparison": None if found_order is None else found_order.to_dict(),
        "outputs": [one.to_dict() for one in found or ()],
        "agree": None if found is None else all(one.agrees for one in found),
    }


@dataclass(frozen=True, eq=False)
class Comparison(Shown, shown_as="comparison"):
    """Two launches side by side; `found` says whether their results agree, None without runs."""

    sides: Sequence[Side]
    found: Sequence[Agreed] | None

    def __repr__(self) -> str:
        return f"<Comparison of {' and '.join(side.name for side in self.sides)}>"


def comparison_report(
    sides: Sequence[Side], found: Sequence[Agreed] | None, width: int
) -> Iterator[Text]:
    """Yield the comparison as lines of at most `width` columns."""
    yield from comparison_table(sides).lines(width)
    described = zip("AB", (side.description for side in sides), strict=True)
    yield from launches_lines(described, width)
    order = _judged(sides)
    if order is not None:
        for part in wrap(f"order: {order}", width):
            yield Text(part, "yellow" if order.is_tie else DIM)
    if found is None:
        return
    yield heading("Results", "of arrays that either launch changes")
    for one in found:
        yield Text(f"  {one}", "" if one.agrees else BAD)
    if not found:
        yield Text("  neither changes an array")


def comparison_table(sides: Sequence[Side]) -> Columns:
    """Return the table of two launches: facts, times and counters."""
    table = Columns(
        Column("", "left"), Column("A", overflow="fold"), Column("B", overflow="fold"),
        Column("B / A"),
    )  # fmt: skip
    table.row(("kernel", DIM), *(side.name for side in sides), "")
    for name in FACTS:
        values = [side.facts.get(name, "") for side in sides]
        if any(values):
            table.row((name, DIM), *values, "")
    times = [side.time_us for side in sides]
    if any(times):
        texts = ["" if time is None else duration(time) for time in times]
        table.row(("duration", TITLE), *((one, TITLE) for one in texts), (_ratio(times), "cyan"))
        ends = [side.interval_us for side in sides]
        intervals = ["" if one is None else interval(*one) for one in ends]
        table.row(("90 % interval", DIM), *intervals, "")
    for name in COUNTERS:
        counts = [side.counters.get(name, 0) if side.counters else None for side in sides]
        if any(counts):
            texts = ["" if count is None else f"{count:,}" for count in counts]
            table.row(name, *texts, (_ratio(counts), "cyan"))
    return table


def _ratio(values: Sequence[float | None]) -> str:
    first, second = values
    return f"{second / first:.2f}" if first and second is not None else ""


def _judged(sides: Sequence[Side]) -> Judgement | None:
    """Return the comparison of two predictions; None without both."""
    first, second = (side.timed for side in sides)
    return None if first is None or second is None else judged(first, second)
