"""Stretches of bytes in global and local memory touched by blocks, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES, WORD_BYTES
from gpusim.isa.ops import OPS
from gpusim.launch.events import Observer, Skip, Step
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams.local_rows import BEYOND, EVERYWHERE, LocalRows

Array = np.ndarray[Any, Any]

LOAD, STORE, ATOMIC, PAST_L1, FENCE = range(5)
_KINDS = {"load": LOAD, "store": STORE, "atomic": ATOMIC}
_ADDRESS_BITS = 46
_ADDRESS = (1 << _ADDRESS_BITS) - 1


@dataclass(frozen=True)
class Stretches:
    """The touches of a block, one row for each stretch of bytes, in columns of one length.

    Instruction `pc` touches bytes from `begin` up to `end`, with no untouched sector between them;
    `kind` is a load, store, atomic, load past the L1, or fence between blocks (with a sector at
    `EVERYWHERE` as its address). `time` is the number of preceding steps of the block; `asked` the
    bytes requested by lanes. In a loop with skipped iterations the stretch is touched `times` more
    times, each `stride` bytes further and `period` steps later. The longest block makes `steps`
    steps.
    """

    pc: Array
    kind: Array
    time: Array
    begin: Array
    end: Array
    asked: Array
    times: Array
    stride: Array
    period: Array
    steps: int

    def __len__(self) -> int:
        return len(self.pc)

    def at(self, which: Array) -> Stretches:
        """Return some of the rows."""
        columns = {name: getattr(self, name)[which] for name in COLUMNS}
        return Stretches(**columns, steps=self.steps)

    @property
    def shape(self) -> bytes:
        """Equal for stretches that differ only in their addresses."""
        columns = (self.pc, self.end - self.begin, self.times, self.stride)
        return b"|".join(np.ascontiguousarray(column).tobytes() for column in columns)

    @property
    def sectors(self) -> Array:
        """Number of sectors of each stretch."""
        return self.pieces(SECTOR_BYTES)

    def pieces(self, size: int) -> Array:
        """Return the number of pieces of `size` bytes of each stretch."""
        return np.asarray((self.end - 1) // size - self.begin // size + 1)


COLUMNS = tuple(field.name for field in fields(Stretches) if field.name != "steps")


@dataclass
class _Touch:
    """A step with memory accesses: its stretches, by block position in the batch."""

    pc: int
    kind: int
    step: int
    position: Array
    begin: Array
    end: Array
    asked: Array


class _Recorded:
    """The record of a batch: rows of all its steps, touches of memory, and skips."""

    def __init__(self) -> None:
        self.rows: list[Array] = []
        self.touches: list[_Touch] = []
        self.skips: list[tuple[int, Skip]] = []


class TouchRecorder(Observer):
    """Turns steps and skips into the stretches of each block of a run."""

    def __init__(self, prepared: Prepared) -> None:
        self._local = LocalRows(prepared)
        self._recorded: dict[int, _Recorded] = {}
        self.stretches: dict[int, Stretches] = {}

    def step(self, step: Step) -> None:
        """Record the touches of a step."""
        instruction = step.instruction
        op, found = OPS[instruction.op], instruction.memory
        if not op.issued:
            return
        recorded = self._of(step.placement.blocks)
        number = len(recorded.rows)
        recorded.rows.append(step.rows)
        if op.waits_for_memory and instruction.detail != "block":
            recorded.touches.append(_Touch(step.pc, FENCE, number, *_everywhere(step)))
        touched = self._touched(step)
        if found is None or touched is None:
            return
        is_past_l1 = found.volatile and found.space == "global" and op.kind == "load"
        kind = PAST_L1 if is_past_l1 else _KINDS[op.kind]
        recorded.touches.append(_Touch(step.pc, kind, number, *touched))

    def _touched(self, step: Step) -> tuple[Array, Array, Array, Array] | None:
        """Return the stretches of a step; None without an access to global or local memory."""
        found = step.instruction.memory
        if found is None or step.addresses is None:
            return None
        if found.space == "global":
            return _stretches(step, step.addresses, step.on, found.width_bytes)
        if found.space == "local" and self._local.has:
            return _stretches(step, *self._local.places(step, found.width_bytes), WORD_BYTES)
        return None

    def skip(self, skip: Skip) -> None:
        """Record a skip of iterations."""
        recorded = self._of(skip.placement.blocks)
        recorded.skips.append((len(recorded.rows), skip))

    def batch_end(self, blocks: Array) -> None:
        """Make the stretches of these blocks."""
        recorded = self._recorded.pop(int(blocks[0]), _Recorded())
        rows, ends = _by_position(recorded.touches, len(blocks))
        loops = [_Loop.of(recorded.rows, at, skip) for at, skip in recorded.skips]
        for position, number in enumerate(blocks.tolist()):
            mine = rows[:, ends[position] : ends[position + 1]]
            ran = [one for one in loops if one.times[position]]
            self.stretches[number] = _of_block(mine, ran, position, len(recorded.rows))

    def _of(self, blocks: Array) -> _Recorded:
        return self._recorded.setdefault(int(blocks[0]), _Recorded())


def _stretches(
    step: Step, addresses: Array, on: Array, width: int
) -> tuple[Array, Array, Array, Array]:
    """Return the stretches of a step: block position, begin, end and requested bytes of each.

    Elements with an untouched sector between them belong to different stretches.
    """
    placement, rows = step.placement, step.rows
    copies = len(placement.blocks) if placement.folded else 1
    shape = copies, len(rows), on.shape[2]
    on = np.broadcast_to(on, shape)
    if placement.folded:
        position = np.arange(copies)[:, None, None]
    else:
        position = (rows // placement.warps_per_block)[None, :, None]
    touched = (np.broadcast_to(addresses, shape) | position << _ADDRESS_BITS)[on]
    if not touched.size:
        return touched, touched, touched, touched
    if (np.diff(touched) < 0).any():
        touched.sort()
    is_first = np.ones(len(touched), dtype=bool)
    is_first[1:] = np.diff(touched) >= width + SECTOR_BYTES
    first = np.flatnonzero(is_first)
    ends = np.append(first[1:], len(touched))
    begin, end = touched[first] & _ADDRESS, (touched[ends - 1] & _ADDRESS) + width
    return touched[first] >> _ADDRESS_BITS, begin, end, (ends - first) * width


def _everywhere(step: Step) -> tuple[Array, Array, Array, Array]:
    """Return the same for a fence, with no requested bytes."""
    placement = step.placement
    position = np.unique(step.rows // placement.warps_per_block)
    if placement.folded:
        position = np.arange(len(placement.blocks))
    begin = np.full(len(position), EVERYWHERE)
    return position, begin, begin + SECTOR_BYTES, np.zeros_like(begin)


def _by_position(touches: Sequence[_Touch], blocks: int) -> tuple[Array, Array]:
    """Return touches sorted by block, as rows: pc, kind, step, begin, end, asked.

    With them the boundaries of each block's columns.
    """
    counts = [len(touch.position) for touch in touches]
    whose = np.concatenate([np.zeros(0, dtype=np.int64), *(t.position for t in touches)])
    order = np.argsort(whose, kind="stable")
    made = np.empty((6, len(whose)), dtype=np.int64)
    for row, name in enumerate(("pc", "kind", "step")):
        values = np.array([getattr(touch, name) for touch in touches], dtype=np.int64)
        made[row] = np.repeat(values, counts)[order]
    for row, name in enumerate(("begin", "end", "asked"), 3):
        parts = [getattr(touch, name) for touch in touches]
        made[row] = np.concatenate([np.zeros(0, dtype=np.int64), *parts])[order]
    return made, np.searchsorted(whose[order], np.arange(blocks + 1))


@dataclass(frozen=True)
class _Loop:
    """A loop: the steps of its stored iteration, up to `end`, and the iterations skipped."""

    steps: Array
    end: int
    times: Array
    period: int
    strides: Mapping[int, int]

    @classmethod
    def of(cls, rows: Sequence[Array], at: int, skip: Skip) -> _Loop:
        """Return the loop of a skip after `at` steps; `rows` are the rows of each step."""
        like: list[int] = []
        for number in range(at - 1, -1, -1):
            if len(like) == skip.issued:
                break
            if np.array_equal(rows[number], skip.rows):
                like.append(number)
        placement = skip.placement
        times = np.zeros((placement.copies, placement.rows), dtype=np.int64)
        times[:, skip.rows] = skip.times
        most = times.reshape(len(placement.blocks), -1).max(axis=1)
        period = at - like[-1] if like else 0
        return cls(np.array(like, dtype=np.int64), at, most, period, skip.strides)

    def stride_of(self, begin: Array) -> Array:
        """Return the strides of stretches in bytes, determined by their array."""
        arrays = np.array(sorted(self.strides), dtype=np.int64)
        if not len(arrays):
            return np.zeros_like(begin)
        steps = np.array([self.strides[array] for array in arrays.tolist()])
        found = steps[np.searchsorted(arrays, begin, side="right") - 1]
        return np.where(begin < BEYOND, found, 0)


def _of_block(rows: Array, loops: Sequence[_Loop], position: int, steps: int) -> Stretches:
    """Return the stretches of the block at a position of a batch, with its skipped loops."""
    pc, kind, step, begin, end, asked = rows
    time = step.copy()
    times, stride, period = np.zeros((3, len(pc)), dtype=np.int64)
    for loop in reversed(loops):  # the first one counts
        time[step >= loop.end] += loop.times[position] * loop.period
        inside = np.isin(step, loop.steps)
        times[inside], period[inside] = loop.times[position], loop.period
        stride[inside] = loop.stride_of(begin[inside])
    steps += sum(int(loop.times[position]) * loop.period for loop in loops)
    return Stretches(pc, kind, time, begin, end, asked, times, stride, period, steps)
