"""One SM at work, event by event: SimPy where something waits, arithmetic where nothing does.

A process is a warp scheduler, an event the release of a barrier or the start of a block. What
serves requests in turn is in `units`. All SMs are alike: the one that is played has its share of
the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

import simpy

from gpusim.device import Device
from gpusim.timing.costs import PIPES, TICKS, ticks
from gpusim.timing.segments import Action, Segment
from gpusim.timing.units import Fetcher, Share, Units

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
NEVER = 1 << 62
RUNNING = -1  # in place of a pc: the segment knows which instructions take the time

# Bound once: to look a member up in its class takes longer than to compare it.
_RUN, _SPECIAL, _ADDRESS = Action.RUN, Action.SPECIAL, Action.ADDRESS
_BARRIER, _EXIT, _SHARED_STORE = Action.BARRIER, Action.EXIT, Action.SHARED_STORE
_GLOBAL = (Action.GLOBAL_LOAD, Action.GLOBAL_STORE, Action.GLOBAL_ATOMIC)
_STORES = (_SHARED_STORE, Action.GLOBAL_STORE)

# Chooses among the warps that are ready, each with its age; 0 is the place of the oldest. The
# second argument is the age of the warp that was served last.
Policy = Callable[[Sequence[tuple[int, Any]], int], int]


def greedy_then_oldest(ready: Sequence[tuple[int, Any]], last: int) -> int:
    """Choose the warp that was served last while it is ready, else the oldest."""
    if ready[0][0] != last:
        for place, (order, _) in enumerate(ready):
            if order == last:
                return place
    return 0


def loose_round_robin(ready: Sequence[tuple[int, Any]], last: int) -> int:
    """Choose the next younger warp than the one that was served last, in a circle."""
    younger = [(order, place) for place, (order, _) in enumerate(ready) if order > last]
    return min(younger)[1] if younger else 0


def greedy_then_youngest(ready: Sequence[tuple[int, Any]], last: int) -> int:
    """Choose the warp that was served last while it is ready, else the youngest."""
    places = {order: place for place, (order, _) in enumerate(ready)}
    return places.get(last, places[max(places)])


POLICIES: dict[str, Policy] = {
    "greedy-then-oldest": greedy_then_oldest,
    "greedy-then-youngest": greedy_then_youngest,
    "loose-round-robin": loose_round_robin,
}


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
        "at", "block", "fetcher", "number", "order", "plan", "results", "scheduler", "seen",
        "spent", "stored",
    )  # fmt: skip

    scheduler: _Scheduler

    def __init__(
        self,
        plan: WarpPlan,
        spent: list[int],
        block: _Block,
        fetcher: Fetcher,
        order: int,
        now: int,
    ) -> None:
        self.plan = plan.segments
        self.spent = spent  # ticks that all warps of this plan took for each segment
        self.block = block
        self.number = fetcher.number
        self.order = order
        self.fetcher = fetcher
        self.at = 0
        self.results = [0] * plan.tags
        self.seen = now  # until when its life is accounted for
        self.stored = 0  # when its last store to shared memory is through


class _Block:
    """A block on the SM: how many of its warps still run, and who waits at its barrier."""

    __slots__ = ("live", "met", "number", "waiting")

    def __init__(self, number: int, warps: int) -> None:
        self.number = number
        self.live = warps
        self.met = 0  # when the last warp that came has been counted
        self.waiting: list[_Warp] = []


class StreamingMultiprocessor:
    """Plays blocks on one SM of a device.

    `plans[i]` are the warps of the i-th block that comes to this SM; `resident` is how many
    blocks it holds at a time. `is_steady` leaves out what only the first blocks have.
    """

    def __init__(
        self,
        device: Device,
        share: Share,
        plans: Sequence[Sequence[WarpPlan]],
        resident: int,
        listener: SpanListener | None = None,
        *,
        is_steady: bool = False,
    ) -> None:
        self.env = simpy.Environment()
        self.device = device
        self.share = share
        self.plans = plans
        self.resident = resident
        self.is_steady = is_steady
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
        self._completion_free = 0
        self._left = len(plans)
        self.units = Units(device, share)
        self._set_rates()
        choose = POLICIES[device.sm.policy]
        self.schedulers = [_Scheduler(self, choose) for _ in range(device.sm.schedulers)]
        self._share_bandwidth()

    def _set_rates(self) -> None:
        latency, interval = self.device.latency_cycles, self.device.interval_cycles
        free = self.device.ablations
        self.special = ticks(interval.xu)
        self.special_latency = ticks(latency.xu)
        self.load_port = ticks(interval.lsu_scheduler)
        self.store_port = ticks(interval.store_scheduler)
        self._barriers_wait = "barriers" not in free
        self._barrier = ticks(latency.barrier)
        at_once = "block-launch" in free
        self._block_start = 0 if at_once else ticks(latency.block_start)
        self._block_end = 0 if at_once else ticks(latency.block_end)
        self._launch = 0 if at_once else ticks(interval.block_launch)
        self._completion = 0 if at_once else ticks(interval.block_completion)
        self._warp_start = 0 if at_once else ticks(latency.warp_start)
        reads = any(segment.action is Action.ADDRESS for segment in self.plans[0][0].segments)
        is_cold = reads and not (self.is_steady or at_once)
        self._first_start = ticks(latency.cold_start) if is_cold else 0

    def _share_bandwidth(self) -> None:
        self.units.share_bandwidth(self.share.gain(self._left, self.resident))

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
            cycles=max(self.end, self.units.end) / TICKS,
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
            first = self._first_start if number < self.resident else 0
            begin = self.env.timeout(at + self._block_start + first - self.env.now, number)
            begin.callbacks.append(self._begin_block)

    def _begin_block(self, event: simpy.Event) -> None:
        number: int = event.value  # type: ignore[assignment]
        plans = self.plans[number]
        block = _Block(number, len(plans))
        begin = int(self.env.now)
        for warp_number, plan in enumerate(plans):
            _, spent = self.runs.setdefault(id(plan), (plan, [0] * len(plan.segments)))
            order = self._order + warp_number
            warp = _Warp(plan, spent, block, Fetcher(number, warp_number), order, begin)
            warp.scheduler = self.schedulers[(number + warp_number) % len(self.schedulers)]
            warp.scheduler.add(warp, begin)
            begin += self._warp_start
        self._order += len(plans)

    def warp_left(self, warp: _Warp, now: int) -> None:
        """Take note that a warp has run its last instruction."""
        block = warp.block
        block.live -= 1
        self.end = max(self.end, now)
        if block.live == 0:
            at = max(now + self._block_end, self._completion_free)
            self._completion_free = at + self._completion
            leave = self.env.timeout(at - self.env.now)
            leave.callbacks.append(self._end_block)
            self._left -= 1
            self._share_bandwidth()
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

    # -- barriers ----------------------------------------------------------------------

    def arrive(self, warp: _Warp, now: int) -> bool:
        """Let a warp come to its block's barrier; return whether it may go on at once."""
        if not self._barriers_wait:
            return True
        block = warp.block
        # Other warps may read what this one stored: it has not come before its stores have.
        block.met = max(block.met, self.units.arrive(now), warp.stored)
        block.waiting.append(warp)
        if len(block.waiting) == block.live:
            self._release(block, now)
        return False

    def _release(self, block: _Block, now: int) -> None:
        at = max(block.met, now) + self._barrier
        self.units.release(now)
        waiting, block.waiting = block.waiting, []
        opened = self.env.timeout(at - self.env.now, waiting)
        opened.callbacks.append(self._open)

    def _open(self, event: simpy.Event) -> None:
        now = int(self.env.now)
        for warp in event.value or ():
            warp.fetcher.is_apart = False
            self.account(warp, now, BARRIER, warp.plan[warp.at].pc)
            warp.scheduler.resume(warp, now)


