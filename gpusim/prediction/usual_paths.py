"""Quotients, roots and sines of numbers that are not given: they take their usual path.

nvcc's code asks of each whether its operands are ordinary: normal, their result as well, of a sine
below 105,615. Else it goes a way of its own, a function of the compiler's or some rows. Where
arrays have no elements nobody knows, and nearly all numbers are ordinary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from gpusim.isa import OPS, Instruction, Program
from gpusim.once import Same
from gpusim.prediction.streams.missing import held_unknown, without_elements
from gpusim.prepared import Prepared

# Functions that are called for operands that are not ordinary; those of 64-bit integers are not.
_SLOW_CALL = re.compile(r"CALL\.REL\S* `\(\$\S*__cuda_sm\w*(?:slowpath|mediumpath|full)")
# Sines and cosines of large angles are reduced bit by bit.
_LARGE_ANGLE = re.compile(r"FSETP\.GE\.AND P\d, PT, \|\S+\|(?:\.reuse)?, 105615, PT")
LONGEST_WAY = 16  # rows from a branch to a call that it is there for: they only move operands


def with_usual_paths(prepared: Prepared) -> Prepared:
    """Return a launch in which elements that are not given are taken for ordinary numbers."""
    without = without_elements(prepared)
    if not without:
        return prepared
    return replace(prepared, program=_decided(Same(prepared.program), without))


@lru_cache(maxsize=64)
def _decided(same: Same, without: frozenset[str]) -> Program:
    program = same.program
    unusual = dict(_unusual(program))
    if not unusual:
        return program
    held = held_unknown(program, without)
    never = program.registers  # a register that is false
    rows = list(program.instructions)
    for pc, is_taken in unusual.items():
        guard = rows[pc].guard
        if guard is not None and held[pc] >> guard & 1:
            rows[pc] = _never(rows[pc], never) if is_taken else _always(rows[pc])
    return replace(
        program,
        instructions=tuple(rows),
        registers=never + 1,
        immediates={**program.immediates, never: np.bool_(False)},
    )


def _never(row: Instruction, false: int) -> Instruction:
    return replace(row, guard=false, negated=False)


def _always(row: Instruction) -> Instruction:
    return replace(row, guard=None, negated=False)


def _unusual(program: Program) -> Iterator[tuple[int, bool]]:
    """Yield branches with an unusual way, and whether it is the one that they jump to."""
    written: dict[int, Instruction] = {}
    for pc, row in enumerate(program.instructions):
        if row.guard is not None and OPS[row.op].kind == "branch":
            asks = written.get(row.guard)
            if _SLOW_CALL.search(row.text) or _calls_slowly(program, row.target):
                yield pc, True
            elif _calls_slowly(program, pc + 1):
                yield pc, False
            elif asks is not None and _LARGE_ANGLE.search(asks.text):
                yield pc, not row.negated
        written.update(dict.fromkeys(row.dst, row))


def _calls_slowly(program: Program, first: int) -> bool:
    """Return whether a way leads straight to a call for operands that are not ordinary."""
    for row in program.instructions[first : first + LONGEST_WAY]:
        if _SLOW_CALL.search(row.text):
            return row.guard is None
        if row.memory is not None or OPS[row.op].redirects or OPS[row.op].kind == "branch":
            return False
    return False
