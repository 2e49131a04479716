"""Atomic operations on packed numbers, on 128 bits and by generic address, in nvcc's own code."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from evaluators import agree

from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
CODE = """
#include <cuda_fp16.h>
struct __align__(16) Wide { unsigned long long a, b; };
template <class T> __device__ T *either(T *shared, T *global) {
    return threadIdx.x & 1 ? global + threadIdx.x / 4 : shared + threadIdx.x / 4;
}
extern "C" __global__ void longs(unsigned long long *o) {
    __shared__ unsigned long long s[8];
    if (threadIdx.x < 8) s[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(either(s, o), 1ull << threadIdx.x);
    __syncthreads();
    if (threadIdx.x < 8) o[threadIdx.x] += s[threadIdx.x];
}
extern "C" __global__ void floats(float *o) {
    __shared__ float s[8];
    if (threadIdx.x < 8) s[threadIdx.x] = 0;
    __syncthreads();
    float *p = either(s, o);
    if (threadIdx.x != 5) atomicAdd(p, (float)threadIdx.x);
    __syncthreads();
    if (threadIdx.x < 8) o[threadIdx.x] += s[threadIdx.x];
}
extern "C" __global__ void halves(__half2 *o, __half2 *old) {
    old[threadIdx.x] = atomicAdd(o, __floats2half2_rn(1, threadIdx.x));
}
extern "C" __global__ void vectors(float4 *o) {
    atomicAdd(o, make_float4(1, 2, threadIdx.x, 0.5f));
}
extern "C" __global__ void wide(Wide *o) {
    __shared__ Wide s;
    if (!threadIdx.x) s = o[0];
    __syncthreads();
    Wide seen = s, next, found;
    do {
        next.a = seen.a + 1, next.b = seen.b + threadIdx.x, found = seen;
        seen = atomicCAS(&s, seen, next);
    } while (seen.a != found.a || seen.b != found.b);
    __syncthreads();
    if (!threadIdx.x) o[1] = atomicExch(o, s);
}
extern "C" __global__ void alike(int *o, const int *a) {
    int g = threadIdx.x;
    asm volatile("prefetch.global.L2 [%0];" :: "l"(a + g));
    o[g] = __uni_sync(0xffffffff, a[g] & 1) + 2 * __uni_sync(0xffffffff, a[g] & 2);
}
"""


@functools.cache
def code() -> CodeFile:
    return cuda_source(CODE)


def launched(name: str, *arrays: Any, cc: str = "9.0") -> None:
    configured = code()[name][1, 32]
    run(configured.kernel.prepare(configured.launch, arrays, ComputeCapability.parse(cc)))


def test_longs_are_added_in_the_memory_that_the_address_means() -> None:
    made = np.zeros(8, np.uint64)
    launched("longs", made)
    assert made.tolist() == [15 << 4 * k for k in range(8)]


def test_floats_are_added_in_the_memory_that_the_address_means() -> None:
    made = np.zeros(8, np.float32)
    launched("floats", made)
    want = [sum(4 * k + lane for lane in range(4)) for k in range(8)]
    assert made.tolist() == [want[0], want[1] - 5, *want[2:]]


def test_halves_are_added_in_pairs() -> None:
    made, old = np.zeros(2, np.float16), np.zeros((32, 2), np.float16)
    launched("halves", made.view(np.uint32), old.view(np.uint32).reshape(-1))
    assert made.tolist() == [32, sum(range(32))]
    assert sorted(old[:, 0].tolist()) == list(range(32))


def test_four_floats_are_added_at_once() -> None:
    made = np.zeros(4, np.float32)
    launched("vectors", made.view([("x", "f4"), ("y", "f4"), ("z", "f4"), ("w", "f4")]))
    assert made.tolist() == [32, 64, sum(range(32)), 16]


def test_128_bits_are_swapped_at_once() -> None:
    made = np.array([5, 7, 0, 0], np.uint64)
    launched("wide", made.view([("a", "u8"), ("b", "u8")]))
    assert made.tolist() == [5 + 32, 7 + sum(range(32)), 5, 7]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("vectors", [("x", "f4"), ("y", "f4"), ("z", "f4"), ("w", "f4")]),
        ("wide", [("a", "u8"), ("b", "u8")]),
    ],
)
def test_compiled_code_agrees_on_atomics_of_16_bytes(name: str, dtype: Any) -> None:
    """In sums too, some of which are subnormal and flushed to zero."""
    first = np.array([1, 2, 3, 2**31 + 5, 5, 7, 0, 9], np.uint32)
    agree(code()[name], 1, 32, "nvcc", first.view(dtype))


def test_a_warp_says_whether_its_lanes_say_the_same() -> None:
    made, given = np.zeros(32, np.int32), np.full(32, 2, np.int32)
    launched("alike", made, given)
    assert set(made.tolist()) == {3}
    given[7] = 1
    launched("alike", made, given)
    assert set(made.tolist()) == {0}
