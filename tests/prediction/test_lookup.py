"""The latest touch of bytes before a time, against going through all touches one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpusim.launch.grid import Launch
from gpusim.prediction.locality import lookup
from gpusim.prediction.locality.lookup import Dimension, latest
from gpusim.prediction.locality.patterns import Pattern, united
from gpusim.prediction.locality.reuse import _grid, _last_linear
from gpusim.prediction.locality.schedule import Schedule
from gpusim.prediction.locality.wanted import Wanted
from gpusim.prediction.streams.stretches import COLUMNS, Stretches

STEPS = 16


@dataclass(frozen=True)
class Row:
    """A stretch of the block at the origin, with its loop."""

    time: int
    begin: int
    length: int
    times: int
    stride: int


ROWS = st.builds(
    Row,
    st.integers(0, 9),
    st.integers(0, 40),
    st.integers(1, 12),
    st.integers(0, 2),
    st.sampled_from([0, 8, -8]),
)


def stretches(rows: list[Row]) -> Stretches:
    columns = dict.fromkeys(COLUMNS, np.zeros(len(rows), dtype=np.int64))
    columns |= {
        "time": np.array([row.time for row in rows]),
        "begin": np.array([row.begin for row in rows]),
        "end": np.array([row.begin + row.length for row in rows]),
        "times": np.array([row.times for row in rows]),
        "stride": np.array([row.stride for row in rows]),
        "period": np.full(len(rows), 3),
    }
    return Stretches(**columns, steps=STEPS)


@given(
    rows=st.lists(ROWS, min_size=1, max_size=4),
    grid=st.tuples(st.integers(1, 6), st.integers(1, 4)),
    moves=st.tuples(st.sampled_from([0, 4, 16, -16]), st.sampled_from([0, 16, 96])),
    begin=st.integers(0, 120),
    time=st.floats(0, 4),
    sms=st.sampled_from([0, 1, 2, 3]),
    most_places=st.sampled_from([0, lookup.MOST_PLACES]),
)
def test_the_latest_touch_is_that_of_all_touches(
    rows: list[Row],
    grid: tuple[int, int],
    moves: tuple[int, int],
    begin: int,
    time: float,
    sms: int,
    most_places: int,
) -> None:
    """Where overlapping places leave a choice, one that is there is found, never a later one.

    So do blocks that begin later where iterations of the block before touch the same again.
    """
    life, (x, y), block = 0.125, grid, 5
    touches = []
    for row in rows:
        for bx in range(x):
            for by in range(y):
                for k in range(row.times + 1):
                    first = row.begin + bx * moves[0] + by * moves[1] + k * row.stride
                    number = bx + x * by
                    if sms and (number - block) % sms:
                        continue
                    if first < begin + 32 and first + row.length > begin:
                        touches.append(number * life + (row.time + 3 * k) / STEPS)
    expected = max((t for t in touches if t < time - 1e-9), default=-math.inf)
    dimensions = [Dimension(moves[0], x, 1), Dimension(moves[1], y, x)]
    wanted = Wanted(
        np.array([begin]), np.array([begin + 32]), np.array([time]), np.array([block]), sms
    )
    blocks = np.zeros(len(rows), dtype=np.int64)
    ranges = np.array([(0, x * y - 1)])
    with mock.patch.object(lookup, "MOST_PLACES", most_places):
        found = latest(stretches(rows), dimensions, wanted, blocks, ranges, life)
    assert found[0] <= expected or math.isclose(found[0], expected)
    stays = any(row.times and not row.stride for row in rows)
    if moves[1] != 0 and moves[0] in (16, -16) and not sms and not stays:
        assert math.isclose(found[0], expected)


def test_of_blocks_on_an_edge_that_all_touch_the_same_the_last_one_is_found() -> None:
    """Of six blocks three do so, of which the second ends before the time that is asked about."""
    touched = stretches([Row(time=4, begin=0, length=32, times=0, stride=0)])
    edge, ranges = [Dimension(0, 6, 1)], np.array([(0, 0), (2, 2), (4, 4)])

    def last(time: float, sms: int = 0) -> float:
        wanted = Wanted(np.array([0]), np.array([32]), np.array([time]), np.array([6]), sms)
        found = latest(touched, edge, wanted, np.zeros(1, dtype=np.int64), ranges, 0.5)
        return float(found[0])

    assert last(math.inf) == 4 * 0.5 + 4 / STEPS
    assert last(2.0) == 2 * 0.5 + 4 / STEPS
    assert last(0.1) == -math.inf
    assert last(math.inf, sms=3) == 0 * 0.5 + 4 / STEPS


def test_a_touch_is_found_among_many_that_begin_before_it_however_long_one_of_them_is() -> None:
    """A row of 8 KB reaches far; 4,000 words that begin within it do not hide the last of them."""
    words = [Row(time=1, begin=2 * k, length=2, times=0, stride=0) for k in range(4000)]
    rows = [Row(time=0, begin=0, length=8192, times=0, stride=0), *words]
    wanted = Wanted(np.array([7990]), np.array([7992]), np.array([math.inf]), np.array([0]))
    blocks = np.zeros(len(rows), dtype=np.int64)
    with (
        mock.patch.object(lookup, "MOST_PLACES", 1024),
        mock.patch.object(lookup, "MOST_CANDIDATES", 1024),
    ):
        found = latest(stretches(rows), (), wanted, blocks, np.array([(0, 0)]), 0.0)
    assert found[0] == 1 / STEPS


def test_blocks_that_all_differ_are_looked_through_together_as_one_by_one() -> None:
    """Each block's touches stay its own: the last of all is the last of any of them."""
    launch = Launch.of((3, 2), 32)
    schedule = Schedule(launch, at_once=2, sms=2, grain_bytes=64, partial_bytes=0.0)
    rows = [[Row(b % 3, 64 * b, 96, b % 2, 64)] for b in range(launch.blocks)]
    single = [Pattern(stretches(mine), (128, 768, 0), ((b, b),)) for b, mine in enumerate(rows)]
    begin = np.arange(0, 1920, 32)
    wanted = Wanted(begin, begin + 32, np.full(len(begin), 3.0), begin % launch.blocks, sms=2)
    together = _last_linear(single, launch)(wanted, schedule.life)
    one_by_one = [_last_linear([one], launch)(wanted, schedule.life) for one in single]
    direct = [
        latest(
            one.stretches,
            _grid(one, launch),
            wanted,
            np.zeros(1, dtype=np.int64),
            np.array(one.ranges),
            schedule.life,
        )
        for one in single
    ]
    assert np.isfinite(together).any()
    assert (together == np.max(one_by_one, axis=0)).all()
    assert (together == np.max(direct, axis=0)).all()


