"""A warp scheduler: a process that issues its warps' instructions, one after the other."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol

import simpy

from gpusim.device import Device
from gpusim.prediction.clock.costs import NO_PIPE, XU
from gpusim.prediction.clock.stalls import (
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
from gpusim.prediction.ticks import TICKS, ticks

NEVER = 1 << 62

# Bound once: to look a member up in its class takes longer than to compare it.
_BARRIER, _EXIT, _SHARED_STORE = Action.BARRIER, Action.EXIT, Action.SHARED_STORE
_GLOBAL = (Action.GLOBAL_LOAD, Action.GLOBAL_STORE, Action.GLOBAL_ATOMIC)


# Chooses among warps whose time has come, in the order of their age, one whose pipe is free, and
# returns its place or -1. The second argument is the order of the warp that was served last, the
# third when each pipe is free, the fourth the time.
Policy = Callable[[Sequence[tuple[int, Warp]], int, Sequence[int], int], int]


def greedy_then_oldest(
    ready: Sequence[tuple[int, Warp]], last: int, pipes: Sequence[int], now: int
) -> int:
    """Choose the warp that was served last while it can be, else the oldest."""
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
    """Choose the next younger warp than the one that was served last, in a circle."""
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
    """Choose the warp that was served last while it can be, else the youngest."""
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
GREEDY = (greedy_then_oldest, greedy_then_youngest)


class Multiprocessor(Protocol):
    """What a scheduler knows of the SM that it belongs to."""

    env: simpy.Environment
    device: Device
    units: Units
    is_observed: bool
    ahead: int  # ticks in which nothing that another scheduler does can reach it

    def stall(self, warp: Warp, end: int, reason: int) -> None:
        """Let a warp's life up to `end` have been for a reason, before the step it comes to."""

    def selected(self, warp: Warp, step: Step, now: int) -> None:
        """Let a warp issue a step behind which it waits for others, or leaves."""

    def span(self, warp: Warp, start: int, end: int, reason: int, pc: int) -> None:
        """Let observers see a span."""

    def arrive(self, warp: Warp, now: int) -> bool:
        """Let a warp come to its block's barrier; return whether it may go on at once."""

    def leave(self, warp: Warp, now: int) -> None:
        """Take note that a warp has run its last instruction."""


