"""Lanes that pass the condition of a line, where the compiler made a guarded exit of it."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.advice.decisions import passing_lanes
from gpusim.codegen import generators

BOUNDED = """extern "C" __global__ void third(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / 3.f;
}
"""


@cuda.jit
def third(x, y, n):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i] * 3


@pytest.mark.skipif(not generators.is_installed(), reason="needs the extra nvcc")
def test_lanes_that_stay_behind_a_guarded_exit_pass_its_condition() -> None:
    """20 elements: 20 lanes of one warp, none of the other; the division's own branch is none."""
    x = np.ones(64, np.float32)
    traced = gpusim.trace(gpusim.cuda_source(BOUNDED)["third"][1, 64], x, x.copy(), np.int32(20))
    assert passing_lanes(traced)[3] == 10


@pytest.mark.parametrize("code", ["lowering", "nvcc"])
def test_both_generators_have_the_same_lanes_that_pass(code: str) -> None:
    if code == "nvcc" and not generators.is_installed():
        pytest.skip("needs the extra nvcc")
    x = np.ones(64, np.float32)
    traced = gpusim.trace(third[1, 64], x, x.copy(), np.int32(20), code=code)
    assert list(passing_lanes(traced).values()) == [10]
