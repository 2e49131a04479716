"""The data of a page's stepper: a block's steps as plain data, as short as possible."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.isa.ops import OPS, Instruction, Program, text_of
from gpusim.tracing.block_steps import BlockStep, BlockSteps, WarpPart, Written
from gpusim.tracing.execution import Execution
from gpusim.tracing.records import Trace

MOST_CHARACTERS = 400_000  # of all steppers of a page
MOST_OF_REGISTERS = 200_000  # of one, beside its steps
WORD_BYTES, WORD_BITS, WORD_MASK = 4, 32, 0xFFFFFFFF
DOUBLE_BYTES = 8
MOST_OF_A_NUMBER = 2**53  # JSON's numbers are doubles
MOST_WORDS = 2048
DESTINATION = re.compile(r"(?P<kind>U?[RP])(?P<number>\d+|T|Z)")
CACHED = ("global", "local")

Executions = Mapping[tuple[int, int, int], Execution]  # by pc, warp and occurrence


def stepper_document(kept: BlockSteps, trace: Trace, most: int = MOST_CHARACTERS) -> dict[str, Any]:
    """Return a block's steps for the page's script, cut where they grow beyond `most` characters.

    `code` has line and text of each pc, the type of its shared memory accesses, the bytes that a
    lane accesses, and name, type and bytes of its results. A step is pc, barrier interval, warps,
    written values, the kind of access, and results. Warps with equal steps are one entry: first and
    last warp, then the lanes active, on and taken as the bits of a number, then the address in
    shared memory of each lane that is on, then the units and the ideal units of the access:
    wavefronts of shared memory, sectors of memory behind the L1; 0 and 0 where there is none.
    A written value is byte, width and bits, as a signed number, and as text where JSON's numbers
    have too few bits. Results are by warp: its number, then of each result such bits: one number
    for all lanes, the first and a difference, or a number for each lane; 0 in place of all where
    there was no room. `types` are the types that occur, `registers` the names of results.
    """
    assert kept.program is not None
    program = kept.program
    types = _types(program, trace.arrays)
    results = _results(kept)
    executions = {(one.pc, one.warp, one.occurrence): one for one in trace.executions}
    seen: dict[tuple[int, int], int] = {}
    steps: list[Any] = []
    room, room_of_results = most, min(most, MOST_OF_REGISTERS)
    for step in kept.steps:
        entry = _step(step, program, types.get(step.pc, ""), executions, seen)
        room -= len(str(entry))
        if room < 0:
            break
        values = [[part.warp, *map(_encoded, part.results)] for part in step.warps if part.results]
        room_of_results -= len(str(values))
        steps.append([*entry, values if room_of_results >= 0 else 0])
    return {
        "threads": trace.launch.threads_per_block,
        "words": _words(kept.steps[: len(steps)]),
        "code": [
            [
                one.line,
                text_of(one, program.immediates),
                types.get(pc, ""),
                _width_bytes(one.memory),
                results.get(pc, []),
            ]
            for pc, one in enumerate(program.instructions)
        ],
        "registers": sorted({name for one in results.values() for name, *_ in one}, key=_order),
        "types": sorted(set(types.values())),
        "is_typed": not program.compiler,
        "steps": steps,
        "whole": len(steps) == len(kept.steps) and kept.is_complete,
    }


def _results(kept: BlockSteps) -> dict[int, list[list[Any]]]:
    """Return by pc the name, the type and the width in bytes of each result that was kept."""
    assert kept.program is not None
    found: dict[int, list[list[Any]]] = {}
    for step in kept.steps:
        values = step.warps[0].results
        if step.pc in found or not values:
            continue
        types = [one.dtype for one in values]
        names = result_names(
            kept.program.instructions[step.pc], [kind.kind == "b" for kind in types]
        )
        found[step.pc] = [
            [name, _shown_type(kind), max(WORD_BYTES, kind.itemsize)]
            for name, kind in zip(names, types, strict=True)
        ]
    return found


def _shown_type(kind: np.dtype[Any]) -> str:
    """Return the type that a register is read as: words of machine code are signed numbers."""
    return {"b": "int32", "u": f"int{8 * kind.itemsize}"}.get(kind.kind, kind.name)


def _order(name: str) -> tuple[str, int]:
    """Return the sort key of a register: its file, then its number."""
    file = name.rstrip("0123456789")
    return file, int(name[len(file) :] or 0)


def result_names(instruction: Instruction, are_predicates: Sequence[bool]) -> list[str]:
    """Return the names of an instruction's results, as its text has them.

    A disassembler writes the first register of several. It writes destinations first: predicates,
    of which PT is thrown away, and one register.
    """
    if not instruction.text:
        return [f"R{register}" for register in instruction.dst]
    words = instruction.text.split()
    operands = " ".join(words[2 if words[0].startswith("@") else 1 :]).split(", ")
    predicates: list[str] = []
    register, first, is_found = "R", 0, False
    for operand in operands:
        found = DESTINATION.fullmatch(operand)
        is_register = found is not None and found["kind"].endswith("R")
        if found is None or (is_register and is_found):
            break
        if is_register:
            is_found = True
            register, first = found["kind"], int(found["number"]) if found["number"] != "Z" else 0
        elif found["number"].isdigit():
            predicates.append(operand)
    others = (f"{register}{first + place}" for place in range(len(are_predicates)))
    left = iter(predicates)
    return [next(left, "P") if one else next(others) for one in are_predicates]


def _encoded(values: Any) -> Any:
    """Return a register's lanes as signed bits: one number, first and difference, or all."""
    width = values.dtype.itemsize
    if width < WORD_BYTES:
        bits = values.astype(np.int32).tolist()
    else:
        bits = values.view(f"i{width}").tolist()
    if width == DOUBLE_BYTES and any(abs(one) > MOST_OF_A_NUMBER for one in bits):
        return [str(one) for one in bits]
    first, step = bits[0], bits[1] - bits[0]
    if all(one == first for one in bits):
        return first
    if all(one == first + place * step for place, one in enumerate(bits)):
        return [first, step]
    return bits


