"""Control flow of a `Program`, however it was made: where instructions lead, what is live at each.

Registers are virtual; those of the uniform datapath and predicates are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from gpusim.isa.ops import OPS, VECTOR_TWINS, Instruction, Program
from gpusim.program.memoisation import once


def successors(program: Program) -> list[tuple[int, ...]]:
    """Return, for each pc, where a lane can go on; nowhere behind its exit."""
    following = []
    for pc, instruction in enumerate(program.instructions):
        op = OPS[instruction.op]
        onward: tuple[int, ...] = (pc + 1,) if pc + 1 < len(program.instructions) else ()
        if op.leaves and instruction.guard is None:
            onward = ()
        following.append((instruction.target, *onward) if op.kind == "branch" else onward)
    return following


def leaders(program: Program) -> list[int]:
    """Return where basic blocks begin, in order."""
    found = {0}
    for pc, targets in enumerate(successors(program)):
        if targets != (pc + 1,):
            found.update((*targets, pc + 1))
    return sorted(pc for pc in found if pc < len(program.instructions))


def loop_bodies(program: Program) -> Iterator[range]:
    """Yield the body of each loop, which stands from its head to the branch back."""
    for pc, instruction in enumerate(program.instructions):
        if OPS[instruction.op].kind == "branch" and 0 <= instruction.target <= pc:
            yield range(instruction.target, pc + 1)


def live_registers(program: Program) -> list[int]:
    """Return how many 32-bit registers each instruction leaves in use, with what it writes."""
    widths = _widths(program)
    live_out = _live_out(program)
    counts = []
    for instruction, live in zip(program.instructions, live_out, strict=True):
        here = {*live, *instruction.dst}
        counts.append(sum(widths.get(register, 0) for register in here))
    return counts


def _widths(program: Program) -> dict[int, int]:
    """Return how many 32-bit registers each of a program's registers takes; 0 for some."""
    widths: dict[int, int] = {}
    for instruction in program.instructions:
        for register in instruction.dst:
            widths[register] = _width(instruction)
    return widths


def _width(instruction: Instruction) -> int:
    dtype = instruction.dtype
    is_uniform = OPS[instruction.op].unit == "uniform" or instruction.op in VECTOR_TWINS
    if dtype is None or dtype.kind == "b" or is_uniform:
        return 0
    return 2 if dtype.itemsize == 8 else 1


class Liveness:
    """Which registers are still read at each pc of a program: found when first asked for."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def is_live(self, register: int, pc: int) -> bool:
        """Return whether a register is read by the instruction at a pc, or behind it."""
        return self._live is None or register in self._live[pc]

    @cached_property
    def _live(self) -> list[frozenset[int]] | None:
        """Live registers by pc; None where jumps lead to where registers say."""
        if any(OPS[instruction.op].leads_elsewhere for instruction in self._program.instructions):
            return None
        return _live(self._program)[0]


def _live_out(program: Program) -> list[frozenset[int]]:
    """Return the registers that are needed behind each instruction."""
    return _live(program)[1]


@once
def _live(program: Program) -> tuple[list[frozenset[int]], list[frozenset[int]]]:
    """Return the registers that are needed at each instruction, and behind it."""
    following = successors(program)
    within = _within_one_guard(program)
    reads = [_reads(program, instruction) for instruction in program.instructions]
    kills = [
        frozenset(r for r in i.dst if i.guard is None or r in within) for i in program.instructions
    ]
    nothing: frozenset[int] = frozenset()
    into, out = [nothing] * len(following), [nothing] * len(following)
    changed = True
    while changed:
        changed = False
        for pc in reversed(range(len(following))):
            out[pc] = nothing.union(*(into[target] for target in following[pc]))
            live = reads[pc] | (out[pc] - kills[pc])
            changed |= live != into[pc]
            into[pc] = live
    return into, out


def _reads(program: Program, instruction: Instruction) -> frozenset[int]:
    guard = () if instruction.guard is None else (instruction.guard,)
    return frozenset((*instruction.src, *guard)) - program.immediates.keys()


def _within_one_guard(program: Program) -> set[int]:
    """Return registers that only instructions with one guard, of one basic block, touch.

    A guard that is written is another one from there on.
    """
    begin = set(leaders(program))
    guards: dict[int, tuple[int, int, bool] | None] = {}
    since: dict[int, int] = {}
    block = 0
    for pc, instruction in enumerate(program.instructions):
        block = pc if pc in begin else block
        guard = instruction.guard
        known = block if guard is None else max(block, since.get(guard, 0))
        key = None if guard is None else (known, guard, instruction.negated)
        since.update(dict.fromkeys(instruction.dst, pc + 1))
        for register in (*instruction.dst, *instruction.src):
            guards[register] = key if guards.get(register, key) == key else None
    return {register for register, key in guards.items() if key is not None}
