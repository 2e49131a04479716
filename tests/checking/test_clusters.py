"""Accesses between blocks of a cluster: what its barrier orders, and the lives of blocks."""

from __future__ import annotations

import numpy as np
import pytest
from checking.planted_bodies import PlantedBodies

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
HEAD = """\
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define KERNEL(name, ...) __global__ void __cluster_dims__(2, 1, 1) name(int *out) { \\
    __shared__ int s[64]; \\
    auto c = cg::this_cluster(); \\
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t; \\
    int *next = c.map_shared_rank(s, c.block_rank() ^ 1); \\
    __VA_ARGS__ }
"""
# Bodies by what is wrong with them.
BODIES = {
    "": (
        "s[t] = t; c.sync(); int v = next[t]; c.sync(); out[i] = v;",
        "s[t] = t; c.barrier_arrive(); int w = out[i]; c.barrier_wait(); int v = next[t] + w;"
        "c.barrier_arrive(); out[i] = v; c.barrier_wait();",
        "s[t] = 0; c.sync(); atomicAdd(next + t / 2, 1); c.sync(); out[i] = s[t];",
        "out[i] = t; c.sync(); s[t] = out[i ^ 64]; c.sync(); out[i] = s[t];",
    ),
    "cluster-race": (
        "s[t] = t; c.sync(); int v = next[t]; __syncthreads(); s[t] = v; c.sync(); out[i] = s[t];",
        "c.barrier_arrive(); s[t] = t; c.barrier_wait(); int v = next[t]; c.sync(); out[i] = v;",
        "s[t] = 0; c.sync(); c.map_shared_rank(s, 0)[t] = i; c.sync(); out[i] = s[t];",
        "s[t] = 0; c.sync(); atomicAdd(next + t / 2, 1); __syncthreads(); out[i] = s[t]; c.sync();",
    ),
    "cluster-start": (
        "s[t] = 0; __syncthreads(); atomicAdd(next + t / 2, 1); c.sync(); out[i] = t;",
    ),
    "cluster-end": (
        "s[t] = t; c.sync(); out[i] = next[t];",
        "s[t] = t; c.sync(); if (c.block_rank() == 0) out[i] = next[t]; c.barrier_arrive();"
        "if (c.block_rank() == 0) c.barrier_wait();",
    ),
    "block-race": (
        "out[i] = t; s[t] = out[i ^ 64]; c.sync(); out[i] = s[t];",
        "out[i] = t; c.sync(); s[t] = out[i ^ 128]; __syncthreads(); out[i] = s[63 - t]; c.sync();",
    ),
    "uninitialised": ("c.sync(); int v = next[t]; c.sync(); out[i] = v;",),
    "bounds": ("s[t] = t; c.sync(); int v = next[t + 1]; c.sync(); out[i] = v;",),
}
PLANTED = PlantedBodies(HEAD, BODIES)


@pytest.mark.parametrize("number", range(len(PLANTED.kinds)))
def test_a_check_knows_the_order_that_a_cluster_has(number: int) -> None:
    """Each body has one kind of error, those at first none."""
    rule, kernel = PLANTED.kinds[number][0], PLANTED.kernel(number)
    found = {one.rule for one in gpusim.check(kernel[4, 64], np.zeros(256, np.int32)).errors}
    if rule == "cluster-start":  # the store of the block that may start later is in no order
        found.discard("cluster-race")
    assert found == ({rule} if rule else set())


def test_an_access_names_the_blocks_that_it_is_between() -> None:
    """The thread, and the block whose memory may be gone."""
    number = PLANTED.kinds.index(("cluster-end", BODIES["cluster-end"][0]))
    (found,) = gpusim.check(PLANTED.kernel(number)[2, 32], np.zeros(64, np.int32)).errors
    assert found.message == (
        "thread 31 (block 1, warp 0, lane 31) accesses shared memory of block 0 in line "
        f"{10 + number}, which block 0 does not wait for before it ends"
    )
