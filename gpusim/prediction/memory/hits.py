"""Where sectors come from: how much of what a launch touches is found in L1 and L2.

It follows from how long ago it was touched before, and what was touched since: a cache holds what
was touched last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.prediction.measured import L1_ALL_HIT, L1_ALL_MISS, L2_ALL_HIT, L2_ALL_MISS
from gpusim.prediction.memory.reuse import Course, Touches
from gpusim.prediction.memory.touched import LOAD, STORE

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Source:
    """Where sectors come from: fractions of them.

    `l1_hit` lie in the SM's L1, for the first blocks on the SMs `first_l1_hit`; of the others
    `l2_miss` come from DRAM, the rest from the L2. For the first blocks `first_l2_miss` are as late
    as DRAM: those that run together wait for one fetch.
    """

    l2_miss: float
    first_l2_miss: float = 1.0
    l1_hit: float = 0.0
    first_l1_hit: float = 0.0


@dataclass(frozen=True)
class Sources:
    """Where the sectors of an instruction come from: those that its block touches `first` or `again`.

    So many sectors of the launch are touched first and again.
    """

    first: Source
    again: Source
    first_sectors: float = 0.0
    again_sectors: float = 0.0


@dataclass(frozen=True)
class Capacity:
    """What caches hold, in bytes: an L1 beside its blocks' shared memory, and the L2.

    `written` is what of the L2 holds what was stored. The L2 `is_warm` where the launch before has
    touched the same.
    """

    l1: float
    l2: float
    written: float
    is_warm: bool


@dataclass(frozen=True)
class Caches:
    """How a launch finds the caches: for each touch of a sample, the fractions that miss."""

    touches: Touches
    course: Course
    capacity: Capacity

    @cached_property
    def gap(self) -> Array:
        """How long ago a sector was touched before, by the launch before where the L2 is warm."""
        touches = self.touches
        if not self.capacity.is_warm:
            return touches.gap
        return np.minimum(touches.gap, touches.time + touches.after_all)

    def l2_distance(self, gap: Array) -> Array:
        """Return how many bytes are touched in some time: what was not touched within it before."""
        return SECTOR_BYTES * _footprint(gap, self.gap, self.touches.weight) / self.course.length

    @cached_property
    def l1_distance(self) -> Array:
        """How many bytes of lines an SM has loaded since it loaded a line before."""
        touches = self.touches
        loads = touches.kind == LOAD
        weight = np.where(loads, touches.weight * touches.lines, 0.0) / self.course.sms
        return LINE_BYTES * _footprint(touches.line, touches.line, weight) / self.course.length

    @cached_property
    def l1_hit(self) -> Array:
        """The fraction of each touch that is found in the L1."""
        if not self.capacity.l1:
            return np.zeros(len(self.touches))
        hit = 1 - _missing(self.l1_distance / self.capacity.l1, L1_ALL_HIT, L1_ALL_MISS)
        return np.where(np.isfinite(self.touches.on_sm), hit, 0.0)

    @cached_property
    def l2_miss(self) -> Array:
        """The fraction of each touch that is not found in the L2."""
        return self._l2_missing(self.gap)

    @cached_property
    def first_l2_miss(self) -> Array:
        """The fraction of each touch that the first blocks do not find in the L2."""
        before = np.full(len(self.touches), np.inf)
        if self.capacity.is_warm:
            before = self.touches.time + self.touches.after_all
        return np.where(self.touches.is_late, self._l2_missing(before), self.l2_miss)

    def _l2_missing(self, gap: Array) -> Array:
        if not self.capacity.l2:
            return np.ones(len(gap))
        distance = self.l2_distance(gap) / self.capacity.l2
        missing = _missing(distance, L2_ALL_HIT, L2_ALL_MISS)
        return np.where(np.isfinite(gap), missing, 1.0)

    @cached_property
    def written_back(self) -> float:
        """The fraction of written sectors that go on to DRAM before the launch ends."""
        touches = self.touches
        stored = touches.weight * (touches.kind == STORE)
        if not stored.sum():
            return 0.0
        distance = self.l2_distance(touches.after_all)
        gone = _missing(distance, 0.9 * self.capacity.written, 1.1 * self.capacity.written)
        if self.capacity.is_warm:
            gone = gone * self._l2_missing(touches.time + touches.after_all)
        return float(stored @ gone / stored.sum())

    def sources(self) -> Mapping[int, Sources]:
        """Return where what each instruction loads comes from; as that of pc -1 all of it."""
        loads = self.touches.kind == LOAD
        pcs = self.touches.pc
        found = {int(pc): self._sources(loads & (pcs == pc)) for pc in np.unique(pcs[loads])}
        found[-1] = self._sources(loads)
        return found

    def _sources(self, mine: Array) -> Sources:
        is_fresh = np.isinf(self.touches.own)
        first = self.touches.weight * (mine & is_fresh)
        again = self.touches.weight * (mine & ~is_fresh)
        past_l1 = 1 - self.l1_hit
        kept = _mean(self.l1_hit, again, 1.0)
        lost = _mean(self.l2_miss, again * past_l1, 0.0)
        return Sources(
            Source(
                l2_miss=_mean(self.l2_miss, first * past_l1, 1.0),
                first_l2_miss=_mean(self.first_l2_miss, first, 1.0),
                l1_hit=_mean(self.l1_hit, first, 0.0),
            ),
            Source(lost, lost, kept, kept),
            float(first.sum()),
            float(again.sum()),
        )


def _mean(values: Array, weights: Array, otherwise: float) -> float:
    """Return the weighted mean of values; what is given where nothing has weight."""
    total = float(weights.sum())
    return float(values @ weights / total) if total > 0 else otherwise


def _footprint(times: Array, gaps: Array, weights: Array) -> Array:
    """Return how much is touched within times that was not touched before within the same time.

    Of what is touched every so often the smaller of time and gap counts (Xiang et al., "HOTL: a
    Higher Order Theory of Locality", 2013).
    """
    order = np.argsort(gaps)
    gaps, weights = gaps[order], weights[order]
    finite = np.isfinite(gaps)
    whole = np.concatenate([[0.0], np.cumsum(np.where(finite, gaps, 0.0) * weights)])
    rest = weights.sum() - np.concatenate([[0.0], np.cumsum(weights)])
    at = np.searchsorted(gaps, times)
    with np.errstate(invalid="ignore"):
        return np.asarray(whole[at] + np.where(rest[at] > 0, rest[at] * times, 0.0))


def _missing(filled: Array, all_hit: float, all_miss: float) -> Array:
    """Return what is missing of a cache that is filled so far: from nothing to all."""
    return np.clip((filled - all_hit) / (all_miss - all_hit), 0.0, 1.0)