def _width_bytes(memory: Any) -> int:
    return 0 if memory is None else memory.count * memory.dtype.itemsize


def _types(program: Program, arrays: Mapping[str, str]) -> Mapping[int, str]:
    """Return by pc the element type of each shared memory access."""
    if program.compiler:
        from gpusim.sass.value_types import shared_types

        return shared_types(program, arrays)
    return {
        pc: one.memory.dtype.name
        for pc, one in enumerate(program.instructions)
        if one.memory is not None and one.memory.space == "shared"
    }


def _step(
    step: BlockStep,
    program: Program,
    kind: str,
    executions: Executions,
    seen: dict[tuple[int, int], int],
) -> list[Any]:
    instruction = program.instructions[step.pc]
    parts = []
    for part in step.warps:
        occurrence = seen.get((step.pc, part.warp), 0)
        seen[step.pc, part.warp] = occurrence + 1
        units = _units(executions.get((step.pc, part.warp, occurrence)))
        parts.append((part, [*_facts(part), *units]))
    warps = [[first.warp, last.warp, *facts] for first, last, facts in _alike(parts)]
    written: list[list[Any]] = []
    if step.written and instruction.memory is not None:
        wide = kind and np.dtype(kind).itemsize > instruction.memory.dtype.itemsize
        elements = _bits_of(step.written, instruction.memory.dtype)
        written = _joined(elements) if wide else elements
    return [step.pc, step.interval, warps, written, OPS[instruction.op].access]


def _units(execution: Execution | None) -> tuple[int, int]:
    """Return the wavefronts or sectors of an access, and the fewest for the bytes requested."""
    if execution is None or execution.addresses is None:
        return 0, 0
    if execution.space == "shared":
        return execution.wavefronts, execution.least_wavefronts
    if execution.space not in CACHED:
        return 0, 0
    distinct = len({address for address in execution.addresses if address >= 0})
    return execution.sectors, -(-distinct * execution.width_bytes // SECTOR_BYTES)


def _bits_of(written: Sequence[Written], dtype: np.dtype[Any]) -> list[list[Any]]:
    """Return byte, width and bits of elements, these as a signed number."""
    values = np.array([one.value for one in written], dtype)
    bits = values.view(f"i{dtype.itemsize}").tolist()
    return [
        [one.address, one.width_bytes, number if dtype.itemsize < DOUBLE_BYTES else str(number)]
        for one, number in zip(written, bits, strict=True)
    ]


def _joined(words: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return words with two that lie in a place of 8 bytes made one element."""
    left = {address: [address, width, bits] for address, width, bits in words}
    for address in sorted(left):
        high = left.get(address + WORD_BYTES)
        if address % DOUBLE_BYTES == 0 and high is not None:
            low = left[address][2] & WORD_MASK
            left[address] = [address, DOUBLE_BYTES, str((high[2] << WORD_BITS) | low)]
            del left[address + WORD_BYTES]
    return list(left.values())


def _facts(part: WarpPart) -> list[Any]:
    places = None if part.addresses is None else [a for a in part.addresses if a >= 0]
    taken = None if part.taken is None else _bits(part.taken)
    return [_bits(part.active), _bits(part.on), taken, places]


def _alike(
    parts: Sequence[tuple[WarpPart, list[Any]]],
) -> list[tuple[WarpPart, WarpPart, list[Any]]]:
    """Return runs of consecutive warps with equal steps as (first, last, step)."""
    keyed = [(part.warp - place, facts, part) for place, (part, facts) in enumerate(parts)]
    found = []
    for (_, facts), group in groupby(keyed, key=lambda one: (one[0], one[1])):
        members = [part for _, _, part in group]
        found.append((members[0], members[-1], facts))
    return found


def _bits(lanes: Sequence[bool]) -> int:
    return sum(1 << lane for lane, is_set in enumerate(lanes) if is_set)


def _words(steps: Sequence[BlockStep]) -> int:
    """Return how many words of shared memory are drawn: up to the last that anything touches."""
    ends = [0]
    for step in steps:
        ends += [w.address + w.width_bytes for w in step.written]
        for part in step.warps:
            ends += [a + WORD_BYTES for a in part.addresses or () if a >= 0]
    return min(MOST_WORDS, -(-max(ends) // WORD_BYTES))
