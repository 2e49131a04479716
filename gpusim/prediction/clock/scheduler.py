"""A warp scheduler: issue of one warp instruction after the other."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from typing import Protocol

from gpusim.gpu.device import Device
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.clock.costs import NO_PIPE, XU
from gpusim.prediction.clock.event_queue import NEVER, EventQueue
from gpusim.prediction.clock.observation import Unobserved
from gpusim.prediction.clock.spans import (
    BARRIER,
    LG,
    LONG,
    MATH,
    MIO,
    NOT_SELECTED,
    SELECTED,
    SHORT,
    WAIT,
)
from gpusim.prediction.clock.steps import Action, Step
from gpusim.prediction.clock.units import Units
from gpusim.prediction.clock.warp import Block, Warp

# Bound once: a class attribute lookup takes longer than a comparison.
_BARRIER, _EXIT, _SHARED_STORE = Action.BARRIER, Action.EXIT, Action.SHARED_STORE
_GLOBAL_LOAD, _GLOBAL_STORE = Action.GLOBAL_LOAD, Action.GLOBAL_STORE
_GLOBAL_ATOMIC, _FENCE = Action.GLOBAL_ATOMIC, Action.FENCE


class Multiprocessor(Protocol):
    """The SM as seen by a scheduler."""

    event_queue: EventQueue
    watch: Unobserved
    is_observed: bool
    units: Units
    ahead: int  # minimum ticks before any other scheduler's action can affect this one

    def stall(self, warp: Warp, end: int, reason: int) -> None:
        """Account for a warp's time up to `end` with a reason, before its next step."""

    def selected(self, warp: Warp, step: Step, now: int) -> None:
        """Issue a step that ends in a wait for others or in the warp's exit."""

    def arrive(self, warp: Warp, now: int) -> bool:
        """Let a warp arrive at its block's barrier; return whether it may continue at once."""

    def update(self, warp: Warp, step: Step, now: int, there: int) -> int:
        """Update an mbarrier; return when the warp has its result, NEVER if an event will decide.

        Without contention its result would be there at a time.
        """

    def leave(self, warp: Warp, now: int) -> None:
        """Record that a warp has run its last instruction."""


