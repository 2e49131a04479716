"""Order between threads by fences and flags: release and acquire operations.

A thread that runs a fence and then an atomic operation (or a store to a polled flag) releases its
earlier accesses up to the fence; a thread whose atomic or waiting load comes to that place later,
and that runs a fence after it, acquires them (PTX ISA, release and acquire patterns). Each fence
counts in its scope. Barriers add order on all sides: the fence may be another thread's, if a
barrier stands between the two.

Two strong accesses after a flag need no second fence: they cannot find old data in a cache. A
lock, taken by a compare-and-swap, needs it; with `lenient` neither does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpusim.checking.block_flow import BlockFlow, Row, Together, joined
from gpusim.checking.clock_rows import (
    AWAITS,
    BARRIER,
    HEARD,
    KEY,
    NARROW,
    PAIRS,
    PLACE,
    THREAD,
    TIME,
    TURN,
    WARP_SYNC,
    clock_rows,
    is_ordered,
    locations,
)
from gpusim.checking.element_access import BLOCK_SHIFT, LOCATION_SHIFT, ElementAccess
from gpusim.checking.handovers import Handovers
from gpusim.checking.known_times import KnownTimes, ReleasedTimes, of_thread, of_warps
from gpusim.checking.ledger import Ledger
from gpusim.typing import Array

# Acquisitions at a contended place are searched from the last ones on, this many first.
FIRST_LOOKED_AT = 64
NEVER = np.iinfo(np.int64).max  # the turn of a plain access
FENCED, LOCKS = 1, 2  # acquisitions that need a fence: by flags, by locks
WAYS, HASH = 8, np.int64(0x9E3779B1)  # of the last loads of a thread; their order by place
EVERY_SCOPE = 3
SIDES: tuple[Literal["left"], Literal["right"]] = "left", "right"
MOST_LATE_BYTES = 1 << 27
_COLUMNS = [PLACE, THREAD, TIME, TURN, NARROW, AWAITS]  # of `_seen`
Known = tuple[KnownTimes | None, ...]


@dataclass(frozen=True)
class FlagAccess:
    """An access to a flag, for the rules: whether it `acquires`, and whether it `releases`.

    Narrow ones are flags for the threads of their block alone. One that `locks` is a
    compare-and-swap, one that `awaits` waits for a value or swaps it; `fenced` are PTX's acquires.
    One that `sees` its element comes after the values that it reads there. What a store of PTX's
    release order stores is released `with_itself`.
    """

    acquires: bool
    releases: bool
    is_narrow: bool = False
    locks: bool = False
    awaits: bool = True
    fenced: bool = False
    sees: bool = True
    with_itself: bool = False


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
        """The acquisitions that need a fence: all, or only locks between strong accesses."""
        return LOCKS if self.is_strong and self.is_now_strong else FENCED | LOCKS


class Releases:
    """All fences, releases and acquisitions of a launch; `lenient` ones acquire without a fence.

    `has_strong_pairs`: two strong accesses may race; `has_narrow`: flags or fences have block
    scope.
    """

    def __init__(
        self, *, lenient: bool = False, has_strong_pairs: bool = True, has_narrow: bool = True
    ) -> None:
        self._lenient = lenient
        needs = (0,) if lenient else (FENCED | LOCKS, LOCKS)[: 1 + has_strong_pairs]
        self._orders = {need: Order(need) for need in needs}
        self._scopes = (0, 1) if has_narrow else (1,)
        self._fenced: tuple[BlockFlow[Fenced], ...] = BlockFlow(), BlockFlow()
        self._handovers = Handovers()
        self._has_fences = False
        self._late: list[tuple[Any, ...]] = []  # records since the last request for an order
        self._late_bytes = 0
        self._turn = 0
        self._seen = Ledger()  # acquisitions by place
        # Of releases, by time: place, thread, turn, and the scopes of fences before, as bits; and
        # their order by thread.
        self._released: dict[int, tuple[Array, Array]] = {}
        self._last_released: dict[int, int] = {}
        self._last_seen = LastLoads(), LastLoads()  # of all and of narrow flags

    def fence(self, touch: ElementAccess, scope: str) -> Array:
        """Record a fence; one of scope "block" does not reach other blocks. Returns its clocks."""
        self._has_fences = True
        scopes = self._scopes[: 1 if scope == "block" else 2]
        rows = clock_rows(touch)
        self._later(self._fence, rows, scopes)
        if scope != "block":
            self._handovers.fence(rows)
        return rows

    def _later(self, does: Callable[..., None], rows: Array, *others: Any) -> None:
        """Defer an operation on rows until an order is requested."""
        if rows.ndim == 2 and rows.shape[1] == PAIRS:
            rows = rows[:, : PLACE + 1].copy()  # no later column counts here
        self._late.append((does, rows, *others))
        self._late_bytes += rows.nbytes
        if self._late_bytes > MOST_LATE_BYTES:
            self._catch_up()

    def _catch_up(self) -> None:
        late, self._late, self._late_bytes = self._late, [], 0
        for does, rows, *others in late:
            does(rows, *others)

    def _fence(self, rows: Array, scopes: Sequence[int]) -> None:
        for mine in np.split(rows, 1 + np.flatnonzero(np.diff(rows[:, KEY]))):
            if not self._fence_together(mine, scopes):
                for row in mine.tolist():
                    orders = self._orders.values()
                    ready = Fenced(row, tuple([one.complete(row, scopes) for one in orders]))
                    for one in scopes:
                        self._fenced[one].add(row, ready)

    def _fence_together(self, rows: Array, scopes: Sequence[int]) -> bool:
        """Record a fence of threads of a block as one, if they know the same from a barrier."""
        if len(rows) < 32 or rows.shape[1] > HEARD:
            return False
        first, orders = rows[0].tolist(), self._orders.values()
        flows = [self._fenced[one] for one in scopes]
        if (rows[:, BARRIER] != first[BARRIER]).any() or (rows[:, PAIRS:] > first[BARRIER]).any():
            return False
        if not all(one.is_common(first, scopes) for one in orders):
            return False
        if not all(flow.is_common(first) for flow in flows):
            return False
        acquired = tuple([one.acquired.of(first) for one in orders])
        every = Fenced(first, acquired)
        every.made = (of_warps(_warps(rows), first[TIME], first[BARRIER]), *acquired)

        def each() -> Iterator[tuple[Row, Fenced]]:
            return ((row, Fenced(row, acquired)) for row in rows.tolist())

        for flow in flows:
            flow.add_together(first, Together(first[TIME], each, every))
        return True

    def visit(self, touch: ElementAccess, flag: FlagAccess) -> Array:
        """Record accesses to flags, lane by lane.

        Returns their clocks, without loads of unchanged values.
        """
        rows = clock_rows(touch)
        rows[:, PLACE] = locations(touch)
        rows[:, NARROW] = flag.is_narrow
        rows[:, AWAITS] = flag.awaits
        rows[:, TURN] = self._turn + 2 * np.arange(1, len(rows) + 1)
        self._turn += 2 * len(rows)
        if flag.acquires and not flag.releases:
            rows = rows[self._is_news(rows, is_narrow=flag.is_narrow)]
        if flag.acquires and flag.sees:
            self._seen.add(rows[:, _COLUMNS])
        released = rows[:, [PLACE, THREAD, TURN, KEY]]
        released[:, 2] += 1
        released[:, 3] = 0
        if flag.releases:
            self._released[touch.time] = released, np.argsort(rows[:, THREAD], kind="stable")
            self._last_released.update(released[:, [0, 2]].tolist())
        if self._has_fences:
            self._later(self._visit, rows, released, flag)
            if not flag.is_narrow:
                self._hand_over(rows, released, flag)
        return rows

    def _hand_over(self, rows: Array, released: Array, flag: FlagAccess) -> None:
        if flag.acquires:
            self._handovers.acquire(rows, is_complete=flag.fenced or self._lenient)
        if flag.releases:
            fenced = self._handovers.release(rows, with_itself=flag.with_itself)
            released[fenced, 3] = EVERY_SCOPE

    def _visit(self, rows: Array, released: Array, flag: FlagAccess) -> None:
        for number, row in enumerate(rows.tolist()):
            for scope in self._scopes[: 1 if flag.is_narrow else 2]:
                if flag.acquires:
                    for order in self._orders.values():
                        order.acquire(row, scope, flag)
                if flag.releases and self._release(row, scope, flag):
                    released[number, 3] |= 1 << scope

    def _release(self, row: Row, scope: int, flag: FlagAccess) -> bool:
        """Record a release, and return whether a fence comes before it."""
        ready = self._fenced[scope].of(row)
        if ready is None:
            return False
        own, *acquired = ready.known()
        if flag.with_itself:
            own = joined(own, _own(row))
        for order, known in zip(self._orders.values(), acquired, strict=True):
            order.release(row, scope, (known, own))
        return True

    def forget(self, blocks: Array) -> None:
        """Forget the threads of blocks that have ended."""
        if self._has_fences:
            self._later(self._forget, blocks)

    def _forget(self, blocks: Array) -> None:
        for block in blocks.tolist():
            for order in self._orders.values():
                order.forget(block)
            for flow in self._fenced:
                flow.forget(block)

    def _is_news(self, rows: Array, *, is_narrow: bool) -> Array:
        """Return a mask of the loads that may read a new value: unless the thread has seen it."""
        place = rows[:, PLACE]
        released = np.array([self._last_released.get(one, 0) for one in place.tolist()])
        return released > self._last_seen[is_narrow].exchange(rows[:, THREAD], place, released)

    def orders(self, thread: Array, time: Array, touch: ElementAccess, pair: FlagPair) -> Array:
        """Return a mask of earlier accesses, one per entry of a touch, known to its threads.

        An earlier strong one is also known to threads that have seen its element since; a narrow
        one, to threads of its block.
        """
        found = np.zeros(len(thread), dtype=bool)
        if not (pair.is_strong or self._has_fences):
            return found
        who = clock_rows(touch)
        found = self._handovers.order(thread, time, who)
        if found.all():
            return found
        self._catch_up()
        known = self._orders[0 if self._lenient else pair.needs].known_to(who)
        if any(one is not None for one in known):
            found |= time <= _until(known, thread)
        if pair.is_strong and self._seen and not found.all():
            left = np.flatnonzero(~found)
            where = locations(touch)[left]
            turns = self._turns(where, thread[left], time[left])
            which = turns < NEVER
            left, where, turns = left[which], where[which], turns[which]
            mine = [known[entry] for entry in left]
            found[left] = self._are_seen(
                where, turns, thread[left], who[left], mine, pair, touch.time
            )
        return found

    def are_fenced(self, touch: ElementAccess, thread: Array, time: Array, readers: Array) -> Array:
        """Return a mask of stores to accessed elements after a fence that reaches readers."""
        is_near = ((thread ^ readers) >> BLOCK_SHIFT) == 0
        scopes = self._of_released(locations(touch), thread, time, 3, 0)
        if (scopes != EVERY_SCOPE).any() and self._late:
            self._catch_up()
            scopes = self._of_released(locations(touch), thread, time, 3, 0)
        return np.asarray(np.where(is_near, scopes != 0, scopes > 1))

    def _turns(self, where: Array, thread: Array, time: Array) -> Array:
        """Return the turns of strong accesses at places."""
        return self._of_released(where, thread, time, 2, NEVER)

    def _of_released(
        self, where: Array, thread: Array, time: Array, column: int, missing: int
    ) -> Array:
        """Return a column of the releases at places, by threads at times."""
        found = np.full(len(where), missing)
        for one in np.unique(time).tolist():
            if one not in self._released:
                continue
            released, order = self._released[one]
            mine = np.flatnonzero(time == one)
            by = released[order, 1]
            first, end = (np.searchsorted(by, thread[mine], side) for side in SIDES)
            for place in range(int((end - first).max())):  # of a thread's entries
                at = order[np.minimum(first + place, len(order) - 1)]
                same = (first + place < end) & (released[at, 0] == where[mine])
                found[mine[same]] = released[at[same], column]
        return found

    def _are_seen(
        self,
        where: Array,
        turns: Array,
        thread: Array,
        who: Array,
        known: Sequence[KnownTimes | None],
        pair: FlagPair,
        now: int,
    ) -> Array:
        """Return a mask of strong accesses to locations that threads have read since."""
        found = np.zeros(len(where), dtype=bool)
        last: int | None = FIRST_LOOKED_AT
        while True:
            left = np.flatnonzero(~found)
            entries, seen = self._seen.find(where[left], last)
            if not len(entries):
                return found
            place, by, time, turn, narrow, awaits = seen.T
            entry = left[entries]
            counts = turn > turns[entry]
            in_block = (place >> LOCATION_SHIFT == 0) & (by ^ thread[entry]) >> BLOCK_SHIFT == 0
            counts &= in_block | ((narrow == 0) & (not pair.is_narrow))
            entry, by, time, awaits = entry[counts], by[counts], time[counts], awaits[counts]
            mine = is_ordered(who[entry], by, time)
            if not pair.is_updated:
                mine &= (awaits != 0) & (time != now)
            mine |= time <= _until([known[one] for one in entry], by)
            found[entry[mine]] = True
            if found.all() or last is None or len(entries) < last:
                return found
            last = None


class LastLoads:
    """The last places that each thread has loaded, and the turns of the releases found there."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # by thread
        self._places, self._turns = (np.zeros((64, WAYS), dtype=np.int64) for _ in range(2))

    def exchange(self, thread: Array, place: Array, turn: Array) -> Array:
        """Record loads, and return the turns that their threads found there before, or zeros."""
        numbers = self._numbers
        at = np.array([numbers.setdefault(one, len(numbers)) for one in thread.tolist()])
        while len(self._places) < len(numbers):
            doubled = (np.concatenate([one, 0 * one]) for one in (self._places, self._turns))
            self._places, self._turns = doubled
        way = (place * HASH >> 29) % WAYS
        before: Array = np.where(self._places[at, way] == place, self._turns[at, way], 0)
        self._places[at, way], self._turns[at, way] = place, turn
        return before


