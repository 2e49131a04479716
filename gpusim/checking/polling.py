"""Loads that need no order: those that wait for a value, and those that only guess at one."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.isa import OPS, Instruction, Program


def polls(program: Program) -> frozenset[int]:
    """Return the pcs of loads and atomics for whose value a loop waits."""
    found: set[int] = set()
    for pc, instruction in enumerate(program.instructions):
        if OPS[instruction.op].kind == "branch" and 0 <= instruction.target <= pc:
            found |= _in_loop(program.instructions, instruction.target, pc)
    return frozenset(found)


def guesses(program: Program) -> frozenset[int]:
    """Return the pcs of loads of which a compare-and-swap sees whether they are still true."""
    rows = program.instructions
    swaps = [row for row in rows if OPS[row.op].kind == "atomic" and row.detail == "cas"]
    compared = _slice(
        rows, range(len(rows)), {register for row in swaps for register in row.src[1:2]}
    )
    arrays = {row.memory.name for row in swaps if row.memory is not None}
    return frozenset(
        pc
        for pc, row in enumerate(rows)
        if OPS[row.op].kind == "load"
        and row.memory is not None
        and row.memory.name in arrays
        and not compared.isdisjoint(row.dst)
    )


def _in_loop(instructions: Sequence[Instruction], head: int, last: int) -> set[int]:
    """Return those of one loop, whose body stands from its head to the branch back."""
    body = range(head, last + 1)
    guards = {
        guard
        for pc in body
        if (guard := instructions[pc].guard) is not None
        and OPS[instructions[pc].op].leaves
        and (pc == last or instructions[pc].target not in body)
    }
    deciding = _slice(instructions, body, guards)
    return {
        pc
        for pc in body
        if OPS[instructions[pc].op].reads_memory
        and not deciding.isdisjoint(instructions[pc].dst)
        and _stays(instructions, body, instructions[pc].src[:1])
    }


def _slice(instructions: Sequence[Instruction], body: range, of: set[int]) -> set[int]:
    """Return the registers on which others depend within a loop's body."""
    found, size = set(of), -1
    while size != len(found):
        size = len(found)
        for pc in body:
            if not found.isdisjoint(instructions[pc].dst):
                found.update(instructions[pc].src)
    return found


def _stays(instructions: Sequence[Instruction], body: range, address: tuple[int, ...]) -> bool:
    """Return whether an address is the same in every iteration."""
    found = _slice(instructions, body, set(address))
    written: set[int] = set()
    carried: set[int] = set()
    for pc in body:
        instruction = instructions[pc]
        if not found.isdisjoint(instruction.dst) or instruction.src[:1] == address:
            carried |= {r for r in instruction.src if r in found and r not in written}
        written.update(instruction.dst)
    return carried.isdisjoint(written)
