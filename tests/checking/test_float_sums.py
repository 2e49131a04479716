"""Floating-point sums by atomics that lose more than their last bits, beside wider sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source

TOTAL = """
__global__ void total(const TYPE *x, TYPE *sum, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, x[i]);
}
"""


@cuda.jit
def total_of(x, sums):
    cuda.atomic.add(sums, 0, x[cuda.grid(1)])


@cuda.jit
def total_in_shared(x, sums):
    s = cuda.shared.array(1, np.float32)
    if cuda.threadIdx.x == 0:
        s[0] = sums[0]
    cuda.syncthreads()
    cuda.atomic.add(s, 0, x[cuda.threadIdx.x])
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        sums[0] = s[0]


def by_nvcc(x: Any, sums: Any, blocks: int) -> gpusim.Findings:
    if not wheels.are_there():
        pytest.skip(wheels.INSTALL)
    text = TOTAL.replace("TYPE", {"f4": "float", "f8": "double"}[x.dtype.str[1:]])
    configured = cuda_source(text)["total"][blocks, len(x) // blocks]
    return gpusim.check(configured, x, sums, np.int32(len(x)))


def by_the_dialect(x: Any, sums: Any, blocks: int) -> gpusim.Findings:
    return gpusim.check(total_of[blocks, len(x) // blocks], x, sums)


Check = Callable[[Any, Any, int], gpusim.Findings]
both = pytest.mark.parametrize("check", [by_nvcc, by_the_dialect])


@both
def test_additions_that_change_nothing_are_counted(check: Check) -> None:
    """16,777,216 is 2^24: from there on a float32 stays as it is when 1 is added."""
    sums = np.array([2**24 - 100], np.float32)
    (found,) = check(np.ones(4096, np.float32), sums, 16)
    assert sums[0] == 2**24
    assert (found.rule, found.severity, found.index) == ("float-lost", "warning", 0)
    assert found.message.endswith(
        "3,996 of 4,096 additions change nothing; the sum is 16,777,216 in float32, where double "
        "gives 16,781,212: a difference of 3,996 (0.024 %)"
    )


@both
def test_a_double_is_held_against_80_bits(check: Check) -> None:
    sums = np.array([2.0**53 - 28])
    (found,) = check(np.ones(128), sums, 1)
    assert "100 of 128 additions change nothing; the sum is 9,007,199,254,740,992" in found.message
    assert "80 bits give 9,007,199,254,741,092: a difference of 100" in found.message


@both
def test_digits_that_are_cancelled_count_as_well(check: Check) -> None:
    """1e8 + 1 + ... + 1 - 1e8 in this order: 1 is below half of the distance of 8 there."""
    x = np.ones(64, np.float32)
    x[0], x[-1] = 1e8, -1e8
    (found,) = check(x, np.zeros(1, np.float32), 1)
    assert "the sum is 0 in float32, where double gives 62" in found.message


@both
def test_sums_with_small_roundings_keep_their_note(check: Check) -> None:
    x = np.random.default_rng(1).random(4096).astype(np.float32)
    (found,) = check(x, np.zeros(1, np.float32), 16)
    assert (found.rule, found.severity) == ("float-order", "note")
    assert "the last bits of the sum depend on their order" in found.message


@both
def test_numbers_of_zero_are_no_lost_additions(check: Check) -> None:
    x = np.zeros(256, np.float32)
    x[0] = 1
    (found,) = check(x, np.zeros(1, np.float32), 1)
    assert found.rule == "float-order"


def test_each_block_has_its_own_sum_in_shared_memory() -> None:
    sums = np.array([2**24 - 4], np.float32)
    found = gpusim.check(total_in_shared[1, 64], np.ones(64, np.float32), sums)
    (lost,) = (one for one in found if one.rule == "float-lost")
    assert "60 of 64 additions change nothing" in lost.message
    assert lost.array == "s"


def test_a_store_between_begins_another_sum() -> None:
    """40 additions of ones to 0, then 40 to 2^24: 40 of the last 40 change nothing."""

    @cuda.jit
    def kernel(sums):
        cuda.atomic.add(sums, 0, np.float32(1))
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            sums[0] = np.float32(16777216)
        cuda.syncthreads()
        cuda.atomic.add(sums, 0, np.float32(1))

    found = gpusim.check(kernel[1, 40], np.zeros(1, np.float32))
    assert [one.lines for one in found if one.rule == "float-order"] != []
    (lost,) = (one for one in found if one.rule == "float-lost")
    assert "40 of 40 additions change nothing" in lost.message
