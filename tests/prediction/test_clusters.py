"""Times of thread block clusters: the SMs that hold them, their barrier, and loads of peers."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.codegen.programs import prepare
from gpusim.errors import InputError
from gpusim.gpu.device import CLUSTER_SIZES, load
from gpusim.gpu.occupancy import occupancy
from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.records import Prediction
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source
from validate.table import rows_of

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
H200 = load("h200")
VALIDATE = Path(__file__).parents[2] / "validate"
KERNELS = """
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define OF(x) __global__ void __cluster_dims__(x, 1, 1)
#define BARRIER(n) asm volatile("barrier.cluster.arrive.relaxed.aligned;" \\
                                "barrier.cluster.wait.aligned;" ::: "memory")
OF(4) once(int *x) { BARRIER(); x[0] = 1; }
OF(4) often(int *x) {
    BARRIER(); BARRIER(); BARRIER(); BARRIER(); BARRIER(); BARRIER();
    BARRIER(); BARRIER(); BARRIER(); BARRIER(); BARRIER();
    x[0] = 1;
}
template<int n> __device__ void follow(int *x) {
    __shared__ int s[32];
    auto c = cg::this_cluster();
    s[threadIdx.x] = threadIdx.x;
    c.sync();
    volatile int *peer = c.map_shared_rank(s, c.block_rank() ^ 1);
    int at = threadIdx.x;
    #pragma unroll
    for (int i = 0; i < n; i++) at = peer[at];
    x[threadIdx.x] = at;
    c.sync();
}
OF(2) one(int *x) { follow<1>(x); }
OF(2) eleven(int *x) { follow<11>(x); }
OF(4) wide(int *x) { BARRIER(); x[blockIdx.x * 256 + threadIdx.x] = 1; }
OF(2) waits(int *x) {
    __shared__ volatile int word;
    auto c = cg::this_cluster();
    if (threadIdx.x == 0) word = 0;
    c.sync();
    if (c.block_rank()) *(volatile int *)c.map_shared_rank((int *)&word, 0) = 1;
    else while (word == 0);
    x[0] = 1;
    c.sync();
}
"""


@cache
def predicted(name: str, grid: int, block: int) -> Prediction:
    """Return the prediction of a kernel."""
    return gpusim.predict(cuda_source(KERNELS)[name][grid, block], np.zeros(1 << 19, np.int32))


def test_a_barrier_of_a_cluster_takes_longer_than_that_of_a_block() -> None:
    """Ten more: each 67 cycles beyond a block's barrier, of which a warp waits for 14 at most."""
    more = predicted("often", 4, 32).cycles - predicted("once", 4, 32).cycles
    assert (
        H200.latency_cycles.cluster_barrier < more / 10 <= H200.latency_cycles.cluster_barrier + 14
    )


def test_a_load_of_a_peer_takes_its_way_through_the_cluster() -> None:
    """Each of ten more waits for the one before: 205 cycles and an addition."""
    more = predicted("eleven", 2, 32).cycles - predicted("one", 2, 32).cycles
    assert H200.latency_cycles.peer_load < more / 10 < H200.latency_cycles.peer_load + 25


def test_clusters_of_four_do_not_fit_on_all_multiprocessors() -> None:
    """Of an H200's 132 they take 124: 1,056 blocks, 8 on an SM, are more than one wave."""
    assert predicted("wide", 1056, 256).waves == 1056 / (8 * 124)


def test_blocks_of_a_cluster_that_wait_for_each_other_have_no_time() -> None:
    """A loop that waits for a peer's store is refused in a sentence."""
    with pytest.raises(InputError, match="blocks of a cluster wait for each other"):
        predicted("waits", 2, 32)


def measured(what: str, **chosen: int) -> list[float]:
    """Return the values measured of a thing on an H200."""
    rows = rows_of(VALIDATE / "clusters.csv")
    return [
        float(row["value"])
        for row in rows
        if row["what"] == what
        and all(row[name.replace("_", " ")] == str(number) for name, number in chosen.items())
    ]


def test_the_numbers_of_clusters_are_those_measured() -> None:
    """SMs that hold clusters, what their barrier takes beyond a block's, loads of peers."""
    cluster = H200.cluster
    parts = cluster.fraction_2, cluster.fraction_4, cluster.fraction_8, cluster.fraction_16
    for blocks, part in zip(CLUSTER_SIZES, parts, strict=True):
        (held,) = measured("clusters at a time", blocks_in_a_cluster=blocks, threads=256)
        assert part == pytest.approx(held * blocks / 8 / 132, abs=0.001)
    barriers = "barrier of a cluster, relaxed", "barrier of a block"
    for blocks in (4, 8):
        beyond = [
            cluster - block
            for cluster, block in zip(
                measured(barriers[0], blocks_in_a_cluster=blocks),
                measured(barriers[1]),
                strict=True,
            )
        ]
        assert np.median(beyond) == pytest.approx(H200.latency_cycles.cluster_barrier, abs=1)
    assert np.mean(measured("load of a peer's shared memory")) == pytest.approx(
        H200.latency_cycles.peer_load, abs=2
    )


@cuda.jit
def _filled(x: Any) -> None:
    x[0] = cuda.shared.array(0, np.int32)[0]


def test_an_sm_holds_at_most_eight_blocks_of_clusters() -> None:
    """As an H200's SMs were seen to, for blocks of 32 to 512 threads, and with shared memory."""
    for row in rows_of(VALIDATE / "bulk" / "residents.csv"):
        cluster, threads, shared, most = list(map(int, row.values()))[:4]
        launch = _filled[8 * cluster, threads, 0, shared, cluster]
        prepared = prepare(
            launch, [np.zeros(1, np.int32)], ComputeCapability(9, 0), code="lowering"
        )
        assert occupancy(prepared, H200).blocks == most, row