def test_rows_of_blocks_that_lie_far_apart_meet_only_the_bytes_that_they_reach() -> None:
    """Each of 100 rows of 16 blocks, 64 bytes apart, covers 1 KB of the 16 KB to the next row."""
    rows = stretches([Row(0, 16384 * k, 64, 0, 0) for k in range(100)])
    found = lookup.LookedThrough(rows, [Dimension(64, 16, 1)], rows.time, np.array([(0, 15)]))
    begin = np.array([0, 16384 + 960, 5 * 16384 + 1024])
    wanted = Wanted(begin, begin + 32, np.full(3, 4.0), np.zeros(3, dtype=np.int64))
    ((_, counts),) = found._parts[0].meetings.near(wanted)
    assert counts.tolist() == [1, 1, 0]
    assert found.latest(wanted, 0.125).tolist() == [0, 15 * 0.125, -math.inf]


def test_stretches_with_equal_moves_and_blocks_are_looked_through_as_one() -> None:
    """Of three patterns, two move alike in the same blocks."""
    moved, other = (16, 0, 0), (32, 0, 0)
    rows = [stretches([Row(0, 64 * k, 8, 0, 0)]) for k in range(3)]
    patterns = [
        Pattern(one, moves, ((0, 3),))
        for one, moves in zip(rows, (moved, other, moved), strict=True)
    ]
    first, second = united(patterns)
    assert (first.moves, first.stretches.begin.tolist()) == (moved, [0, 128])
    assert (second.moves, second.stretches.begin.tolist()) == (other, [64])


def test_touches_of_one_place_are_one_candidate_however_many_there_are() -> None:
    """Two blocks touch a sector a thousand times each, in halves: places are whole sectors."""
    rows = stretches([Row(k % 1000, 64 + k % 2, 8, 0, 0) for k in range(2000)])
    blocks, times = np.repeat([3, 4], 1000), np.array([0.5, 100.0, 1000.0, math.inf])
    found = lookup.LookedThrough(rows, (), blocks, np.array([(0, 9)]), grain=32)

    def last(sms: int = 0) -> list[float]:
        wanted = Wanted(*np.full((2, 4), [[64], [96]]), times, np.full(4, 3), sms)
        return found.latest(wanted, 500.0).tolist()

    (part,) = found._parts
    assert (len(part.rows), part.blocks.tolist()) == (2, [3, 4])
    assert last()[-1] == 4 * 500 + 999 / STEPS
    assert last(sms=2) == [-math.inf, -math.inf, -math.inf, 3 * 500 + 999 / STEPS]
    wanted = Wanted(np.array([64]), np.array([96]), np.array([1500 + 10 / STEPS]), np.array([3]))
    assert found.latest(wanted, 500.0).tolist() == [1500 + 9 / STEPS]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 80), st.integers(1, 70)), min_size=1),
    st.integers(0, 4).map(lambda k: 32 * k),
    st.sampled_from([32, 64, 128]),
    st.floats(0, 2),
)
def test_places_in_any_order_of_time_give_the_latest_touch(
    touches: list[tuple[int, int, int]], begin: int, size: int, time: float
) -> None:
    rows = stretches([Row(at, first, length, 0, 0) for at, first, length in touches])
    blocks = np.arange(len(rows)) % 2
    found = lookup.LookedThrough(rows, (), blocks, np.array([(0, 1)]), grain=32)
    wanted = Wanted(np.array([begin]), np.array([begin + size]), np.array([time]), np.zeros(1, int))
    expected = max(
        (
            at / STEPS + k % 2 * 0.5
            for k, (at, first, length) in enumerate(touches)
            if first // 32 * 32 < begin + size
            and first + length > begin
            and at / STEPS + k % 2 * 0.5 < time - 1e-10
        ),
        default=-math.inf,
    )
    assert found.latest(wanted, 0.5).tolist() == [expected]


def test_a_wanted_line_meets_few_rows_of_words_that_loops_and_blocks_move() -> None:
    """Of 16 rows of 32 words, 3 KB apart, a loop of 22 lines covers one at each place."""
    rows = stretches([Row(0, 3072 * row + 4 * k, 4, 0, 0) for row in range(16) for k in range(32)])
    dimensions = [Dimension(128, 22, 0, 0.04), Dimension(16 * 3072, 48, 48)]
    blocks = np.zeros(len(rows), dtype=np.int64)
    found = lookup.LookedThrough(rows, dimensions, blocks, np.array([(0, 48 * 48)]), grain=32)
    wanted = Wanted(np.array([128 * 5]), np.array([128 * 6]), np.array([9.0]), np.array([0]))
    assert sum(int(counts.sum()) for _, counts in found._parts[0].meetings.near(wanted)) <= 64