class Scheduler:
    """A warp scheduler with its pipes, its unit for special functions and its queue to memory.

    What only its own warps see it does as soon as it is known that nothing can come between: a
    barrier takes its time to open. What others see is done when its time has come for all.
    """

    def __init__(self, sm: Multiprocessor, choose: Policy) -> None:
        self.sm = sm
        self._env = sm.env
        self.choose = choose
        self.is_greedy = choose in GREEDY
        self.port_free = 0
        self.special_free = 0
        self._depth = sm.device.queue.lsu_depth
        self.queued = [0] * self._depth
        self.requests = 0
        self.begun = 0  # when its last request was served
        self.pipes = [0] * NO_PIPE + [-1]  # none is never waited for
        self.waiting: list[tuple[int, int, Warp]] = []
        self.ready: list[tuple[int, Warp]] = []
        self.last = -1
        self.met: Block | None = None  # whose barrier its last warp came to
        self._alarm: simpy.Event | None = None
        self._alarm_at = 0
        self._special = ticks(sm.device.interval_cycles.xu)
        self._special_latency = ticks(sm.device.latency_cycles.xu)
        self._serves = sm.units.serves
        self._is_observed = sm.is_observed
        sm.env.process(self._run())

    def take(self, warp: Warp, at: int) -> None:
        """Let a warp come to its next step at a time."""
        heappush(self.waiting, (at, warp.order, warp))

    def wake(self, at: int) -> None:
        """Let the process look again, if it would sleep beyond a time that has come."""
        alarm = self._alarm
        if alarm is None or alarm.callbacks is None or self._alarm_at <= at:
            return
        self._alarm = None
        earlier = simpy.Event(self._env)
        earlier.callbacks, alarm.callbacks = alarm.callbacks, []
        earlier.succeed()

    def _sleep(self, until: int, delay: int) -> simpy.Event:
        env, alarm = self._env, self._alarm
        self._alarm_at = until
        if until == NEVER:
            self._alarm = simpy.Event(env)
            return self._alarm
        if alarm is None or alarm.callbacks is not None:
            self._alarm = alarm = env.timeout(delay)
        else:  # it has gone off: set again, since most of SimPy's work would be for new ones
            alarm.callbacks = []
            env.schedule(alarm, delay=delay)
        return alarm

    def _run(self) -> Any:
        env, ahead, choose, peek = self._env, self.sm.ahead, self.choose, self._env.peek
        waiting, ready, pipes, is_greedy = self.waiting, self.ready, self.pipes, self.is_greedy
        stall = self.sm.stall
        now = seen_by_all = int(env.now)
        free = 0  # from when on it can issue
        kept: Warp | None = None  # the warp that goes on at once, before any other
        while True:
            place = -1
            if free <= now and kept is None:
                while waiting and waiting[0][0] <= now:
                    _, order, warp = heappop(waiting)
                    insort(ready, (order, warp))
                if len(ready) > 1:
                    place = choose(ready, self.last, pipes, now)
                elif ready and pipes[ready[0][1].pipe] <= now:
                    place = 0
            if place >= 0 or (kept is not None and free <= now):
                warp = kept if kept is not None else ready[place][1]
                step = warp.step
                if step.is_shared and now > seen_by_all and now >= peek():
                    yield self._sleep(now, now - seen_by_all)
                    seen_by_all = int(env.now)
                    if seen_by_all < now or (waiting and waiting[0][0] <= now and kept is None):
                        continue
                if kept is None:
                    del ready[place]
                    self.last = warp.order
                if now > warp.seen:
                    stall(warp, now, MATH if pipes[step.pipe] == now else NOT_SELECTED)
                if step.is_shared:
                    free, back = self._act(warp, step, now)
                else:
                    if step.pipe != NO_PIPE:
                        self._occupy(step, warp, now)
                    free = now + step.slot
                    back = self._go_on(warp, step, now)
                kept = None
                if back > free:
                    if back < NEVER:
                        heappush(waiting, (back, warp.order, warp))
                elif is_greedy and pipes[warp.pipe] <= free:
                    kept = warp
                else:
                    insort(ready, (warp.order, warp))
            if free > now:
                if ready or kept is not None:
                    until = free
                elif waiting:
                    until = waiting[0][0]
                    if until < free:
                        until = free
                else:
                    until = NEVER
            elif ready:
                until = max(now, self._when_free())
            else:
                until = waiting[0][0] if waiting else NEVER
            if until < seen_by_all + ahead or until < peek():
                now = until
                continue
            yield self._sleep(until, until - seen_by_all)
            seen_by_all = int(env.now)
            if now < seen_by_all:
                now = seen_by_all

    def _when_free(self) -> int:
        """Return when a pipe is free that a warp needs, or another warp's time has come."""
        pipes = self.pipes
        until = min([pipes[warp.pipe] for _, warp in self.ready])
        return min(until, self.waiting[0][0]) if self.waiting else until

    # -- issue -------------------------------------------------------------------------

    def _occupy(self, step: Step, warp: Warp, now: int) -> None:
        """Let an instruction keep its pipe, which it may have to wait for at the special one."""
        if step.busy:
            self.pipes[step.pipe] = now + step.busy
        else:
            begin = self.special_free if self.special_free > now else now
            self.special_free = begin + self._special
            self.pipes[XU] = begin
            if step.tag >= 0:
                warp.results[step.tag] = begin + self._special_latency

    def _act(self, warp: Warp, step: Step, now: int) -> tuple[int, int]:
        """Issue an instruction that comes to a unit that the schedulers share.

        Return when the scheduler is free again, and when the warp comes to its next step, or
        NEVER where others will say.
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
            return now + TICKS, NEVER
        place = self.requests % self._depth
        begin = self.queued[place]
        if begin > now:
            sm.stall(warp, begin, LG if action in _GLOBAL else MIO)
            return now, begin
        at = self.port_free if self.port_free > now else now
        self.port_free = at + step.port
        there, begin = self._serves[action](step.access, warp.requester, at, self.begun)
        self.queued[place] = begin
        if step.is_in_order:
            self.begun = begin
        self.requests += 1
        if action is _SHARED_STORE:
            warp.stored = there
        if step.tag >= 0:
            warp.results[step.tag] = there
        return now + step.slot, self._go_on(warp, step, now)

    def _go_on(self, warp: Warp, step: Step, now: int) -> int:
        """Let a warp come to its next step; return when that can be issued at the earliest."""
        back = now + step.gap
        if self._is_observed:
            self.sm.span(warp, now, now + step.slot, SELECTED, step.pc)
            self.sm.span(warp, now + step.slot, back, WAIT, step.pc)
        warp.seen = back
        warp.step = step.next
        warp.pipe = step.next.pipe
        return self._await(warp, step, back) if step.needs else back

    def _await(self, warp: Warp, step: Step, back: int) -> int:
        """Return when the results are there that a warp needs for its next step."""
        if step.mark >= 0:
            warp.marks[step.mark] += back
        needs, results = step.needs, warp.results
        there = results[needs[0]] if len(needs) == 1 else max([results[n] for n in needs])
        if step.waits_long:
            warp.requester.wait()
        if there <= back:
            return back
        self.sm.stall(warp, there, LONG if step.waits_long else SHORT)
        return there

    def resume(self, warp: Warp, at: int, reason: int = BARRIER) -> None:
        """Let a warp go on behind a barrier that opens at a time."""
        step = warp.step
        if at > warp.seen:
            self.sm.stall(warp, at, reason)
        warp.step = step.next
        warp.pipe = step.next.pipe
        self.take(warp, self._await(warp, step, at) if step.needs else at)
