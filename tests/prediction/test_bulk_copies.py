"""Times of bulk copies and mbarriers: the engine, its rates, and waits that end with a phase."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.gpu.device import load
from gpusim.prediction.records import Prediction
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source
from validate.table import rows_of

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
H200 = load("h200")
VALIDATE = Path(__file__).parents[2] / "validate"
KERNELS = """
#include "bulk.cuh"
template<int n> __device__ void one(const float *x, float *y) {
    extern __shared__ __align__(128) float tile[];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, n);
        load(tile, x, n, &full);
    }
    __syncthreads();
    wait(&full, 0);
    y[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void load_16(const float *x, float *y) { one<16>(x, y); }
extern "C" __global__ void load_32k(const float *x, float *y) { one<32768>(x, y); }
extern "C" __global__ void load_64k(const float *x, float *y) { one<65536>(x, y); }
template<int n> __device__ void out(float *y) {
    extern __shared__ __align__(128) float tile[];
    if (threadIdx.x == 0) { save(y, tile, n); COMMIT; READ(0); }
    __syncthreads();
}
extern "C" __global__ void store_32k(float *y) { out<32768>(y); }
extern "C" __global__ void store_64k(float *y) { out<65536>(y); }
// A warp that computes for long before it arrives, and one that waits for it.
template<int n> __device__ void late(const float *x, float *y) {
    __shared__ u64 bar, full;
    __shared__ __align__(16) float tile[4];
    if (threadIdx.x == 0) { init(&bar, 1); init(&full, 1); }
    __syncthreads();
    if (threadIdx.x == 32) {
        unsigned v = 1;
        #pragma unroll 1
        for (int i = 0; i < n; i++) v = v * 1664525u + 1013904223u;
        tile[0] = v;
        expect(&full, 16);
        load(tile, x, 16, &full);
        arrive(&bar);
    }
    if (threadIdx.x == 0) { wait(&bar, 0); wait(&full, 0); y[0] = tile[0]; }
}
extern "C" __global__ void early(const float *x, float *y) { late<10>(x, y); }
extern "C" __global__ void later(const float *x, float *y) { late<110>(x, y); }
"""


@cache
def source(measured: bool = False) -> CodeFile:
    """Return the kernels of this file, or those that were measured."""
    text = (VALIDATE / "bulk" / "kernels.cu").read_text() if measured else KERNELS
    return cuda_source(text, includes=[str(VALIDATE / "bulk")])


def predicted(name: str, *more: np.ndarray[Any, Any]) -> Prediction:
    """Return the prediction of one block of 64 threads."""
    y = np.zeros(1 << 14, np.float32)
    kernel = source()[name][1, 64, 0, 65536]
    return gpusim.predict(kernel, *more, y, l2="warm")


X = np.ones(1 << 14, np.float32)


def test_a_wait_lasts_until_its_copy_has_come() -> None:
    """The engine brings 32 KB more at its rate at most: the L2 answers later the busier it is."""
    small, middle, large = (predicted(one, X).cycles for one in ("load_16", "load_32k", "load_64k"))
    least = 32768 / H200.bandwidth.bulk_load_bytes_per_cycle
    assert least <= large - middle < 1.6 * least
    assert middle - small > 281


def test_a_store_is_read_at_the_engines_rate() -> None:
    """32 KB more, 32 bytes a cycle."""
    more = predicted("store_64k").cycles - predicted("store_32k").cycles
    assert more == pytest.approx(32768 / H200.bandwidth.bulk_store_bytes_per_cycle, rel=0.02)


def test_a_warp_waits_at_an_mbarrier_for_another_one() -> None:
    """100 more dependent multiplications of 4 cycles or more, in the warp that arrives."""
    more = predicted("later", X).cycles - predicted("early", X).cycles
    assert more > 400
    assert predicted("later", X).stalls["long_scoreboard"] > 0.2


def test_both_clocks_agree_on_bulk_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline with a warp that asks for tiles, by SimPy and compiled."""
    x, y = np.ones(1 << 15, np.float32), np.zeros(8, np.float32)
    kernel = source(measured=True)["specialised"][8, 160, 0, 32768]
    first = gpusim.predict(kernel, x, y, 1 << 15)
    monkeypatch.setenv("GPUSIM_FAST", "0")
    second = gpusim.predict(kernel, x, y, 1 << 15)
    assert (first.cycles, first.stalls) == (second.cycles, second.stalls)
    assert not y.any()


def test_a_prediction_leaves_what_bulk_copies_store_as_it_was() -> None:
    """Their array is copied like those of stores."""
    x, y = np.ones(1 << 14, np.float32), np.zeros(1 << 14, np.float32)
    gpusim.predict(source(measured=True)["scale_tile"][8, 256], x, y, 1 << 14)
    assert not y.any()


@cache
def rows() -> list[dict[str, str]]:
    """Return what was measured on an H200."""
    return [dict(row) for row in rows_of(VALIDATE / "bulk" / "h200.csv")]


@pytest.mark.parametrize("name", ["scale_tile", "copy_tiles", "add_16k_by_2", "softmax_row"])
def test_kernels_take_as_long_as_on_an_h200(name: str) -> None:
    """2^20 floats, out of DRAM: within a tenth."""
    n = 1 << 20
    row = next(r for r in rows() if r["what"] == f"{name} cold" and r["count"] == str(n))
    grid, block, shared = (int(row[one]) for one in ("grid", "threads", "bytes"))
    arrays = np.zeros(n, np.float32), np.zeros(n, np.float32)
    found = gpusim.predict(source(measured=True)[name][grid, block, 0, shared], *arrays, n)
    assert found.time_us == pytest.approx(float(row["value"]), rel=0.1)


def measured(what: str, **chosen: int) -> float:
    """Return the value measured of a thing."""
    return next(
        float(row["value"])
        for row in rows()
        if row["what"] == what and all(row[name] == str(n) for name, n in chosen.items())
    )


def test_the_numbers_of_bulk_copies_are_those_measured() -> None:
    """By differences between many and few copies, arrivals and bytes."""
    loads = [measured("loads in flight warm", bytes=16, count=n) for n in (16, 64)]
    assert (loads[1] - loads[0]) / 48 == pytest.approx(H200.interval_cycles.bulk_load, abs=1)
    stores = [measured("stores in flight", bytes=16, count=n) for n in (16, 64)]
    assert (stores[1] - stores[0]) / 48 == pytest.approx(H200.interval_cycles.bulk_store, abs=1)
    all_arrive = [measured("all arrive and wait", threads=n) for n in (256, 1024)]
    each = (all_arrive[1] - all_arrive[0]) / 24
    assert each == pytest.approx(H200.interval_cycles.mbarrier_arrival, abs=0.1)
    kept = [row for row in rows_of(VALIDATE / "clusters.csv") if row["bytes"] in ("32768", "65536")]
    for what, rate in (
        ("bulk copy to shared memory, warm L2", H200.bandwidth.bulk_load_bytes_per_cycle),
        ("bulk copy to global memory, read", H200.bandwidth.bulk_store_bytes_per_cycle),
    ):
        small, large = (float(row["value"]) for row in kept if row["what"] == what)
        assert 32768 / (large - small) == pytest.approx(rate, rel=0.01)
