"""Thread block clusters: ranks, distributed shared memory, and the barrier of a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from evaluators import EVALUATORS, agree, evaluated, runs_in

from gpusim.errors import LaunchError, OutOfBoundsError
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeKernel, cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
KERNELS = """
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define OF(x, y) __global__ void __cluster_dims__(x, y, 1)
#define PUT(i, name) asm volatile("mov.u32 %0, %" name ";" : "=r"(r)); o[i] = r;
OF(2, 3) places(unsigned *o) {
    unsigned r;
    o += 9 * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    PUT(0, "%cluster_ctarank") PUT(1, "%cluster_nctarank") PUT(2, "%cluster_ctaid.x")
    PUT(3, "%cluster_ctaid.y") PUT(4, "%cluster_nctaid.y") PUT(5, "%clusterid.x")
    PUT(6, "%clusterid.y") PUT(7, "%nclusterid.x") PUT(8, "%clusterid.z")
}
__global__ void alone(unsigned *o) {
    auto c = cg::this_cluster();
    o[blockIdx.x] = 10 * c.num_blocks() + c.block_rank();
    c.sync();
}
// Each block hands its values to the next one of the cluster, and reads those of the one after it.
OF(3, 1) ring(const int *x, int *out) {
    __shared__ int s[64], given[64];
    auto c = cg::this_cluster();
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = x[i];
    c.barrier_arrive();
    int own = x[i] * 2;
    c.barrier_wait();
    int *other = c.map_shared_rank(s, (c.block_rank() + 2) % 3);
    c.map_shared_rank(given, (c.block_rank() + 1) % 3)[63 - t] = other[t] + own;
    c.sync();
    out[i] = given[t];
}
OF(4, 1) histogram(const unsigned *x, unsigned *out, int n, int bins) {
    __shared__ unsigned mine[32];
    auto c = cg::this_cluster();
    int each = bins / c.num_blocks();
    for (int i = threadIdx.x; i < each; i += blockDim.x) mine[i] = 0;
    c.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(c.map_shared_rank(mine, x[i] % bins / each) + x[i] % each, 1u);
    c.sync();
    for (int i = threadIdx.x; i < each; i += blockDim.x)
        atomicAdd(&out[c.block_rank() * each + i], mine[i]);
}
// Atomics of floating-point numbers ask for the memory of their generic address.
OF(2, 1) floats(const float *x, float *out) {
    __shared__ float s[2];
    auto c = cg::this_cluster();
    if (threadIdx.x < 2) s[threadIdx.x] = 0;
    c.sync();
    atomicAdd(c.map_shared_rank(s, threadIdx.x / 2 % 2) + threadIdx.x % 2,
              x[blockIdx.x * blockDim.x + threadIdx.x]);
    c.sync();
    if (threadIdx.x < 2) out[blockIdx.x * 2 + threadIdx.x] = s[threadIdx.x];
}
OF(2, 1) flag(int *out) {
    __shared__ volatile int word, value;
    auto c = cg::this_cluster();
    if (threadIdx.x == 0) word = 0;
    c.sync();
    if (c.block_rank() == 0 && threadIdx.x == 0) {
        *c.map_shared_rank((int *)&value, 1) = 42;
        __threadfence();
        *(volatile int *)c.map_shared_rank((int *)&word, 1) = 1;
    }
    if (c.block_rank() == 1) {
        while (word == 0);
        out[blockIdx.x / 2 * blockDim.x + threadIdx.x] = value + threadIdx.x;
    }
    c.sync();
}
OF(2, 1) leavers(int *out) {
    __shared__ int s[96];
    auto c = cg::this_cluster();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i;
    c.sync();
    out[i] = c.map_shared_rank(s, c.block_rank() ^ 1)[threadIdx.x];
    if (threadIdx.x >= 48) return;
    c.sync();
    out[i] += 1;
}
OF(2, 1) beyond(int *out, int rank) {
    __shared__ int s[4];
    auto c = cg::this_cluster();
    s[threadIdx.x] = 0;
    c.sync();
    out[threadIdx.x] = c.map_shared_rank(s, rank)[threadIdx.x + (rank == 1)];
    c.sync();
}
"""


def kernel(name: str) -> CodeKernel:
    """Return one of the kernels."""
    return cuda_source(KERNELS)[name]


def arrays(name: str) -> tuple[Any, ...]:
    """Return arguments of a kernel for a few blocks."""
    ints, floats = np.arange(12 * 64, dtype=np.int32), np.arange(512, dtype=np.float32)
    return {
        "ring": (ints, np.zeros_like(ints)),
        "histogram": (ints.view(np.uint32) * 7, np.zeros(128, np.uint32), 700, 128),
        "floats": (floats, np.zeros(16, np.float32)),
        "flag": (np.zeros(3 * 64, np.int32),),
        "leavers": (np.zeros(4 * 96, np.int32),),
        "alone": (np.zeros(5, np.uint32),),
    }[name]


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_blocks_know_their_place_in_clusters(
    evaluator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks count along x first; clusters of 2 x 3 blocks in a grid of 4 x 3 x 2."""
    runs_in(monkeypatch, evaluator)
    out = np.zeros((24, 9), np.uint32)
    kernel("places")[(4, 3, 2), 32](out)
    for block, found in enumerate(out.tolist()):
        x, y, z = block % 4, block // 4 % 3, block // 12
        assert found == [x % 2 + 2 * y, 6, x % 2, y, 3, x // 2, 0, 2, z]


@pytest.mark.parametrize(("cluster", "ranks"), [(1, "000000"), (2, "010101"), (3, "012012")])
def test_a_launch_gives_a_kernel_without_cluster_dims_its_clusters(
    cluster: int, ranks: str
) -> None:
    """The size and rank of each block: the code of one kernel serves all sizes."""
    out = np.zeros(6, np.uint32)
    kernel("alone")[6, 32, 0, 0, cluster](out)
    assert out.tolist() == [10 * cluster + int(rank) for rank in ranks]


def test_a_launch_cannot_give_clusters_other_than_the_kernels_own() -> None:
    """The size of `__cluster_dims__` may be given again; another one is refused."""
    ints = np.arange(6 * 64, dtype=np.int32)
    kernel("ring")[6, 64, 0, 0, 3](ints, np.zeros_like(ints))
    with pytest.raises(LaunchError, match="ring has __cluster_dims__ of 3 x 1 x 1 blocks"):
        kernel("ring")[6, 64, 0, 0, 2](ints, np.zeros_like(ints))


def test_clusters_run_alike_in_compiled_code_and_in_numpy() -> None:
    """Results and counters are the same, block by block."""
    launches = (("ring", 12, 64), ("histogram", 8, 128), ("leavers", 4, 96), ("alone", 5, 32))
    for name, grid, block in launches:
        agree(kernel(name), grid, block, "nvcc", *arrays(name))


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_blocks_reach_the_shared_memory_of_their_cluster(evaluator: str) -> None:
    """Loads, stores and atomics go to the block whose rank an address has."""
    (x, out), *_ = evaluated(kernel("ring"), 12, 64, "nvcc", arrays("ring"), evaluator)
    x, out = x.reshape(4, 3, 64), out.reshape(4, 3, 64)
    for rank in range(3):
        given = x[:, (rank + 2) % 3] + 2 * x[:, rank]
        np.testing.assert_array_equal(out[:, (rank + 1) % 3], given[:, ::-1])
    (x, bins, *_), *_ = evaluated(
        kernel("histogram"), 8, 128, "nvcc", arrays("histogram"), evaluator
    )
    np.testing.assert_array_equal(bins, np.bincount(x[:700] % 128, minlength=128))
    (x, out), *_ = evaluated(kernel("floats"), 8, 64, "nvcc", arrays("floats"), evaluator)
    # Of each 4 threads in a row, two add to the first block's elements, two to the second's.
    np.testing.assert_array_equal(out, x.reshape(4, -1, 4).sum(axis=1).reshape(-1))


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_block_waits_for_a_flag_of_its_neighbour(evaluator: str) -> None:
    """Blocks of a cluster run at the same time: one may wait for what another stores."""
    (out,), _, went = evaluated(kernel("flag"), 6, 64, "nvcc", arrays("flag"), evaluator)
    np.testing.assert_array_equal(out.reshape(3, 64), np.tile(42 + np.arange(64), (3, 1)))
    assert went


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_the_barrier_of_a_cluster_waits_for_no_thread_that_has_exited(evaluator: str) -> None:
    """Of 96 threads of each block 48 exit, half a warp among them, before the last barrier."""
    (out,), *_ = evaluated(kernel("leavers"), 4, 96, "nvcc", arrays("leavers"), evaluator)
    block, thread = np.arange(4)[:, None], np.arange(96)
    np.testing.assert_array_equal(out.reshape(4, 96), (block ^ 1) * 96 + thread + (thread < 48))


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_place_outside_the_shared_memory_of_a_cluster_is_a_fault(
    evaluator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the fifth element of a neighbour's four exists, nor a third block of two."""
    runs_in(monkeypatch, evaluator)
    for rank, found in ((1, r"s\[4\]"), (2, "rank 2 is out of bounds: a cluster has 2")):
        with pytest.raises(OutOfBoundsError, match=found):
            kernel("beyond")[2, 4](np.zeros(4, np.int32), rank)


def test_blocks_without_clusters_are_clusters_of_one() -> None:
    """A kernel for any size of clusters runs without any, and waits at its block's barrier."""
    (out,), *_ = evaluated(kernel("alone"), 5, 32, "nvcc", arrays("alone"))
    assert out.tolist() == [10] * 5


def test_a_grid_has_whole_clusters() -> None:
    """The grid is a multiple of the cluster in each direction; clusters begin with Hopper."""
    with pytest.raises(LaunchError, match="a grid of 4 x 1 x 1 blocks is not a multiple"):
        kernel("ring")[4, 64](np.zeros(256, np.int32), np.zeros(256, np.int32))
    launch = Launch((4, 1, 1), (32, 1, 1), cluster=(2, 1, 1))
    with pytest.raises(LaunchError, match="begin with compute capability"):
        launch.check(ComputeCapability(8, 6), 0)
    with pytest.raises(LaunchError, match="at most 16 blocks"):
        Launch((32, 1, 1), (32, 1, 1), cluster=(32, 1, 1)).check(ComputeCapability(9, 0), 0)


def test_blocks_are_counted_cluster_by_cluster() -> None:
    """In a grid of 4 x 2 blocks, clusters of 2 x 2 have the blocks 0, 1, 4, 5 and 2, 3, 6, 7."""
    launch = Launch((4, 2, 1), (32, 1, 1), cluster=(2, 2, 1))
    assert launch.in_clusters(np.arange(8)).tolist() == [0, 1, 4, 5, 2, 3, 6, 7]
