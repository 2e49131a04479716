"""Arrays in shared memory keep their source names in nvcc's code."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.isa.ops import NamedArray
from gpusim.sass import wheels
from gpusim.sass.shared_arrays import shared_arrays, source_name

NEEDS_NVCC = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

PTX = """
.shared .align 4 .b8 _ZZ6helperfE5inner[256];
.extern .shared .align 16 .b8 dynamic[];
.visible .entry one(.param .u64 p) {
.shared .align 1 .b8 _ZZ3oneE4flag[3];
.shared .align 8 .f64 _ZZ3oneE4mean;
st.shared.u8 [_ZZ3oneE4flag], %r1; ld.shared.f64 %d, [_ZZ3oneE4mean]; call.uni (r), helper, (x);
mov.u32 %r2, dynamic;
}
.func helper(.param .b32 x) { mov.u32 %r1, _ZZ6helperfE5inner; }
.visible .entry two(.param .u64 p) { ret; }
"""
SOURCE = """__device__ float turned(float v) {
    __shared__ float inner[64];
    inner[threadIdx.x] = v;
    __syncthreads();
    return inner[63 - threadIdx.x];
}
extern "C" __global__ void one(const float *x, float *y) {
    __shared__ char flags[65];
    __shared__ float outer[64];
    extern __shared__ float more[];
    int t = threadIdx.x;
    flags[t] = 1, outer[t] = x[t], more[t] = t;
    __syncthreads();
    y[t] = turned(outer[63 - t]) + flags[63 - t] + more[63 - t];
}
extern "C" __global__ void two(const float *x, float *y) { y[threadIdx.x] = turned(1); }
"""


def test_arrays_lie_in_the_order_of_their_declarations_the_kernels_own_first() -> None:
    assert tuple(shared_arrays(PTX, "one", 272).values()) == (
        NamedArray("flag", 0, 3),
        NamedArray("mean", 8, 8),
        NamedArray("inner", 16, 256),
        NamedArray("dynamic", 272, None),
    )


def test_a_sum_that_is_not_the_size_of_the_memory_names_nothing() -> None:
    assert shared_arrays(PTX, "one", 300) == {}
    assert shared_arrays("", "one", 0) == shared_arrays(PTX, "two", 0) == {}


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("tile", "tile"),
        ("_ZZ4pairIfEvPKT_PS0_E4tile", "tile"),
        ("_ZZ3oneE2b0_1", "b0"),
        ("_ZZ2k8PKiPiE1a", "a"),
        ("_ZN5space4wideE", "_ZN5space4wideE"),
    ],
)
def test_a_mangled_symbol_ends_with_the_name(symbol: str, name: str) -> None:
    assert source_name(symbol) == name


@NEEDS_NVCC
def test_a_trace_names_the_array_that_addresses_lie_in() -> None:
    """Elements are counted from the start of their array: two warps store to 0 and 32."""
    x = np.zeros(64, np.float32)
    made = gpusim.trace(gpusim.cuda_source(SOURCE)["one"][1, 64, 0, 256], x, x.copy())
    stores = {
        (e.array, (e.addresses or ())[0] // e.element_bytes)
        for e in made.executions
        if e.op == "STS"
    }
    names = ("flags", "inner", "more", "outer")
    assert sorted(stores) == [(name, first) for name in names for first in (0, 32)]


@NEEDS_NVCC
def test_the_checker_names_the_array_too() -> None:
    source = SOURCE.replace("__syncthreads();\n    y", "y")
    x = np.zeros(64, np.float32)
    found = gpusim.check(gpusim.cuda_source(source)["one"][1, 64, 0, 256], x, x.copy())
    assert any("outer[" in finding.message for finding in found)


@cuda.jit
def reversed_twice(x, y):  # type: ignore[no-untyped-def]
    first = cuda.shared.array(64, np.float32)
    second = cuda.shared.array(0, np.float32)
    t = cuda.threadIdx.x
    first[t] = x[t]
    second[t] = y[t]
    cuda.syncthreads()
    y[t] = first[63 - t] + second[63 - t]


@NEEDS_NVCC
def test_both_generators_have_the_names_of_a_python_kernel() -> None:
    x = np.zeros(64, np.float32)
    for code in ("lowering", "nvcc"):
        made = gpusim.trace(reversed_twice[1, 64, 0, 256], x, x.copy(), code=code)
        named = {e.array for e in made.executions if e.space == "shared"}
        assert named == {"first", "second"}, code
