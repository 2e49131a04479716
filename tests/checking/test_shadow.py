"""What the checker keeps of a launch against the whole history: both see the same races."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from checking.happens_before import (
    Access,
    Arrival,
    Event,
    Fence,
    Meeting,
    Phase,
    Thread,
    races,
    who,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.checking.checker import Checker
from gpusim.checking.findings import Finding
from gpusim.checking.sink import Sink
from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.launch.events import BarrierArrived, BarrierOpened, Placement, Step
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.machine.storage import FIRST_ADDRESS, allocate

ELEMENTS, BLOCKS, WARPS = 3, 2, 3
OPS = {
    "global": {"load": "LDG", "store": "STG", "atomic": "ATOMG"},
    "shared": {"load": "LDS", "store": "STS", "atomic": "ATOMS"},
}
PLACEMENT = Placement(np.arange(BLOCKS), WARPS, folded=False)
RULES = {"shared-race", "global-race", "block-race", "warp-race", "volatile-warp-race"}
LANES = [0, 1, 2, 32, 33, 64]  # of a block, some of which do something


def threads_of(block: int, numbers: Sequence[int]) -> tuple[Thread, ...]:
    return tuple((block, number) for number in sorted(numbers))


def whole(block: int, warp: int | None = None) -> Meeting:
    numbers = range(32 * WARPS) if warp is None else range(32 * warp, 32 * warp + 32)
    return Meeting(threads_of(block, numbers))


threads = st.tuples(st.integers(0, BLOCKS - 1), st.sampled_from(LANES))
of_elements = st.dictionaries(threads, st.integers(0, ELEMENTS - 1), min_size=1, max_size=4).map(
    lambda found: tuple(sorted(found.items()))
)
barriers = st.one_of(
    st.builds(whole, st.integers(0, BLOCKS - 1)),
    st.builds(whole, st.integers(0, BLOCKS - 1), st.integers(0, WARPS - 1)),
)
some_lanes = st.builds(
    lambda block, numbers: Meeting(threads_of(block, list(numbers))),
    st.integers(0, BLOCKS - 1),
    st.sets(st.sampled_from(LANES[:3]), min_size=2),
)


def of_warps(block: int, warps: Sequence[int]) -> tuple[Thread, ...]:
    return threads_of(block, [32 * warp + lane for warp in warps for lane in range(32)])


def at_a_barrier(what: Any) -> Any:
    return st.builds(
        lambda block, warps, number: what(of_warps(block, list(warps)), number),
        st.integers(0, BLOCKS - 1),
        st.sets(st.integers(0, WARPS - 1), min_size=1),
        st.integers(1, 2),
    )


named = st.one_of(at_a_barrier(Phase), at_a_barrier(Phase), at_a_barrier(Arrival))
fences = st.builds(
    Fence, st.sets(threads, min_size=1, max_size=3).map(lambda f: tuple(sorted(f))), st.booleans()
)

PLAINLY = st.just(False)


def accesses(kinds: Sequence[str], volatile: Any = PLAINLY, narrow: Any = PLAINLY) -> Any:
    return st.builds(Access, st.sampled_from(kinds), volatile, st.booleans(), of_elements, narrow)


PLAIN = st.lists(st.one_of(accesses(["load", "store"]), barriers), max_size=12)


def release(thread: Thread, of_block: bool, how: Access) -> list[Event]:
    """A fence, then an access that others may see."""
    flag = Access(how.kind, True, how.gives_old, ((thread, 2),), how.narrow)
    return [Fence((thread,), of_block), flag]


def acquire(
    thread: Thread, kind: str, narrow: bool = False, of_block: bool | None = False
) -> list[Event]:
    """An access that sees what was released, and its fence (None: without one)."""
    fence = [] if of_block is None else [Fence((thread,), of_block)]
    return [Access(kind, True, True, ((thread, 2),), narrow), *fence]


def in_parts(*parts: Any) -> Any:
    return st.lists(st.one_of(*parts), max_size=12).map(
        lambda found: [event for part in found for event in part]
    )


PARTS = (
    accesses(["load", "store"]).map(lambda one: [one]),
    accesses(["load", "store", "atomic"], st.booleans(), st.booleans()).map(lambda one: [one]),
    accesses(["atomic"], PLAINLY, st.booleans()).map(lambda one: [one]),
    st.one_of(barriers, some_lanes, fences).map(lambda one: [one]),
    st.builds(
        release, threads, st.booleans(), accesses(["store", "atomic"], PLAINLY, st.booleans())
    ),
    st.builds(acquire, threads, st.sampled_from(["load", "atomic"]), st.booleans()),
)
EVERYTHING = in_parts(*PARTS)
BARRIERS = st.lists(st.one_of(accesses(["load", "store"]), barriers, named, named), max_size=14)
EVERY_BARRIER = in_parts(*PARTS, named.map(lambda one: [one]), named.map(lambda one: [one]))


def row(event: Event, number: int, space: str) -> Instruction:
    """An event as an instruction, in a line of its own."""
    if isinstance(event, Access):
        memory = Memory(
            space,
            "x",
            np.dtype(np.int32),
            size=ELEMENTS,
            volatile=event.volatile,
            of_block=event.is_narrow,
        )
        dst = (7,) if event.kind == "load" or event.gives_old else ()
        return Instruction(OPS[space][event.kind], dst, (5,), memory=memory, line=number)
    if isinstance(event, Fence):
        return Instruction("MEMBAR", detail="block" if event.of_block else "gpu", line=number)
    if isinstance(event, Phase | Arrival):
        op = "BAR.SYNC" if isinstance(event, Phase) else "BAR.ARV"
        return Instruction(op, src=(number, number), line=number)
    if len(event.lanes) == 32 * WARPS:
        return Instruction("BAR", detail="sync", line=number)
    return Instruction("WARPSYNC", src=(number,), line=number)


def mask(event: Event) -> np.uint32:
    return np.uint32(sum(1 << (number % 32) for _, number in who(event)[:32]))


def step(event: Event, pc: int, instruction: Instruction) -> Step:
    rows = np.array(sorted({WARPS * block + number // 32 for block, number in who(event)}))
    active = np.zeros((1, len(rows), 32), dtype=bool)
    addresses = np.zeros(active.shape, dtype=np.int64)
    element = dict(event.lanes) if isinstance(event, Access) else {}
    for block, number in who(event):
        at = (0, int(np.searchsorted(rows, WARPS * block + number // 32)), number % 32)
        active[at] = True
        addresses[at] = 4 * element.get((block, number), 0)
    memory = instruction.memory
    start = FIRST_ADDRESS if memory is not None and memory.space == "global" else 0
    differing = np.arange(active.size).reshape(active.shape)
    return Step(
        pc,
        instruction,
        PLACEMENT,
        rows,
        active,
        active,
        addresses + start,
        values=(differing,) if OPS["global"]["store"][:2] == instruction.op[:2] else (),
        mask=np.broadcast_to(mask(event), active.shape),
    )


class EachPair(Sink):
    """Keeps the lines of every race, also where a report joins several to one."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: set[tuple[int, int]] = set()

    def add(self, finding: Finding) -> None:
        super().add(finding)
        if finding.hazard:
            first, second = finding.places
            self.pairs.add((first.line, second.line))


