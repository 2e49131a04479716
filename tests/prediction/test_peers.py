"""Times of boxes of tensor maps, and of what blocks of a cluster send each other."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.gpu.device import load
from gpusim.launch.tensor_maps import TensorMap
from gpusim.prediction.records import Prediction
from gpusim.prediction.streams.peers import ARRIVE, ASK, SEND, Peers
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source
from validate.table import rows_of

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
H200 = load("h200")
BULK = Path(__file__).parents[2] / "validate" / "bulk"
KERNELS = """
#include "cluster.cuh"
extern __shared__ __align__(128) float tile[];
#define OF(x) extern "C" __global__ void __cluster_dims__(x, 1, 1)
template<int n> __device__ void ping(float *y) {
    __shared__ u64 bar;
    __shared__ unsigned word;
    int t = threadIdx.x, other = rank() ^ 1;
    if (t == 0) { init(&bar, 1); SHOW; expect(&bar, 4); }
    MEET;
    if (t == 0)
        for (int i = 0; i < n; i++) {
            if (rank() == 0) send(peer(&word, other), i, peer(&bar, other));
            wait(&bar, i % 2);
            expect(&bar, 4);
            if (rank() == 1) send(peer(&word, other), i, peer(&bar, other));
        }
    __syncwarp();
    MEET;
    y[t] = word;
}
OF(2) ping_4(float *y) { ping<4>(y); }
OF(2) ping_12(float *y) { ping<12>(y); }
template<int n, int apart> __device__ void add(float *y) {
    unsigned *words = (unsigned *)tile, next = rank() ^ 1;
    MEET;
    for (int i = 0; i < n; i++)
        asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;"
                     :: "r"(peer(words + threadIdx.x % 32 * apart, next)), "r"(i) : "memory");
    MEET;
    y[threadIdx.x] = words[threadIdx.x];
}
OF(2) add_20(float *y) { add<20, 1>(y); }
OF(2) add_40(float *y) { add<40, 1>(y); }
OF(2) scatter_20(float *y) { add<20, 8>(y); }
OF(2) scatter_40(float *y) { add<40, 8>(y); }
OF(2) for_both(const float *x, float *y) {
    __shared__ u64 full;
    if (threadIdx.x == 0) { init(&full, 1); SHOW; expect(&full, 4096); }
    MEET;
    if (threadIdx.x == 0 && rank() == 0) load_all(tile, x, 4096, &full, 3);
    wait(&full, 0);
    y[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];
    MEET;
}
OF(2) for_each(const float *x, float *y) {
    __shared__ u64 full;
    if (threadIdx.x == 0) { init(&full, 1); SHOW; expect(&full, 4096); }
    MEET;
    if (threadIdx.x == 0) load(tile, x, 4096, &full);
    wait(&full, 0);
    y[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];
    MEET;
}
"""


@cache
def source() -> CodeFile:
    """Return the kernels of this file."""
    return cuda_source(KERNELS, includes=[str(BULK)])


def predicted(name: str, *more: np.ndarray[Any, Any]) -> Prediction:
    """Return the prediction of one cluster of two blocks of a warp."""
    y = np.zeros(1 << 12, np.float32)
    return gpusim.predict(source()[name][2, 32, 0, 8192], *more, y, l2="warm")


def test_a_store_with_its_count_takes_as_long_as_on_an_h200() -> None:
    """There and back by two blocks takes 444 cycles: each way half of it."""
    each = (predicted("ping_12").cycles - predicted("ping_4").cycles) / 8
    assert each == pytest.approx(444 / 2, rel=0.1)
    assert each > H200.latency_cycles.peer_arrival


def test_atomics_of_peers_cost_by_the_sector() -> None:
    """Words in a row lie in four sectors, words eight apart in 32."""
    near = (predicted("add_40").cycles - predicted("add_20").cycles) / 20
    far = (predicted("scatter_40").cycles - predicted("scatter_20").cycles) / 20
    assert near == pytest.approx(4 * H200.interval_cycles.peer_atomic_sector, rel=0.1)
    assert far == pytest.approx(32 * H200.interval_cycles.peer_atomic_sector, rel=0.1)
    assert H200.interval_cycles.peer_sector < H200.interval_cycles.peer_atomic_sector


def test_a_multicast_comes_later_and_is_loaded_once() -> None:
    """The block that does not ask for it waits as long as the one that does."""
    x = np.ones(1 << 12, np.float32)
    both, each = predicted("for_both", x), predicted("for_each", x)
    assert both.cycles - each.cycles == pytest.approx(H200.latency_cycles.multicast, abs=60)
    assert both.traffic.l2_bytes == 4096
    assert each.traffic.l2_bytes == 2 * 4096


def test_what_a_peer_sends_comes_with_own_sends_to_it() -> None:
    """Without own ones with the arrival that expects it, or with the wait for its phase."""
    peers, word = Peers(), (0, 1)
    peers.of(word).set(1)
    peers.arrive(word, 0, 0)
    peers.send(word, 1, 0)
    peers.receive(word, 0, 16, is_load=False)
    (found,) = peers._places(word)
    assert (found[0].role, found[0].step) == (SEND, 1)
    for is_load, role in ((True, ARRIVE), (False, ASK)):
        peers = Peers()
        peers.of(word).set(1)
        peers.arrive(word, 0, 0)
        peers.of(word).count(0, 16)
        peers.receive(word, 1, 16, is_load=is_load)
        assert peers.of(word).phase == 1
        peers.wait(word, 2, 0)
        assert next(peers._places(word))[0].role == role


@cache
def kernels() -> CodeFile:
    """Return the kernels that were measured."""
    return cuda_source((BULK / "clusters.cu").read_text(), includes=[str(BULK)])


def time_us(name: str, n: int) -> float:
    """Return the time measured on an H200 with a cold L2."""
    return next(
        float(row["us"])
        for row in rows_of(BULK / "clusters.csv")
        if (row["kernel"], row["l2"], row["n"]) == (name, "cold", str(n))
    )


@pytest.mark.parametrize(
    ("name", "swizzle", "box", "launch"),
    [
        ("transpose_box", 128, (32, 32), ((32, 32), 256, 8192)),
        ("scale_boxes", 0, (64, 32), (528, 128, 32768)),
    ],
)
def test_boxes_take_as_long_as_on_an_h200(
    name: str, swizzle: int, box: tuple[int, int], launch: tuple[Any, int, int]
) -> None:
    """An array of 1,024 by 1,024 floats: within 15 %."""
    n, (grid, block, shared) = 1024, launch
    maps = [TensorMap(np.zeros((n, n), np.float32), box, swizzle=swizzle) for _ in range(2)]
    found = gpusim.predict(kernels()[name][grid, block, 0, shared], *maps, n)
    assert found.time_us == pytest.approx(time_us(name, n), rel=0.15)
    assert not any(one.array.any() for one in maps)


def test_a_histogram_over_a_cluster_takes_as_long_as_on_an_h200() -> None:
    """2^20 numbers in 4,096 bins over four blocks: within 10 %."""
    n = 1 << 20
    x = (np.arange(n, dtype=np.uint64) * 2654435761 % 2**32 / 2**32).astype(np.float32)
    kernel = kernels()["histogram"][496, 256, 0, 4096]
    found = gpusim.predict(kernel, x, np.zeros(4096, np.float32), n)
    assert found.time_us == pytest.approx(time_us("histogram", n), rel=0.1)
