"""What instructions touch: kinds and widths by pc, and the place of local memory."""

from __future__ import annotations

import numpy as np

from gpusim.gpu.memory import WORD_BYTES
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.events import Placement
from gpusim.prediction.streams.local_rows import LocalRows
from gpusim.typing import Array

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
