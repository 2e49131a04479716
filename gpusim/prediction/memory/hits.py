"""Where sectors come from: how much of what a grid fetches is found in L1 and L2.

It follows from what streams touch first and from the sizes of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpusim.memory import SECTOR_BYTES
from gpusim.prediction.measured import L2_ALL_HIT, L2_ALL_MISS
from gpusim.prediction.streams import Classes
from gpusim.prepared import Prepared


@dataclass(frozen=True)
class Source:
    """Where sectors come from that a block touches first: fractions of them.

    `l2_miss` of them come from DRAM, the others from the L2. For the first blocks on the SMs
    `first_l2_miss` are as late as DRAM: those that run together wait for one fetch. For later
    blocks `l1_hit` lie in the SM's L1, where an earlier one brought them.
    """

    l2_miss: float
    first_l2_miss: float = 1.0
    l1_hit: float = 0.0


@dataclass(frozen=True)
class Fetches:
    """What the grid fetches of an array: its size, and bytes by pc, each block's own counted."""

    size_bytes: float
    by_pc: dict[int, float]

    @property
    def total_bytes(self) -> float:
        """Bytes that are fetched, those that several blocks fetch counted as often."""
        return sum(self.by_pc.values())

    @property
    def distinct_bytes(self) -> float:
        """Bytes that are fetched at all."""
        return min(self.total_bytes, self.size_bytes)


@dataclass(frozen=True)
class Hits:
    """How `sms` that fetch find the caches: what an L1 has room for, and what the L2 lacks."""

    sms: int
    l1_room_bytes: int
    l2_miss: float

    def l1_hit(self, one: Fetches) -> float:
        """Return the fraction of an array's sectors that SMs fetch again and have in their L1s."""
        if one.size_bytes > self.l1_room_bytes:
            return 0.0
        return max(0.0, 1 - one.size_bytes * self.sms / one.total_bytes)


def fetches_of(prepared: Prepared, classes: Classes) -> list[Fetches]:
    """Return what blocks touch first of each array, in the order of the instructions."""
    instructions = prepared.program.instructions
    by_pc = np.zeros(len(instructions))
    for one in classes.classes:
        for warp in one.stream.warps:
            by_pc += one.blocks * np.bincount(
                warp.pc, weights=warp.times * warp.fresh, minlength=len(by_pc)
            )
    found: dict[str, dict[int, float]] = {}
    for pc, sectors in enumerate(by_pc.tolist()):
        memory = instructions[pc].memory
        if sectors and memory is not None:
            found.setdefault(memory.name, {})[pc] = SECTOR_BYTES * sectors
    return [Fetches(prepared.bytes_of(name), bytes_by_pc) for name, bytes_by_pc in found.items()]


def warm_l2_miss(size_bytes: float, l2_bytes: int) -> float:
    """Return the fraction of arrays of a size that is gone from a warm L2.

    Read again in the order in which it came, what does not fit is gone when its turn comes.
    """
    filled = size_bytes / l2_bytes if l2_bytes else math.inf
    return min(1.0, max(0.0, (filled - L2_ALL_HIT) / (L2_ALL_MISS - L2_ALL_HIT)))


def sources_of(fetches: Iterable[Fetches], hits: Hits) -> dict[int, Source]:
    """Return where what each pc fetches comes from, and as that of pc -1 all of it together.

    What blocks have in common is new to the instruction that comes to it first.
    """
    sources: dict[int, Source] = {}
    total = from_dram = from_l1 = 0.0
    for one in fetches:
        left, l1_hit = one.size_bytes, hits.l1_hit(one)
        for pc, size in one.by_pc.items():
            new = min(left, size)
            left -= new
            sources[pc] = Source(new / size * hits.l2_miss, hits.l2_miss, l1_hit)
            total, from_dram, from_l1 = total + size, from_dram + new, from_l1 + l1_hit * size
    new_fraction, l1_hit = (from_dram / total, from_l1 / total) if total else (1.0, 0.0)
    sources[-1] = Source(new_fraction * hits.l2_miss, hits.l2_miss, l1_hit)
    return sources
