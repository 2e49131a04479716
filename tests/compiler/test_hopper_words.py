"""Words of clusters, mbarriers, bulk copies and reductions of a warp, with results by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.codegen import generators
from gpusim.errors import GpusimError, KernelSourceError, LaunchError, OutOfBoundsError
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason="needs NVIDIA's compiler")

EVERYONE = 0xFFFFFFFF


@cuda.jit
def of_a_warp(x: Any, out: Any) -> None:
    lane = cuda.threadIdx.x
    out[0, lane] = cuda.reduce_add_sync(EVERYONE, x[lane])
    out[1, lane] = cuda.reduce_min_sync(EVERYONE, x[lane])
    out[2, lane] = cuda.reduce_max_sync(EVERYONE, x[lane])
    out[3, lane] = cuda.reduce_and_sync(EVERYONE, x[lane])
    out[4, lane] = cuda.reduce_or_sync(EVERYONE, x[lane])
    out[5, lane] = cuda.reduce_xor_sync(EVERYONE, x[lane])


@cuda.jit
def sums_of_clusters(x: Any, out: Any) -> None:
    own = cuda.shared.array(4, np.int32)
    tid, rank = cuda.threadIdx.x, cuda.cluster.block_rank()
    own[tid] = x[4 * cuda.blockIdx.x + tid]
    cuda.cluster.sync()
    total = 0
    for other in range(cuda.cluster.num_blocks()):
        peer = cuda.cluster.map_shared_rank(own, other)
        total += peer[tid]
    cuda.cluster.barrier_arrive()
    cuda.cluster.barrier_wait()
    first = cuda.cluster.map_shared_rank(own, 0)
    if tid == 3:
        cuda.atomic.add(first, 3, 100 + rank)
    cuda.cluster.sync()
    out[cuda.blockIdx.x, tid] = 1000 * total + own[tid]


@cuda.jit
def of_rank(rank: Any, out: Any) -> None:
    own = cuda.shared.array(32, np.int32)
    own[cuda.threadIdx.x] = 7
    cuda.cluster.sync()
    peer = cuda.cluster.map_shared_rank(own, rank)
    out[cuda.threadIdx.x] = peer[cuda.threadIdx.x]


@cuda.jit
def doubled(x: Any, out: Any, tiles: Any) -> None:
    """Two stages of 32 numbers; all threads have read a stage before it is filled again."""
    stages = cuda.shared.array(64, np.int32)
    full = cuda.shared.array(2, np.uint64)
    empty = cuda.shared.array(2, np.uint64)
    tid = cuda.threadIdx.x
    if tid == 0:
        for stage in range(2):
            cuda.barrier.init(full, stage, 1)
            cuda.barrier.init(empty, stage, 32)
        cuda.fence_proxy_async()
    cuda.syncthreads()
    for tile in range(tiles):
        stage, turn = tile % 2, tile // 2
        if tid == 0:
            if turn > 0:
                cuda.barrier.wait_parity(empty, stage, (turn - 1) & 1)
            cuda.barrier.arrive_tx(full, stage, 1, 128)
            cuda.memcpy_async_tx(stages, 32 * stage, x, 32 * tile, 32, full, stage)
        cuda.barrier.wait_parity(full, stage, turn & 1)
        out[32 * tile + tid] = 2 * stages[32 * stage + tid]
        cuda.barrier.arrive(empty, stage)


def test_lanes_of_a_warp_are_reduced_by_one_instruction() -> None:
    """Of -5 to 26: the sum 336; and, or and xor of all are 0, -1 and -32."""
    out = np.zeros((6, 32), np.int32)
    trace = gpusim.trace(of_a_warp[1, 32], np.arange(-5, 27, dtype=np.int32), out)
    assert out.tolist() == [[each] * 32 for each in (336, -5, 26, 0, -1, -32)]
    assert trace.counters["shuffles"] == 0


def test_blocks_of_a_cluster_read_and_add_to_each_others_shared_memory() -> None:
    """Blocks 0 and 1 have 0..7, 2 and 3 8..15; rank 0 takes 100 and 101 to its last number."""
    out = np.zeros((4, 4), np.int32)
    launch = sums_of_clusters[4, 4, 0, 0, 2]
    arguments = np.arange(16, dtype=np.int32), out
    gpusim.trace(launch, *arguments)
    sums = [[4, 6, 8, 10], [4, 6, 8, 10], [20, 22, 24, 26], [20, 22, 24, 26]]
    own = [[0, 1, 2, 204], [4, 5, 6, 7], [8, 9, 10, 212], [12, 13, 14, 15]]
    assert out.tolist() == (1000 * np.array(sums) + own).tolist()
    assert not gpusim.check(launch, *arguments).errors


def test_a_pipeline_of_bulk_copies_waits_for_full_and_for_empty_stages() -> None:
    x = np.arange(160, dtype=np.int32)
    out = np.zeros_like(x)
    arguments = x, out, np.int32(5)
    trace = gpusim.trace(doubled[1, 32], *arguments)
    assert out.tolist() == (2 * x).tolist()
    assert trace.counters["global_load_instructions"] == 0
    assert not gpusim.check(doubled[1, 32], *arguments).found


@pytest.mark.parametrize(
    ("cluster", "rank", "says"),
    [
        (1, 1, "rank 1 is out of bounds: without a cluster size .--cluster. each block is alone"),
        (2, 2, "rank 2 is out of bounds: a cluster has 2 blocks"),
    ],
)
def test_a_rank_beyond_the_cluster_is_a_fault(cluster: int, rank: int, says: str) -> None:
    with pytest.raises(OutOfBoundsError, match=says):
        gpusim.trace(of_rank[2, 32, 0, 0, cluster], np.int32(rank), np.zeros(32, np.int32))


def test_without_a_cluster_size_a_block_is_a_cluster_of_its_own() -> None:
    out = np.zeros(32, np.int32)
    gpusim.trace(of_rank[2, 32], np.int32(0), out)
    assert out.tolist() == [7] * 32


@pytest.mark.parametrize(
    ("kernel", "cc", "says"),
    [
        (of_a_warp, "7.5", "cuda.reduce_add_sync needs compute capability 8.0 or higher"),
        (sums_of_clusters, "8.9", "cuda.cluster.block_rank needs compute capability 9.0"),
        (doubled, "8.0", "cuda.barrier.init needs compute capability 9.0"),
    ],
)
@pytest.mark.parametrize("code", generators.CODES)
def test_an_older_gpu_is_refused_by_the_word(kernel: Any, cc: str, says: str, code: str) -> None:
    arguments = [np.zeros((4, 32), np.int32)] * len(kernel.source.parameters)
    if kernel is doubled:
        arguments = [np.zeros(32, np.int32), np.zeros(32, np.int32), np.int32(1)]
    if kernel is sums_of_clusters:
        arguments[0] = np.zeros(16, np.int32)
    if kernel is of_a_warp:
        arguments[0] = np.zeros(32, np.int32)
    with pytest.raises(LaunchError, match=says):
        gpusim.trace(kernel[1, 32], *arguments, cc=cc, code=code)


def test_the_lowering_names_the_word_and_the_code_that_has_it() -> None:
    launch, out = of_rank[2, 32, 0, 0, 2], np.zeros(32, np.int32)
    says = "no instructions for cuda.cluster.sync: it needs nvcc's code, --code nvcc"
    with pytest.raises(LaunchError, match=says):
        gpusim.trace(launch, np.int32(0), out, code="lowering")
    with pytest.raises(GpusimError, match=says):
        gpusim.check(launch, np.int32(0), out, code="lowering")
    with pytest.raises(LaunchError, match=says):
        gpusim.trace(launch, np.int32(0), out, level="O0")


def test_wrong_arguments_are_marked_in_the_source() -> None:
    @cuda.jit
    def of_global(x: Any) -> None:
        peer = cuda.cluster.map_shared_rank(x, 0)
        peer[0] = 1

    @cuda.jit
    def no_barriers(x: Any) -> None:
        bars = cuda.shared.array(2, np.int32)
        cuda.barrier.arrive(bars, 0)

    @cuda.jit
    def from_shared(x: Any) -> None:
        own = cuda.shared.array(32, np.int32)
        bars = cuda.shared.array(1, np.uint64)
        cuda.memcpy_async_tx(x, 0, own, 0, 32, bars, 0)

    @cuda.jit
    def of_floats(x: Any) -> None:
        x[0] = cuda.reduce_add_sync(EVERYONE, np.float32(1))

    for kernel, says in (
        (of_global, "map_shared_rank takes a shared array and a rank"),
        (no_barriers, r"barriers are elements of a shared array: cuda.shared.array\(count, np"),
        (from_shared, "from a global array to a shared one of the same type, not from shared int"),
        (of_floats, "takes an integer of 32 bits, not a float32"),
    ):
        with pytest.raises(KernelSourceError, match=says):
            gpusim.trace(kernel[1, 32], np.zeros(32, np.int32))
