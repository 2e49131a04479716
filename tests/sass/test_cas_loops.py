"""Floats added in shared memory: nvcc's code swaps, and goes round until all lanes are through."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source
from gpusim.tracing.trace import trace

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

SOURCE = """
__global__ void add_up(const float *x, float *y, int words) {
    __shared__ float sums[32];
    if (threadIdx.x < 32) sums[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&sums[threadIdx.x % words], x[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x < words) y[threadIdx.x] = sums[threadIdx.x];
}
"""


def swaps(x: np.ndarray, words: int) -> int:
    """Return how many ATOMS.CAST.SPIN a block's warps run for a sum in so many words."""
    y = np.zeros(words, dtype=np.float32)
    launch = cuda_source(SOURCE)["add_up"][1, len(x)]
    made = trace(launch, x, y, np.int32(words))
    np.testing.assert_array_equal(y, x.reshape(-1, words).sum(axis=0))
    return made.counters["shared_atomics"]


@pytest.mark.parametrize("value", [0, 1])
def test_a_swap_is_tried_for_one_lane_of_each_word(value: int) -> None:
    """Also where all lanes would find what they expect: zeros change nothing."""
    x = np.full(32, value, dtype=np.float32)
    assert [swaps(x, words) for words in (1, 4, 32)] == [32, 8, 1]


def test_of_warps_that_swap_together_the_oldest_comes_first() -> None:
    """The second warp goes round in vain while the first one does, 32 times, then as often."""
    assert swaps(np.ones(64, dtype=np.float32), 1) == 32 + 64


def test_more_than_eight_warps_of_a_block_spin_in_two_halves() -> None:
    """A warp of each half gets through in a turn, but the first, which all have loaded for."""
    of_a_half = 32 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8)
    assert swaps(np.ones(16 * 32, dtype=np.float32), 1) == 2 * of_a_half + 8


SEVERAL = """
__global__ void add_four(float *y) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    for (int k = 0; k < 4; k++) atomicAdd(&sum, 1.0f);
    __syncthreads();
    if (threadIdx.x == 0) y[0] = sum;
}
"""


@pytest.mark.parametrize(
    ("fast", "warps", "measured"),
    [
        ("0", 2, 511), ("1", 1, 128), ("1", 2, 511), ("1", 4, 2042), ("1", 8, 7648),
        pytest.param("0", 8, 7648, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_warps_in_different_loops_make_each_other_fail(
    fast: str, warps: int, measured: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop that is written out four times, each warp in one of them: swaps on an H200."""
    monkeypatch.setenv("GPUSIM_FAST", fast)
    y = np.zeros(1, np.float32)
    made = trace(cuda_source(SEVERAL)["add_four"][1, 32 * warps], y)
    assert y[0] == 4 * 32 * warps
    assert made.counters["shared_atomics"] == pytest.approx(measured, rel=0.15)
