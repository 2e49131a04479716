"""Words of which some bits were written: bit-fields, and atomics on bytes by the words around."""

from __future__ import annotations

import numpy as np
import pytest
from one_file import kernels

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

HEAD = """
#include <cuda/atomic>
using namespace cuda;
template <class T> using ref = atomic_ref<T, thread_scope_block>;
struct Fields { unsigned low : 7, middle : 9, high : 16; };
"""
KERNEL = """__global__ void k(const int *x, int *y) {
    int t = threadIdx.x;
    {BODY}
}
"""
CLEAN = {
    "fields": """__shared__ Fields s[32];
        s[t].low = t; s[t].high = x[t]; s[t].middle = 3;
        __syncthreads();
        y[t] = s[31 - t].low + s[31 - t].middle + s[31 - t].high;""",
    "one_field": """__shared__ Fields s[32];
        s[t].middle = x[t];
        __syncthreads();
        y[t] = s[31 - t].middle;""",
    "halves": """__shared__ short s[64];
        s[2 * t] = t; s[2 * t + 1] = x[t];
        __syncthreads();
        y[t] = reinterpret_cast<int *>(s)[31 - t];""",
    "bool_set_by_an_atomic": """__shared__ bool found;
        ref<bool> any(found);
        if (t == 0) any.store(false, memory_order_relaxed);
        __syncthreads();
        if (x[t] == 3) any.store(true, memory_order_relaxed);
        __syncthreads();
        y[t] = found;""",
    "bool_unset_beside_a_store": """__shared__ bool first, found;
        if (t == 0) ref<bool>(found).store(false, memory_order_relaxed);
        if (t == 1) first = true;
        __syncthreads();
        y[t] = found + first;""",
    "bool_set_by_a_store": """__shared__ bool first, found;
        if (t == 0) { found = false; first = true; }
        __syncthreads();
        if (x[t] == 3) ref<bool>(found).store(true, memory_order_relaxed);
        __syncthreads();
        y[t] = found + first;""",
    "counter_in_a_byte": """__shared__ unsigned char counts[5];
        if (t < 5) counts[t] = 0;
        __syncthreads();
        ref<unsigned char>(counts[4]).fetch_add(1, memory_order_relaxed);
        __syncthreads();
        y[t] = counts[4];""",
    "first_exchanged": """__shared__ int s;
        if (t == 0) atomicExch(&s, 5);
        __syncthreads();
        y[t] = s;""",
}
ERRORS = {
    "the_other_field": """__shared__ Fields s[32];
        s[t].middle = x[t];
        __syncthreads();
        y[t] = s[31 - t].low;""",
    "the_next_bool": """__shared__ bool first, found;
        if (t == 0) found = false;
        if (x[t] == 100) first = t & 1;
        __syncthreads();
        if (x[t] == 3) ref<bool>(found).store(true, memory_order_relaxed);
        __syncthreads();
        y[t] = first;""",
    "counter_from_nothing": """__shared__ unsigned char counts[4];
        ref<unsigned char>(counts[1]).fetch_add(1, memory_order_relaxed);
        __syncthreads();
        y[t] = counts[1];""",
    "lock_from_nothing": """__shared__ int lock;
        if (t == 0) { while (atomicCAS(&lock, 0, 1) != 0); y[0] = 7; atomicExch(&lock, 0); }""",
    "exchanged_from_nothing": """__shared__ int s;
        if (t == 0) y[t] = atomicExch(&s, 5);""",
}


BODIES = (*CLEAN.values(), *ERRORS.values())


def rules(body: str) -> set[str]:
    x, y = np.arange(32, dtype=np.int32) % 8, np.zeros(32, np.int32)
    found = gpusim.check(kernels(KERNEL, BODIES, HEAD)[body][1, 32], x, y)
    return {one.rule for one in found.errors}


@pytest.mark.parametrize("body", CLEAN.values(), ids=list(CLEAN))
def test_bits_that_were_written_are_known(body: str) -> None:
    assert rules(body) == set()


@pytest.mark.parametrize("body", ERRORS.values(), ids=list(ERRORS))
def test_bits_beside_them_are_not(body: str) -> None:
    assert rules(body) == {"uninitialised"}
