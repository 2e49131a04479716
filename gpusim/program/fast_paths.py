"""Fast paths: quotients, roots and powers of unknown numbers have ordinary operands.

nvcc's code tests the operands of each: normal numbers with a normal result, or two 64-bit integers
that fit in 32 bits, take the fast path in place. Others take a slow path, a function of the
compiler's or some rows. Of arrays without elements the operands are unknown; nearly all numbers are
ordinary. Tests of integers may also be left to the machine, where unknown elements are zero: `x | 1
<< 40` does not fit in 32 bits, whatever x is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.program.dataflow import reachable
from gpusim.program.flow import successors
from gpusim.program.special_operands import answers, with_ordinary_operands
from gpusim.program.taint import data_dependent_lines, tainted_registers

# Slow paths' functions. The ones of 64-bit integers are also called without a test, where a
# divisor is known to be large.
_SLOW_CALL = re.compile(r"CALL\.REL\S* `\(\$\S*__cuda_sm\w*(?:slowpath|mediumpath|full|_[su]64)")
_OF_INTEGERS = re.compile(r"_[su]64\)")
_FUNCTION = re.compile(r"CALL\.REL\S* `\(\$\S*__(?:cuda_sm|internal_)")  # any of the compiler's
LONGEST_WAY = 16  # rows from a branch to a call that it is there for: they only move operands


@lru_cache(maxsize=64)
def on_fast_paths(program: Program, without: frozenset[str], *, integers: bool = True) -> Program:
    """Return a program with the fast paths alone for data of the arrays `without` elements.

    Unless `integers`, it still tests whether 64-bit integers fit in 32 bits.
    """
    if not data_dependent_lines(program, without):
        return program
    held = tainted_registers(program, without)
    program = with_ordinary_operands(program, held)
    rows = list(program.instructions)
    unusual = {
        pc: is_taken
        for pc, is_taken in _unusual(program)
        if (guard := rows[pc].guard) is not None and held[pc] >> guard & 1
        if integers or not _is_of_integers(program, pc)
    }
    if not unusual:
        return program
    never = program.registers  # a register that is false
    for pc, is_taken in unusual.items():
        rows[pc] = _never(rows[pc], never) if is_taken else _always(rows[pc])
    return replace(
        program,
        instructions=tuple(rows),
        registers=never + 1,
        immediates={**program.immediates, never: np.bool_(False)},
    )


@once
def slow_path_branches(program: Program) -> frozenset[int]:
    """Return the branches to the compiler's slow paths, and those within their functions.

    They are no conditions of the source, although their line is the operation's.
    """
    rows = program.instructions
    return frozenset(pc for pc in slow_paths(program) if OPS[rows[pc].op].kind == "branch")


@once
def slow_paths(program: Program) -> frozenset[int]:
    """Return the rows of the compiler's functions, and the branches to slow paths."""
    found = {
        pc
        for pc, row in enumerate(program.instructions)
        if row.guard is not None
        and OPS[row.op].kind == "branch"
        and _calls_a_slow_path(program, pc, row)
    }
    return frozenset(found.union(*_functions(program).values()))


@once
def operation_lines(program: Program) -> tuple[int, ...]:
    """Return the source line of each instruction; of the compiler's functions, of their calls.

    The line tables have none for these functions. Where several lines call one, its instructions
    keep the line that the compiler lists.
    """
    lines = [row.line for row in program.instructions]
    calls: dict[int, set[int]] = {}
    for pc, called in _functions(program).items():
        for inner in called:
            calls.setdefault(inner, set()).add(lines[pc])
    outer = {pc: found for pc, found in calls.items() if len(found) == 1}
    for pc, found in outer.items():
        lines[pc] = next(iter(found))
    return tuple(lines)


def _functions(program: Program) -> dict[int, set[int]]:
    """Return the instructions of the compiler's functions, by the pcs of calls from other code."""
    rows, following = program.instructions, successors(program)

    def onward(pc: int) -> tuple[int, ...]:
        return () if OPS[rows[pc].op].leads_elsewhere else following[pc]

    found = {
        pc: reachable([row.target], onward)
        for pc, row in enumerate(rows)
        if _FUNCTION.search(row.text)
    }
    nested = {pc for called in found.values() for pc in called}
    return {pc: called for pc, called in found.items() if pc not in nested}


def _calls_a_slow_path(program: Program, pc: int, row: Instruction) -> bool:
    return bool(_SLOW_CALL.search(row.text)) or any(
        _calls_slowly(program, *ways) for ways in ((row.target, pc + 1), (pc + 1, row.target))
    )


@once
def branches_within_lines(program: Program) -> frozenset[int]:
    """Return the branches that decide about operands and arithmetic of their own line alone.

    Paths of a sine or a remainder for large operands are such, and short bodies of the source.
    """
    rows = program.instructions

    def is_own(line: int, pcs: range) -> bool:
        decided = [rows[pc] for pc in pcs if OPS[rows[pc].op].issued]
        return all(row.line == line and _computes(row) for row in decided)

    return frozenset(
        pc
        for pc, row in enumerate(rows)
        if row.guard is not None
        and OPS[row.op].is_branch
        and is_own(row.line, range(*sorted((pc + 1, row.target))))
    )


def _computes(row: Instruction) -> bool:
    """Return whether a row neither changes shared memory nor synchronises lanes."""
    op = OPS[row.op]
    is_own = row.memory is not None and row.memory.space == "local"
    return is_own or op.is_pure or op.access == "load" or op.kind == "bank"


def _never(row: Instruction, false: int) -> Instruction:
    return replace(row, guard=false, negated=False)


def _always(row: Instruction) -> Instruction:
    return replace(row, guard=None, negated=False)


def _unusual(program: Program) -> Iterator[tuple[int, bool]]:
    """Yield branches with an unusual path, and whether it is at their target."""
    known = answers(program)
    for pc, row in enumerate(program.instructions):
        if row.guard is not None and OPS[row.op].kind == "branch":
            if _SLOW_CALL.search(row.text) or _calls_slowly(program, row.target, pc + 1):
                yield pc, True
            elif _calls_slowly(program, pc + 1, row.target):
                yield pc, False
            elif row.guard in known:
                yield pc, known[row.guard] == row.negated


def _calls_slowly(program: Program, first: int, other: int) -> bool:
    """Return whether a path leads straight to a call for operands that are not ordinary.

    A call for integers counts only if the `other` path divides.
    """
    for row in program.instructions[first : first + LONGEST_WAY]:
        if _SLOW_CALL.search(row.text):
            is_asked = not _OF_INTEGERS.search(row.text) or _divides(program, other)
            return row.guard is None and is_asked
        if row.memory is not None or OPS[row.op].redirects or OPS[row.op].kind == "branch":
            return False
    return False


def _is_of_integers(program: Program, pc: int) -> bool:
    """Return whether a branch with an unusual path tests 64-bit integers."""
    rows = program.instructions
    for first in (pc, pc + 1, rows[pc].target):
        for row in rows[first : first + LONGEST_WAY]:
            if _SLOW_CALL.search(row.text):
                return _OF_INTEGERS.search(row.text) is not None
            if row is not rows[pc] and (OPS[row.op].redirects or OPS[row.op].kind == "branch"):
                break
    return False


def _divides(program: Program, first: int) -> bool:
    """Return whether there is a reciprocal on a path, up to where it joins another one."""
    for row in program.instructions[first:]:
        if OPS[row.op].redirects:
            return False
        if row.text.startswith("MUFU.RCP"):
            return True
    return False
