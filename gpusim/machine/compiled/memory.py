"""Blocks in the linear memory of a module: warps, their registers, the constants of the launch.

They follow the arrays (`arrays.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES, WORD_BYTES, marked
from gpusim.isa.ops import Instruction
from gpusim.launch.events import Placement
from gpusim.launch.grid import places_of
from gpusim.machine import values
from gpusim.machine.compiled import layout
from gpusim.machine.compiled.arrays import arrays_begin
from gpusim.machine.compiled.checked_steps import CheckedSteps, Listener
from gpusim.machine.compiled.recorded_steps import Records
from gpusim.machine.compiled.segment import Place
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.compiled.vectors import is_wide
from gpusim.machine.context import Context
from gpusim.machine.state import Batch
from gpusim.machine.warps.accesses import NOTE_BYTES
from gpusim.machine.warps.copies import ENTRIES, ENTRIES_EACH, ENTRY_BYTES
from gpusim.machine.warps.state import ENTRY_BYTES as _BLOCK_BYTES
from gpusim.machine.warps.turns import KEY_BYTES, LISTED_BYTES
from gpusim.typing import Array

MOST_BEGUN_BYTES = 1 << 16  # of warps at their start that are kept with a program
_NO_BANK = np.zeros(0, np.uint8)


class BatchMemory:
    """The addresses of a batch in linear memory, after the arrays.

    Clusters run one after the other, in the memory of one; in NumPy's scheduling order each block
    has its own, and by clock each of those that run `at_once`. There is room for the sums of all
    warps.
    """

    def __init__(
        self,
        made: Translation,
        context: Context,
        arrays_end: int,
        blocks: Array,
        at_once: int | None = None,
    ) -> None:
        batch, self.made = context.batch, made
        self.warps = batch.launch.warps_per_block
        self.placement = Placement(blocks, self.warps, folded=False)
        self.blocks = len(self.placement.blocks)
        self.rows = self.warps * self.blocks
        self.one_by_one = not made.shared.in_order
        self.cluster = batch.launch.cluster_blocks
        if at_once is None:
            at_once = self.cluster if self.one_by_one else self.blocks
        self.held = self.warps * at_once
        self.notes_at = aligned(arrays_end, 64)
        self.marks_at = self.notes_at + layout.NOTES * NOTE_BYTES
        self.mark_bytes = -(-(arrays_end - arrays_begin(made)) // SECTOR_BYTES)
        self.banks_at = aligned(self.marks_at + self.mark_bytes * len(made.touched), 16)
        banks = sum(aligned(len(context.banks.get(n, ())), 16) for n, *_ in made.banks)
        self.blocks_at = aligned(self.banks_at + banks, 64)
        self.sum_bytes = aligned(8 * made.sum_count, 16)
        self.sums_at = aligned(self.blocks_at + _BLOCK_BYTES * self.blocks, 64)
        summed = self.held if made.shared.by_clock else self.rows
        self.warps_at = aligned(self.sums_at + summed * self.sum_bytes, 64)
        self.local_bytes = aligned(batch.program.local_bytes, 16)  # of a lane
        self.local_at = self.warps_at + self.held * made.warp_bytes
        self.shared_bytes = batch.shared.shape[1]
        self.shared_at = aligned(self.local_at + 32 * self.held * self.local_bytes, 128)
        self.shared_step = aligned(self.shared_bytes, 128)
        self.end = self.shared_end = self.shared_at + self.shared_step * at_once
        self.copies_at = self.copies_end = 0
        if made.queue_at:
            self.copies_at = aligned(self.end, 64)
            entries = max(ENTRIES, ENTRIES_EACH * self.held)
            self.end = self.copies_end = self.copies_at + ENTRY_BYTES * entries
        self.group_at = self.most_steps = 0
        self.first_look = 2**31 - 1  # steps before the first sample of progress
        self.is_last = True  # no other blocks join these
        if made.shared.in_order:
            self.group_at = aligned(self.end, 64)
            words = aligned(self.rows, 64) // 8
            self.end = self.group_at + (KEY_BYTES + words) * len(made.starts)
            self.end += LISTED_BYTES * 32 * self.rows
        self.records: Records | None = None
        self.checked: CheckedSteps | None = None
        if made.shared.recording:
            self.records = Records(made, aligned(self.end, 64))
            self.end = self.records.end

    def check(self, context: Context, listener: Listener) -> None:
        """Make room for the steps of a check."""
        begin, blocks = aligned(self.end, 64), self.placement.blocks
        self.checked = CheckedSteps(self.made, context, blocks, begin, listener)
        self.end = self.checked.end

    def entries(self, memory: Array) -> Array:
        """Return the blocks' places on the grid's axes, and whether they are watched."""
        held = memory[self.blocks_at :][: _BLOCK_BYTES * self.blocks]
        return held.view(np.int32).reshape(-1, 4)


def aligned(address: int, to: int) -> int:
    """Return the first multiple of a number from an address on."""
    return -(-address // to) * to


def clear_marks(memory: Array, place: BatchMemory) -> None:
    """Let no sector be marked as touched."""
    marks = memory[place.marks_at : place.banks_at]
    for part in marked(marks):
        marks[part] = 0


def bring_constants(memory: Array, place: BatchMemory, context: Context) -> None:
    """Set the constants of the launch, and the tables of jumps."""
    made = place.made
    rows = context.instructions
    held: dict[int, list[Array]] = {}
    words, others = made.constants or _constants(made, rows)
    made.constants = words, others
    for bank, (offsets, to, end) in words.items():
        found = context.banks.get(bank, _NO_BANK)
        if end > len(found):
            raise NotDerivedError("constants beyond the end of their bank")
        memory.view(np.uint32)[to] = found[: len(found) // WORD_BYTES * WORD_BYTES].view(np.uint32)[
            offsets
        ]
    for kind, where, number, cell in others:
        value: Any
        if kind == "constant":
            value = values.constant_value(context, rows[where])
        elif kind == "axis":
            value = context.allocations[rows[where].detail[0]].array.shape[number]
        else:
            if where not in held:
                every: Any = _Everyone(context.batch)
                held[where] = values.bank_values(context, every, rows[where])
            value = held[where][number]
        _set_cell(memory, cell, np.asarray(value).reshape(-1)[:1].astype(cell.dtype))
    at = place.banks_at
    for (number, begin, stop), entry in made.banks.items():
        held_bank = context.banks.get(number, _NO_BANK)
        if stop is None:
            begin, stop = values.indexable(context, number)
        memory[at : at + len(held_bank)] = held_bank
        memory[entry : entry + 12].view(np.uint32)[:] = at, begin, stop
        at += aligned(len(held_bank), 16)
    for at in made.orders:
        memory[at : at + 4] = 0
    for at, table in made.jump_tables:
        memory[at : at + table.nbytes] = table


def _word_of_bank(
    rows: Sequence[Instruction], kind: str, where: int, number: int
) -> tuple[int, int] | None:
    """Return the bank and offset of a constant that is a whole word there."""
    if kind == "bank":
        return where, number
    if kind != "words" or rows[where].src or rows[where].detail[1][2] < WORD_BYTES:
        return None
    bank, offset, *_ = rows[where].detail[1]
    return bank, offset + WORD_BYTES * number


def _constants(
    made: Translation, rows: Sequence[Instruction]
) -> tuple[dict[int, tuple[Array, Array, int]], list[tuple[str, int, int, Place]]]:
    """Return the words of each constant bank, and other constants.

    Of words these are the numbers in the bank and in memory, and where in the bank they end.
    NotDerivedError for one that does not begin at a multiple of its size.
    """
    words: dict[int, list[tuple[int, int]]] = {}
    others = []
    for (kind, where, number), cell in made.cells.items():
        place = _word_of_bank(rows, kind, where, number)
        if place is None:
            others.append((kind, where, number, cell))
        else:
            words.setdefault(place[0], []).append((place[1], cell.offset))
    made_words = {}
    for bank, places in words.items():
        offsets, to = np.array(places).T
        if (offsets % WORD_BYTES).any():
            raise NotDerivedError("a word of a constant bank at an odd place")
        end = int(offsets.max()) + WORD_BYTES
        made_words[bank] = offsets // WORD_BYTES, to // WORD_BYTES, end
    return made_words, others


def _set_cell(memory: Array, place: Place, value: Array) -> None:
    wide = _as_words(value)
    memory[place.offset : place.offset + wide.nbytes] = wide.view(np.uint8)


def _as_words(value: Array) -> Array:
    """Return values as the module holds them: 32 or 64 bits, predicates as masks."""
    if value.dtype.kind == "b":
        return np.where(value, np.int32(-1), np.int32(0))
    if value.dtype == np.float16:
        return value.view(np.uint16).astype(np.uint32)
    if value.dtype.itemsize < 4:
        return value.astype(np.int32)
    return np.ascontiguousarray(value)


class _Everyone:
    """All warps of a batch, as special registers and constant banks see them."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.mask = np.ones((1, 1, 1), dtype=bool)
        self.rows = np.arange(batch.rows)

    def of_rows(self, value: Array) -> Array:
        return value


