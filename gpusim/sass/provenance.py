"""Provenance of addresses: the array of an access, by the pointer its address derives from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpusim.isa.ops import Instruction
from gpusim.program.dataflow import solve

# Where a pointer came from: a constant bank and an offset in it.
Origin = tuple[int, int]
NONE: frozenset[Origin] = frozenset()


def named(
    instructions: Sequence[Instruction],
    constants: Mapping[int, Origin],
    pointers: Mapping[Origin, str],
) -> Iterator[Instruction]:
    """Yield the instructions with the names of the arrays that they access.

    `constants` are the registers that hold words of constant banks, `pointers` the names of
    arrays by the place of their addresses there. An access without a name is one to any of the
    arrays that its address may derive from; to any array, if none is known.
    """
    origins = _origins(instructions, constants, pointers)
    for instruction in instructions:
        memory = instruction.memory
        if memory is not None and not memory.name:
            names = {pointers[origin] for origin in origins.get(instruction.src[0], NONE)}
            one = names.pop() if len(names) == 1 else memory.name
            memory = replace(memory, name=one, among=frozenset(names))
            instruction = replace(instruction, memory=memory)
        yield instruction


def _origins(
    instructions: Sequence[Instruction],
    constants: Mapping[int, Origin],
    pointers: Mapping[Origin, str],
) -> dict[int, frozenset[Origin]]:
    """Return the pointers that each register was made from."""
    made: dict[int, set[Origin]] = defaultdict(set)
    for register, origin in constants.items():
        made[register] |= {origin} & pointers.keys()
    results: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for instruction in instructions:
        if _reads_bank(instruction):
            for register in instruction.dst:
                made[register].update(_in_bank(instruction, pointers))
        elif instruction.memory is None:
            for register in instruction.src:
                results[register].append(instruction.dst)

    def onward(
        register: int, origins: frozenset[Origin]
    ) -> Iterator[tuple[int, frozenset[Origin]]]:
        return ((one, origins) for written in results[register] for one in written)

    first = {register: frozenset(origins) for register, origins in made.items() if origins}
    return solve(first, onward, frozenset.union)


def _reads_bank(instruction: Instruction) -> bool:
    """Return whether an instruction loads words of a constant bank."""
    detail = instruction.detail
    is_bank = isinstance(detail, tuple) and detail[:1] == ("bank",)
    return is_bank and instruction.memory is None


def _in_bank(instruction: Instruction, pointers: Mapping[Origin, str]) -> Iterator[Origin]:
    """Yield the pointers among the words that an instruction loads from a constant bank."""
    bank, offset, *_ = instruction.detail[1]
    for number in range(len(instruction.dst)):
        if (bank, offset + 4 * number) in pointers:
            yield bank, offset + 4 * number
