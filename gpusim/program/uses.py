"""Uses of registers, and backward slices: registers with all that they are computed from.

Both hold for a stretch of code in any order: the body of a loop, or a whole program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.program.dataflow import reachable


def reads(row: Instruction) -> tuple[int, ...]:
    """Return the registers that an instruction reads, its guard among them."""
    return row.src if row.guard is None else (*row.src, row.guard)


def bits(registers: Iterable[int]) -> int:
    """Return registers as the bits of a number."""
    found = 0
    for register in registers:
        found |= 1 << register
    return found


@once
def read_bits(program: Program) -> list[int]:
    """Return, as bits, the registers that each instruction reads."""
    return [bits(reads(row)) for row in program.instructions]


@once
def written_bits(program: Program) -> list[int]:
    """Return, as bits, the registers that each instruction writes."""
    return [bits(row.dst) for row in program.instructions]


def users(rows: Iterable[Instruction]) -> dict[int, list[int]]:
    """Return where each register is read, as a source or as a guard."""
    found: dict[int, list[int]] = defaultdict(list)
    for pc, row in enumerate(rows):
        for register in reads(row):
            found[register].append(pc)
    return found


class Slices:
    """Backward slices of a stretch of code: through the sources of instructions, not their guards.

    A loaded value depends on its address alone.
    """

    def __init__(self, rows: Sequence[Instruction]) -> None:
        self._sources: dict[int, set[int]] = defaultdict(set)
        for row in rows:
            for register in row.dst:
                self._sources[register].update(row.src)

    def of(self, registers: Iterable[int]) -> set[int]:
        """Return some registers with all that they are computed from."""
        return reachable(registers, self._before)

    def _before(self, register: int) -> Iterable[int]:
        return self._sources.get(register, ())


@once
def address_registers(program: Program) -> frozenset[int]:
    """Return the registers of which addresses are made, found backwards from all accesses."""
    found = {row.src[0] for row in program.instructions if row.memory is not None and row.src}
    size = -1
    while size != len(found):
        size = len(found)
        for row in program.instructions:
            if OPS[row.op].kind == "compute" and not found.isdisjoint(row.dst):
                found.update(row.src)
    return frozenset(found)
