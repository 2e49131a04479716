"""The fate of stored and updated sectors: allocation in the L2, reads and writes of DRAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.gpu.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.prediction.arithmetic.grouping import numbers
from gpusim.prediction.arithmetic.inner_product import inner
from gpusim.prediction.locality.patterns import Patterns
from gpusim.prediction.memory.miss_ratios import Caches, mean
from gpusim.prediction.streams.kinds_by_pc import ATOMIC, LOAD, PAST_L1, STORE
from gpusim.typing import Array


@dataclass(frozen=True)
class Stored:
    """The fate of the sectors that an instruction stores or updates, as fractions of them.

    `written_back` are written to DRAM before the launch ends, each in the time of `moved`
    contiguous sectors. Per sector DRAM reads for the time of `read_first` sectors. In all `missed`
    stored sectors are not in the L1; DRAM reads `dram_bytes` first. Of the lines stored to at
    random, `among` in number, `copied` have a copy in another part of the L2 to be invalidated.
    """

    written_back: float = 0.0
    moved: float = 1.0
    read_first: float = 0.0
    missed: float = 0.0
    dram_bytes: float = 0.0
    copied: float = 0.0
    among: float = 1.0


def stores_of(caches: Caches, patterns: Patterns) -> Mapping[int, Stored]:
    """Return the fate of each instruction's stores and atomics, and of all stores as pc -1."""
    fates, touches = _Fates(caches, patterns), caches.touches
    is_store, is_atomic = touches.kind == STORE, touches.kind == ATOMIC
    stored, updated = (numbers(touches.pc[are]) for are in (is_store, is_atomic))
    found = {pc: fates.of_stores(is_store & (touches.pc == pc)) for pc in stored}
    found[-1] = fates.of_stores(is_store)
    return found | {pc: fates.of_atomics(touches.pc == pc) for pc in updated}


@dataclass(frozen=True)
class _Fates:
    """The fate of each touch of a sample, if a store or an atomic."""

    caches: Caches
    patterns: Patterns

    def of_stores(self, mine: Array) -> Stored:
        """Return the fate of some stores."""
        caches = self.caches
        weight = caches.touches.weight * mine
        copied, among = _copied(caches, self.patterns, weight)
        written_back = np.maximum(self._written_back, self._parted)
        apart = self._parted / np.where(written_back, written_back, 1.0)
        return Stored(
            written_back=mean(written_back, weight, 0.0),
            moved=mean(caches.moved_back(apart), weight * written_back, 1.0),
            read_first=mean(self._parted * caches.moved, weight, 0.0),
            missed=inner(weight, caches.l1_miss),
            dram_bytes=SECTOR_BYTES * inner(weight, self._parted),
            copied=copied,
            among=among,
        )

    def of_atomics(self, mine: Array) -> Stored:
        """Return the fate of the sectors of some atomics: read from DRAM at an L2 miss."""
        caches = self.caches
        weight, grains = caches.touches.weight * mine, caches.touches.grains
        written_back = self._written_back
        return Stored(
            written_back=mean(written_back, weight, 0.0),
            moved=mean(caches.moved_back(), weight * written_back, 1.0),
            read_first=mean(caches.l2_miss * caches.moved, weight, 0.0),
            dram_bytes=caches.schedule.grain_bytes * inner(weight, caches.l2_miss * grains),
        )

    @cached_property
    def _written_back(self) -> Array:
        """The fraction of each touch, if a store, that is written back to DRAM.

        The previous store to the sector is written by then unless it is still in the L2; so is the
        last store, in a long launch. With a warm L2 the next launch is like this one.
        """
        caches = self.caches
        touches = caches.touches
        is_warm = caches.capacity.is_warm
        at_end = touches.time + touches.after_all if is_warm else touches.after_all
        since = np.where(np.isfinite(touches.stored), touches.stored, at_end)
        return caches.l2_written_back(since)

    @cached_property
    def _parted(self) -> Array:
        """The fraction of each touch, if a store, evicted as a partially stored sector.

        That is an L2 miss without a store of the rest for long: DRAM reads the rest and writes the
        whole.
        """
        touches = self.caches.touches
        return np.asarray(((touches.asked < 1) & ~touches.is_filled) * self.caches.l2_miss)


def _copied(caches: Caches, patterns: Patterns, stores: Array) -> tuple[float, float]:
    """Return the fraction of randomly stored lines with a copy, and the number of such lines.

    Another part has a copy if one of its SMs has loaded the line since the last store; of n parts
    each has an n-th of the loads. Lines touched by a single SM are not invalidated. The lines are
    all those between the first and the last one loaded or stored in the region.
    """
    touches, parts = caches.touches, caches.capacity.caches.l2_parts
    at_random = stores * touches.is_random
    if parts == 1 or not at_random.any():
        return 0.0, 1.0
    is_beside = np.isin(caches.region, caches.region[at_random > 0])
    lines = touches.weight * touches.lines * is_beside
    is_load = (touches.kind == LOAD) | (touches.kind == PAST_L1)
    loads = lines * is_load * caches.l1_miss
    for_a_store = loads.sum() / (lines * (touches.kind == STORE)).sum()
    by_others = mean(touches.line > touches.by_line, loads * np.isfinite(touches.by_line), 0.0)
    copied = for_a_store / (for_a_store + parts) * by_others
    begins, pcs = touches.begin[is_beside], touches.pc[is_beside & touches.is_random]
    first, last = (ends[pcs] for ends in patterns.ends)  # the sample is of adjacent blocks
    among = max(begins.max(), last.max()) - min(begins.min(), first.min())
    return copied * float(at_random.sum() / stores.sum()), float(among / LINE_BYTES + 1)
