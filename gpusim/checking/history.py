"""Earlier accesses overwritten in a shadow, kept by the row that made them.

If barriers alone order a kernel's accesses, and any two accesses to an element (one a store)
conflict, flags of the last access suffice: any other unordered access is a race. With fences,
flags, atomics mixed with plain stores, volatile memory, partial masks or named barriers the
accessing thread matters: then all accesses that may race are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from gpusim.checking.access import Access, Timeline
from gpusim.checking.element_access import (
    BLOCK_SHIFT,
    THREAD_SHIFT,
    ElementAccess,
    thread_of,
    time_of,
    unordered,
)
from gpusim.checking.ledger import Ledger, last_of_each
from gpusim.isa.ops import OPS, Program
from gpusim.typing import Array

ALL_LANES = 0xFFFFFFFF


def is_needed(program: Program, accesses: Iterable[Access]) -> bool:
    """Return whether the threads of accesses to one memory matter."""
    if program.clusters:
        return True
    if any(OPS[row.op].kind == "fence" for row in program.instructions):
        return True
    if _names_lanes(program) or _joins_some(program):
        return True
    rows = list(accesses)
    if any(access.polls or access.is_optimistic or access.is_narrow for access in rows):
        return True
    if len({access.is_volatile for access in rows}) > 1:
        return True
    atomics = [access for access in rows if access.kind == "atomic"]
    others = [access for access in rows if access.kind != "atomic"]
    # One that returns the old value is ordered after the atomics before it, loads among others.
    returns = any(access.instruction.dst for access in atomics)
    return bool(atomics) and any(returns or access.kind == "store" for access in others)


def _names_lanes(program: Program) -> bool:
    """Return whether a mask may name some lanes only."""
    masks = (row.src[0] for row in program.instructions if OPS[row.op].waits_for_lanes)
    return any(int(program.immediates.get(mask, 0)) & ALL_LANES != ALL_LANES for mask in masks)


def _joins_some(program: Program) -> bool:
    """Return whether a barrier may join only some threads of a block, or is used by bar.arrive."""
    rows = [row for row in program.instructions if OPS[row.op].has_number]
    return any(
        len(row.src) < 2 or program.immediates.get(row.src[1], 1) != 0  # of how many threads
        for row in rows
    )


class History:
    """Accesses to one memory by the row that made them, in ledgers of element and access."""

    def __init__(self, timeline: Timeline, accesses: Mapping[int, Access]) -> None:
        self._timeline = timeline
        self._accesses = accesses
        self._made: dict[int, Ledger] = {}
        manners = sorted({access.manner for access in accesses.values()})
        self._manners = np.full(1 + max(accesses, default=0), len(manners))
        for pc, access in accesses.items():
            self._manners[pc] = manners.index(access.manner)
        self._latest = 0

    def add(self, element: Array, packed: Array) -> None:
        """Keep accesses to elements."""
        rows = np.stack([element, packed], axis=1)
        pcs = self._timeline.pcs_at(time_of(packed))
        for pc in np.unique(pcs).tolist():
            self._made.setdefault(pc, Ledger(_last_of_threads)).add(rows[pcs == pc])
        self._latest = max(self._latest, int(time_of(packed).max()))

    def for_blocks(self, blocks: Array, elements: int) -> History:
        """Return the history of each block's own memory, copied from the first's."""
        made = History(self._timeline, self._accesses)
        made._latest = self._latest
        moved = np.arange(len(blocks)) * elements
        later = (blocks - blocks[0]) << (BLOCK_SHIFT + THREAD_SHIFT)
        each = np.stack([moved, later], axis=1)[:, None]
        for pc, held in self._made.items():
            own = made._made[pc] = Ledger(_last_of_threads)
            own.add((held.rows[None] + each).reshape(-1, 2))
        return made

    def outlive(self, earlier: Array, touch: ElementAccess) -> Array:
        """Return a mask of earlier accesses to keep: the touch does not make them redundant.

        An access of the touch's kind, ordered before it, is redundant: it races only where the
        touch does.
        """
        if not earlier.any():
            return np.zeros(len(earlier), dtype=bool)
        kept = np.zeros(len(earlier), dtype=bool)
        found = unordered(earlier, touch)
        if found is not None:
            kept |= found.either
        pcs = self._timeline.pcs_at(time_of(earlier))
        mine = self._manners[self._timeline.pc_at(touch.time)]
        return np.asarray((kept | (self._manners[pcs] != mine)) & (earlier != 0))

    def against(
        self, touch: ElementAccess, may_race: Callable[[Access], bool]
    ) -> Iterator[tuple[Array, Array]]:
        """Yield, by row, the accesses to elements of a touch, each with its entry."""
        for pc, made in self._made.items():
            if may_race(self._accesses[pc]):
                entries, rows = made.find(touch.element)
                if len(rows):
                    yield entries, rows[:, 1]

    def forget(self, until: int) -> None:
        """Forget all accesses, if none was made after a time."""
        if self._latest <= until:
            self._made.clear()


def _last_of_threads(rows: Array) -> Array:
    """Keep of each thread's accesses to an element the last."""
    return last_of_each(rows, thread_of(rows[:, 1])[None])
