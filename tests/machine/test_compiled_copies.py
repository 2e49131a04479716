"""Asynchronous copies to shared memory in compiled code: as in NumPy, also where nobody waits."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from evaluators import COMPILED, INTERPRETED, Went, runs_in

from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run
from gpusim.machine.warps import copies
from gpusim.prediction.streams import Recorder, TouchRecorder
from gpusim.prediction.streams.stretches import COLUMNS
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source
from gpusim.tracing.counting import Counters

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
HOPPER = ComputeCapability(9, 0)
KERNELS = """
#define COPY(to, from, bytes) \\
    asm volatile("cp.async.ca.shared.global [%0], [%1], " #bytes ";" \\
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
extern "C" __global__ void pipeline(int *o, const int *a, int n) {
    __shared__ int s[4][64][4];
    int t = threadIdx.x, total = 0, i = blockIdx.x * 64 + t;
    for (int k = 0; k < 3; k++) { COPY(s[k][t], a + 4 * (k * 64 + t), 16); COMMIT; }
    for (int k = 0; k < n; k++) {
        WAIT(2);
        __syncthreads();
        int *mine = s[k % 4][(t * 5 + 1) % 64];
        total += mine[0] + 3 * mine[1] + 5 * mine[2] + 7 * mine[3];
        if (k + 3 < n) COPY(s[(k + 3) % 4][t], a + 4 * ((k + 3) * 64 + t), 16);
        COMMIT;
    }
    o[i] = total + blockIdx.x;
}
// Each thread reads its own place before, between and behind its waits; some never wait.
extern "C" __global__ void early(int *o, const int *a, const int *who) {
    __shared__ int s[3][96];
    int t = threadIdx.x, total = 0;
    #pragma unroll 1
    for (int turn = 0; turn < 5; turn++) {
        s[0][t] = s[1][t] = s[2][t] = turn;
        COPY(&s[0][t], a + t, 4);
        if (who[t] & 1) { COMMIT; if (who[t] & 2) COPY(&s[1][t], a + 96 + t, 4); }
        COMMIT;
        if (t % 3) COPY(&s[2][t], a + 192 + t, 4);
        COMMIT;
        total = total * 31 + s[0][t] + 2 * s[1][t] + 3 * s[2][t];
        if (who[t] & 4) { WAIT(1); total = total * 31 + s[0][t] + 2 * s[1][t] + 3 * s[2][t]; }
        if (who[t] & 8) { WAIT(0); total = total * 31 + s[0][t] + 2 * s[1][t] + 3 * s[2][t]; }
    }
    o[t] = total;
    if (who[t] & 16) return;
    WAIT(0);
    o[96 + t] = s[0][t] + 2 * s[1][t] + 3 * s[2][t];
}
extern "C" __global__ void never(int *o, const int *a, int n) {
    __shared__ int s[32];
    for (int k = 0; k < n; k++) COPY(&s[threadIdx.x], a + threadIdx.x, 4);
    s[threadIdx.x] = n;
    COMMIT;
    o[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];
}
"""


@functools.cache
def code() -> CodeFile:
    return cuda_source(KERNELS)


def evaluated(
    name: str, grid: int, block: int, given: tuple[Any, ...], evaluator: str = COMPILED
) -> tuple[list[Any], Counters, bool]:
    """Return the arguments after a launch, its counters, and whether it ran in compiled code."""
    held = [one.copy() if isinstance(one, np.ndarray) else one for one in given]
    counters, went = Counters(HOPPER), Went()
    configured = code()[name][grid, block]
    with pytest.MonkeyPatch.context() as patched:
        runs_in(patched, evaluator)
        run(configured.kernel.prepare(configured.launch, held, HOPPER), observers=(counters, went))
    return held, counters, went.over


def agree(name: str, grid: int, block: int, *given: Any) -> list[Any]:
    """Fail if compiled code leaves or counts anything differently; return what it leaves."""
    numpys, counted, went = evaluated(name, grid, block, given, INTERPRETED)
    assert went
    compiled, sums, went = evaluated(name, grid, block, given)
    assert went
    for one, other in zip(numpys, compiled, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(counted.by_pc, sums.by_pc)
    return compiled


def streams(name: str, grid: int, block: int, given: tuple[Any, ...], evaluator: str) -> Any:
    """Return the streams of a launch's blocks, and whether it ran in compiled code."""
    went, configured = Went(), code()[name][grid, block]
    with pytest.MonkeyPatch.context() as patched:
        runs_in(patched, evaluator)
        held = [one.copy() if isinstance(one, np.ndarray) else one for one in given]
        prepared = configured.kernel.prepare(configured.launch, held, HOPPER)
        recorder, touches = Recorder(prepared), TouchRecorder(prepared)
        run(prepared, observers=(recorder, touches, went))
    touched = {
        block: [getattr(one, column).tolist() for column in COLUMNS]
        for block, one in touches.stretches.items()
    }
    return {block: one.key for block, one in recorder.streams.items()}, touched, went.over


@pytest.mark.parametrize(("name", "block"), [("pipeline", 64), ("early", 96)])
def test_steps_of_copies_are_recorded_alike(name: str, block: int) -> None:
    last = 12 if name == "pipeline" else np.arange(96, dtype=np.int32) * 11 % 32
    given = np.zeros(192, np.int32), NUMBERS, last
    *numpys, _ = streams(name, 1, block, given, INTERPRETED)
    *compiled, went = streams(name, 1, block, given, COMPILED)
    assert went
    assert compiled == numpys


NUMBERS = np.arange(64 * 4 * 16, dtype=np.int32) * 7 % 1001


def test_a_pipeline_of_copies_leaves_and_counts_the_same() -> None:
    made = agree("pipeline", 3, 64, np.zeros(192, np.int32), NUMBERS, 12)
    # By hand: thread 0 sums the four words of place 1 in each of the twelve stages.
    words = NUMBERS[: 12 * 256].reshape(12, 64, 4)[:, 1]
    assert made[0][0] == (words * [1, 3, 5, 7]).sum()
    assert made[0][64] == made[0][0] + 1


def test_a_copy_lands_when_its_own_thread_waits_for_its_group() -> None:
    who = np.arange(96, dtype=np.int32) * 11 % 32
    made = agree("early", 1, 96, np.zeros(192, np.int32), NUMBERS, who)
    t = 0  # it waits for nothing before the end
    assert who[t] == 0
    total = 0
    for turn in range(5):
        total = total * 31 + 6 * turn
    assert made[0][t] == total
    assert made[0][96 + t] == NUMBERS[t] + 2 * 4 + 3 * 4


@pytest.mark.parametrize(("n", "over"), [(20, True), (copies.ENTRIES + 1, False)])
def test_more_copies_than_the_pool_has_entries_are_numpys(n: int, over: bool) -> None:
    # As many blocks as fill the pool several times: a block's copies are dropped at its end.
    grid = 300 if over else 1
    held, _, went = evaluated("never", grid, 32, (np.zeros(grid * 32, np.int32), NUMBERS, n))
    assert went == over
    assert (held[0] == n).all()
