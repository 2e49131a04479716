"""Launches that each show one law of the machine, beside times measured on an H200."""

from __future__ import annotations

from functools import cache

import pytest

from gpusim.prediction.predict import predict
from gpusim.sass import wheels
from validate.others import compare, launches
from validate.others.plans import HERE, LAWS
from validate.table import rows_of

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)


@cache
def measured() -> dict[tuple[str, int], float]:
    """Return the measured times, with a cold L2, by kernel and size."""
    rows = rows_of(HERE / "laws.csv")
    return {(row["kernel"], int(row["n"])): float(row["cold_us"]) for row in rows}


def error(name: str, n: int) -> float:
    """Return how far a prediction is off, relative to the measured time."""
    launch = LAWS[name].at(n)
    made = predict(compare.configured(launch, "nvcc"), *launch.specified(), device="h200")
    return made.time_us / measured()[name, n] - 1


def test_each_law_was_measured_at_all_sizes() -> None:
    assert {launch.key for launch in launches("law")} == measured().keys()


@pytest.mark.parametrize(
    ("number", "threads"), [(1, 64), (1, 256), (1, 1024), (8, 256), (32, 64), (32, 1024)]
)
def test_swaps_on_a_word_that_others_change_fail_as_often_as_on_a_gpu(
    number: int, threads: int
) -> None:
    """Without it, by 42 to 87 % too short for one word."""
    assert abs(error(f"shared_adds_{number}", threads)) < 0.07


@pytest.mark.parametrize("name", ["polls_16", pytest.param("polls_1", marks=pytest.mark.slow)])
def test_polls_of_neighbours_go_on_side_by_side_over_a_wave(name: str) -> None:
    """With units as of 256 adjacent blocks, 4 to 5 times too long."""
    assert abs(error(name, 8448)) < 0.15


@pytest.mark.parametrize(
    "name",
    [
        "global_adds_2008",
        pytest.param("global_adds_1001", marks=pytest.mark.slow),
        pytest.param("global_adds_64001", marks=pytest.mark.slow),
    ],
)
def test_floats_take_long_only_behind_others_of_their_sector(name: str) -> None:
    """Of one sector as before; with all as long as those, 8 sectors were 111 % too long."""
    assert abs(error(name, 528)) < 0.08


def test_fenced_sums_of_blocks_spread_over_sectors() -> None:
    """With all as long as those of one sector, 118 % too long."""
    assert abs(error("fenced_adds", 2**22)) < 0.08


@pytest.mark.parametrize(
    "number",
    [100, pytest.param(1, marks=pytest.mark.slow), pytest.param(65536, marks=pytest.mark.slow)],
)
def test_sums_in_two_arrays_take_as_long_as_in_the_slower_one(number: int) -> None:
    """One after the other, 64 % too long for two words beside 100."""
    assert abs(error(f"two_sums_{number}", 132)) < 0.03


@pytest.mark.parametrize("parts", [1, 4])
def test_lines_changed_in_parts_are_as_many_as_the_grid_has(parts: int) -> None:
    """Among those of the sampled blocks alone, 195 % too long in four parts."""
    assert abs(error(f"changed_parts_{parts}", 16)) < 0.05
