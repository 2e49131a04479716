"""The missing part of a release-acquire pattern between two unordered accesses.

A thread that accesses an element, runs a fence and sets a flag orders the access before all that
another thread does after a fence, once it has read that flag (PTX ISA, release and acquire
patterns). The flags searched are set by the first thread and read by the second before its access.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpusim.checking.clock_rows import (
    AWAITS,
    KEY,
    NARROW,
    PLACE,
    THREAD,
    TIME,
    TURN,
    is_ordered,
)
from gpusim.checking.element_access import BLOCK_SHIFT
from gpusim.checking.ledger import even
from gpusim.checking.releases import FlagAccess
from gpusim.typing import Array

# What is missing, by name: a fence on the side of the release or of the acquire; a fence or a flag
# of wide enough a scope; the order, where the fence or the flag comes before the access; a barrier
# before another thread of the block sets the flag.
RELEASE, ACQUIRE = "release", "acquire"
FENCE_SCOPE, FLAG_SCOPE, ACQUIRE_SCOPE = "fence scope", "flag scope", "acquire scope"
FENCE_ORDER, FLAG_ORDER = "fence order", "flag order"
BARRIER = "barrier"
EARLY = "wait"  # one that ends by a value that was set before the access
COMPLETE = ""

MOST_FLAGS, MOST_RELEASES, MOST_HOPS = 8, 8, 2
MOST_ROWS = 1 << 18  # of each log: where more are made, nothing is known to be missing
# In the place of AWAITS: PTX's acquires, and compare-and-swaps.
FENCED, LOCKS = 1, 2


class Point(NamedTuple):
    """A thread, packed, and the time of one of its accesses or fences."""

    thread: int
    time: int

    @classmethod
    def of(cls, row: Array) -> Point:
        """Return the point of a row of clocks."""
        return cls(int(row[THREAD]), int(row[TIME]))


@dataclass(frozen=True)
class Handover:
    """A flag set by one thread and read by another, its fences, and the missing operation."""

    missing: str
    place: int
    released: Point
    acquired: Point
    fence: Point | None = None
    fence_behind: Point | None = None
    locks: bool = False


class Rows:
    """Rows of clocks in the order of their recording."""

    def __init__(self) -> None:
        self._parts: list[Array] = []
        self._count = 0

    def add(self, rows: Array) -> None:
        """Record rows, as long as there are few enough."""
        self._count += len(rows)
        if len(rows) and self.is_whole:
            self._parts.append(rows)

    @property
    def is_whole(self) -> bool:
        """Whether all rows are there."""
        return self._count <= MOST_ROWS

    def where(self, column: int, number: int) -> Array:
        """Return the rows with a number in a column."""
        if not self._parts:
            return np.zeros((0, AWAITS + 1), dtype=np.int64)
        if len(self._parts) > 1:
            self._parts = [np.concatenate(even(self._parts))]
        every = self._parts[0]
        return np.asarray(every[every[:, column] == number])


class FlagLog:
    """All fences, releases and acquisitions of a launch, to search for a missing one."""

    def __init__(self) -> None:
        self._fences, self._released, self._acquired = Rows(), Rows(), Rows()

    def fence(self, rows: Array, *, is_narrow: bool) -> None:
        """Record the clocks of threads that run a fence, perhaps of block scope."""
        rows[:, NARROW] = is_narrow
        self._fences.add(rows)

    def visit(self, rows: Array, flag: FlagAccess) -> None:
        """Record the clocks of threads that access a flag."""
        rows[:, AWAITS] = FENCED * flag.fenced | LOCKS * flag.locks
        if flag.acquires:
            self._acquired.add(rows)
        if flag.releases:
            made = rows.copy()
            made[:, TURN] += 1
            self._released.add(made)

    def handover(self, access: Point, now: Array, hops: int = MOST_HOPS) -> Handover | None:
        """Return the flag that comes closest to ordering an access before a row of clocks.

        The place of that row is the element itself, which is no flag.
        """
        if not all(one.is_whole for one in (self._fences, self._released, self._acquired)):
            return None
        unordered = None
        for seen, made in self._pairs(now):
            if made[PLACE] == now[PLACE]:
                continue
            if not _knows(made, access):
                differs = int(made[THREAD]) ^ access.thread
                if differs >> BLOCK_SHIFT == 0 and unordered is None:
                    missing = BARRIER if differs else FLAG_ORDER
                    fences = _known(self._fences, made)
                    fence = Point.of(fences[-1]) if len(fences) else None
                    points = Point.of(made), Point.of(seen), fence
                    unordered = Handover(missing, int(made[PLACE]), *points)
                continue
            found = self._between(access, made, seen, now)
            if found.missing or hops < MOST_HOPS:
                return found
        return unordered or (self._passed_on(access, now, hops - 1) if hops else None)

    def _passed_on(self, access: Point, now: Array, hops: int) -> Handover | None:
        """Return the handover by threads that read the access's flag and set another one."""
        for seen, made in self._pairs(now):
            before = self.handover(access, made, hops)
            if before is not None:
                found = self._between(before.fence_behind or before.acquired, made, seen, now)
                return before if before.missing else found
        return None

    def _pairs(self, now: Array) -> Iterator[tuple[Array, Array]]:
        """Yield the flag reads known to a row of clocks, each with the releases that it saw."""
        for seen in _latest(_known(self._acquired, now), MOST_FLAGS):
            made = self._released.where(PLACE, seen[PLACE])
            made = made[(made[:, TURN] < seen[TURN]) & (made[:, THREAD] != seen[THREAD])]
            for one in _latest(made, MOST_RELEASES):
                yield seen, one

    def _between(self, access: Point, made: Array, seen: Array, now: Array) -> Handover:
        """Return the missing operation around a flag set after an access and read before `now`."""
        is_far = int(made[THREAD] ^ seen[THREAD]) >> BLOCK_SHIFT != 0
        missing, fence = self._release_side(access, made, is_far=is_far)
        behind = None
        if not missing and is_far and (made[NARROW] or seen[NARROW]):
            missing = FLAG_SCOPE
        elif not missing:
            missing, behind = self._acquire_side(seen, now, is_far=is_far)
        points = Point.of(made), Point.of(seen), fence, behind
        return Handover(missing, int(made[PLACE]), *points, bool(seen[AWAITS] & LOCKS))

    def _release_side(
        self, access: Point, made: Array, *, is_far: bool
    ) -> tuple[str, Point | None]:
        every = _known(self._fences, made)
        near = _knowing(every, access)
        good = near[near[:, NARROW] == 0] if is_far else near
        for rows, missing in ((good, COMPLETE), (near, FENCE_SCOPE), (every, FENCE_ORDER)):
            if len(rows):
                return missing, Point.of(rows[np.argmax(rows[:, TIME])])
        return RELEASE, None

    def _acquire_side(self, seen: Array, now: Array, *, is_far: bool) -> tuple[str, Point | None]:
        if seen[AWAITS] & FENCED:
            return COMPLETE, None
        every = _knowing(_known(self._fences, now), Point.of(seen))
        good = every[every[:, NARROW] == 0] if is_far else every
        for rows, missing in ((good, COMPLETE), (every, ACQUIRE_SCOPE)):
            if len(rows):
                return missing, Point.of(rows[np.argmin(rows[:, TIME])])
        return ACQUIRE, None


def _known(log: Rows, now: Array) -> Array:
    """Return the rows of the same block that are ordered before a row of clocks."""
    rows = log.where(KEY, now[THREAD] >> BLOCK_SHIFT)
    return rows[is_ordered(np.repeat(now[None], len(rows), 0), rows[:, THREAD], rows[:, TIME])]


def _knowing(rows: Array, access: Point) -> Array:
    """Return the rows of clocks that come after an access."""
    thread, time = (np.full(len(rows), number) for number in access)
    return rows[is_ordered(rows, thread, time)]


def _knows(row: Array, access: Point) -> bool:
    return len(_knowing(row[None], access)) > 0


def _latest(rows: Array, count: int) -> Array:
    """Return the rows with the highest turns, the last first."""
    return rows[np.argsort(-rows[:, TURN])][:count] if len(rows) else rows
