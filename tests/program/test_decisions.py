"""Parameters that decide neither control flow nor addresses."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import ComputeCapability
from gpusim.codegen.programs import prepare
from gpusim.program.decisions import undecisive_parameters
from gpusim.sass import wheels

TEXT = """
__global__ void kernel(const float *x, float *y, int n, float factor, float divisor, int width,
                       long long unused, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < turns; k++) sum += factor;
    if (i < n) y[i * width] = sum * x[i] / divisor;
}
"""
FACTOR, DIVISOR, UNUSED = 20, 24, 32  # offsets behind the first parameter


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_parameters_of_values_alone_decide_nothing() -> None:
    """A quotient's slow path, for unusual divisors, does not count."""
    arrays = np.ones((2, 64), np.float32)
    configured = gpusim.cuda_source(TEXT)["kernel"][1, 64]
    arguments = (*arrays, 64, 2.0, 3.0, 1, 7, 2)
    program = prepare(configured, arguments, ComputeCapability(9, 0)).program
    assert program.layout is not None
    first = min(offset for _, offset, _ in program.layout.parameters)
    found = {offset - first for offset, _ in undecisive_parameters(program)}
    assert found == {FACTOR, DIVISOR, UNUSED, UNUSED + 4}
