"""Floating-point sums by compare-and-swap: atomics in shared memory, or of a program's own.

A loop loads a number, adds to it and swaps the sum in, until no other thread was faster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.events import Step
from gpusim.typing import Array

SUMS: Mapping[str, type[np.floating[Any]]] = {
    "bits.FADD": np.float32, "bits.FFMA": np.float32, "bits.DADD": np.float64,
    "bits.DFMA": np.float64, "bits.HADD2": np.float16, "bits.HFMA2": np.float16,
}  # fmt: skip
PRODUCTS = ("FFMA", "DFMA", "HFMA2")


@once
def swapped_sums(program: Program) -> Mapping[int, int]:
    """Return the pc of the addition of each compare-and-swap of a sum, by the swap's pc."""
    makers: dict[int, list[int]] = defaultdict(list)
    rows = program.instructions
    for pc, row in enumerate(rows):
        for register in row.dst:
            makers[register].append(pc)
    found = {}
    for pc, row in enumerate(rows):
        if OPS[row.op].kind == "atomic" and row.detail == "cas":
            expected, swapped = _operands(row)
            made = makers[swapped[0]]
            is_one = len(made) == 1 and rows[made[0]].dst == swapped
            if is_one and len(row.dst) == len(expected) and _adds_to(rows[made[0]], expected):
                found[pc] = made[0]
    return found


def _operands(swap: Instruction) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the registers of the expected value and of the new one."""
    words = len(swap.src) // 2
    return swap.src[1 : 1 + words], swap.src[1 + words :]


def _adds_to(row: Instruction, expected: tuple[int, ...]) -> bool:
    """Return whether a row adds to a value: once, and not as a factor."""
    if row.op not in SUMS or row.src.count(expected[0]) != 1:
        return False
    return not row.op.endswith(PRODUCTS) or row.src[-len(expected) :] == expected


def with_addends(step: Step, row: Instruction) -> Step:
    """Return the step of a swap as that of an atomic sum by the lanes that have succeeded."""
    kind, read = np.dtype(SUMS[row.op]), step.registers
    if read is None or kind == np.float16:
        return step
    expected, _ = _operands(step.instruction)
    pairs = zip(step.instruction.dst, expected, strict=True)
    succeeded = reduce(np.logical_and, (read(old) == read(known) for old, known in pairs))
    evaluate = OPS[row.op].evaluate
    assert evaluate is not None
    zero = np.zeros((1, 1, 1), np.uint32)
    addend = evaluate(row, *(zero if one in expected else read(one) for one in row.src))
    before, added = _number([read(one) for one in expected], kind), _number(addend, kind)
    return step._replace(on=step.on & succeeded, before=before, added=added)


def _number(words: Any, kind: np.dtype[Any]) -> Array:
    """Return the number in one register or two."""
    words = [words] if isinstance(words, np.ndarray) else words
    return np.stack(np.broadcast_arrays(*words), axis=-1).view(kind)[..., 0]
