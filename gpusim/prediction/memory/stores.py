"""What becomes of what is stored or updated: how the L2 takes it, what DRAM reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.gpu.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.prediction.arithmetic.inner_product import inner
from gpusim.prediction.memory.miss_ratios import Caches, mean
from gpusim.prediction.streams.stretches import ATOMIC, LOAD, PAST_L1, STORE

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Stored:
    """What becomes of the sectors that an instruction stores or updates: fractions of them.

    `written_back` go on to DRAM before the launch ends, which takes it as long as writing so many
    `moved` sectors of many side by side. For a sector DRAM reads as long as for so many
    `read_first`. In all `missed` stored sectors are not in the L1; DRAM reads `dram_bytes` first.
    Of the lines, stored to at random `among` so many, `copied` have a copy in another part of the
    L2 that it has to give up.
    """

    written_back: float = 0.0
    moved: float = 1.0
    read_first: float = 0.0
    missed: float = 0.0
    dram_bytes: float = 0.0
    copied: float = 0.0
    among: float = 1.0


def stores_of(caches: Caches) -> Mapping[int, Stored]:
    """Return what becomes of each instruction's stores; as that of pc -1 of all of them."""
    touches = caches.touches
    is_store = touches.kind == STORE
    found = {int(pc): _stored(caches, touches.pc == pc) for pc in np.unique(touches.pc[is_store])}
    found[-1] = _stored(caches, is_store)
    is_atomic = touches.kind == ATOMIC
    updated = {
        int(pc): _updated(caches, touches.pc == pc) for pc in np.unique(touches.pc[is_atomic])
    }
    return found | updated


def _stored(caches: Caches, mine: Array) -> Stored:
    touches = caches.touches
    weight = touches.weight * (mine & (touches.kind == STORE))
    parted = _parted(caches)
    copied, among = _copied(caches, weight)
    written_back = np.maximum(_written_back(caches), parted)
    return Stored(
        written_back=mean(written_back, weight, 0.0),
        moved=mean(caches.moved, weight * written_back, 1.0),
        read_first=mean(parted * caches.moved, weight, 0.0),
        missed=inner(weight, 1 - caches.l1_hit),
        dram_bytes=SECTOR_BYTES * inner(weight, parted),
        copied=copied,
        among=among,
    )


def _copied(caches: Caches, stores: Array) -> tuple[float, float]:
    """Return how often a line that is stored to at random is copied, and among how many it lies.

    Another part has a copy where one of its SMs has loaded the line since it was stored to last;
    of n parts each has an n-th of the loads. Lines of which an SM has all touches are not given up.
    They lie among all from the first to the last that is loaded or stored beside them.
    """
    touches, parts = caches.touches, caches.capacity.caches.l2_parts
    at_random = stores * touches.is_random
    if parts == 1 or not at_random.any():
        return 0.0, 1.0
    is_beside = np.isin(caches.region, caches.region[at_random > 0])
    lines = touches.weight * touches.lines * is_beside
    is_load = (touches.kind == LOAD) | (touches.kind == PAST_L1)
    loads = lines * is_load * (1 - caches.l1_hit)
    for_a_store = loads.sum() / (lines * (touches.kind == STORE)).sum()
    by_others = mean(touches.line > touches.by_line, loads * np.isfinite(touches.by_line), 0.0)
    copied = for_a_store / (for_a_store + parts) * by_others
    among = np.ptp(touches.begin[is_beside]) / LINE_BYTES + 1
    return copied * float(at_random.sum() / stores.sum()), float(among)


def _updated(caches: Caches, mine: Array) -> Stored:
    """Return what becomes of an atomic's sectors: read where the L2 lacks them.

    What comes in takes the place of what was updated before and is written back.
    """
    weight, grains = caches.touches.weight * mine, caches.touches.grains
    written_back = caches.l2_miss * _written_back(caches)
    return Stored(
        written_back=mean(written_back, weight, 0.0),
        moved=mean(caches.moved, weight * written_back, 1.0),
        read_first=mean(caches.l2_miss * caches.moved, weight, 0.0),
        dram_bytes=caches.schedule.grain_bytes * inner(weight, caches.l2_miss * grains),
    )


def _written_back(caches: Caches) -> Array:
    """Return for how much of each touch, if it stores, DRAM is written to.

    What was stored to a sector before is written by then unless it is still in the L2; the last
    store to it, where the launch goes on for long. The next launch on a warm L2 is like this one.
    """
    touches, capacity = caches.touches, caches.capacity
    if not capacity.l2_bytes:
        return np.ones(len(touches))
    at_end = touches.time + touches.after_all if capacity.is_warm else touches.after_all
    since = np.where(np.isfinite(touches.stored), touches.stored, at_end)
    return capacity.l2_writes_back(caches.stored_distance(since), caches.l2_distance(since))


def _parted(caches: Caches) -> Array:
    """Return for how much of each touch, if it stores, the L2 parts with a part of a sector.

    That is, where it does not have the sector and the rest is not stored for long: DRAM reads the
    rest, and writes the whole.
    """
    touches = caches.touches
    return np.asarray(((touches.asked < 1) & ~touches.is_filled) * caches.l2_miss)
