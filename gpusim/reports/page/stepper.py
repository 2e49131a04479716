"""The data of a page's stepper: a block's steps as plain data, as short as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Program, text_of
from gpusim.tracing.block_steps import BlockStep, BlockSteps, WarpPart, Written
from gpusim.tracing.records import Trace

MOST_CHARACTERS = 700_000
WORD_BYTES, WORD_BITS, WORD_MASK = 4, 32, 0xFFFFFFFF
DOUBLE_BYTES = 8
MOST_WORDS = 2048


def stepper_document(kept: BlockSteps, trace: Trace, most: int = MOST_CHARACTERS) -> dict[str, Any]:
    """Return a block's steps for the page's script, cut where they grow beyond `most` characters.

    `code` has line and text of each pc, and the type of its shared memory accesses. A step is
    pc, barrier interval, warps and written values. Warps with equal steps are one entry: first and
    last warp, then the lanes active, on and taken as the bits of a number, then the address in
    shared memory of each lane that is on. A written value is byte, width and bits, as a signed
    number, and as text where JSON's numbers have too few bits. `types` are the types that occur.
    """
    assert kept.program is not None
    program = kept.program
    types = _types(program, trace.arrays)
    steps: list[Any] = []
    room = most
    for step in kept.steps:
        entry = _step(step, program, types.get(step.pc, ""))
        room -= len(str(entry))
        if room < 0:
            break
        steps.append(entry)
    return {
        "threads": trace.launch.threads_per_block,
        "words": _words(kept.steps[: len(steps)]),
        "code": [
            [one.line, text_of(one, program.immediates), types.get(pc, "")]
            for pc, one in enumerate(program.instructions)
        ],
        "types": sorted(set(types.values())),
        "is_typed": not program.compiler,
        "steps": steps,
        "whole": len(steps) == len(kept.steps) and kept.is_complete,
    }


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


def _step(step: BlockStep, program: Program, kind: str) -> list[Any]:
    instruction = program.instructions[step.pc]
    warps = [
        [first.warp, last.warp, *facts]
        for first, last, facts in _alike([(part, _facts(part)) for part in step.warps])
    ]
    written: list[list[Any]] = []
    if step.written and instruction.memory is not None:
        wide = kind and np.dtype(kind).itemsize > instruction.memory.dtype.itemsize
        elements = _bits_of(step.written, instruction.memory.dtype)
        written = _joined(elements) if wide else elements
    return [step.pc, step.interval, warps, written, OPS[instruction.op].access]


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
