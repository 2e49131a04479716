"""Lanes of one warp that wait for each other: loops that yield let them go on."""

import numpy as np
import pytest

import gpusim
from gpusim.errors import NoProgressError
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

CODE = """
__device__ int taken, counted;
__global__ void locks(int *out) {
  volatile int *count = &counted;
  while (atomicCAS(&taken, 0, 1) != 0);
  __threadfence();
  *count = *count + 1;
  __threadfence();
  atomicExch(&taken, 0);
  __syncthreads();
  out[threadIdx.x] = *count;
}
__device__ unsigned next, served;
__global__ void tickets(int *out) {
  unsigned mine = atomicAdd(&next, 1);
  while (*(volatile unsigned *)&served != mine);
  out[mine] = 1;
  __threadfence();
  atomicAdd(&served, 1);
}
__global__ void chain(int *out) {
  __shared__ volatile int sums[33];
  int t = threadIdx.x;
  sums[t + 1] = 0;
  if (t == 0) sums[0] = 1;
  __syncthreads();
  while (sums[t] == 0);
  sums[t + 1] = sums[t] + t;
  out[t] = sums[t + 1];
}
__global__ void forever(int *out) { while (((volatile int *)out)[threadIdx.x] == 0); }
__global__ void reserved(int *out) {
  extern __shared__ int own[];
  unsigned begin;
  asm volatile("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(begin));
  int t = threadIdx.x;
  own[t] = -1;
  asm volatile("st.shared.u32 [%0], %1;" :: "r"(begin + 4 * t), "r"(t * t) : "memory");
  __syncthreads();
  int found;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(found) : "r"(begin + 4 * (31 - t)) : "memory");
  out[t] = found + own[t];
}
"""


def run(name: str, threads: int, shared: int = 0) -> list[int]:
    out = np.zeros(threads, np.int32)
    gpusim.cuda_source(CODE)[name][1, threads, 0, shared](out)
    return out.tolist()


def test_each_lane_of_a_warp_has_a_lock_in_its_turn() -> None:
    assert run("locks", 40) == [40] * 40


def test_lanes_are_served_in_the_order_of_their_tickets() -> None:
    assert run("tickets", 32) == [1] * 32


def test_each_lane_waits_for_the_one_before_it() -> None:
    assert run("chain", 32) == [1 + t * (t + 1) // 2 for t in range(32)]


def test_a_loop_that_nobody_ends_is_still_told() -> None:
    with pytest.raises(NoProgressError, match="livelock"):
        run("forever", 32)


def test_memory_that_the_system_keeps_lies_apart_from_the_block_s_own() -> None:
    """Groups of several warps (cooperative_groups) meet there."""
    assert run("reserved", 32, shared=132) == [(31 - t) ** 2 - 1 for t in range(32)]
