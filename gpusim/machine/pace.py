"""The time that instructions take, for launches whose warps run in the order of their clocks.

Times are in ticks. The machine only adds and compares them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpusim.isa.ops import OPS, Program
from gpusim.program.polling import polls, spins
from gpusim.typing import Array


@dataclass(frozen=True)
class Pacing:
    """How the instructions of a program take time, by pc.

    The results of `late` ones come after a latency, and an instruction `reads` such registers.
    Loads that `fetch` come later where they touch a line first, accesses that `keep` lines leave
    them where they are near. Blocks communicate through `seen` instructions: warps run these in the
    order of their clocks. Those that `spin` are the polls of loops with no other work.
    """

    reads: tuple[tuple[int, ...], ...]
    late: frozenset[int]
    fetch: tuple[int, ...]
    keep: frozenset[int]
    seen: frozenset[int]
    spin: frozenset[int]


@dataclass(frozen=True)
class Pace:
    """A program's `pacing`, with times by pc and those of a launch.

    The next instruction follows after `gaps`, results come after `latencies`; a fetch takes longer
    by `delays`, shaped (instructions that fetch, blocks). Blocks begin at `begin` and `turnover`
    after the end of another. A barrier opens `barrier` after its last warp has come, a parked poll
    is repeated `wake_after` the write of its word, and atomics on one word are served `apart`.
    """

    pacing: Pacing
    gaps: Array
    latencies: Array
    delays: Array
    begin: int
    turnover: int
    barrier: int
    wake_after: int
    apart: int


def even_pace(program: Program, blocks: int) -> Pace:
    """Return times of blocks whose instructions all take one tick, and all that they wait for."""
    words = places(program, polls(program))
    seen = frozenset(
        pc
        for pc, row in enumerate(program.instructions)
        if row.memory is not None
        and row.memory.space in ("global", "generic")
        and (OPS[row.op].kind == "atomic" or row.memory.may_touch(words))
    )
    count = len(program.instructions)
    none: frozenset[int] = frozenset()
    pacing = Pacing(((),) * count, none, (), none, seen, spins(program))
    ones = np.ones(count, np.int64)
    return Pace(pacing, ones, ones, np.zeros((0, blocks), np.int64), 0, 0, 0, 0, 0)


def places(program: Program, pcs: Iterable[int]) -> frozenset[str]:
    """Return the arrays that instructions may touch."""
    found = (program.instructions[pc].memory for pc in pcs)
    nothing: frozenset[str] = frozenset()
    return nothing.union(*(memory.places for memory in found if memory is not None))
