"""One SM at work, event by event: SimPy where something waits, arithmetic where nothing does.

A process is a warp scheduler (`scheduler`), an event the opening of a barrier or the start of a
block. What serves requests in turn is in `units`. All SMs are alike: the one that is played has
its share of the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import simpy

from gpusim.device import Device
from gpusim.prediction.clock.costs import TICKS, ticks
from gpusim.prediction.clock.runs import LeftOut, Runs, left_out
from gpusim.prediction.clock.scheduler import POLICIES, Scheduler, Warp
from gpusim.prediction.clock.stalls import SELECTED, STALLS
from gpusim.prediction.clock.steps import Step, WarpPlan
from gpusim.prediction.clock.units import Fetcher, Share, Units


@dataclass(frozen=True)
class Span:
    """A piece of a warp's life, for one reason, before or at the instruction `pc`; in cycles."""

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


@dataclass
class Outcome:
    """What playing an SM gave: its end in cycles, stalls and cycles by pc, summed over warps.

    `block_ends` are the cycles at which blocks left the SM, in order. Rounds of laps that were
    `left_out` are among the stalls, but not in the cycles and the instructions.
    """

    cycles: float
    block_ends: list[float]
    stalls: list[float]
    by_pc: dict[int, float]
    instructions: int
    left_out: LeftOut


class Block:
    """A block on the SM: how many of its warps still run, and who waits at its barrier."""

    __slots__ = ("live", "met", "number", "waiting")

    def __init__(self, number: int, warps: int) -> None:
        self.number = number
        self.live = warps
        self.met = 0  # when the last warp that came has been counted
        self.waiting: list[Warp] = []


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
        self.block_ends: list[int] = []
        self.end = 0
        self._runs: dict[int, Runs] = {}
        self._next_block = 0
        self._on_sm = 0
        self._launch_free = 0
        self._order = 0
        self._completion_free = 0
        self._left = len(plans)
        self.units = Units(device, share)
        self._set_rates()
        choose = POLICIES[device.sm.policy]
        self.schedulers = [Scheduler(self, choose) for _ in range(device.sm.schedulers)]
        self._share_bandwidth()

    def _set_rates(self) -> None:
        latency, interval = self.device.latency_cycles, self.device.interval_cycles
        free = self.device.ablations
        self._barriers_wait = "barriers" not in free
        self._barrier = ticks(latency.barrier)
        at_once = "block-launch" in free
        self._block_start = 0 if at_once else ticks(latency.block_start)
        self._block_end = 0 if at_once else ticks(latency.block_end)
        self._launch = 0 if at_once else ticks(interval.block_launch)
        self._completion = 0 if at_once else ticks(interval.block_completion)
        self._warp_start = 0 if at_once else ticks(latency.warp_start)
        # What one scheduler does reaches another one no sooner: a barrier opens, a block starts.
        self.ahead = min(self._barrier if self._barriers_wait else 0, self._block_start)
        if not (self.is_steady or at_once):
            self.units.constants_there = self._block_start + ticks(latency.cold_start)

    def _share_bandwidth(self) -> None:
        self.units.share_bandwidth(self.share.gain(self._left, self.resident))

    # -- running -----------------------------------------------------------------------

    def play(self) -> Outcome:
        """Play all blocks to the end."""
        self._start_blocks()
        self.env.run()
        stalls = [0.0] * len(STALLS)
        by_pc: dict[int, float] = {}
        for runs in self._runs.values():
            runs.add_to(stalls, by_pc)
        return Outcome(
            cycles=max(self.end, self.units.end) / TICKS,
            block_ends=[end / TICKS for end in self.block_ends],
            stalls=stalls,
            by_pc=by_pc,
            instructions=sum(r.count * r.plan.instructions for r in self._runs.values()),
            left_out=left_out(self._runs.values()),
        )

    def _start_blocks(self) -> None:
        """Launch blocks while there is room, one in a launch interval."""
        while self._on_sm < self.resident and self._next_block < len(self.plans):
            self._on_sm += 1
            number = self._next_block
            self._next_block += 1
            at = max(int(self.env.now), self._launch_free)
            self._launch_free = at + self._launch
            self._launch_block(number, at + self._block_start)

    def _launch_block(self, number: int, begin: int) -> None:
        plans = self.plans[number]
        block = Block(number, len(plans))
        is_first = number < self.resident and not self.is_steady
        for warp_number, plan in enumerate(plans):
            if id(plan) not in self._runs:
                self._runs[id(plan)] = Runs(plan)
            runs = self._runs[id(plan)]
            runs.count += 1
            scheduler = self.schedulers[(number + warp_number) % len(self.schedulers)]
            fetcher = Fetcher(number, warp_number, is_first)
            order = self._order + warp_number
            at = begin + warp_number * self._warp_start
            warp = Warp(plan, runs.spent, runs.marks, block, fetcher, order, scheduler, at)
            scheduler.take(warp, at)
        self._order += len(plans)
        self._wake_at(begin, self.schedulers)

    def _wake_at(self, at: int, schedulers: Iterable[Scheduler]) -> None:
        """Let schedulers look at what they have at a time."""

        def wake(_: Any) -> None:
            for scheduler in schedulers:
                scheduler.wake(at)

        timeout = self.env.timeout(at - self.env.now)
        timeout.callbacks.append(wake)

    def leave(self, warp: Warp, now: int) -> None:
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

    def stall(self, warp: Warp, end: int, reason: int) -> None:
        """Let a warp's life up to `end` have been for a reason, before the step it comes to."""
        start = warp.seen
        warp.spent[reason][warp.step.place] += end - start
        warp.seen = end
        if self.listener is not None:
            self.tell(warp, start, end, reason, warp.step.pc)

    def selected(self, warp: Warp, step: Step, now: int) -> None:
        """Let a warp issue a step behind which it waits for others, or leaves."""
        warp.seen = now + step.slot
        if self.listener is not None:
            self.tell(warp, now, warp.seen, SELECTED, step.pc)

    def tell(self, warp: Warp, start: int, end: int, reason: int, pc: int) -> None:
        """Tell the listener of a span."""
        if self.listener is not None and end > start:
            self.listener.span(
                Span(warp.block.number, warp.number, start / TICKS, end / TICKS, STALLS[reason], pc)
            )

    # -- barriers ----------------------------------------------------------------------

    def arrive(self, warp: Warp, now: int) -> bool:
        """Let a warp come to its block's barrier; return whether it may go on at once."""
        if not self._barriers_wait:
            return True
        block = warp.block
        # Other warps may read what this one stored: it has not come before its stores have.
        again = warp.scheduler.met is block
        warp.scheduler.met = block
        block.met = max(block.met, self.units.arrive(now, again=again), warp.stored)
        block.waiting.append(warp)
        if len(block.waiting) == block.live:
            self._release(block, now)
        return False

    def _release(self, block: Block, now: int) -> None:
        at = max(block.met, now) + self._barrier
        self.units.release(now, len(block.waiting))
        for warp in block.waiting:
            warp.fetcher.is_apart = False
            warp.scheduler.resume(warp, at)
        self._wake_at(at, dict.fromkeys(warp.scheduler for warp in block.waiting))
        block.waiting.clear()
