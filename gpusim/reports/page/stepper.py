"""What the stepper of a page is given: a block's steps as plain data, as short as may be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from gpusim.isa import OPS, text_of
from gpusim.tracing.block_steps import BlockStep, BlockSteps, WarpPart, Written

MOST_CHARACTERS = 700_000
WORD_BYTES = 4
MOST_WORDS = 2048


def stepper_document(kept: BlockSteps, threads: int, most: int = MOST_CHARACTERS) -> dict[str, Any]:
    """Return a block's steps for the page's script, cut where they grow beyond `most` characters.

    `code` has line and text of each pc. A step is pc, barrier interval, its warps and what it
    wrote. Warps that do the same are one entry: first and last, then lanes that are active, on
    and taken as the bits of a number, then where each lane that is on touches shared memory. What
    is written is byte, width and value.
    """
    assert kept.program is not None
    program = kept.program
    steps: list[Any] = []
    room = most
    for step in kept.steps:
        entry = _step(step, _kind(program.instructions[step.pc].op))
        room -= len(str(entry))
        if room < 0:
            break
        steps.append(entry)
    return {
        "threads": threads,
        "words": _words(kept.steps[: len(steps)]),
        "code": [[one.line, text_of(one, program.immediates)] for one in program.instructions],
        "steps": steps,
        "whole": len(steps) == len(kept.steps) and kept.is_complete,
    }


def _kind(op: str) -> str:
    """Return "load", "store" or "atomic" for what touches memory, else nothing."""
    return OPS[op].access


def _step(step: BlockStep, kind: str) -> list[Any]:
    warps = [
        [first.warp, last.warp, *facts]
        for first, last, facts in _alike([(part, _facts(part)) for part in step.warps])
    ]
    written = [[w.address, w.width_bytes, _text(w)] for w in step.written]
    return [step.pc, step.interval, warps, written, kind]


def _facts(part: WarpPart) -> list[Any]:
    places = None if part.addresses is None else [a for a in part.addresses if a >= 0]
    taken = None if part.taken is None else _bits(part.taken)
    return [_bits(part.active), _bits(part.on), taken, places]


def _alike(
    parts: Sequence[tuple[WarpPart, list[Any]]],
) -> list[tuple[WarpPart, WarpPart, list[Any]]]:
    """Return neighbours in number that do the same as first, last and what they do."""
    keyed = [(part.warp - place, facts, part) for place, (part, facts) in enumerate(parts)]
    found = []
    for (_, facts), group in groupby(keyed, key=lambda one: (one[0], one[1])):
        members = [part for _, _, part in group]
        found.append((members[0], members[-1], facts))
    return found


def _bits(lanes: Sequence[bool]) -> int:
    return sum(1 << lane for lane, is_set in enumerate(lanes) if is_set)


def _text(written: Written) -> str:
    value = written.value
    return f"{value:.6g}" if isinstance(value, float) else str(int(value))


def _words(steps: Sequence[BlockStep]) -> int:
    """Return how many words of shared memory are drawn: up to the last that anything touches."""
    ends = [0]
    for step in steps:
        ends += [w.address + w.width_bytes for w in step.written]
        for part in step.warps:
            ends += [a + WORD_BYTES for a in part.addresses or () if a >= 0]
    return min(MOST_WORDS, -(-max(ends) // WORD_BYTES))
