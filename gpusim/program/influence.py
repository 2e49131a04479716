"""Influence of an argument: constants in comparisons with its values, and its addresses.

Values are tracked forwards through registers and memory, in any order of the instructions, but not
through comparisons.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.program.dataflow import reachable

Place = int | str  # a register, or memory by the name of its array or space


@dataclass(frozen=True)
class Influence:
    """Uses of an argument's values: loads, constants compared with them, and addresses.

    In a compiler's code the constants are words of 32 bits, of any type.
    """

    is_read: bool
    compared: tuple[np.generic, ...]
    in_addresses: bool


def influence(program: Program, name: str, *, is_array: bool) -> Influence:
    """Return the influence of a number, or of an array's elements, by the parameter's name."""
    rows, used = program.instructions, _users(program)
    loads = [row for row in rows if OPS[row.op].reads_memory and row.memory is not None]

    def onward(place: Place) -> Iterator[Place]:
        if isinstance(place, str):
            for row in loads:
                if row.memory is not None and row.memory.may_touch((place,)):
                    yield from row.dst
            return
        for row in used.get(place, ()):
            if not OPS[row.op].sets_predicate:
                yield from row.dst
            if OPS[row.op].writes_memory and row.memory is not None and place in row.src[1:]:
                yield from row.memory.places

    first: list[Place] = [name]
    if not is_array:
        words = _words(program, name)
        first = [one for row in rows if _fetches(row, name, words) for one in row.dst]
        first += [register for register, word in program.constants.items() if word in words]
    found = reachable(first, onward)
    registers = {place for place in found if isinstance(place, int)}
    compared: dict[Any, np.generic] = {}
    in_addresses = False
    for row in rows:
        if OPS[row.op].access and row.memory is not None and row.src[:1]:
            in_addresses |= row.src[0] in registers
        if OPS[row.op].sets_predicate and not registers.isdisjoint(row.src):
            for register in row.src:
                value = program.immediates.get(register)
                if value is not None and value.dtype.kind != "b":
                    compared[value.dtype.kind, value.item()] = value
    return Influence(bool(registers), tuple(compared.values()), in_addresses)


@once
def _users(program: Program) -> dict[int, list[Instruction]]:
    """Return the instructions with each register among their sources."""
    found: dict[int, list[Instruction]] = defaultdict(list)
    for row in program.instructions:
        for register in row.src:
            found[register].append(row)
    return found


def _fetches(row: Instruction, name: str, words: set[tuple[int, int]]) -> bool:
    """Return whether an instruction fetches a number that is passed, in some words of banks."""
    if not isinstance(row.detail, tuple) or len(row.detail) != 2:
        return False
    kind, what = row.detail
    return bool(what == name if kind == "param" else kind == "bank" and tuple(what[:2]) in words)


def _words(program: Program, name: str) -> set[tuple[int, int]]:
    """Return the words of constant banks with a parameter, as bank and offset."""
    known = () if program.layout is None else program.layout.parameters
    return {
        (0, offset + word)
        for one, offset, size in known
        if one == name
        for word in range(0, size, 4)
    }
