"""A check of warps that wait for ever ends soon, and names what it has found until then."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.checking.checker import Checker
from gpusim.launch.events import Step
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

# The consumer's second warp never waits for a filled buffer: it is ahead of the producer, whose
# last wait for an empty one finds no arrival left.
WITHOUT_WAIT = """#include <cuda/barrier>
__global__ void k(const float *x, float *y, int steps)
{
    __shared__ float s[2][32];
    using bar = cuda::barrier<cuda::thread_scope_block>;
    __shared__ bar ready[2], filled[2];
    int t = threadIdx.x;
    if (t < 2) { init(&ready[t], 64); init(&filled[t], 64); }
    __syncthreads();
    if (t < 32) {
        for (int j = 0; j < steps; j++) {
            ready[j & 1].arrive_and_wait();
            s[j & 1][t] = x[j * 32 + t];
            (void)filled[j & 1].arrive();
        }
    } else {
        (void)ready[0].arrive();
        (void)ready[1].arrive();
        float sum = 0;
        for (int j = 0; j < steps; j++) {
            (void)filled[j & 1].arrive();
            sum += s[j & 1][63 - t];
            (void)ready[j & 1].arrive();
        }
        y[t - 32] = sum;
    }
}"""


def test_a_consumer_without_a_wait_is_a_race_though_the_producer_never_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = 0
    step = Checker.step

    def counted(self: Checker, one: Step) -> None:
        nonlocal steps
        steps += 1
        step(self, one)

    monkeypatch.setattr(Checker, "step", counted)
    arrays = np.zeros(512, np.float32), np.zeros(32, np.float32)
    report = gpusim.check(gpusim.cuda_source(WITHOUT_WAIT)["k"][1, 64], *arrays, 16)
    assert {one.rule for one in report.errors} == {"shared-race", "no-progress"}
    assert steps < 200_000  # not the million turns of a launch without a check
