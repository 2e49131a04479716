"""Stretches of bytes in global and local memory touched by blocks, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES, WORD_BYTES
from gpusim.isa.ops import OPS
from gpusim.launch.events import BarrierOpened, Observer, Placement, Step, Steps
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams.compiled_touches import CompiledTouches, OmittedTouches, columns_of
from gpusim.prediction.streams.kinds_by_pc import FENCE, TouchKinds, is_fence, kind_of
from gpusim.prediction.streams.local_rows import EVERYWHERE, LocalRows
from gpusim.prediction.streams.touch_columns import TouchColumns, by_block
from gpusim.typing import Array

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

    def at(self, which: Array | slice) -> Stretches:
        """Return some of the rows."""
        if not isinstance(which, slice) and which.dtype == bool:
            which = np.flatnonzero(which)  # once, not for each column
        columns = {name: _some(getattr(self, name), which) for name in COLUMNS}
        return Stretches(**columns, steps=self.steps)

    @property
    def sectors(self) -> Array:
        """Number of sectors of each stretch."""
        return self.pieces(SECTOR_BYTES)

    def pieces(self, size: int) -> Array:
        """Return the number of pieces of `size` bytes of each stretch."""
        return np.asarray((self.end - 1) // size - self.begin // size + 1)


def _some(column: Array, which: Array | slice) -> Array:
    """Return some of a column, collapsed to a scalar if all rows agree."""
    if column.strides[0] or isinstance(which, slice) or not len(column):
        return column[which]
    count = len(which)
    return column[:count] if count <= len(column) else np.broadcast_to(column[0], count)


COLUMNS = tuple(field.name for field in fields(Stretches) if field.name != "steps")


@dataclass
class Touch:
    """A step with memory accesses: its stretches, by block position in the batch.

    `time` is how many instructions the warps of each stretch ran before.
    """

    pc: int
    kind: int
    position: Array
    time: Array
    begin: Array
    end: Array
    asked: Array


class _Recorded:
    """The record of a batch: the touches of memory.

    `clock` counts the instructions of each row; the warps of a block have run equally many when a
    barrier opens. A batch in compiled code has columns in place of touches.
    """

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.clock = np.zeros(placement.rows, dtype=np.int64)
        self.touches: list[Touch] = []
        self.compiled: list[CompiledTouches] = []

    def go_on(self, placement: Placement) -> None:
        """Continue with another placement: the batch is unfolded."""
        if placement is not self.placement:
            self.placement = placement
            self.clock = np.tile(self.clock, placement.rows // len(self.clock))

    def open(self, opened: BarrierOpened) -> None:
        """Set the clocks of blocks whose barrier opens."""
        blocks = self.clock.reshape(-1, self.placement.warps_per_block)
        folded, rows = self.placement.folded, opened.rows // self.placement.warps_per_block
        here = np.zeros(1, dtype=np.int64) if folded else np.unique(rows)
        blocks[here] = blocks[here].max(axis=1, keepdims=True)

    def columns(self) -> tuple[TouchColumns, list[OmittedTouches]]:
        """Return and release the columns of all touches and of omitted ones; set the clock."""
        compiled, self.compiled = self.compiled, []
        if compiled:
            made, omitted = columns_of(compiled, self.placement, self.clock)
            return TouchColumns.joined(made), omitted
        touches, self.touches = self.touches, []
        counts = [len(touch.position) for touch in touches]
        begin, end = _joined(touches, "begin"), _joined(touches, "end")
        columns = TouchColumns.narrow(
            block=_joined(touches, "position"),
            pc=np.repeat(np.array([one.pc for one in touches], dtype=np.int32), counts),
            time=_joined(touches, "time"),
            begin=begin,
            size=end - begin,
            asked=_joined(touches, "asked"),
        )
        return columns, []


class TouchRecorder(Observer):
    """Turns steps into the stretches of each block of a run."""

    def __init__(self, prepared: Prepared) -> None:
        self.omitted_steps = True
        self._local = LocalRows(prepared)
        self._kinds = TouchKinds(prepared.program, self._local)
        self._recorded: dict[int, _Recorded] = {}
        self.stretches: dict[int, Stretches] = {}

    def step(self, step: Step) -> None:
        """Record the touches of a step."""
        op = OPS[step.instruction.op]
        if not op.issued:
            return
        recorded = self._of(step.placement)
        times = recorded.clock[step.rows]
        if is_fence(step.instruction):
            touch = Touch(step.pc, FENCE, *_everywhere(step, times))
            recorded.touches.append(touch)
        touched = self._touched(step, times)
        if touched is not None:
            touch = Touch(step.pc, kind_of(step.instruction), *touched)
            recorded.touches.append(touch)
        recorded.clock[step.rows] += 1

    def compiled_steps(self, steps: Steps) -> None:
        """Record steps of compiled code."""
        self._of(steps.placement).compiled.append(CompiledTouches.of(steps, self._kinds))

    def barrier_opened(self, opened: BarrierOpened) -> None:
        """Record an opened barrier."""
        self._of(opened.placement).open(opened)

    def _touched(self, step: Step, times: Array) -> tuple[Array, ...] | None:
        """Return the stretches of a step; None without an access to global or local memory."""
        found = step.instruction.memory
        if found is None or step.addresses is None:
            return None
        if found.space == "global":
            return _stretches(step, times, step.addresses, step.on, found.width_bytes)
        if found.space == "local" and self._local.has:
            places = self._local.places(step, found.width_bytes)
            return _stretches(step, times, *places, WORD_BYTES)
        return None

    def batch_end(self, blocks: Array) -> None:
        """Make the stretches of these blocks."""
        none = Placement(blocks, 1, folded=True)
        recorded = self._recorded.pop(int(blocks[0]), _Recorded(none))
        touches, omitted = recorded.columns()
        longest = int(recorded.clock.max())
        found = by_block(touches, len(blocks))
        for number, mine in zip(blocks.tolist(), found, strict=True):
            self.stretches[number] = _in_time(mine, self._kinds.kinds, longest)
        for one in omitted:
            number = int(blocks[one.touches.block[0]]) if len(one.touches) else -1
            if number >= 0:
                self.stretches[number] = _repeating(self.stretches[number], one)

    def _of(self, placement: Placement) -> _Recorded:
        recorded = self._recorded.setdefault(int(placement.blocks[0]), _Recorded(placement))
        recorded.go_on(placement)
        return recorded


def _stretches(
    step: Step, times: Array, addresses: Array, on: Array, width: int
) -> tuple[Array, ...]:
    """Return the stretches of a step: block position, time, begin, end and requested bytes of each.

    `times` are those of its rows. Elements with an untouched sector between them belong to
    different stretches, and so do those of warps at different times.
    """
    shape = step.placement.copies, len(step.rows), on.shape[2]
    group, *of_group = _groups(step, times)
    group = group[:, :, None] << _ADDRESS_BITS
    touched = (np.broadcast_to(addresses, shape) | group)[np.broadcast_to(on, shape)]
    if not touched.size:
        return touched, touched, touched, touched, touched
    apart = np.diff(touched)
    if (apart < 0).any():
        touched.sort()
        apart = np.diff(touched)
    is_first = np.ones(len(touched), dtype=bool)
    is_first[1:] = apart >= width + SECTOR_BYTES
    first = np.flatnonzero(is_first)
    ends = np.append(first[1:], len(touched))
    begin, end = touched[first] & _ADDRESS, (touched[ends - 1] & _ADDRESS) + width
    position, time = (column[touched[first] >> _ADDRESS_BITS] for column in of_group)
    return position, time, begin, end, (ends - first) * width


def _groups(step: Step, times: Array) -> tuple[Array, Array, Array]:
    """Return the groups of a step's warps by time and block, shaped (copies, rows) or (copies, 1).

    With the numbers come the block position and the time of each group, in order of time.
    """
    placement, blocks = step.placement, len(step.placement.blocks)
    every = np.arange(blocks)
    position = every[:, None] if placement.folded else step.rows // placement.warps_per_block
    if (times == times[0]).all():
        return np.atleast_2d(position), every, np.full(blocks, times[0])
    code, number = np.unique(times * blocks + position, return_inverse=True)
    return number.reshape(placement.copies, -1), code % blocks, code // blocks


def _everywhere(step: Step, times: Array) -> tuple[Array, ...]:
    """Return the same for a fence, with no requested bytes."""
    number, *of_group = _groups(step, times)
    position, time = (column[np.unique(number)] for column in of_group)
    begin = np.full(len(position), EVERYWHERE)
    return position, time, begin, begin + SECTOR_BYTES, np.zeros_like(begin)


def _joined(touches: Sequence[Touch], name: str) -> Array:
    return np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(one, name) for one in touches)])


def _in_time(touches: TouchColumns, kinds: Array, steps: int) -> Stretches:
    """Return the stretches of a block that ran whole."""
    none = np.broadcast_to(np.int64(0), len(touches))
    pc, begin = touches.pc, touches.begin
    end = begin + touches.size
    return Stretches(
        pc, kinds[pc], touches.time, begin, end, touches.asked, none, none, none, steps
    )


def _repeating(rows: Stretches, omitted: OmittedTouches) -> Stretches:
    """Return stretches with the repetitions of a lone warp's omitted iterations."""
    touches = omitted.touches
    times, stride, period = (np.array(column) for column in (rows.times, rows.stride, rows.period))
    low, high = np.searchsorted(rows.time, (touches.time, touches.time + 1))
    for far in range(int((high - low).max(initial=0))):
        at = np.minimum(low + far, len(rows) - 1)
        mine = (low + far < high) & (rows.pc[at] == touches.pc) & (rows.begin[at] == touches.begin)
        at = at[mine]
        times[at], stride[at], period[at] = omitted.times, omitted.stride[mine], omitted.period
    return replace(rows, times=times, stride=stride, period=period)
