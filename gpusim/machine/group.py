"""Groups of splits at one pc, and their access to registers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.isa.ops import Instruction
from gpusim.launch.choice import chosen
from gpusim.machine.state import Batch, bits_of_lanes
from gpusim.typing import Array


class BlocksDisagreeError(Exception):
    """Blocks of a folded batch take different paths at an instruction."""


class Group:
    """Splits of a batch at one pc: their indices, their rows and their lanes.

    The group's `pc` runs ahead of its splits' own, which is set when the group stops. A group of
    some rows keeps its copies of the registers it uses until it `settles`: values dead by then are
    never merged with the other rows.
    """

    def __init__(self, batch: Batch, which: Array) -> None:
        splits = batch.splits
        everyone = len(which) == len(splits)
        self.batch = batch
        self.which = which
        self.pc = int(splits.pc[which[0]])
        self.rows = splits.row if everyone else splits.row[which]
        self.is_all = len(which) == batch.rows and is_range(self.rows)
        self.mask = splits.mask if everyone else splits.mask.take(which, axis=1)
        self._count()
        self.is_gathered = False  # does not wait for further lanes at its first instruction
        # The last guard that was read, and its lanes: instructions in a row mostly share one.
        self._guarded: tuple[Array, bool, Array] | None = None
        self._held: dict[int, Array] = {}  # registers of some rows
        self._written: set[int] = set()  # the dirty ones, not yet in the batch

    def _count(self) -> None:
        self._lanes = np.count_nonzero(self.mask)
        self.is_full = self._lanes == self.mask.size

    def joined(self, others: Sequence[Group]) -> Group:
        """Return a group of the same rows with the lanes of further splits added."""
        whole = Group(self.batch, self.which)
        for other in others:
            whole.mask = whole.mask | other.mask
        whole._count()
        return whole

    @cached_property
    def has_whole_rows(self) -> bool:
        """Whether no two of the splits are of one warp."""
        ordered = np.sort(self.rows)
        return not (ordered[1:] == ordered[:-1]).any()

    def hold(self, state: int) -> None:
        """Let the group's splits wait at this instruction."""
        splits = self.batch.splits
        splits.pc[self.which] = self.pc
        splits.state[self.which] = state

    def lanes_on(self, instruction: Instruction) -> Array:
        """Return the lanes with a true predicate: the mask itself if all have."""
        if instruction.guard is None:
            return self.mask
        guard, negated = self.read(instruction.guard, np.bool_), instruction.negated
        known = self._guarded
        if known is None or known[0] is not guard or known[1] is not negated:
            known = self._guarded = guard, negated, self._of_mask(~guard if negated else guard)
        return known[2]

    def _of_mask(self, lanes: Array) -> Array:
        on = self.mask & lanes
        copies = len(on) // len(self.mask)
        return self.mask if np.count_nonzero(on) == self._lanes * copies else one_copy(on)

    def of_rows(self, value: Array) -> Array:
        """Return the group's rows of an array that has all rows, or one for all of them."""
        return value if self.is_all or value.shape[1] == 1 else value.take(self.rows, axis=1)

    def read(self, register: int, dtype: Any = np.int32) -> Array:
        """Return a register; zeros of `dtype` where nothing was written."""
        held = self._held.get(register)
        if held is not None:
            return held
        value = self.batch.registers[register]
        if value is None:
            return np.zeros((1, 1, 1), dtype=dtype)
        if self.is_all or value.shape[1] == 1:
            self.batch.private.discard(register)
            return value
        held = self._held[register] = value.take(self.rows, axis=1)
        return held

    def hold_register(self, register: int, value: Array) -> None:
        """Give a register of the group's rows a value that the batch does not have."""
        self._held[register] = value

    def sources(self, instruction: Instruction) -> list[Array]:
        """Return an instruction's sources."""
        dtype = np.int32 if instruction.dtype is None else instruction.dtype
        return [self.read(register, dtype) for register in instruction.src]

    def write(self, register: int, value: Array, on: Array) -> None:
        """Set a register for the lanes that are on."""
        everyone = self.is_full if on is self.mask else np.count_nonzero(on) == on.size
        if not self.is_all:
            old = value if everyone else self.read(register, value.dtype)
            self._held[register] = value if everyone else chosen(on, value, old)
            self._written.add(register)
            return
        registers = self.batch.registers
        before = registers[register]
        self.batch.private.discard(register)
        registers[register] = value if everyone or before is None else chosen(on, value, before)

    def settle(self) -> None:
        """Copy the registers that were written, and are live at the pc, to the batch."""
        batch = self.batch
        for register in self._written:
            if batch.liveness.is_live(register, self.pc):
                value, old = self._held[register], batch.registers[register]
                if old is None:
                    old = np.zeros((1, 1, 1), dtype=value.dtype)
                is_private = register in batch.private
                batch.registers[register] = self._among_all(old, value, in_place=is_private)
                batch.private.add(register)
        self._written.clear()

    def updated(self, old: Array, value: Array, on: Array) -> Array:
        """Return `old`, of all rows or one, with `value` in the lanes that are on."""
        if self.is_all:
            return chosen(on, value, old)
        return self._among_all(old, chosen(on, value, self.of_rows(old)))

    def _among_all(self, old: Array, mine: Array, *, in_place: bool = False) -> Array:
        """Return `old`, of all rows or one, with the group's own lanes.

        Changing it in place halves the time of a loop with few remaining warps.
        """
        copies = 1 if self.has_whole_rows else len(self.mask)
        whole = (max(len(old), len(mine), copies), self.batch.rows, 32)
        new = old if in_place and old.shape == whole else np.broadcast_to(old, whole).copy()
        if self.has_whole_rows:
            new[:, self.rows] = mine
            return new
        # Splits of one warp run together: each sets its own lanes of the same row.
        shape = (len(new), len(self.rows), 32)
        copy, split, lane = np.nonzero(np.broadcast_to(self.mask, shape))
        new[copy, self.rows[split], lane] = np.broadcast_to(mine, shape)[copy, split, lane]
        return new

    def decided(self, lanes: Array) -> Array:
        """Return, per split, whether a lane is in `lanes`; all blocks have to agree."""
        return agreed(np.asarray(bits_of_lanes(lanes) != 0))


def one_copy(lanes: Array) -> Array:
    """Return lanes as one copy if all blocks agree: values computed from them then are one too."""
    return lanes[:1] if len(lanes) > 1 and bool((lanes == lanes[:1]).all()) else lanes


def is_range(rows: Array) -> bool:
    """Return whether rows are 0, 1, 2 ... in order."""
    return not np.count_nonzero(rows != np.arange(len(rows)))


def agreed(outcome: Array) -> Array:
    """Return the common value of all copies; BlocksDisagreeError if they differ."""
    if len(outcome) > 1 and (outcome != outcome[:1]).any():
        raise BlocksDisagreeError
    first: Array = outcome[0]
    return first
