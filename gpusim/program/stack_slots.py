"""Places on the stack: the bytes of local memory at a constant distance from the stack pointer.

Compilers spill registers there, and reload them from the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.typing import Array

TRIES = np.array([1 << 20, 1 << 21], np.uint32)  # trial stack pointers: sums with them differ alike


class _Place(NamedTuple):
    """A value as a sum of a register that is set once and a number; of no register, the number."""

    base: int | None
    values: Array


@once
def stack_slots(program: Program) -> Mapping[int, range]:
    """Return, by pc, the bytes of each access to the stack at a known distance from its pointer.

    Those of one pointer alone: where there are several, of the one with most accesses.
    """
    places = _places(program)
    found: dict[int, tuple[int, range]] = {}
    for pc, row in enumerate(program.instructions):
        memory = row.memory
        if memory is None or memory.space != "local" or not memory.by_address or not row.src:
            continue
        place = places.get(row.src[0])
        if place is not None and place.base is not None:
            begin = int(place.values.view(np.int32)[0]) + memory.offset
            found[pc] = place.base, range(begin, begin + memory.width_bytes)
    bases = Counter(base for base, _ in found.values()).most_common(1)
    return {pc: bytes_of for pc, (base, bytes_of) in found.items() if base == bases[0][0]}


def _places(program: Program) -> dict[int, _Place]:
    """Return the registers that are set once, to a number or to a sum with a constant."""
    rows = program.instructions
    written = Counter(register for row in rows for register in row.dst)
    found = {
        register: _Place(None, np.full(2, value).astype(np.uint32))
        for register, value in program.immediates.items()
        if np.asarray(value).dtype.kind in "iu"
    }
    for row in rows:
        if row.guard is None and len(row.dst) == 1 and written[row.dst[0]] == 1:
            place = _result(row, found)
            if place is not None:
                found[row.dst[0]] = place
    return found


def _result(row: Instruction, places: Mapping[int, _Place]) -> _Place | None:
    """Return the result of an instruction, if it is one register plus constants."""
    op = OPS[row.op]
    if op.kind == "bank" and not row.src:
        return _Place(row.dst[0], TRIES)
    if op.evaluate is None or not all(register in places for register in row.src):
        return None
    sources = [places[register] for register in row.src]
    bases = {one.base for one in sources} - {None}
    if len(bases) > 1:
        return None
    made = op.evaluate(row, *(one.values.reshape(1, 1, 2) for one in sources))
    values = np.asarray(made[0] if isinstance(made, tuple) else made).reshape(-1)
    if values.dtype.kind not in "iu":
        return None
    values = np.broadcast_to(values, (2,)).astype(np.uint32)
    base = next(iter(bases), None)
    moved = 0 if base is None else int(TRIES[1] - TRIES[0])
    return _Place(base, values) if int(values[1]) - int(values[0]) == moved else None
