"""Kernels that exercises run to find their answers."""

# Bodies of kernels are in the dialect: the compiler infers their types.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from gpusim import cuda

WORDS = 1024


@cuda.jit
def strided(out, stride):
    """Load shared memory with a stride between neighbouring lanes, in words."""
    shared = cuda.shared.array(WORDS, np.int32)
    tid = cuda.threadIdx.x
    for k in range(tid, WORDS, cuda.blockDim.x):
        shared[k] = k
    cuda.syncthreads()
    out[tid] = shared[tid * stride]


@cuda.jit
def vector_copy(source, target):
    """Copy four elements of four bytes a thread."""
    i = 4 * cuda.grid(1)
    cuda.store_vector(target, i, cuda.load_vector(source, i, 4))


@cuda.jit
def product_16(left, right, result, n):
    """Multiply square matrices by tiles of 16 x 16 in shared memory."""
    a = cuda.shared.array((16, 16), np.float32)
    b = cuda.shared.array((16, 16), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = np.float32(0)
    for k in range(0, n, 16):
        a[y, x] = left[row, k + x]
        b[y, x] = right[k + y, column]
        cuda.syncthreads()
        for j in range(16):
            total += a[y, j] * b[j, x]
        cuda.syncthreads()
    result[row, column] = total
