"""Tests for special operands, in the compiler's powers, logarithms and sines.

Where arrays have no elements, a test gets an ordinary number instead: a finite and positive one, of
a usual size, that equals no constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Instruction, Program, as_detail_says
from gpusim.program.dataflow import reachable
from gpusim.program.uses import users

ORDINARY = np.uint32(0x3F333333)  # 0.7, or the upper word of a double of 0.0003
MAGNITUDE, INFINITE = 0x7FFFFFFF, 0x7F800000
# Bounds of libdevice's fast paths: of a sine's angle, 105,615; of the upper word of the operand of
# a double's exponential; of a logarithm's operand, all finite and positive numbers.
BOUNDS: Mapping[str, frozenset[int]] = {
    "bits.FSETP": frozenset((0x47CE4780, 0x4086232B)),
    "bits.ISETP": frozenset((0x7F800000, 0x7FEFFFFF)),
}
PACKED = "bits.P2R"  # predicates as the bits of a number, to be unpacked later
EQUALITIES = (".EQ.", ".EQU.", ".NE.", ".NEU.")


def with_ordinary_operands(program: Program, held: Sequence[int]) -> Program:
    """Return a program with an ordinary number in its tests for special operands.

    `held` has, as bits, the tainted registers at each instruction. A test is unchanged if it
    affects memory, or more than a path through arithmetic.
    """
    rows, ordinary = list(program.instructions), program.registers
    read_at, signs = users(program.instructions), set(_signs(program))
    for pc, row in enumerate(rows):
        if not (_is_odd(program, row) or pc in signs) or not held[pc] >> row.src[0] & 1:
            continue
        if _only_guides(program, read_at, row):
            rows[pc] = replace(row, src=(ordinary, *row.src[1:]))
    if rows == list(program.instructions):
        return program
    return replace(
        program,
        instructions=tuple(rows),
        registers=ordinary + 1,
        immediates={**program.immediates, ordinary: ORDINARY},
    )


def answers(program: Program) -> Mapping[int, bool]:
    """Return the predicates that follow from constants alone, by register."""
    writers = Counter(register for row in program.instructions for register in row.dst)
    known: dict[int, Any] = dict(program.immediates)
    for row in program.instructions:
        is_fixed = row.guard is None and known.keys() >= set(row.src)
        if OPS[row.op].evaluate is not as_detail_says or not is_fixed:
            continue
        found = as_detail_says(row, *(np.array([known[register]]) for register in row.src))
        results = found if isinstance(found, tuple) else (found,)
        for register, result in zip(row.dst, results, strict=True):
            if writers[register] == 1:
                known[register] = np.ravel(result)[0]
    return {register: bool(is_so) for register, is_so in known.items() if is_so.dtype == bool}


def _is_odd(program: Program, row: Instruction) -> bool:
    """Return whether a row tests for a special operand."""
    bound = _constant(program, row)
    if bound is None:
        return False
    if bound in BOUNDS[row.op] or row.op != "bits.FSETP":
        return bound in BOUNDS[row.op]
    return bound & MAGNITUDE == INFINITE or any(name in row.text for name in EQUALITIES)


def _constant(program: Program, row: Instruction) -> int | None:
    """Return the bits of the constant that a number is compared with; None where it is none."""
    if row.op not in BOUNDS or row.src[1] not in program.immediates:
        return None
    return int(program.immediates[row.src[1]])


def _signs(program: Program) -> Iterator[int]:
    """Yield the tests of a power for the sign of its base: no NaN, and equal to no constant.

    In the comparison with infinity a NaN counts as beyond it.
    """
    tests = set[int]()
    for pc, row in enumerate(program.instructions):
        if _is_odd(program, row) or (OPS[row.op].sets_predicate and tests & set(row.src)):
            tests.update(row.dst)
        if row.guard not in tests or not _passes_by(program, pc):
            continue
        asked = set[int]()
        for place in range(pc + 1, row.target):
            test = program.instructions[place]
            bound = _constant(program, test)
            if bound == INFINITE and ".GTU." in test.text:
                asked.add(test.src[0])
            elif bound == 0 and test.src[0] in asked:
                yield place


def _only_guides(program: Program, read_at: Mapping[int, list[int]], row: Instruction) -> bool:
    """Return whether a test's result only guards calculations, or branches around them."""
    rows = program.instructions

    def results(register: int) -> Iterator[int]:
        for pc in read_at[register]:
            if register in rows[pc].src:
                yield from rows[pc].dst

    return all(
        _guides(program, pc, is_source=register in rows[pc].src)
        for register in reachable([row.dst[0]], results)
        for pc in read_at[register]
    )


def _guides(program: Program, pc: int, *, is_source: bool) -> bool:
    """Return whether an instruction makes a predicate of a register, or is guarded by it."""
    row = program.instructions[pc]
    op = OPS[row.op]
    if is_source:
        return not op.issued or op.sets_predicate or row.op == PACKED
    return op.only_describes or _passes_by(program, pc)


def _passes_by(program: Program, pc: int) -> bool:
    """Return whether a row is a forward branch over calculations alone."""
    row = program.instructions[pc]
    between = program.instructions[pc + 1 : row.target]
    return row.op == "BRA" and pc < row.target and all(map(_calculates, between))


def _calculates(row: Instruction) -> bool:
    """Return whether a row neither accesses shared data nor synchronises."""
    is_own = row.memory is not None and row.memory.space == "local"
    return is_own or OPS[row.op].is_pure
