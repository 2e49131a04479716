"""Barriers that are words of shared memory: lanes with one each, and copies that arrive at them."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.machine.barrier_words import UPDATES
from gpusim.sass import wheels

nvcc = pytest.mark.skipif(
    not wheels.are_there() or not any((f / "cuda/barrier").exists() for f in wheels.headers()),
    reason=wheels.INSTALL,
)
CODE = """
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
using bar = cuda::barrier<cuda::thread_scope_block>;

__global__ void hand_over(const int *x, int *out, int steps) {
    __shared__ int s[2][32];
    __shared__ bar ready[2], filled[2];
    int t = threadIdx.x, l = t & 31, sum = 0;
    if (t < 2) { init(&ready[t], 64); init(&filled[t], 64); }
    __syncthreads();
    if (t < 32) {
        for (int j = 0; j < steps; j++) {
            ready[j & 1].arrive_and_wait();
            s[j & 1][l] = x[j * 32 + l];
            (void)filled[j & 1].arrive();
        }
    } else {
        (void)ready[0].arrive();
        (void)ready[1].arrive();
        for (int j = 0; j < steps; j++) {
            filled[j & 1].arrive_and_wait();
            sum += s[j & 1][31 - l];
            (void)ready[j & 1].arrive();
        }
        out[l] = sum;
    }
}
__global__ void two_stages(const int *x, int *out, int steps) {
    __shared__ int s[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int j = 0, f = 0; j < steps; j++) {
        for (; f < steps && f < j + 2; f++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, s[f % 2], x + f * 64, cuda::aligned_size_t<16>(256), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += s[j % 2][63 - threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}
"""


@nvcc
@pytest.mark.parametrize("kernel", ["hand_over", "two_stages"])
def test_warps_hand_over_what_they_have_filled(kernel: str) -> None:
    """Five steps of 32 or 64 elements, each read from behind; without a finding."""
    size = 32 if kernel == "hand_over" else 64
    x, out = np.arange(5 * size, dtype=np.int32), np.zeros(size, np.int32)
    launch = gpusim.cuda_source(CODE)[kernel][1, 64]
    launch(x, out, 5)
    assert out.tolist() == x.reshape(5, size)[:, ::-1].sum(axis=0).tolist()
    assert list(gpusim.check(launch, x, np.zeros(size, np.int32), 5)) == []
    assert gpusim.predict(launch, x, out, 5).time_us > 0


LANES = """
__global__ void prefetches(const int *x, int *out) {
    int t = threadIdx.x;
    if (t < 8) {
        const char *from = (const char *)x + 128 * x[t];
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(from), "r"(16 + 16 * t));
    }
    asm volatile("prefetch.tensormap [%0];" :: "l"(x));
    out[t] = t;
}
__global__ void barriers(int *out) {
    __shared__ alignas(8) unsigned long long b[8];
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(&b[t & 7]);
    if (t < 8) asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at), "r"(8));
    __syncthreads();
    unsigned long long state;
    int done;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at));
    do
        asm volatile("{ .reg .pred p; mbarrier.try_wait.shared.b64 p, [%1], %2, %3;"
                     " selp.s32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "l"(state), "r"(1000));
    while (!done);
    out[t] = 1;
}
"""


@nvcc
def test_an_instruction_for_a_warp_runs_once_for_each_value_of_its_lanes() -> None:
    """Eight lanes set a barrier each, and 64 threads arrive at them, eight at each."""
    out = np.zeros(64, np.int32)
    gpusim.cuda_source(LANES)["barriers"][1, 64](out)
    assert out.tolist() == [1] * 64


@nvcc
def test_prefetches_of_bulks_and_maps_change_nothing() -> None:
    out = np.zeros(32, np.int32)
    gpusim.cuda_source(LANES)["prefetches"][1, 32](np.arange(512, dtype=np.int32) % 3, out)
    assert out.tolist() == list(range(32))


def updated(word: int, *updates: tuple[str, int]) -> int:
    """Return a word after updates by counts."""
    held = np.array([word], np.uint64)
    for name, count in updates:
        held = UPDATES[name](held, np.array([count], np.uint64))
    return int(held[0])


def test_a_phase_ends_without_arrivals_and_transactions_left() -> None:
    """Two arrivals and three transactions, whichever end last; then the counts are as before."""
    begin = (2**20 - 2) << 43 | (2**20 - 2) << 1
    for order in (
        [("expect_transactions", 3), ("arrive", 2), ("complete_transactions", 3)],
        [("expect_transactions", 3), ("complete_transactions", 3), ("arrive", 2)],
        [("complete_transactions", 3), ("arrive", 1), ("expect_transactions", 3), ("arrive", 1)],
    ):
        *some, last = order
        assert updated(begin, *some) >> 63 == 0
        assert updated(begin, *some, last) == begin | 1 << 63
        assert updated(begin, *order, *order) == begin
