"""Throughput of atomics in the L2: passes on different places are served in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.gpu.device import Bandwidth, Device
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.isa.ops import OPS, Program
from gpusim.prediction.arithmetic.grouping import numbers
from gpusim.prediction.locality.patterns import Patterns, coordinates
from gpusim.prediction.locality.schedule import Schedule
from gpusim.prediction.memory.measured import ATOMIC_UNIT_BYTES
from gpusim.prediction.streams.kinds_by_pc import ATOMIC
from gpusim.prediction.streams.stretches import Stretches
from gpusim.typing import Array

MOST_BLOCKS = 4096  # blocks of a wave in the sample of atomics
ADJACENT_BLOCKS = 256
SECTORS_OF_A_UNIT = ATOMIC_UNIT_BYTES // SECTOR_BYTES


@dataclass(frozen=True)
class Parts:
    """Fractions `part` of an instruction's requests at each `place`, in order of address.

    `order` is that of the first requests.
    """

    place: Array
    part: Array
    order: Array

    @cached_property
    def units(self) -> Parts:
        """The fractions of the units that serve these sectors."""
        in_order = self.order
        return Parts.of([(self.place[in_order] // SECTORS_OF_A_UNIT, self.part[in_order])])

    @classmethod
    def of(cls, requests: Sequence[tuple[Array, Array]]) -> Parts:
        """Return the fractions of places in requests: their places and bytes."""
        places, asked = (np.concatenate(column) for column in zip(*requests, strict=True))
        different, first, number = np.unique(places, return_index=True, return_inverse=True)
        counts, order = np.bincount(number, asked), np.argsort(first)
        return cls(different, counts / _sum(counts[order]), order)

    def at(self, places: Array) -> Array:
        """Return the fractions at places, 0 where nothing is requested."""
        at = np.minimum(np.searchsorted(self.place, places), len(self.place) - 1)
        return np.where(self.place[at] == places, self.part[at], 0.0)

    def meets(self, other: Parts) -> float:
        """Return the probability that a request of each names the same place."""
        return _sum((self.part * other.at(self.place))[self.order])


def _sum(values: Array) -> float:
    """Return the sum of values, one after the other: its rounding depends on their order alone."""
    return float(np.cumsum(values)[-1])


@dataclass(frozen=True)
class AtomicLoad:
    """How an instruction's atomics meet in the L2: the number of units that are busy in parallel.

    `same_sector` is the probability that a unit's next request names the sector of the one before.
    Instructions with the same `group` have sectors in common; other groups have other units.
    """

    at_once: float = 1.0
    same_sector: float = 1.0
    group: int = 0


def atomic_loads(patterns: Patterns, schedule: Schedule, device: Device) -> dict[int, AtomicLoad]:
    """Return how atomics of resident blocks meet in the L2, by pc.

    Their requests are spread over places, and each place belongs to a unit.
    """
    near = _asked(patterns, schedule, patterns.neighbours, ADJACENT_BLOCKS)
    together = _asked(patterns, schedule, patterns.together, MOST_BLOCKS)
    bandwidth, group = device.bandwidth, _groups(together)
    return {
        pc: AtomicLoad(
            _side_by_side(near.get(pc, parts).units, parts.units, bandwidth),
            _same_sector(near.get(pc, parts), parts),
            group[pc],
        )
        for pc, parts in together.items()
    }


def _groups(asked: Mapping[int, Parts]) -> dict[int, int]:
    """Return a group for each instruction, by pc: those that have sectors in common share one."""
    found: dict[int, int] = {}
    for pc, parts in asked.items():
        met = {found[other] for other in found if parts.at(asked[other].place).any()}
        number = min(met, default=len(found))
        found = {other: number if one in met else one for other, one in found.items()}
        found[pc] = number
    return found


def answering_atomics(program: Program, device: Device) -> dict[int, float]:
    """Return the additional time of a pass for atomics that return the old value, by pc."""
    bandwidth = device.bandwidth
    longer = 1 / bandwidth.l2_atomic_answers - 1 / bandwidth.l2_atomic_units
    rows = enumerate(program.instructions)
    return {pc: longer for pc, row in rows if OPS[row.op].kind == "atomic" and row.dst}


def _side_by_side(near: Parts, together: Parts, bandwidth: Bandwidth) -> float:
    """Return the mean number of busy units, from the distributions of requests over places.

    Requests to one place share a unit; adjacent places do not. Two atomics collide with the
    probability that a request of neighbours and one of blocks spread over the wave name the same
    place: a place of only one of the two samples is one of many of its kind.
    """
    other = together.at(near.place)
    even = near.meets(together)
    hottest = float(np.minimum(near.part, other).max())
    meeting = min(
        bandwidth.l2_atomic_places_a_unit * even, max(even, 1 / bandwidth.l2_atomics_in_a_kilobyte)
    )
    busy = 1 / (1 / bandwidth.l2_atomic_units + meeting)
    return max(1.0, min(busy, 1 / hottest) if hottest else busy)


def _same_sector(near: Parts, together: Parts) -> float:
    """Return the probability that requests which meet in a unit name the same sector."""
    in_unit = near.units.meets(together.units)
    return min(1.0, near.meets(together) / in_unit) if in_unit else 0.0


def _asked(
    patterns: Patterns, schedule: Schedule, blocks: Sequence[int], most: int
) -> dict[int, Parts]:
    """Return the distribution of each instruction's atomics over sectors, as fractions.

    Addresses that are not linear are taken from the given blocks alone, others from up to `most`
    blocks of a wave.
    """
    found: dict[int, list[tuple[Array, Array]]] = {}
    for pc, places, asked in _requests(patterns, schedule, blocks, most):
        found.setdefault(pc, []).append((places, asked))
    return {pc: Parts.of(requests) for pc, requests in found.items()}


def _requests(
    patterns: Patterns, schedule: Schedule, blocks: Sequence[int], most: int
) -> Iterator[tuple[int, Array, Array]]:
    """Yield pc, sectors and requested bytes of the atomics of each instruction."""
    count = min(most, schedule.at_once)
    for pattern in patterns.linear:
        rows = pattern.stretches.at(pattern.stretches.kind == ATOMIC)
        first = pattern.ranges[len(pattern.ranges) // 2][0]
        numbers = np.arange(first, min(first + count, schedule.launch.blocks))
        moved = coordinates(numbers, schedule.launch) @ np.array(pattern.moves)
        yield from _of_stretches(rows, moved)
    for block in blocks if patterns.single else ():
        rows = patterns.single[block]
        yield from _of_stretches(rows.at(rows.kind == ATOMIC), np.zeros(1, dtype=np.int64))


def _of_stretches(rows: Stretches, moved: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield the same for stretches, at each of the moves."""
    for pc in numbers(rows.pc):
        mine = rows.at(rows.pc == pc)
        begin = (mine.begin + moved[:, None]).reshape(-1)
        end = (mine.end + moved[:, None]).reshape(-1)
        asked = np.broadcast_to(mine.asked * (1 + mine.times), (len(moved), len(mine))).reshape(-1)
        pieces = (end - 1) // SECTOR_BYTES - begin // SECTOR_BYTES + 1
        first = np.cumsum(pieces) - pieces
        place = np.repeat(begin // SECTOR_BYTES - first, pieces) + np.arange(pieces.sum())
        yield pc, place, np.repeat(asked / pieces, pieces)
