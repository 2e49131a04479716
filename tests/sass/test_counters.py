"""nvcc's own code counts what Nsight Compute counted on an H200, as integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusim.errors import GpusimError
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_file, cuda_source
from gpusim.tracing.trace import trace
from validate import counted, files, twins
from validate.arrays import random_data
from validate.records import Counts

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

MEASURED = files.load("h200").counters
# A kernel of each file that has shared memory, loops, divergence, shuffles, or wide loads.
SAMPLE = {("reduce2", 64), ("reduce6", 256), ("reduction1", 128), ("step5", 64), ("kernel4", 512)}
LEAST_REGISTERS = 16  # that Nsight Compute reports


def compared(counts: Counts) -> tuple[list[str], int]:
    """Return the metrics that are not equal, and how many results are wrong."""
    setup = counts.case.setups(counts.entry)[0]
    twin = twins.twin_of(setup)
    call = setup.call(random_data(np.random.default_rng(1), setup.n, setup.dtype))
    kernel = cuda_file(twins.FOLDER / twin.file)[twin.expression]
    launch = call.launch
    made = trace(
        kernel[launch.grid, launch.block, 0, launch.dynamic_shared_bytes], *call.arguments
    ).counters
    noise = counted._noise(counts.values, made)
    wrong = [
        f"{counts.kernel} {counts.case.block} {metric.counter}"
        for metric in counted.metrics()
        if metric.name in counts.values
        and counts.values[metric.name] - noise * metric.is_noisy != made[metric.counter]
    ]
    return wrong, call.wrong()


@pytest.mark.parametrize(
    "counts",
    [one for one in MEASURED if (one.kernel, one.case.block) in SAMPLE and not one.case.grid],
    ids=lambda counts: counts.kernel,
)
def test_counters_of_kernels_of_each_kind_equal_nsights(counts: Counts) -> None:
    wrong, results = compared(counts)
    assert wrong == []
    assert (results > 0) == (counts.entry.defect is not None)


@pytest.mark.slow
def test_counters_of_all_launches_that_were_counted_equal_nsights() -> None:
    wrong: list[str] = []
    refused = []
    for counts in MEASURED:
        try:
            wrong += compared(counts)[0]
        except GpusimError as error:
            refused.append((counts.kernel, str(error)))
    assert wrong == []
    # It reads in front of its array, which is a fault here and luck on the hardware.
    assert {kernel for kernel, _ in refused} == {"kogge_stone_scan"}


COPIED = """
__global__ void copied(const float4 *x, float4 *y) {
    __shared__ float4 held[32];
    unsigned place = (unsigned)__cvta_generic_to_shared(&held[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(&x[threadIdx.x]));
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    y[threadIdx.x] = held[31 - threadIdx.x];
}
"""


def test_copies_to_shared_memory_are_requests_and_no_loads_or_stores() -> None:
    """A warp copies 512 bytes, 16 sectors.

    On an H200 `tiles_ahead` has all its requests and sectors, no instructions and no wavefronts.
    """
    x, y = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    made = trace(cuda_source(COPIED)["copied"][1, 32], x, y).counters
    loads = {name: made[f"global_load_{name}"] for name in ("instructions", "requests", "sectors")}
    assert loads == {"instructions": 0, "requests": 1, "sectors": 16}
    assert (made["shared_store_instructions"], made["shared_store_wavefronts"]) == (0, 0)
    assert made["global_store_instructions"] == 1
    assert (y.reshape(32, 4) == x.reshape(32, 4)[::-1]).all()


def test_registers_are_those_that_the_compiler_gave() -> None:
    counts = next(one for one in MEASURED if one.kernel == "kernel2")
    twin = twins.twin_of(counts.case.setups(counts.entry)[0])
    code = cuda_file(Path(twins.FOLDER) / twin.file)[twin.expression]
    assert code.registers("9.0") == counts.values["launch__registers_per_thread"] == 29


def test_in_nvccs_own_code_counters_that_follow_the_code_are_exact() -> None:
    text = "__global__ void fill(int *y) { y[blockIdx.x * blockDim.x + threadIdx.x] = 7; }"
    y = np.zeros(256, np.int32)
    made = trace(cuda_source(text)["fill"][4, 64], y)
    document = made.to_dict()
    kinds = {name: counter["kind"] for name, counter in document["counters"].items()}
    assert kinds["instructions"] == kinds["branches"] == "exact"
    assert kinds["shared_atomic_replays"] == "model"
    assert document["generator"].startswith("NVRTC 13.")
    assert (y == 7).all()
