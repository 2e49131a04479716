"""Races: accesses to one element, a write among them, that nothing orders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gpusim.checking.access import COPIES, Access, Timeline
from gpusim.checking.async_copies import InFlight, wait_for
from gpusim.checking.clock_rows import PLACE, clock_rows, locations
from gpusim.checking.coverage import STRONG, Coverage
from gpusim.checking.element_access import (
    ATOMIC,
    BLOCK_SHIFT,
    ElementAccess,
    Unordered,
    thread_of,
    time_of,
    unordered,
)
from gpusim.checking.findings import Finding, Place, Thread
from gpusim.checking.history import History
from gpusim.checking.missing_order import FlagLog, Point
from gpusim.checking.order_reports import Reporter as OrderReporter
from gpusim.checking.order_reports import unawaited, unequal
from gpusim.checking.releases import FlagPair, Releases
from gpusim.checking.rules import ERROR, RULES
from gpusim.checking.shadow import Shadow
from gpusim.checking.sink import Sink
from gpusim.typing import Array

HAZARDS = {
    ("store", "load"): "read-after-write",
    ("atomic", "load"): "read-after-write",
    ("load", "store"): "write-after-read",
    ("load", "atomic"): "write-after-read",
}
WRITES_TWICE = "write-after-write"
# Two accesses that commute.
HARMLESS = {("load", "load"), ("atomic", "atomic")}

# Flags without fences: reading one orders nothing, not even the flag itself.
PLAIN_PAIR = FlagPair(is_strong=False, is_now_strong=False, is_narrow=False, is_updated=False)

# An entry's array and index.
Name = Callable[[int], tuple[str, int]]


class Beside(NamedTuple):
    """Accesses to elements by threads other than the last one, and the last bits stored."""

    others: Array
    stored: Array


class Races:
    """Looks for races in one memory at a time; `accesses` are the program's, by pc.

    The text of their `source` names the wait for asynchronous copies.
    """

    def __init__(
        self,
        sink: Sink,
        timeline: Timeline,
        accesses: dict[int, Access],
        lines: list[int],
        releases: Releases | None,
        log: FlagLog | None,
        is_lockstep: bool,
        coverage: Coverage,
        element: Callable[[Access, int], tuple[str, int]],
        source: str,
    ) -> None:
        self._source = source
        self._coverage = coverage
        self._sink = sink
        self._timeline = timeline
        self._accesses = accesses
        self._lines = lines
        self._releases = releases
        self._log = log
        self._is_lockstep = is_lockstep
        self._reporter = OrderReporter(
            lambda time: accesses[timeline.pc_at(time)],
            lambda time: lines[timeline.pc_at(time)],
            element,
            thread_named,
        )
        self._has_narrow = any(access.is_narrow for access in accesses.values())

    def touch(self, shadow: Shadow, touch: ElementAccess, now: Access, name: Name) -> None:
        """Compare one step with earlier accesses, and enter it into the shadow.

        `name` gives an entry's array and index. The access of a copy is entered when it has been
        awaited.
        """
        kind = now.kind
        self._coverage.accesses += len(touch.element) * touch.blocks
        writers, readers = shadow.writer[touch.element], shadow.reader[touch.element]
        is_update = kind == "atomic"
        beside = Beside(shadow.other_writer, shadow.stored)
        self._against(writers, touch, now, name, beside, by_element=is_update)
        if kind != "load":
            beside = Beside(shadow.other_reader, shadow.stored)
            self._against(readers, touch, now, name, beside)
        if shadow.history is not None:
            self._against_history(shadow.history, touch, now, name)
        if now.is_asynchronous:
            return
        if kind == "load":
            shadow.read(touch)
        elif kind == "atomic":
            shadow.update(touch)
        else:
            self._keep_stored(shadow, touch)
            lost = shadow.write(touch)
            if lost is not None and not now.is_relaxed:
                self.at_once(lost, touch, now, name)
        if now.is_narrow and now.is_relaxed and kind != "load":
            self._narrow_at_once(touch, now, name)

    def meanwhile(self, copies: InFlight, touch: ElementAccess, now: Access, name: Name) -> None:
        """Compare one step with pending copies of its elements."""
        begun = copies.begun[touch.element]
        which = np.flatnonzero(begun)
        pcs = self._timeline.pcs_at(time_of(begun[which]))
        for pc in np.unique(pcs).tolist():
            before = self._accesses[pc]
            if (before.kind, now.kind) not in HARMLESS:
                self._report_copy(which[pcs == pc], copies, touch, before, now, name)

    def _report_copy(
        self,
        which: Array,
        copies: InFlight,
        touch: ElementAccess,
        before: Access,
        now: Access,
        name: Name,
    ) -> None:
        at = which[0]
        begun = copies.begun[touch.element[at]]
        since = self._since(touch, at, int(time_of(begun)))
        first = Place(before.line, COPIES[before.kind], thread_named(thread_of(begun)), since)
        second = Place(now.line, now.does, thread_named(touch.thread[at]), since)
        count = len(which) * touch.blocks
        left = copies.pending(int(touch.element[at]))
        race = _race("copy-race", (first, second), before, now, name(at), count, left.why)
        barrier = int(touch.barrier[at] if touch.barrier.ndim else touch.barrier)
        between = barrier > time_of(begun)
        fix = left.fix(
            wait_for(self._source, before.line),
            now.line,
            self._lines[self._timeline.pc_at(barrier)] if between else 0,
            is_own=first.thread == second.thread,
        )
        self._sink.add(replace(race, missing=left.missing, fix_text=fix))

    def _against_history(
        self, history: History, touch: ElementAccess, now: Access, name: Name
    ) -> None:
        def may_race(before: Access) -> bool:
            if _are_narrow(before, now):
                return True
            return (before.kind, now.kind) not in HARMLESS and not _may_overlap(before, now)

        for entries, earlier in history.against(touch, may_race):
            self._against(earlier, touch.take(entries), now, _renamed(name, entries), counts=False)

    def _against(
        self,
        earlier: Array,
        touch: ElementAccess,
        now: Access,
        name: Name,
        beside: Beside | None = None,
        *,
        counts: bool = True,
        by_element: bool = False,
    ) -> None:
        if not earlier.any():
            return
        if now.kind == "atomic" and not self._has_narrow:
            earlier = np.where(earlier & ATOMIC, 0, earlier)
        found = unordered(earlier, touch)
        if counts:
            self._count(earlier, touch, found, by_element=by_element)
        if found is None:
            return
        if beside is not None:
            earlier = _of_other_threads(earlier, touch, found, beside.others)
        stored = None if beside is None else beside.stored
        if found.apart.any():
            which = np.flatnonzero(found.apart)
            self._judge(which, earlier, touch, now, now.space, name, stored, counts=counts)
        if not self._is_lockstep and found.within_warp.any():
            which = np.flatnonzero(found.within_warp)
            self._judge(which, earlier, touch, now, "warp", name, stored, counts=counts)

    def _count(
        self, earlier: Array, touch: ElementAccess, found: Unordered | None, *, by_element: bool
    ) -> None:
        """Count the ordered pairs, or the elements with one: of atomics, one follows a store."""
        is_pair = earlier != 0
        if found is not None:
            is_pair &= ~found.either
        pairs = len(np.unique(touch.element[is_pair])) if by_element else np.count_nonzero(is_pair)
        self._coverage.ordered += int(pairs) * touch.blocks

    def _judge(
        self,
        which: Array,
        earlier: Array,
        touch: ElementAccess,
        now: Access,
        space: str,
        name: Name,
        stored: Array | None,
        *,
        counts: bool,
    ) -> None:
        """Sort conflicting accesses by the row of the earlier one, and report the races."""
        pcs = self._timeline.pcs_at(time_of(earlier[which]))
        for pc in np.unique(pcs).tolist():
            before = self._accesses[pc]
            some = which[pcs == pc]
            if _may_overlap(before, now) or _is_flag(before, now):
                free = self._are_free(earlier[some], touch.take(some), before, now)
                if counts:
                    strong = int(np.count_nonzero(free)) * touch.blocks
                    self._coverage.not_compared[STRONG] += strong
                some = some[~free]
                if not len(some):
                    continue
            left = some[~self._are_ordered(earlier[some], touch.take(some), before, now)]
            self._coverage.ordered += (len(some) - len(left)) * touch.blocks
            same = np.zeros(len(left), dtype=bool)
            if before.kind == now.kind == "store" and len(left):
                same = self._store_alike(earlier[left], touch.take(left), stored)
            for some, rule in ((left[same], "same-value"), (left[~same], "")):
                if len(some):
                    self._report(some, earlier, touch, before, now, space, name, rule)

    def _are_free(self, earlier: Array, touch: ElementAccess, before: Access, now: Access) -> Array:
        """Return a mask of the pairs, of atomics or at flags, that need no order.

        Those of block scope need it between blocks. A volatile flag needs a fence before the store.
        """
        by = thread_of(earlier)
        if _are_narrow(before, now):
            return ~_in_other_blocks(by, touch.thread)
        if not _is_flag(before, now):
            return np.ones(len(earlier), dtype=bool)
        if self._releases is None:
            return np.zeros(len(earlier), dtype=bool)
        if before.kind == "store":
            return self._releases.are_fenced(touch, by, time_of(earlier), touch.thread)
        now_at = np.full(len(by), touch.time)
        return self._releases.are_fenced(touch, touch.thread, now_at, by)

    def _are_ordered(
        self, earlier: Array, touch: ElementAccess, before: Access, now: Access
    ) -> Array:
        """Return a mask of the earlier accesses that fences and flags order."""
        thread, time = thread_of(earlier), time_of(earlier)
        if self._releases is None:
            return np.zeros(len(earlier), dtype=bool)
        pair = PLAIN_PAIR if _is_flag(before, now) else _flags(before, now)
        return self._releases.orders(thread, time, touch, pair)

    def _report(
        self,
        which: Array,
        earlier: Array,
        touch: ElementAccess,
        before: Access,
        now: Access,
        space: str,
        name: Name,
        rule: str = "",
    ) -> None:
        """Report races of two rows; their `rule` depends on the space where none is given."""
        by, mine = thread_of(earlier[which]), touch.thread[which]
        # If other threads did the same, the kept one may be the thread itself.
        telling = int(np.argmax(by >> 5 != mine >> 5 if space != "warp" else by != mine))
        at = which[telling]
        if _is_plain_flag(before, now):
            rule = "plain-flag"
        is_far = (by[telling] ^ mine[telling]) >> BLOCK_SHIFT != 0
        rule = rule or _rule(before, now, space, is_far)
        since = self._since(touch, at)
        first = Place(before.line, before.does, thread_named(by[telling]), since)
        second = Place(now.line, now.does, thread_named(mine[telling]), since)
        found = _race(rule, (first, second), before, now, name(at), len(which) * touch.blocks)
        if RULES[rule].severity == ERROR and not self._sink.knows(found):
            point = Point(int(by[telling]), int(time_of(earlier[at])))
            found = self._explained(found, (before, now), point, touch.take(np.array([at])))
        self._sink.add(found)

    def _explained(
        self, race: Finding, accesses: tuple[Access, Access], point: Point, touch: ElementAccess
    ) -> Finding:
        """Return a race with the missing operation, if a flag is between the two."""
        before, now = accesses
        awaited = self._timeline.waits.get(point.time)  # none of a bulk copy: its phase ends it
        if before.is_asynchronous and awaited is not None:
            return unawaited(race, awaited)
        if _is_flag(before, now):
            return self._reporter.unfenced(race)
        mine = clock_rows(touch)
        mine[:, PLACE] = locations(touch)
        found = None if self._log is None else self._log.handover(point, mine[0])
        if found is None or not found.missing:
            return unequal(race, before, now)
        return self._reporter.explained(race, accesses, found)

    def _store_alike(self, earlier: Array, touch: ElementAccess, stored: Array | None) -> Array:
        """Return a mask of the pairs of stores that store the same bits.

        `stored` are those of each element's last store, unless all lanes of its step agree.
        """
        known = self._timeline.stored
        times = time_of(earlier).tolist()
        mine = known.get(touch.time)
        bits = touch.stored if mine is None else np.full(len(times), mine)
        before = [known.get(time) for time in times]
        last = [None] * len(times) if stored is None else stored[touch.element].tolist()
        each = zip(before, last, bits.tolist(), strict=True)
        return np.array([(one if one is not None else other) == now for one, other, now in each])

    def _keep_stored(self, shadow: Shadow, touch: ElementAccess) -> None:
        """Keep the bits that each lane stores, where they differ."""
        if touch.time not in self._timeline.stored:
            shadow.stored[touch.element] = touch.stored

    def _since(self, touch: ElementAccess, at: Any, first: int | None = None) -> int:
        """Return the line of the barrier before a touch, and before a `first` time; 0 for none."""
        time = int(touch.barrier[at] if touch.barrier.ndim else touch.barrier)
        if not time or (first is not None and first < time):
            return 0
        return self._lines[self._timeline.pc_at(time)]

    def _narrow_at_once(self, touch: ElementAccess, now: Access, name: Name) -> None:
        """Report blocks that write one element in one instruction, each in block scope."""
        order = np.lexsort((touch.thread, touch.element))
        element, thread = touch.element[order], touch.thread[order]
        pair = (element[1:] == element[:-1]) & _in_other_blocks(thread[1:], thread[:-1])
        if not pair.any():
            return
        at = int(np.argmax(pair))
        since = self._since(touch, order[at])
        both = (thread_named(thread[at]), thread_named(thread[at + 1]))
        places = (
            Place(now.line, now.does, both[0], since),
            Place(now.line, now.does, both[1], since),
        )
        count = int(np.count_nonzero(pair)) * touch.blocks
        race = _race("block-race", places, now, now, name(order[at]), count)
        self._sink.add(unequal(race, now, now))

    def at_once(self, lost: Array, touch: ElementAccess, now: Access, name: Name) -> None:
        """Report threads that store to one element in one and the same instruction."""
        elements = np.unique(touch.element[lost])
        among = np.flatnonzero(np.isin(touch.element, elements))
        ordered = among[np.argsort(touch.element[among], kind="stable")]
        element, thread = touch.element[ordered], touch.thread[ordered]
        pair = (element[1:] == element[:-1]) & (thread[1:] != thread[:-1])
        differ = pair & ~_alike(touch.values()[:, ordered])
        chosen = differ if differ.any() else pair
        if not chosen.any():
            return
        at = int(np.argmax(chosen))
        first, second = thread[at], thread[at + 1]
        rule = "same-value"
        if differ.any():
            space = "instruction" if first >> 5 == second >> 5 else now.space
            rule = _rule(now, now, space, first >> BLOCK_SHIFT != second >> BLOCK_SHIFT)
        since = self._since(touch, ordered[at])
        one, other = (Place(now.line, now.does, thread_named(t), since) for t in (first, second))
        count = int(np.count_nonzero(chosen)) * touch.blocks
        self._sink.add(_race(rule, (one, other), now, now, name(ordered[at]), count))


def _race(
    rule: str,
    places: tuple[Place, Place],
    before: Access,
    now: Access,
    element: tuple[str, int],
    count: int,
    why: str = "the two accesses are unordered",
) -> Finding:
    """Return the finding of two accesses, in the order of their places."""
    hazard = HAZARDS.get((before.kind, now.kind), WRITES_TWICE)
    array, index = element
    first, second = places
    message = (
        f"{second.thread} {second.does} {array}[{index}] in line {second.line}, which "
        f"{first.thread} {first.does} in line {first.line}: {hazard} hazard, {why}"
    )
    return Finding(rule, message, places, array, index, hazard, count)


def _of_other_threads(
    earlier: Array, touch: ElementAccess, found: Unordered, others: Array
) -> Array:
    """Return unordered accesses by another thread, or another warp, where the last ones are not."""
    differs = thread_of(earlier) ^ touch.thread
    is_own = (found.apart & (differs >> 5 == 0)) | (found.within_warp & (differs == 0))
    if not is_own.any():
        return earlier
    other = others[touch.element]
    return np.where(is_own & (other != 0), other, earlier)


def _renamed(name: Name, entries: Array) -> Name:
    """Return the function from entry to array and index for a selection of entries."""
    return lambda entry: name(int(entries[entry]))


def _alike(stored: Array) -> Array:
    """Return whether each entry stores the same value as the next one, in all copies."""
    nan = stored != stored
    same = (stored[:, 1:] == stored[:, :-1]) | (nan[:, 1:] & nan[:, :-1])
    return np.asarray(same.all(axis=0))


def _are_narrow(before: Access, now: Access) -> bool:
    """Return whether one of two accesses, not both loads, is strong in block scope only."""
    return (before.is_narrow or now.is_narrow) and (before.kind, now.kind) != ("load", "load")


def _in_other_blocks(thread: Array, other: Array) -> Array:
    return np.asarray((thread ^ other) >> BLOCK_SHIFT != 0)


def _flags(before: Access, now: Access) -> FlagPair:
    return FlagPair(
        before.is_strong, now.is_strong, before.is_narrow, is_updated=before.kind == "atomic"
    )


def _may_overlap(before: Access, now: Access) -> bool:
    """Return whether two accesses may be made at the same time: atomics, flags, and guesses."""
    has_atomic = "atomic" in (before.kind, now.kind)
    if has_atomic and (before.is_optimistic or now.is_optimistic):
        return True
    if not (before.is_strong and now.is_strong):
        return False
    if before.polls or now.polls or (before.is_relaxed and now.is_relaxed):
        return True
    return has_atomic and "load" in (before.kind, now.kind)


def may_race_strongly(before: Access, now: Access) -> bool:
    """Return whether two strong accesses need an order."""
    if not (before.is_strong and now.is_strong):
        return False
    is_harmless = (before.kind, now.kind) in HARMLESS or _may_overlap(before, now)
    is_harmless |= _is_flag(before, now)
    return _are_narrow(before, now) or not is_harmless


def _is_flag(before: Access, now: Access) -> bool:
    """Return whether a volatile store meets a load that waits for it, or branches on its value."""
    for store, load in ((before, now), (now, before)):
        if store.kind == "store" and store.is_volatile and not store.is_relaxed:
            return load.is_strong and (load.is_signal or (load.is_tested and not load.polls))
    return False


def _is_plain_flag(before: Access, now: Access) -> bool:
    """Return whether a plain store conflicts with a polling strong load."""
    for store, wait in ((before, now), (now, before)):
        if store.kind == "store" and not store.is_strong and wait.polls and wait.is_strong:
            return True
    return False


def _rule(before: Access, now: Access, space: str, between_blocks: Any) -> str:
    if space == "warp" and before.is_volatile and now.is_volatile:
        return "volatile-warp-race"
    if space == "global":
        return "block-race" if between_blocks else "global-race"
    if space == "shared" and between_blocks:
        return "cluster-race"
    return {"warp": "warp-race", "shared": "shared-race", "instruction": "one-instruction"}[space]


def thread_named(packed: Any) -> Thread:
    """Return a thread, unpacked from the shadow's form."""
    number = int(packed)
    return Thread(number >> BLOCK_SHIFT, number & ((1 << BLOCK_SHIFT) - 1))
