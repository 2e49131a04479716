"""What the assignment is marked by: python -m pytest."""

import numpy as np
import pytest
from row_sums import THREADS, row_sums

from gpusim import trace
from gpusim.testing import assert_at_most, assert_correct


def launch(rows, columns):
    """The kernel with its launch, a matrix, and sums that hold nothing yet."""
    matrix = np.random.default_rng(columns).random((rows, columns), dtype=np.float32)
    return row_sums[rows, THREADS], matrix, np.full(rows, np.nan, dtype=np.float32)


def per_32_elements(rows=2, columns=8192):
    """The counters of a launch for each 32 elements of its matrix, all of which are read."""
    counters = trace(*launch(rows, columns)).counters
    counts = {name: 32 * count / (rows * columns) for name, count in counters.items()}
    assert counts["global_load_sectors"] >= 4, "not all elements of the matrix are read"
    return counts


def of_all_threads():
    """The same, of a kernel that divides the work among the threads of its block."""
    counts = per_32_elements()
    assert counts["instructions"] <= 8, (
        f"{counts['instructions']:.1f} warp instructions for 32 elements: few threads do the work"
    )
    return counts


@pytest.mark.gpusim_points(4)
def test_no_race_and_no_error():
    per_32_elements(3, 1024)
    assert_correct(*launch(3, 1024), uninitialised=["sums"])


@pytest.mark.gpusim_points(4)
def test_the_sums_are_right():
    for rows, columns in ((1, 256), (3, 512), (5, 2048)):
        kernel, matrix, sums = launch(rows, columns)
        kernel(matrix, sums)
        right = matrix.sum(axis=1, dtype=np.float64)
        for row in range(rows):
            assert abs(sums[row] - right[row]) <= 1e-4 * right[row], (
                f"{rows} x {columns}: the sum of row {row} is {sums[row]}, not {right[row]:.3f}"
            )


@pytest.mark.gpusim_points(3)
def test_loads_are_coalesced():
    sectors = per_32_elements()["global_load_sectors"]
    assert sectors <= 4.4, f"{sectors:.1f} sectors loaded for 32 elements of 4 bytes, not 4"


@pytest.mark.gpusim_points(3)
def test_all_threads_do_the_work():
    of_all_threads()


@pytest.mark.gpusim_points(1)
def test_there_are_no_bank_conflicts():
    of_all_threads()
    assert_at_most(*launch(4, 1024), bank_conflicts=0)


@pytest.mark.gpusim_points(2)
def test_a_warp_waits_at_two_barriers_at_most():
    of_all_threads()
    found = trace(*launch(1, 1024))
    barriers = found.counters["barriers"] / found.launch.warps_per_block
    assert barriers <= 2, f"each warp waits at {barriers:.0f} barriers"


@pytest.mark.parametrize(
    "microseconds",
    [pytest.param(limit, marks=pytest.mark.gpusim_points(1)) for limit in (8.0, 6.0, 5.4)],
)
def test_it_is_fast(microseconds):
    per_32_elements()
    assert_at_most(*launch(1024, 1024), time_us=microseconds)
