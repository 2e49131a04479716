"""The table of microbenchmarks: keys of the device file, method, and measuring function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..bench import Bench

Values = Sequence[float]

WARPS = 32  # of a block that fills the schedulers
KB, MB = 2**10, 2**20
LINE = 128
DRAM_BYTES = 2**32  # of memory, more than any cache holds


@dataclass(frozen=True)
class Probe:
    """A microbenchmark and its keys of the device file."""

    name: str
    keys: tuple[str, ...]
    method: str
    measure: Callable[[Bench], Values]


PROBES: list[Probe] = []


def probe(*keys: str) -> Callable[[Callable[[Bench], Values]], Callable[[Bench], Values]]:
    """Register a function that returns a value for each of the keys, in order."""

    def enter(function: Callable[[Bench], Values]) -> Callable[[Bench], Values]:
        method = " ".join((function.__doc__ or "").split()).rstrip(".")
        PROBES.append(Probe(function.__name__, keys, method, function))
        return function

    return enter


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return intercept and slope of the least-squares line through points."""
    x, y = np.array(points, float).T
    slope, intercept = np.polyfit(x, y, 1)
    return float(intercept), float(slope)


def through_nought(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the least-squares line through the origin and points."""
    x, y = np.array(points or [(1.0, 0.0)], float).T
    return float(x @ y / max(x @ x, 1e-9))


def in_order(points: Sequence[tuple[float, float]]) -> Values:
    """Return the size up to which all lines hit, and from which on none.

    Points are (size, hit ratio), in order. The line through hit ratios 3/4 and 1/4 meets 1 and 0
    there.
    """
    sizes, found = (np.array(column) for column in zip(*points, strict=True))
    falling = np.minimum.accumulate(found)
    late, early = np.interp([0.25, 0.75], falling[::-1], sizes[::-1])
    beyond = (late - early) / 2
    return [float(early - beyond), float(late + beyond)]


def waiting_when_held_up(cycles: Sequence[float]) -> float:
    """Return the number of queued accesses when a warp that issues them in a row first stalls.

    `cycles` are the times after each access. Accesses are throttled when issued no faster than
    served; accesses served by then are no longer queued.
    """
    apart = np.diff(np.array(cycles, float))
    served = float(np.median(apart[-len(apart) // 4 :]))
    quick = float(np.min(apart))
    late = np.flatnonzero(apart > (quick + served) / 2)
    issued = int(late[0]) + 1 if len(late) else len(cycles)
    return max(1.0, issued - (cycles[issued - 1] - cycles[0]) / max(served, 1.0))
