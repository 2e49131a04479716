"""Checks of matrix products of warpgroups: stores before them and after them."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
# A step stores both factors, multiplies, and stores the next ones.
KERNEL = """
template <bool meets, bool fences, bool waits, bool meets_again, int groups>
__device__ void multiply(float *out, const uint4 *in) {
  __shared__ __align__(1024) uint4 memory[144];
  float d[4] = {};
  unsigned long long a = 16ull << 32 | 8ull << 16;
  a |= (unsigned)__cvta_generic_to_shared(memory) >> 4;
  for (int step = 0; step < 3; step++) {
    for (int i = threadIdx.x; i < 144; i += 128) memory[i] = in[step * 144 + i];
    if (fences) asm volatile("fence.proxy.async;" ::: "memory");
    if (meets) __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5,"
      " 1, 1, 1, 0, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(a + 128));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (groups == 2) {
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    } else asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(waits ? 0 : groups) : "memory");
    if (meets_again) __syncthreads();
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = d[i];
}
#define CASE(NAME, ...)                                                                   \\
  extern "C" __global__ void __launch_bounds__(128) NAME(float *out, const uint4 *in) {   \\
    multiply<__VA_ARGS__>(out, in);                                                       \\
  }
CASE(right, true, true, true, true, 0)
CASE(right_with_an_empty_group, true, true, false, true, 2)
CASE(no_barrier, false, true, true, true, 0)
CASE(no_fence, true, false, true, true, 0)
CASE(no_wait, true, true, false, true, 1)
CASE(no_second_barrier, true, true, true, false, 0)
"""


@functools.cache
def kernels() -> CodeFile:
    return cuda_source(KERNEL)


@pytest.mark.parametrize(
    ("name", "rules", "said"),
    [
        ("right", set(), ""),
        ("right_with_an_empty_group", set(), ""),
        ("no_barrier", {"shared-race"}, ""),
        ("no_fence", {"proxy-fence"}, "a matrix product of .* reads memory.* writes before"),
        ("no_wait", {"copy-race"}, "which a matrix product of .* reads .* waits for the product"),
        ("no_second_barrier", {"shared-race", "copy-race"}, ""),
    ],
)
def test_factors_need_a_barrier_a_fence_and_a_wait(name: str, rules: set[str], said: str) -> None:
    out = np.zeros(512, np.float32)
    found = gpusim.check(kernels()[name][1, 128], out, np.ones(4 * 432, np.uint32))
    assert {one.rule for one in found if one.rule != "uninitialised"} <= rules
    assert bool(list(found)) == bool(rules)
    assert not said or any(re.search(said, one.message) for one in found)
