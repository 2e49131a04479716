"""Kernels of other kinds than the catalogue has, predicted beside measured on an H200.

No number is fitted to them. What they missed at first showed which mechanisms to measure.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, quantiles

import pytest
from others.kernels import Launch, launches

from gpusim import predict

HERE = Path(__file__).parents[1] / "others"
QUICK = ("copy", "saxpy", "add4", "stencil", "convolution", "row_sums", "column_sums", "gather")


def measured() -> dict[tuple[str, int, int], float]:
    lines = (HERE / "h200.csv").read_text(encoding="utf-8").splitlines()
    rows = (line.split(",") for line in lines if not line.startswith("#"))
    return {(name, int(n), int(block)): float(us) for name, n, block, us in rows}


def errors(some: list[Launch]) -> list[float]:
    times = measured()
    made = [
        predict(one.kernel[one.grid, one.threads], *one.arguments, device="h200").time_us
        for one in some
    ]
    return [us / times[one.key] - 1 for us, one in zip(made, some, strict=True)]


def test_every_launch_that_was_measured_can_be_predicted() -> None:
    assert sorted(one.key for one in launches()) == sorted(measured())


def test_kernels_of_other_kinds_are_predicted_as_well_as_the_bars_ask() -> None:
    found = errors([one for one in launches() if one.name in QUICK])
    assert len(found) >= 20
    assert fmean(map(abs, found)) <= 0.10
    assert quantiles(map(abs, found), n=10)[-1] <= 0.20


@pytest.mark.slow
def test_all_kernels_of_other_kinds_are_predicted_as_well_as_the_bars_ask() -> None:
    found = errors(list(launches()))
    assert fmean(map(abs, found)) <= 0.10
    assert quantiles(map(abs, found), n=10)[-1] <= 0.20
