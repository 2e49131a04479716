"""Headers that people include; of those that NVRTC refuses it gets the part that it takes."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

SUMS = """
#include <cstdint>
#include <cub/cub.cuh>
__global__ void sums(const int64_t *numbers, int64_t *sum) {
  using Reduce = cub::BlockReduce<int64_t, 64>;
  __shared__ typename Reduce::TempStorage storage;
  int64_t total = Reduce(storage).Sum(numbers[threadIdx.x]);
  if (threadIdx.x == 0) *sum = total;
}
"""


@pytest.mark.skipif(
    not any((folder / "cub/block/block_reduce.cuh").is_file() for folder in wheels.headers()),
    reason="nvidia-cuda-cccl carries CUB",
)
def test_all_of_cub_is_what_runs_within_a_kernel() -> None:
    """Beside <cstdint>, whose names CUB's own headers declare again."""
    numbers, total = np.arange(64, dtype=np.int64) << 40, np.zeros(1, np.int64)
    gpusim.trace(cuda_source(SUMS)["sums"][1, 64], numbers, total)
    assert total[0] == (64 * 63 // 2) << 40


NUMBERS = """
#include <limits>
#include <cassert>
__constant__ float infinite = INFINITY;
constexpr double turn = 2 * M_PI;
__global__ void numbers(float *x, double *y, long long *z) {
  x[0] = -infinite, x[1] = NAN, x[2] = std::numeric_limits<float>::lowest();
  x[3] = std::numeric_limits<float>::epsilon(), x[4] = std::numeric_limits<float>::infinity();
  y[0] = turn, y[1] = std::numeric_limits<double>::max();
  z[0] = std::numeric_limits<int>::min(), z[1] = std::numeric_limits<long long>::max();
}
"""


def test_numbers_that_nvcc_has_from_the_host_are_there() -> None:
    x, y, z = np.zeros(5, np.float32), np.zeros(2), np.zeros(2, np.int64)
    cuda_source(NUMBERS)["numbers"][1, 1](x, y, z)
    of_float = np.finfo(np.float32)
    assert x[[0, 2, 3, 4]].tolist() == [-np.inf, of_float.min, of_float.eps, np.inf]
    assert np.isnan(x[1])
    assert y.tolist() == [2 * np.pi, np.finfo(np.float64).max]
    assert z.tolist() == [-(2**31), 2**63 - 1]
