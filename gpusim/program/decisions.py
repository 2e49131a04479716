"""Decisions: the backward slice of control flow and addresses, as registers and memory.

All other registers are data: they do not affect control flow or addresses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Instruction, Memory, Program
from gpusim.program.dataflow import reachable
from gpusim.program.fast_paths import slow_paths
from gpusim.program.uses import reads

Place = int | str  # a register, or memory by the name of its array or space


@dataclass(frozen=True)
class Decisions:
    """Registers that decide, and the memory (arrays by name, or "shared") that they come from."""

    registers: frozenset[int]
    memory: frozenset[str]


@once
def decisions(program: Program) -> Decisions:
    """Return the backward slice of a program's guards and addresses, through memory."""
    return _slice(program, frozenset())


def _slice(program: Program, without: Set[int]) -> Decisions:
    """Return the backward slice of guards and addresses of all rows but some."""
    writers: dict[int, list[Instruction]] = defaultdict(list)
    stores: list[tuple[Memory, Instruction]] = []
    first: set[Place] = set()
    for pc, row in enumerate(program.instructions):
        if pc not in without:
            first |= _decides_here(row)
        for register in row.dst:
            writers[register].append(row)
        if OPS[row.op].writes_memory and row.memory is not None:
            stores.append((row.memory, row))

    def before(place: Place) -> Iterator[Place]:
        if isinstance(place, str):
            for memory, row in stores:
                if memory.may_touch((place,)):
                    yield from row.src
            return
        for row in writers[place]:
            yield from reads(row)
            if OPS[row.op].reads_memory and row.memory is not None:
                yield from row.memory.places

    found = reachable(first, before)
    return Decisions(
        frozenset(place for place in found if isinstance(place, int)),
        frozenset(place for place in found if isinstance(place, str)),
    )


@once
def undecisive_parameters(program: Program) -> tuple[tuple[int, int], ...]:
    """Return the words of bank 0 with parameters outside the slice, as (offset, bytes).

    Slow paths of divisions and the like do not count. A kernel that finds its parameters at
    computed places has none.
    """
    layout = program.layout
    if layout is None or layout.images:
        return ()
    held, read = _slice(program, slow_paths(program)).registers, set[tuple[int, int]]()
    for row in program.instructions:
        if OPS[row.op].kind == "bank":
            bank, offset = row.detail[1][:2]
            if row.src and not bank:
                return ()
            read |= {(bank, (offset & ~3) + 4 * k) for k, one in enumerate(row.dst) if one in held}
    read |= {word for register, word in program.constants.items() if register in held}
    return tuple(
        (begin, min(4, offset + size - begin))
        for _, offset, size in layout.parameters
        for begin in range(offset, offset + size, 4)
        if (0, begin & ~3) not in read
    )


def _decides_here(instruction: Instruction) -> set[int]:
    """Return the registers that determine an instruction's active lanes or addresses."""
    op = OPS[instruction.op]
    found = set[int]()
    if instruction.guard is not None and not op.only_describes:
        found.add(instruction.guard)
    if (op.access and instruction.src) or op.waits_for_lanes:
        found.add(instruction.src[0])
    return found | set(instruction.src) if op.kind == "bank" else found


@once
def deciding_lines(program: Program) -> dict[int, int]:
    """Return, by pc of each guarded instruction and each branch, the line of its condition.

    The condition is the comparison that wrote the guard last before it, in the order of the code;
    for a loop-carried guard, the last one in the code.
    """
    writers: dict[int, list[int]] = {}
    for pc, row in enumerate(program.instructions):
        for register in row.dst:
            writers.setdefault(register, []).append(pc)
    found = {}
    for pc, row in enumerate(program.instructions):
        if row.guard is None or not OPS[row.op].issued:
            continue
        known = writers.get(row.guard, [])
        before = [writer for writer in known if writer < pc]
        if known:
            writer = before[-1] if before else known[-1]
            found[pc] = program.instructions[writer].line or row.line
    return found
