"""Kernels of other kinds, in nvcc's own code: counters beside Nsight's, and times as asked."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from others.kernels import Launch, launches

from gpusim.arguments import ArraySpec
from gpusim.prediction.predict import predict
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeKernel, cuda_file
from gpusim.tracing.trace import trace

pytestmark = [
    pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL),
    pytest.mark.slow,
]
HERE = Path(__file__).parent.parent / "others"
COUNTED = HERE / "h200_counters.csv"
INSTANCES = {"transpose_tile": "transpose_tile<32>", "transpose_padded": "transpose_tile<33>"}


def kernel_of(launch: Launch) -> CodeKernel:
    return cuda_file(HERE / "basics.cu")[INSTANCES.get(launch.name, launch.name)]


def filled(launch: Launch) -> tuple[object, ...]:
    """Return the arguments as basics.cu has them: zeros where no elements are given."""
    return tuple(
        np.zeros(value.shape, value.dtype) if isinstance(value, ArraySpec) else value
        for value in launch.arguments
    )


def measured_us() -> dict[tuple[str, int, int], float]:
    lines = (HERE / "h200.csv").read_text(encoding="utf-8").splitlines()
    rows = (line.split(",") for line in lines if not line.startswith("#"))
    return {(name, int(n), int(block)): float(us) for name, n, block, us in rows}


def test_times_are_no_further_off_than_with_the_lowering() -> None:
    times = measured_us()
    errors = [
        predict(kernel_of(one)[one.grid, one.threads], *filled(one)).time_us / times[one.key] - 1
        for one in launches()
        if one.n <= 2**22
    ]
    assert fmean(map(abs, errors)) <= 0.08


def three(sizes: str) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall(r"\d+", sizes))


def counted() -> dict[tuple[str, tuple[int, ...], tuple[int, ...]], dict[str, str]]:
    """Return Nsight's counts by kernel, grid and block, of which the smallest n was counted."""
    with COUNTED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return {
        (re.split(r"[<(]", row["kernel"])[0], three(row["grid"]), three(row["block"])): row
        for row in rows
    }


# What they do depends on numbers that basics.cu draws by itself, or on the last bit of a float.
NEARLY = {"gather", "bitonic_sort", "mandelbrot"}


def differs(name: str, counter: str, measured: int, simulated: int) -> bool:
    """Return whether a counter is off by more than arbitration adds to wavefronts."""
    if counter.endswith("_wavefronts"):
        return not simulated <= measured <= 1.17 * simulated
    if name in NEARLY:
        return abs(measured - simulated) > 1e-4 * measured
    return measured != simulated


def test_counters_equal_nsights() -> None:
    from gpusim.tracing.counters import COUNTERS

    by_metric = {spec.ncu: name for name, spec in COUNTERS.items() if spec.ncu}
    rows, wrong, compared = counted(), [], 0
    for one in sorted(launches(), key=lambda launch: launch.n):
        configured = kernel_of(one)[one.grid, one.threads]
        row = rows.pop((one.name, configured.launch.grid, configured.launch.block), None)
        if row is None or one.n > 2**22:
            continue
        compared += 1
        made = trace(configured, *filled(one)).counters
        for metric, counter in by_metric.items():
            if metric in row and differs(one.name, counter, int(row[metric]), made[counter]):
                wrong.append((one.key, counter, row[metric], made[counter]))
    assert wrong == []
    assert compared >= 30
