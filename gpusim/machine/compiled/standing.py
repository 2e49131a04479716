"""Warps of a batch that make no progress, as they lie in linear memory."""

from __future__ import annotations

import numpy as np

from gpusim.errors import KernelFault
from gpusim.isa.ops import OPS, Program
from gpusim.machine.compiled.memory import BatchMemory
from gpusim.machine.compiled.progress import PLACES
from gpusim.machine.no_progress import Standing, deadlock, livelock, too_long
from gpusim.machine.warps import state
from gpusim.program.loops import innermost
from gpusim.typing import Array


def standing(
    memory: Array, place: BatchMemory, program: Program, file: str, ran: str
) -> KernelFault:
    """Return the fault of warps that take turns and stand still: a deadlock, or endless loops.

    Loops that store seem to go on: they `ran` long, in a `file`.
    """
    made, blocks = place.made, place.placement.blocks
    ends = np.array([*made.starts[1:], made.length]) - 1
    found = []
    for row in range(place.rows):
        warp = memory[place.warps_at + row * made.warp_bytes :][: made.warp_bytes].view(np.uint32)
        for number in range(int(warp[0])):
            at = (state.SPLITS + state.SPLIT_BYTES * number) // 4
            block, lanes, kind = (int(word) for word in warp[at : at + 3])
            is_before = kind == state.READY or kind >= state.AT_WARP
            pc = made.starts[block] if is_before else int(ends[block])
            position = int(warp[made.keys_at // 4 + 2 * number])
            found.append((position, row, pc, kind, lanes.bit_count()))
    found.sort()
    if any(kind == state.READY for *_, kind, _ in found):
        pcs = [pc for _, _, pc, *_ in found]
        bodies = (innermost(program, pc) or () for pc in pcs)
        if any(OPS[program.instructions[at].op].kind == "store" for body in bodies for at in body):
            return too_long(program, pcs, blocks, file, ran)
        return livelock(program, pcs, blocks)
    return deadlock(
        program,
        [
            Standing(int(blocks[row // place.warps]), row % place.warps, lanes, pc, PLACES[kind])
            for _, row, pc, kind, lanes in found
        ],
    )
