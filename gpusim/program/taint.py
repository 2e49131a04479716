"""Forward taint: the registers and the memory that depend on the elements of some arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from operator import or_
from typing import NamedTuple

import numpy as np

from gpusim.host.kept import MOST_KEPT, once
from gpusim.isa.ops import ANY_ARRAY, BULK_STORE, OPS, Instruction, Program
from gpusim.program.dataflow import solve
from gpusim.program.flow import all_blocks, all_successors
from gpusim.program.uses import bits, read_bits, written_bits
from gpusim.typing import Array


def data_dependent_lines(program: Program, arrays: Set[str]) -> list[int]:
    """Return the lines with control flow or addresses that elements of some arrays decide."""
    return list(_decided(program, frozenset(arrays)))


@lru_cache(maxsize=MOST_KEPT)
def _decided(program: Program, arrays: frozenset[str]) -> tuple[int, ...]:
    rows = program.instructions
    lines = {
        row.line
        for row, tainted in zip(rows, _tainted(program, arrays), strict=True)
        if bits(_deciding(row)) & tainted and not OPS[row.op].only_describes
    }
    return tuple(sorted(lines))


def tainted_registers(program: Program, arrays: Set[str]) -> Sequence[int]:
    """Return, as bits, the registers that elements of some arrays decide, by instruction.

    They also reach registers by way of memory, wherever the store of one of them stands.
    """
    return _tainted(program, frozenset(arrays))


@lru_cache(maxsize=MOST_KEPT)
def _tainted(program: Program, places: frozenset[str]) -> Sequence[int]:
    while True:
        taint = _Taint(program, places)
        held = taint.by_instruction()
        stored = places.union(*taint.stored(held))
        if stored == places:
            return held
        places = stored


class _Taint:
    """Taint of registers by the memory in some places.

    A store to a register clears its taint: compilers reuse registers. So does a store to bytes of
    the stack at a known place (spilled registers), which have bits after those of registers.
    """

    def __init__(self, program: Program, places: Set[str]) -> None:
        self._rows = program.instructions
        self._places = places
        self._following, self._blocks = all_successors(program), all_blocks(program)
        self._reads, self._writes = list(read_bits(program)), list(written_bits(program))
        self._spills = frozenset(stack_slots(program))
        self._add_stack(program)
        self._loads = [
            OPS[row.op].reads_memory
            and row.memory is not None
            and row.memory.may_touch(places)
            and not row.memory.is_barrier_word
            for row in self._rows
        ]

    def _add_stack(self, program: Program) -> None:
        """Enter the stack bytes that instructions read and write; unknown addresses read any."""
        slots = stack_slots(program)
        if not slots:
            return
        lowest = min(slot.start for slot in slots.values())
        every = sum(
            {1 << program.registers + at - lowest for slot in slots.values() for at in slot}
        )
        for pc, row in enumerate(self._rows):
            if row.memory is None or not row.memory.may_touch(("local",)):
                continue
            slot = slots.get(pc)
            held = every if slot is None else bits(program.registers + at - lowest for at in slot)
            if OPS[row.op].reads_memory:
                self._reads[pc] |= held
            elif slot is not None:
                self._writes[pc] |= held

    def by_instruction(self) -> list[int]:
        """Return, as bits, the tainted registers that each instruction finds."""
        at_begin = solve(dict.fromkeys(self._blocks, 0), self._onward, or_)
        return [held for begin in self._blocks for held in self._through(begin, at_begin[begin])[0]]

    def stored(self, held: Sequence[int]) -> Iterator[frozenset[str]]:
        """Yield the places that instructions write with tainted operands."""
        for pc, row in enumerate(self._rows):
            if OPS[row.op].kind == "bulk_copy" and self._places:
                yield frozenset([ANY_ARRAY if row.op == BULK_STORE else "shared"])
            if not OPS[row.op].writes_memory or row.memory is None or pc in self._spills:
                continue
            if self._reads[pc] & held[pc] or self._loads[pc]:
                yield row.memory.places

    def _onward(self, begin: int, held: int) -> Iterator[tuple[int, int]]:
        left = self._through(begin, held)[1]
        return ((target, left) for target in self._following[self._blocks[begin][-1]])

    def _through(self, begin: int, held: int) -> tuple[list[int], int]:
        """Return the tainted registers before each instruction of a block, and at its end."""
        found, clean = [], _Clean()
        for pc in self._blocks[begin]:
            row = self._rows[pc]
            here = held & ~clean.known(row)
            is_tainted = self._loads[pc] or bool(self._reads[pc] & here)
            held = clean.after(row, held, self._writes[pc], is_tainted=is_tainted)
            found.append(here)
        return found, held


class _Clean:
    """Registers, as bits, without taint for the lanes with a guard that is on."""

    def __init__(self) -> None:
        self._known: dict[tuple[int | None, bool], int] = {}

    def known(self, row: Instruction) -> int:
        """Return the ones of an instruction's lanes."""
        return self._known.get((row.guard, row.negated), 0)

    def after(self, row: Instruction, held: int, written: int, *, is_tainted: bool) -> int:
        """Enter an instruction's results; return the taint after it, of any of the lanes."""
        guard = row.guard, row.negated
        self._known = {
            key: known & ~written for key, known in self._known.items() if key[0] not in row.dst
        }
        if is_tainted:
            return held | written
        if row.guard is None:
            return held & ~written
        if row.guard not in row.dst:
            self._known[guard] = self._known.get(guard, 0) | written
        return held


