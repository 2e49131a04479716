"""Loads that need no order: those that wait for a value, and those that only guess at one."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.program.flow import loop_bodies
from gpusim.program.memoisation import once


@once
def polls(program: Program) -> frozenset[int]:
    """Return the pcs of loads and atomics for whose value a loop waits."""
    return frozenset(
        pc for body in loop_bodies(program) for pc in _polls_of(program.instructions, body)
    )


@once
def spins(program: Program) -> frozenset[int]:
    """Return the pcs of polls of loops that do nothing but wait for another block.

    Nothing that such a loop carries into its next iteration decides, and nothing in it but the
    polls themselves changes memory or meets others: as long as they find the same, it goes on.
    """
    rows = program.instructions
    found: set[int] = set()
    for body in loop_bodies(program):
        waiting = _polls_of(rows, body)
        deciding = _slice(rows, body, _guards_out(rows, body))
        if not _carried(rows, body, deciding) and all(
            _is_of_grid(rows[pc]) if pc in waiting else _is_quiet(rows[pc]) for pc in body
        ):
            found |= waiting
    return frozenset(found)


def optimistic_loads(program: Program) -> frozenset[int]:
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


def _polls_of(instructions: Sequence[Instruction], body: range) -> set[int]:
    """Return those of one loop."""
    deciding = _slice(instructions, body, _guards_out(instructions, body))
    return {
        pc
        for pc in body
        if OPS[instructions[pc].op].reads_memory
        and not deciding.isdisjoint(instructions[pc].dst)
        and _stays(instructions, body, instructions[pc].src[:1])
    }


def _guards_out(instructions: Sequence[Instruction], body: range) -> set[int]:
    """Return the registers that decide whether a loop is left."""
    return {
        guard
        for pc in body
        if (guard := instructions[pc].guard) is not None
        and OPS[instructions[pc].op].leaves
        and (pc == body[-1] or instructions[pc].target not in body)
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
    return not _carried(instructions, body, found, address)


def _carried(
    instructions: Sequence[Instruction],
    body: range,
    found: set[int],
    address: tuple[int, ...] | None = None,
) -> set[int]:
    """Return which of a slice's registers one iteration hands on to the next.

    Those that address memory by `address` are of the slice as well.
    """
    written: set[int] = set()
    carried: set[int] = set()
    for pc in body:
        instruction = instructions[pc]
        if not found.isdisjoint(instruction.dst) or instruction.src[:1] == address:
            carried |= {r for r in instruction.src if r in found and r not in written}
        written.update(instruction.dst)
    return carried & written


def _is_of_grid(instruction: Instruction) -> bool:
    """Return whether an access is one that other blocks may answer."""
    return instruction.memory is not None and instruction.memory.space in ("global", "generic")


def _is_quiet(instruction: Instruction) -> bool:
    """Return whether nobody else notices that an instruction was run."""
    op = OPS[instruction.op]
    return not op.writes_memory and op.kind != "barrier"
