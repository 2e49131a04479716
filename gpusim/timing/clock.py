"""One SM at work, event by event: SimPy where something waits, arithmetic where nothing does.

A process is a warp scheduler, an event the release of a barrier or the start of a block. What
serves requests in turn (data stage, L2 and DRAM, atomics) is a time from which it is free.
All SMs are alike: the one that is played has its share of the device's bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Protocol

import simpy

from gpusim.device import Device
from gpusim.timing.costs import PIPES, TICKS, Action, Segment, ticks

STALLS = (
    "selected",
    "not_selected",
    "wait",
    "short_scoreboard",
    "long_scoreboard",
    "mio_throttle",
    "lg_throttle",
    "math_pipe_throttle",
    "barrier",
)
(SELECTED, NOT_SELECTED, WAIT, SHORT, LONG, MIO, LG, MATH, BARRIER) = range(len(STALLS))
RUNNING = -1  # in place of a pc: the segment knows which instructions take the time
UTILISATION_WINDOW = 2048 * TICKS


@dataclass(frozen=True)
class Span:
    """A piece of a warp's life, for one reason; times in cycles, `pc` -1 where none is known."""

    block: int
    warp: int
    start: float
    end: float
    reason: str
    pc: int


class SpanListener(Protocol):
    """Hears every span of the SM that is played."""

    def span(self, span: Span) -> None:
        """Take note of a span."""


@dataclass(frozen=True)
class Share:
    """What one SM has of the device: bytes per cycle from DRAM and L2, and how busy others are.

    `dram_part` is the part of fresh sectors that come from DRAM, not the L2; `late_part` the
    part that is there as late as if it did: blocks that run together wait for one fetch.
    """

    dram_bytes_per_cycle: float
    l2_bytes_per_cycle: float
    dram_part: float
    late_part: float
    sms: int


@dataclass(frozen=True)
class WarpPlan:
    """A warp's segments, and how many tags they use."""

    segments: tuple[Segment, ...]
    tags: int


@dataclass
class Outcome:
    """What playing an SM gave: its end in cycles, stalls and cycles by pc, summed over warps.

    `block_ends` are the cycles at which blocks left the SM, in order.
    """

    cycles: float
    block_ends: list[float]
    stalls: list[int]
    by_pc: dict[int, int]
    instructions: int


class _Warp:
    """A warp on the SM: where it is in its segments, and when each result will be there."""

    __slots__ = (
        "at", "block", "number", "order", "plan", "results", "scheduler", "seen", "spent", "stored",
    )  # fmt: skip

    scheduler: _Scheduler

    def __init__(
        self, plan: WarpPlan, spent: list[int], block: _Block, number: int, order: int, now: int
    ) -> None:
        self.plan = plan.segments
        self.spent = spent  # ticks that all warps of this plan took for each segment
        self.block = block
        self.number = number
        self.order = order
        self.at = 0
        self.results = [0] * plan.tags
        self.seen = now  # until when its life is accounted for
        self.stored = 0  # when its last store to shared memory is through


class _Block:
    """A block on the SM: how many of its warps still run, and who waits at its barrier."""

    __slots__ = ("live", "number", "waiting")

    def __init__(self, number: int, warps: int) -> None:
        self.number = number
        self.live = warps
        self.waiting: list[_Warp] = []


