"""Splits of warps: how they part, wait and join, interpreted by CPython and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typed_python import Linked

from gpusim.machine.turns import Order
from gpusim.machine.warps import convergence, scheduling, turns
from gpusim.machine.warps.state import (
    ALL_LANES,
    AT_BARRIER,
    AT_CONVERGENCE,
    AT_MASK,
    AT_WARP,
    IN,
    LAUNCH,
    NOW,
    OUT,
    READY,
    Warp,
    Word,
)
from gpusim.wasm import memory
from gpusim.wasm.integers import popcount
from gpusim.wasm.memory import u32

AT, COUNTS, BYTES = 8192, 12288, 16384
UNHEARD = """(func $appended (param i32 i32)) (func $removed (param i32 i32 i32))
(func $united (param i32 i32 i32)) (func $start (param i32)) (func $begins (param i32))
(func $opened (param i32)) (func $lets_pass (param i32 i32)) (func $met (param i32 i32 i32))
(func $progress (param i32) (result i32) (i32.const -1))"""


def play(warp: Warp, number: u32) -> None:
    """Run a split of blocks of code 0 to 7: some exit, some part, the others wait."""
    if NOW.asks:  # none misses others
        return
    split = warp.split(number)
    warp.turns -= 1
    kind = (split.block * 5 + popcount(split.lanes)) % 7
    if split.block > 6 or kind == 0:
        warp.live = warp.live & ~split.lanes
        convergence.remove(warp, number)
        convergence.release(warp)
        convergence.gather(warp)
    elif kind < 4 and popcount(split.lanes) > 1:
        low = split.lanes & -split.lanes
        convergence.give(warp, kind % 2, split.lanes)
        split.lanes = split.lanes & ~low
        convergence.append(warp, split.block + kind, low, split.waits_for)
        split.block += 1
    elif kind == 5:
        split.state = AT_CONVERGENCE
        split.waits_for = split.waits_for & -256 | split.block % 2
        convergence.release(warp)
    else:
        split.state = AT_BARRIER


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "append": convergence.append,
    "remove": convergence.remove,
    "give": convergence.give,
    "take": convergence.take,
    "release": convergence.release,
    "gather": convergence.gather,
    "furthest_behind": scheduling.furthest_behind,
    "run_in_turn": scheduling.run_in_turn,
    "warp": play,
}


@pytest.fixture(scope="module")
def linked() -> Linked:
    return Linked(FUNCTIONS, ("gpusim.machine.warps",), UNHEARD)


def warp_of(*splits: tuple[int, int, int, int], live: int | None = None) -> Warp:
    """Return a warp at `AT` in a new memory, with splits {block, lanes, state, waits for}."""
    memory.use(bytearray(BYTES))
    warp = Warp(AT)
    warp.sums = COUNTS
    warp.splits = len(splits)
    for number, split in enumerate(splits):
        convergence.hold(warp, number, *split)
    lanes = sum(split[1] for split in splits)
    warp.live = lanes if live is None else live
    return warp


def splits_of(warp: Warp) -> list[tuple[int, int, int]]:
    """Return the blocks, lanes and states of a warp's splits."""
    all_of_them = [warp.split(number) for number in range(warp.splits)]
    return [(one.block, one.lanes, one.state) for one in all_of_them]


# -- behaviours ------------------------------------------------------------------------------


def test_splits_join_at_a_bsync_once_no_lane_with_their_token_is_absent() -> None:
    warp = warp_of((3, 0b0011, AT_CONVERGENCE, 0), (1, 0b1100, READY, 0))
    convergence.give(warp, 0, 0b1111)
    convergence.release(warp)
    assert splits_of(warp) == [(3, 0b0011, AT_CONVERGENCE), (1, 0b1100, READY)]
    convergence.hold(warp, 1, 3, 0b1100, AT_CONVERGENCE, 0)
    convergence.release(warp)
    assert splits_of(warp) == [(4, 0b1111, READY)]


def test_lanes_without_the_token_are_not_waited_for() -> None:
    warp = warp_of((3, 0b0011, AT_CONVERGENCE, 1), (1, 0b1100, READY, 0))
    convergence.give(warp, 1, 0b1111)
    convergence.take(warp, 1, 0b1100)
    convergence.release(warp)
    assert splits_of(warp) == [(4, 0b0011, READY), (1, 0b1100, READY)]


