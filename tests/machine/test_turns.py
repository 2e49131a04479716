"""Whose turn it is: warps that take ways of their own run together again where these meet."""

from __future__ import annotations

from collections import Counter

import numpy as np

from gpusim import cuda
from gpusim.launch.events import Observer, Step
from gpusim.tracing.trace import trace


class Turns(Observer):
    """Counts the steps of a launch, and the instructions of each warp."""

    def __init__(self) -> None:
        self.steps = 0
        self.by_warp: Counter[int] = Counter()

    def step(self, step: Step) -> None:
        """Count a step for those that run it."""
        self.steps += 1
        self.by_warp.update(step.rows.tolist())


@cuda.jit
def each_its_own(often, out, n):
    warp = cuda.threadIdx.x // 32
    total = out[cuda.threadIdx.x]
    for i in range(n):
        for k in range(often[8 * i + warp]):
            total = (total * 3 + often[k]) % 1001
    out[cuda.threadIdx.x] = total


def some_often(n: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 6, 8 * n).astype(np.int32)


def test_warps_that_part_in_each_iteration_of_a_long_loop_come_together_again() -> None:
    turns = Turns()
    often, out = some_often(300), np.ones(256, np.int32)
    trace(each_its_own[1, 256], often, out, 300, observers=[turns], code="lowering")
    longest = max(turns.by_warp.values())
    assert turns.steps < 3 * longest


@cuda.jit
def answered(often, out, flags, n):
    warp = cuda.threadIdx.x // 32
    if warp > 0:
        total = out[cuda.threadIdx.x]
        for i in range(n):
            for k in range(often[8 * i + warp]):
                total = (total * 3 + often[k]) % 1001
        out[cuda.threadIdx.x] = total
    place = 0
    while warp == 0 and cuda.atomic.add(flags, place, 0) == 0:
        place = 1 - place
    if warp > 0:
        cuda.atomic.add(flags, 0, 1)
        cuda.atomic.add(flags, 1, 1)


def test_who_waits_behind_for_one_that_is_ahead_is_answered_in_the_end() -> None:
    # That it waits does not show: it looks at another place each time.
    flags, out = np.zeros(2, np.int32), np.ones(256, np.int32)
    trace(answered[1, 256], some_often(200), out, flags, 200, code="lowering")
    assert flags.tolist() == [224, 224]
