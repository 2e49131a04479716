"""The data of a page's stepper: a block's steps as plain data, as short as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.isa.ops import OPS, Program, text_of
from gpusim.tracing.block_steps import BlockStep, BlockSteps, WarpPart, Written
from gpusim.tracing.records import Execution, Trace

MOST_CHARACTERS = 500_000  # of all steppers of a page
WORD_BYTES, WORD_BITS, WORD_MASK = 4, 32, 0xFFFFFFFF
DOUBLE_BYTES = 8
MOST_WORDS = 2048
CACHED = ("global", "local")

Executions = Mapping[tuple[int, int, int], Execution]  # by pc, warp and occurrence


def stepper_document(kept: BlockSteps, trace: Trace, most: int = MOST_CHARACTERS) -> dict[str, Any]:
    """Return a block's steps for the page's script, cut where they grow beyond `most` characters.

    `code` has line and text of each pc, the type of its shared memory accesses, and the bytes that
    a lane accesses. A step is pc, barrier interval, warps, written values, and the kind of access.
    Warps with equal steps are one entry: first and last warp, then the lanes active, on and taken
    as the bits of a number, then the address in shared memory of each lane that is on, then the
    units and the ideal units of the access: wavefronts of shared memory, sectors of memory behind
    the L1; 0 and 0 where there is none. A written value is byte, width and bits, as a signed
    number, and as text where JSON's numbers have too few bits. `types` are the types that occur.
    """
    assert kept.program is not None
    program = kept.program
    types = _types(program, trace.arrays)
    executions = {(one.pc, one.warp, one.occurrence): one for one in trace.executions}
    seen: dict[tuple[int, int], int] = {}
    steps: list[Any] = []
    room = most
    for step in kept.steps:
        entry = _step(step, program, types.get(step.pc, ""), executions, seen)
        room -= len(str(entry))
        if room < 0:
            break
        steps.append(entry)
    return {
        "threads": trace.launch.threads_per_block,
        "words": _words(kept.steps[: len(steps)]),
        "code": [
            [
                one.line,
                text_of(one, program.immediates),
                types.get(pc, ""),
                _width_bytes(one.memory),
            ]
            for pc, one in enumerate(program.instructions)
        ],
        "types": sorted(set(types.values())),
        "is_typed": not program.compiler,
        "steps": steps,
        "whole": len(steps) == len(kept.steps) and kept.is_complete,
    }


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
