"""Atomics that the compiler makes once for all lanes of a warp release and acquire for each."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

HEAD = """
#include <cuda/atomic>
#include <cuda/latch>
#include <new>
using namespace cuda;
template <class T> using block_ref = atomic_ref<T, thread_scope_block>;
template <class T> using device_ref = atomic_ref<T, thread_scope_device>;
"""
KERNEL = """__global__ void NAME(const int *x, int *y, unsigned *c) {
    __shared__ int s[128];
    int t = threadIdx.x;
    BODY
}
"""
SHARED = """__shared__ {1} n;
    block_ref<{1}> f(n);
    if (t == 0) f.store(128, memory_order_relaxed);
    __syncthreads();
    s[t] = x[t];
    f.fetch_sub(1, memory_order_{0});
    while (f.load(memory_order_acquire) != 0) {{ }}
    y[t] = s[127 - t];"""
GLOBAL = """device_ref<unsigned> f(*c);
    s[t] = x[t];
    f.fetch_add(1, memory_order_{0});
    while (f.load(memory_order_{1}) != 128) {{ }}
    y[t] = s[127 - t];"""
LAST = """device_ref<unsigned> f(*c);
    s[t] = x[t];
    if (f.fetch_add(1, memory_order_{0}) == 127) y[0] = s[3] + s[100];"""
FENCES = """s[t] = x[t];
    {0};
    atomicAdd(c, 1);
    while (atomicAdd(c, 0) != 128) {{ }}
    {1};
    y[t] = s[127 - t];"""
LATCH = """using latch_of_block = latch<thread_scope_block>;
    __shared__ __align__(16) char room[sizeof(latch_of_block)];
    auto *all = reinterpret_cast<latch_of_block *>(room);
    if (t == 0) new (all) latch_of_block(128);
    __syncthreads();
    s[t] = x[t];
    all->arrive_and_wait();
    y[t] = s[127 - t];"""
RIGHT = {
    "a counter in shared memory": SHARED.format("release", "unsigned"),
    "a counter of 64 bits in shared memory": SHARED.format("release", "unsigned long long"),
    "a counter in global memory": GLOBAL.format("release", "acquire"),
    "the last one by the counter's old value": LAST.format("acq_rel"),
    "fences of each lane": FENCES.format("__threadfence()", "__threadfence()"),
    "a latch": LATCH,
}
WRONG = {
    "a relaxed counter in shared memory": SHARED.format("relaxed", "unsigned"),
    "a relaxed counter in global memory": GLOBAL.format("relaxed", "acquire"),
    "a relaxed load of the counter": GLOBAL.format("release", "relaxed"),
    "the last one by a relaxed counter": LAST.format("relaxed"),
    "no fence before the counter": FENCES.format("", "__threadfence()"),
    "no fence behind the counter": FENCES.format("__threadfence()", ""),
}


FORMS = [*RIGHT, *WRONG]


@cache
def kernels() -> Any:
    """All forms in one file: to read its headers takes the compiler 2.5 s."""
    bodies = [*RIGHT.values(), *WRONG.values()]
    texts = [
        KERNEL.replace("NAME", f"k{number}").replace("BODY", body)
        for number, body in enumerate(bodies)
    ]
    return gpusim.cuda_source(HEAD + "".join(texts))


def rules(form: str) -> set[str]:
    kernel = kernels()[f"k{FORMS.index(form)}"]
    arrays = np.arange(128, dtype=np.int32), np.zeros(128, np.int32), np.zeros(1, np.uint32)
    return {one.rule for one in gpusim.check(kernel[1, 128], *arrays) if one.severity == "error"}


@pytest.mark.parametrize("form", RIGHT)
def test_each_lane_releases_by_the_atomic_of_its_warp(form: str) -> None:
    assert rules(form) == set()


@pytest.mark.parametrize("form", WRONG)
def test_an_atomic_of_the_warp_without_an_order_orders_no_lane(form: str) -> None:
    assert rules(form) == {"shared-race"}
