"""Floating-point sums by atomics that lose more than their last bits, beside wider sums."""

from __future__ import annotations

import functools
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


SWAPPED = """
#include <cuda_fp16.h>
__device__ void add_to(double *to, double v)
{
    unsigned long long *place = (unsigned long long *)to, old = *place, before;
    do {
        before = old;
        old = atomicCAS(place, before, __double_as_longlong(v + __longlong_as_double(before)));
    } while (before != old);
}
__device__ void greatest(float *to, float v)
{
    int *place = (int *)to, old = *place, before;
    do {
        before = old;
        old = atomicCAS(place, before, __float_as_int(fmaxf(v, __int_as_float(before))));
    } while (before != old);
}
"""
IN_SHARED = """
__global__ void NAME(const TYPE *x, TYPE *sum)
{
    __shared__ TYPE s;
    if (threadIdx.x == 0) s = sum[0];
    __syncthreads();
    BODY;
    __syncthreads();
    if (threadIdx.x == 0) sum[0] = s;
}
"""
HALVES = "__shared__ __half2 h; h = {}; __syncthreads(); atomicAdd(&h, {}); s = __low2half(h)"
BODIES = {
    "float_sum": ("float", "atomicAdd(&s, x[threadIdx.x])"),
    "float_difference": ("float", "atomicAdd(&s, -x[threadIdx.x])"),
    "double_sum": ("double", "atomicAdd(&s, x[threadIdx.x])"),
    "swapped_sum": ("double", "add_to(&s, x[threadIdx.x])"),
    "swapped_product": ("double", "add_to(&s, x[threadIdx.x] * 3)"),
    "halves": ("__half", HALVES.format("__half2half2(sum[0])", "__half2half2(x[threadIdx.x])")),
    "greatest": ("float", "greatest(&s, x[threadIdx.x])"),
    "unrelated":
        ("float", "atomicCAS((int *)&s, __float_as_int(s), __float_as_int(x[threadIdx.x]))"),
}  # fmt: skip
KINDS = {"float": np.float32, "double": np.float64, "__half": np.float16}


@functools.cache
def swapping() -> Any:
    """Return the file with a kernel of each body."""
    kernels = (
        IN_SHARED.replace("NAME", f"of_{name}").replace("TYPE", kind).replace("BODY", body)
        for name, (kind, body) in BODIES.items()
    )
    return cuda_source(SWAPPED + "".join(kernels))


def swapped(name: str, start: float, *, device: str = "h200") -> gpusim.Findings:
    if not wheels.are_there():
        pytest.skip(wheels.INSTALL)
    kind = KINDS[BODIES[name][0]]
    x, sums = np.ones(64, kind), np.array([start], kind)
    return gpusim.check(swapping()[f"of_{name}"][1, 64], x, sums, device=device)


@pytest.mark.parametrize("device", ["h200", "gtx1650"])
@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("float_sum", 2.0**24 - 4), ("float_difference", 4 - 2.0**24),
        ("double_sum", 2.0**53 - 4), ("swapped_sum", 2.0**53 - 4),
    ],
)  # fmt: skip
def test_sums_by_compare_and_swap_are_followed(name: str, start: float, device: str) -> None:
    """Shared memory has no atomic sums of floating-point numbers: loops swap them in."""
    (found,) = swapped(name, start, device=device)
    assert found.rule == "float-lost"
    assert "add to s[0]" in found.message
    assert "60 of 64 additions change nothing" in found.message


def test_a_product_that_is_added_by_compare_and_swap_counts_whole() -> None:
    """3 is added 64 times to 2^53, where the distance of doubles is 2: 4 are added each time."""
    (found,) = swapped("swapped_product", 2.0**53)
    assert found.rule == "float-order"
    (lost,) = swapped("swapped_product", 2.0**56)
    assert "64 of 64 additions change nothing" in lost.message
    assert lost.message.endswith("a difference of 192 (2.7e-13 %)")


def test_sums_of_halves_depend_on_their_order() -> None:
    assert "float-order" in [one.rule for one in swapped("halves", 0)]


def test_other_compare_and_swaps_are_no_sums() -> None:
    assert list(swapped("greatest", 0)) == []
    assert "float-order" not in [one.rule for one in swapped("unrelated", 0)]
