"""Throughput of atomics in the L2: passes on different places are served in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpusim.gpu.device import Bandwidth, Device
from gpusim.isa.ops import OPS, Program
from gpusim.prediction.arithmetic.grouping import numbers
from gpusim.prediction.locality.patterns import Patterns, coordinates
from gpusim.prediction.locality.schedule import Schedule
from gpusim.prediction.memory.measured import ATOMIC_UNIT_BYTES
from gpusim.prediction.streams.kinds_of_touches import ATOMIC
from gpusim.prediction.streams.stretches import Stretches
from gpusim.typing import Array

MOST_BLOCKS = 256  # adjacent blocks in the sample of atomics


@dataclass(frozen=True)
class Parts:
    """Fractions `part` of an instruction's requests at each `place`, in order of address.

    `order` is that of the first requests.
    """

    place: Array
    part: Array
    order: Array

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


def _sum(values: Array) -> float:
    """Return the sum of values, one after the other: its rounding depends on their order alone."""
    return float(np.cumsum(values)[-1])


def concurrent_atomics(patterns: Patterns, schedule: Schedule, device: Device) -> dict[int, float]:
    """Return the number of parallel passes in the L2, for each instruction's atomics.

    The updates of resident blocks are spread over places, and each place belongs to a unit.
    """
    near, together = (
        _asked(patterns, schedule, blocks) for blocks in (patterns.neighbours, patterns.together)
    )
    bandwidth = device.bandwidth
    return {
        pc: _side_by_side(near.get(pc, parts), parts, bandwidth) for pc, parts in together.items()
    }


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
    even = _sum((near.part * other)[near.order])
    hottest = float(np.minimum(near.part, other).max())
    meeting = min(
        bandwidth.l2_atomic_places_a_unit * even,
        max(even, 1 / bandwidth.l2_atomics_in_a_kilobyte),
    )
    busy = 1 / (1 / bandwidth.l2_atomic_units + meeting)
    return max(1.0, min(busy, 1 / hottest) if hottest else busy)


def _asked(patterns: Patterns, schedule: Schedule, blocks: Sequence[int]) -> dict[int, Parts]:
    """Return the distribution of each instruction's atomics over places, as fractions.

    Addresses that are not linear are taken from the given blocks alone.
    """
    found: dict[int, list[tuple[Array, Array]]] = {}
    for pc, places, asked in _requests(patterns, schedule, blocks):
        found.setdefault(pc, []).append((places, asked))
    return {pc: Parts.of(requests) for pc, requests in found.items()}


def _requests(
    patterns: Patterns, schedule: Schedule, blocks: Sequence[int]
) -> Iterator[tuple[int, Array, Array]]:
    """Yield pc, places and requested bytes of the atomics of each instruction."""
    count = min(MOST_BLOCKS, schedule.at_once)
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
        pieces = (end - 1) // ATOMIC_UNIT_BYTES - begin // ATOMIC_UNIT_BYTES + 1
        first = np.cumsum(pieces) - pieces
        place = np.repeat(begin // ATOMIC_UNIT_BYTES - first, pieces) + np.arange(pieces.sum())
        yield pc, place, np.repeat(asked / pieces, pieces)
