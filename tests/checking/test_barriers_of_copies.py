"""Copies that arrive at a barrier in shared memory: they are read behind its wait, not before."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import gpusim
from gpusim.checking.findings import Finding
from gpusim.sass import wheels
from gpusim.sass.kernels import CudaSource

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

INCLUDES = "#include <cuda/barrier>\n#include <cooperative_groups.h>\n"
HEAD = """__global__ void NAME(const float *x, float *y)
{
    __shared__ float s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto block = cooperative_groups::this_thread_block();
    unsigned t = threadIdx.x;
    if (t == 0) init(&bar, blockDim.x);
    __syncthreads();
"""
OWN = "cuda::memcpy_async(s + t, x + blockIdx.x * 64 + t, sizeof(float), bar);"
OF_BLOCK = "cuda::memcpy_async(block, s, x + blockIdx.x * 64, sizeof(float) * 64, bar);"
WAIT = "bar.arrive_and_wait();"
IN_TWO = "bar.wait(bar.arrive());"
ONE_WAITS = "auto token = bar.arrive(); if (t == 0) bar.wait(std::move(token)); __syncthreads();"
SAME, OTHER = "y[blockIdx.x * 64 + t] = s[t];", "y[blockIdx.x * 64 + t] = s[63 - t];"
STORED = "s[t] = x[blockIdx.x * 64 + t];"
RIGHT = [
    *([copy, wait, OTHER] for copy in (OWN, OF_BLOCK) for wait in (WAIT, IN_TWO, ONE_WAITS)),
    [OWN, WAIT, OTHER, "__syncthreads();", OF_BLOCK, WAIT, "y[blockIdx.x * 64 + t] += s[63 - t];"],
    [STORED, WAIT, OTHER],
]
WRONG = [
    [OWN, SAME, WAIT],
    [OWN, OTHER, WAIT],
    [OF_BLOCK, "auto token = bar.arrive();", OTHER, "bar.wait(std::move(token));"],
    [OWN, "__syncthreads();", OTHER, WAIT],
    [OWN, WAIT, OTHER, "__syncthreads();", OF_BLOCK, "__syncthreads();", SAME, WAIT],
]


def text_of(name: str, body: list[str]) -> str:
    return HEAD.replace("NAME", name) + "\n".join([*body, "}\n"])


@cache
def source() -> CudaSource:
    """All kernels in one file, compiled once for each device."""
    kernels = [text_of(f"right{at}", body) for at, body in enumerate(RIGHT)]
    kernels += [text_of(f"wrong{at}", body) for at, body in enumerate(WRONG)]
    return gpusim.cuda_source(INCLUDES + "".join(kernels))


def checked(name: str, device: str) -> list[Finding]:
    x, y = np.arange(128, dtype=np.float32), np.zeros(128, dtype=np.float32)
    return list(gpusim.check(source()[name][2, 64], x, y, device=device))


@pytest.mark.parametrize("device", ["a100-40gb", "h200"])
def test_a_copy_may_be_read_once_its_barrier_is_waited_for(device: str) -> None:
    found = {at: checked(f"right{at}", device) for at in range(len(RIGHT))}
    assert {at: one for at, one in found.items() if one} == {}


@pytest.mark.parametrize("device", ["a100-40gb", "h200"])
def test_a_copy_is_pending_until_its_barrier_is_waited_for(device: str) -> None:
    for at in range(len(WRONG)):
        (found,) = checked(f"wrong{at}", device)
        assert found.rule == "copy-race"
        assert "arrive_and_wait()" in found.fix
