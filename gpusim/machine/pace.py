"""The time that instructions take, for launches whose warps run in the order of their clocks.

Times are in ticks. The machine only adds and compares them.
"""

from __future__ import annotations

from dataclasses import dataclass

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
