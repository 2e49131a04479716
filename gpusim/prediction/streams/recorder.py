"""From steps and leaps, as the machine tells them, to streams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpusim import memory
from gpusim.events import Leap, Observer, Placement, Step
from gpusim.isa import COUNT_UP, OPS
from gpusim.launch import ComputeCapability
from gpusim.prediction.streams import spread
from gpusim.prediction.streams.stream import BlockStream, Repeat, WarpStream, rolled
from gpusim.prediction.streams.touches import (
    NOTHING,
    LeftOut,
    Touches,
    first_touches,
    joined,
    sectors_touched,
)

Array = np.ndarray[Any, Any]

# Columns of a step in which all warps are alike.
YES, NO = np.ones((1, 1), dtype=bool), np.zeros((1, 1), dtype=bool)
ZERO = np.zeros((1, 1), dtype=np.int64)
NOWHERE = np.full((1, 1), -1, dtype=np.int64)


@dataclass(frozen=True)
class _Row:
    """One step: its warps, columns shaped (copies or 1, warps or 1), and sectors touched."""

    pc: int
    is_store: bool
    rows: Array
    columns: tuple[Array, ...]
    touched: Array | None

    def unfolded(self, every: Array) -> _Row:
        """Return the step of a folded batch for the rows of all blocks, which begin at `every`."""
        shape = (len(every), len(self.rows))
        columns = [np.broadcast_to(column, shape).reshape(1, -1) for column in self.columns]
        touched = self.touched
        if touched is not None:
            touched = np.broadcast_to(touched, (*shape, 32)).reshape(1, -1, 32)
        return _Row(
            self.pc, self.is_store, (self.rows + every).reshape(-1), tuple(columns), touched
        )


class _Told:
    """What the recorder was told of a batch: its steps, and its leaps, each after so many steps."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.steps: list[_Row] = []
        self.leaps: list[tuple[int, Leap]] = []

    def unfold(self, placement: Placement) -> None:
        """Spread what was told of a folded batch over the rows of an unfolded one."""
        copies = len(placement.blocks)
        every = np.arange(copies)[:, None] * placement.warps_per_block
        self.placement = placement
        self.steps = [row.unfolded(every) for row in self.steps]
        self.leaps = [(at, _unfolded(leap, placement, every)) for at, leap in self.leaps]

    @cached_property
    def starts(self) -> Array:
        """The place of each step's first row: places count rows through all steps."""
        return np.cumsum([0, *(len(step.rows) for step in self.steps)])

    def places(self) -> list[Array]:
        """Return, for each row of the batch, the places at which it runs an instruction."""
        rows = np.concatenate([step.rows for step in self.steps])
        counts = np.bincount(rows, minlength=self.placement.rows)
        return np.split(np.argsort(rows, kind="stable"), np.cumsum(counts)[:-1])

    def columns(self, touches: Touches, stored: Touches) -> dict[str, Array]:
        """Return the columns of streams, shaped (copies, places).

        In place of `near` they have the lowest line of each load.
        """
        shape = self.placement.copies, int(self.starts[-1])
        pc = np.repeat([step.pc for step in self.steps], np.diff(self.starts))
        is_on, is_taken, cost, lines, lanes, lowest, apart = map(self._column, range(7))
        fresh, joins = first_touches(touches, math.prod(shape))
        written, _ = first_touches(stored, math.prod(shape))
        return {
            "pc": np.broadcast_to(pc.astype(np.int32), shape),
            "is_on": is_on,
            "is_taken": is_taken,
            "cost": cost.astype(np.int32),
            "lines": lines.astype(np.int32),
            "fresh": fresh.reshape(shape).astype(np.int32),
            "written": written.reshape(shape).astype(np.int32),
            "joins": joins.reshape(shape),
            "lanes": lanes,
            "spread": apart.astype(np.int32),
            "lowest": lowest,
        }

    def _column(self, number: int) -> Array:
        parts = [step.columns[number] for step in self.steps]
        full = np.empty((self.placement.copies, int(self.starts[-1])), dtype=parts[0].dtype)
        for part, first, end in zip(parts, self.starts, self.starts[1:], strict=False):
            full[:, first:end] = part
        return full

    def touches(self, *, stored: bool = False) -> Touches:
        """Return all accesses of sectors, and what leaps left out the last time, in order.

        Of stores alone where `stored`.
        """
        parts = [
            self._touched(number) if step.is_store or not stored else NOTHING
            for number, step in enumerate(self.steps)
        ]
        made, done = [], 0
        for at, leap in self.leaps:
            period = joined([parts[number] for number in self.steps_of(at, leap)])
            made += [*parts[done:at], period.left_out(self.times(leap).max(axis=1), leap.strides)]
            done = at
        return joined([*made, *parts[done:]])

    def _touched(self, number: int) -> Touches:
        step = self.steps[number]
        if step.touched is None:
            return NOTHING
        copies, warps = self.placement.copies, self.placement.warps_per_block
        sectors = np.broadcast_to(step.touched, (copies, len(step.rows), 32))
        copy, row, lane = np.nonzero(sectors >= 0)
        return Touches(
            block=copy if self.placement.folded else step.rows[row] // warps,
            step=np.full(len(row), number),
            place=copy * self.starts[-1] + self.starts[number] + row,
            sector=sectors[copy, row, lane],
        )

    def repeat(self, at: int, leap: Leap, places: Array, times: int) -> Repeat:
        """Return what a leap after so many steps is in the stream of the row at these places."""
        end = int(np.searchsorted(places, self.starts[at]))
        return Repeat(end - leap.issued, end, times)

    def steps_of(self, at: int, leap: Leap) -> Array:
        """Return the numbers of the steps that stand for what a leap leaves out."""
        like: list[int] = []
        for number in range(at - 1, -1, -1):
            if len(like) == leap.issued:
                break
            if np.array_equal(self.steps[number].rows, leap.rows):
                like.append(number)
        return np.array(like[::-1])

    def times(self, leap: Leap) -> Array:
        """Return how often a leap leaves out what a warp did, shaped (blocks, warps)."""
        times = np.zeros((self.placement.copies, self.placement.rows), dtype=np.int64)
        times[:, leap.rows] = leap.times
        return times.reshape(-1, self.placement.warps_per_block)