class Scheduler:
    """A warp scheduler with its pipes, its special-function unit and its memory queue.

    Local actions run ahead of the event queue while no event can intervene: the lookahead is the
    latency of a barrier. Actions visible to others happen at their time in global order.
    """

    sm: Multiprocessor
    now: int  # the time up to which all is done
    free: int  # earliest next issue
    kept: Warp | None  # the warp to issue again, before any other
    last: int  # the order of the last served warp
    met: Block | None  # the block of its last warp at a barrier
    # Sorted lists: they are short, and as fast as heaps, or faster where compiled.
    waiting: list[tuple[int, int, Warp]]  # (-time, -order, warp), the earliest last
    ready: list[tuple[int, Warp]]  # by order
    pipes: list[int]  # time at which each is free
    port_free: int
    special_free: int
    queued: list[int]
    requests: int
    begun: int  # start of service of its last request
    _policy: int
    _is_greedy: bool
    _special: int
    _special_latency: int
    _exit: int

    def __init__(self, sm: Multiprocessor, device: Device) -> None:
        self.sm = sm
        self.now = self.free = 0
        self.kept = None
        self.last = -1
        self.met = None
        self.waiting = []
        self.ready = []
        self.pipes = [0] * NO_PIPE + [-1]  # the last stands for no pipe, always free
        self.port_free = self.special_free = 0
        self.queued = [0] * device.queue.lsu_depth
        self.requests = self.begun = 0
        self._policy = NAMES.index(device.sm.policy)
        self._is_greedy = CHOOSE[self._policy] in GREEDY
        self._special = ticks(device.interval_cycles.xu)
        self._special_latency = ticks(device.latency_cycles.xu)
        self._exit = ticks(device.interval_cycles.exit)

    def take(self, warp: Warp, at: int) -> None:
        """Let a warp reach its next step at a time."""
        insort(self.waiting, (-at, -warp.order, warp))

    def run(self, at: int) -> int:
        """Issue while no event can intervene, shared actions after it; return when to continue."""
        sm, event_queue, waiting, ready = self.sm, self.sm.event_queue, self.waiting, self.ready
        pipes, kept, free, ahead = self.pipes, self.kept, self.free, self.sm.ahead
        now = max(self.now, at)
        while True:
            place = -1
            if free <= now and kept is None:
                while waiting and -waiting[-1][0] <= now:
                    warp = waiting[-1][2]
                    del waiting[-1]
                    insort(ready, (warp.order, warp))
                if len(ready) > 1:
                    place = CHOOSE[self._policy](ready, self.last, pipes, now)
                elif ready and pipes[ready[0][1].pipe] <= now:
                    place = 0
            if place >= 0 or (kept is not None and free <= now):
                warp = kept if kept is not None else ready[place][1]
                step = warp.step
                if step.is_shared and now > at and now >= event_queue.next():
                    until = now
                    break
                if kept is None:
                    del ready[place]
                    self.last = warp.order
                if now > warp.seen:
                    sm.stall(warp, now, MATH if pipes[step.pipe] == now else NOT_SELECTED)
                if step.is_shared:
                    free, back = self._act(warp, step, now)
                else:
                    if step.busy:
                        pipes[step.pipe] = now + step.busy
                    elif step.pipe == XU:
                        self._enter_special_unit(step, warp, now)
                    free = now + step.slot
                    back = self._go_on(warp, step, now)
                kept = None
                if back > free:
                    if back < NEVER:
                        insort(waiting, (-back, -warp.order, warp))
                elif self._is_greedy and pipes[warp.pipe] <= free:
                    kept = warp
                else:
                    insort(ready, (warp.order, warp))
            if free > now:
                if ready or kept is not None:
                    until = free
                else:
                    until = max(free, -waiting[-1][0]) if waiting else NEVER
            elif ready:
                until = max(now, self._when_free())
            else:
                until = -waiting[-1][0] if waiting else NEVER
            if until >= at + ahead and until >= event_queue.next():
                break
            now = until
        self.now, self.free, self.kept = now, free, kept
        return until

    def _when_free(self) -> int:
        """Return the earliest time at which a needed pipe is free or another warp is ready."""
        until = -self.waiting[-1][0] if self.waiting else NEVER
        for _, warp in self.ready:
            until = min(until, self.pipes[warp.pipe])
        return until

    # -- issue -------------------------------------------------------------------------

    def _enter_special_unit(self, step: Step, warp: Warp, now: int) -> None:
        """Queue an instruction at the special-function unit."""
        begin = self.special_free if self.special_free > now else now
        self.special_free = begin + self._special
        self.pipes[XU] = begin
        if step.tag >= 0:
            warp.results[step.tag] = begin + self._special_latency

    def _act(self, warp: Warp, step: Step, now: int) -> tuple[int, int]:
        """Issue an instruction for a unit shared by the schedulers.

        Return the times at which the scheduler is free and the warp reaches its next step, NEVER if
        an event will decide.
        """
        sm, action = self.sm, step.action
        if action is _BARRIER:
            sm.selected(warp, step, now)
            if sm.arrive(warp, now + TICKS):
                self.resume(warp, now + step.gap, WAIT)
            return now + step.slot, NEVER
        if action is _EXIT:
            sm.selected(warp, step, now)
            sm.leave(warp, now + TICKS)
            return now + self._exit, NEVER
        place = self.requests % len(self.queued)
        begin = self.queued[place]
        if begin > now:
            sm.stall(warp, begin, LG if _is_global(action) else MIO)
            return now, begin
        at = self.port_free if self.port_free > now else now
        self.port_free = at + step.port
        there, begin = sm.units.serve(action, step.access, warp.requester, at, self.begun)
        self.queued[place] = begin
        if step.is_in_order:
            self.begun = begin
        self.requests += 1
        if action is _SHARED_STORE:
            warp.stored = there
        if step.access.word:
            there = sm.update(warp, step, now, there)
            if there == NEVER:
                sm.selected(warp, step, now)
                return now + step.slot, NEVER
        if step.tag >= 0:
            warp.results[step.tag] = there
        return now + step.slot, self._go_on(warp, step, now)

    def _go_on(self, warp: Warp, step: Step, now: int) -> int:
        """Advance a warp to its next step; return the earliest issue of that."""
        back = now + step.gap
        if self.sm.is_observed:
            self.sm.watch.span(warp, now, now + step.slot, SELECTED, step.pc)
            self.sm.watch.span(warp, now + step.slot, back, WAIT, step.pc)
        warp.seen = back
        warp.advance()
        return self._await(warp, step, back) if step.needs else back

    def _await(self, warp: Warp, step: Step, back: int) -> int:
        """Return when the operands of a warp's next step are ready."""
        if step.mark >= 0:
            warp.marks[step.mark] += back
        there = 0
        for need in step.needs:
            if warp.results[need] > there:
                there = warp.results[need]
        if step.waits_long:
            warp.requester.wait()
        if there <= back:
            return back
        self.sm.stall(warp, there, LONG if step.waits_long else SHORT)
        return there

    def resume(self, warp: Warp, at: int, reason: int = BARRIER) -> None:
        """Let a warp continue after a barrier that opens at a time."""
        step = warp.step
        if at > warp.seen:
            self.sm.stall(warp, at, reason)
        warp.advance()
        self.take(warp, self._await(warp, step, at) if step.needs else at)


