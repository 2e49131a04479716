"""Matrix products of a warp, and the exchange between rows of matrices and their fragments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusim.isa import matrices
from gpusim.isa.ops import Instruction
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.typing import Array


def product(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Set the fragment of D to the product of those of A and B, and that of C added."""
    if instruction.guard is None or np.count_nonzero(on):
        made = matrices.product(instruction.detail, _words(group, instruction))
        _give(group, instruction, made, on)
    context.report(group, instruction, on)


def to_fragments(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Distribute matrix rows loaded by lanes to the fragments of all lanes."""
    count, transposed = instruction.detail
    words = _words(group, instruction)
    _give(group, instruction, matrices.from_rows(words, count, transposed=transposed), on)
    context.report(group, instruction, on)


def to_rows(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Give each lane the row that it is to store, out of the fragments of all."""
    _, transposed = instruction.detail
    words = _words(group, instruction)
    _give(group, instruction, matrices.to_rows(words, transposed=transposed), on)
    context.report(group, instruction, on)


def _words(group: Group, instruction: Instruction) -> list[Array]:
    return [group.read(register, np.uint32) for register in instruction.src]


def _give(group: Group, instruction: Instruction, results: Sequence[Array], on: Array) -> None:
    for register, value in zip(instruction.dst, results, strict=True):
        group.write(register, value, on)
