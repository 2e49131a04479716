"""Times with nvcc's code: what follows from operands and from the stall counts in the code."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.gpu import device
from gpusim.prediction.predict import predict
from gpusim.sass import wheels
from gpusim.sass.cubin import KernelCode
from gpusim.sass.kernels import cuda_source

CHASE = """
__global__ void chase(int *y) {
    __shared__ unsigned char next[256];
    next[threadIdx.x] = threadIdx.x * 7 + 3;
    __syncthreads();
    unsigned i = threadIdx.x;
    #pragma unroll
    for (int k = 0; k < 64; k++) i = next[i];
    y[threadIdx.x] = i;
}
"""


def test_a_stall_count_is_four_bits_of_an_instruction() -> None:
    words = [13 << 105 | 1 << 109, (1 << 105) - 1, 15 << 105]
    text = b"".join(word.to_bytes(16, "little") for word in words)
    kernel = KernelCode("k", 16, (), 0, 0, text=text)
    assert [kernel.stall_count(address) for address in (0, 16, 32)] == [13, 0, 15]


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_loads_whose_addresses_are_loaded_come_one_after_the_other() -> None:
    y, gpu = np.zeros(32, np.int32), device.load("h200")
    made = predict(cuda_source(CHASE)["chase"][1, 32], y, device=gpu)
    assert made.cycles > 64 * gpu.latency_cycles.shared_load


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_a_program_has_the_counts_that_the_compiler_wrote() -> None:
    """13 cycles behind what decides about a guard, 5 behind an exit, 1 at least behind any."""
    text = "__global__ void f(int *y, int n) { int i = threadIdx.x; if (i < n) y[i] += 3; }"
    arguments = np.zeros(32, np.int32), 32
    prepared = predict(cuda_source(text)["f"][1, 32], *arguments).prepared
    rows = [row for row in prepared.program.instructions if row.text]
    counts = {row.text.split()[0]: row.stall_cycles for row in rows}
    assert counts["ISETP.GE.AND"] == 13
    assert counts["EXIT"] == 5
    assert all(1 <= row.stall_cycles <= 15 for row in rows)
