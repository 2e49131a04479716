"""Warp streams from the steps reported by the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpusim.errors import InputError
from gpusim.gpu import memory
from gpusim.isa.ops import BULK_STORE, OPS
from gpusim.launch.events import BarrierOpened, Observer, Placement, Step, Steps
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams import constants, distances
from gpusim.prediction.streams.instruction_table import plain_contents
from gpusim.prediction.streams.kinds_by_pc import KindsByPc
from gpusim.prediction.streams.local_rows import LocalRows
from gpusim.prediction.streams.ordering import stable_order, starts
from gpusim.prediction.streams.parts import Compiled, Sectioned, Stepped, parts
from gpusim.prediction.streams.step_columns import TYPES, StepColumns
from gpusim.prediction.streams.stream import BlockStream
from gpusim.prediction.streams.touches import Touches, joined
from gpusim.typing import Array

# Columns of an access with equal values for all warps.
ZERO = np.zeros((1, 1), dtype=np.int64)
NOWHERE = np.full((1, 1), -1, dtype=np.int64)

COST = [*TYPES].index("cost")
MOST_COMPARED_BYTES = 1 << 15  # above it a comparison costs as much as the computation it saves


class Asked(NamedTuple):
    """Memory columns of a step, and the touched sectors; `lowest` and `gaps` are of loads.

    Those of mbarriers and bulk copies have meanings of their own (`streams.phases`).
    """

    cost: Array = ZERO
    lines: Array = ZERO
    wavefronts: Array = ZERO
    touched: Array | None = None
    lowest: Array = NOWHERE
    gaps: Array = ZERO


@dataclass(frozen=True)
class _Row:
    """One step: its warps, their contents, columns of an access, and touched sectors.

    Contents and columns are shaped (copies or 1, warps or 1). Sectors stand in one row, `cost` of
    each warp: a quarter of the memory of one per lane.
    """

    is_store: bool
    rows: Array
    contents: Array
    columns: tuple[Array, ...]
    touched: Array | None

    def unfolded(self, every: Array) -> _Row:
        """Return the step of a folded batch for the rows of all blocks; `every` is their base."""
        shape = (len(every), len(self.rows))
        contents, *columns = (
            column if column.size == 1 else np.broadcast_to(column, shape).reshape(1, -1)
            for column in (self.contents, *self.columns)
        )
        touched = None if self.touched is None else self.of_copies(self.touched, len(every))
        rows = (self.rows + every).reshape(-1)
        return _Row(self.is_store, rows, contents, tuple(columns), touched)

    def without(self, row: int) -> _Row:
        """Return an unfolded step without a row."""
        left = self.rows != row
        contents, *columns = (
            one if one.shape[-1] == 1 else one[:, left] for one in (self.contents, *self.columns)
        )
        if not left.any():
            contents, columns = contents[:, :0], []
        return _Row(self.is_store, self.rows[left], contents, tuple(columns), None)

    def of_copies(self, touched: Array, copies: int) -> Array:
        """Return the sectors of all copies, one after the other."""
        return np.tile(touched, copies // len(self.columns[COST]))


MOST_STEPS = 1 << 24  # recorded at a time, in some 60 bytes each


class Recorded:
    """The record of a batch: its steps, and opened barriers by position among them.

    A batch in compiled code has columns in their place.
    """

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.steps: list[_Row] = []
        self.opened: list[tuple[int, Array]] = []  # blocks by position, all of them if folded
        self.compiled: list[Compiled] = []
        self._latest: dict[int, tuple[Step, _Row]] = {}

    def add(
        self, step: Step, made: Callable[[Step], _Row], is_again: Callable[[Step, Step], bool]
    ) -> None:
        """Append a step, shared with the latest one of its instruction if both are equal."""
        latest = self._latest.get(step.pc)
        if latest is None or not is_again(latest[0], step):
            latest = self._latest[step.pc] = step, made(step)
        self.steps.append(latest[1])

    def drop(self, row: int, begin: int) -> None:
        """Drop a row's steps from a number on, if all but the first are no accesses."""
        mine = [n for n, step in enumerate(self.steps[begin:], begin) if row in step.rows]
        if not any(self.steps[number].columns for number in mine[1:]):
            for number in mine:
                self.steps[number] = self.steps[number].without(row)

    def open(self, opened: BarrierOpened) -> None:
        """Append an opened barrier."""
        placement = self.placement
        every = np.arange(len(placement.blocks))
        which = every if placement.folded else np.unique(opened.rows // placement.warps_per_block)
        self.opened.append((len(self.steps), which))

    def unfold(self, placement: Placement) -> None:
        """Spread the record of a folded batch over the rows of an unfolded one."""
        copies = len(placement.blocks)
        every = np.arange(copies)[:, None] * placement.warps_per_block
        self.placement = placement
        self._latest.clear()
        spread = {id(row): row.unfolded(every) for row in self.steps}
        self.steps = [spread[id(row)] for row in self.steps]

    @cached_property
    def starts(self) -> Array:
        """The index of each step's first row, counted through all steps."""
        return np.cumsum([0, *(len(step.rows) for step in self.steps)])

    @cached_property
    def starts_of_accesses(self) -> Array:
        """The same, counted through the steps that are accesses."""
        return np.cumsum([0, *(len(step.rows) if step.columns else 0 for step in self.steps)])

    def columns(self) -> StepColumns:
        """Return the instructions of all steps."""
        none = np.zeros(0, dtype=np.int64)
        rows = np.concatenate([none, *(step.rows for step in self.steps)])
        counts = np.diff(self.starts)
        times = self._times(rows)
        is_access = np.diff(self.starts_of_accesses) > 0
        accesses = np.flatnonzero(np.repeat(is_access, counts))
        contents = [step.contents for step in self.steps]
        values = [step.columns for step in self.steps if step.columns]
        ends = np.cumsum(counts[is_access])
        return StepColumns(
            self.placement,
            rows,
            self._column(contents, self.starts[1:], np.uint64),
            accesses,
            times[accesses],
            {
                name: self._column([own[number] for own in values], ends, kind)
                for number, (name, kind) in enumerate(TYPES.items())
            },
        )

    def _times(self, rows: Array) -> Array:
        """Return for each instruction how many its warp ran before.

        The warps of a block have run equally many when a barrier opens.
        """
        placement = self.placement
        clock = np.zeros(
            (placement.rows // placement.warps_per_block, placement.warps_per_block), dtype=np.int64
        )
        flat, begin = clock.reshape(-1), 0
        made = np.empty(len(rows), dtype=np.int64)
        for number, which in [*self.opened, (len(self.steps), np.zeros(0, dtype=np.int64))]:
            end = int(self.starts[number])
            made[begin:end] = flat[rows[begin:end]] + _occurrences(rows[begin:end])
            flat += np.bincount(rows[begin:end], minlength=len(flat))
            begin = end
            here = which[:1] if placement.folded else which
            clock[here] = clock[here].max(axis=1, keepdims=True)
        return made

    def _column(self, parts: Sequence[Array], ends: Array, kind: type[np.generic]) -> Array:
        """Return a column of steps, by where the rows of each end."""
        full: Array = np.empty((self.placement.copies, ends[-1] if len(ends) else 0), dtype=kind)
        # Most accesses have the same value for all warps: it is set once.
        usual = next((part for part in parts if part.size == 1), None)
        if usual is not None:
            full[:] = usual
        begin = 0
        for part, end in zip(parts, ends.tolist(), strict=True):
            if part is not usual:
                full[:, begin:end] = part
            begin = end
        return full

    def touches(self) -> Touches:
        """Return all touches of sectors, by block."""
        touched = (pair for pair in enumerate(self.steps) if pair[1].touched is not None)
        return joined([self._touched(*pair) for pair in touched]).by_block()

    def _touched(self, number: int, step: _Row) -> Touches:
        assert step.touched is not None
        copies, rows = self.placement.copies, len(step.rows)
        counts = np.broadcast_to(step.columns[COST], (copies, rows)).reshape(-1)
        copy = np.arange(copies, dtype=np.int32)
        first = self.starts_of_accesses[number]
        own = np.arange(first, first + rows, dtype=np.int32)
        blocks = step.rows // self.placement.warps_per_block
        block = np.repeat(copy, rows) if self.placement.folded else blocks.astype(np.int32)
        sector, count = step.of_copies(step.touched, copies), self.starts_of_accesses[-1]
        return Touches(
            block=np.repeat(block, counts),
            step=np.full(len(sector), number, dtype=np.int32),
            place=np.repeat(np.add.outer(copy * np.int32(count), own), counts),
            sector=sector,
            is_store=np.full(len(sector), step.is_store),
        )


def _occurrences(values: Array) -> Array:
    """Return how often each value occurs before."""
    order = stable_order(values)
    begins = starts(values[order])
    found = np.empty_like(order)
    found[order] = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    return found


def _bits(lanes: Array) -> Array:
    return np.packbits(lanes, axis=2, bitorder="little").view(np.uint32)[..., 0]


def _is_any(bits: Array) -> Array | bool:
    """Return whether any of a warp's lanes is set; packed, in a third of the time."""
    is_any = bits != 0
    return True if is_any.all() else is_any


def _is_again(before: Step, step: Step) -> bool:
    """Return whether an instruction repeats its last step, with equal lanes and addresses."""
    return (
        _is_same(before.rows, step.rows)
        and _is_same(before.active, step.active)
        and _is_same(before.on, step.on)
        and _is_same(before.taken, step.taken)
        and _is_same(before.addresses, step.addresses)
        and _is_same(before.constants, step.constants)
    )


def _is_same(a: Array | None, b: Array | None) -> bool:
    """Return whether two arrays are equal; False if a comparison would cost too much."""
    if a is b:
        return True
    if a is None or b is None or a.shape != b.shape or a.nbytes > MOST_COMPARED_BYTES:
        return False
    return a.tobytes() == b.tobytes()


class Recorder(Observer):
    """Turns steps into streams of the blocks of a run.

    It `adds_up` integer atomics of a warp on one address, as nvcc's warp aggregation does, unless
    the program is a compiler's and does it itself; it `folds` the streams. UnsteadyError ends a run
    with too little recorded, unless the steps are `whole`.
    """

    def __init__(self, prepared: Prepared, *, folds: bool = False, whole: bool = False) -> None:
        self.omitted_steps = not whole
        self._folds = folds
        self._cc_major = prepared.cc.major
        self._local = LocalRows(prepared)
        self._adds_up = not prepared.program.compiler
        self._kinds = KindsByPc.of(prepared, self._local, adds_up=self._adds_up)
        self._recorded: dict[int, Recorded] = {}
        self._packed: tuple[Array, Array] | None = None  # a mask, and its bits
        self.streams: dict[int, BlockStream] = {}
        self._kept = 0  # steps of batches without streams as yet

    def _of(self, placement: Placement) -> Recorded:
        number = int(placement.blocks[0])
        recorded = self._recorded.get(number)
        if recorded is None:
            recorded = self._recorded[number] = Recorded(placement)
        if recorded.placement is not placement:
            recorded.unfold(placement)
        return recorded

    def step(self, step: Step) -> None:
        """Record a step."""
        if OPS[step.instruction.op].issued:
            self._of(step.placement).add(step, self._row, self.is_again)

    def is_again(self, before: Step, step: Step) -> bool:
        """Return whether a step repeats the last one of its instruction."""
        return _is_again(before, step)

    def compiled_steps(self, steps: Steps) -> None:
        """Record steps of compiled code."""
        self._kept += len(steps.pc)
        if self._kept > MOST_STEPS:
            raise InputError(
                f"blocks of the sample run more than {MOST_STEPS:,} instructions that differ from "
                "iteration to iteration, which is too many to predict; launch less work, or give "
                "its loops fewer iterations"
            )
        self._of(steps.placement).compiled.append(Compiled.of(steps))

    def barrier_opened(self, opened: BarrierOpened) -> None:
        """Record an opened barrier."""
        self._of(opened.placement).open(opened)

    def _row(self, step: Step) -> _Row:
        instruction = step.instruction
        kind = OPS[instruction.op].kind
        lanes = self._lanes(step.active)
        is_on = kind == "compute" or _is_any(lanes if step.on is step.active else _bits(step.on))
        is_taken = step.taken is not None and _is_any(_bits(step.taken))
        contents = plain_contents(step.pc, lanes, is_on, is_taken)
        if not self._kinds.are_accesses[step.pc]:
            return _Row(False, step.rows, contents, (), None)
        asked, constant = Asked(), NOWHERE
        if kind == "bulk_copy" or (step.addresses is not None and instruction.memory is not None):
            asked = self.asked(step)
        elif step.constants is not None:
            asked = Asked(memory.distinct(step.constants, step.on))
            constant = constants.lowest_line(instruction, step.constants, step.on)
        columns = (*asked[:3], asked.lowest, asked.gaps, constant)
        is_store = kind == "store" or instruction.op == BULK_STORE
        return _Row(is_store, step.rows, contents, columns, asked.touched)

    def _lanes(self, mask: Array) -> Array:
        """Return a mask of lanes as bits: steps in a row have one in common."""
        if self._packed is None or self._packed[0] is not mask:
            self._packed = mask, _bits(mask)
        return self._packed[1]

    def asked(self, step: Step) -> Asked:
        """Return the columns of an access."""
        found, addresses = step.instruction.memory, step.addresses
        assert found is not None
        assert addresses is not None
        if OPS[step.instruction.op].kind == "atomic":
            if found.space == "global":
                passes = memory.atomic_passes(addresses, step.on)
                if self._adds_up and found.dtype.kind in "iu":
                    passes = np.where(memory.distinct(addresses, step.on) == 1, 1, passes)
                return Asked(passes, memory.sectors(addresses, step.on))
            by_word = OPS[step.instruction.op].by_word
            passes = memory.shared_atomic_wavefronts(addresses, step.on, by_word=by_word)
            return Asked(passes)
        if found.space == "shared":
            passes, _ = memory.wavefronts(
                addresses,
                step.on,
                found.width_bytes,
                self._cc_major,
                is_load=step.instruction.is_load,
            )
            return Asked(passes)
        if found.space == "global":
            return self._asked_of_global(step, found.width_bytes)
        if found.space == "local":
            return self._asked_of_local(step, max(1, found.width_bytes // memory.WORD_BYTES))
        return Asked()

    def _asked_of_global(self, step: Step, width_bytes: int) -> Asked:
        """Return the columns of a load or store: most warps' lanes have words of a single line."""
        assert step.addresses is not None
        addresses, on = np.broadcast_arrays(step.addresses, step.on)
        found = memory.coalesced(addresses, on)
        if not step.instruction.is_load:
            return Asked(found.sectors, found.lines, found.lines, found.touched)
        wavefronts, gaps = np.minimum(found.lines, 1), np.zeros_like(found.lines)
        is_wide = width_bytes > memory.WORD_BYTES or self._cc_major < memory.CC_OF_MULTICAST
        several = found.lines > (0 if is_wide else 1)
        if several.any():
            ordered = found.ordered[several]
            gaps[several] = distances.within(ordered)
            wavefronts[several] = (
                memory.load_wavefronts(addresses[several], on[several], width_bytes, self._cc_major)
                if is_wide
                else memory.word_load_wavefronts(ordered)
            )
        return Asked(found.sectors, found.lines, wavefronts, found.touched, found.lowest, gaps)

    def _asked_of_local(self, step: Step, words: int) -> Asked:
        """Return the columns of an access to local memory, of `words` words for each lane.

        From compute capability 7.0 on a store is written through to the L2, as to global memory,
        and a load comes from there after eviction from the L1.
        """
        assert step.addresses is not None
        places = memory.local_places(step.addresses)
        lines = words * memory.distinct(places // memory.LINE_BYTES, step.on)
        wavefronts = lines
        if step.instruction.is_load:
            passes = memory.load_wavefronts(places, step.on, memory.WORD_BYTES, self._cc_major)
            wavefronts = words * passes
        if not self._local.has:
            return Asked(wavefronts=wavefronts)
        sectors = words * memory.sectors(places, step.on)
        if step.instruction.is_load:
            return Asked(sectors, lines, wavefronts)
        touched, on = self._local.within_block(step, words * memory.WORD_BYTES)
        distinct = memory.distinct_values(touched // memory.SECTOR_BYTES, on)
        return Asked(sectors, lines, wavefronts, distinct[distinct >= 0])

    def batch_end(self, blocks: Array) -> None:
        """Make the streams of these blocks."""
        recorded = self._recorded.pop(int(blocks[0]), None)
        if recorded is None:
            return
        self._kept -= sum(len(one.contents) for one in recorded.compiled)
        self.streams.update(zip(blocks.tolist(), self._streams(recorded), strict=True))

    def _streams(self, recorded: Recorded) -> Iterator[BlockStream]:
        """Yield the streams of a batch's blocks, one object for equal ones."""
        ran: Sectioned | Stepped
        kinds = self._kinds
        if recorded.compiled:
            ran = Sectioned(recorded.placement, recorded.compiled, kinds)
        else:
            ran = Stepped(recorded.columns(), recorded.touches())
        are_barriers = kinds.are_barriers if self._folds else None
        known: dict[bytes, BlockStream] = {}
        for part in parts(ran):
            columns = part.executed.columns(part.touches, kinds.are_loads)
            for one in part.executed.streams(columns, are_barriers):
                yield known.setdefault(one.key, one)
