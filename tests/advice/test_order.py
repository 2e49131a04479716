"""Gains and order of three findings, held to the times of their cures on an H200."""

from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import pytest

import gpusim
from gpusim.advice.launch import advice_on
from gpusim.prediction.records import Prediction
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_file
from validate.order import measure

TIMES = measure.KERNELS.parent / "h200.json"
QUICK = {"branches"}
APART = 0.05  # of the time: gains that are nearer have no order
NEAR = 0.15  # of the time
NEEDS_NVCC = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)


@cache
def marks() -> dict[str, dict[int, tuple[str, int]]]:
    """Kind and line of each defect by kernel and number."""
    found: dict[str, dict[int, tuple[str, int]]] = {}
    name = ""
    for number, text in enumerate(measure.KERNELS.read_text(encoding="utf-8").splitlines(), 1):
        if begins := re.search(r"__global__ void (\w+)\(", text):
            name = begins[1]
        elif marked := re.search(r"// <- (\d) ([\w-]+)$", text):
            found.setdefault(name, {})[int(marked[1])] = marked[2], number
    return found


def predicted(name: str) -> Prediction:
    """The prediction of a kernel with its three defects."""
    threads = measure.BLOCKS * measure.THREADS
    arrays = [gpusim.array_spec(measure.LOADS * threads, "float32") for _ in range(2)]
    kernel = cuda_file(str(measure.KERNELS))[f"{name}<0>"][measure.BLOCKS, measure.THREADS]
    return gpusim.predict(kernel, *arrays, np.int32(threads), np.int32(measure.REPETITIONS))


def test_each_kernel_has_three_defects_and_is_measured_with_each_cure() -> None:
    assert list(marks()) == measure.names()
    assert all(sorted(found) == [1, 2, 3] for found in marks().values())
    assert measure.program().count("    timed(") == 4 * len(marks())


def measured_gains(name: str) -> dict[int, float]:
    """The fraction of a kernel's measured time that each cure saves, by number."""
    defect, *cured = json.loads(TIMES.read_text(encoding="utf-8"))["times_us"][name]
    return {number: 1 - time / defect for number, time in enumerate(cured, 1)}


@NEEDS_NVCC
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name in measure.names()
    ],
)
def test_gains_and_their_order_are_those_of_the_measured_cures(name: str) -> None:
    found = {(one.kind, one.line): one.gain for one in advice_on(predicted(name))}
    gains = {
        cure: gain.saves if (gain := found.get(marked)) else 0.0
        for cure, marked in marks()[name].items()
    }
    measured = measured_gains(name)
    assert gains == pytest.approx(measured, abs=NEAR)
    for one in gains:
        for other in gains:
            if measured[one] > measured[other] + APART:
                assert gains[one] > gains[other], (one, other)
