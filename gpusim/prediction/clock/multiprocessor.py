"""One simulated SM: blocks that start and end, barriers, and stall accounting.

Its schedulers issue (`scheduler`), units serve requests in turn (`units`), and an `event_queue`
holds the coming events. All SMs are alike: the simulated one has its share of the device.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.gpu.device import Device, for_cluster
from gpusim.prediction.arithmetic.ticks import ticks
from gpusim.prediction.clock.event_queue import NEVER, EventQueue
from gpusim.prediction.clock.observation import Unobserved
from gpusim.prediction.clock.runs import Runs, by_pc_if_exact
from gpusim.prediction.clock.scheduler import Scheduler
from gpusim.prediction.clock.spans import LONG, REASONS, SELECTED
from gpusim.prediction.clock.steps import Action, Step
from gpusim.prediction.clock.units import Units
from gpusim.prediction.clock.warp import Block, Mbarrier, Warp, scheduler_of
from gpusim.prediction.clock.warp_steps import WarpSteps
from gpusim.prediction.memory import MemoryShare, Requester

_MBARRIER_SET, _MBARRIER_ARRIVE = Action.MBARRIER_SET, Action.MBARRIER_ARRIVE
_PEER_ARRIVE = Action.PEER_ARRIVE
_MBARRIER_WAIT = Action.MBARRIER_WAIT


class StreamingMultiprocessor:
    """The blocks of one SM of a device.

    `blocks[i]` are the warps of the i-th block of this SM; it holds `resident` blocks at a time.
    `is_steady` leaves out the cold-start effects of the first wave.
    """

    event_queue: EventQueue
    watch: Unobserved
    is_observed: bool
    units: Units
    schedulers: list[Scheduler]
    share: MemoryShare
    blocks: list[list[Runs]]
    resident: int
    is_steady: bool
    ahead: int
    block_ends: list[int]  # times at which blocks left the SM, in order
    end: int
    _next_block: int
    _on_sm: int
    _left: int
    _order: int
    _launch_free: int
    _completion_free: int
    _barriers_wait: bool
    _barrier: int
    _block_start: int
    _block_end: int
    _launch: int
    _turn: int  # of a cluster's blocks, which start together
    _completion: int
    _warp_start: int

    def __init__(
        self,
        device: Device,
        share: MemoryShare,
        blocks: Sequence[Sequence[WarpSteps]],
        resident: int,
        watch: Unobserved,
        *,
        is_steady: bool = False,
    ) -> None:
        self.share = share
        self.resident = resident
        self.is_steady = is_steady
        self.watch = watch
        self.is_observed = type(watch) is not Unobserved
        self.block_ends = []
        self.end = 0
        self.runs: dict[int, Runs] = {}  # by the identity of their steps
        self.blocks = self._runs_by_block(blocks)
        self._next_block = self._on_sm = self._order = 0
        self._launch_free = self._completion_free = 0
        self._left = len(blocks)
        self.units = Units(device, share)
        self._set_rates(device)
        self.schedulers = [Scheduler(self, device) for _ in range(device.sm.schedulers)]
        self._share_bandwidth()

    def _runs_by_block(self, blocks: Sequence[Sequence[WarpSteps]]) -> list[list[Runs]]:
        """Return the runs of each block's warps; blocks that are one object share a list."""
        distinct = {id(block): block for block in blocks}.values()
        works = {id(work): work for block in distinct for work in block}
        by_pc = by_pc_if_exact(works.values())
        self.runs = {key: Runs(work, by_pc) for key, work in works.items()}
        by_block = {id(block): [self.runs[id(work)] for work in block] for block in distinct}
        return [by_block[id(block)] for block in blocks]

    def _set_rates(self, device: Device) -> None:
        latency, interval = device.latency_cycles, device.interval_cycles
        free = device.ablations
        self._barriers_wait = "barriers" not in free
        self._barrier = ticks(latency.barrier)
        at_once = "block-launch" in free
        self._block_start = 0 if at_once else ticks(latency.block_start)
        self._block_end = 0 if at_once else ticks(latency.block_end)
        cluster, size = device.cluster, self.share.cluster_blocks
        factors = cluster.launch_2, cluster.launch_4, cluster.launch_8, cluster.launch_16
        turns = cluster.turn_2, cluster.turn_4, cluster.turn_8, cluster.turn_16
        self._launch = ticks(interval.block_launch * for_cluster(size, factors, 1.0))
        are_few = self.resident == 1 or 2 * self.resident < size
        self._turn = ticks(for_cluster(size, turns, 0.0)) if are_few else 0
        if at_once:
            self._launch = self._turn = 0
        self._completion = 0 if at_once else ticks(interval.block_completion)
        self._warp_start = 0 if at_once else ticks(latency.warp_start)
        # Minimum delay between schedulers: the opening of a barrier, the start of a block.
        self.ahead = min(self._barrier if self._barriers_wait else 0, self._block_start)
        if not (self.is_steady or at_once):
            self.units.constants_there = self._block_start + ticks(latency.cold_start)

    def _share_bandwidth(self) -> None:
        self.units.memory.scale_bandwidth(self.share.gain(self._left, self.resident))

    # -- blocks ------------------------------------------------------------------------

    def start_blocks(self, now: int) -> None:
        """Launch blocks into free places, one per launch interval."""
        while self._on_sm < self.resident and self._next_block < len(self.blocks):
            self._on_sm += 1
            number = self._next_block
            self._next_block += 1
            turn = self._turn if number >= self.resident else 0
            at = max(now + turn, self._launch_free)
            self._launch_free = at + self._launch
            self._launch_block(number, at + self._block_start)

    def _launch_block(self, number: int, begin: int) -> None:
        warps = self.blocks[number]
        block = Block(number, len(warps))
        is_first = number < self.resident and not self.is_steady
        for warp_number, runs in enumerate(warps):
            runs.count += 1
            scheduler = scheduler_of(number, warp_number, len(self.schedulers))
            requester = Requester(number, warp_number, is_first)
            at = begin + warp_number * self._warp_start
            warp = Warp(runs, block, requester, self._order + warp_number, scheduler, at)
            self.schedulers[scheduler].take(warp, at)
        self._order += len(warps)
        everyone: list[int] = []
        for scheduler in range(len(self.schedulers)):
            everyone.append(scheduler)
        self.event_queue.wake(begin, everyone)
        self.watch.block_started(number, begin)

    def leave(self, warp: Warp, now: int) -> None:
        """Record that a warp has run its last instruction."""
        block = warp.block
        block.live -= 1
        self.end = max(self.end, now)
        if block.live == 0:
            at = max(now + self._block_end, self._completion_free)
            self._completion_free = at + self._completion
            self.event_queue.end_block(at, block)
            self._left -= 1
            self._share_bandwidth()
        elif block.waiting and len(block.waiting) == block.live:
            self._release(block, now)

    def end_block(self, block: Block, now: int) -> None:
        """Remove a block from the SM, and start another."""
        self._on_sm -= 1
        self.block_ends.append(now)
        self.end = max(self.end, now)
        self.watch.block_ended(block.number, now)
        self.start_blocks(now)

    # -- mbarriers ---------------------------------------------------------------------

    def update(self, warp: Warp, step: Step, now: int, there: int) -> int:
        """Update an mbarrier; return when the warp has its result, NEVER if an event will decide.

        Without contention its result would be there at a time.
        """
        action, access = step.action, step.access
        one = warp.block.mbarrier(access.word)
        if action is _MBARRIER_SET:
            one.set(access.lines)
        elif action is _MBARRIER_WAIT:
            one.seen[warp.number] += access.lines
            if access.cost > 1 or access.wavefronts:  # what peers send
                at = there + self.units.from_peer(access.wavefronts)
                if one.count(max(0, access.cost - 1), -access.wavefronts, at):
                    self._notify(one, now)
            end = one.end_for(warp)
            if end >= 0:
                return max(there, end + self.units.noticed)
            one.waiting.append(warp)
            one.earliest.append(there)
            return NEVER
        elif action is _MBARRIER_ARRIVE:
            if one.count(access.lines, access.wavefronts, there):
                self._notify(one, now)
        elif one.count(access.lines if action is _PEER_ARRIVE else 0, -access.wavefronts, there):
            self._notify(one, now)
        return there

    def _notify(self, one: Mbarrier, now: int) -> None:
        """Let the warps continue that wait for a phase whose end is known now."""
        waiting, earliest = one.waiting, one.earliest
        one.waiting = []
        one.earliest = []
        for number, warp in enumerate(waiting):
            end = one.end_for(warp)
            if end < 0:
                one.waiting.append(warp)
                one.earliest.append(earliest[number])
            else:
                at = max(earliest[number], end + self.units.noticed, now + self.ahead)
                if warp.step.tag >= 0:
                    warp.results[warp.step.tag] = at
                self.schedulers[warp.scheduler].resume(warp, at, LONG)
                schedulers: list[int] = []
                schedulers.append(warp.scheduler)
                self.event_queue.wake(at, schedulers)

    # -- accounting --------------------------------------------------------------------

    def stall(self, warp: Warp, end: int, reason: int) -> None:
        """Account for a warp's time up to `end` with a reason, before its next step."""
        start = warp.seen
        row = warp.step.pc if warp.by_pc else warp.place
        warp.spent[row * REASONS + reason] += end - start
        warp.seen = end
        if self.is_observed:
            self.watch.span(warp, start, end, reason, warp.step.pc)

    def selected(self, warp: Warp, step: Step, now: int) -> None:
        """Issue a step that ends in a wait for others or in the warp's exit."""
        warp.seen = now + step.slot
        if self.is_observed:
            self.watch.span(warp, now, warp.seen, SELECTED, step.pc)

    # -- barriers ----------------------------------------------------------------------

    def arrive(self, warp: Warp, now: int) -> bool:
        """Let a warp arrive at its block's barrier; return whether it may continue at once."""
        if not self._barriers_wait:
            return True
        block = warp.block
        # Other warps may read this one's stores: it arrives after these.
        scheduler = self.schedulers[warp.scheduler]
        again = scheduler.met is block
        scheduler.met = block
        counted = self.units.arrive(now, again=again)
        block.met = max(block.met, counted, warp.stored)
        block.waiting.append(warp)
        if len(block.waiting) == block.live:
            self._release(block, now)
        return False

    def _release(self, block: Block, now: int) -> None:
        at = max(block.met, now) + self._barrier
        self.units.release(now, len(block.waiting))
        schedulers: list[int] = []
        for warp in block.waiting:
            warp.requester.is_apart = False
            self.schedulers[warp.scheduler].resume(warp, at)
            if warp.scheduler not in schedulers:
                schedulers.append(warp.scheduler)
        block.waiting.clear()
        self.event_queue.wake(at, schedulers)
        self.watch.barrier_opened(block.number, at)
