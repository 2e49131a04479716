"""Arrays of programs have the names of the parameters in the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusim.driver.arena import Arena
from gpusim.driver.module import ContextHeap, Module
from gpusim.gpu.device import load
from gpusim.sass import compiler, wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
SOURCE = """
template <class T> __global__ void fill(T *values, int n) { values[threadIdx.x] = n; }
template __global__ void fill<float>(float *, int);
__global__ void twice(int *x) { x[0] = 1; }
__global__ void twice(float *y) { y[0] = 1; }
__global__ void unnamed(int *, int *out) { out[0] = 1; }
"""


def names(file: Path, symbol: str) -> tuple[str, ...]:
    made = compiler.compiled(SOURCE, str(file), [], "sm_90")
    arena = Arena(1 << 20)
    function = Module(made.cubin, load("h200"), arena, ContextHeap(arena)).function(symbol)
    assert function is not None
    return function.parameter_names


def test_parameters_have_the_names_of_the_source_where_one_kernel_can_be_meant(
    tmp_path: Path,
) -> None:
    file = tmp_path / "names.cu"
    file.write_text(SOURCE)
    assert names(file, "_Z4fillIfEvPT_i") == ("values", "n")
    assert names(file, "_Z5twicePi") == ("arg0",)


def test_parameters_are_numbered_without_the_source(tmp_path: Path) -> None:
    assert names(tmp_path / "missing.cu", "_Z4fillIfEvPT_i") == ("arg0", "arg1")
