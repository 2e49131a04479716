"""The control-flow graph of a `Program`: successors, basic blocks, loops.

It is the same for the programs of both generators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Program
from gpusim.program import dataflow
from gpusim.program.jumps import known_jumps


@once
def successors(program: Program) -> list[tuple[int, ...]]:
    """Return the successors of each pc; none after an exit."""
    following = []
    for pc, instruction in enumerate(program.instructions):
        op = OPS[instruction.op]
        onward: tuple[int, ...] = (pc + 1,) if pc + 1 < len(program.instructions) else ()
        if op.leaves and instruction.guard is None:
            onward = ()
        following.append((instruction.target, *onward) if op.kind == "branch" else onward)
    return following


@once
def has_computed_jumps(program: Program) -> bool:
    """Return whether the program has jumps to addresses in registers."""
    known = known_jumps(program)
    kinds = (OPS[instruction.op].kind for instruction in program.instructions)
    return any(kind == "jump" and pc not in known for pc, kind in enumerate(kinds))


@once
def all_successors(program: Program) -> list[Sequence[int]]:
    """Return the successors of each pc: any pc after a jump to an unknown address."""
    anywhere, known = range(len(program.instructions)), known_jumps(program)
    found: list[Sequence[int]] = []
    for pc, onward in enumerate(successors(program)):
        row = program.instructions[pc]
        kind = OPS[row.op].kind
        if kind == "jump":
            found.append((*known[pc], *onward) if pc in known else anywhere)
        else:
            found.append((row.target, *onward) if kind == "branch_if_apart" else onward)
    return found


def leaders(following: Sequence[Iterable[int]]) -> list[int]:
    """Return where the basic blocks of code begin, in order; `following` are its successors."""
    found = {0}
    for pc, targets in enumerate(map(tuple, following)):
        if targets != (pc + 1,):
            found.update((*targets, pc + 1))
    return sorted(pc for pc in found if pc < len(following))


def blocks(following: Sequence[Iterable[int]]) -> dict[int, range]:
    """Return the basic blocks of code by their first pc, in order."""
    begins = leaders(following)
    ends = [*begins[1:], len(following)]
    return {begin: range(begin, end) for begin, end in zip(begins, ends, strict=True)}


@once
def all_blocks(program: Program) -> dict[int, range]:
    """Return the basic blocks of a program, each instruction's own where any may follow another."""
    return blocks(all_successors(program))


def reachable(program: Program, pc: int) -> set[int]:
    """Return the pcs that a lane may reach after the instruction at `pc`."""
    return dataflow.reachable(
        range(pc + 1, len(program.instructions))[:1], successors(program).__getitem__
    )


@once
def loop_bodies(program: Program) -> list[range]:
    """Return the body of each loop, in the order of the branches back."""
    return [
        range(instruction.target, pc + 1)
        for pc, instruction in enumerate(program.instructions)
        if OPS[instruction.op].kind == "branch" and 0 <= instruction.target <= pc
    ]
