"""Kernels of other kinds than the catalogue has: their table, and times beside an H200's.

No number is fitted to them. `python -m validate.others.compare` predicts all of them.
"""

from __future__ import annotations

from statistics import fmean, quantiles

import pytest

from gpusim import predict
from gpusim.sass import wheels
from validate.others import errors, launches
from validate.others.compare import configured
from validate.others.plans import KERNELS, LAST, SEEN, differing

QUICK = ("copy", "saxpy", "add4", "stencil", "convolution", "row_sums", "column_sums", "gather")


def test_there_are_199_kernels_of_three_sizes_and_a_part_of_them_is_measured_last() -> None:
    assert len(KERNELS) >= 271
    assert all(len(set(kernel.sizes)) == 3 for kernel in KERNELS.values())
    last = [kernel for kernel in KERNELS.values() if kernel.part == LAST]
    assert len(last) >= 20


def test_all_launches_are_measured_and_counted() -> None:
    every = {launch.key for part in (SEEN, LAST) for launch in launches(part)}
    assert every == set(errors.by_launch(errors.MEASURED))
    assert every == set(errors.by_launch(errors.COUNTED))


def test_whatever_was_measured_is_predicted_or_refused_with_a_reason() -> None:
    rows = list(errors.rows_of(errors.PREDICTED))
    held = {(row["kernel"], int(row["n"]), row["code"]) for row in rows}
    measured = errors.by_launch(errors.MEASURED)
    assert held >= {(*key, code) for key in measured for code in errors.CODES}
    assert all(row["refused"] or float(row["cold_us"]) > 0 for row in rows)


@pytest.mark.parametrize(
    "name", ["sweeps", "layernorm", "hash_lookup", "keep_by_warps", "lookback_scan", "tree_scan"]
)
def test_a_kernel_of_the_dialect_gives_what_numpy_says(name: str) -> None:
    assert wrong_in_python(name) == []


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted({kernel.file for kernel in KERNELS.values()}))
def test_all_kernels_of_the_dialect_give_what_numpy_says(file: str) -> None:
    kernels = [k for k in KERNELS.values() if k.file == file and k.in_python is not None]
    wrong = {kernel.name: wrong_in_python(kernel.name) for kernel in kernels}
    assert {name: found for name, found in wrong.items() if found} == {}


def wrong_in_python(name: str) -> list[str]:
    kernel = KERNELS[name]
    plan = kernel.at(kernel.small).plan
    before, after = kernel.at(kernel.small).filled(), kernel.at(kernel.small).copied()
    kernel.in_python[plan.grid, plan.block](*after)
    return differing(plan, before, after)


def test_kernels_of_other_kinds_are_predicted_as_well_as_the_bars_ask() -> None:
    measured = errors.by_launch(errors.MEASURED)
    found = []
    for launch in launches():
        if launch.kernel.name in QUICK:
            kernel = launch.kernel.in_python[launch.plan.grid, launch.plan.block]
            us = predict(kernel, *launch.specified(), device="h200", code="lowering").time_us
            found.append(abs(us / float(measured[launch.key]["cold_us"]) - 1))
    assert len(found) == 3 * len(QUICK)
    assert fmean(found) <= 0.10
    assert quantiles(found, n=10)[-1] <= 0.20


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_a_loop_that_most_lanes_never_enter_is_followed() -> None:
    """Four lanes of one warp go through `i < 32 / 8`: what it sets has no value in the others."""
    launch = KERNELS["sector_by_words"].at(32)
    found = predict(configured(launch, "nvcc"), *launch.specified(), device="h200")
    assert 2 < found.time_us < 10


def test_a_kernels_row_has_mean_errors_and_the_launch_that_is_farthest_off() -> None:
    """+10 and -30 % with a cold L2, -2 % with a warm one; the dialect lacks the words for it."""
    predicted = (("cold", 110.0), ("cold", 70.0), ("warm", 98.0))
    made = [errors.Compared("select_rows", 1, "nvcc", l2, 100.0, us, 0.0) for l2, us in predicted]
    *_, row = errors.kernel_by_kernel(made)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["select_rows", SEEN, "20.0%", "2.0%", "-30.0%", "", "", ""]


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_the_table_of_predictions_has_what_is_predicted_now(name: str) -> None:
    held = {
        (row["kernel"], int(row["n"])): row
        for row in errors.rows_of(errors.PREDICTED)
        if row["code"] == "lowering"
    }
    for launch in launches():
        if launch.kernel.name == name:
            kernel = launch.kernel.in_python[launch.plan.grid, launch.plan.block]
            us = predict(kernel, *launch.specified(), device="h200", code="lowering").time_us
            assert float(held[launch.key]["cold_us"]) == pytest.approx(us, rel=1e-3)
