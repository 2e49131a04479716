"""The machine in time order: the warps with the least time run first.

Each warp has a time of its own and instructions have the latency of a lone warp. Communication
between blocks waits until all earlier warps have been run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.isa.ops import OPS
from gpusim.launch.events import BarrierOpened, Observer, Step
from gpusim.machine.group import BlocksDisagreeError, Group
from gpusim.machine.interpreter import Interpreter
from gpusim.machine.state import READY, Batch, Splits
from gpusim.machine.storage import Allocation
from gpusim.prediction.arithmetic.quasirandom import FETCHES_APART, GOLDEN, MOST_DRAWN
from gpusim.prediction.arithmetic.ticks import ticks
from gpusim.prediction.clock.event_queue import NEVER
from gpusim.prediction.spinning.unloaded_timing import UnloadedTiming
from gpusim.prediction.spinning.words import Lines, Spinning, Words
from gpusim.typing import Array

# Warps that reach a communicating instruction within this time run it together: a fraction of an
# L2 latency, the wait of a warp that comes too late. Other instructions are run together at any
# difference of time.
TOGETHER = ticks(128)
STEP = ticks(256)  # random latencies are rounded to it, so that many warps stay together


@dataclass(frozen=True)
class Going:
    """State and latencies shared by all batches of a grid, in ticks.

    A parked warp polls again `wake_after` the write of a word; a barrier opens `barrier` after its
    last warp arrived.
    """

    unloaded_timings: Sequence[UnloadedTiming]
    words: Words
    lines: Lines
    wake_after: int
    barrier: int


class _Opened(Observer):
    """Hears of opening barriers."""

    def __init__(self, tell: Callable[[BarrierOpened], None]) -> None:
        self._tell: Callable[[BarrierOpened], None] | None = tell

    def barrier_opened(self, opened: BarrierOpened) -> None:
        """Forward the opening of a barrier."""
        if self._tell is not None:
            self._tell(opened)

    def leave(self) -> None:
        """Forward no more."""
        self._tell = None


class PacedInterpreter(Interpreter):
    """Runs a batch of blocks from tick `begin` on, NEVER for blocks started later.

    `due` is the time of its earliest warp; `ended` collects positions and end times of finished
    blocks for the grid.
    """

    def __init__(
        self,
        batch: Batch,
        arguments: Mapping[str, Any],
        allocations: Mapping[str, Allocation],
        observers: Sequence[Observer],
        going: Going,
        begin: int,
    ) -> None:
        self._opened = _Opened(self._open)
        super().__init__(batch, arguments, allocations, (*observers, self._opened))
        self.context.listeners.append(self._hear)
        self._going = going
        self.observers = observers
        self._at = np.full(batch.rows, begin, dtype=np.int64)
        self._served = self._at  # when the last instruction's memory access is served
        self._late: Array | int = 0  # its latency beyond that of the L2
        self._times: Array | None = None  # of the batch's splits, until another sets them
        self._there: dict[int, Array] = {}  # by register, when each warp's result is there
        self._spinning = Spinning(batch.rows)
        self._group: Group | None = None
        self._live = np.ones(len(batch.placement.blocks), dtype=bool)
        self.ended: list[tuple[int, int]] = []
        self.due = begin

    def start(self, position: int, at: int) -> None:
        """Let the block at a position begin."""
        if self.batch.placement.folded:
            self._unfold()
        warps = self.batch.placement.warps_per_block
        self._at[position * warps : (position + 1) * warps] = at
        self._times = None
        self.due = min(self.due, at)

    def wake(self, rows: Array, at: int) -> None:
        """Let parked warps poll again for a word written at a time."""
        asleep = rows[self._at[rows] >= NEVER]
        self._at[asleep] = self._spinning.woken(asleep, at + self._going.wake_after)
        self._times = None
        self.due = min(self.due, int(self._at[rows].min()))

    def leave(self) -> None:
        """Let nothing refer back to this interpreter: its arrays are free when it has ended.

        A cycle of references would keep them until a collection of garbage.
        """
        self.context.listeners.clear()
        self._opened.leave()

    def run_next(self) -> None:
        """Run the earliest warps up to their next branch or communication."""
        group, limit = self._first()
        try:
            self._run_until(group, limit)
        except BlocksDisagreeError:
            self._hold(group)
            self._unfold()
        splits = self.batch.splits
        self._times = self._when(splits)
        self.due = int(self._times.min()) if len(splits) else NEVER

    def _first(self) -> tuple[Group, int]:
        """Return the earliest warps, and the latest time at which others may join them."""
        splits = self.batch.splits
        at = self._when(splits) if self._times is None else self._times
        first = int(at.argmin())
        pc, limit = int(splits.pc[first]), int(at[first]) + TOGETHER
        latest = limit if self._going.unloaded_timings[pc].is_seen else NEVER - 1
        return Group(self.batch, np.flatnonzero((splits.pc == pc) & (at <= latest))), limit

    def _when(self, splits: Splits) -> Array:
        return np.where(splits.state == READY, self._at[splits.row], NEVER)

    def _run_until(self, group: Group, limit: int) -> None:
        self._group = group
        while True:
            pc, rows = group.pc, group.rows
            pace, instruction = self._going.unloaded_timings[pc], self._instructions[pc]
            self._at[rows] = self._served = at = self._ready(pace, rows)
            self._late = 0
            if self._settles[pc] or pace.is_seen:
                group.settle()
            if pace.is_seen and at.max() > limit:
                self._hold(group)
                return
            if (pace.spins or pace.more) and self.batch.placement.folded:
                raise BlocksDisagreeError
            self.context.executed += 1
            on = group.lanes_on(instruction)
            is_over = self._handlers[pc](self.context, group, instruction, on)
            self._at[rows] = np.maximum(self._at[rows], at + pace.gap)
            if pace.latency:
                there = self._served + pace.latency + self._late
                for register in instruction.dst:
                    self._result(register)[rows] = there
            if OPS[instruction.op].kind == "exit":
                self._note_ends()
            if is_over:
                return
            group.pc += 1

    def _ready(self, pace: UnloadedTiming, rows: Array) -> Array:
        """Return when the operands of an instruction are ready, by warp."""
        at = self._at[rows]
        for register in pace.reads:
            if register in self._there:
                at = np.maximum(at, self._there[register][rows])
        return at

    def _fetch(self, step: Step, pace: UnloadedTiming) -> None:
        """Add DRAM latency for warps that touch a line first; equal within a block."""
        assert step.addresses is not None
        placement, shape = step.placement, (1, len(step.rows), 32)
        addresses, on = np.broadcast_to(step.addresses, shape), np.broadcast_to(step.on, shape)
        number = placement.blocks[step.rows // placement.warps_per_block] + FETCHES_APART * step.pc
        drawn = -np.log1p(-MOST_DRAWN * (number * GOLDEN % 1.0))
        late = pace.fetch + np.rint(drawn * pace.more / STEP).astype(np.int64) * STEP
        self._late = np.where(self._going.lines.first(addresses[0], on[0]), late, 0)

    def _result(self, register: int) -> Array:
        if register not in self._there:
            self._there[register] = np.zeros(len(self._at), dtype=np.int64)
        return self._there[register]

    def _hold(self, group: Group) -> None:
        self.batch.splits.pc[group.which] = group.pc

    def _unfold(self) -> None:
        copies = len(self.batch.placement.blocks)
        self.batch.unfold()
        self._spinning = Spinning(self.batch.rows)
        self._at = np.tile(self._at, copies)
        self._there = {register: np.tile(at, copies) for register, at in self._there.items()}

    # -- hooks of the machine --------------------------------------------------------------

    def _hear(self, step: Step) -> None:
        """Handle a step's accesses: lines, words that blocks pass on, polls in vain."""
        pace = self._going.unloaded_timings[step.pc]
        if pace.more:
            self._fetch(step, pace)
        if pace.is_kept:
            assert step.addresses is not None
            addresses, on = np.broadcast_arrays(step.addresses, step.on)
            self._going.lines.touch(addresses[on])
        if not pace.is_seen:
            return
        assert step.addresses is not None
        placement, rows = step.placement, step.rows
        shape = placement.copies, len(rows), 32
        addresses, on = np.broadcast_to(step.addresses, shape), np.broadcast_to(step.on, shape)
        at = np.broadcast_to(self._at[rows], shape[:2])
        words = self._going.words
        if OPS[step.instruction.op].kind == "atomic":
            at = words.served(
                addresses.reshape(-1, 32), on.reshape(-1, 32), at.reshape(-1)
            ).reshape(shape[:2])
            self._served = at.max(axis=0)
        elif pace.spins:
            self._served = words.found(addresses[0], on[0], at[0], self._going.wake_after)
        if pace.spins:
            assert self._group is not None
            found = [self._group.read(register) for register in step.instruction.dst]
            again = self._spinning.asked(step, found, self._at)
            if again.any():
                which = rows[again]
                words.park(self.wake, which, addresses[0, again], on[0, again])
                self._at[which] = NEVER
        elif OPS[step.instruction.op].writes_memory:
            words.written(addresses[on], np.broadcast_to(at[..., None], shape)[on])

    def _open(self, opened: BarrierOpened) -> None:
        """Continue the warps of blocks together after a barrier."""
        placement, rows = opened.placement, opened.rows
        block = np.zeros_like(rows) if placement.folded else rows // placement.warps_per_block
        last = np.zeros(len(placement.blocks), dtype=np.int64)
        np.maximum.at(last, block, self._at[rows])
        self._at[rows] = last[block] + self._going.barrier

    def _note_ends(self) -> None:
        """Record blocks without a live lane."""
        placement, splits = self.batch.placement, self.batch.splits
        warps = placement.warps_per_block
        if placement.folded:
            live = np.full(len(self._live), len(splits) > 0)
        else:
            live = np.bincount(splits.row // warps, minlength=len(self._live)) > 0
        for position in np.flatnonzero(self._live & ~live).tolist():
            mine = self._at.reshape(-1, warps)[0 if placement.folded else position]
            self.ended.append((position, int(mine.max())))
        self._live &= live
