"""The work of a program on the GPU over time: sums by kind, and strips of a picture.

Host time is not modelled: what stands between two pieces of work is launch overhead, or an
order that the program requested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpusim.reports.layout import plural
from gpusim.reports.quantities import duration, rate, volume

Interval = Mapping[str, Any]

HOST_NOTE = "host time is not modelled"
KERNEL, OVERHEAD, IDLE = "kernels", "launch overhead", "idle"
# A picture has that many columns: what is narrower is drawn together with its neighbours.
COLUMNS = 1500
_STREAMS = {0: "default stream", 0xFFFF: "per-thread stream"}  # of the driver's own


@dataclass(frozen=True)
class KindSum:
    """All work of a kind: pieces, microseconds, and the bytes of copies and memsets."""

    kind: str
    pieces: int
    time_us: float
    bytes: int = 0

    @property
    def gbps(self) -> float:
        """Bytes over time, in GB/s (10^9 bytes); 0 for work without bytes."""
        return self.bytes / self.time_us / 1e3 if self.bytes and self.time_us else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the sum, ready for JSON."""
        made: dict[str, Any] = {"kind": self.kind, "pieces": self.pieces, "time_us": self.time_us}
        return made | ({"bytes": self.bytes, "gbps": self.gbps} if self.bytes else {})


@dataclass(frozen=True)
class Strip:
    """A stream in the picture: its name, and its bars from left to right."""

    name: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Bar:
    """Work of one kind in a row: begin and end in microseconds, and its text."""

    kind: str
    begin_us: float
    end_us: float
    text: str


def kind_of(one: Interval) -> str:
    """Return the kind of an interval as reports name it, with the direction of a copy."""
    if one["kind"] == "kernel":
        return KERNEL
    return "memsets" if one["kind"] == "memset" else f"copies {one['name']}"


def span_us(intervals: Sequence[Interval]) -> float:
    """Return the time from the first work to the end of the last."""
    if not intervals:
        return 0.0
    end: float = max(one["end_us"] for one in intervals)
    begin: float = min(one["begin_us"] for one in intervals)
    return end - begin


def by_kind(intervals: Sequence[Interval]) -> list[KindSum]:
    """Return the sums by kind, the longest first, then launch overhead and idle time.

    Work of streams that run beside each other counts once for each; idle is the time without any.
    """
    held: dict[str, list[Interval]] = {}
    for one in intervals:
        held.setdefault(kind_of(one), []).append(one)
    sums = [
        KindSum(
            kind,
            len(found),
            sum(one["end_us"] - one["begin_us"] - one["overhead_us"] for one in found),
            sum(one["bytes"] for one in found),
        )
        for kind, found in held.items()
    ]
    sums.sort(key=lambda one: -one.time_us)
    overheads = [one["overhead_us"] for one in intervals if one["overhead_us"]]
    if overheads:
        sums.append(KindSum(OVERHEAD, len(overheads), sum(overheads)))
    gaps = _gaps(intervals)
    if gaps:
        sums.append(KindSum(IDLE, len(gaps), sum(gaps)))
    return sums


def _gaps(intervals: Sequence[Interval]) -> list[float]:
    """Return the times between the first and the last work in which no stream has any."""
    found, end = [], None
    for one in sorted(intervals, key=lambda one: one["begin_us"]):
        if end is not None and one["begin_us"] > end:
            found.append(one["begin_us"] - end)
        end = one["end_us"] if end is None else max(end, one["end_us"])
    return [gap for gap in found if gap > 1e-6]


def timeline_line(intervals: Sequence[Interval]) -> str:
    """Return the sums in a sentence."""
    whole = span_us(intervals)
    parts = [
        f"{one.kind} {duration(one.time_us)}"
        + (f" ({volume(one.bytes)}, {rate(one.gbps)})" if one.bytes else "")
        for one in by_kind(intervals)
    ]
    return f"{duration(whole)} of the GPU: {', '.join(parts)}; {HOST_NOTE}"


def strips(intervals: Sequence[Interval]) -> list[Strip]:
    """Return a strip for each stream of each process, in the order of their first work."""
    held: dict[tuple[int, int], list[Interval]] = {}
    for one in intervals:
        held.setdefault((one["process"], one["stream"]), []).append(one)
    processes = {process for process, _ in held}
    column_us = span_us(intervals) / COLUMNS
    return [
        Strip(
            f"process {process}, " * (len(processes) > 1) + stream_name(stream),
            tuple(_bars(found, column_us)),
        )
        for (process, stream), found in held.items()
    ]


def stream_name(stream: int) -> str:
    """Return the name of a stream by its number."""
    return _STREAMS.get(stream, f"stream {stream}")


def _bars(intervals: Sequence[Interval], column_us: float) -> list[Bar]:
    """Return the bars of a stream; neighbours of a kind within a column are one."""
    made: list[Bar] = []
    alike = 0
    for one in intervals:
        kind, begin, end = kind_of(one), one["begin_us"], one["end_us"]
        last = made[-1] if made else None
        if last and last.kind == kind and end - last.begin_us < column_us:
            alike += 1
            text = f"{plural(alike, 'piece')} of work: {kind}"
            made[-1] = Bar(kind, last.begin_us, end, text)
            continue
        alike = 1
        overhead = one["overhead_us"]
        if overhead:
            made.append(
                Bar(OVERHEAD, begin, begin + overhead, f"launch overhead {overhead:.2f} us")
            )
        made.append(Bar(kind, begin + overhead, end, bar_text(one)))
    return made


def bar_text(one: Interval) -> str:
    """Return the text of a piece of work."""
    taken = duration(one["end_us"] - one["begin_us"] - one["overhead_us"])
    if one["kind"] == "kernel":
        return f"launch {one['number']}: {one['name']}, {taken}"
    what = "memset" if one["kind"] == "memset" else f"copy {one['name']}"
    return f"{what}, {volume(one['bytes'])}, {taken}"
