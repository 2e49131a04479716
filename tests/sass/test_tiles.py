"""Votes of tiles of a warp, in nvcc's own code: each names lanes of its own."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
CODE = """
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>
template <int N> __device__ void vote(int *o, const int *a) {
    auto tile = cooperative_groups::tiled_partition<N>(cooperative_groups::this_thread_block());
    int g = threadIdx.x, v = a[g];
    if (a[g / N * N] % 3) {
        o[g] = __popc(tile.ballot(v & 1)) * 4 + tile.any(v > 90) * 2 + tile.all(v > 10);
    }
}
extern "C" __global__ void of_4(int *o, const int *a) { vote<4>(o, a); }
extern "C" __global__ void of_16(int *o, const int *a) { vote<16>(o, a); }
"""


@functools.cache
def code() -> CodeFile:
    return cuda_source(CODE)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("size", [4, 16])
def test_each_tile_votes_for_itself(size: int, first: int) -> None:
    given = np.random.default_rng(size).integers(0, 100, 32).astype(np.int32)
    given[:size] = first  # which decides whether all tiles take part
    made = np.full(32, -1, np.int32)
    configured = code()[f"of_{size}"][1, 32]
    run(configured.kernel.prepare(configured.launch, (made, given), ComputeCapability(9, 0)))
    for begin in range(0, 32, size):
        voters = given[begin : begin + size].tolist()
        votes = sum(v & 1 for v in voters), any(v > 90 for v in voters), all(v > 10 for v in voters)
        want = votes[0] * 4 + votes[1] * 2 + votes[2] if voters[0] % 3 else -1
        assert made[begin : begin + size].tolist() == [want] * size
