"""Blocks that a GPU refuses for a kernel's machine code: launch bounds, and the register file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.errors import LaunchError
from gpusim.launch.grid import Launch
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

BOUNDED = """
__global__ void __launch_bounds__(128) bounded(float *x) { x[threadIdx.x] += 1; }
__global__ void __launch_bounds__(64, 4) twice(float *x) { x[threadIdx.x] += 1; }
__global__ void free_of_bounds(float *x) { x[threadIdx.x] += 1; }
"""
COMMANDS: list[Callable[..., Any]] = [gpusim.trace, gpusim.predict, gpusim.check]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_block_above_the_launch_bounds_is_refused(command: Callable[..., Any]) -> None:
    kernels, x = cuda_source(BOUNDED), np.zeros(256, np.float32)
    for name, most, refused in (("bounded", 128, 160), ("twice", 64, (8, 9))):
        command(kernels[name][1, most], x)
        with pytest.raises(LaunchError, match=f"__launch_bounds__ allow at most {most} threads"):
            command(kernels[name][1, refused], x)
    command(kernels["free_of_bounds"][1, 256], x)


@pytest.mark.parametrize(
    ("registers", "threads"), [(32, 1024), (64, 1024), (65, 896), (80, 768), (96, 640), (255, 256)]
)
def test_registers_of_all_threads_fit_in_the_register_file(registers: int, threads: int) -> None:
    """A warp has units of 256 registers in a quarter of 16,384: 255 are 8,160, so two warps each.

    65 registers are 2,304 a warp, 7 warps in a quarter; 80 are 2,560, 6 warps; 96 are 3,072, 5.
    """
    Launch.of(1, threads).check_code(registers, 0)
    if threads < 1024:
        with pytest.raises(LaunchError, match=f"at most {threads} threads fit"):
            Launch.of(1, threads + 1).check_code(registers, 0)
