"""Dynamic shared memory that a launch does not give: errors that say so, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from one_file import kernels

import gpusim
from gpusim import cuda
from gpusim.errors import OutOfBoundsError
from gpusim.sass import wheels

needs_nvcc = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
NOT_GIVEN = "the launch has no dynamic shared memory (--shared-bytes"

BODIES = {
    "a store": "s[t] = x[t]; __syncthreads(); y[t] = s[31 - t];",
    "an atomic": "atomicAdd(&s[t & 3], x[t]); y[t] = 0;",
    "a load": "y[t] = s[t];",
    "beside static memory": "__shared__ float a[32]; a[t] = s[t] = x[t]; y[t] = a[31 - t] + s[t];",
}


@cuda.jit
def reversed_in_shared(x, y):
    s = cuda.shared.array(0, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[31 - t]


def arrays() -> tuple[Any, Any]:
    return np.ones(32, np.float32), np.zeros(32, np.float32)


KERNEL = """__global__ void k(const float *x, float *y) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    {BODY}
}
"""


def kernel_of(body: str) -> Any:
    return kernels(KERNEL, tuple(BODIES.values()))[body]


@needs_nvcc
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_check_says_that_the_launch_gives_no_dynamic_shared_memory(body: str) -> None:
    found = [one for one in gpusim.check(kernel_of(body)[1, 32], *arrays()) if one.rule == "bounds"]
    assert found
    assert {one.array for one in found} == {"s"}
    assert all("s has 0 elements: " in one.message for one in found)
    assert all(NOT_GIVEN in one.message for one in found)


@needs_nvcc
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_trace_says_so_too(body: str) -> None:
    with pytest.raises(OutOfBoundsError, match="has no dynamic shared memory"):
        gpusim.trace(kernel_of(body)[1, 32], *arrays())


@pytest.mark.parametrize("call", [gpusim.check, gpusim.trace])
def test_the_dialect_says_the_same(call: Callable[..., Any]) -> None:
    if call is gpusim.check:
        assert NOT_GIVEN in gpusim.check(reversed_in_shared[1, 32], *arrays())[0].message
    else:
        with pytest.raises(OutOfBoundsError, match="has no dynamic shared memory"):
            gpusim.trace(reversed_in_shared[1, 32], *arrays())


def test_dynamic_shared_memory_that_is_too_small_is_told_with_its_bytes() -> None:
    found = gpusim.check(reversed_in_shared[1, 32, 0, 64], *arrays())[0]
    assert "s has 16 elements, in 64 bytes of dynamic shared memory" in found.message


def test_the_fix_is_more_dynamic_shared_memory() -> None:
    assert gpusim.check(reversed_in_shared[1, 32], *arrays())[0].fix.startswith(
        "give the launch the dynamic shared memory"
    )