def _is_global(action: Action) -> bool:
    if action is _GLOBAL_LOAD or action is _GLOBAL_STORE:
        return True
    return action is _GLOBAL_ATOMIC or action is _FENCE


# Chooses among ready warps, in the order of their age, one with a free pipe; returns its index or
# -1. The second argument is the order of the last served warp, the third the time at which each
# pipe is free, the fourth the time.
Policy = Callable[[Sequence[tuple[int, Warp]], int, Sequence[int], int], int]


def greedy_then_oldest(
    ready: Sequence[tuple[int, Warp]], last: int, pipes: Sequence[int], now: int
) -> int:
    """Choose the last served warp while possible, else the oldest."""
    found = -1
    for place, (order, warp) in enumerate(ready):
        if pipes[warp.pipe] <= now:
            if order == last or (order > last and found < 0):
                return place
            if order > last:
                return found
            if found < 0:
                found = place
    return found


def loose_round_robin(
    ready: Sequence[tuple[int, Warp]], last: int, pipes: Sequence[int], now: int
) -> int:
    """Choose the next younger warp than the last served one, cyclically."""
    found = -1
    for place, (order, warp) in enumerate(ready):
        if pipes[warp.pipe] <= now:
            if order > last:
                return place
            if found < 0:
                found = place
    return found


def greedy_then_youngest(
    ready: Sequence[tuple[int, Warp]], last: int, pipes: Sequence[int], now: int
) -> int:
    """Choose the last served warp while possible, else the youngest."""
    found = -1
    for place, (order, warp) in enumerate(ready):
        if pipes[warp.pipe] <= now:
            if order == last:
                return place
            found = place
    return found


POLICIES: dict[str, Policy] = {
    "greedy-then-oldest": greedy_then_oldest,
    "greedy-then-youngest": greedy_then_youngest,
    "loose-round-robin": loose_round_robin,
}
NAMES, CHOOSE = tuple(POLICIES), tuple(POLICIES.values())  # by number
GREEDY = (greedy_then_oldest, greedy_then_youngest)