def test_a_newer_token_takes_the_place_of_an_older_one() -> None:
    warp = warp_of((0, 0b1111, READY, 0))
    convergence.give(warp, 0, 0b1111)
    convergence.give(warp, 0, 0b0011)
    convergence.give(warp, 1, 0b1111)
    held = [warp.token(number) for number in range(warp.tokens)]
    found = [(one.name & 0xFF, one.lanes) for one in held]
    assert found == [(0, 0b1100), (0, 0b0011), (1, 0b1111)]
    convergence.take(warp, 0, 0b1100)
    assert warp.tokens == 2


def test_lanes_with_their_token_in_a_register_are_waited_for_wherever_they_are() -> None:
    """Two lanes call the function again: there they pass its barrier by themselves."""
    warp = warp_of((3, 0b0011, AT_CONVERGENCE, 0), (1, 0b1100, READY, 0))
    convergence.give(warp, 0, 0b1111)
    convergence.get_token(warp, 0, 0b1100)
    number = Word(OUT + 8).value
    convergence.give(warp, 0, 0b1100)
    convergence.hold(warp, 1, 3, 0b1100, AT_CONVERGENCE, 0)
    convergence.release(warp)
    assert splits_of(warp) == [(3, 0b0011, AT_CONVERGENCE), (4, 0b1100, READY)]
    Word(IN + 8).value = Word(IN + 12).value = number
    convergence.set_token(warp, 0, 0b1100)
    convergence.hold(warp, 1, 3, 0b1100, AT_CONVERGENCE, 0)
    convergence.release(warp)
    assert splits_of(warp) == [(4, 0b1111, READY)]


def test_splits_that_name_the_same_lanes_at_two_warp_barriers_go_on_apart() -> None:
    warp = warp_of((3, 0b01, AT_WARP, 0b11), (5, 0b10, AT_WARP, 0b11))
    convergence.gather(warp)
    assert sorted(splits_of(warp)) == [(4, 0b01, READY), (6, 0b10, READY)]
    assert [warp.count(block).lanes for block in (3, 4, 5)] == [1, 0, 1]


def test_splits_at_one_shuffle_join_before_it() -> None:
    warp = warp_of((3, 0b01, AT_MASK, 0b11), (3, 0b10, AT_MASK, 0b11))
    convergence.gather(warp)
    assert splits_of(warp) == [(3, 0b11, READY)]


def test_the_split_furthest_behind_runs_and_the_next_one_is_known() -> None:
    warp = warp_of((7, 0b001, READY, 0), (4, 0b010, READY, 0), (2, 0b100, AT_BARRIER, 0))
    assert scheduling.furthest_behind(warp) == 1
    assert NOW.next_block == 7
    assert scheduling.furthest_behind(warp_of((2, 1, AT_BARRIER, 0))) == -1


# -- interpreted and compiled ------------------------------------------------------------------


@st.composite
def warps(draw: st.DrawFn) -> tuple[list[tuple[int, int, int, int]], list[tuple[int, int, int]]]:
    """Splits of a warp, and what was done with its tokens: barrier, lanes, whether given."""
    left, splits = ALL_LANES, []
    for _ in range(draw(st.integers(1, 6))):
        lanes = left & draw(st.integers(1, ALL_LANES))
        state = draw(st.sampled_from([READY, AT_BARRIER, AT_CONVERGENCE, AT_WARP, AT_MASK]))
        path = draw(st.integers(0, 3)) << 8
        block = draw(st.sampled_from([3, 3, 5]))
        waits_for = draw(st.sampled_from([lanes, ALL_LANES])) if state >= AT_WARP else path
        if lanes:
            splits.append((block, lanes, state, waits_for | (block == 5 and state < AT_WARP)))
        left &= ~lanes
    masks = st.one_of(st.just(ALL_LANES), st.integers(1, ALL_LANES))
    given = st.tuples(st.integers(0, 1), masks, st.integers(0, 2))
    return splits, draw(st.lists(given, max_size=6))


@settings(max_examples=50)
@given(warps(), st.sampled_from(["release", "gather", "furthest_behind"]))
def test_compiled_code_leaves_the_memory_as_cpython_does(
    linked: Linked,
    warp: tuple[list[tuple[int, int, int, int]], Sequence[tuple[int, int, int]]],
    name: str,
) -> None:
    splits, given_tokens = warp
    made, held = warp_of(*splits), linked.memory
    held[:BYTES] = bytes(memory.held()[:BYTES])
    for barrier, lanes, is_given in given_tokens:
        function = "give" if is_given else "take"
        FUNCTIONS[function](made, barrier, lanes)
        linked.call(function, AT, barrier, lanes)
    assert FUNCTIONS[name](made) == linked.call(name, AT)
    assert bytes(held[:BYTES]) == bytes(memory.held())


