"""The shadow's sixteen bytes against the whole history: both see the same races."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.checking.races import Access, Races, Timeline
from gpusim.checking.shadow import BLOCK_SHIFT, Shadow, Touch
from gpusim.checking.sink import Sink
from gpusim.isa import Instruction, Memory

KINDS = {"load": 0, "store": 1, "atomic": 2}
OPS = {"load": "LDG", "store": "STG", "atomic": "RED"}
ELEMENTS = 3


@dataclass(frozen=True)
class Accesses:
    """One instruction: lanes, as (block, thread), each with an element."""

    kind: str
    lanes: tuple[tuple[tuple[int, int], int], ...]


@dataclass(frozen=True)
class Barrier:
    """All threads of a block meet, or the lanes of one of its warps."""

    block: int
    warp: int | None = None


Event = Accesses | Barrier
threads = st.tuples(st.integers(0, 1), st.sampled_from([0, 1, 2, 32, 33]))
lanes = st.dictionaries(threads, st.integers(0, ELEMENTS - 1), min_size=1, max_size=4)
events = st.lists(
    st.one_of(
        st.builds(
            Accesses, st.sampled_from(list(KINDS)), lanes.map(lambda d: tuple(sorted(d.items())))
        ),
        st.builds(Barrier, st.integers(0, 1)),
        st.builds(Barrier, st.integers(0, 1), st.integers(0, 1)),
    ),
    max_size=12,
)


def finds_a_race(history: Sequence[Event]) -> bool:
    """What gpusim says, told step by step."""
    memory = Memory("global", "x", np.dtype(np.int32))
    rows = [Instruction(OPS[kind], memory=memory, line=1 + n) for kind, n in KINDS.items()]
    accesses = {pc: Access(pc, row, polls=False, guesses=False) for pc, row in enumerate(rows)}
    sink, timeline = Sink(), Timeline()
    races = Races(sink, timeline, accesses, [1, 2, 3], None, is_lockstep=False)
    shadow = Shadow(ELEMENTS)
    opened = np.zeros(2, np.int64)
    met = np.zeros((2, 2), np.int64)
    for event in history:
        if isinstance(event, Barrier):
            time = timeline.next(-1)
            if event.warp is None:
                opened[event.block] = time
                met[event.block] = time
            else:
                met[event.block, event.warp] = time
            continue
        pc = KINDS[event.kind]
        who = np.array([lane for lane, _ in event.lanes], dtype=np.int64)
        touch = Touch(
            timeline.next(pc),
            np.array([element for _, element in event.lanes]),
            (who[:, 0] << BLOCK_SHIFT) | who[:, 1],
            opened[who[:, 0]],
            met[who[:, 0], who[:, 1] // 32],
            None,
            lambda: np.arange(9),  # each lane stores another value
        )
        races.touch(shadow, touch, accesses[pc], lambda entry: ("x", entry))
    return bool(sink.sorted())


def has_a_race(history: Sequence[Event]) -> bool:
    """What the definition says: every pair of accesses is looked at."""
    done: list[tuple[int, str, tuple[int, int], int]] = []
    for time, event in enumerate(history):
        if isinstance(event, Accesses):
            done += [(time, event.kind, lane, element) for lane, element in event.lanes]
    return any(
        a[3] == b[3] and a[2] != b[2] and conflict(a[1], b[1]) and not ordered(history, a, b)
        for n, a in enumerate(done)
        for b in done[n + 1 :]
    )


def mixes(history: Sequence[Event]) -> bool:
    """Return whether an element is both stored to and updated by atomics."""
    done = {
        (event.kind, element)
        for event in history
        if isinstance(event, Accesses)
        for _, element in event.lanes
    }
    return any({("store", n), ("atomic", n)} <= done for n in range(ELEMENTS))


def conflict(first: str, second: str) -> bool:
    return "store" in (first, second) or {first, second} == {"load", "atomic"}


def ordered(history: Sequence[Event], a: Any, b: Any) -> bool:
    (early, _, (block, thread), _), (late, _, (other, another), _) = a, b
    if block != other:
        return False
    between = [event for event in history[early + 1 : late] if isinstance(event, Barrier)]
    warps = {None, thread // 32} if thread // 32 == another // 32 else {None}
    return any(barrier.block == block and barrier.warp in warps for barrier in between)


@settings(max_examples=250, deadline=None)
@given(events)
def test_a_race_is_seen_where_the_whole_history_has_one(history: list[Event]) -> None:
    found, there = finds_a_race(history), has_a_race(history)
    # Of a plain store and the atomics behind it one is kept: where others race with both, it may be
    # the one that they do not race with.
    assert found == there or (there and mixes(history))


def test_an_atomic_does_not_hide_the_plain_store_before_it() -> None:
    mine, yours = ((0, 0), 0), ((0, 1), 0)
    history = [
        Accesses("store", (mine,)),
        Accesses("atomic", (mine,)),
        Accesses("atomic", (yours,)),
    ]
    assert finds_a_race(history)


def test_a_barrier_of_one_warp_orders_no_other() -> None:
    store = Accesses("store", (((0, 0), 0),))
    load = Accesses("load", (((0, 33), 0),))
    assert finds_a_race([store, Barrier(0, 0), Barrier(0, 1), load])
    assert not finds_a_race([store, Barrier(0), load])


def test_readers_of_several_warps_are_remembered_behind_the_last() -> None:
    read = Accesses("load", (((0, 0), 0), ((0, 32), 0)))
    write = Accesses("store", (((0, 32), 0),))
    assert finds_a_race([read, write])
    assert not finds_a_race([read, Barrier(0), write])
