"""Barriers of a whole grid as the device runtime makes them: by the driver's functions."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.sass import compiler, wheels
from gpusim.sass.compiler import Options
from gpusim.sass.kernels import CubinFile

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

# What cudaCGSynchronize and cudaCGSynchronizeGrid of libcudadevrt call.
SOURCE = """
typedef unsigned long long u64;
extern "C" __device__ u64 __cuda_syscall_CGS_get_intrinsic_handle(unsigned scope);
extern "C" __device__ int __cuda_syscall_CGS_sync(u64 handle, unsigned flags);
extern "C" __device__ int __cuda_syscall_CGS_get_size(unsigned*, unsigned*, u64);
extern "C" __device__ int __cuda_syscall_CGS_get_rank(unsigned*, unsigned*, u64);
extern "C" __global__ void shifts(int* rows, int n) {
    u64 handle = __cuda_syscall_CGS_get_intrinsic_handle(1);
    int i = blockIdx.x * blockDim.x + threadIdx.x, width = gridDim.x * blockDim.x;
    for (int row = 1; row < n; row++) {
        rows[row * width + i] = rows[(row - 1) * width + (width - 1 - i)] + 1;
        if (row % 2) {
            if (__cuda_syscall_CGS_sync(handle, 0)) return;
        } else {
            __syncthreads();
            if (threadIdx.x == 0) __cuda_syscall_CGS_sync(handle, 1);
            __syncthreads();
        }
    }
}
extern "C" __global__ void places(unsigned* out) {
    u64 handle = __cuda_syscall_CGS_get_intrinsic_handle(1);
    out += 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    __cuda_syscall_CGS_get_size(out, out + 1, handle);
    __cuda_syscall_CGS_get_rank(out + 2, out + 3, handle);
}
"""


SHIFTED = np.zeros((9, 6 * 40), np.int32)


@pytest.fixture(scope="module")
def module() -> CubinFile:
    made = compiler.compiled(SOURCE, "sync.cu", [], "sm_90", Options(relocatable=True))
    return CubinFile(made.cubin, "sync.cubin")


def test_a_row_is_written_behind_the_one_before_in_all_blocks(module: CubinFile) -> None:
    rows = SHIFTED.copy()
    module["shifts"][6, 40](rows, 9)
    assert np.array_equal(rows, np.arange(9)[:, None] + np.zeros_like(rows))


def test_a_barrier_of_the_grid_orders_its_blocks_for_a_check(module: CubinFile) -> None:
    assert not gpusim.check(module["shifts"][6, 40], SHIFTED.copy(), 9).errors


def test_lines_of_the_drivers_functions_are_none_of_the_kernels(module: CubinFile) -> None:
    rows = gpusim.trace(module["shifts"][2, 32], np.zeros((3, 64), np.int32), 3).lines
    begin, end = (SOURCE[: SOURCE.index(name)].count("\n") + 1 for name in (" shifts", " places"))
    assert {one.line for one in rows} <= {0, *range(begin, end)}


def test_a_handle_tells_the_size_and_the_rank(module: CubinFile) -> None:
    out = np.full((12, 4), 9, np.uint32)
    module["places"][3, 4](out)
    assert out.tolist() == [[12, 1, thread, 0] for thread in range(12)]
