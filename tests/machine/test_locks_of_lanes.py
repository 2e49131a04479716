"""Locks that all lanes of a warp take: the lane that holds one goes on while the others spin."""

from __future__ import annotations

import numpy as np
import pytest
from one_file import kernels

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

KERNEL = """__global__ void k(int *out, int *lock) {
    {BODY}
    __threadfence();
    out[0] += 1;
    __threadfence();
    atomicExch(lock, 0);
}
"""
# Ways to wait for the lock; on an H200 each ends with the sum of all threads.
WAITS = {
    "spins": "while (atomicCAS(lock, 0, 1)) {}",
    "sleeps": "while (atomicCAS(lock, 0, 1)) __nanosleep(100);",
    "sleeps_longer": """unsigned ns = 8;
    while (atomicCAS(lock, 0, 1)) { __nanosleep(ns); if (ns < 256) ns *= 2; }""",
    "never_alike": """unsigned ns = 8;
    while (atomicCAS(lock, 0, 1)) { __nanosleep(ns & 255); ns = ns * 1664525 + 1013904223; }""",
    "by_clock": """long long begin = clock64();
    while (atomicCAS(lock, 0, 1)) if (clock64() - begin > 1000) __nanosleep(50);""",
}


@pytest.mark.parametrize("wait", WAITS)
def test_every_lane_gets_the_lock(wait: str) -> None:
    kernel = kernels(KERNEL, tuple(WAITS.values()))[WAITS[wait]]
    out, lock = np.zeros(1, np.int32), np.zeros(1, np.int32)
    gpusim.trace(kernel[1, 12], out, lock)
    assert out.tolist() == [12]


@pytest.mark.parametrize("wait", ["sleeps", "by_clock"])
def test_a_lock_that_every_lane_gets_is_clean(wait: str) -> None:
    kernel = kernels(KERNEL, tuple(WAITS.values()))[WAITS[wait]]
    assert list(gpusim.check(kernel[1, 4], np.zeros(1, np.int32), np.zeros(1, np.int32))) == []


def test_a_lock_that_nobody_releases_is_waited_for_without_an_end() -> None:
    body = WAITS["sleeps"] + " return;"
    kernel = kernels(KERNEL, (body,))[body]
    found = gpusim.check(kernel[1, 4], np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert [one.rule for one in found.errors] == ["no-progress"]
