"""Bounds of neighbours in shared and constant memory: each array's own, where PTX names it."""

from __future__ import annotations

import numpy as np
import pytest
from one_file import kernels

import gpusim
from gpusim.checking.coverage import ARRAYS
from gpusim.machine.compiled import examination
from gpusim.sass import wheels
from gpusim.sass.compiler import Options
from gpusim.sass.kernels import CudaSource

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

INTS = np.arange(64, dtype=np.int32)

# Each reads or writes one array beyond its bounds, into a neighbour, with what is found.
OVERRUNS: dict[str, tuple[str, str, int]] = {
    "a load one behind the end": (
        "__shared__ int a[64], b[64]; a[t] = x[t]; b[t] = 0; __syncthreads(); y[t] = a[t + 1] +"
        " b[63 - t];",
        "a[64] is out of bounds: a has 64 elements",
        1,
    ),
    "a load one before the begin": (
        "__shared__ int a[64], b[64]; a[t] = x[t]; b[t] = 0; __syncthreads(); y[t] = b[t - 1] +"
        " a[t];",
        "b[-1] is out of bounds: b has 64 elements",
        1,
    ),
    "a store behind the end": (
        "__shared__ int a[32], b[64]; b[t] = 0; __syncthreads(); a[t] = x[t]; __syncthreads();"
        " y[t] = a[t / 2] + b[t];",
        "a[32] is out of bounds: a has 32 elements",
        32,
    ),
    "an atomic behind the end": (
        "__shared__ int h[16], b[64]; if (t < 16) h[t] = 0; b[t] = 0; __syncthreads();"
        " atomicAdd(&h[t], 1); __syncthreads(); y[t] = h[t & 15] + b[t];",
        "h[16] is out of bounds: h has 16 elements",
        48,
    ),
    "an atomic of floats behind the end": (
        "__shared__ float h[16], b[64]; if (t < 16) h[t] = 0; b[t] = 0; __syncthreads();"
        " atomicAdd(&h[t], 1.0f); __syncthreads(); y[t] = h[t & 15] + b[t];",
        "h[16] is out of bounds: h has 16 elements",
        96,
    ),
    "an index of constants": (
        "y[t] = table[t] + other[0];",
        "table[16] is out of bounds: table has 16 elements",
        48,
    ),
    "an index of constants behind the last": (
        "y[t] = other[t];",
        "other[16] is out of bounds: other has 16 elements",
        48,
    ),
    "a constant index of constants": (
        "int s = 0; for (int k = 0; k <= 16; k++) s += table[k] * x[k]; y[t] = s + other[t & 15];",
        "table[16] is out of bounds: table has 16 elements",
        1,
    ),
    "a constant index of shared memory": (
        "__shared__ int a[4], b[64]; if (t < 4) a[t] = t; b[t] = t; __syncthreads(); int s = 0;"
        " for (int k = 0; k <= 4; k++) s += a[k]; y[t] = s + b[t];",
        "a[4] is out of bounds: a has 4 elements",
        1,
    ),
}
CLEAN: dict[str, str] = {
    "to the last element": "__shared__ int a[64], b[64]; a[t] = x[t]; b[t] = 0; __syncthreads();"
    " y[t] = a[63 - t] + b[63 - t];",
    "constants to the last": "y[t] = table[t & 15] + other[15 - (t & 15)];",
    "offsets before the array": "__shared__ int a[64], b[64]; a[t] = 0; b[t] = x[t];"
    " __syncthreads(); y[t] = t ? b[t - 1] : a[t];",
    "one of two by a condition": "__shared__ int a[64], b[64]; a[t] = x[t]; b[t] = -x[t];"
    " __syncthreads(); int *p = x[t] & 1 ? a : b; y[t] = p[63 - t];",
    "buffers that change places": "__shared__ int a[64], b[64]; int *p = a, *q = b; p[t] = x[t];"
    " for (int k = 0; k < x[5]; k++) { __syncthreads(); q[t] = p[63 - t]; int *r = p; p = q;"
    " q = r; } y[t] = p[t];",
    "neighbours stored at once through registers": "__shared__ int a, b[63]; if (t == 0) {"
    " unsigned at = __cvta_generic_to_shared(&a); b[0] = x[5];"
    ' asm volatile("st.shared.s32 [%0], %1;" :: "r"(at), "r"(t) : "memory"); }'
    " __syncthreads(); y[t] = a + b[0];",
    "rows of a struct": "__shared__ struct { int n; int at[7]; } s[8]; s[t / 8].at[t % 7] = t;"
    " y[t] = 0;",
}


