"""Kernels that never end are told so as soon as it shows, those that wait for others are not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.codegen.programs import prepare
from gpusim.cuda import Kernel
from gpusim.errors import KernelSourceError, NoProgressError
from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.streams import classify


@cuda.jit
def waits_for_a_flag(out):
    while out[0] == 0:
        pass


@cuda.jit
def flips(out):
    x = 0
    while x < 2:
        x = 1 - x


@cuda.jit
def spins_within_a_warp(out):
    while cuda.atomic.cas(out, 0, 0, 1) != 0:
        pass
    out[1] += 1
    cuda.atomic.exch(out, 0, 0)


@cuda.jit
def goes_round_at_a_barrier(out):
    while out[0] == 0:
        cuda.syncthreads()


@cuda.jit
def each_lane_in_its_own_way(out):
    x = cuda.threadIdx.x
    while x != 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1


@cuda.jit
def counts_for_ever(out):
    x = cuda.grid(1)
    while True:
        x += 1


@cuda.jit
def adds_up_nan(out):
    x = np.float32(out[0]) / 0
    while not x > 0:
        x += 1


ENDLESS = [
    waits_for_a_flag,
    flips,
    spins_within_a_warp,
    goes_round_at_a_barrier,
    each_lane_in_its_own_way,
    counts_for_ever,
    adds_up_nan,
]


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("kernel", ENDLESS)
def test_a_loop_that_nothing_can_end_is_found_long_before_the_step_limit(
    kernel: Kernel, level: str
) -> None:
    begin = time.process_time()
    with pytest.raises(NoProgressError, match="livelock: blocks 0 to 0 spin"):
        gpusim.trace(kernel[1, 64], np.zeros(64, np.int32), level=level)
    assert time.process_time() - begin < 5


def test_an_endless_loop_ends_a_prediction_as_well() -> None:
    for kernel in (waits_for_a_flag, counts_for_ever):
        with pytest.raises(NoProgressError, match="livelock"):
            gpusim.predict(kernel[2, 64], np.zeros(64, np.int32), device="h200")


@cuda.jit
def grows(out):
    x = 1.0
    while x > 0:
        x = x * 1.0000001 + 1.0


@cuda.jit
def grows_in_shared_memory(out):
    shared = cuda.shared.array(32, np.float64)
    x = 1.0 + cuda.threadIdx.x
    while x > 0:
        x = x * 1.0000001 + 1.0
        shared[cuda.threadIdx.x] = x


@cuda.jit
def leaps_through_memory(out):
    x = 1.0
    k = 1
    while x > 0:
        k = (k * 5 + 3) & 0xFFFFF
        out[(k * 7 + cuda.threadIdx.x) & 31] = k
        for _ in range(3):
            x = x * 1.0000001 + 1.0


GROWING = [grows, grows_in_shared_memory, leaps_through_memory]


@pytest.mark.parametrize("kernel", GROWING)
def test_a_prediction_keeps_little_of_a_loop_until_it_comes_to_the_step_limit(
    kernel: Kernel,
) -> None:
    """A few hundred bytes for what is new in an iteration, a few for what is not."""
    prepared = prepare(kernel[1, 32], (np.zeros(32, np.int32),), ComputeCapability(9, 0))
    with pytest.raises(NoProgressError):
        classify(prepared, step_limit=100)  # imports and compiles what every launch needs
    tracemalloc.start()
    try:
        with pytest.raises(NoProgressError, match="ran 10000 instructions without finishing"):
            classify(prepared, step_limit=10_000)
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("kernel", GROWING)
@pytest.mark.parametrize("command", ["trace", "predict"])
def test_an_endless_loop_that_computes_ends_within_60_seconds_and_300_megabytes(
    kernel: Kernel, command: str
) -> None:
    name, array = kernel.__name__, "out=int32[32]=zeros"
    arguments = [f"{__file__}:{name}", "--grid", "1", "--block", "32", "--arg", array]
    arguments += ["--code", "lowering"]  # nvcc removes loops that have no effect
    with subprocess.Popen(
        [sys.executable, "-m", "gpusim", command, *arguments], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 2
    ran = "512,000,000 iterations" if command == "trace" else "1000000 instructions"
    assert f"ran {ran} without finishing" in said
    assert used.ru_utime < 60
    assert used.ru_maxrss < 300_000


@cuda.jit
def searches(out, wanted):
    """A linear congruential generator goes through numbers until it comes to one."""
    x = np.uint32(1)
    steps = 0
    while x != wanted:
        x = x * np.uint32(1664525) + np.uint32(1013904223)
        steps += 1
    out[cuda.grid(1)] = steps


def number_after(steps: int) -> np.uint32:
    """Return the number of the generator after some steps from 1."""
    x = 1
    for _ in range(steps):
        x = (x * 1664525 + 1013904223) % 2**32
    return np.uint32(x)


def test_a_search_of_a_million_iterations_and_more_ends() -> None:
    out = np.zeros(32, np.int32)
    gpusim.trace(searches[1, 32], out, number_after(1_200_000))
    assert out.tolist() == [1_200_000] * 32


def test_blocks_may_spin_on_one_that_computes_for_long() -> None:
    """Nothing is stored meanwhile, but the registers of one block change."""

    @cuda.jit
    def kernel(flag, out, n):
        if cuda.blockIdx.x == 0:
            x = np.uint32(1)
            for _ in range(n):
                x = x * np.uint32(1664525) + np.uint32(1013904223)
            out[0] = x
            cuda.threadfence()
            cuda.atomic.exch(flag, 0, 1)
        else:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
            out[cuda.blockIdx.x] = out[0]

    out = np.zeros(8, np.uint32)
    gpusim.trace(kernel[8, 32], np.zeros(1, np.int32), out, 300_000, code="lowering")
    assert out.tolist() == [number_after(300_000)] * 8


def test_a_warp_beyond_the_limit_is_told_with_the_place_of_its_loop() -> None:
    """A limit of 1,000 lets compiled code go round 512 times as often."""
    first = searches.source.first_line
    lines = "|".join(map(str, range(first + 4, first + 8)))
    said = rf"ran 512,000 iterations .* in the loop at \S*test_progress.py:({lines})\. "
    with pytest.raises(NoProgressError, match=said):
        gpusim.trace(
            searches[1, 32], np.zeros(32, np.int32), number_after(600_000), step_limit=1000
        )


def test_a_state_that_comes_again_after_many_iterations_is_found() -> None:
    """Registers have a period of 300 iterations, and memory one of as many."""

    @cuda.jit
    def kernel(out):
        k = 0
        while out[33] == 0:
            k = (k + 1) % 300
            out[cuda.threadIdx.x] = k

    begin = time.process_time()
    with pytest.raises(NoProgressError):
        gpusim.trace(kernel[1, 32], np.zeros(34, np.int32), code="lowering", step_limit=50_000)
    assert time.process_time() - begin < 5


def test_blocks_that_wait_for_one_of_a_later_chunk_do_not_go_round_for_ever() -> None:
    """The first chunk comes to the same state again and again until the last block runs."""

    @cuda.jit
    def kernel(flag, out):
        if cuda.blockIdx.x == cuda.gridDim.x - 1:
            total = 0
            for i in range(3000):
                total += out[i % 4]
            flag[0] = total + 1
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        cuda.atomic.add(out, 4, 1)

    flag, out = np.zeros(1, np.int32), np.zeros(5, np.int32)
    gpusim.trace(kernel[4, 32], flag, out, blocks_per_chunk=1)
    assert out[4] == 128


def test_a_long_loop_that_ends_is_let_go() -> None:
    @cuda.jit
    def kernel(out):
        x = np.uint32(1)
        steps = 0
        while steps < 8000:
            x = x * np.uint32(1664525) + np.uint32(1013904223)
            steps += x & 1
        out[0] = steps

    out = np.zeros(1, np.int32)
    kernel[1, 32](out)
    assert out[0] == 8000


def test_local_arrays_have_the_room_that_a_gpu_has() -> None:
    @cuda.jit
    def fits(out):
        local = cuda.local.array(131072, np.int32)
        local[0] = 1
        out[0] = local[0]

    @cuda.jit
    def does_not_fit(out):
        local = cuda.local.array(131073, np.int32)
        local[0] = 1
        out[0] = local[0]

    out = np.zeros(1, np.int32)
    fits[2, 32](out)
    assert out[0] == 1
    with pytest.raises(KernelSourceError, match="take 524292 bytes; a GPU has at most 524288"):
        does_not_fit[1, 32](out)
