"""Blocks of a launch in several threads, where their results cannot depend on each other.

Each part of the blocks runs in its own instance, with a copy of the arrays; wasmtime releases the
interpreter's lock. Marks of sectors record the accesses of a part: if another part has written any
accessed sector, the results are discarded and the blocks run one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.host import fast
from gpusim.host.interrupts import stopped_by_signals
from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Program
from gpusim.machine.compiled import arrays
from gpusim.machine.compiled.instance import Instance
from gpusim.machine.compiled.kinds import HANDLED
from gpusim.machine.compiled.memory import BatchMemory
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.context import Context
from gpusim.machine.warps.accesses import ARRAY_BYTES, ARRAYS, MOST_ARRAYS
from gpusim.typing import Array

MOST_COPIED_BYTES = 32 << 20  # of arrays, for each thread but the first
# Warp instructions of blocks for threads to be worth it: 0.1 s one after the other.
LEAST_INSTRUCTIONS = 3_000_000


def threads(program: Program, made: Translation, size: int) -> int:
    """Return how many threads a launch may have, with these bytes of arrays.

    Atomics of global memory and accesses by generic address mark no sectors, and neither does code
    without counts.
    """
    if not made.touched or size > MOST_COPIED_BYTES:
        return 1
    return 1 if _has_unmarked(program) else fast.threads()


@once
def _has_unmarked(program: Program) -> bool:
    """Return whether a program has accesses to arrays without marks, or output."""
    accesses = ((OPS[row.op].kind, row.memory) for row in program.instructions)
    return any(
        kind in HANDLED
        or (
            memory is not None
            and (memory.space == "generic" or (kind == "atomic" and memory.space == "global"))
        )
        for kind, memory in accesses
    )


def instructions_each(instance: Instance, place: BatchMemory) -> float:
    """Return the mean count of a block's warp instructions, of blocks that have run."""
    made = place.made
    tables = place.entries(instance.memory)[:, 0]
    size = place.warps * place.sum_bytes
    held = instance.memory[place.sums_at :][: (int(tables[-1]) + 1) * size].view(np.int64)
    ran = held.reshape(-1, place.warps, place.sum_bytes // 8)[..., : 2 * len(made.starts) : 2]
    lengths = np.diff([*made.starts, made.length])
    return float((ran.sum(axis=1) @ lengths)[tables].mean())


@dataclass
class Part:
    """Some blocks, and the instance with their results."""

    instance: Instance
    place: BatchMemory

    def touched(self, made: Translation) -> tuple[Array, Array]:
        """Return the written sectors, and the accessed ones."""
        size, held = self.place.mark_bytes, self.instance.memory
        written, any_ = np.zeros((2, size), np.bool_)
        for number, key in enumerate(made.touched):
            marks = held[self.place.marks_at + number * size :][:size].view(np.bool_)
            any_ |= marks
            if key.access == "store":
                written |= marks
        return written, any_


def run_parts(
    parts: Sequence[Part],
    context: Context,
    step_limit: int,
    watched: Mapping[int, int],
    file: str,
) -> bool:
    """Run parts, the first of which then has all arrays; return False if one depends on another.

    Raises LeftError if NumPy has to run the blocks; arrays of NumPy stay as they are.
    """
    for part in parts:
        part.instance.bring(part.place, context, watched.keys())
    most_notes = max(watched.values(), default=0)

    def run(part: Part) -> None:
        with np.errstate(all="ignore"):
            part.instance.run(part.place, context, most_notes, step_limit, file)

    with stopped_by_signals(parts[0].instance.stop), ThreadPoolExecutor(len(parts)) as pool:
        for ended in [pool.submit(run, part) for part in parts]:
            ended.result()
    return _merged(parts)


def _merged(parts: Sequence[Part]) -> bool:
    """Merge written sectors into the arrays of the first part, unless a part depends on another."""
    made = parts[0].place.made
    found = [part.touched(made) for part in parts]
    all_written, all_touched = (np.zeros_like(one) for one in found[0])
    for written, touched in found:
        if (written & all_touched).any() or (touched & all_written).any():
            return False
        all_written |= written
        all_touched |= touched
    first = _sectors(parts[0])
    for part, (written, _) in zip(parts[1:], found[1:], strict=True):
        which = np.flatnonzero(written)
        first[which] = _sectors(part)[which]
        _stored(parts[0])[:] |= _stored(part)
    return True


def _sectors(part: Part) -> Array:
    """Return a part's arrays, sector by sector."""
    begin = arrays.arrays_begin(part.place.made)
    held = part.instance.memory[begin : begin + part.place.mark_bytes * SECTOR_BYTES]
    return held.reshape(-1, SECTOR_BYTES)


def _stored(part: Part) -> Array:
    """Return the arrays that a part has stored to."""
    table = part.instance.memory[ARRAYS:][: ARRAY_BYTES * MOST_ARRAYS]
    return table.view(np.int64).reshape(-1, 4)[:, 3]
