"""Which blocks the SM with the most work gets."""

from __future__ import annotations

import numpy as np
import pytest
from numpy import float32

from gpusim import cuda, predict
from gpusim.prediction.workload import blocks_of_busiest

pytestmark = pytest.mark.usefixtures("both_evaluators")


def test_blocks_that_take_equally_long_go_to_the_sms_in_turn() -> None:
    assert list(blocks_of_busiest(np.full(10, 3), 4, 2)) == [0, 4, 8]


def test_a_block_goes_where_room_is_first() -> None:
    """SM 1 does four short blocks while SM 0 does its long one, and both have room at 4."""
    assert list(blocks_of_busiest(np.array([4, 1, 1, 1, 1, 1]), 2, 1)) == [0, 5]


def test_every_place_of_an_sm_is_filled_on_its_own() -> None:
    """SM 0 has two long blocks, SM 1 six short ones, in two places each."""
    assert list(blocks_of_busiest(np.array([4, 1, 4, 1, 1, 1, 1, 1]), 2, 2)) == [0, 2]


def test_blocks_for_which_there_is_room_from_the_first_are_dealt_in_turn() -> None:
    assert list(blocks_of_busiest(np.array([4, 1, 4, 1, 4, 1]), 2, 3)) == [0, 2, 4]


def test_what_is_about_as_much_for_all_sms_is_not_followed_block_by_block() -> None:
    """A last block of which half the threads have nothing to do."""
    assert blocks_of_busiest(np.array([200] * 399 + [100]), 4, 1) == range(0, 400, 4)


@cuda.jit
def below_diagonal(values, ratio):
    total = float32(0)
    if cuda.blockIdx.x <= ratio * cuda.blockIdx.y:
        for k in range(200):
            total += values[cuda.threadIdx.x] * float32(k)
    values[cuda.threadIdx.x] = total


def test_a_triangle_of_a_grid_is_not_worked_on_by_some_sms_alone() -> None:
    """Of 32 x 32 blocks 528; SM 0 would have 104 of these, the mean is 64, and all are 124."""
    values = np.ones(256, float32)
    part, whole = (
        predict(below_diagonal[(32, 32, 16), 256], values, ratio, code="lowering").cycles
        for ratio in (1, 1000)
    )
    assert 528 / 1024 < part / whole < 0.65
