"""One instruction, run once by one warp."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Execution:
    """One instruction run once by one warp (or by a converged part of its lanes).

    `occurrence` counts, from 0, how often this warp ran this pc before: the iteration of a
    loop. Sequences of 32 are by lane. `addresses` are byte addresses from the start of the
    array `array` (`element_bytes` an element, `width_bytes` a lane's access), -1 for lanes that
    are off and None for instructions that access no memory; `banks` likewise, for shared memory.
    `taken` are the lanes that take a branch, or have a true condition of the source (op
    ".IF") is true; `sources` are the source lanes of a shuffle. `wavefronts` and `least_wavefronts`
    are for shared memory, `sectors` for global memory.
    """

    pc: int
    line: int
    op: str
    warp: int
    occurrence: int
    active: tuple[bool, ...]
    on: tuple[bool, ...]
    space: str | None = None
    array: str | None = None
    element_bytes: int = 0
    width_bytes: int = 0
    addresses: tuple[int, ...] | None = None
    banks: tuple[int, ...] | None = None
    wavefronts: int = 0
    least_wavefronts: int = 0
    sectors: int = 0
    taken: tuple[bool, ...] | None = None
    sources: tuple[int, ...] | None = None
