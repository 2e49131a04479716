"""Accesses of machine code that say by their address alone what they touch."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

STORES = """
__global__ void either(int *x, int *out, int n) {
    __shared__ int s[64];
    int *p = n > 5 ? s : out;
    p[threadIdx.x] = x[threadIdx.x];
}
"""


def test_stores_whose_address_says_which_memory_they_mean_are_judged() -> None:
    either = gpusim.cuda_source(STORES)["either"]
    arrays = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    assert list(gpusim.check(either[1, 64], *arrays, np.int32(5))) == []
    raced = gpusim.check(either[2, 64], *arrays, np.int32(5))
    assert [(f.rule, f.array) for f in raced] == [("same-value", "out")]


SUM_OF_ALL = """
__global__ void sum_of_all(int *sum, int *arrived, int *out) {
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(sum, blockIdx.x);
        __threadfence();
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = *(volatile int *)sum;
}
"""


def test_all_threads_may_load_what_a_thread_of_each_block_has_added_to() -> None:
    """Each of 16,384 loads is held against each of 64 atomics, which a flag orders before it."""
    arrays = [np.zeros(size, np.int32) for size in (1, 1, 64 * 256)]
    found = gpusim.check(gpusim.cuda_source(SUM_OF_ALL)["sum_of_all"][64, 256], *arrays)
    assert [f for f in found if f.rule.endswith("race")] == []
    assert set(arrays[2]) == {64 * 63 // 2}


BEYOND = "__global__ void beyond(int *x, int *y) { y[threadIdx.x] = x[threadIdx.x + 4096]; }"


def test_an_index_outside_is_told_of_the_array_that_was_meant() -> None:
    """Behind `small` lies `next`, which is nearer to the address than `small` itself."""
    beyond = gpusim.cuda_source(BEYOND)["beyond"]
    small, target = np.zeros(4, np.int32), np.zeros(32, np.int32)
    (found,) = gpusim.check(beyond[1, 32], small, target)
    assert (found.rule, found.array, found.count) == ("bounds", "x", 32)
    assert "x[4096] is out of bounds: x has 4 elements" in found.message
