"""Where a kernel may stand, and how it may be declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.errors import InputError
from gpusim.launch.grid import ComputeCapability
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
HEADER = """
#pragma once
struct __align__(16) Line { float a, b, c; };
typedef float real;
__global__ void of_header(int *x, real a) { x[threadIdx.x] = (int)a; }
template <int N> __global__ void made(int *x) { x[threadIdx.x] = N; }
"""
TEXT = """
#include "kernels.cuh"
#define KERNEL(name, v) __global__ void name(int *x) { x[threadIdx.x] = v; }
KERNEL(by_macro, 3)
extern "C" __global__ void of_c(int *x) { x[threadIdx.x] = 4; }
namespace outer { namespace { __global__ void hidden(int *x) { x[threadIdx.x] = 5; } } }
__global__ void aligned(int *x, Line line, dim3 size) {
    x[threadIdx.x] = line.a + line.c + size.y;
}
__global__ void twice(int *x) { x[threadIdx.x] = 7; }
__global__ void twice(float *x) { x[threadIdx.x] = 8; }
int main() { of_c<<<1, 1>>>(nullptr); }
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> CodeFile:
    folder: Path = tmp_path_factory.mktemp("forms")
    (folder / "kernels.cuh").write_text(HEADER)
    (folder / "kernels.cu").write_text(TEXT)
    return gpusim.cuda_file(folder / "kernels.cu")


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("of_header", (1,), 1),
        ("made<2>", (), 2),
        ("by_macro", (), 3),
        ("of_c", (), 4),
        ("hidden", (), 5),
        ("aligned", ((1, 2, 3), (1, 2, 3)), 6),
    ],
)
def test_a_kernel_is_found(
    file: CodeFile, name: str, arguments: tuple[Any, ...], expected: int
) -> None:
    file[name][1, 2](x := np.zeros(2, np.int32), *arguments)
    assert x.tolist() == [expected, expected]


def test_kernels_of_one_name_are_told_apart_by_their_types_alone(file: CodeFile) -> None:
    with pytest.raises(InputError, match=r"has 2 kernels 'twice': write their types, or namesp"):
        file["twice"][1, 2](np.zeros(2, np.int32))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("twice(double*)", r"its overloads: twice\(float\*\), twice\(int\*\)"),
        ("of_c(float*)", r"has no kernel 'of_c\(float\*\)': its overloads: of_c \(extern C\)"),
        ("made(int*)", "is a template; give its arguments, as in 'made<4>'"),
        ("made<2>(int*)", "made<2> stands for all its types"),
    ],
)
def test_types_that_no_kernel_has_are_refused_with_those_that_there_are(
    file: CodeFile, name: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        file[name].code(ComputeCapability(9, 0))


def test_an_alignment_makes_a_structure_larger(file: CodeFile) -> None:
    parameters = file["aligned"].source.parameters
    assert parameters[1:4] == ("line.a", "line.b", "line.c")
    assert parameters[4:] == ("size.x", "size.y", "size.z")
