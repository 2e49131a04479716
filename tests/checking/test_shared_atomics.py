"""Atomics that leave their array in shared memory, in machine code: compare-and-swap loops too."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels
from gpusim.sass.kernels import CudaSource, cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

OWN_MAX = """
__device__ float own_max(float *at, float value) {
    int *bits = (int *)at, old = *bits, seen;
    do {
        seen = old;
        old = atomicCAS(bits, seen, __float_as_int(fmaxf(value, __int_as_float(seen))));
    } while (old != seen);
    return __int_as_float(old);
}
"""
KERNEL = """
__global__ void {NAME}(const int *x, TYPE *y) {
    __shared__ TYPE h[64];
    h[threadIdx.x] = 0;
    __syncthreads();
    UPDATE;
    __syncthreads();
    y[threadIdx.x] = h[threadIdx.x];
}
"""
UPDATES = [
    ("int", "atomicAdd(&h[x[threadIdx.x]], 1)"),
    ("float", "atomicAdd(&h[x[threadIdx.x]], 1.0f)"),
    ("double", "atomicAdd(&h[x[threadIdx.x]], 1.0)"),
    ("float", "own_max(&h[x[threadIdx.x]], 1.0f)"),
    ("unsigned long long", "atomicCAS(&h[x[threadIdx.x]], 0ull, 1ull)"),
]


@cache
def file() -> CudaSource:
    """Return the file with a kernel of each update."""
    kernels = (
        KERNEL.replace("{NAME}", f"k{number}").replace("TYPE", ctype).replace("UPDATE", update)
        for number, (ctype, update) in enumerate(UPDATES)
    )
    return cuda_source(OWN_MAX + "".join(kernels))


@pytest.mark.parametrize(("ctype", "update"), UPDATES)
@pytest.mark.parametrize("fast", ["0", "1"])
def test_atomics_outside_shared_memory_are_bounds_findings(
    ctype: str, update: str, fast: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads 7 and 40 name elements 1000 and -1; all others add 1 to a bin of their own."""
    monkeypatch.setenv("GPUSIM_FAST", fast)
    x = np.arange(64, dtype=np.int32)
    x[[7, 40]] = 1000, -1
    y = np.zeros(64, {"int": "i4", "float": "f4", "double": "f8"}.get(ctype, "u8"))
    found = gpusim.check(file()[f"k{UPDATES.index((ctype, update))}"][1, 64], x, y)
    assert {one.rule for one in found.errors} == {"bounds"}
    assert {one.places[0].thread.thread for one in found.errors} <= {7, 40}
    expected = np.ones(64)
    expected[[7, 40]] = 0
    np.testing.assert_array_equal(y, expected)
