"""Copies to shared memory of fewer bytes than are stored, and where a thread finds itself."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
COPY = """
extern "C" __global__ void copyWIDTH(char *o, const char *a, const int *size) {
    __shared__ __align__(16) char s[32 * WIDTH];
    int g = threadIdx.x;
    for (int k = 0; k < WIDTH; k++) s[g * WIDTH + k] = 99;
    unsigned to = (unsigned)__cvta_generic_to_shared(s + g * WIDTH);
    asm volatile("cp.async.CACHE.shared.global [%0], [%1], WIDTH, %2; cp.async.wait_all;"
                 :: "r"(to), "l"(a + g * WIDTH), "r"(size[g]) : "memory");
    for (int k = 0; k < WIDTH; k++) o[g * WIDTH + k] = s[g * WIDTH + k];
}
"""
PLACES = """
extern "C" __global__ void places(unsigned *o) {
    unsigned sm, sms, warp, is_global, is_local, is_shared;
    __shared__ int s[2];
    int own[2] = {(int)threadIdx.x, 1};
    s[threadIdx.x & 1] = own[threadIdx.x & 1];
    asm volatile("mov.u32 %0, %%smid; mov.u32 %1, %%nsmid; mov.u32 %2, %%warpid;"
                 : "=r"(sm), "=r"(sms), "=r"(warp));
    void *p = threadIdx.x % 3 == 0 ? (void *)o : threadIdx.x % 3 == 1 ? (void *)s : (void *)own;
    is_global = __isGlobal(p), is_local = __isLocal(p), is_shared = __isShared(p);
    o[threadIdx.x] = (sm < sms) + warp * 2 + is_global * 100 + is_shared * 200 + is_local * 400;
}
"""


@functools.cache
def code() -> CodeFile:
    copies = (
        COPY.replace("WIDTH", str(width)).replace("CACHE", cache)
        for width, cache in ((4, "ca"), (8, "ca"), (16, "cg"))
    )
    return cuda_source("".join(copies) + PLACES)


@pytest.mark.parametrize("width", [4, 8, 16])
def test_bytes_behind_those_that_are_copied_are_zeros(width: int) -> None:
    sizes = (np.arange(32) * 5 % (width + 1)).astype(np.int32)
    sizes[31] = 1
    # The array ends behind the last byte that is asked for.
    given = np.arange(1, 31 * width + 2).astype(np.int8)
    made = np.zeros(32 * width, np.int8)
    configured = code()[f"copy{width}"][1, 32]
    arguments = (made, given, sizes)
    run(configured.kernel.prepare(configured.launch, arguments, ComputeCapability(9, 0)))
    for lane, size in enumerate(sizes.tolist()):
        begin = lane * width
        want = [*given[begin : begin + size].tolist(), *[0] * (width - size)]
        assert made[begin : begin + width].tolist() == want, lane


def test_threads_learn_where_they_run_and_what_their_addresses_mean() -> None:
    made = np.zeros(96, np.uint32)
    configured = code()["places"][1, 96]
    run(configured.kernel.prepare(configured.launch, (made,), ComputeCapability(9, 0)))
    space = [100, 200, 400]
    assert made.tolist() == [1 + g // 32 * 2 + space[g % 3] for g in range(96)]


def test_groups_without_copies_are_waited_for() -> None:
    text = """__global__ void k(int *x) {
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        x[threadIdx.x] += 1;
    }"""
    x = np.zeros(64, np.int32)
    cuda_source(text)["k"][1, 64](x)
    assert (x == 1).all()
