"""Accesses of warps: records of steps, races and marks, interpreted by CPython and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import wasmtime
from hypothesis import given, settings
from hypothesis import strategies as st
from typed_python import Linked

from gpusim.machine.compiled import layout
from gpusim.machine.compiled.layout import LAST
from gpusim.machine.warps import accesses, banks, races, steps, vectors
from gpusim.machine.warps.accesses import Held, OwnDistances
from gpusim.machine.warps.races import Cell
from gpusim.machine.warps.state import (
    ALL_LANES,
    IN,
    NOW,
    OPERAND_BYTES,
    OUT,
    SCRATCH,
    SORTED,
    WORDS,
    Long,
    Warp,
    Word,
)
from gpusim.machine.warps.steps import Detail, Touched
from gpusim.wasm import memory
from gpusim.wasm.memory import Record, TrapError, size

BYTES, RUNS, DETAILS, TOUCHED, SLOT, MARKS = 1 << 17, 40000, 41024, 42048, 50000, 1 << 16
FUNCTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        steps.begun, steps.decided, steps.narrow, steps.side_by_side, steps.accessed,
        steps.keep_told, steps.told_again, steps.looked_up, accesses.most_alike,
        banks.wavefronts, accesses.new_set, accesses.counted,
        accesses.most_of_a_bank, accesses.fit, accesses.fit_wide, accesses.is_outside,
        accesses.mark, accesses.mark_row, accesses.is_in_order, races.cell_load, races.cell_store,
        races.cell_atomic, races.cell_poll, races.of_block, races.of_phase,
    )
}  # fmt: skip
VECTOR: dict[str, Callable[..., Any]] = {one.__name__: one for one in vectors.FUNCTIONS}
BESIDE = f"(func $take_steps) {layout.vector_code()}"
MASKS = st.one_of(st.just(ALL_LANES), st.integers(1, ALL_LANES), st.sampled_from([1, 1 << 31]))


@pytest.fixture(scope="module")
def linked() -> Linked:
    return Linked(FUNCTIONS, ("gpusim.machine.warps",), BESIDE, VECTOR)


def begin() -> None:
    """Begin a new memory, with room for records."""
    memory.use(bytearray(BYTES))
    NOW.runs, NOW.details, NOW.touched = RUNS, DETAILS, TOUCHED
    NOW.runs_full = NOW.details_full = NOW.touched_full = BYTES


def put(places: list[int]) -> None:
    """Set the places of lanes."""
    for lane, place in enumerate(places):
        Word(IN + 4 * lane).value = place


def told() -> tuple[int, ...]:
    """Return the first access that is recorded, without its pc."""
    one = Detail(DETAILS)
    return one.passes, one.lines, one.wavefronts, one.gaps, one.lowest, one.is_one, one.touched


# -- behaviours ------------------------------------------------------------------------------


def test_words_side_by_side_are_four_sectors_of_a_line() -> None:
    begin()
    put([1024 + 4 * lane for lane in range(32)])
    steps.accessed(7, ALL_LANES, 4, 1, steps.LOAD, 1)
    assert told() == (4, 1, 1, 0, 8, 0, 1)
    one = Touched(TOUCHED)
    assert (one.first, one.last, one.lanes) == (1024, 1148, 32)
    assert Detail(DETAILS).pc == 7 | 1 << steps.ON


def test_atomics_of_one_word_pass_one_by_one() -> None:
    begin()
    put([64] * 32)
    steps.accessed(7, 0b1111, 4, 1, steps.ATOMIC, 1)
    assert told() == (4, 1, 0, 0, -1, 1, 1)


def test_gaps_between_lines_are_counted_by_their_width() -> None:
    """One line further, 3 lines, and 2**20 lines."""
    begin()
    put([0, 128, 512, 512 + (1 << 27)])
    steps.accessed(7, 0b1111, 4, 1, steps.STORE, 0)
    assert told()[:4] == (4, 4, 4, 1 + 1 + 65536)


def test_an_access_whole_lines_further_is_told_as_the_last_one() -> None:
    begin()
    addresses = [4096 + 4 * lane for lane in range(32)]
    put(addresses)
    steps.accessed(7, ALL_LANES, 4, 1, steps.LOAD, 1)
    steps.keep_told(ALL_LANES, SLOT)
    for by, is_known in ((256, True), (64, False)):
        begin_of_next = NOW.details
        for lane, address in enumerate(addresses):
            Long(IN + 8 * lane).value = address + by
        assert steps.told_again(7, ALL_LANES, SLOT) == is_known
        if is_known:
            assert Detail(begin_of_next).lowest == 32 + by // 128


def test_offsets_of_constants_are_counted_once() -> None:
    begin()
    put([8, 4, 8, 4] * 8)
    steps.looked_up(7, ALL_LANES)
    assert told() == (2, 0, 0, 0, 4, 0, 0)


def access(time: int, block: int, thread: int, flags: int = 0) -> int:
    """Return an access as cells have it."""
    return time << 38 | block << 14 | thread << 4 | flags


@pytest.mark.parametrize(
    ("earlier", "passed", "met", "is_ordered"),
    [
        (access(2, 1, 3), 0, 0, True),  # the thread's own
        (access(2, 1, 4), 0, 0, False),  # of another lane, which has not met it
        (access(2, 1, 4), 0, 2, True),  # met since
        (access(2, 1, 40), 0, 5, False),  # of another warp
        (access(2, 1, 40), 2, 0, True),  # before the block's barrier
        (access(2, 2, 40), 2, 0, False),  # of another block
        (access(2, 1, 3, races.LANES), 0, 0, False),  # lanes beside it
        (access(2, 1, 3, races.WARPS), 1, 9, False),  # warps beside it
        (access(2, 1, 3, races.BLOCKS_TOO), 9, 9, False),  # blocks beside it
    ],
)
def test_a_store_is_behind_accesses_that_something_orders(
    earlier: int, passed: int, met: int, is_ordered: bool
) -> None:
    begin()
    cell, mine, warp = Cell(SLOT), access(10, 1, 3), Warp(SLOT + 64)
    warp.passed, warp.met = passed, met
    if is_ordered:
        races.cell_store(cell, mine, warp, earlier, 0)
        assert cell.writer == mine
    else:
        with pytest.raises(TrapError):
            races.cell_store(cell, mine, warp, earlier, 0)


def test_loads_that_atomics_may_meet_are_in_no_order_with_them() -> None:
    begin()
    cell, warp = Cell(SLOT), Warp(SLOT + 64)
    races.cell_poll(cell, access(10, 1, 3), warp, access(9, 2, 4, races.IS_ATOMIC), 0)
    races.cell_atomic(cell, access(11, 2, 4), warp, 0, cell.reader)
    assert (NOW.free, NOW.ordered) == (2, 0)
    with pytest.raises(TrapError):
        races.cell_store(cell, access(12, 2, 5), warp, 0, cell.reader)


def test_warps_meet_if_all_of_their_lanes_do() -> None:
    begin()
    warp = Warp(SLOT)
    warp.lanes = 0b111
    NOW.time = 5
    races.meets(warp, 0b011)
    assert (warp.met, NOW.time) == (0, 5)
    races.meets(warp, 0b111)
    assert (warp.met, NOW.time) == (5, 6)


def test_records_have_the_places_that_vector_code_knows() -> None:
    assert (size(Held), size(OwnDistances)) == (16, 32)
    assert memory.offset(accesses.Distances, "least") == 272 - accesses.WIDE_SLOT
    assert memory.offset(OwnDistances, "wavefronts") == 152 - accesses.SLOT


# -- interpreted and compiled ------------------------------------------------------------------

PLACES = st.one_of(
    st.lists(st.integers(0, 1 << 18), min_size=32, max_size=32),
    st.lists(st.integers(0, 96), min_size=32, max_size=32),
    st.integers(0, 4096).map(lambda first: [first + 4 * lane for lane in range(32)]),
)


def agree(linked: Linked, name: str, *arguments: Any) -> Any:
    """Call a function both ways; return its result, None for a trap."""
    numbers = [one.address if isinstance(one, Record) else one for one in arguments]
    try:
        found = (FUNCTIONS | VECTOR)[name](*arguments)
    except TrapError:
        with pytest.raises(wasmtime.Trap):
            linked.call(name, *numbers)
        return None
    returned = linked.call(name, *numbers)
    assert returned == found or returned == found - (1 << 32)  # wasmtime's have a sign
    both = [bytearray(held[512:BYTES]) for held in (linked.memory, memory.held())]
    for held in both:  # vector code has notes of its own
        for begin, end in ((SCRATCH, SORTED), (WORDS, WORDS + 8192), (LAST, LAST + 128)):
            held[begin - 512 : end - 512] = bytes(end - begin)
    assert both[0] == both[1]
    return found


@settings(max_examples=40)
@given(PLACES, MASKS, st.sampled_from([1, 4, 8, 16]), st.integers(0, 2), st.integers(1, 3))
def test_records_and_marks_are_those_of_cpython(
    linked: Linked, places: list[int], on: int, width: int, kind: int, times: int
) -> None:
    begin()
    put([4 * (place >> 2) for place in places])
    linked.memory[:BYTES] = bytes(memory.held())
    agree(linked, "most_of_a_bank", on)
    agree(linked, "wavefronts", on, times if times < 3 else 4, width & 1)
    agree(linked, "is_outside", SLOT, 64, 4096, width - 1)
    agree(linked, "looked_up", 3, on)
    agree(linked, "accessed", 5, on, width, times, kind, 1)
    agree(linked, "keep_told", on, SLOT)
    agree(linked, "side_by_side")
    agree(linked, "decided", 9, on, on & 1)
    for lane, place in enumerate(places):
        Long(IN + 8 * lane).value = place
    linked.memory[:BYTES] = bytes(memory.held())
    agree(linked, "most_alike", on)
    agree(linked, "mark", on, MARKS)
    agree(linked, "mark_row", MARKS, places[0], times)
    agree(linked, "told_again", 5, on, SLOT)
    agree(linked, "narrow", 4)
    for name in ("fit", "fit_wide"):
        if on != ALL_LANES:
            agree(linked, name, on)


ACCESSES = st.one_of(
    st.just(0),
    st.builds(
        access,
        st.integers(1, 9),
        st.integers(1, 2),
        st.sampled_from([1, 2, 40]),
        st.sampled_from([0, 0, 1, 2, 4, 8, 9]),
    ).flatmap(lambda one: st.sampled_from([one, one, one | races.AFTER_STORE])),
)
KINDS = st.sampled_from(["cell_load", "cell_store", "cell_atomic", "cell_poll"])


@settings(max_examples=50)
@given(KINDS, ACCESSES, ACCESSES, st.integers(0, 9), st.integers(0, 9), st.sampled_from([1, 40]))
def test_races_are_those_of_cpython(
    linked: Linked, kind: str, writer: int, reader: int, passed: int, met: int, thread: int
) -> None:
    begin()
    warp = Warp(SLOT + 64)
    warp.passed, warp.met = passed, met
    linked.memory[:BYTES] = bytes(memory.held())
    agree(linked, kind, Cell(SLOT), access(10, 1, thread), warp, writer, reader)


@settings(max_examples=50)
@given(PLACES, MASKS, st.sampled_from([1, 2]), st.sampled_from([(4, 2, 31), (3, 3, 15)]))
def test_vector_code_computes_what_its_body_says(
    linked: Linked, places: list[int], on: int, apart: int, form: tuple[int, int, int]
) -> None:
    begin()
    put([4 * (place >> 2) for place in places])
    linked.memory[:BYTES] = bytes(memory.held())
    lanes = 1 << form[0]
    agree(linked, "rising", 4)
    agree(linked, "rising", 0)
    agree(linked, "is_free", 32 - lanes, 32, form[1], form[2])
    agree(linked, "in_pairs", on, apart)
    agree(linked, "wavefronts_of", on, apart, 32 - lanes, 32)
    for times in range(2):  # the second time they are kept
        agree(linked, "look", SLOT)
        put([place + times for place in places])
        linked.memory[:BYTES] = bytes(memory.held())
    agree(linked, "below", IN, OUT, apart)
    agree(linked, "match", on, IN, 2, OUT)
    agree(linked, "splat", OUT, on)


@settings(max_examples=50)
@given(PLACES, MASKS, st.booleans())
def test_distances_of_global_addresses_are_kept(
    linked: Linked, places: list[int], on: int, in_order: bool
) -> None:
    begin()
    for lane, place in enumerate(sorted(places) if in_order else places):
        Long(IN + 8 * lane).value = place
    linked.memory[:BYTES] = bytes(memory.held())
    if on != ALL_LANES:
        agree(linked, "fit_wide", on)
    agree(linked, "look_wide", SLOT)
    for _ in range(2):  # the second time they are kept
        assert linked.call("firsts", on, SLOT) & ALL_LANES == vectors.firsts(on, SLOT)


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 40), min_size=32, max_size=32),
    MASKS,
    st.integers(0, 3),
    st.sampled_from([31, 0x1C1F, 0x181F, 0x1800, 0x100F]),
)
def test_shuffles_read_lanes_that_run(
    linked: Linked, lanes: list[int], on: int, mode: int, limits: int
) -> None:
    begin()
    for lane, one in enumerate(lanes):
        Word(IN + 4 * lane).value = 100 + lane
        Word(IN + OPERAND_BYTES + 4 * lane).value = one
        Word(IN + 2 * OPERAND_BYTES + 4 * lane).value = limits
    linked.memory[:BYTES] = bytes(memory.held())
    agree(linked, "shuffle", on, mode, IN, OUT)
    agree(linked, "are_all", on)


@pytest.mark.parametrize(
    ("stride", "words", "taken", "least"),
    [(1, 1, 1, 1), (2, 1, 2, 1), (32, 1, 32, 1), (0, 1, 1, 1), (2, 2, 2, 2), (4, 4, 4, 4)],
)
def test_a_stride_of_words_costs_its_common_divisor_with_the_banks(
    linked: Linked, stride: int, words: int, taken: int, least: int
) -> None:
    begin()
    put([4 * stride * lane for lane in range(32)])
    linked.memory[:BYTES] = bytes(memory.held())
    found = agree(linked, "wavefronts", ALL_LANES, words, 0)
    assert (found & 0xFFFFFFFF, found >> 32) == (taken, least)


@pytest.mark.parametrize("paths", [[256, 256], [256, 512]])
def test_atomics_by_two_paths_are_noted(linked: Linked, paths: list[int]) -> None:
    begin()
    linked.memory[:BYTES] = bytes(memory.held())
    found = [agree(linked, "is_in_order", path, SLOT) for path in paths]
    assert found == [True, paths[0] == paths[1]]
    assert Word(accesses.DISORDER).value == (paths[0] != paths[1])