class _Scheduler:
    """A warp scheduler: a process that issues segments of its warps, which a policy chooses."""

    def __init__(self, sm: StreamingMultiprocessor, choose: Policy) -> None:
        self.sm = sm
        self.choose = choose
        self.free = 0
        self.port_free = 0
        self.special_free = 0
        self.queued = [0] * sm.device.queue.lsu_depth
        self.requests = 0
        self.pipe_free = [0] * len(PIPES)
        self.waiting: list[tuple[int, int, _Warp]] = []
        self.ready: list[tuple[int, _Warp]] = []
        self.last = -1
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
        env, alarm = self.sm.env, self._alarm
        if until is None:
            self._alarm, self._alarm_at = simpy.Event(env), NEVER
            return self._alarm
        self._alarm_at = until
        if alarm is None or alarm.callbacks is not None:
            self._alarm = alarm = env.timeout(until - env.now)
        else:  # it has gone off: set again, since most of SimPy's work would be for new ones
            alarm.callbacks = []
            env.schedule(alarm, delay=until - env.now)
        return alarm

    def _run(self) -> Any:
        env, waiting, ready = self.sm.env, self.waiting, self.ready
        now = int(env.now)
        while True:
            while waiting and waiting[0][0] <= now:
                _, order, warp = heappop(waiting)
                heappush(ready, (order, warp))
            if ready and self.free <= now:
                self._issue(self._take(), now)
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

    def _take(self) -> _Warp:
        """Take the warp that the policy chooses from those that are ready."""
        ready = self.ready
        place = self.choose(ready, self.last) if len(ready) > 1 else 0
        if place == 0:
            self.last, warp = heappop(ready)
        else:
            self.last, warp = ready.pop(place)
            heapify(ready)
        return warp

    def _issue(self, warp: _Warp, now: int) -> None:
        """Issue a warp's next segment."""
        sm = self.sm
        segment = warp.plan[warp.at]
        action = segment.action
        if now > warp.seen:
            sm.account(warp, now, NOT_SELECTED, segment.pc)
        if action is _RUN:
            self._after(warp, segment, now)
            return
        if action is _EXIT:
            sm.instructions += segment.issued
            self.warps -= 1
            self.free = now + TICKS
            sm.account(warp, now + TICKS, SELECTED, segment.pc)
            sm.warp_left(warp, now + TICKS)
            return
        if action is _BARRIER:
            self.free = now + segment.slots
            sm.account(warp, now + segment.slots, SELECTED, RUNNING)
            sm.instructions += segment.issued
            warp.spent[warp.at] += segment.slots
            if sm.arrive(warp, now + TICKS):
                self.resume(warp, now + segment.chain)
            return
        if action is _SPECIAL:
            self._issue_special(warp, segment, now)
        elif action is _ADDRESS:
            self._keep(warp, segment, sm.units.address(segment.touched, now))
            self._after(warp, segment, now)
        else:
            self._issue_access(warp, segment, now)

    def _issue_special(self, warp: _Warp, segment: Segment, now: int) -> None:
        """Give the special function unit an operation; one may wait before it."""
        sm = self.sm
        begin = self.special_free if self.special_free > now else now
        self.special_free = begin + sm.special
        self._keep(warp, segment, begin + sm.special_latency)
        self._after(warp, segment, now, begin - sm.special)

    def _issue_access(self, warp: _Warp, segment: Segment, now: int) -> None:
        """Give the load/store unit an access, or let the warp wait for a place in its queue."""
        sm, action = self.sm, segment.action
        place = self.requests % len(self.queued)
        begin = self.queued[place]
        if begin > now:
            reason = LG if action in _GLOBAL else MIO
            sm.account(warp, begin, reason, segment.pc)
            heappush(self.waiting, (begin, warp.order, warp))
            return
        at = self.port_free if self.port_free > now else now
        self.port_free = at + (sm.store_port if action in _STORES else sm.load_port)
        done, self.queued[place] = sm.units.serve(action, segment.touched, warp.fetcher, at)
        self.requests += 1
        self._keep(warp, segment, done)
        if action is _SHARED_STORE:
            warp.stored = done
        self._after(warp, segment, now)

    @staticmethod
    def _keep(warp: _Warp, segment: Segment, done: int) -> None:
        if segment.tag >= 0:
            warp.results[segment.tag] = done

    def _after(self, warp: _Warp, segment: Segment, now: int, accepted: int = 0) -> None:
        """Let a warp issue the rest of a segment, and come back for the next one."""
        sm = self.sm
        sm.instructions += segment.issued
        slots, start = segment.slots, now
        if accepted > now:
            start = accepted
            sm.account(warp, accepted, MATH, segment.pc)
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
            if segment.waits_long:
                warp.fetcher.is_apart = True
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
