"""Touches of warps become stretches of blocks, against going through them one by one."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.prediction.streams import touch_columns
from gpusim.prediction.streams.touch_columns import TouchColumns, by_block

BLOCKS = 3
TOUCHES = st.tuples(
    st.integers(0, BLOCKS - 1),
    st.integers(0, 2),  # pc
    st.integers(0, 3),  # time
    st.integers(0, 300),  # begin
    st.integers(1, 150),  # size
    st.integers(0, 128),  # asked
)
Touch = tuple[int, int, int, int, int, int]


def columns(touches: list[Touch]) -> TouchColumns:
    made = np.array(touches, dtype=np.int64).reshape(-1, 6).T
    return TouchColumns.narrow(**dict(zip(touch_columns.NAMES, made, strict=True)))


def stretches(touches: list[Touch]) -> list[Touch]:
    """Return the stretches of touches: those of one time and instruction that lie close by."""
    made: list[list[int]] = []
    for block, pc, time, begin, size, asked in sorted(
        touches, key=lambda one: (one[0], one[2], one[1], one[3])
    ):
        last = made[-1] if made else [-1] * 6
        if last[:3] == [block, pc, time] and begin < last[3] + last[4] + 32:
            last[4] = max(last[4], begin + size - last[3])
            last[5] += asked
        else:
            made.append([block, pc, time, begin, size, asked])
    return [(a, b, c, d, e, f) for a, b, c, d, e, f in made]


@given(
    st.lists(TOUCHES, max_size=40),
    st.sampled_from([1, touch_columns.MOST_TOGETHER]),
    st.sampled_from([0, 2**45]),
)
def test_touches_of_one_time_that_lie_close_by_are_one_stretch(
    touches: list[Touch], most: int, far: int
) -> None:
    """In each order of warps, some blocks at a time, and where addresses lie far apart."""
    touches = [(a, b, c, d + far * (d > 200), e, f) for a, b, c, d, e, f in touches]
    with mock.patch.object(touch_columns, "MOST_TOGETHER", most):
        found = list(by_block(columns(touches), BLOCKS))
    rows = [tuple(row) for one in found for row in np.array([*vars(one).values()]).T.tolist()]
    assert rows == stretches(touches)
    assert [set(one.block.tolist()) <= {number} for number, one in enumerate(found)] == [True] * 3


def test_groups_with_addresses_too_far_apart_for_one_key_are_ordered_all_the_same() -> None:
    """Of 2^17 groups, each has a touch 2^46 bytes behind three that overlap, told before them."""
    count = 2**17
    time = np.repeat(np.arange(count), 4)
    begin = np.tile([2**46, 0, 4, 100], count)
    size = np.tile([8, 200, 4, 8], count)
    nought = np.zeros_like(time)
    made = TouchColumns.narrow(
        block=nought, pc=nought, time=time, begin=begin, size=size, asked=size
    )
    (found,) = by_block(made, 1)
    assert len(found) == 2 * count
    assert found.begin[:2].tolist() == [0, 2**46]
    assert found.size[::2].min() == found.size[::2].max() == 200
    assert found.asked[:2].tolist() == [212, 8]


@pytest.mark.parametrize("name", touch_columns.NAMES)
def test_columns_are_narrow(name: str) -> None:
    """Many touches are held at once: 26 bytes for each."""
    (found,) = by_block(columns([(0, 0, 0, 0, 8, 8), (0, 0, 0, 0, 8, 8)]), 1)
    expected = {"block": 2, "begin": 8}.get(name, 4)
    assert getattr(found, name).itemsize == expected