def bring_batch(memory: Array, place: BatchMemory, batch: Batch, watched: Collection[int]) -> None:
    """Copy a batch's warps, shared and local memory into linear memory."""
    made = place.made
    if not place.one_by_one:
        memory[place.sums_at : place.sums_at + place.rows * place.sum_bytes] = 0
    entries, blocks = place.entries(memory), place.placement.blocks
    entries[:, 0], entries[:, 1], entries[:, 2] = places_of(blocks, batch.launch.grid)
    entries[:, 3] = 0
    for block in watched:  # np.isin imports numpy.ma: 20 ms
        entries[blocks == block, 3] = 1
    end = place.warps_at + place.held * made.warp_bytes
    warps = memory[place.warps_at : end].reshape(place.held, made.warp_bytes)
    limits = memory[layout.SHARED_LIMIT : layout.SHARED_LIMIT + 8].view(np.int32)
    dynamic = batch.launch.dynamic_shared_bytes
    limits[:] = batch.program.addressable_shared(dynamic), dynamic
    if not place.one_by_one:
        _bring_warps(place, batch, warps)
        return
    key = batch.launch, place.warps_at, place.sums_at, place.local_at, place.shared_at
    if made.begun is not None and made.begun[0] == key:
        warps[:] = made.begun[1]
        return
    _bring_warps(place, batch, warps)
    if warps.nbytes <= MOST_BEGUN_BYTES:
        made.begun = key, warps.copy()


