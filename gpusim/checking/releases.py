"""Order between threads by fences and flags: release and acquire operations.

A thread that runs a fence and then an atomic operation (or stores to a flag that others wait for)
releases its earlier accesses up to the fence; a thread whose atomic or waiting load comes to that
place later, and that runs a fence behind it, acquires them (PTX ISA, release and acquire patterns).
Each fence counts in its scope. Barriers add order on all sides: the fence may be another thread's,
if a barrier stands between the two.

Two strong accesses behind a flag need no second fence: they cannot find old data in a cache. A
lock, taken by a compare-and-swap, needs it; with `lenient` neither does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpusim.checking.clock_rows import (
    AWAITS,
    FENCED,
    HOW,
    KEY,
    LOCKS,
    NARROW,
    PLACE,
    SEES,
    THREAD,
    TIME,
    TURN,
    clock_rows,
    is_ordered,
    locations,
)
from gpusim.checking.element_access import BLOCK_SHIFT, THREAD_BITS, Array, ElementAccess
from gpusim.checking.ledger import Ledger, even, last_of_each
from gpusim.checking.release_clocks import AcquiredLocations, ReleasedClocks

# Releases of a contended place are searched from the last one on, this many first, then more.
FIRST_LOOKED_AT = 64
NEVER = np.iinfo(np.int64).max  # the turn of a plain access


@dataclass(frozen=True)
class FlagAccess:
    """An access to a flag, for the rules: whether it `acquires`, and whether it `releases`.

    Narrow ones are flags for the threads of their block alone. One that `locks` is a
    compare-and-swap, one that `awaits` waits for a value or swaps it; `fenced` are PTX's acquires.
    """

    acquires: bool
    releases: bool
    is_narrow: bool = False
    locks: bool = False
    awaits: bool = True
    fenced: bool = False

    @property
    def how(self) -> int:
        """The bits of its acquisition."""
        return self.fenced * FENCED | self.locks * LOCKS | SEES | self.awaits * AWAITS


@dataclass(frozen=True)
class FlagPair:
    """An earlier access, strong or not and perhaps narrow, and whether the later one is strong.

    An earlier one that `is_updated` is atomic: a later atomic sees it by itself.
    """

    is_strong: bool
    is_now_strong: bool
    is_narrow: bool
    is_updated: bool

    @property
    def needs(self) -> int:
        """The acquisitions that need a fence: all, or those of locks between strong accesses."""
        return LOCKS if self.is_strong and self.is_now_strong else FENCED | LOCKS


class Releases:
    """All fences, releases and acquisitions of a launch; `lenient` ones acquire without a fence."""

    def __init__(self, *, lenient: bool = False) -> None:
        self._lenient = lenient
        # Fences of any scope, and fences that reach other blocks.
        self._fences = (Ledger(), Ledger())
        self._released = Ledger()
        self._acquired = Ledger()
        self._pending: dict[int, Array] = {}  # acquisitions without a fence so far, by block
        self._turn = 0
        self._last_released: dict[int, int] = {}
        self._last_seen: dict[tuple[int, int, int], int] = {}
        self._reaches: dict[tuple[int, bytes], _Reach] = {}

    def fence(self, touch: ElementAccess, scope: str) -> None:
        """Record a fence; one of scope "block" does not reach other blocks."""
        is_narrow = scope == "block"
        rows = clock_rows(touch)
        for fences in self._fences[: 1 if is_narrow else 2]:
            fences.add(rows)
        if self._pending:
            for block in np.unique(rows[:, KEY]).tolist():
                self._acquire(block, rows[rows[:, KEY] == block], is_narrow=is_narrow)

    def _acquire(self, block: int, fences: Array, *, is_narrow: bool) -> None:
        """Record the acquisitions that fences of a block complete."""
        pending = self._pending.get(block)
        if pending is None:
            return
        fence, which = (part.reshape(-1) for part in np.indices((len(fences), len(pending))))
        known = is_ordered(fences[fence], pending[which, THREAD], pending[which, TIME])
        fence, which = fence[known], which[known]
        made = fences[fence].copy()
        for column in (TURN, PLACE, NARROW, HOW):
            made[:, column] = pending[which, column]
        made[:, NARROW] |= is_narrow
        made[:, HOW] = made[:, HOW] & ~SEES | FENCED
        self._acquired.add(made)
        own = made[:, THREAD] == pending[which, THREAD]
        own &= (pending[which, NARROW] != 0) | (not is_narrow)
        left = np.delete(pending, np.unique(which[own]), axis=0)
        self._pending[block] = left
        if not len(left):
            del self._pending[block]

    def _suspend(self, rows: Array) -> None:
        """Keep acquisitions until their fences: of each thread and place the last."""
        for block in np.unique(rows[:, KEY]).tolist():
            mine, known = rows[rows[:, KEY] == block], self._pending.get(block)
            parts = [mine] if known is None else even([known, mine])
            every = np.concatenate(parts)
            self._pending[block] = last_of_each(every, every[:, [THREAD, PLACE, NARROW]].T)

    def visit(self, touch: ElementAccess, flag: FlagAccess) -> None:
        """Record accesses to flags; lanes of one step take turns."""
        rows = clock_rows(touch)
        rows[:, PLACE] = locations(touch)
        rows[:, NARROW] = flag.is_narrow
        rows[:, HOW] = flag.how
        rows[:, TURN] = self._turn + 2 * np.arange(1, len(rows) + 1)
        self._turn += 2 * len(rows)
        if flag.acquires:
            news = rows if flag.releases else rows[self._is_news(rows)]
            self._acquired.add(news)
            if not flag.fenced and len(news):
                self._suspend(news)
        if flag.releases:
            made = rows.copy()
            made[:, KEY] = made[:, PLACE]
            made[:, TURN] += 1
            self._released.add(made)
            self._last_released.update(made[:, [PLACE, TURN]].tolist())

    def _is_news(self, rows: Array) -> Array:
        """Return a mask of the loads that see a flag's new value: others only wait."""
        news = []
        for thread, place, narrow in rows[:, [THREAD, PLACE, NARROW]].tolist():
            there = self._last_released.get(place, 0)
            news.append(there > self._last_seen.get((thread, place, narrow), 0))
            self._last_seen[thread, place, narrow] = there
        return np.array(news, dtype=bool)

    def orders(self, thread: Array, time: Array, touch: ElementAccess, pair: FlagPair) -> Array:
        """Return a mask of earlier accesses, one per entry of a touch, known to its threads.

        An earlier strong one is also known to threads that have seen its element since; a narrow
        one, to threads of its block.
        """
        found = np.zeros(len(thread), dtype=bool)
        if not (pair.is_strong or self._fences[0]):
            return found
        where = locations(touch)
        turns = self._turns(where, thread, time) if pair.is_strong else np.full(len(where), NEVER)
        accesses = np.stack([thread, time, where, turns, np.full(len(where), pair.is_narrow)])
        needs = 0 if self._lenient else pair.needs
        for entries, seen in self._acquired_by(clock_rows(touch)):
            if not pair.is_updated:
                only = ((seen[:, HOW] & AWAITS) == 0) | (seen[:, TIME] == touch.time)
                seen[only, HOW] &= ~SEES
            found[entries] = self._reach(seen, needs).covers(accesses[:, entries])
        return found

    def _turns(self, where: Array, thread: Array, time: Array) -> Array:
        """Return the turns of strong accesses at a place.

        Repeated questions, as of all threads that load a sum, are looked up once.
        """
        _, first, of = np.unique(
            time << THREAD_BITS | thread, return_index=True, return_inverse=True
        )
        where, thread, time = where[first], thread[first], time[first]
        turns = np.full(len(where), NEVER)
        entries, rows = self._released.find(where)
        if len(rows):
            its = (rows[:, THREAD] == thread[entries]) & (rows[:, TIME] == time[entries])
            turns[entries[its]] = rows[its, TURN]
        return np.asarray(turns[of])

    def _acquired_by(self, who: Array) -> Iterator[tuple[Array, Array]]:
        """Yield groups of threads that know the same acquisitions, each with the acquisitions."""
        blocks, block_of = np.unique(who[:, KEY], return_inverse=True)
        entries, acquired = self._acquired.find(blocks)
        if not len(entries):
            return
        by_block = np.argsort(block_of, kind="stable")
        ends = np.searchsorted(block_of[by_block], np.arange(len(blocks) + 1))
        for one in np.unique(entries).tolist():
            mine, rows = by_block[ends[one] : ends[one + 1]], acquired[entries == one]
            shape = len(mine), len(rows)
            each, other = (part.reshape(-1) for part in np.indices(shape))
            known = is_ordered(who[mine[each]], rows[other, THREAD], rows[other, TIME]).reshape(
                shape
            )
            patterns, which = np.unique(known, axis=0, return_inverse=True)
            for number, pattern in enumerate(patterns):
                if pattern.any():
                    yield mine[which.reshape(-1) == number], rows[pattern]

    def _reach(self, seen: Array, needs: int) -> _Reach:
        """Return the accesses known through some acquisitions, of the ones that need a fence."""
        key = needs, np.sort(seen[:, TURN] << 5 | seen[:, NARROW] << 4 | seen[:, HOW]).tobytes()
        if key not in self._reaches:
            self._reaches[key] = _Reach(self._walk(seen, needs))
        return self._reaches[key]

    def _walk(self, seen: Array, needs: int) -> Iterator[ReleasedClocks | AcquiredLocations]:
        """Yield the knowledge of acquisitions, going back from flag to flag."""
        done: dict[tuple[int, int, int], int] = {}
        while len(seen):
            yield AcquiredLocations.of(seen)
            found = []
            for fences in self._fences_behind(seen[_are_complete(seen, needs)], done):
                if len(fences):
                    yield ReleasedClocks.of(fences)
                    found.append(fences)
            if not found:
                return
            before = [self._acquired_before(fences) for fences in found]
            seen = np.concatenate(even([rows for rows in before if len(rows)] or before[:1]))

    def _fences_behind(self, seen: Array, done: dict[tuple[int, int, int], int]) -> Iterator[Array]:
        """Yield the fences of releases that some acquisitions see, the latest releases first."""
        order = np.lexsort((-seen[:, TURN], seen[:, PLACE], seen[:, KEY]))
        for block, place, turn, narrow in seen[order][:, [KEY, PLACE, TURN, NARROW]].tolist():
            known = done.get((block, place, narrow), 0)
            if turn <= known:
                continue
            done[block, place, narrow] = turn
            _, rows = self._released.find(np.array([place]))
            if not len(rows):
                continue
            rows = rows[(rows[:, TURN] > known) & (rows[:, TURN] < turn)]
            wide = (rows[:, NARROW] | narrow) == 0
            rows = rows[wide | (rows[:, THREAD] >> BLOCK_SHIFT == block)]
            rows = rows[np.argsort(-rows[:, TURN])]
            first, size = 0, FIRST_LOOKED_AT
            while first < len(rows):
                yield from self._fences_of(rows[first : first + size], block)
                first, size = first + size, 2 * size

    def _fences_of(self, releases: Array, reader: int) -> Iterator[Array]:
        """Yield the fences before releases; for other blocks' readers, fences of that scope."""
        by = releases[:, THREAD] >> BLOCK_SHIFT
        for fences, some in zip(self._fences, (by == reader, by != reader), strict=True):
            made = _last_of_each_thread(releases[some])
            entries, rows = fences.find(made[:, THREAD] >> BLOCK_SHIFT)
            if len(rows):
                yield rows[is_ordered(made[entries], rows[:, THREAD], rows[:, TIME])]

    def _acquired_before(self, fences: Array) -> Array:
        """Return the acquisitions known to threads at their fences."""
        fences = _last_of_each_thread(fences)
        entries, rows = self._acquired.find(fences[:, KEY])
        if not len(rows):
            return rows
        known = rows[is_ordered(fences[entries], rows[:, THREAD], rows[:, TIME])]
        return np.unique(known, axis=0)


