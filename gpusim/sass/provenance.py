"""Provenance of addresses: the array of an access, by the pointer its address derives from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpusim.isa.ops import Instruction

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
    found: dict[int, frozenset[Origin]] = {
        register: frozenset([origin])
        for register, origin in constants.items()
        if origin in pointers
    }
    changed = True
    while changed:
        changed = False
        for instruction in instructions:
            made = _made_from(instruction, found, pointers)
            for register in instruction.dst if made else ():
                known = found.get(register, NONE)
                if not made <= known:
                    found[register] = known | made
                    changed = True
    return found


def _made_from(
    instruction: Instruction,
    found: Mapping[int, frozenset[Origin]],
    pointers: Mapping[Origin, str],
) -> frozenset[Origin]:
    if instruction.memory is not None:
        return NONE
    if isinstance(instruction.detail, tuple) and instruction.detail[:1] == ("bank",):
        bank, offset, *_ = instruction.detail[1]
        words = ((bank, offset + 4 * number) for number in range(len(instruction.dst)))
        return frozenset(word for word in words if word in pointers)
    return NONE.union(*(found.get(register, NONE) for register in instruction.src))