def found_races(history: Sequence[Event], space: str) -> set[tuple[int, int]]:
    """The pairs of events that gpusim names, told step by step."""
    rows = tuple(row(event, number, space) for number, event in enumerate(history))
    masks = {number: mask(event) for number, event in enumerate(history)}
    program = Program("k", rows, 8, immediates=masks, shared_bytes=4 * ELEMENTS)
    allocations = allocate({"x": np.zeros(ELEMENTS, np.int32)})
    sink = EachPair()
    checker = Checker(sink, ComputeCapability(9, 0), allocations)
    checker.begin(program, Launch((BLOCKS, 1, 1), (32 * WARPS, 1, 1)))
    for pc, event in enumerate(history):
        made = step(event, pc, rows[pc])
        checker.step(made)
        held, pcs = made.rows, np.full(len(made.rows), pc)
        if isinstance(event, Arrival):
            checker.barrier_arrived(BarrierArrived(made, np.full(len(held), event.number)))
        elif isinstance(event, Phase):
            named = np.full(len(held), event.number), np.full(len(held), 32), made.on[0]
            checker.barrier_opened(BarrierOpened(PLACEMENT, held, pcs, made, *named))
        elif rows[pc].op == "BAR":
            checker.barrier_opened(BarrierOpened(PLACEMENT, held, pcs, made))
    return sink.pairs


