"""Kinds of a program's instructions, by pc: the meaning of the columns of an access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpusim.gpu.memory import WORD_BYTES
from gpusim.isa.ops import BULK_STORE, OPS, Instruction, Program
from gpusim.launch.events import Placement
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams.local_rows import LocalRows
from gpusim.typing import Array


@dataclass(frozen=True)
class KindsByPc:
    """Kinds of a program's instructions.

    `are_accesses` have columns of accesses to memory or to constants. `are_loads` load from global
    memory; `touch` instructions have sectors that may be touched again, of which `are_stores` write
    and `are_local` ones lie in local memory, with some of them twice; `are_local_without_rows` stay
    in the L1. Atomics on global memory that `add_up` lanes on one address pass once;
    `are_looked_up` load constants at offsets in registers; `are_barriers` wait for other warps or
    let them go on.
    """

    local: LocalRows
    are_accesses: Array
    are_loads: Array
    touch: Array
    are_stores: Array
    are_local: Array
    are_local_without_rows: Array
    add_up: Array
    are_looked_up: Array
    are_barriers: Array
    instructions: Sequence[Instruction]

    @classmethod
    def of(cls, prepared: Prepared, local: LocalRows, *, adds_up: bool) -> KindsByPc:
        """Return the kinds of a program's instructions."""
        rows = prepared.program.instructions
        kinds = [OPS[row.op].kind for row in rows]
        spaces = ["" if row.memory is None else row.memory.space for row in rows]
        kind, space = np.array(kinds), np.array(spaces)
        is_integer = np.array([r.memory is not None and r.memory.dtype.kind in "iu" for r in rows])
        is_load = np.array([row.is_load for row in rows])
        behind, own = space == "global", space == "local"
        plain = behind & np.isin(kind, ("load", "store"))
        are_copies = kind == "bulk_copy"
        are_looked_up = np.array(
            [k == "bank" and bool(r.src) for k, r in zip(kinds, rows, strict=True)]
        )
        return cls(
            local=local,
            are_accesses=are_looked_up
            | are_copies
            | np.array([bool(OPS[row.op].access) for row in rows]),
            are_loads=plain & is_load,
            touch=plain | (own & ~is_load & local.has),
            are_stores=kind == "store",
            are_local=own,
            are_local_without_rows=own & (not local.has),
            add_up=behind & (kind == "atomic") & is_integer & adds_up,
            are_looked_up=are_looked_up,
            are_barriers=np.isin(kind, ("barrier", "named_barrier", "arrive", "bulk_copy")),
            instructions=rows,
        )


LOAD, STORE, ATOMIC, PAST_L1, FENCE = range(5)
_KINDS = {"load": LOAD, "store": STORE, "atomic": ATOMIC}


class TouchKinds:
    """Kinds of touches and their widths in bytes by pc, 0 for instructions without a touch."""

    def __init__(self, program: Program, local: LocalRows) -> None:
        rows = program.instructions
        self._local = local
        self.are_fences = np.array([is_fence(row) for row in rows])
        self.kinds = np.where(self.are_fences, FENCE, 0).astype(np.int8)
        self.widths = np.zeros(len(rows), dtype=np.int32)
        self._are_local = np.zeros(len(rows), dtype=bool)
        for pc, row in enumerate(rows):
            found = row.memory
            if OPS[row.op].kind == "bulk_copy":
                self.kinds[pc] = STORE if row.op == BULK_STORE else PAST_L1
            if found is None or not (
                found.space == "global" or (found.space == "local" and local.has)
            ):
                continue
            self._are_local[pc] = found.space == "local"
            self.kinds[pc] = kind_of(row)
            self.widths[pc] = WORD_BYTES if self._are_local[pc] else found.width_bytes

    def begin_of(self, pc: Array, warp: Array, position: Array, placement: Placement) -> Array:
        """Return where the places of accesses begin: 0, or at the row of the warp in the grid."""
        are_local = self._are_local[pc]
        begin = np.zeros(len(pc), dtype=np.int64)
        if are_local.any():
            blocks = placement.blocks[position[are_local]]
            number = blocks * placement.warps_per_block + warp[are_local]
            begin[are_local] = self._local.begin_of(number)
        return begin


def is_fence(instruction: Instruction) -> bool:
    """Return whether an instruction is a fence between blocks."""
    return OPS[instruction.op].waits_for_memory and instruction.detail != "block"


def kind_of(instruction: Instruction) -> int:
    """Return the kind of touch of an instruction with an access to memory."""
    found, kind = instruction.memory, OPS[instruction.op].kind
    assert found is not None
    is_past_l1 = found.volatile and found.space == "global" and kind == "load"
    return PAST_L1 if is_past_l1 else _KINDS[kind]
