"""Barriers of a block in compiled code: with results, and by number."""

from __future__ import annotations

import numpy as np
import pytest
from evaluators import agree, evaluated

from gpusim import cuda
from gpusim.errors import BarrierError
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source

I32 = np.int32
nvcc = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
generators = pytest.mark.parametrize("code", ["lowering", pytest.param("nvcc", marks=nvcc)])


@generators
def test_results_of_barriers_count_the_threads_of_each_block(code: str) -> None:
    """Of 96 threads 32 are multiples of 3; in the first block all are below 96."""

    @cuda.jit
    def kernel(out, some):
        t = cuda.threadIdx.x
        i = cuda.grid(1)
        count = cuda.syncthreads_count(t % 3 == 0)
        every = cuda.syncthreads_and(i < 96)
        out[i] = count * 100 + every * 10 + cuda.syncthreads_or(some[i] > 0)

    some = np.zeros(192, I32)
    some[191] = 1
    given, _, _ = evaluated(kernel, 2, 96, code, (np.zeros(192, I32), some))
    assert given[0].tolist() == [3210] * 96 + [3201] * 96
    agree(kernel, 2, 96, code, np.zeros(192, I32), some)


@generators
def test_threads_that_have_left_are_not_counted(code: str) -> None:
    """40 threads are there: all of them, of which 20 are even."""

    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        if t >= 40:
            return
        count = cuda.syncthreads_count(t % 2 == 0)
        out[t] = count * 10 + cuda.syncthreads_and(t < 40)

    given, _, _ = evaluated(kernel, 1, 64, code, (np.zeros(64, I32),))
    assert given[0].tolist() == [201] * 40 + [0] * 24
    agree(kernel, 1, 64, code, np.zeros(64, I32))


@generators
def test_results_tell_blocks_apart_whose_warps_take_turns(code: str) -> None:
    """Threads count in an order of their own; each block of 64 counts its own predicates."""

    @cuda.jit
    def kernel(out, seen, mine):
        i = cuda.grid(1)
        old = cuda.atomic.add(seen, 0, 0)
        while True:
            now = cuda.atomic.cas(seen, 0, old, old + 1)
            if now == old:
                break
            old = now
        out[i] = cuda.syncthreads_count(mine[i] > 0)

    mine = np.arange(128, dtype=I32) // 64
    arrays = np.zeros(128, I32), np.zeros(1, I32), mine
    given, _, went = evaluated(kernel, 2, 64, code, arrays)
    assert went
    assert given[0].tolist() == [0] * 64 + [64] * 64
    agree(kernel, 2, 64, code, *arrays)


NAMED = """
__device__ void wait(int number, int threads) {
    asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}
__device__ void arrive(int number, int threads) {
    asm volatile("bar.arrive %0, %1;" :: "r"(number), "r"(threads) : "memory");
}
__global__ void halves(int *x) {
    __shared__ int s[128];
    int t = threadIdx.x, half = t / 64;
    for (int k = 0; k < 3; k++) {
        s[t] = x[t] + k;
        wait(1 + half, 64);
        x[t] = s[64 * half + 63 - t % 64];
        wait(1 + half, 64);
    }
}
__global__ void buffers(const int *x, int *y, int n) {
    __shared__ int s[2][32];
    int t = threadIdx.x % 32, sum = 0;
    for (int k = 0; k < n; k++) {
        int b = k % 2;
        if (threadIdx.x < 32) {
            if (k > 1) wait(3 + b, 64);
            s[b][t] = x[32 * k + t];
            arrive(1 + b, 64);
        } else {
            wait(1 + b, 64);
            sum += s[b][t];
            if (k + 2 < n) arrive(3 + b, 64);
        }
    }
    if (threadIdx.x >= 32) y[t] = sum;
}
__global__ void whole(int *x) {
    __shared__ int s[96];
    int t = threadIdx.x;
    if (t >= 64 && x[0] == 0) return;
    s[t] = x[t];
    asm volatile("bar.sync 5;" ::: "memory");
    x[t] = s[(t + 32) % 64];
}
__global__ void too_few(int *x) {
    if (threadIdx.x < 32) wait(1, 64);
    x[threadIdx.x] = 1;
}
"""


@nvcc
def test_warps_of_each_half_wait_for_one_another() -> None:
    """Each pass turns a half round and adds its number: 0 + 1 + 2 in all, turned three times."""
    x = np.arange(128, dtype=I32)
    given, _, went = evaluated(cuda_source(NAMED)["halves"], 1, 128, "nvcc", (x,))
    assert went
    assert given[0].tolist() == [*range(66, 2, -1), *range(130, 66, -1)]
    agree(cuda_source(NAMED)["halves"], 1, 128, "nvcc", x)


@nvcc
def test_a_producer_arrives_and_a_consumer_waits() -> None:
    """A lane's ten numbers are 32 apart."""
    x, y = np.arange(320, dtype=I32), np.zeros(32, I32)
    given, _, went = evaluated(cuda_source(NAMED)["buffers"], 1, 64, "nvcc", (x, y, 10))
    assert went
    assert given[1].tolist() == [10 * lane + 32 * 45 for lane in range(32)]
    agree(cuda_source(NAMED)["buffers"], 2, 64, "nvcc", x, y, 10)


@nvcc
@pytest.mark.parametrize("first", [0, 1])
def test_a_barrier_without_a_count_waits_for_the_warps_that_have_not_left(first: int) -> None:
    x = np.arange(96, dtype=I32) + first
    agree(cuda_source(NAMED)["whole"], 1, 96, "nvcc", x)


@nvcc
def test_a_numbered_barrier_without_enough_threads_says_who_waits() -> None:
    with pytest.raises(BarrierError, match="at the named barrier on line"):
        evaluated(cuda_source(NAMED)["too_few"], 1, 64, "nvcc", (np.zeros(64, I32),))
