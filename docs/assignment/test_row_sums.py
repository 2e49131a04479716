"""What the assignment is marked by: python -m pytest."""

import numpy as np
import pytest
from row_sums import THREADS, row_sums

from gpusim import trace
from gpusim.testing import assert_at_most, assert_correct, assert_no_bank_conflicts


def launch(rows, columns):
    """The kernel with its launch, a matrix, and sums that hold nothing yet."""
    matrix = np.random.default_rng(columns).random((rows, columns), dtype=np.float32)
    return row_sums[rows, THREADS], matrix, np.full(rows, np.nan, dtype=np.float32)


def right_sums(rows, columns):
    """The launch, after a run that left the right sums."""
    kernel, matrix, sums = launch(rows, columns)
    kernel(matrix, sums)
    np.testing.assert_allclose(sums, matrix.sum(axis=1, dtype=np.float64), rtol=1e-4)
    return launch(rows, columns)


@pytest.mark.gpusim_points(4)
def test_the_sums_are_right():
    for rows, columns in ((1, 256), (3, 512), (5, 2048)):
        right_sums(rows, columns)


@pytest.mark.gpusim_points(4)
def test_no_race_and_no_error():
    assert_correct(*right_sums(3, 1024), uninitialised=["sums"])


@pytest.mark.gpusim_points(3)
def test_loads_are_coalesced():
    assert_at_most(*right_sums(4, 1024), sectors_per_request=4)


@pytest.mark.gpusim_points(3)
def test_there_are_no_bank_conflicts():
    assert_no_bank_conflicts(*right_sums(4, 1024))


@pytest.mark.gpusim_points(3)
def test_a_warp_waits_at_two_barriers_at_most():
    found = trace(*right_sums(1, 1024))
    assert found.counters["barriers"] <= 2 * found.launch.warps_per_block


@pytest.mark.gpusim_points(3)
def test_it_is_fast():
    right_sums(2, 1024)
    assert_at_most(*launch(1024, 1024), time_us=6.0)