def _last_of_each_thread(rows: Array) -> Array:
    """Return the last clocks of each thread: it knows what it knew before."""
    ordered = rows[np.lexsort((rows[:, TIME], rows[:, THREAD]))]
    is_last = np.ones(len(ordered), dtype=bool)
    is_last[:-1] = ordered[1:, THREAD] != ordered[:-1, THREAD]
    return np.asarray(ordered[is_last])


def _are_complete(acquired: Array, needs: int) -> Array:
    """Return a mask of acquisitions that need no fence, or have one.

    Of the bits `needs`, FENCED stands for those by flags, LOCKS for those by locks.
    """
    how = acquired[:, HOW]
    by_lock = (how & LOCKS) != 0
    needed = (by_lock & bool(needs & LOCKS)) | (~by_lock & bool(needs & FENCED))
    return np.asarray(~needed | ((how & FENCED) != 0))


class _Reach:
    """The knowledge of some acquisitions, computed only as far back as needed."""

    def __init__(self, walk: Iterator[ReleasedClocks | AcquiredLocations]) -> None:
        self._walk = walk
        self._known: list[ReleasedClocks | AcquiredLocations] = []

    def covers(self, accesses: Array) -> Array:
        """Return a mask of the known accesses, given their threads, times, places and turns."""
        found = np.zeros(accesses.shape[1], dtype=bool)
        for one in self._all():
            left = np.flatnonzero(~found)
            found[left] = one.covers(accesses[:, left])
            if found.all():
                break
        return found

    def _all(self) -> Iterator[ReleasedClocks | AcquiredLocations]:
        yield from self._known
        for one in self._walk:
            self._known.append(one)
            yield one
