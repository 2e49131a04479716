"""Values from memory never written: an error where they decide, clean where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from one_file import kernels

import gpusim
from gpusim import cuda
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

# Thread 31 reads s[32], which nobody stores; `t`, `n` (31) and `y` are at hand.
KERNEL = """__global__ void k(const int *x, int *y, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    int key = s[t + 1], mine = s[t];
    {BODY}
}
"""
CLEAN = {
    "nothing": "y[t] = mine;",
    "false_and_unknown": "bool take = t < n && key > mine; y[t] = take ? key : mine;",
    "unknown_and_false": "bool take = key > mine & t < n; y[t] = take ? key : mine;",
    "true_or_unknown": "y[t] = (t >= n || key > mine) ? mine : key;",
    "masked_bits": "y[t] = key & (t < n ? -1 : 0);",
    "product_with_zero": "y[t] = key * (t < n);",
    "back_where_it_came_from": "s[t + 1] = key; __syncthreads(); y[t] = mine;",
    "stored_again": """__syncthreads();
        s[t + 8] = key; __syncthreads();
        s[t + 8] = mine; __syncthreads();
        y[t] = s[t + 8];""",
    "a_lane_that_is_not_asked": "y[t] = __shfl_sync(~0u, key, 0);",
    "not_more_than_the_largest": "y[t] = max(key, t < n ? 0 : 0x7fffffff);",
}
ERRORS = {
    "output": "y[t] = key;",
    "branch": "if (key > mine) y[t] = 1;",
    "equal": "if (key == mine) atomicAdd(y, 1);",
    "address": "y[t] = x[key & 31];",
    "choice": "y[t] = key > mine ? 3 : 4;",
    "bits": "y[t] = key & 0x100;",
    "sum": "y[t] = key + mine;",
    "difference_of_two": "int more = s[t + 9]; if (t == 31 && key - more > 0) y[0] = 1;",
    "copied_and_output": "__syncthreads(); s[t + 32] = key; __syncthreads(); y[t] = s[t + 32];",
    "true_and_unknown": "if (t >= n && key > mine) y[t] = 1;",
    "atomic": "atomicAdd(y + t, key);",
}


def rules(body: str) -> list[str]:
    arrays = np.arange(64, dtype=np.int32), np.zeros(64, np.int32), np.int32(31)
    kernel = kernels(KERNEL, (*CLEAN.values(), *ERRORS.values()))[body]
    return [one.rule for one in gpusim.check(kernel[1, 32], *arrays).errors]


@pytest.mark.parametrize("body", CLEAN.values(), ids=list(CLEAN))
def test_a_value_that_decides_nothing_is_clean(body: str) -> None:
    assert rules(body) == []


@pytest.mark.parametrize("body", ERRORS.values(), ids=list(ERRORS))
def test_a_value_that_decides_is_an_error(body: str) -> None:
    assert set(rules(body)) == {"uninitialised"}


@cuda.jit
def moved_down(x, y):
    a = cuda.shared.array(96, np.float32)
    t = cuda.threadIdx.x
    for z in range(4):
        a[t] = a[32 + t]
        a[32 + t] = a[64 + t]
        a[64 + t] = x[32 * z + t]
        cuda.syncthreads()
        if z >= 2:
            y[32 * z + t] = a[t] + a[32 + t] + a[64 + t]
        cuda.syncthreads()


@cuda.jit
def moved_down_too_early(x, y):
    a = cuda.shared.array(96, np.float32)
    t = cuda.threadIdx.x
    for z in range(4):
        a[t] = a[32 + t]
        a[32 + t] = a[64 + t]
        a[64 + t] = x[32 * z + t]
        cuda.syncthreads()
        if z >= 1:
            y[32 * z + t] = a[t] + a[32 + t] + a[64 + t]
        cuda.syncthreads()


@pytest.mark.parametrize(
    ("kernel", "lines"), [(moved_down, []), (moved_down_too_early, [6])], ids=["right", "early"]
)
def test_planes_that_move_down_before_they_are_there(kernel: object, lines: list[int]) -> None:
    """The finding stands where the word was read from memory that nobody had written."""
    x, y = np.ones(128, np.float32), np.zeros(128, np.float32)
    found = gpusim.check(kernel[1, 32], x, y).errors  # type: ignore[index]
    assert {one.rule for one in found} <= {"uninitialised"}
    first = kernel.source.first_line  # type: ignore[attr-defined]
    assert sorted({one.lines[0] - first for one in found}) == lines


EXCHANGE = """__global__ void k(int *a, int *y) {
    int t = threadIdx.x;
    {BODY}
}
"""
STORES_ALONE = "atomicExch(&a[t], 3); y[t] = a[t];"
KEEPS_THE_OLD = "y[t] = atomicExch(&a[t], 3);"


@pytest.mark.parametrize("body", [STORES_ALONE, KEEPS_THE_OLD])
def test_an_exchange_reads_only_where_it_keeps_the_old_value(body: str) -> None:
    kernel = kernels(EXCHANGE, (STORES_ALONE, KEEPS_THE_OLD))[body]
    arrays = np.zeros(32, np.int32), np.zeros(32, np.int32)
    found = {one.rule for one in gpusim.check(kernel[1, 32], *arrays, uninitialised=["a"])}
    assert found == ({"uninitialised"} if body is KEEPS_THE_OLD else set())
