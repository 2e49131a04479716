"""Happens-before by its definition: slow, and with no code of gpusim's.

A history is a list of events in the order in which they happened. Whether one access comes before
another is asked of a graph: each thread's events in their order, barriers that join threads, edges
from arrivals at a barrier with a number to those who wait at it next, and
an edge from each release to each later acquisition of its element. A release may be passed only by
what lies before a fence: a path keeps the scope of the last fence since it last changed threads by
a flag. An acquisition counts from a fence behind it on, of a scope that reaches the releasing
thread; between two strong accesses it counts at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

Thread = tuple[int, int]  # block, thread of the block

NO_FENCE, FENCE_OF_BLOCK, FENCE = 0, 1, 2  # negative: acquired, and waits for such a fence


@dataclass(frozen=True)
class Access:
    """Threads, in order, that load, store or update an element each, by one instruction.

    A strong one is `narrow` where its scope is the block.
    """

    kind: str  # load, store, atomic
    volatile: bool
    gives_old: bool
    lanes: tuple[tuple[Thread, int], ...]
    narrow: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether other blocks do not see it as a flag's access."""
        return self.narrow and self.is_strong

    @property
    def is_strong(self) -> bool:
        """Whether it may meet others on an element, as flags do."""
        return self.kind == "atomic" or self.volatile

    @property
    def acquires(self) -> bool:
        """Whether it sees what others released."""
        return self.gives_old if self.kind == "atomic" else self.kind == "load" and self.volatile

    @property
    def releases(self) -> bool:
        """Whether others see by it what its thread did."""
        return self.kind == "atomic" or (self.kind == "store" and self.volatile)


@dataclass(frozen=True)
class Fence:
    """Threads that run a fence, whose scope is their block or the GPU."""

    lanes: tuple[Thread, ...]
    of_block: bool


@dataclass(frozen=True)
class Meeting:
    """Threads that meet at a barrier: all of a block, a warp, or some lanes of one."""

    lanes: tuple[Thread, ...]


@dataclass(frozen=True)
class Phase:
    """Threads of a block that wait at a barrier with a number, which opens for them."""

    lanes: tuple[Thread, ...]
    number: int


@dataclass(frozen=True)
class Arrival:
    """Threads of a block that come to such a barrier and do not wait."""

    lanes: tuple[Thread, ...]
    number: int


Event = Access | Fence | Meeting | Phase | Arrival
State = tuple[int, Thread, int]  # event, thread, scope of the last fence


def who(event: Event) -> list[Thread]:
    """Return the threads of an event, in order."""
    return [one[0] for one in event.lanes] if isinstance(event, Access) else list(event.lanes)


def is_awaited(arrival: Arrival, event: Event) -> bool:
    """Return whether an event is a phase of the barrier that threads arrived at."""
    same = isinstance(event, Phase) and event.number == arrival.number
    return same and who(event)[0][0] == arrival.lanes[0][0]


def races(history: Sequence[Event]) -> set[tuple[int, int]]:
    """Return the pairs of events of which two accesses race, the earlier one first."""
    found = set()
    for number, event in enumerate(history):
        if isinstance(event, Access):
            for position, (thread, element) in enumerate(event.lanes):
                found |= {
                    (number, later) for later in against(history, number, position, thread, element)
                }
    return found


def against(
    history: Sequence[Event], number: int, position: int, thread: Thread, element: int
) -> Iterator[int]:
    """Yield the events with which one access races that came before them."""
    first = history[number]
    assert isinstance(first, Access)
    seen = sights(history, number, position, element) if first.releases else []
    if first.kind != "atomic":  # an atomic may come before a store, but knows of it from then on
        seen = [one for one in seen if history[one[0]].kind == "atomic"]
    starts = [(number, thread)] if first.kind != "atomic" else [(number, thread), *seen]
    known = {
        at_once: {
            (at, who)
            for one in {(number, thread), *seen}
            for at, who, fence in reach(history, *one, at_once=at_once)
            if fence >= NO_FENCE and ((at, who) in starts or (at, who) != one)
        }
        for at_once in (False, True)
    }
    for later in range(number, len(history)):
        event = history[later]
        if not isinstance(event, Access):
            continue
        for place, (other, its) in enumerate(event.lanes):
            is_later = later > number or place > position
            meets = is_later and its == element and other != thread
            needs = conflict(first, event, apart=other[0] != thread[0])
            at_once = first.is_strong and event.is_strong
            if meets and needs and (later, other) not in known[at_once]:
                yield later


def conflict(first: Access, second: Access, *, apart: bool) -> bool:
    """Return whether two accesses to one element need an order; `apart` are other blocks."""
    kinds = (first.kind, second.kind)
    if apart and (first.is_narrow or second.is_narrow) and kinds != ("load", "load"):
        return True
    if kinds in (("load", "load"), ("atomic", "atomic")):
        return False
    return not (first.is_strong and second.is_strong and set(kinds) == {"load", "atomic"})


def sights(
    history: Sequence[Event], number: int, position: int, element: int
) -> list[tuple[int, Thread]]:
    """Return the accesses that have seen an element after an atomic on it."""
    first = history[number]
    assert isinstance(first, Access)
    block = first.lanes[position][0][0]
    return [
        (later, thread)
        for later in range(number, len(history))
        if isinstance(event := history[later], Access) and event.acquires
        for place, (thread, its) in enumerate(event.lanes)
        if its == element and (later > number or place > position)
        if thread[0] == block or not (first.is_narrow or event.is_narrow)
    ]


def reach(history: Sequence[Event], number: int, thread: Thread, *, at_once: bool) -> set[State]:
    """Return all states behind an access of a thread; acquisitions may count `at_once`."""
    work: list[State] = [(number, thread, NO_FENCE)]
    found = set(work)
    while work:
        for at, who, fence in following(history, *work.pop()):
            state = at, who, max(fence, NO_FENCE) if at_once else fence
            if state not in found:
                found.add(state)
                work.append(state)
    return found


def following(history: Sequence[Event], number: int, thread: Thread, fence: int) -> Iterator[State]:
    """Yield the states behind one."""
    event = history[number]
    if isinstance(event, Fence):
        scope = FENCE_OF_BLOCK if event.of_block else FENCE
        fence = fence if fence < -scope else max(fence, scope)
    later = (n for n in range(number + 1, len(history)) if thread in who(history[n]))
    following_own = next(later, None)
    if following_own is not None:
        yield following_own, thread, fence
    if isinstance(event, Meeting | Phase):
        for other in event.lanes:
            yield number, other, fence
    if isinstance(event, Arrival):
        opens = (n for n in range(number + 1, len(history)) if is_awaited(event, history[n]))
        for opening in islice(opens, 1):
            for other in who(history[opening]):
                yield opening, other, fence
    if isinstance(event, Access) and event.releases:
        position, element = next(
            (place, its) for place, (one, its) in enumerate(event.lanes) if one == thread
        )
        for later_number, other in sights(history, number, position, element):
            scope = FENCE_OF_BLOCK if other[0] == thread[0] else FENCE
            if fence >= scope:
                yield later_number, other, -scope
