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
