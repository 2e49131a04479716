"""What decides: the registers and memory on which control flow and addresses depend.

All others hold data. They are what a kernel computes, but change nothing of how it runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.program.memoisation import once


@dataclass(frozen=True)
class Decisions:
    """Registers that decide, and the memory (arrays by name, or "shared") that they come from."""

    registers: frozenset[int]
    memory: frozenset[str]


@once
def decisions(program: Program) -> Decisions:
    """Return what decides in a program, found backwards from guards and addresses."""
    registers: set[int] = set()
    memory: set[str] = set()
    for instruction in program.instructions:
        registers |= _decides_here(instruction)
    size = -1
    while size != len(registers) + len(memory):
        size = len(registers) + len(memory)
        for instruction in program.instructions:
            if not registers.isdisjoint(instruction.dst):
                registers |= {*instruction.src, *_guard(instruction)}
                if OPS[instruction.op].reads_memory and instruction.memory is not None:
                    memory |= instruction.memory.places
            found = instruction.memory
            if found is not None and OPS[instruction.op].writes_memory and found.may_touch(memory):
                registers |= set(instruction.src)
    return Decisions(frozenset(registers), frozenset(memory))


def _guard(instruction: Instruction) -> set[int]:
    return set() if instruction.guard is None else {instruction.guard}


def _decides_here(instruction: Instruction) -> set[int]:
    """Return the registers on which it depends who runs an instruction, or what it touches."""
    op = OPS[instruction.op]
    found = set() if op.only_describes else _guard(instruction)
    if (op.access and instruction.src) or op.waits_for_lanes:
        found |= {instruction.src[0]}
    return found | set(instruction.src) if op.kind == "bank" else found
