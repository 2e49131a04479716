"""When work on streams begins and ends, in microseconds of the GPU that is simulated.

Host time is not modelled. Work of a stream follows its earlier work; the default stream's follows
all that other streams were given, and they follow it (CUDA C++ Programming Guide, "Default
stream"). Copies between host and device take their bytes over the link's bandwidth, one at a time
in each direction; kernels of different streams are timed as if each had the GPU for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from gpusim.driver.order import DEFAULT, NON_BLOCKING, Order, Stamp
from gpusim.gpu.device import Device
from gpusim.launch.overlap import Overlap

TO_DEVICE, TO_HOST, WITHIN, BY_ADDRESS = 1, 2, 3, 4
# GB/s one way of 16 lanes of PCI Express, by the generation of GPUs that brought it (PCI-SIG:
# 8, 16 and 32 GT/s, 128 of 130 bits). What a copy reaches of it is unmeasured.
_LINK_GBPS = {7: 15.75, 8: 31.5, 9: 63.0, 10: 63.0, 12: 63.0}
_OLDEST_LINK_GBPS = 15.75


class Duration(NamedTuple):
    """The time of a launch: the kernel, the overhead on an idle stream, the gap on a busy one.

    `overlap` returns what may overlap its neighbours with programmatic dependence.
    """

    kernel_us: float
    overhead_us: float
    gap_us: float
    overlap: Callable[[], Overlap] = Overlap

    def dependent_us(self, behind_us: float, spared_us: float, triggered_us: float) -> float:
        """Return the time from the end of the launch before it to its own, if it depends on that.

        `behind_us` is the time from the trigger of that launch to its end; of the gap a launch
        spares `spared_us`, behind a trigger `triggered_us`.
        """
        before_us = self.overlap().before_us
        started = max(0.0, self.gap_us - spared_us) - behind_us
        spared = triggered_us if behind_us else spared_us
        waited = max(max(0.0, self.gap_us - spared), started + before_us)
        return waited + self.kernel_us - before_us


@dataclass(frozen=True)
class Interval:
    """Work with its begin and end in microseconds, on a stream by number.

    A launch has its `number` in the program; its first `overhead_us` pass before the kernel runs.
    """

    kind: str
    name: str
    stream: int
    begin_us: float
    end_us: float
    bytes: int = 0
    number: int = 0
    overhead_us: float = 0.0


@dataclass
class _Stream:
    end_us: float = 0.0
    follows: bool = True  # whether it waits for the default stream
    has_launched_last: bool = False
    overlap: Callable[[], Overlap] = Overlap  # of the last launch


@dataclass
class Timeline:
    """The streams of one process."""

    device: Device
    intervals: list[Interval] = field(default_factory=list)
    order_of_work: Order = field(default_factory=Order)
    latest: Stamp | None = None  # of the work that was added last
    _streams: dict[int, _Stream] = field(default_factory=lambda: {DEFAULT: _Stream()})
    _events: dict[int, float] = field(default_factory=dict)
    _host_us: float = 0.0
    _links_us: dict[int, float] = field(default_factory=dict)  # when each direction is free

    def add_stream(self, number: int, flags: int) -> None:
        """Take note of a new stream."""
        self._streams[number] = _Stream(follows=not flags & NON_BLOCKING)
        self.order_of_work.add_stream(number, flags)

    def launch(
        self,
        name: str,
        stream: int,
        taken: Duration,
        number: int = 0,
        *,
        is_programmatic: bool = False,
    ) -> Interval:
        """Add a launch; only the gap precedes it if the stream still runs another.

        One with programmatic dependence overlaps that one.
        """
        held = self._stream(stream)
        is_queued = held.has_launched_last and held.end_us > self._host_us
        before = taken.gap_us if is_queued else taken.overhead_us
        whole = before + taken.kernel_us
        if is_queued and is_programmatic:
            host, behind_us = self.device.host, held.overlap().behind_us
            spared = host.dependent_spared_us, host.triggered_spared_us
            whole = taken.dependent_us(behind_us, *spared)
            before = max(0.0, whole - taken.kernel_us)
        made = self._add("kernel", name, stream, whole, number=number, overhead_us=before)
        held.has_launched_last, held.overlap = True, taken.overlap
        return made

    def copy(self, direction: int, size: int, stream: int, *, waits: bool) -> Interval:
        """Add a copy; the host `waits` for one that is not asynchronous."""
        names = {TO_DEVICE: "host to device", TO_HOST: "device to host", WITHIN: "within device"}
        name, taken_us = names.get(direction, "copy"), self.copy_us(direction, size)
        free_us = self._links_us.get(direction, 0.0)
        made = self._add("copy", name, stream, taken_us, size=size, earliest_us=free_us)
        if direction in (TO_DEVICE, TO_HOST):
            self._links_us[direction] = made.end_us
        if waits:
            self.wait(stream)
        return made

    def copy_us(self, direction: int, size: int) -> float:
        """Return the time of a copy; within the device DRAM reads and writes its bytes."""
        if direction == WITHIN:
            return 2 * size / (self.device.bandwidth.dram_gbps * 1e3)
        link = _LINK_GBPS.get(self.device.cc.major, _OLDEST_LINK_GBPS)
        return size / (link * 1e3)

    def fill(self, size: int, stream: int) -> Interval:
        """Add a memset of `size` bytes."""
        taken = size / (self.device.bandwidth.dram_gbps * 1e3)
        return self._add("memset", "memset", stream, taken, size=size)

    def record(self, event: int, stream: int) -> None:
        """Set an event to the end of a stream's work so far."""
        self._events[event] = max(self._end(stream), self._host_us)
        self.order_of_work.record(event, stream)

    def order(self, stream: int, event: int) -> None:
        """Let a stream wait for an event."""
        held = self._stream(stream)
        held.end_us = max(held.end_us, self._events.get(event, 0.0))
        self.order_of_work.order(stream, event)

    def wait(self, stream: int) -> None:
        """Let the host wait for a stream."""
        self._host_us = max(self._host_us, self._end(stream))
        self.order_of_work.wait(stream)

    def wait_for_event(self, event: int) -> None:
        """Let the host wait for an event."""
        self._host_us = max(self._host_us, self._events.get(event, 0.0))
        self.order_of_work.wait_for_event(event)

    def wait_for_all(self) -> None:
        """Let the host wait for all streams."""
        for number in list(self._streams):
            self.wait(number)

    def elapsed_us(self, begin: int, end: int) -> float:
        """Return the time between two events."""
        return self._events.get(end, 0.0) - self._events.get(begin, 0.0)

    def _stream(self, number: int) -> _Stream:
        return self._streams.setdefault(number, _Stream())

    def _end(self, number: int) -> float:
        """Return the end of all work that new work on a stream waits for."""
        held = self._stream(number)
        if number == DEFAULT:
            return max(one.end_us for one in self._streams.values() if one.follows)
        return max(held.end_us, self._streams[DEFAULT].end_us) if held.follows else held.end_us

    def _add(
        self,
        kind: str,
        name: str,
        stream: int,
        taken_us: float,
        *,
        size: int = 0,
        number: int = 0,
        overhead_us: float = 0.0,
        earliest_us: float = 0.0,
    ) -> Interval:
        held = self._stream(stream)
        self.latest = self.order_of_work.submit(stream)
        begin = max(self._end(stream), self._host_us, earliest_us)
        held.end_us = begin + taken_us
        held.has_launched_last = False
        made = Interval(kind, name, stream, begin, held.end_us, size, number, overhead_us)
        self.intervals.append(made)
        return made
