"""Draws that lie evenly: what is chosen for a sample, and how evenly."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.prediction.arithmetic.quasirandom import spread
from gpusim.prediction.memory import SAMPLED
from gpusim.typing import Array


def discrepancy(points: Array) -> float:
    """Return the centred L2 discrepancy (Hickernell, 1998): 0 where points lie ever so evenly."""
    off = np.abs(points - 0.5)
    apart = np.abs(points[:, None] - points)
    one = np.prod(1 + (off - off**2) / 2, axis=1).mean()
    two = np.prod(1 + (off[:, None] + off - apart) / 2, axis=2).mean()
    return float(np.sqrt((13 / 12) ** points.shape[1] - 2 * one + two))


@given(st.integers(1, 200), st.sampled_from([3, 6]))
def test_each_slice_of_each_dimension_has_one_point(count: int, dimensions: int) -> None:
    """As many slices as points, from 0 to 1; along the first dimension in their order."""
    slices = np.floor(spread(count, dimensions) * count).astype(int)
    assert slices[:, 0].tolist() == list(range(count))
    assert all(sorted(slices[:, n].tolist()) == list(range(count)) for n in range(dimensions))


def test_points_are_spread_over_any_two_dimensions() -> None:
    """Three to four times as evenly as points at random, of which a hundred sets are as below."""
    random = np.random.default_rng(0)
    by_random_access = np.mean([discrepancy(random.random((SAMPLED, 2))) for _ in range(100)])
    assert by_random_access == pytest.approx(0.095, abs=0.01)
    points = spread(SAMPLED, 6)
    assert max(discrepancy(points[:, two]) for two in combinations(range(6), 2)) < 0.03


def test_points_keep_no_step_with_what_is_regular() -> None:
    """Of twice as many things in a row points meet such of odd and of even number."""
    things = (spread(SAMPLED, 6) * 2 * SAMPLED).astype(int) % 2
    assert ((things.mean(axis=0) > 0.3) & (things.mean(axis=0) < 0.7)).all()
