"""Published times of single launches: right sums, and predictions near."""

from __future__ import annotations

import re

import numpy as np
import pytest

from validate.published import KERNELS, Published, published


@pytest.mark.parametrize("name", list(KERNELS))
def test_an_addition_of_matrices_is_right_in_either_order_of_lanes(name: str) -> None:
    a, total = np.arange(48 * 16, dtype=np.float32), np.zeros(48 * 16, np.float32)
    grid = (3, 1) if name == "add_along_rows" else (1, 3)
    KERNELS[name][grid, (16, 16)](a, a + 1, total, np.int32(48), np.int32(16))
    assert (total == 2 * a + 1).all()


def of(kernel: str) -> dict[str, Published]:
    return {one.gpu.id: one for one in published() if one.kernel == kernel}


def test_every_published_time_says_where_it_was_published() -> None:
    gpus = ["gtx1650", "rtx2060", "rtx3060", "rtx3060ti", "rtx3070ti", "rtx3080"]
    assert [list(of(kernel)) for kernel in KERNELS] == [gpus, gpus]
    assert all(re.search(r"\.(csv:\d+|ipynb)$", one.source) for one in published())


@pytest.mark.parametrize("device", ["rtx3060", "rtx3060ti", "rtx3070ti", "rtx3080"])
def test_an_addition_along_rows_is_predicted_within_5_percent(device: str) -> None:
    one = of("add_along_rows")[device]
    assert one.predicted_us() == pytest.approx(one.measured_us, rel=0.05)


def test_reductions_on_a_t4_are_predicted_within_23_percent_and_12_on_the_mean() -> None:
    """At the base clock, which the T4 had then."""
    some = [one for one in published() if one.gpu.id == "t4"]
    assert [one.gpu.gpu.sm_clock_mhz for one in some] == [585] * 7
    errors = [abs(one.predicted_us() / one.measured_us - 1) for one in some]
    assert max(errors) < 0.23
    assert sum(errors) / len(errors) < 0.12
