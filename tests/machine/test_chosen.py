"""Lanes that are on get a value, all others keep theirs."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.machine.group import chosen


@pytest.mark.parametrize(
    ("value", "old"),
    [
        (np.array([1, -2], np.int32), np.array([7, 8], np.int32)),
        (np.array([np.nan, -0.0]), np.array([1.5, np.inf])),
        (np.array([True, False]), np.array([False, True])),
        (np.array([1.5, 2], np.float32), np.array([7, 8], np.int32)),
    ],
)
def test_lanes_that_are_on_get_the_value_bit_for_bit(value: np.ndarray, old: np.ndarray) -> None:
    for on in ([True, False], [False, True], [True, True], [False, False]):
        mask = np.array(on)
        assert chosen(mask, value, old).tobytes() == np.where(mask, value, old).tobytes()