def _bring_warps(place: BatchMemory, batch: Batch, warps: Array) -> None:
    """Copy the initial state of warps."""
    made, words, number = place.made, warps.view(np.int32), np.arange(place.held)
    # A warp that begins again takes its row of the next block.
    words[:, layout.ROW // 4] = number - place.held
    words[:, layout.SUMS // 4] = place.sums_at + number * place.sum_bytes
    words[:, layout.LOCAL // 4] = place.local_at + number * 32 * place.local_bytes
    words[:, layout.SHARED // 4] = place.shared_at + number // place.warps * place.shared_step
    if made.cluster_at:
        words[:, made.cluster_at // 4] = number // place.warps % place.cluster
    lanes = _bits(batch.splits.mask[0])
    words[:, layout.LANES // 4] = np.tile(lanes, place.held // place.warps)
    group: Any = _Everyone(batch)  # folded, these are the warps of a block
    for pc, at in made.specials.items():
        value = values.special_value(group, batch.program.instructions[pc])
        if value.shape[1] not in (1, len(warps)):
            value = np.tile(value, (1, len(warps) // value.shape[1], 1))
        _bring(warps, at, value)


def _bits(lanes: Array) -> Array:
    """Return lanes as bits, the first the lowest."""
    return np.packbits(lanes, axis=-1, bitorder="little").view(np.int32)[..., 0]


def _bring(warps: Array, at: Place, value: Array) -> None:
    """Copy a register of all warps."""
    if value.dtype != at.dtype:
        same = value.dtype.itemsize == at.dtype.itemsize and "b" not in (
            value.dtype.kind,
            at.dtype.kind,
        )
        value = value.view(at.dtype) if same else value.astype(at.dtype)
    rows = len(warps)
    full = np.ascontiguousarray(np.broadcast_to(value[0], (rows, 32)))
    if at.dtype.kind == "b":
        warps[:, at.offset : at.offset + 4] = _bits(full).reshape(rows, 1).view(np.uint8)
        return
    words = _as_words(full)
    size = 256 if is_wide(at.dtype) else 128
    warps[:, at.offset : at.offset + size] = words.view(np.uint8).reshape(rows, size)
