"""The end of shared memory in nvcc's code: vector loads that overhang, and accesses behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from evaluators import agree

import gpusim
from gpusim.errors import OutOfBoundsError
from gpusim.machine.compiled import examination
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

# nvcc loads `last` in 16 bytes, of which shared memory has 12.
VECTOR = """
__global__ void total(const float *x, float *y) {
    __shared__ float3 c[16];
    __shared__ float3 last;
    int t = threadIdx.x;
    if (t < 16) c[t] = make_float3(x[3 * t], x[3 * t + 1], x[3 * t + 2]);
    __syncthreads();
    if (t == 0) {
        float3 s = make_float3(0, 0, 0);
        for (int k = 0; k < 16; k++) { s.x += c[k].x; s.y += c[k].y; s.z += c[k].z; }
        last = s;
    }
    __syncthreads();
    y[3 * t] = last.x; y[3 * t + 1] = last.y; y[3 * t + 2] = last.z;
}
"""
# Bytes 4 to 12 of shared memory of 12 bytes, and behind it, by the instruction of their width.
WIDE = """
__global__ void wide(unsigned *y, int at) {
    __shared__ unsigned s[3];
    unsigned a = 1, b = 2, p = at + (unsigned)__cvta_generic_to_shared(s);
    if (threadIdx.x < 3) s[threadIdx.x] = 7;
    __syncthreads();
    if (KIND) asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(p));
    else asm volatile("st.shared.v2.u32 [%0], {%1, %2};" :: "r"(p), "r"(a), "r"(b));
    y[threadIdx.x] = a;
}
"""


def sums() -> tuple[Any, ...]:
    return np.arange(96, dtype=np.float32), np.zeros(96, np.float32)


def test_a_vector_load_may_overhang_the_end_of_shared_memory() -> None:
    """Components add up to 0 + 3 + ... + 45 = 360, and 16 and 32 more."""
    x, y = sums()
    found = gpusim.check(cuda_source(VECTOR)["total"][1, 32], x, y)
    assert not found
    assert y.tolist() == [360, 376, 392] * 32


def test_both_evaluators_let_a_vector_load_overhang() -> None:
    agree(cuda_source(VECTOR)["total"], 3, 32, "auto", *sums())


def test_race_detection_in_compiled_code_lets_a_vector_load_overhang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    examination.forget()
    monkeypatch.setenv("GPUSIM_FAST", "1")
    fast = gpusim.check(cuda_source(VECTOR)["total"][1, 32], *sums())
    assert not examination._refused
    monkeypatch.setenv("GPUSIM_FAST", "0")
    assert fast.to_dict() == gpusim.check(cuda_source(VECTOR)["total"][1, 32], *sums()).to_dict()


@pytest.mark.parametrize(
    ("kind", "at", "is_outside"),
    [("load", 8, False), ("load", 16, True), ("store", 8, True), ("store", 0, False)],
)
def test_loads_that_begin_behind_the_end_and_stores_across_it_are_out_of_bounds(
    kind: str, at: int, is_outside: bool
) -> None:
    text = WIDE.replace("KIND", str(int(kind == "load")))
    kernel, y = cuda_source(text)["wide"], np.zeros(32, np.uint32)
    found = gpusim.check(kernel[1, 32], y, np.int32(at))
    assert [one.rule for one in found.errors if one.rule == "bounds"] == ["bounds"] * is_outside
    if is_outside:
        with pytest.raises(OutOfBoundsError):
            kernel[1, 32](y, np.int32(at))
