"""Influence of arguments: constants that they are compared with, and their addresses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ComputeCapability, cuda
from gpusim.codegen.programs import prepare
from gpusim.program.influence import Influence, influence
from gpusim.sass import wheels

TEXT = """
__global__ void chosen(const int *x, int *y, int mode, int width) {
    int i = threadIdx.x;
    if (mode == 3) y[i * width] = x[i];
    else if (x[i] > 1000) y[x[i + 1] & 63] = 2;
    else y[i] = 5;
}
"""


@cuda.jit
def chosen(x, y, mode, width):
    i = cuda.threadIdx.x
    if mode == 3:
        y[i * width] = x[i]
    elif x[i] > 1000:
        y[x[i + 1] & 63] = 2
    else:
        y[i] = 5


def kernels() -> list[Any]:
    return [chosen, *([gpusim.cuda_source(TEXT)["chosen"]] if wheels.are_there() else [])]


@pytest.mark.parametrize("kernel", kernels())
def test_arguments_meet_constants_and_reach_addresses(kernel: Any) -> None:
    arguments = [np.zeros(65, np.int32), np.zeros(65, np.int32), 1, 1]
    program = prepare(kernel[1, 64], arguments, ComputeCapability(9, 0), "O0").program

    def of(name: str, *, is_array: bool = False) -> tuple[bool, list[int], bool]:
        found: Influence = influence(program, name, is_array=is_array)
        return found.is_read, [int(one) for one in found.compared], found.in_addresses

    assert of("x", is_array=True) == (True, [1000], True)
    assert of("y", is_array=True) == (False, [], False)
    assert of("mode") == (True, [3], False)
    assert of("width") == (True, [], True)
