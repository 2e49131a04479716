"""Code compiled with -G: functions in sections of their own, addresses as numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.cli.app import main
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
SOURCE = """
#include <cstdio>
struct V {
    float x, y;
    __device__ float dot(const V &o) const { return x * o.x + y * o.y; }
};
__device__ int counter, more[10] = {7, 6, 5};
__constant__ int table[4] = {1, 2, 3, 4};
__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ float length(const V &v) { return sqrtf(v.dot(v)); }
template <class T> __device__ T larger(T a, T b) { return a > b ? a : b; }
__device__ int looked_up(int i) { return table[i & 3] + more[i % 10]; }
extern "C" __global__ void all(float *out, int *numbers) {
    int i = threadIdx.x;
    out[i] = larger(length(V{(float)i, 3.0f}), min(5.0f, out[i])) / 3.0f;
    numbers[i] = fib(i % 9) + max(i, 3) + looked_up(i);
    atomicAdd(&counter, i);
    __syncthreads();
    if (i == 0) numbers[0] = 100 * printf("%d %d\\n", numbers[0], counter) + counter;
}
"""
RACY = """
__device__ int twice(int v) { return 2 * v; }
extern "C" __global__ void racy(int *out) {
    __shared__ int s[64];
    s[0] = threadIdx.x;
    s[threadIdx.x] = twice(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
"""
POINTERS = """
typedef float (*function)(float);
__device__ float twice(float x) { return 2.0f * x; }
__device__ float halved(float x) { return 0.5f * x; }
__global__ void apply(float *v, int which) {
    function f = 0;
    if (which == 1) f = twice;
    else if (which == 2) f = halved;
    v[threadIdx.x] = f(v[threadIdx.x]) + 1.0f;
}
"""
ARRAY = ["--grid", "1", "--block", "64", "--arg", "int32[64]"]


def results(path: Path, *, debug: bool) -> list[int]:
    kernel = gpusim.cuda_file(path, debug=debug)["all"]
    out, numbers = np.ones(32, np.float32), np.zeros(32, np.int32)
    kernel[1, 32](out, numbers)
    roots = np.sqrt(np.arange(32.0) ** 2 + 9) / 3
    assert np.allclose(out, np.maximum(roots, 1 / 3))
    return numbers.tolist()


def test_functions_variables_recursion_and_printf_give_what_optimised_code_gives(
    tmp_path: Path,
) -> None:
    path = tmp_path / "functions.cu"
    path.write_text(SOURCE)
    numbers = results(path, debug=False)
    assert numbers[:3] == [100 * 2 + 496, 12, 12]
    assert results(path, debug=True) == numbers


def test_accesses_beside_a_call_are_judged_by_their_own_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "racy.cu"
    path.write_text(RACY)
    assert main(["check", "-G", f"{path}:racy", *ARRAY]) == 1
    out = capsys.readouterr().out
    assert "thread 0 (block 0, warp 0, lane 0) writes s[0] in line 6" in out


def test_functions_are_called_by_pointers(tmp_path: Path) -> None:
    path = tmp_path / "pointers.cu"
    path.write_text(POINTERS)
    apply = gpusim.cuda_file(path, debug=True)["apply"]
    for which, factor in ((1, 2.0), (2, 0.5)):
        numbers = np.arange(32, dtype=np.float32)
        apply[1, 32](numbers, np.int32(which))
        assert numbers.tolist() == [factor * i + 1 for i in range(32)]


def test_a_call_by_a_null_pointer_is_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pointers.cu"
    path.write_text(POINTERS)
    given = ["--grid", "1", "--block", "32", "--arg", "float32[32]", "--arg", "0"]
    assert main(["check", "-G", f"{path}:apply", *given]) == 1
    assert "line 9: a jump to an address without code" in capsys.readouterr().out
