"""Bytes of the stack that registers are spilled to, in nvcc's code."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.errors import MissingElementsError
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
CODE = """
__global__ void __launch_bounds__(512, 4) spills(const INDEX *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    INDEX c[40];
#pragma unroll
    for (int k = 0; k < 40; k++) c[k] = x[(i + k * 256) % n];
    float s = 0;
    for (int r = 0; r < 2; r++) {
#pragma unroll
        for (int k = 0; k < 40; k++) { c[k] = c[k] * c[(k + 7) % 40] + 1; s += c[k]; }
    }
    y[INDEXED] = s;
}
"""


def predicted(element: str, indexed: str) -> gpusim.Prediction:
    names = f"INDEX={element}", f"INDEXED={indexed}"
    kernel = gpusim.cuda_source(CODE, definitions=names)["spills"]
    x = gpusim.array_spec((1 << 14,), np.int32 if element == "int" else np.float32)
    y = gpusim.array_spec((1 << 14,), np.float32)
    return gpusim.predict(kernel[32, 512], x, y, 1 << 14)


def test_addresses_that_were_spilled_are_not_taken_for_elements() -> None:
    """Elements are spilled too, to other bytes."""
    assert predicted("float", "i").time_us > 0


def test_spilled_elements_that_become_addresses_are_still_asked_for() -> None:
    with pytest.raises(MissingElementsError, match="give the elements of x"):
        predicted("int", "c[3] & 1023")
