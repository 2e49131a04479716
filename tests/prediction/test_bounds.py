"""Lower bounds: no predicted duration is shorter than one of them."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from random_kernels import random_kernel
from strategies import ENTRIES

from gpusim import catalogue, cuda
from gpusim.catalogue import Request
from gpusim.cuda import Kernel
from gpusim.errors import GpusimError
from gpusim.gpu import device
from gpusim.launch.arguments import array_spec
from gpusim.prediction.predict import predict
from gpusim.prediction.records import Prediction
from gpusim.prediction.sweeps.jobs import catalogue_job

SOME = ("h200", "rtx3080", "gtx1650", "k40m")
SIZES = (2**16, 2**20, 2**24)


@cuda.jit
def fill(out):
    out[cuda.grid(1)] = 1


@cuda.jit
def copy(values, out):
    out[cuda.grid(1)] = values[cuda.grid(1)]


@cuda.jit
def spaced(out):
    out[8 * cuda.grid(1)] = 1


@cuda.jit
def counted(out):
    cuda.atomic.add(out, cuda.grid(1) % 32, 1)


@cuda.jit
def conflicting(out):
    values = cuda.shared.array(1024, "int32")
    for k in range(8):
        values[(cuda.threadIdx.x * 32 + k) % 1024] = k
    cuda.syncthreads()
    out[cuda.grid(1)] = values[cuda.threadIdx.x]


@cuda.jit
def first_block_works_longest(out):
    rounds = 1
    if cuda.blockIdx.x == 0:
        rounds = 64
    for _ in range(rounds):
        out[cuda.grid(1)] += 1


KERNELS = {
    kernel.__name__: kernel
    for kernel in (fill, copy, spaced, counted, conflicting, first_block_works_longest)
}


@cache
def predicted(kernel: Kernel, n: int, name: str) -> Prediction:
    arrays = [array_spec(8 * n, "int32")] * (2 if kernel is copy else 1)
    return predict(kernel[n // 256, 256], *arrays, device=name, code="lowering")


def bound_us(found: Prediction, name: str) -> float:
    return next(bound.time_us for bound in found.bounds if bound.name == name)


def require_no_longer_bound(found: Prediction) -> None:
    longest = found.lower_bounds[0]
    assert longest.time_us <= found.time_us, f"{longest} of {found}"


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_bound_is_longer_than_the_duration(kernel: str, name: str) -> None:
    require_no_longer_bound(predicted(KERNELS[kernel], 2**22, name))


@pytest.mark.parametrize("seed", range(6))
def test_no_bound_of_a_random_kernel_is_longer_than_its_duration(seed: int) -> None:
    made = random_kernel(seed)
    name = SOME[seed % len(SOME)]
    try:
        found = predict(made.kernel[made.grid, made.block], *made.arguments(), device=name)
    except GpusimError:
        pytest.skip("it has no time")
    require_no_longer_bound(found)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_no_bound_of_the_catalogue_is_longer_than_the_duration(entry: catalogue.Entry) -> None:
    """Of every kernel on every GPU at three sizes, around its own where that is a small one."""
    own = entry.default_n
    for n in SIZES if own >= SIZES[0] else (own // 4, own, 4 * own):
        job = catalogue_job(Request(entry.name, n=n)).in_code("lowering")
        for name in device.names():
            with contextlib.suppress(GpusimError):  # blocks beyond the GPU's, faults of the kernel
                for found in job.on(name).predictions:
                    require_no_longer_bound(found)


def test_stores_take_the_time_of_dram_though_blocks_end_before_them() -> None:
    """Blocks of an RTX 3080 end every 156 cycles; DRAM takes 166 for the stores of each."""
    found = predicted(fill, 2**26, "rtx3080")
    blocks_us = 2**18 / 68 * 156 / found.device.gpu.sm_clock_mhz
    assert bound_us(found, "DRAM") == pytest.approx(371.8, rel=0.01)
    assert blocks_us == pytest.approx(351, rel=0.01)
    assert found.time_us == pytest.approx(371.8 + 2.5, rel=0.01)


def test_a_block_more_of_stores_takes_its_share_of_dram() -> None:
    small, large = (predicted(fill, n, "rtx3080") for n in (2**25, 2**26))
    more = bound_us(large, "DRAM") - bound_us(small, "DRAM")
    assert large.time_us - small.time_us == pytest.approx(more, rel=0.01)


def test_further_wavefronts_of_a_store_are_bound_by_their_own_interval() -> None:
    """Eight stores of 32 wavefronts and a load by 8 warps, two blocks of them on an SM."""
    gpu = device.load("h200")
    slow = replace(gpu, interval_cycles=replace(gpu.interval_cycles, shared_wavefront=4))
    found = predict(
        conflicting[264, 256], array_spec(264 * 256, "int32"), device=slow, code="lowering"
    )
    cycles = 2 * 8 * (8 * (4 + 31 * 1) + 4)
    assert bound_us(found, "shared memory") == pytest.approx(cycles / gpu.gpu.sm_clock_mhz)


def test_latency_of_unequal_blocks_is_that_of_the_shortest_in_turn_or_the_longest_alone() -> None:
    """With 64 rounds in the first block of many the others decide, with few the first one."""
    many = predicted(first_block_works_longest, 2**22, "h200")
    few = predicted(first_block_works_longest, 2**14, "h200")
    alone = predict(
        first_block_works_longest[1, 256], array_spec(256, "int32"), device="h200", code="lowering"
    )
    assert bound_us(many, "latency") < many.time_us
    assert bound_us(few, "latency") == pytest.approx(bound_us(alone, "latency"), rel=0.05)
    assert np.ceil(many.waves) > 15
