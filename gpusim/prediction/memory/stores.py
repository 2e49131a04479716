"""What becomes of what is stored or updated: how the L2 takes it, what DRAM reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.prediction.memory.hits import Caches, mean, missing
from gpusim.prediction.memory.touched import ATOMIC, STORE

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Stored:
    """What becomes of the sectors that an instruction stores or updates: fractions of them.

    `whole` are stored by one access, all of their bytes. `written_back` go on to DRAM before the
    launch ends, which takes it `scatter` times as long as what lies side by side. For a sector DRAM
    reads so many `read_first`.
    """

    whole: float = 1.0
    written_back: float = 0.0
    scatter: float = 1.0
    read_first: float = 0.0


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
    written_back, read_first = _written_back(caches), _read_first(caches)
    return Stored(
        whole=mean(touches.asked >= 1, weight, 1.0),
        written_back=mean(written_back, weight, 0.0),
        scatter=mean(caches.scatter, weight * written_back, 1.0),
        read_first=mean(read_first, weight, 0.0),
    )


def _updated(caches: Caches, mine: Array) -> Stored:
    """Return what becomes of an atomic's sectors: read where the L2 lacks them.

    What comes in takes the place of what was updated before and is written back.
    """
    weight = caches.touches.weight * mine
    written_back = caches.l2_miss * _written_back(caches)
    return Stored(
        written_back=mean(written_back, weight, 0.0),
        scatter=mean(caches.scatter, weight * written_back, 1.0),
        read_first=mean(caches.l2_miss * caches.moved, weight, 0.0),
    )


def _written_back(caches: Caches) -> Array:
    """Return what of each touch, if it stores, goes on to DRAM before the launch ends."""
    touches, capacity = caches.touches, caches.capacity
    if not capacity.l2_bytes:
        return np.ones(len(touches))
    kept = capacity.caches.l2_written_fraction
    gone = missing(caches.l2_distance(touches.after_all), 0.9 * kept, 1.1 * kept)
    if capacity.is_warm:
        again = touches.time + touches.after_all
        gone = gone * caches.l2_missing(again, again)
    return gone


def _read_first(caches: Caches) -> Array:
    """Return what DRAM reads for each touch, if it stores a part of a sector, in sectors.

    That is, where the sector is not in the L2 and the rest is not written right afterwards.
    """
    touches = caches.touches
    is_part = (touches.asked < 1) & ~touches.is_filled
    return np.asarray(is_part * caches.l2_miss * caches.moved)
