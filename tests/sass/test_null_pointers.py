"""Pointers to nothing: arguments that a kernel asks about before it follows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import Run

import gpusim
from gpusim.errors import KernelFault, LaunchError
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
TEXT = """
struct Extra { const float *bias; float *copy; };
__global__ void scaled(const float *x, float *y, const float *scale, Extra extra) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i] * (scale != nullptr ? *scale : 2.0f);
    if (extra.bias) v += extra.bias[i];
    if (extra.copy) extra.copy[i] = v;
    y[i] = v;
}
__global__ void follows(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x]; }
"""


def test_a_kernel_does_without_what_is_null() -> None:
    scaled = gpusim.cuda_source(TEXT)["scaled"]
    x, y, copy = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.zeros(64, np.float32)
    scaled[2, 32](x, y, None, (None, copy))
    assert (y == 2 * x).all()
    assert (copy == y).all()
    scaled[2, 32](x, y, np.full(1, 3, np.float32), {"bias": x, "copy": None})
    assert (y == 4 * x).all()


def test_what_is_null_is_no_traffic_and_no_finding() -> None:
    scaled = gpusim.cuda_source(TEXT)["scaled"]
    x, y = gpusim.array_spec(2**16, np.float32), gpusim.array_spec(2**16, np.float32)
    prediction = gpusim.predict(scaled[2**11, 32], x, y, None, (None, None))
    assert prediction.traffic.dram_bytes == 2**18
    arrays = [np.zeros(64, np.float32) for _ in range(2)]
    assert list(gpusim.check(scaled[2, 32], *arrays, None, (None, None))) == []


def test_following_it_is_a_fault_that_names_it() -> None:
    with pytest.raises(KernelFault, match=r"address 0x0 is out of bounds: x is null \(block 0"):
        gpusim.cuda_source(TEXT)["follows"][1, 32](None, np.zeros(32, np.float32))


def test_a_number_is_not_null() -> None:
    one = gpusim.cuda_source("__global__ void one(int *y, int n) { y[0] = n; }")["one"]
    with pytest.raises(LaunchError, match="'n' is a int, which takes a number, not an array or a"):
        one[1, 1](np.zeros(1, np.int32), None)
    with pytest.raises(LaunchError, match="pass a NumPy array or None"):
        one[1, 1](0, 1)


def test_the_command_line_says_null(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "scaled.cu"
    file.write_text(TEXT)
    arguments = ["float32[64]=ones", "float32[64]", "null", "extra.bias=null", "extra.copy=nullptr"]
    given = [word for one in arguments for word in ("--arg", one)]
    code, out, _ = run("check", f"{file}:scaled", "--grid", "2", "--block", "32", *given)
    assert code == 0
    assert "0 errors, 0 warnings" in out