class StreamingMultiprocessor:
    """Plays blocks on one SM of a device.

    `plans[i]` are the warps of the i-th block that comes to this SM; `resident` is how many
    blocks it holds at a time.
    """

    def __init__(
        self,
        device: Device,
        share: Share,
        plans: Sequence[Sequence[WarpPlan]],
        resident: int,
        listener: SpanListener | None = None,
    ) -> None:
        self.env = simpy.Environment()
        self.device = device
        self.share = share
        self.plans = plans
        self.resident = resident
        self.listener = listener
        self.stalls = [0] * len(STALLS)
        self.by_pc: dict[int, int] = {}
        self.runs: dict[int, tuple[WarpPlan, list[int]]] = {}
        self.instructions = 0
        self.block_ends: list[int] = []
        self.end = 0
        self._next_block = 0
        self._on_sm = 0
        self._launch_free = 0
        self._order = 0
        self._data_free = 0
        self._dram_free = 0
        self._l2_free = 0
        self._barrier_free = 0
        self._atomic_free = 0
        self._busy_from = 0
        self._busy = 0
        self._utilisation = 0.0
        self._rates()
        self.schedulers = [_Scheduler(self, k) for k in range(device.sm.schedulers)]

    def _rates(self) -> None:
        latency, interval = self.device.latency_cycles, self.device.interval_cycles
        free = self.device.ablations
        self._shared_latency = ticks(latency.shared_load)
        self._shared_step = ticks(latency.shared_wavefront)
        self._wavefront = ticks(interval.shared_wavefront)
        self._store_conflict = ticks(interval.shared_store_conflict)
        self._conflicts_cost = "bank-conflicts" not in free
        self._request = ticks(interval.lsu_sm)
        self._packet = ticks(interval.store_packet)
        self._shuffle_latency = ticks(latency.shuffle)
        self._shuffle = ticks(interval.shuffle)
        self._l1, self._l2, self._dram = (ticks(c) for c in (latency.l1, latency.l2, latency.dram))
        self._growth = self.device.bandwidth.dram_latency_growth
        self._barrier = 0 if "barriers" in free else ticks(latency.barrier)
        self._per_warp = 0 if "barriers" in free else ticks(latency.barrier_per_warp)
        self._barriers_wait = "barriers" not in free
        at_once = "block-launch" in free
        self._block_start = 0 if at_once else ticks(latency.block_start)
        self._block_end = 0 if at_once else ticks(latency.block_end)
        self._launch = 0 if at_once else ticks(interval.block_launch)
        self._atomic_pass = 0 if "atomics" in free else ticks(interval.shared_atomic_pass)
        self._atomic_latency = ticks(latency.shared_atomic)
        self._global_atomic_latency = ticks(latency.global_atomic)
        turn = interval.global_atomic_same_address * self.share.sms
        self._same_address = 0 if "atomics" in free else ticks(turn)
        self._queue = ticks(self.device.queue.lsu_depth * interval.lsu_scheduler)
        self.lsu_scheduler = ticks(interval.lsu_scheduler)
        grain = self.device.bandwidth.dram_grain_bytes
        unlimited = "bandwidth" in free
        self._dram_sector = 0.0 if unlimited else 32 * TICKS / self.share.dram_bytes_per_cycle
        self._l2_sector = 0.0 if unlimited else 32 * TICKS / self.share.l2_bytes_per_cycle
        self._grain_sectors = grain // 32

    # -- running -----------------------------------------------------------------------

    def play(self) -> Outcome:
        """Play all blocks to the end."""
        self._start_blocks()
        self.env.run()
        for plan, spent in self.runs.values():
            for segment, run_ticks in zip(plan.segments, spent, strict=True):
                if run_ticks:
                    self._charge(segment, run_ticks)
        return Outcome(
            cycles=self.end / TICKS,
            block_ends=[end / TICKS for end in self.block_ends],
            stalls=self.stalls,
            by_pc=self.by_pc,
            instructions=self.instructions,
        )

    def _charge(self, segment: Segment, spent: int) -> None:
        """Share out what a segment took among its instructions, in whole ticks."""
        weights = segment.charges or ((segment.pc, 1),)
        total, left = sum(weight for _, weight in weights) or 1, spent
        for pc, weight in weights[:-1]:
            part = spent * weight // total
            self.by_pc[pc] = self.by_pc.get(pc, 0) + part
            left -= part
        last = weights[-1][0]
        self.by_pc[last] = self.by_pc.get(last, 0) + left

    def _start_blocks(self) -> None:
        """Launch blocks while there is room, one in a launch interval."""
        while self._on_sm < self.resident and self._next_block < len(self.plans):
            self._on_sm += 1
            number = self._next_block
            self._next_block += 1
            at = max(int(self.env.now), self._launch_free)
            self._launch_free = at + self._launch
            begin = self.env.timeout(at + self._block_start - self.env.now, number)
            begin.callbacks.append(self._begin_block)

    def _begin_block(self, event: simpy.Event) -> None:
        number: int = event.value  # type: ignore[assignment]
        plans = self.plans[number]
        block = _Block(number, len(plans))
        now = int(self.env.now)
        for warp_number, plan in enumerate(plans):
            _, spent = self.runs.setdefault(id(plan), (plan, [0] * len(plan.segments)))
            warp = _Warp(plan, spent, block, warp_number, self._order, now)
            self._order += 1
            warp.scheduler = min(self.schedulers, key=lambda scheduler: scheduler.warps)
            warp.scheduler.add(warp, now)

    def warp_left(self, warp: _Warp, now: int) -> None:
        """Take note that a warp has run its last instruction."""
        block = warp.block
        block.live -= 1
        self.end = max(self.end, now)
        if block.live == 0:
            leave = self.env.timeout(now + self._block_end - self.env.now)
            leave.callbacks.append(self._end_block)
        elif block.waiting and len(block.waiting) == block.live:
            self._release(block, now)

    def _end_block(self, event: simpy.Event) -> None:
        self._on_sm -= 1
        self.block_ends.append(int(self.env.now))
        self.end = max(self.end, int(self.env.now))
        self._start_blocks()

    # -- accounting --------------------------------------------------------------------

    def account(self, warp: _Warp, end: int, reason: int, pc: int) -> None:
        """Let the warp's life up to `end` have been for a reason."""
        start = warp.seen
        if end <= start:
            return
        self.stalls[reason] += end - start
        if pc >= 0:
            self.by_pc[pc] = self.by_pc.get(pc, 0) + end - start
        warp.seen = end
        if self.listener is not None:
            self.listener.span(
                Span(warp.block.number, warp.number, start / TICKS, end / TICKS, STALLS[reason], pc)
            )

    # -- what serves requests in turn --------------------------------------------------

    def request(self, segment: Segment, now: int) -> tuple[int, int]:
        """Serve a segment's access; return when its result is there, and when it is accepted.

        A warp whose request is not accepted at once holds the scheduler's queue.
        """
        return _SERVE[segment.action](self, segment, now)

    def _accepted(self, start: int, now: int) -> int:
        return max(now, start - self._queue)

    def _shared_load(self, segment: Segment, now: int) -> tuple[int, int]:
        start = max(now, self._data_free)
        passes = segment.cost if self._conflicts_cost else min(segment.cost, 1)
        self._data_free = start + max(self._request, passes * self._wavefront)
        done = start + self._shared_latency + (passes - 1) * self._shared_step
        return done, self._accepted(start, now)

    def _shared_store(self, segment: Segment, now: int) -> tuple[int, int]:
        start = max(now, self._data_free)
        extra = (segment.cost - 1) * self._store_conflict if self._conflicts_cost else 0
        self._data_free = start + max(self._request, self._wavefront) + extra
        return self._data_free, self._accepted(start, now)

    def _shuffle_lanes(self, segment: Segment, now: int) -> tuple[int, int]:
        start = max(now, self._data_free)
        self._data_free = start + self._shuffle
        return start + self._shuffle_latency, self._accepted(start, now)

    def _fetch(self, sectors: int, at: int) -> int:
        """Return when sectors that missed the L1 are there, requested at a time."""
        from_dram = sectors * self.share.dram_part
        grains = -(-sectors // self._grain_sectors) * self._grain_sectors
        served = max(at, self._l2_free)
        self._l2_free = served + round(sectors * self._l2_sector)
        if from_dram:
            busy = round(grains * self.share.dram_part * self._dram_sector)
            begin = max(at, self._dram_free)
            self._dram_free = begin + busy
            self._note_busy(at, busy)
            return max(begin + busy, self._l2_free) + self._fetch_latency()
        return self._l2_free + self._fetch_latency()

    def _fetch_latency(self) -> int:
        """Return the mean latency of what misses the L1, as busy as DRAM is."""
        growth = 1 + self._growth * self._utilisation**2
        return round(self._l2 + (self._dram * growth - self._l2) * self.share.late_part)

    def _note_busy(self, now: int, busy: int) -> None:
        """Keep the DRAM's utilisation of the last window."""
        if now - self._busy_from > UTILISATION_WINDOW:
            self._utilisation = min(1.0, self._busy / (now - self._busy_from))
            self._busy_from, self._busy = now, 0
        self._busy += busy

    def _global_load(self, segment: Segment, now: int) -> tuple[int, int]:
        start = max(now, self._data_free)
        self._data_free = start + max(self._request, segment.lines * self._wavefront)
        missed = segment.fresh if self.device.capacity.l1_caches_global else segment.cost
        if missed:
            done = self._fetch(missed, start)
        else:
            done = start + (self._fetch_latency() if segment.joins else self._l1)
        return done, self._accepted(start, now)

    def _global_store(self, segment: Segment, now: int) -> tuple[int, int]:
        start = max(now, self._data_free)
        self._data_free = start + max(self._request, segment.lines * self._packet)
        begin = max(start, self._dram_free)
        self._dram_free = begin + round(segment.cost * self._dram_sector * self.share.dram_part)
        return 0, self._accepted(start, now)

    def _shared_atomic(self, segment: Segment, now: int) -> tuple[int, int]:
        start = max(now, self._data_free)
        self._data_free = start + self._request + (segment.cost - 1) * self._atomic_pass
        return self._data_free + self._atomic_latency, self._accepted(start, now)

    def _global_atomic(self, segment: Segment, now: int) -> tuple[int, int]:
        start = max(now, self._data_free)
        self._data_free = start + self._request
        begin = max(start, self._atomic_free)
        self._atomic_free = begin + self._same_address
        return begin + self._global_atomic_latency, self._accepted(start, now)

    # -- barriers ----------------------------------------------------------------------

    def arrive(self, warp: _Warp, now: int) -> bool:
        """Let a warp come to its block's barrier; return whether it may go on at once."""
        if not self._barriers_wait:
            return True
        block = warp.block
        # Other warps may read what this one stored: it has not come before its stores have.
        self._barrier_free = max(self._barrier_free, now, warp.stored) + self._per_warp
        block.waiting.append(warp)
        if len(block.waiting) == block.live:
            self._release(block, now)
        return False

    def _release(self, block: _Block, now: int) -> None:
        at = max(self._barrier_free, now) + self._barrier
        waiting, block.waiting = block.waiting, []
        opened = self.env.timeout(at - self.env.now, waiting)
        opened.callbacks.append(self._open)

    def _open(self, event: simpy.Event) -> None:
        now = int(self.env.now)
        for warp in event.value or ():
            self.account(warp, now, BARRIER, warp.plan[warp.at].pc)
            warp.scheduler.resume(warp, now)


class _Scheduler:
    """A warp scheduler: issues for the warp it served last while that is ready, else the oldest."""

    def __init__(self, sm: StreamingMultiprocessor, number: int) -> None:
        self.sm = sm
        self.number = number
        self.free = 0
        self.lsu_free = 0
        self.pipe_free = [0] * len(PIPES)
        self.waiting: list[tuple[int, int, _Warp]] = []
        self.ready: list[tuple[int, _Warp]] = []
        self.greedy = -1
        self.warps = 0
        self._alarm: simpy.Event | None = None
        self._alarm_at = 0
        sm.env.process(self._run())

    def add(self, warp: _Warp, now: int) -> None:
        """Take a new warp."""
        self.warps += 1
        heappush(self.waiting, (now, warp.order, warp))
        self._wake(now)

    def resume(self, warp: _Warp, now: int) -> None:
        """Let a warp that waited at a barrier go on with what follows it."""
        warp.at += 1
        heappush(self.waiting, (now, warp.order, warp))
        self._wake(now)

    def _wake(self, at: int) -> None:
        """Let the process look again at `at`, if it would sleep longer."""
        alarm = self._alarm
        if alarm is None or alarm.callbacks is None or self._alarm_at <= at:
            return
        self._alarm = None
        earlier = simpy.Event(self.sm.env)
        earlier.callbacks, alarm.callbacks = alarm.callbacks, []
        earlier.succeed()

    def _sleep(self, until: int | None) -> simpy.Event:
        env = self.sm.env
        if until is None:
            self._alarm, self._alarm_at = simpy.Event(env), 1 << 62
        else:
            self._alarm, self._alarm_at = env.timeout(until - env.now), until
        return self._alarm

    def _run(self) -> Any:
        env, waiting, ready = self.sm.env, self.waiting, self.ready
        now = int(env.now)
        while True:
            while waiting and waiting[0][0] <= now:
                _, order, warp = heappop(waiting)
                heappush(ready, (order, warp))
            if ready and self.free <= now:
                self._issue(self._choose(), now)
                continue
            if ready:
                until: int | None = self.free
            elif waiting:
                until = waiting[0][0] if waiting[0][0] > self.free else self.free
            else:
                until = None
            if until is not None and until < env.peek():
                now = until  # nothing else happens before: no need to sleep
                continue
            yield self._sleep(until)
            now = int(env.now)

    def _choose(self) -> _Warp:
        ready = self.ready
        if ready[0][0] != self.greedy:
            for place, (order, warp) in enumerate(ready):
                if order == self.greedy:
                    ready[place] = ready[-1]
                    ready.pop()
                    ready.sort()
                    return warp
        order, warp = heappop(ready)
        self.greedy = order
        return warp

    def _issue(self, warp: _Warp, now: int) -> None:
        """Issue a warp's next segment."""
        sm = self.sm
        segment = warp.plan[warp.at]
        action = segment.action
        if now > warp.seen:
            sm.account(warp, now, NOT_SELECTED, segment.pc)
        if action is Action.RUN:
            self._after(warp, segment, now)
            return
        if action is Action.EXIT:
            sm.instructions += segment.issued
            self.warps -= 1
            self.free = now + TICKS
            sm.account(warp, now + TICKS, SELECTED, segment.pc)
            sm.warp_left(warp, now + TICKS)
            return
        if action is Action.BARRIER:
            self.free = now + TICKS
            sm.account(warp, now + TICKS, SELECTED, RUNNING)
            sm.instructions += segment.issued
            warp.spent[warp.at] += TICKS
            if sm.arrive(warp, now + TICKS):
                self.resume(warp, now + TICKS)
            return
        begin = max(now, self.lsu_free - sm._queue)
        if begin > now:
            sm.account(warp, begin, MIO, segment.pc)
            heappush(self.waiting, (begin, warp.order, warp))
            return
        self.lsu_free = max(now, self.lsu_free) + sm.lsu_scheduler
        done, accepted = sm.request(segment, now)
        if segment.tag >= 0:
            warp.results[segment.tag] = done
        elif action is Action.SHARED_STORE:
            warp.stored = done
        self._after(warp, segment, now, accepted)

    def _after(self, warp: _Warp, segment: Segment, now: int, accepted: int = 0) -> None:
        """Let a warp issue the rest of a segment, and come back for the next one."""
        sm = self.sm
        sm.instructions += segment.issued
        slots, start = segment.slots, now
        if accepted > now:
            start = accepted
            reason = LG if segment.action is Action.GLOBAL_LOAD else MIO
            sm.account(warp, accepted, reason, segment.pc)
        self.free = now + slots
        if segment.pipes:
            begin = self._take_pipes(segment, start, now)
            if begin > start:
                start = begin
                sm.account(warp, start, MATH, segment.pc)
        back = start + segment.chain
        warp.spent[warp.at] += segment.chain
        if sm.listener is None:
            sm.stalls[SELECTED] += slots
            sm.stalls[WAIT] += segment.chain - slots
            warp.seen = back
        else:
            sm.account(warp, start + slots, SELECTED, RUNNING)
            sm.account(warp, back, WAIT, RUNNING)
        if segment.needs:
            results = warp.results
            needs = segment.needs
            there = results[needs[0]] if len(needs) == 1 else max([results[n] for n in needs])
            if there > back:
                sm.account(warp, there, LONG if segment.waits_long else SHORT, segment.waits_pc)
                back = there
        warp.at += 1
        heappush(self.waiting, (back, warp.order, warp))

    def _take_pipes(self, segment: Segment, start: int, now: int) -> int:
        """Keep the pipes that a segment needs, and return when the busiest one is free for it."""
        free = self.pipe_free
        for pipe, busy in segment.pipes:
            begin = free[pipe]
            if begin > start:
                start = begin
            free[pipe] = (begin if begin > now else now) + busy
        return start


_SERVE = {
    Action.SHARED_LOAD: StreamingMultiprocessor._shared_load,
    Action.SHARED_STORE: StreamingMultiprocessor._shared_store,
    Action.SHUFFLE: StreamingMultiprocessor._shuffle_lanes,
    Action.GLOBAL_LOAD: StreamingMultiprocessor._global_load,
    Action.GLOBAL_STORE: StreamingMultiprocessor._global_store,
    Action.SHARED_ATOMIC: StreamingMultiprocessor._shared_atomic,
    Action.GLOBAL_ATOMIC: StreamingMultiprocessor._global_atomic,
}