def in_shared(history: Sequence[Event]) -> set[tuple[int, int]]:
    """The races where each block has elements of its own."""
    apart = [
        Access(
            event.kind,
            event.volatile,
            event.gives_old,
            tuple((who, element + ELEMENTS * who[0]) for who, element in event.lanes),
            event.narrow,
        )
        if isinstance(event, Access)
        else event
        for event in history
    ]
    return races(apart)


def hold(history: Sequence[Event]) -> None:
    """Assert that all accesses that race with an earlier one are named, with one of those."""
    for space, real in (("global", races(history)), ("shared", in_shared(history))):
        found = found_races(history, space)
        assert {later for _, later in found} == {later for _, later in real}, space
        if any(isinstance(event, Fence) for event in history):
            assert found <= real, space


@settings(max_examples=50)
@given(PLAIN)
def test_races_are_those_of_the_whole_history_where_barriers_alone_order(
    history: list[Event],
) -> None:
    hold(history)


@settings(max_examples=50)
@given(EVERYTHING)
def test_races_are_those_of_the_whole_history_with_atomics_fences_flags_and_masks(
    history: list[Event],
) -> None:
    hold(history)


@settings(max_examples=50)
@given(BARRIERS)
def test_races_are_those_of_the_whole_history_where_barriers_join_some_warps(
    history: list[Event],
) -> None:
    hold(history)


@settings(max_examples=50)
@given(EVERY_BARRIER)
def test_races_are_those_of_the_whole_history_with_flags_and_barriers_for_some(
    history: list[Event],
) -> None:
    hold(history)


def test_a_later_reader_of_the_writers_warp_does_not_hide_an_earlier_one_of_another() -> None:
    early = Access("load", False, False, (((0, 33), 0),))
    late = Access("load", False, False, (((0, 0), 0),))
    write = Access("store", False, False, (((0, 0), 0),))
    assert found_races([early, late, write], "shared")
    assert not found_races([early, late, whole(0), write], "shared")


def test_atomics_of_others_do_not_hide_a_plain_store_before_them() -> None:
    # The second atomic comes after the store by its own warp's barrier, the third by nothing.
    store = Access("store", False, False, (((0, 0), 0),))
    first, second, third = (
        Access("atomic", False, False, ((thread, 0),)) for thread in ((0, 0), (0, 1), (0, 33))
    )
    assert found_races([store, first, whole(0, 0), second], "shared") == set()
    assert found_races([store, first, whole(0, 0), second, third], "shared") == {(0, 4)}


def test_the_reader_who_has_not_released_is_the_one_that_races() -> None:
    # Both read; one of them releases what it read to the writer, and the other one does not.
    reads = [Access("load", False, False, ((thread, 0),)) for thread in ((1, 0), (1, 33))]
    released = release((1, 33), False, Access("atomic", True, False, ()))
    write = Access("store", False, False, (((0, 0), 0),))
    history = [*reads, *released, *acquire((0, 0), "atomic"), write]
    assert found_races(history, "global") == {(0, len(history) - 1)}


