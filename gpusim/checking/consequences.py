"""Consequences of a race: an index, or a trip count, that depends on a racing word.

They are part of the race, and its message names their lines: fixing the race removes them, or shows
them as separate errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpusim.checking.findings import Finding
from gpusim.checking.sink import SCOPES
from gpusim.isa.ops import ANY_ARRAY, OPS, Instruction, Program
from gpusim.program.flow import loop_bodies
from gpusim.program.uses import Slices

# Rules of accesses at a wrong index, with their words after the lines of such accesses.
FOLLOWING = {"bounds": "out of bounds", "misaligned": "misaligned"}


def joined(found: Sequence[Finding], program: Program) -> tuple[Finding, ...]:
    """Return findings with the accesses that follow from a race in the race's message."""
    races = {one: _words_read(one, program) for one in found if one.rule in (*SCOPES, "copy-race")}
    following = [one for one in found if one.rule in FOLLOWING]
    if not following or not any(races.values()):
        return tuple(found)
    slices = Slices(program.instructions)
    owner = {}
    for one in following:
        deciding = slices.of(_deciding(one.lines, program))
        owner[one] = next((race for race in races if not deciding.isdisjoint(races[race])), None)
    return tuple(
        _with(one, [other for other in following if owner[other] is one])
        for one in found
        if owner.get(one) is None
    )


def _words_read(race: Finding, program: Program) -> set[int]:
    """Return the registers with the values that a race's accesses read."""
    lines = {place.line for place in race.places if place.does in ("reads", "updates")}
    return {
        register
        for pc, row in enumerate(program.instructions)
        if row.line in lines and OPS[row.op].reads_memory and _may_name(program, pc, race.array)
        for register in row.dst
    }


def _may_name(program: Program, pc: int, array: str) -> bool:
    """Return whether an access may be one to an array."""
    memory, known = program.instructions[pc].memory, program.accessed_arrays.get(pc)
    assert memory is not None
    name = memory.name if known is None else known.name
    return name in (array, ANY_ARRAY, "generic", "shared")


def _deciding(lines: Iterable[int], program: Program) -> list[int]:
    """Return the registers of the addresses in some lines, and of the counts of loops around."""
    rows, wanted = program.instructions, set(lines)
    places = {pc for pc, row in enumerate(rows) if row.line in wanted and row.memory is not None}
    counts = (
        register
        for body in loop_bodies(program)
        if not places.isdisjoint(body)
        for register in _counts(rows[body.start : body.stop])
    )
    return [*counts, *(register for pc in places for register in rows[pc].src[:1])]


def _counts(body: Sequence[Instruction]) -> Iterator[int]:
    """Yield the guards of a loop's ends that compare a counter: a `break` by data does not."""
    computing = [row for row in body if not OPS[row.op].access]
    slices = Slices(computing)
    ends = {row.guard for row in body if row.guard is not None and OPS[row.op].leaves}
    counters = {r for row in computing for r in row.dst if r in slices.of(row.src)}
    for guard in ends:
        if not slices.of([guard]).isdisjoint(counters):
            yield guard


def _with(race: Finding, following: Sequence[Finding]) -> Finding:
    """Return a race with the lines of the accesses that follow from it."""
    if not following:
        return race
    parts = []
    for rule, words in FOLLOWING.items():
        lines = sorted({line for one in following if one.rule == rule for line in one.lines})
        if lines:
            named = ", ".join(map(str, lines))
            parts.append(f"line{'s' * (len(lines) > 1)} {named} {words}")
    return replace(race, message=f"{race.message}; its value makes {' and '.join(parts)}")