HEAD = "__constant__ int table[16];\n__constant__ int other[16];\n"
KERNEL = """__global__ void k(const int *x, int *y)
{
    int t = threadIdx.x;
    {BODY}
}
"""
BODIES = (*(body for body, *_ in OVERRUNS.values()), *CLEAN.values())


def checked(body: str, dynamic: int = 0) -> gpusim.Findings:
    kernel = kernels(KERNEL, BODIES if body in BODIES else (body,), HEAD)[body]
    return gpusim.check(kernel[1, 64, 0, dynamic], INTS.copy(), np.zeros(64, np.int32))


@pytest.mark.parametrize("name", OVERRUNS)
def test_an_access_that_reaches_the_next_array_is_out_of_bounds(name: str) -> None:
    body, message, lanes = OVERRUNS[name]
    (found,) = (one for one in checked(body).errors if one.rule == "bounds")
    assert message in found.message
    line = 6 + KERNEL.count("\n") * BODIES.index(body)
    assert (found.array, found.lines, found.count) == (message.partition("[")[0], (line,), lanes)


@pytest.mark.parametrize("name", CLEAN)
def test_accesses_within_their_arrays_have_no_finding(name: str) -> None:
    assert [one.message for one in checked(CLEAN[name]).errors if one.rule == "bounds"] == []


def test_static_and_dynamic_shared_memory_have_bounds_of_their_own() -> None:
    body = "__shared__ int a[64]; extern __shared__ int d[]; d[t] = x[t]; a[t] = 0;"
    ahead, behind = (
        checked(f"{body} __syncthreads(); y[t] = {load};", 256).errors
        for load in ("a[t + 1] + d[t]", "d[t - 1] + a[t]")
    )
    assert [one.message.partition(":")[2].partition(":")[0] for one in (*ahead, *behind)] == [
        " a[64] is out of bounds", " d[-1] is out of bounds"
    ]  # fmt: skip


def test_loads_of_constants_at_offsets_in_registers_are_counted() -> None:
    """64 loads of x and stores to y each, and 64 of a constant of the lane's own."""
    assert checked("y[t] = x[t];").coverage.accesses + 64 == (
        checked("y[t] = x[t] + table[x[t] & 15];").coverage.accesses
    )


def test_accesses_through_pointers_to_several_arrays_are_listed_as_not_comparable() -> None:
    found = checked(CLEAN["buffers that change places"])
    assert found.coverage.not_compared[ARRAYS] > 0
    assert "the machine code has no names for them" in str(found.coverage)


def test_race_detection_in_compiled_code_has_the_same_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clean = CLEAN["buffers that change places"], CLEAN["constants to the last"]
    for body in (*clean, OVERRUNS["a load one behind the end"][0]):
        examination.forget()
        found = []
        for fast in ("0", "1"):
            monkeypatch.setenv("GPUSIM_FAST", fast)
            found.append(checked(body).to_dict())
        assert found[0] == found[1]


def test_generic_addresses_of_constants_and_shared_memory_are_listed_as_not_comparable() -> None:
    """All of them without optimisation: 64 of constants, 256 of shared memory."""
    body = (
        "__shared__ int a[64], b[64]; a[t] = table[t & 15]; b[t] = 0; __syncthreads();"
        " y[t] = a[63 - t] + b[t];"
    )
    text = f"""__constant__ int table[16], other[16];
__global__ void k(const int *x, int *y) {{ int t = threadIdx.x; {body} }}
"""
    options = Options(debug=True)
    kernel = CudaSource(text, "source.cu", options)["k"]
    found = gpusim.check(kernel[1, 64], INTS.copy(), np.zeros(64, np.int32))
    assert not found.errors
    assert found.coverage.not_compared[ARRAYS] == 64 + 256
