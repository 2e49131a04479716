"""The most valuable of three findings comes first: held to the cures, one left out at a time."""

from __future__ import annotations

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

APART = 0.05  # of the time: gains that are nearer have no order
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


def predicted(name: str, cure: int) -> Prediction:
    """The prediction of a kernel with a cure."""
    threads = measure.BLOCKS * measure.THREADS
    arrays = [gpusim.array_spec(measure.LOADS * threads, "float32") for _ in range(2)]
    kernel = cuda_file(str(measure.KERNELS))[f"{name}<{cure}>"][measure.BLOCKS, measure.THREADS]
    return gpusim.predict(kernel, *arrays, np.int32(threads), np.int32(measure.REPETITIONS))


def test_each_kernel_has_three_defects_and_is_measured_with_each_cure() -> None:
    assert list(marks()) == measure.names()
    assert all(sorted(found) == [1, 2, 3] for found in marks().values())
    assert measure.program().count("    timed(") == 4 * len(marks())


@NEEDS_NVCC
@pytest.mark.slow
@pytest.mark.parametrize("name", measure.names())
def test_gains_have_the_order_of_the_cures(name: str) -> None:
    made = predicted(name, 0)
    found = {(one.kind, one.line): one.gain for one in advice_on(made)}
    gains = {
        cure: gain.saves if (gain := found.get(marked)) else 0.0
        for cure, marked in marks()[name].items()
    }
    cured = {cure: 1 - predicted(name, cure).time_us / made.time_us for cure in gains}
    for one in gains:
        for other in gains:
            if cured[one] > cured[other] + APART:
                assert gains[one] > gains[other], (one, other)
