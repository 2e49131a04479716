"""Sources of a line's bytes (L1, L2, DRAM) for reports: its loads of an array together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.memory import SAMPLED
from gpusim.prediction.traffic import Fetch
from gpusim.reports.quantities import percent, volume

TITLES = ("line", "array", "loaded", "L1", "L2", "DRAM", "reuse distance")
NOTE = f"loaded bytes by source, from a sample of {SAMPLED} sectors per load"
MOST_ROWS = 12
OF_NO_ARRAY = "(no argument)"
ONCE = "once"


@dataclass(frozen=True)
class LineFetches:
    """A line's loads of an array; `l1`, `l2` and `dram` are fractions of the loaded bytes.

    `reuse_distance_bytes` is the median over their sectors, None where most are read once.
    """

    line: int
    array: str
    loaded_bytes: int
    l1: float
    l2: float
    dram: float
    reuse_distance_bytes: float | None

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts under `TITLES`."""
        return (
            str(self.line or ""),
            self.array or OF_NO_ARRAY,
            volume(self.loaded_bytes),
            *(percent(part) if part else "." for part in (self.l1, self.l2, self.dram)),
            ONCE if self.reuse_distance_bytes is None else volume(self.reuse_distance_bytes),
        )


def by_line(fetches: Sequence[Fetch]) -> list[LineFetches]:
    """Return the loads of each line and array, the most bytes first."""
    ordered = sorted(fetches, key=_place)
    found = [_together(list(group)) for _, group in groupby(ordered, key=_place)]
    return sorted(found, key=lambda one: (-one.loaded_bytes, one.line, one.array))


def _place(fetch: Fetch) -> tuple[int, str]:
    return fetch.line, fetch.array


def _together(fetches: Sequence[Fetch]) -> LineFetches:
    """Return the sum over instructions of one line and array, weighted by their sectors."""
    sectors = sum(one.sectors for one in fetches)
    return LineFetches(
        line=fetches[0].line,
        array=fetches[0].array,
        loaded_bytes=SECTOR_BYTES * sectors,
        l1=sum(one.sectors * one.l1 for one in fetches) / sectors,
        l2=sum(one.sectors * one.l2 for one in fetches) / sectors,
        dram=sum(one.sectors * one.dram for one in fetches) / sectors,
        reuse_distance_bytes=_median_reuse(fetches),
    )


def _median_reuse(fetches: Sequence[Fetch]) -> float | None:
    """Return the least distance that half of the sectors do not exceed."""
    nearest = sorted(fetches, key=_distance)
    left = sum(one.sectors for one in fetches) / 2
    for one in nearest:
        left -= one.sectors
        if left <= 0:
            return one.reuse_distance_bytes
    return None


def _distance(fetch: Fetch) -> float:
    return math.inf if fetch.reuse_distance_bytes is None else fetch.reuse_distance_bytes