def _until(known: Sequence[KnownTimes | None], thread: Array) -> Array:
    """Return the times up to which accesses of threads are known, entry by entry."""
    times: dict[tuple[int, int], int] = {}
    made = []
    for one, by in zip(known, thread.tolist(), strict=True):
        key = id(one), by
        if key not in times:
            times[key] = -1 if one is None else one.until(by)
        made.append(times[key])
    return np.array(made, dtype=np.int64)


class Fenced:
    """The times known to a thread at its last fence: by barriers, and `acquired` in each order.

    `before` has the fences of other threads known to it.
    """

    __slots__ = ("acquired", "before", "made", "row")

    def __init__(self, row: Row, acquired: Known, before: Fenced | None = None) -> None:
        self.row, self.acquired, self.before = row, acquired, before
        self.made: Known | None = None

    def join(self, other: Fenced) -> Fenced:
        """Return the union of both."""
        if other.before is not None or other.made is not None:
            both = Fenced(other.row, other.acquired)
            both.made = _joined(self.known(), other.known())
            return both
        if self.row[THREAD] == other.row[THREAD] and self.made is None:
            return Fenced(other.row, other.acquired, self.before)
        return Fenced(other.row, other.acquired, self)

    def known(self) -> Known:
        """Return the times known by barriers, and then those acquired."""
        if self.made is None:
            mine = (_own(self.row), *self.acquired)
            self.made = mine if self.before is None else _joined(self.before.known(), mine)
            self.before = None
        return self.made


