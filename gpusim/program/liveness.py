"""Liveness of a program's registers: the ones that are still read at each pc.

Registers are virtual, and sets of them are the bits of a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import or_
from typing import Protocol

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, VECTOR_TWINS, Instruction, Program
from gpusim.program.dataflow import solve
from gpusim.program.flow import all_successors, blocks, has_computed_jumps, successors
from gpusim.program.uses import bits, read_bits, written_bits


class Row(Protocol):
    """An instruction as far as its registers go."""

    @property
    def dst(self) -> tuple[int, ...]:
        """The registers that it writes."""

    @property
    def src(self) -> tuple[int, ...]:
        """The registers that it reads, its guard aside."""

    @property
    def guard(self) -> int | None:
        """The predicate that lets lanes take part."""

    @property
    def negated(self) -> bool:
        """Whether they take part where it is false."""


@once
def live(program: Program) -> tuple[list[int], list[int]]:
    """Return the registers that are live at each instruction, and after it.

    Jumps to an address in a register are assumed to be ends.
    """
    return _live_along(program, successors(program))


def _live_along(
    program: Program, following: Sequence[Sequence[int]]
) -> tuple[list[int], list[int]]:
    parts = blocks(following)
    constant = bits(program.immediates)
    within = under_one_guard(
        program.instructions[part.start : part.stop] for part in parts.values()
    )
    reads = [found & ~constant for found in read_bits(program)]
    for pc, register in program.mask_registers.items():
        reads[pc] |= bits((register,)) & ~constant
    kills = [
        bits(r for r in row.dst if row.guard is None or r in within) for row in program.instructions
    ]
    before: dict[int, list[int]] = {begin: [] for begin in parts}
    for begin, part in parts.items():
        for target in following[part[-1]]:
            before[target].append(begin)
    uses, ends = _effects(parts, reads, kills)

    def upward(begin: int, out: int) -> Iterable[tuple[int, int]]:
        into = uses[begin] | out & ~ends[begin]
        return [(one, into) for one in before[begin]]

    behind = solve(dict.fromkeys(reversed(parts), 0), upward, or_)
    into, out = [0] * len(reads), [0] * len(reads)
    for begin, part in parts.items():
        alive = behind[begin]
        for pc in reversed(part):
            out[pc] = alive
            alive = into[pc] = reads[pc] | alive & ~kills[pc]
    return into, out


def _effects(
    parts: dict[int, range], reads: Sequence[int], kills: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return each block's upward-exposed uses, and the registers that it kills."""
    uses, ends = {}, {}
    for begin, part in parts.items():
        read = ended = 0
        for pc in reversed(part):
            read = reads[pc] | read & ~kills[pc]
            ended |= kills[pc]
        uses[begin], ends[begin] = read, ended
    return uses, ends


def under_one_guard(parts: Iterable[Sequence[Row]]) -> set[int]:
    """Return the registers touched under one guard, within one of the blocks, and nowhere else.

    A write of one of them kills its value from before. A guard that is written is another one from
    there on.
    """
    guards: dict[int, tuple[int, int, bool] | None] = {}
    since: dict[int, int] = {}
    place = 0
    for part in parts:
        begin = place
        for row in part:
            guard, key = row.guard, None
            if guard is not None:
                key = max(begin, since.get(guard, 0)), guard, row.negated
            place += 1
            since.update(dict.fromkeys(row.dst, place))
            for register in (*row.dst, *row.src):
                guards[register] = key if guards.get(register, key) == key else None
    return {register for register, key in guards.items() if key is not None}


class Liveness:
    """The registers that are live at each pc of a program: found when first requested."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._sets: dict[int, frozenset[int]] = {}

    def is_live(self, register: int, pc: int) -> bool:
        """Return whether a register is read by the instruction at a pc, or after it."""
        if self._live is None:
            return True
        known = self._sets.get(pc)
        if known is None:
            alive = self._live[pc]
            known = frozenset(r for r in range(alive.bit_length()) if alive >> r & 1)
            self._sets[pc] = known
        return register in known

    @cached_property
    def _live(self) -> list[int] | None:
        """Live registers by pc; None where jumps lead to unknown places."""
        program = self._program
        if has_computed_jumps(program):
            return None
        return _live_along(program, all_successors(program))[0]


def live_registers(program: Program) -> list[int]:
    """Return the number of 32-bit registers in use after each instruction, its results included.

    Registers of the uniform datapath and predicates are not counted.
    """
    narrow = wide = 0
    for row, written in zip(program.instructions, written_bits(program), strict=True):
        width = _width(row)
        narrow, wide = narrow & ~written, wide & ~written  # the last write decides the width
        if width == 1:
            narrow |= written
        elif width == 2:
            wide |= written
    counts = []
    for written, behind in zip(written_bits(program), live(program)[1], strict=True):
        here = behind | written
        counts.append((here & narrow).bit_count() + 2 * (here & wide).bit_count())
    return counts


def _width(row: Instruction) -> int:
    """Return how many 32-bit registers a result takes."""
    dtype = row.dtype
    is_uniform = OPS[row.op].unit == "uniform" or row.op in VECTOR_TWINS
    if dtype is None or dtype.kind == "b" or is_uniform:
        return 0
    return 2 if dtype.itemsize == 8 else 1