def _unfolded(leap: Leap, placement: Placement, every: Array) -> Leap:
    times = np.broadcast_to(leap.times, (len(every), len(leap.rows))).reshape(1, -1)
    rows = (leap.rows + every).reshape(-1)
    return replace(leap, placement=placement, rows=rows, times=times)


class Recorder(Observer):
    """Turns steps and leaps into streams of the blocks of a run.

    `is_sound` says whether what leaps left out touches as many sectors for the first time as
    the iterations that stand for it.
    """

    def __init__(self, cc: ComputeCapability) -> None:
        self._cc_major = cc.major
        self._told: dict[int, _Told] = {}
        self.streams: dict[int, BlockStream] = {}
        self.is_sound = True

    def _of(self, placement: Placement) -> _Told:
        number = int(placement.blocks[0])
        told = self._told.get(number)
        if told is None:
            told = self._told[number] = _Told(placement)
        if told.placement is not placement:
            told.unfold(placement)
        return told

    def step(self, step: Step) -> None:
        """Keep what the clock needs of a step."""
        instruction = step.instruction
        if not OPS[instruction.op].issued:
            return
        is_on, is_taken, cost, lines, touched = YES, NO, ZERO, ZERO, None
        lowest, apart = NOWHERE, ZERO
        if OPS[instruction.op].kind != "compute":
            is_on = np.asarray(step.on.any(axis=2))
        if step.taken is not None:
            is_taken = np.asarray(step.taken.any(axis=2))
        if step.addresses is not None and instruction.memory is not None:
            cost, lines, touched = self._cost(step)
            if touched is not None and instruction.is_load:
                lowest, apart = spread.within(step.addresses, step.on)
        lanes = np.packbits(step.active, axis=2, bitorder="little").view(np.uint32)[..., 0]
        columns = (is_on, is_taken, cost, lines, lanes, lowest, apart)
        row = _Row(step.pc, OPS[instruction.op].kind == "store", step.rows, columns, touched)
        self._of(step.placement).steps.append(row)

    def leap(self, leap: Leap) -> None:
        """Keep how often the iterations before it stand for those that it leaves out."""
        told = self._of(leap.placement)
        told.leaps.append((len(told.steps), leap))

    def _cost(self, step: Step) -> tuple[Array, Array, Array | None]:
        found, addresses = step.instruction.memory, step.addresses
        assert found is not None
        assert addresses is not None
        if OPS[step.instruction.op].kind == "atomic":
            if found.space == "global":
                passes = memory.same_address_lanes(addresses, step.on)
                if found.dtype.kind in "iu":  # nvcc adds up what lanes have for one address
                    passes = np.where(memory.distinct(addresses, step.on) == 1, 1, passes)
                return passes, memory.sectors(addresses, step.on), None
            counts_up = step.instruction.op == COUNT_UP
            passes = memory.shared_atomic_wavefronts(addresses, step.on, counts_up=counts_up)
            return passes, ZERO, None
        if found.space == "shared":
            passes, _ = memory.wavefronts(
                addresses,
                step.on,
                found.width_bytes,
                self._cc_major,
                is_load=step.instruction.is_load,
            )
            return passes, ZERO, None
        if found.space == "global":
            lines = memory.distinct(addresses // memory.LINE_BYTES, step.on)
            touched = memory.distinct_values(addresses // memory.SECTOR_BYTES, step.on)
            return np.count_nonzero(touched >= 0, axis=2), lines, touched
        return ZERO, ZERO, None

    def batch_end(self, blocks: Array) -> None:
        """Make the streams of these blocks."""
        told = self._told.pop(int(blocks[0]), None)
        if told is None:
            return
        touches = told.touches()
        columns, places = told.columns(touches, told.touches(stored=True)), told.places()
        folded, warps = told.placement.folded, told.placement.warps_per_block
        times = [told.times(leap) for _, leap in told.leaps]
        seen: dict[bytes, BlockStream] = {}
        streams = []
        for position in range(len(blocks)):
            copy, first = (position, 0) if folded else (0, position * warps)
            made = []
            for warp in range(warps):
                mine = places[first + warp]
                repeats = tuple(
                    told.repeat(at, leap, mine, int(often[position, warp]))
                    for (at, leap), often in zip(told.leaps, times, strict=True)
                    if often[position, warp]
                )
                own = {name: column[copy][mine] for name, column in columns.items()}
                near = spread.to_earlier(own.pop("lowest"))
                made.append(rolled(WarpStream(**own, near=near, repeats=repeats)))
            block = BlockStream(tuple(made))
            streams.append(seen.setdefault(block.key, block))
        self.streams.update(zip(blocks.tolist(), streams, strict=True))
        if told.leaps:
            self.is_sound &= _is_sound(told, touches, streams)


def _is_sound(told: _Told, touches: Touches, streams: Sequence[BlockStream]) -> bool:
    """Compare the sectors that blocks touch with what their streams say."""
    stood = [told.steps_of(at, leap) for at, leap in told.leaps]
    times = [told.times(leap).max(axis=1) for _, leap in told.leaps]
    for position, own in enumerate(touches.of_blocks(len(streams))):
        left_out = [
            LeftOut(steps, int(often[position]), leap.strides)
            for steps, often, (_, leap) in zip(stood, times, told.leaps, strict=True)
            if often[position]
        ]
        if sectors_touched(own, left_out) != streams[position].fresh_sectors:
            return False
    return True