def _joined(known: Known, other: Known) -> Known:
    return tuple(map(joined, known, other))


class Order:
    """Happens-before order by flags, where some acquisitions need a fence after them.

    In place of a scope, an index: 0 for the block, 1 for all.
    """

    def __init__(self, needs: int) -> None:
        self._needs = needs
        self.acquired: BlockFlow[KnownTimes] = BlockFlow()
        self._pending: tuple[BlockFlow[KnownTimes], ...] = BlockFlow(), BlockFlow()
        self._released: dict[tuple[int, int], ReleasedTimes] = {}

    def complete(self, row: Row, scopes: Sequence[int]) -> KnownTimes | None:
        """Complete the acquisitions before a thread's fence, and return all that it acquired."""
        known = None
        for scope in scopes:
            pending = self._pending[scope].take(row)
            if pending is not None:
                known = self.acquired.add(row, pending)
        return self.acquired.of(row) if known is None else known

    def is_common(self, row: Row, scopes: Sequence[int]) -> bool:
        """Return whether a block's threads have acquired the same, and wait for no fence."""
        pending = [self._pending[scope] for scope in scopes]
        flows = [self.acquired, *pending]
        is_none_pending = all(flow.of(row) is None for flow in pending)
        return is_none_pending and all(flow.is_common(row) for flow in flows)

    def acquire(self, row: Row, scope: int, flag: FlagAccess) -> None:
        """Record the acquisition of all that was released to a place."""
        released = self._released.get(_place(row, scope))
        if released is not None and released.known is not None:
            is_complete = flag.fenced or not self._needs & (LOCKS if flag.locks else FENCED)
            (self.acquired if is_complete else self._pending[scope]).add(row, released.known)

    def release(self, row: Row, scope: int, known: Sequence[KnownTimes | None]) -> None:
        """Record the release of the times known to a thread at its fences."""
        released = self._released.setdefault(_place(row, scope), ReleasedTimes())
        for one in known:
            if one is not None:
                released.join(one)

    def known_to(self, who: Array) -> list[KnownTimes | None]:
        """Return the times acquired by threads, entry by entry."""
        if not self.acquired:
            return [None] * len(who)
        _, first, which = np.unique(who[:, THREAD], return_index=True, return_inverse=True)
        each = [self.acquired.of(row) for row in who[first].tolist()]
        return [each[one] for one in which.tolist()]

    def forget(self, block: int) -> None:
        """Forget the threads of a block that has ended."""
        for flow in (self.acquired, *self._pending):
            flow.forget(block)


def _warps(rows: Array) -> list[tuple[int, int, int]]:
    """Return the first thread of each warp among rows, its lanes as bits, and when they met."""
    made: dict[int, tuple[int, int, int]] = {}
    for thread, warp_sync in rows[:, [THREAD, WARP_SYNC]].tolist():
        first, lanes, met = made.get(thread >> 5, (thread & -32, 0, 0))
        made[thread >> 5] = first, lanes | 1 << (thread & 31), max(met, warp_sync)
    return list(made.values())


def _place(row: Row, scope: int) -> tuple[int, int]:
    return row[PLACE], -1 if scope else row[KEY]


def _own(row: Row) -> KnownTimes:
    """Return the times of its block that a thread knows by barriers."""
    lanes = dict(enumerate(row[PAIRS:HEARD]))
    warps = dict(enumerate(row[HEARD:]))
    return of_thread(row[THREAD], row[TIME], row[WARP_SYNC], row[BARRIER], lanes, warps)