SIZE, ENTRIES, GROUP, END = 2048, 1 << 15, 3 << 13, 1 << 16  # GROUP: behind six warps
LANES = st.lists(st.integers(1, ALL_LANES), min_size=1, max_size=3)


def launch(lanes: list[int], blocks: int, **others: int) -> None:
    """Set a launch of blocks up, whose warps have some lanes."""
    memory.use(bytearray(END))
    values = dict.fromkeys(memory.fields_of(type(LAUNCH)), 0) | {
        "sum_bytes": 256, "warps_at": AT, "warp_bytes": SIZE, "warps": len(lanes),
        "blocks": blocks, "entries": ENTRIES, "shared_bytes": 16, "turns": 200,
        "held": len(lanes), "cluster": 1, **others,
    }  # fmt: skip
    launched = memory.packed(type(LAUNCH), **values)
    memory.held()[LAUNCH.address : LAUNCH.address + len(launched)] = launched


def set_up(warp: Warp, lanes: int, row: int) -> None:
    warp.lanes = lanes
    warp.row = row
    warp.turns = 200
    warp.sums = 1 << 15
    warp.shared = ENTRIES - 64


@settings(max_examples=40)
@given(LANES, st.integers(1, 3))
def test_blocks_run_to_their_end_in_the_same_way(
    linked: Linked, lanes: list[int], blocks: int
) -> None:
    """Their warps part, wait, join and exit as `play` says."""
    launch(lanes, blocks)
    for number, mask in enumerate(lanes):
        set_up(Warp(AT + SIZE * number), mask, number - len(lanes))
    held = linked.memory
    held[:END] = bytes(memory.held())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduling, "run_warp", play)
        ended = scheduling.run_in_turn()
    assert ended == linked.call("run_in_turn")
    assert bytes(held[:END]) == bytes(memory.held())


# -- turns in order ----------------------------------------------------------------------------

KEYS_AT = SIZE - turns.KEYS_BYTES
IN_ORDER: dict[str, Callable[..., Any]] = {
    **{one.__name__: one for one in (turns.appended, turns.removed, turns.united)},
    "append": convergence.append,
    "remove": convergence.remove,
    "give": convergence.give,
    "release": convergence.release,
    "gather": convergence.gather,
    "run_in_order": turns.run_in_order,
    "warp": play,
}


@pytest.fixture(scope="module")
def in_order() -> Linked:
    beside = (
        "(func $start (param i32)) (func $begins (param i32)) (func $opened (param i32))"
        " (func $lets_pass (param i32 i32)) (func $met (param i32 i32 i32))"
        " (func $progress (param i32) (result i32) (i32.const -1))"
        " (func $draw (param i32 i32) (result i32) (i32.const 0))"
    )
    return Linked(IN_ORDER, ("gpusim.machine.warps",), beside)


@settings(max_examples=40)
@given(
    LANES,
    st.integers(1, 2),
    st.booleans(),
    st.sampled_from(Order),
    st.binary(min_size=16, max_size=16),
)
def test_warps_take_turns_in_the_same_order(
    in_order: Linked, lanes: list[int], blocks: int, awaits: bool, order: int, flags: bytes
) -> None:
    """Also where basic blocks wait for lanes, touch no memory, or swap."""
    launch(
        lanes, blocks, group=GROUP, keys_at=KEYS_AT, flags_at=END - 64, code_blocks=16,
        awaits=awaits, order=order, most_steps=1000, most_idle=300,
    )  # fmt: skip
    memory.held()[END - 64 : END - 48] = bytes(flag & 7 for flag in flags)
    for number in range(len(lanes) * blocks):
        row = number - len(lanes)
        set_up(Warp(AT + SIZE * number), lanes[number % len(lanes)], row)
    held = in_order.memory
    held[:END] = bytes(memory.held())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "run_warp", play)
        for name in ("appended", "removed", "united"):
            patch.setattr(convergence, name, getattr(turns, name))
        ended = turns.run_in_order()
    assert ended == in_order.call("run_in_order")
    assert bytes(held[:END]) == bytes(memory.held())