def _deciding(row: Instruction) -> Iterator[int]:
    """Yield the registers that decide an instruction's target or its addresses."""
    op = OPS[row.op]
    if row.guard is not None:
        yield row.guard
    if op.access:
        yield from row.src[:1]
    if op.kind == "bank":
        yield from row.src


# Compilers spill registers to the stack, and reload them from the same bytes.
TRIES = np.array([1 << 20, 1 << 21], np.uint32)  # trial stack pointers: sums with them differ alike


class _Place(NamedTuple):
    """A value as a sum of a register that is set once and a number; of no register, the number."""

    base: int | None
    values: Array


@once
def stack_slots(program: Program) -> Mapping[int, range]:
    """Return, by pc, the bytes of each access to the stack at a known distance from its pointer.

    Those of one pointer alone: where there are several, of the one with most accesses.
    """
    places = _places(program)
    found: dict[int, tuple[int, range]] = {}
    for pc, row in enumerate(program.instructions):
        memory = row.memory
        if memory is None or memory.space != "local" or not memory.by_address or not row.src:
            continue
        place = places.get(row.src[0])
        if place is not None and place.base is not None:
            begin = int(place.values.view(np.int32)[0]) + memory.offset
            found[pc] = place.base, range(begin, begin + memory.width_bytes)
    bases = Counter(base for base, _ in found.values()).most_common(1)
    return {pc: bytes_of for pc, (base, bytes_of) in found.items() if base == bases[0][0]}


def _places(program: Program) -> dict[int, _Place]:
    """Return the registers that are set once, to a number or to a sum with a constant."""
    rows = program.instructions
    written = Counter(register for row in rows for register in row.dst)
    found = {
        register: _Place(None, np.full(2, value).astype(np.uint32))
        for register, value in program.immediates.items()
        if np.asarray(value).dtype.kind in "iu"
    }
    for row in rows:
        if row.guard is None and len(row.dst) == 1 and written[row.dst[0]] == 1:
            place = _result(row, found)
            if place is not None:
                found[row.dst[0]] = place
    return found


def _result(row: Instruction, places: Mapping[int, _Place]) -> _Place | None:
    """Return the result of an instruction, if it is one register plus constants."""
    op = OPS[row.op]
    if op.kind == "bank" and not row.src:
        return _Place(row.dst[0], TRIES)
    if op.evaluate is None or not all(register in places for register in row.src):
        return None
    sources = [places[register] for register in row.src]
    bases = {one.base for one in sources} - {None}
    if len(bases) > 1:
        return None
    made = op.evaluate(row, *(one.values.reshape(1, 1, 2) for one in sources))
    values = np.asarray(made[0] if isinstance(made, tuple) else made).reshape(-1)
    if values.dtype.kind not in "iu":
        return None
    values = np.broadcast_to(values, (2,)).astype(np.uint32)
    base = next(iter(bases), None)
    moved = 0 if base is None else int(TRIES[1] - TRIES[0])
    return _Place(base, values) if int(values[1]) - int(values[0]) == moved else None
