"""Kernels and device functions whose qualifiers stand in a macro are found like any others."""

from __future__ import annotations

import pytest

from gpusim.cuda_cpp import signature
from gpusim.cuda_cpp.host import device_code

TEXT = """#define KERNEL __global__ void
#define DEVICE __device__ __forceinline__
#define ENTRY(name) extern "C" __global__ void name
#define FILL(name, type, value) \\
    __global__ void fill_##name(type *x) { x[threadIdx.x] = value; }
DEVICE float twice(float x) { return 2 * x; }
KERNEL scale(float *y, int n) { y[n] = twice(y[n]); }
template <int N> KERNEL block(const int *x) {}
ENTRY(named)(double *z, unsigned count) {}
FILL(ones, short, 1)
"""
MAIN = "int main() { scale<<<1, 1>>>(nullptr, 0); }\n"


def test_kernels_have_the_names_and_types_of_expanded_macros() -> None:
    found = {
        name: [(one.name, one.ctype) for one in declared]
        for name, declared in signature.kernels(TEXT).items()
    }
    assert found == {
        "scale": [("y", "float*"), ("n", "int")],
        "block": [("x", "int*")],
        "named": [("z", "double*"), ("count", "unsigned")],
        "fill_ones": [("x", "short*")],
    }


def test_a_template_may_begin_with_a_macro() -> None:
    assert signature.templates(TEXT) == {"block": ["int N"]}


def test_device_code_keeps_functions_with_a_macro_as_qualifier() -> None:
    pytest.importorskip("tree_sitter_cuda")
    kept, main = device_code(TEXT + MAIN, "x.cu").splitlines(), TEXT.count("\n")
    assert kept[:main] == TEXT.splitlines()
    assert not kept[main].strip()
