"""Counters that were read off hardware, equal as integers.

H200, CUDA 13.0, nvcc -O3 -arch=sm_90, Nsight Compute, 2^20 ints; load wavefronts after the
arbitration noise is taken off. RTX 4090 and nvprof where it says so.
"""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import catalogue, cuda
from gpusim.tracing.records import Trace

NAMES = (
    "instructions",
    "branches",
    "shared_load_instructions",
    "shared_store_instructions",
    "shared_store_wavefronts",
    "shared_store_bank_conflicts",
    "global_load_requests",
)
H200 = {
    ("reduce1", 128): (7_241_728, 262_144, 466_944, 262_144, 221_184, 0, 32_768),
    ("reduce1", 1024): (9_936_896, 360_448, 656_384, 360_448, 228_352, 0, 32_768),
    ("reduce2", 128): (4_030_464, 262_144, 466_944, 262_144, 221_184, 122_880, 32_768),
    ("reduce2", 1024): (5_349_376, 360_448, 656_384, 360_448, 228_352, 158_720, 32_768),
    ("reduce3", 128): (3_145_728, 262_144, 466_944, 262_144, 98_304, 0, 32_768),
    ("reduce3", 1024): (4_071_424, 360_448, 656_384, 360_448, 69_632, 0, 32_768),
    ("reduce4", 128): (1_605_632, 131_072, 233_472, 131_072, 49_152, 0, 32_768),
    ("reduce4", 1024): (2_068_480, 180_224, 328_192, 180_224, 34_816, 0, 32_768),
    ("reduce5_fixed", 128): (786_432, 49_152, 86_016, 57_344, 49_152, 0, 32_768),
    ("reduce5_fixed", 1024): (1_212_416, 98_304, 137_728, 84_992, 34_816, 0, 32_768),
    ("reduce6", 128): (643_072, 16_384, 86_016, 57_344, 49_152, 0, 32_768),
    ("reduce6", 1024): (834_048, 16_384, 137_728, 84_992, 34_816, 0, 32_768),
    ("reduce7", 128): (856_064, 49_152, 86_016, 73_728, 65_536, 0, 32_768),
    ("reduce7", 1024): (1_047_040, 49_152, 137_728, 101_376, 51_200, 0, 32_768),
}


def traced(name: str, block: int, n: int = 2**20) -> Trace:
    call = catalogue.find(name).call(catalogue.sample(n, "int32"), block=block)
    trace = gpusim.trace(call.configured, *call.arguments)
    assert call.wrong() == 0
    return trace


@pytest.mark.parametrize(("name", "block"), list(H200))
def test_counters_equal_those_of_an_h200(name: str, block: int) -> None:
    trace = traced(name, block)
    assert tuple(trace.counters[counter] for counter in NAMES) == H200[name, block]
    assert trace.counters["divergent_branches"] == 0


def test_load_wavefronts_and_sectors_equal_those_of_an_h200() -> None:
    first, second = traced("reduce1", 128).counters, traced("reduce2", 128).counters
    assert first["shared_load_wavefronts"] == second["shared_load_wavefronts"] == 385_024
    assert (first["global_load_sectors"], first["global_load_requests"]) == (131_072, 32_768)


def test_doubling_strides_conflict_35_times_a_block_of_256() -> None:
    """nvprof, 32 Mi ints: 4,587,520 on shared stores (PaddleJitLab CUDATutorial, chapter 9)."""
    trace = traced("reduce2", 256, 2**16)
    assert {block["shared_store_bank_conflicts"] for block in trace.blocks} == {35}
    assert 35 * (2**25 // 256) == 4_587_520


def test_sequential_addressing_has_no_conflicts() -> None:
    assert traced("reduce3", 256, 2**16).counters["shared_store_bank_conflicts"] == 0


def test_without_optimisation_96_branches_diverge_in_a_block_of_512() -> None:
    """RTX 4090, nvcc -G, Nsight Compute: 196,608 in 2,048 blocks, in place in global memory."""

    @cuda.jit
    def in_place(numbers, partials):
        tid = cuda.threadIdx.x
        start = cuda.blockIdx.x * cuda.blockDim.x
        stride = 1
        while stride < cuda.blockDim.x:
            if tid % (2 * stride) == 0:
                numbers[start + tid] += numbers[start + tid + stride]
            cuda.syncthreads()
            stride *= 2
        if tid == 0:
            partials[cuda.blockIdx.x] = numbers[start]

    numbers, partials = np.arange(4 * 512, dtype=np.int32), np.zeros(4, dtype=np.int32)
    expected = numbers.reshape(4, 512).sum(axis=1)
    trace = gpusim.trace(in_place[4, 512], numbers, partials, level="O0")
    assert partials.tolist() == expected.tolist()
    assert {block["divergent_branches"] for block in trace.blocks} == {96}
    assert trace.counters["source_divergent_branches"] == trace.counters["divergent_branches"]
    assert 96 * 2048 == 196_608


@pytest.mark.parametrize("name", ["reduce5", "step2", "step5"])
def test_kernels_that_are_wrong_on_an_h200_are_wrong_here(name: str) -> None:
    for block in (64, 128, 256, 1024):
        call = catalogue.find(name).call(np.arange(1, 2**14 + 1, dtype=np.int32), block=block)
        call.run()
        assert call.wrong() == len(call.result)


@pytest.mark.parametrize("name", ["reduce5", "step5"])
def test_a_missing_volatile_hides_without_optimisation(name: str) -> None:
    call = catalogue.find(name).call(catalogue.sample(2**14, "int32"), block=128)
    gpusim.trace(call.configured, *call.arguments, level="O0")
    assert call.wrong() == 0
