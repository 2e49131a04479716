"""What a launch moves at the least: its sectors, loaded and stored, counted by hand and by sets."""

from __future__ import annotations

import tracemalloc
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpusim
from gpusim import array_spec, cuda
from gpusim.launch.grid import Launch
from gpusim.prediction.locality import compulsory
from gpusim.prediction.locality.compulsory import MOST, Intervals, compulsory_of
from gpusim.prediction.locality.patterns import Pattern, Patterns, coordinates
from gpusim.prediction.streams.kinds_by_pc import LOAD, STORE
from gpusim.prediction.streams.stretches import Stretches
from gpusim.prediction.sweeps.jobs import own_job


@cuda.jit
def scale(a, x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = a * x[i] + y[i]


@cuda.jit
def transpose(a, b, n):
    x, y = cuda.grid(2)
    b[x * n + y] = a[y * n + x]


@cuda.jit
def multiply(a, b, c, n):
    x, y = cuda.grid(2)
    total = np.float32(0)
    for k in range(n):
        total += a[y * n + k] * b[k * n + x]
    c[y * n + x] = total


@cuda.jit
def gather(a, index, out):
    i = cuda.grid(1)
    out[i] = a[index[i]]


def floats(n):
    return array_spec(n, "float32")


def moved(configured, *arguments):
    return gpusim.predict(configured, *arguments, code="lowering").traffic.compulsory_bytes


def test_what_is_updated_in_place_is_loaded_once_and_stored_once() -> None:
    """Of 2^20 - 5 elements x and y are loaded, y stored: sectors of 8, the last one in part."""
    n = 2**20 - 5
    arrays = floats(2**20), floats(2**20)
    found = moved(scale[4096, 256], np.float32(2), *arrays, np.int32(n))
    assert found == 3 * 4 * 2**20


def test_no_declared_size_decides_what_is_moved() -> None:
    n = 2**20
    near, far = (
        own_job(scale[4096, 256], (np.float32(2), floats(size), floats(size), np.int32(n)))
        for size in (n, 1000 * n)
    )
    one, other = near.on("h200"), far.on("h200")
    assert one.useful_bytes == other.useful_bytes == 12 * n
    assert one.gbps == other.gbps == pytest.approx(12 * n / one.time_us / 1000)


def test_what_many_blocks_load_counts_once() -> None:
    """Each of three 256 x 256 matrices, though 16 blocks load each row and each column."""
    arrays = floats(2**16), floats(2**16), floats(2**16)
    assert moved(multiply[(16, 16), (16, 16)], *arrays, np.int32(256)) == 3 * 4 * 2**16


def test_columns_are_put_together_out_of_the_blocks_that_write_parts_of_them() -> None:
    arrays = floats(2**20), floats(2**20)
    assert moved(transpose[(32, 128), (32, 8)], *arrays, np.int32(1024)) == 2 * 4 * 2**20


@pytest.mark.parametrize("table", [2**12, 2**20, 2**24])
def test_of_a_gather_the_sectors_are_estimated_that_no_block_showed(table: int) -> None:
    """NumPy counts them: nearly all of 512 sectors, 86 % of 2^17, 6 % of 2^21."""
    n = 2**18
    index = np.random.default_rng(5).integers(0, table, n).astype(np.int32)
    found = moved(gather[n // 256, 256], floats(table), index, floats(n))
    assert found == pytest.approx(2 * 4 * n + 32 * len(np.unique(index // 8)), rel=0.05)


def test_of_few_blocks_that_follow_data_all_sectors_are_counted() -> None:
    index = np.random.default_rng(6).integers(0, 2**20, 1024).astype(np.int32)
    found = moved(gather[4, 256], floats(2**20), index, floats(1024))
    assert found == 2 * 4 * 1024 + 32 * len(np.unique(index // 8))


def test_so_many_places_that_some_stand_for_all_come_to_as_much() -> None:
    """A line in four is touched at twice as many places as are told apart, four sectors each."""
    lines = Intervals.of(np.array([0, 512]), np.array([128, 640]))
    found = lines.along(1024, MOST)
    assert len(found.begin) == MOST
    assert found.sectors == 2 * 4 * MOST


STRETCHES = st.tuples(
    st.sampled_from([LOAD, STORE]),
    st.integers(0, 600),  # begin
    st.integers(1, 200),  # length
    st.integers(0, 4),  # times more
    st.integers(-150, 150),  # stride
)
MOVES = st.tuples(*[st.integers(-300, 300)] * 3)
RANGES = st.lists(st.integers(0, 23), min_size=2, max_size=8, unique=True).map(
    lambda ends: tuple(zip(sorted(ends)[::2], sorted(ends)[1::2], strict=False))
)


@given(st.lists(st.tuples(st.lists(STRETCHES, min_size=1, max_size=4), MOVES, RANGES), max_size=3))
def test_patterns_come_to_the_sectors_of_all_their_blocks_one_by_one(made) -> None:
    launch = Launch.of((4, 3, 2), 32)
    patterns = [Pattern(stretches(rows), moves, ranges) for rows, moves, ranges in made]
    found = compulsory_of(Patterns(launch, tuple(patterns), {}, (), ()))
    sectors: dict[int, set[int]] = {LOAD: set(), STORE: set()}
    for rows, moves, ranges in made:
        for block in (b for first, last in ranges for b in range(first, last + 1)):
            offset = int(coordinates(np.array([block]), launch)[0] @ np.array(moves))
            for kind, begin, length, times, stride in rows:
                for iteration in range(times + 1):
                    at = 2**20 + begin + offset + iteration * stride
                    sectors[kind] |= set(range(at // 32, (at + length - 1) // 32 + 1))
    assert found.loaded_bytes == 32 * len(sectors[LOAD])
    assert found.stored_bytes == 32 * len(sectors[STORE])


def stretches(rows) -> Stretches:
    kind, begin, length, times, stride = np.array(rows, dtype=np.int64).T
    nought, begin = np.zeros_like(kind), begin + 2**20
    return Stretches(nought, kind, nought, begin, begin + length, length, times, stride, nought, 1)


def test_copies_that_overlap_are_united_in_order() -> None:
    """A copy of two lines, as far on as these are apart, covers one of them again."""
    lines = Intervals.of(np.array([0, 1024]), np.array([128, 1152]))
    assert lines.at(np.array([0, 1024, 4096])).begin.tolist() == [0, 1024, 2048, 4096, 5120]
    assert lines.at(np.array([0, 512, 4096])).begin.tolist() == [0, 512, 1024, 1536, 4096, 5120]
    assert lines.at(np.array([0, 2048])).begin.tolist() == [0, 1024, 2048, 3072]


def lines_of(places: list[int]) -> Stretches:
    """Return loads of eight bytes at some places."""
    return stretches([(LOAD, place, 8, 0, 0) for place in places])


def test_of_many_patterns_told_apart_in_part_one_is_held_at_a_time() -> None:
    """Each stands for 2^19 places with 2^18 of them, 4 MB: of 24, not all 24 are held."""
    launch = Launch.of((2**13,), 32)
    patterns = tuple(
        Pattern(lines_of([k, *range(1024, 2**16, 1024)]), (2**16, 0, 0), ((0, 2**13 - 1),))
        for k in range(0, 24 * 32, 32)
    )
    tracemalloc.start()
    found = compulsory_of(Patterns(launch, patterns, {}, (), ()))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.loaded_bytes == 24 * 2**19 * 32
    assert most < 40e6


def test_patterns_a_multiple_of_sectors_apart_are_counted_once() -> None:
    """Of eight, two begin in the middle of a sector: two are different."""
    blocks = 2 * MOST
    launch = Launch.of((blocks,), 32)
    patterns = tuple(
        Pattern(lines_of([64 * k + 4 * (k % 4 == 0)]), (4096, 0, 0), ((0, blocks - 1),))
        for k in range(8)
    )
    with mock.patch.object(Intervals, "along", autospec=True, side_effect=Intervals.along) as made:
        found = compulsory_of(Patterns(launch, patterns, {}, (), ()))
    assert found.loaded_bytes == 8 * blocks * 32
    assert len({one.args[0].begin[0] % 32 for one in made.call_args_list}) == 2
    assert made.call_count == 2 * 2  # along loop and grid


def test_words_of_several_patterns_side_by_side_are_united_before_they_are_copied() -> None:
    """Eight words make a sector of each block, at 64 places in a row: one interval."""
    launch = Launch.of((64,), 32)
    patterns = Patterns(
        launch,
        tuple(
            Pattern(stretches([(LOAD, 4 * k, 4, 0, 0)]), (256, 0, 0), ((0, 63),)) for k in range(8)
        ),
        {},
        (),
        (),
    )
    copies = [one for p in patterns.linear for one in compulsory._of_pattern(p, (LOAD,), patterns)]
    (together,) = compulsory._together(copies)
    assert (len(copies), len(together.block.begin)) == (8, 1)
    assert together.united().sectors == 64


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60)), max_size=6),
    st.lists(st.integers(0, 500), unique=True).map(sorted),
)
def test_intervals_hold_the_places_from_their_begins_up_to_their_ends(spans, places) -> None:
    begin, length = np.array([*spans, (0, 0)], dtype=np.int64)[: len(spans)].T
    united = Intervals.of(begin, begin + length)
    expected = [
        any(a <= place < b for a, b in zip(united.begin, united.end, strict=True))
        for place in places
    ]
    assert united.holds(np.array(places, dtype=np.int64)).tolist() == expected
