"""A grid whose blocks wait for each other: blocks start as others end, in the device's order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from gpusim.errors import FaultPlace, NoProgressError
from gpusim.gpu.device import Device
from gpusim.launch.events import Observer, Placement, Step, hooks
from gpusim.launch.prepared import Prepared
from gpusim.machine.banks import allocated
from gpusim.machine.state import Batch
from gpusim.prediction.arithmetic.ticks import ticks
from gpusim.prediction.clock.event_queue import NEVER
from gpusim.prediction.spinning.completion_times import CompletionTimes, is_even
from gpusim.prediction.spinning.interpreter import Going, PacedInterpreter
from gpusim.prediction.spinning.unloaded_timing import passed_on_cycles, unloaded_timings
from gpusim.prediction.spinning.words import Lines, Words
from gpusim.program.liveness import Liveness
from gpusim.typing import Array

BLOCKS_A_BATCH = 512  # they share NumPy's calls
# Waves simulated at most: the first alone is no sample of the steady state.
WAVES = 1.5
FEW_BLOCKS = 64  # blocks that have ended before the first test for a steady rate


class Grid:
    """The blocks of a launch on a device that holds `at_once` of them.

    `observers` hear of the `watched` blocks alone.
    """

    def __init__(
        self,
        prepared: Prepared,
        device: Device,
        at_once: int,
        l2: str,
        *,
        watched: Sequence[int] = (),
        observers: Sequence[Observer] = (),
    ) -> None:
        self.blocks = prepared.launch.blocks
        self.at_once = min(self.blocks, at_once)
        self._prepared = prepared
        self._allocations = allocated(prepared)
        self._liveness = Liveness(prepared.program)
        self._watched = frozenset(watched)
        self._observers = observers
        latency, warps = device.latency_cycles, prepared.launch.warps_per_block
        self._going = Going(
            unloaded_timings=unloaded_timings(prepared.program, device, l2),
            words=Words(ticks(device.interval_cycles.global_atomic_same_address)),
            lines=Lines(self._allocations.values()),
            wake_after=ticks(max(0.0, latency.flag - passed_on_cycles(device))),
            barrier=ticks(latency.barrier + warps * latency.barrier_per_warp),
        )
        self._begin = ticks(latency.block_start + latency.cold_start)
        self._turnover = ticks(latency.block_end + latency.block_start)
        self._last_store = ticks(latency.last_store)
        self._running: list[PacedInterpreter] = []
        self._waiting: dict[int, tuple[PacedInterpreter, int]] = {}  # by block, not yet begun
        self._known = self._begun = self._looked_at = 0
        self._ends: list[int] = []
        self.ended: list[int] = []  # the watched blocks that have ended

    def run(self, step_limit: int) -> CompletionTimes:
        """Run blocks until all have ended, or until their end times can be extrapolated.

        Raises NoProgressError for a deadlock, or after `step_limit` executed instructions.
        """
        with np.errstate(all="ignore"):
            self._add(self.at_once, self._begin)
            self._begun = self.at_once
            while self._running and not self._is_enough():
                first = min(self._running, key=lambda one: one.due)
                if first.due >= NEVER or first.context.executed >= step_limit:
                    raise _no_progress(first, has_stopped=first.due >= NEVER)
                first.run_next()
                self._note(first)
            for one in self._running:
                _end_batch(one)
        return CompletionTimes(np.array(self._ends) + self._last_store, self.blocks, self.at_once)

    def _is_enough(self) -> bool:
        """Return whether enough blocks have ended to extrapolate the others."""
        ended = len(self._ends)
        if ended < max(FEW_BLOCKS, 2 * self._looked_at):
            return ended >= WAVES * self.at_once
        self._looked_at = ended
        return is_even(self._ends)

    def _add(self, count: int, begin: int) -> None:
        """Make batches of the next blocks.

        They are in block order, the order of tickets drawn by blocks that begin together.
        """
        numbers = range(self._known, self._known + count)
        self._known += count
        for first in range(0, count, BLOCKS_A_BATCH):
            self._add_batch(numbers[first : first + BLOCKS_A_BATCH], begin)

    def _add_batch(self, blocks: Sequence[int], begin: int) -> None:
        prepared = self._prepared
        focus = Focus(self._watched.intersection(blocks), self._observers)
        interpreter = PacedInterpreter(
            Batch(prepared.program, prepared.launch, np.array(blocks), self._liveness),
            prepared.arguments,
            self._allocations,
            (focus,) if focus.watches else (),
            self._going,
            begin,
        )
        self._running.append(interpreter)
        if begin == NEVER:
            self._waiting |= {block: (interpreter, at) for at, block in enumerate(blocks)}

    def _note(self, interpreter: PacedInterpreter) -> None:
        """Record ended blocks and start others in their place."""
        blocks = interpreter.batch.placement.blocks
        for position, at in interpreter.ended:
            self._ends.append(at)
            if int(blocks[position]) in self._watched:
                self.ended.append(int(blocks[position]))
            if self._begun < self.blocks:
                self._start_next(at + self._turnover)
        interpreter.ended.clear()
        if not len(interpreter.batch.splits):
            self._running.remove(interpreter)
            _end_batch(interpreter)

    def _start_next(self, at: int) -> None:
        if self._begun == self._known:
            self._add(min(BLOCKS_A_BATCH, self.blocks - self._known), NEVER)
        interpreter, position = self._waiting.pop(self._begun)
        interpreter.start(position, at)
        self._begun += 1


def _end_batch(interpreter: PacedInterpreter) -> None:
    """Notify observers of the end of a batch, and release it."""
    for hook in hooks(interpreter.observers, "batch_end"):
        hook(interpreter.batch.placement.blocks)
    interpreter.leave()


def _no_progress(interpreter: PacedInterpreter, *, has_stopped: bool) -> NoProgressError:
    """Return the error for blocks in a deadlock, or beyond the step limit."""
    instructions, splits = interpreter.context.instructions, interpreter.batch.splits
    blocks = interpreter.batch.placement.blocks
    lines = sorted({instructions[int(pc)].line for pc in splits.pc})
    where = ", ".join(map(str, lines[:4]))
    text = f"blocks {blocks[0]} to {blocks[-1]} are at line {where} and "
    if has_stopped:
        text += "wait for words that no running block writes"
    else:
        text += "do not end; if the kernel only needs longer, raise the step limit"
    return NoProgressError(text, FaultPlace(lines[0], int(blocks[0])))


LANES = "active", "on", "addresses", "taken", "mask", "left", "sources", "constants"
_lanes = attrgetter(*LANES)


class Focus(Observer):
    """Forwards steps and ends of the `watched` block numbers to observers."""

    def __init__(self, watched: Collection[int], observers: Sequence[Observer]) -> None:
        self._watched = np.array(sorted(watched), dtype=np.int64)
        self._listeners = hooks(observers, "step")
        self._ending = hooks(observers, "batch_end")
        self._seen: Placement | None = None
        self._latest = self._watched, self._watched  # rows of the last step, and the watched ones

    @property
    def watches(self) -> bool:
        """Whether any block is watched."""
        return len(self._watched) > 0

    def step(self, step: Step) -> None:
        """Forward the watched blocks' part of a step, unless none of them runs it."""
        copies, which = self._among(step.placement, step.rows)
        if not len(which) or not len(self._positions):
            return
        changed: dict[str, Any] = {
            name: None if lanes is None else _part(lanes, copies, which)
            for name, lanes in zip(LANES, _lanes(step), strict=True)
        }
        changed["values"] = tuple(_part(value, copies, which) for value in step.values)
        changed |= {"placement": self._own, "rows": self._rows(step.rows[which])}
        watched = step._replace(**changed)
        for listener in self._listeners:
            listener(watched)

    def batch_end(self, blocks: Array) -> None:
        """Forward the end of the watched blocks."""
        mine = blocks[np.isin(blocks, self._watched)]
        for hook in self._ending if len(mine) else ():
            hook(mine)

    def _among(self, placement: Placement, rows: Array) -> tuple[Array | None, Array]:
        """Return the positions of watched blocks, None for all, and the indices of their rows."""
        if placement is not self._seen:
            self._look_at(placement)
        if placement.folded:
            return self._positions, np.arange(len(rows))
        if rows is not self._latest[0]:  # a group's are one array from step to step
            which = np.flatnonzero(self._place[rows // placement.warps_per_block] >= 0)
            self._latest = rows, which
        return None, self._latest[1]

    def _look_at(self, placement: Placement) -> None:
        """Find the watched blocks of a batch, again after it has been unfolded."""
        self._seen = placement
        self._latest = self._watched, self._watched
        is_mine = np.isin(placement.blocks, self._watched)
        self._positions = np.flatnonzero(is_mine)
        self._place = np.where(is_mine, np.cumsum(is_mine) - 1, -1)
        self._own = replace(placement, blocks=placement.blocks[is_mine])

    def _rows(self, rows: Array) -> Array:
        """Translate rows of the batch to rows of the watched blocks alone."""
        warps = self._own.warps_per_block
        if self._own.folded:
            return rows
        return np.asarray(self._place[rows // warps] * warps + rows % warps)


def _part(value: Array, copies: Array | None, which: Array) -> Array:
    """Return some copies and rows of an array shaped (copies or 1, rows or 1, ...)."""
    if copies is not None and len(value) > 1:
        value = value[copies]
    return value[:, which] if value.ndim > 1 and value.shape[1] > 1 else value
