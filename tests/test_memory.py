"""Wavefronts and sectors: closed forms, and brute force over lanes."""

from __future__ import annotations

from math import gcd
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.gpu import memory

LANES = np.arange(32)
EVERY = np.ones(32, dtype=bool)
masks = st.lists(st.booleans(), min_size=32, max_size=32).map(np.array)


def brute_force_wavefronts(addresses: list[int], on: list[bool], width: int) -> int:
    """Serve parts of a warp one after another; each bank gives one word a pass."""
    words_each = max(1, width // 4)
    lanes_each = 32 // words_each
    passes = 0
    for start in range(0, 32, lanes_each):
        wanted: dict[int, set[int]] = {}
        for lane in range(start, start + lanes_each):
            if on[lane]:
                for word in range(addresses[lane] // 4, addresses[lane] // 4 + words_each):
                    wanted.setdefault(word % 32, set()).add(word)
        passes += max(map(len, wanted.values()), default=0)
    return passes


@pytest.mark.parametrize("stride", range(1, 65))
def test_a_stride_of_s_words_costs_gcd_of_s_and_32_wavefronts(stride: int) -> None:
    passes, least = memory.wavefronts(LANES * stride * 4, EVERY)
    assert (int(passes), int(least)) == (gcd(stride, 32), 1)


def test_a_broadcast_costs_one_wavefront() -> None:
    passes, least = memory.wavefronts(np.full(32, 400), EVERY)
    assert (int(passes), int(least)) == (1, 1)


def test_a_multicast_of_two_words_of_one_bank_costs_two_wavefronts() -> None:
    passes, _ = memory.wavefronts(np.where(LANES < 16, 0, 128), EVERY)
    assert int(passes) == 2


def test_bytes_of_one_word_share_a_wavefront() -> None:
    passes, _ = memory.wavefronts(LANES, EVERY, width_bytes=1)
    assert int(passes) == 1


@pytest.mark.parametrize(("width", "expected"), [(4, 1), (8, 2), (16, 4)])
def test_wide_accesses_are_served_in_halves_and_quarters(width: int, expected: int) -> None:
    passes, least = memory.wavefronts(LANES * width, EVERY, width_bytes=width)
    assert (int(passes), int(least)) == (expected, expected)


def test_wavefronts_of_wide_accesses_are_those_that_nsight_counts() -> None:
    """Two hundred patterns, half of them at random: see the file for how it was measured."""
    measured = np.loadtxt(
        Path(__file__).parent / "data" / "shared_wavefronts_h200.csv", delimiter=",", dtype=int
    )
    differ = []
    for width, loads, stores, *places in measured.tolist():
        on = np.array(places) >= 0
        addresses = np.array(places) * width
        loading, _ = memory.wavefronts(addresses, on, width, is_load=True)
        storing, _ = memory.wavefronts(addresses, on, width)
        if (int(loading), int(storing)) != (loads, stores):
            differ.append((width, places))
    assert differ == []
    assert len(measured) == 200


@pytest.mark.parametrize(("width", "least"), [(8, 1), (16, 2)])
def test_a_wide_load_of_one_address_takes_half_as_many_wavefronts_from_7_0_on(
    width: int, least: int
) -> None:
    everywhere = np.zeros(32, dtype=int)
    assert memory.wavefronts(everywhere, EVERY, width, 9, is_load=True)[0] == least
    assert memory.wavefronts(everywhere, EVERY, width, 6, is_load=True)[0] == 2 * least


@pytest.mark.parametrize(("wanted", "wavefronts"), [("0---", 2), ("01--", 2), ("012-", 4)])
def test_lanes_that_load_nothing_do_not_keep_a_wide_load_apart(
    wanted: str, wavefronts: int
) -> None:
    """Of four lanes one, two or three load 16 bytes each: `nms_mask` on an H200 takes eight."""
    places = np.array([0 if place == "-" else int(place) for place in wanted * 8])
    on = np.array([place != "-" for place in wanted * 8])
    assert memory.wavefronts(places * 16, on, 16, 9, is_load=True)[0] == wavefronts


def test_a_warp_with_no_lane_on_makes_no_wavefront_and_no_sector() -> None:
    nobody = np.zeros(32, dtype=bool)
    passes, least = memory.wavefronts(LANES * 4, nobody)
    assert (int(passes), int(least), int(memory.sectors(LANES * 4, nobody))) == (0, 0, 0)


@given(
    st.lists(st.integers(0, 255), min_size=32, max_size=32),
    masks,
    st.sampled_from([4, 8, 16]),
)
def test_wavefronts_equal_brute_force(places: list[int], on: np.ndarray, width: int) -> None:
    addresses = np.array(places) * width
    passes, least = memory.wavefronts(addresses, on, width_bytes=width)
    assert int(passes) == brute_force_wavefronts(addresses.tolist(), on.tolist(), width)
    assert int(least) <= int(passes)


@given(st.lists(st.integers(0, 10_000), min_size=32, max_size=32), masks)
def test_sectors_are_the_different_32_byte_pieces(places: list[int], on: np.ndarray) -> None:
    expected = {place * 4 // 32 for place, taking in zip(places, on, strict=True) if taking}
    assert int(memory.sectors(np.array(places) * 4, on)) == len(expected)


def test_many_warps_are_counted_at_once() -> None:
    addresses = np.stack([LANES * 4, LANES * 8, LANES * 128])
    passes, _ = memory.wavefronts(addresses, EVERY)
    assert passes.tolist() == [1, 2, 32]
    assert memory.sectors(addresses, EVERY).tolist() == [4, 8, 32]


def test_half_warps_meet_sixteen_banks_on_compute_capability_1() -> None:
    unit, _ = memory.wavefronts(LANES * 4, EVERY, cc_major=1)
    doubled, _ = memory.wavefronts(LANES * 8, EVERY, cc_major=1)
    assert (int(unit), int(doubled)) == (2, 4)


def test_compute_capability_1_broadcasts_one_word_a_pass() -> None:
    two_words = np.where(LANES % 2 == 0, 0, 64)
    passes, _ = memory.wavefronts(two_words, EVERY, cc_major=1)
    assert int(passes) == 4


@given(st.lists(st.integers(0, 40), min_size=32, max_size=32), masks)
def test_an_atomic_passes_once_for_each_lane_of_the_fullest_address(
    places: list[int], on: np.ndarray
) -> None:
    taken = [place for place, taking in zip(places, on, strict=True) if taking]
    expected = max((taken.count(place) for place in taken), default=0)
    assert int(memory.same_address_lanes(np.array(places) * 4, on)) == expected


def test_of_lanes_with_one_value_the_first_that_is_on_is_told_from_the_others() -> None:
    values = np.repeat([7, 5, 7], [4, 4, 24])
    on = (LANES != 0) & (LANES != 4)
    assert np.flatnonzero(memory.first_of_each(values, on)).tolist() == [1, 5]


@pytest.mark.parametrize("lanes", [1, 2, 8, 32])
def test_an_atomic_on_shared_memory_passes_once_for_each_lane_of_a_bank(lanes: int) -> None:
    of_a_word = LANES // lanes * 4
    of_a_bank = (LANES // lanes + 32 * (LANES % lanes)) * 4
    assert int(memory.shared_atomic_wavefronts(of_a_word, EVERY)) == lanes
    assert int(memory.shared_atomic_wavefronts(of_a_bank, EVERY)) == lanes


@pytest.mark.parametrize("lanes", [1, 2, 8, 32])
def test_counting_up_passes_once_for_each_word_of_a_bank(lanes: int) -> None:
    of_a_word = LANES // lanes * 4
    of_a_bank = (LANES // lanes + 32 * (LANES % lanes)) * 4
    assert int(memory.shared_atomic_wavefronts(of_a_word, EVERY, by_word=True)) == 1
    assert int(memory.shared_atomic_wavefronts(of_a_bank, EVERY, by_word=True)) == lanes


@pytest.mark.parametrize("alike", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("words", [1, 2, 4])
def test_a_load_from_the_l1_takes_a_cycle_for_each_word_however_many_lanes_want_it(
    words: int, alike: int
) -> None:
    """On an H200 1.1, 2.0 and 4.0; where pairs of lanes want the same shared memory has half."""
    addresses = LANES // alike * words * 4
    assert memory.load_wavefronts(addresses, EVERY, 4 * words) == words
    shared, _ = memory.wavefronts(addresses, EVERY, 4 * words, is_load=True)
    assert shared == (words if alike == 1 else max(1, words // 2))


@pytest.mark.parametrize(
    ("apart", "width", "cycles"),
    [
        (0, 4, 1), (1, 4, 1), (2, 4, 2), (3, 4, 1), (5, 4, 2), (6, 4, 2), (8, 4, 8), (9, 4, 3),
        (12, 4, 4), (16, 4, 16), (17, 4, 5), (24, 4, 8), (31, 4, 8), (32, 4, 32), (33, 4, 8),
        (64, 4, 32), (96, 4, 32), (2, 8, 2), (4, 8, 4), (6, 8, 2), (10, 8, 3), (34, 8, 9),
        (4, 16, 4), (8, 16, 8), (12, 16, 4), (20, 16, 5), (36, 16, 9),
    ],
)  # fmt: skip
def test_a_load_from_the_l1_takes_as_long_as_its_lines_or_its_banks(
    apart: int, width: int, cycles: int
) -> None:
    """Cycles of an H200's SM where 32 warps load at a time, lanes so many words apart, rounded."""
    addresses = 4 * apart * LANES + 4096
    assert memory.load_wavefronts(addresses, EVERY, width) == cycles
    moved = np.stack([addresses, addresses + 256])
    assert memory.load_wavefronts(moved, EVERY, width).tolist() == [cycles, cycles]


def test_lines_are_looked_up_four_at_a_time() -> None:
    """Lane `i` wants the `i`-th word of a line, of as many lines as there are: banks all differ."""
    for lines, cycles in ((1, 1), (4, 1), (5, 2), (8, 2), (20, 5), (24, 6), (28, 7), (32, 8)):
        places = LANES % lines * 128 + 4 * LANES
        assert memory.load_wavefronts(places, EVERY) == cycles
        warps = np.stack([places, places])[:, ::-1]  # the first lane has the highest line
        assert memory.load_wavefronts(warps, EVERY).tolist() == [cycles, cycles]
    assert memory.load_wavefronts(128 * LANES, ~EVERY) == 0


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 63), min_size=32, max_size=32))
def test_loads_of_words_take_the_same_passes_from_addresses_in_order(
    lanes: int, words: list[int]
) -> None:
    on = np.array([lanes >> lane & 1 for lane in range(32)], dtype=bool)
    for apart in (4, 36, 128):
        addresses = np.stack([np.array(words) * apart, LANES * 4]) + 4096
        both = np.stack([on, EVERY])
        ordered = memory.coalesced(addresses, both).ordered
        found = memory.load_wavefronts(addresses, both)
        assert memory.word_load_wavefronts(ordered).tolist() == found.tolist()


def test_words_of_one_local_address_lie_in_a_line_lane_by_lane() -> None:
    """A byte lies in its word's; lanes at different addresses are in as many lines."""
    for address in (8, 11):
        places = memory.local_places(np.full(32, address))
        assert places.tolist() == [256 + 4 * lane for lane in range(32)]
    apart = memory.local_places(4 * LANES)
    assert apart.tolist() == [132 * lane for lane in range(32)]
    assert memory.sectors(apart, EVERY) == 32


@given(st.lists(st.integers(0, 2**40), min_size=32, max_size=32), masks)
def test_sectors_are_counted_alike_however_large_addresses_are(
    addresses: list[int], on: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> None:
    sectors = {address // 32 for address, is_on in zip(addresses, on, strict=True) if is_on}
    assert memory.sectors(np.array(addresses), on) == len(sectors)


def test_lanes_of_one_address_are_counted_warp_by_warp() -> None:
    apart = 4 * LANES
    addresses = np.array([apart, apart * 0, apart, np.minimum(apart, 8)])
    on = np.array([EVERY, EVERY, ~EVERY, LANES < 5])
    assert memory.same_address_lanes(addresses, on).tolist() == [1, 32, 0, 3]


@given(st.lists(st.integers(0, 300), min_size=64, max_size=64), masks, masks)
def test_sectors_and_lines_of_an_access_are_found_together(
    places: list[int], on: np.ndarray, other: np.ndarray
) -> None:
    addresses, lanes = 4 * np.array(places).reshape(1, 2, 32), np.stack([on, other])[None]
    found = memory.coalesced(addresses, lanes)
    own = [[places[32 * w + lane] for lane in range(32) if lanes[0, w, lane]] for w in range(2)]
    sectors, lines = ([sorted({p // n for p in one}) for one in own] for n in (8, 32))
    assert found.sectors.tolist() == [list(map(len, sectors))]
    assert found.lines.tolist() == [list(map(len, lines))]
    assert found.lowest.tolist() == [[min(one, default=-1) for one in lines]]
    assert found.touched.tolist() == sectors[0] + sectors[1]


@given(st.lists(st.integers(0, 40), min_size=64, max_size=64), masks, masks)
def test_an_atomic_passes_by_the_fullest_word_of_each_sector_of_each_warp(
    places: list[int], on: np.ndarray, other: np.ndarray
) -> None:
    lanes, expected = np.stack([on, other]), []
    for warp in range(2):
        own = [places[32 * warp + lane] for lane in range(32) if lanes[warp, lane]]
        of_sectors = {p // 8: [q for q in own if q // 8 == p // 8] for p in own}
        expected.append(sum(max(map(one.count, one)) for one in of_sectors.values()))
    found = memory.atomic_passes(4 * np.array(places).reshape(2, 32), lanes)
    assert found.tolist() == expected


def test_parts_of_marks_without_any_are_left_alone() -> None:
    marks = np.zeros(200_000, bool)
    assert not list(memory.marked(marks))
    marks[[70_000, 199_999]] = True
    assert list(memory.marked(marks)) == [slice(65_536, 131_072), slice(196_608, 262_144)]