def test_a_fence_of_the_block_reaches_no_other_block() -> None:
    store = Access("store", False, False, (((0, 0), 0),))
    for reader, of_block, ordered in (((0, 33), True, True), ((1, 0), True, False)):
        load = Access("load", False, False, ((reader, 0),))
        flag = release((0, 0), of_block, Access("atomic", True, False, ()))
        history = [store, *flag, *acquire(reader, "load"), load]
        assert (found_races(history, "global") == set()) == ordered


def test_what_was_acquired_is_passed_on_by_a_fence_alone() -> None:
    store = Access("store", False, False, (((0, 0), 0),))
    first = release((0, 0), False, Access("atomic", True, False, ()))
    pass_on = Access("atomic", False, False, (((0, 33), 1),))
    see = Access("atomic", False, True, (((1, 0), 1),))
    load = Access("load", False, False, (((1, 0), 0),))
    start = [store, *first, *acquire((0, 33), "atomic", of_block=None)]
    fence, last = Fence(((0, 33),), False), Fence(((1, 0),), False)
    assert found_races([*start, fence, pass_on, see, last, load], "global") == set()
    assert found_races([*start, pass_on, see, last, load], "global")


def test_an_acquire_needs_a_fence_that_reaches_the_releasing_thread() -> None:
    store = Access("store", False, False, (((0, 0), 0),))
    flag = release((0, 0), False, Access("atomic", True, False, ()))
    fences: tuple[bool | None, ...] = (None, True, False)
    for reader, ordered in (((0, 33), (False, True, True)), ((1, 0), (False, False, True))):
        load = Access("load", False, False, ((reader, 0),))
        for kind in ("load", "atomic"):
            found = [
                found_races([store, *flag, *acquire(reader, kind, of_block=one), load], "global")
                for one in fences
            ]
            assert tuple(one == set() for one in found) == ordered


def test_strong_accesses_behind_a_flag_need_no_fence_of_the_reader() -> None:
    flag = release((0, 0), False, Access("atomic", True, False, ()))
    for volatile in (False, True):
        store = Access("store", volatile, False, (((0, 0), 0),))
        load = Access("load", volatile, False, (((1, 0), 0),))
        seen = acquire((1, 0), "load", of_block=None)
        assert (found_races([store, *flag, *seen, load], "global") == set()) == volatile


def test_an_atomic_is_seen_by_a_later_volatile_load_or_atomic_without_fences() -> None:
    update = Access("atomic", False, False, (((0, 32), 0),))
    own = Access("atomic", False, False, (((0, 0), 0),))
    load = Access("load", False, False, (((0, 0), 0),))
    for space in OPS:
        assert found_races([update, load], space) == {(0, 1)}
        assert found_races([update, own, load], space) == {(0, 2)}
        for sees in (replace(load, volatile=True), replace(own, gives_old=True)):
            assert found_races([update, sees, load], space) == set()
            assert found_races([update, sees, own, load], space) == set()


def test_what_was_released_at_a_barrier_is_for_its_next_phase_alone() -> None:
    store = Access("store", False, False, (((0, 0), 0),))
    load = Access("load", False, False, (((0, 64), 0),))
    arrival, first = Arrival(of_warps(0, [0]), 1), Phase(of_warps(0, [1]), 1)
    own, both = Phase(of_warps(0, [2]), 1), Phase(of_warps(0, [1, 2]), 1)
    assert found_races([store, arrival, own, load], "shared") == set()
    assert found_races([store, arrival, first, both, load], "shared") == set()
    assert found_races([store, arrival, first, own, load], "shared") == {(0, 4)}


def test_what_was_acquired_is_known_behind_a_barrier_of_some_warps() -> None:
    store = Access("store", False, False, (((0, 0), 0),))
    load = Access("load", False, False, (((1, 33), 0),))
    flag = release((0, 0), False, Access("atomic", True, False, ()))
    start = [store, *flag, *acquire((1, 0), "load")]
    assert found_races([*start, Phase(of_warps(1, [0, 1]), 1), load], "global") == set()
    assert found_races([*start, Phase(of_warps(1, [1, 2]), 1), load], "global")
