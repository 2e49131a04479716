"""Exercises: right answers are right because a run gives them, wrong ones are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import cuda
from gpusim.errors import InputError
from gpusim.testing import EXERCISES, exercise, judged

# Worked out by hand.
NUMBERS = {
    # Strides 1 to 16 in both warps, then warp 0 at stride 32 and at the store.
    "divergent-executions": 12,
    "stride-6": 2,  # gcd(6, 32)
    "barriers-of-512": 10,  # 1 + log2(512)
    "sectors-of-reduce4": 32,  # 256 * 4 / 32
    "iterations-of-reduce7": 16,  # 65,536 / (2 * 16 * 128)
    "sectors-of-a-vector-load": 16,  # 32 * 16 / 32
    "barriers-of-a-scan": 16,  # 2 * log2(256)
    "sectors-of-tiles": 4096,  # 16 blocks, 4 tiles of 2 matrices, 16 rows of 2 sectors
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_right_if_a_run_gives_it(name: str) -> None:
    assert judged(name, NUMBERS[name])
    wrong = judged(name, NUMBERS[name] + 1)
    assert not wrong
    assert f"a run does not give {NUMBERS[name] + 1:,}" in str(wrong)
    assert "Hint: " in str(wrong)
    assert f"{NUMBERS[name]:,}" not in wrong.message.partition("Hint")[0].replace(
        f"{NUMBERS[name] + 1:,}", ""
    )


def test_saved_instructions_are_the_difference_of_two_runs() -> None:
    from gpusim import catalogue, trace

    counts = []
    for name in ("reduce5_fixed", "reduce6"):
        call = catalogue.find(name).call(catalogue.sample(512, "int32"), block=256)
        counts.append(trace(call.configured, *call.arguments).counters["instructions"])
    assert judged("instructions-saved", counts[0] - counts[1])
    assert not judged("instructions-saved", counts[0])


@cuda.jit
def last_warp(values: Any, out: Any) -> None:
    shared = cuda.shared.array(32, np.int32)
    tid = cuda.threadIdx.x
    shared[tid] = values[tid]
    cuda.syncwarp()
    distance = 16
    while distance > 0:
        if tid < distance:
            shared[tid] += shared[tid + distance]
        cuda.syncwarp()
        distance //= 2
    if tid == 0:
        out[0] = shared[0]


@cuda.jit
def racing_warp(values: Any, out: Any) -> None:
    shared = cuda.shared.array(32, np.int32)
    tid = cuda.threadIdx.x
    shared[tid] = values[tid]
    distance = 16
    while distance > 0:
        if tid < distance:
            shared[tid] += shared[tid + distance]
        distance //= 2
    if tid == 0:
        out[0] = shared[0]


@cuda.jit
def block_barrier(values: Any, out: Any) -> None:
    shared = cuda.shared.array(32, np.int32)
    shared[cuda.threadIdx.x] = values[cuda.threadIdx.x]
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        total = 0
        for lane in range(32):
            total += shared[lane]
        out[0] = total


@cuda.jit
def warp_maximum(values: Any, out: Any) -> None:
    most = values[cuda.threadIdx.x]
    distance = 16
    while distance > 0:
        most = max(most, cuda.shfl_xor_sync(0xFFFFFFFF, most, distance))
        distance //= 2
    out[cuda.threadIdx.x] = most


@cuda.jit
def maximum_by_memory(values: Any, out: Any) -> None:
    most = values[0]
    for lane in range(1, 32):
        most = max(most, values[lane])
    out[cuda.threadIdx.x] = most


@cuda.jit
def swizzled(source: Any, target: Any) -> None:
    tile = cuda.shared.array((32, 32), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
    tile[y, x ^ y] = source[row + y, column + x]
    cuda.syncthreads()
    target[column + y, row + x] = tile[x, x ^ y]


@cuda.jit
def conflicting(source: Any, target: Any) -> None:
    tile = cuda.shared.array((32, 32), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
    tile[y, x] = source[row + y, column + x]
    cuda.syncthreads()
    target[column + y, row + x] = tile[x, y]


@cuda.jit
def scattered(source: Any, target: Any) -> None:
    column, row = cuda.grid(2)
    target[column, row] = source[row, column]


@cuda.jit
def gathered(source: Any, target: Any) -> None:
    column, row = cuda.grid(2)
    target[row, column] = source[column, row]


@cuda.jit
def near_histogram(values: Any, out: Any) -> None:
    mine = cuda.shared.array(32, np.int32)
    tid = cuda.threadIdx.x
    if tid < 32:
        mine[tid] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, values[i], 1)
    cuda.syncthreads()
    if tid < 32:
        cuda.atomic.add(out, tid, mine[tid])


@cuda.jit
def far_histogram(values: Any, out: Any) -> None:
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(out, values[i], 1)


KERNELS = {
    "last-warp": last_warp,
    "warp-maximum": warp_maximum,
    "transposition": swizzled,
    "histogram": near_histogram,
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_right_by_its_results_a_check_and_its_counters(name: str) -> None:
    verdict = judged(name, KERNELS[name])
    assert verdict, verdict


@pytest.mark.parametrize(
    ("name", "kernel", "fault"),
    [
        ("last-warp", racing_warp, "gpusim check reports error: race between lanes"),
        ("last-warp", block_barrier, "waits at a barrier of the block"),
        ("last-warp", warp_maximum, "gpusim check reports error: an out-of-bounds access"),
        ("warp-maximum", last_warp, "the results are wrong"),
        ("warp-maximum", maximum_by_memory, "exchange values through memory"),
        ("transposition", conflicting, "its tile has bank conflicts"),
        ("transposition", scattered, "its stores are not coalesced"),
        ("transposition", gathered, "its loads are not coalesced"),
        ("histogram", far_histogram, "block 0 updates global memory 1,024 times"),
        ("histogram", 32, "the answer is a kernel, not int"),
        ("stride-6", last_warp, "the answer is a number of wavefronts"),
        ("stride-6", True, "the answer is a number of wavefronts"),
    ],
)
def test_a_wrong_answer_is_told_its_fault(name: str, kernel: Any, fault: str) -> None:
    verdict = judged(name, kernel)
    assert not verdict
    assert fault in verdict.message


def test_every_exercise_is_tried_here() -> None:
    assert {*NUMBERS, *KERNELS, "instructions-saved"} == set(EXERCISES)


def test_an_answer_is_printed_and_an_open_one_says_what_is_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exercise("stride-6", 2)
    exercise("stride-6", answer=...)
    exercise("last-warp")
    assert capsys.readouterr().out.splitlines() == [
        "stride-6: right: 2 wavefronts",
        "stride-6: give a number of wavefronts in place of ...",
        "last-warp: give a kernel in place of ...",
    ]


def test_an_unknown_exercise_is_a_clear_error() -> None:
    with pytest.raises(InputError, match="there is no exercise 'stride-7'; did you mean stride-6"):
        judged("stride-7", 1)
