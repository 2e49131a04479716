"""One SM at work, event by event: SimPy where something waits, arithmetic where nothing does.

A process is a warp scheduler (`scheduler`), an event the opening of a barrier or the start of a
block. What serves requests in turn is in `units`. All SMs are alike: the one that is simulated
has its share of the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import simpy

from gpusim.device import Device
from gpusim.prediction.clock.runs import Extrapolated, Runs, extrapolated
from gpusim.prediction.clock.scheduler import POLICIES, Scheduler
from gpusim.prediction.clock.spans import Span, SpanObserver
from gpusim.prediction.clock.stalls import SELECTED, STALLS
from gpusim.prediction.clock.steps import Step, WarpSteps
from gpusim.prediction.clock.units import Units
from gpusim.prediction.clock.warp import Block, Warp, scheduler_of
from gpusim.prediction.memory import MemoryShare, Requester
from gpusim.prediction.ticks import TICKS, ticks


@dataclass
class Outcome:
    """What simulating an SM gave: its end in cycles, stalls and ticks by pc, summed over warps.

    `block_ends` are the cycles at which blocks left the SM, in order. Iterations of loops that
    are `extrapolated` are among the stalls, but not in the cycles and the instructions.
    """

    cycles: float
    block_ends: list[float]
    stalls: list[float]
    by_pc: dict[int, float]
    instructions: int
    extrapolated: Extrapolated


class StreamingMultiprocessor:
    """Simulates blocks on one SM of a device.

    `blocks[i]` are the warps of the i-th block that comes to this SM; `resident` is how many
    blocks it holds at a time. `is_steady` leaves out what only the first blocks have.
    """

    def __init__(
        self,
        device: Device,
        share: MemoryShare,
        blocks: Sequence[Sequence[WarpSteps]],
        resident: int,
        observers: Sequence[SpanObserver] = (),
        *,
        is_steady: bool = False,
    ) -> None:
        self.env = simpy.Environment()
        self.device = device
        self.share = share
        self.blocks = blocks
        self.resident = resident
        self.is_steady = is_steady
        self.observers = tuple(observers)
        self.is_observed = bool(self.observers)
        self.block_ends: list[int] = []
        self.end = 0
        self._runs: dict[int, Runs] = {}
        self._next_block = 0
        self._on_sm = 0
        self._launch_free = 0
        self._order = 0
        self._completion_free = 0
        self._left = len(blocks)
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
        self.units.memory.scale_bandwidth(self.share.gain(self._left, self.resident))

    # -- running -----------------------------------------------------------------------

    def simulate(self) -> Outcome:
        """Simulate all blocks to the end."""
        for observer in self.observers:
            observer.begin(len(self.blocks))
        self._start_blocks()
        self.env.run()
        cycles = max(self.end, self.units.memory.end) / TICKS
        for observer in self.observers:
            observer.end(cycles)
        stalls = [0.0] * len(STALLS)
        by_pc: dict[int, float] = {}
        for runs in self._runs.values():
            runs.add_to(stalls, by_pc)
        return Outcome(
            cycles=cycles,
            block_ends=[end / TICKS for end in self.block_ends],
            stalls=stalls,
            by_pc=by_pc,
            instructions=sum(r.count * r.work.instructions for r in self._runs.values()),
            extrapolated=extrapolated(self._runs.values()),
        )

    def _start_blocks(self) -> None:
        """Launch blocks while there is room, one in a launch interval."""
        while self._on_sm < self.resident and self._next_block < len(self.blocks):
            self._on_sm += 1
            number = self._next_block
            self._next_block += 1
            at = max(int(self.env.now), self._launch_free)
            self._launch_free = at + self._launch
            self._launch_block(number, at + self._block_start)

    def _launch_block(self, number: int, begin: int) -> None:
        warps = self.blocks[number]
        block = Block(number, len(warps))
        is_first = number < self.resident and not self.is_steady
        for warp_number, work in enumerate(warps):
            if id(work) not in self._runs:
                self._runs[id(work)] = Runs(work)
            runs = self._runs[id(work)]
            runs.count += 1
            scheduler = scheduler_of(number, warp_number, len(self.schedulers))
            requester = Requester(number, warp_number, is_first)
            at = begin + warp_number * self._warp_start
            warp = Warp(runs, block, requester, self._order + warp_number, scheduler, at)
            self.schedulers[scheduler].take(warp, at)
        self._order += len(warps)
        self._wake_at(begin, self.schedulers)
        for observer in self.observers:
            observer.block_started(number, begin / TICKS)

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
            leave.callbacks.append(partial(self._end_block, block))
            self._left -= 1
            self._share_bandwidth()
        elif block.waiting and len(block.waiting) == block.live:
            self._release(block, now)

    def _end_block(self, block: Block, _: simpy.Event) -> None:
        self._on_sm -= 1
        self.block_ends.append(int(self.env.now))
        self.end = max(self.end, int(self.env.now))
        for observer in self.observers:
            observer.block_ended(block.number, int(self.env.now) / TICKS)
        self._start_blocks()

    # -- accounting --------------------------------------------------------------------

    def stall(self, warp: Warp, end: int, reason: int) -> None:
        """Let a warp's life up to `end` have been for a reason, before the step it comes to."""
        start = warp.seen
        warp.spent[reason][warp.step.place] += end - start
        warp.seen = end
        if self.is_observed:
            self.span(warp, start, end, reason, warp.step.pc)

    def selected(self, warp: Warp, step: Step, now: int) -> None:
        """Let a warp issue a step behind which it waits for others, or leaves."""
        warp.seen = now + step.slot
        if self.is_observed:
            self.span(warp, now, warp.seen, SELECTED, step.pc)

    def span(self, warp: Warp, start: int, end: int, reason: int, pc: int) -> None:
        """Let observers see a span."""
        if end <= start:
            return
        block, number, name = warp.block.number, warp.number, STALLS[reason]
        made = Span(block, number, start / TICKS, end / TICKS, name, pc)
        for observer in self.observers:
            observer.span(made)

    # -- barriers ----------------------------------------------------------------------

    def arrive(self, warp: Warp, now: int) -> bool:
        """Let a warp come to its block's barrier; return whether it may go on at once."""
        if not self._barriers_wait:
            return True
        block = warp.block
        # Other warps may read what this one stored: it has not come before its stores have.
        scheduler = self.schedulers[warp.scheduler]
        again = scheduler.met is block
        scheduler.met = block
        block.met = max(block.met, self.units.arrive(now, again=again), warp.stored)
        block.waiting.append(warp)
        if len(block.waiting) == block.live:
            self._release(block, now)
        return False

    def _release(self, block: Block, now: int) -> None:
        at = max(block.met, now) + self._barrier
        self.units.release(now, len(block.waiting))
        for warp in block.waiting:
            warp.requester.is_apart = False
            self.schedulers[warp.scheduler].resume(warp, at)
        numbers = dict.fromkeys(warp.scheduler for warp in block.waiting)
        self._wake_at(at, [self.schedulers[number] for number in numbers])
        block.waiting.clear()
        for observer in self.observers:
            observer.barrier_opened(block.number, at / TICKS)
