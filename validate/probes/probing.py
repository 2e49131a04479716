"""A microbenchmark as a row: its keys of the device file, its method, and what measures it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..bench import Bench

Values = Sequence[float]

WARPS = 32  # of a block that fills the schedulers


@dataclass(frozen=True)
class Probe:
    """A microbenchmark and the keys of the device file that it measures."""

    name: str
    keys: tuple[str, ...]
    method: str
    measure: Callable[[Bench], Values]


PROBES: list[Probe] = []


def probe(*keys: str) -> Callable[[Callable[[Bench], Values]], Callable[[Bench], Values]]:
    """Enter a function that returns a value for each of the keys, in order."""

    def enter(function: Callable[[Bench], Values]) -> Callable[[Bench], Values]:
        method = " ".join((function.__doc__ or "").split()).rstrip(".")
        PROBES.append(Probe(function.__name__, keys, method, function))
        return function

    return enter


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return intercept and slope of the line nearest to points, by least squares."""
    x, y = np.array(points, float).T
    slope, intercept = np.polyfit(x, y, 1)
    return float(intercept), float(slope)
