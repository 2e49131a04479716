"""Five guarded reductions for any type: the element count is looked at wherever it matters."""

# Bodies of kernels are in the dialect: the compiler infers their types.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from functools import partial

import numpy as np

from gpusim import cuda
from gpusim.catalogue import REDUCTION, BlockRule, Kernel, Template, kernel
from gpusim.kernels.operations import COMBINE
from gpusim.kernels.origins import NVBENCH_NOTES

guarded = partial(
    kernel,
    family=REDUCTION,
    origin=NVBENCH_NOTES,
    signature=("input", np.uint32, "output"),
    block_rule=BlockRule(2),
    dynamic_shared=True,
)
one_load = partial(
    guarded,
)
two_loads = partial(guarded, per_thread=2)


@one_load()
def reduction1(template: Template) -> Kernel:
    """Interleaved addressing by every second, fourth, eighth thread: warps diverge."""
    combine, identity = COMBINE[template.operation], template.identity

    @cuda.jit
    def reduction1(x, n, y):
        partial_sum = cuda.shared.array(0, x.dtype)
        tx = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + tx
        partial_sum[tx] = x[i] if i < n else identity
        cuda.syncthreads()

        stride = np.uint32(1)
        while stride < cuda.blockDim.x:
            if tx % (2 * stride) == 0:
                other = partial_sum[tx + stride] if tx + stride < n else identity
                partial_sum[tx] = combine(partial_sum[tx], other)
            cuda.syncthreads()
            stride <<= 1

        if tx == 0:
            y[cuda.blockIdx.x] = partial_sum[0]

    return reduction1


@one_load()
def reduction2(template: Template) -> Kernel:
    """Interleaved addressing by neighbouring threads: bank conflicts instead of divergence."""
    combine, identity = COMBINE[template.operation], template.identity

    @cuda.jit
    def reduction2(x, n, y):
        partial_sum = cuda.shared.array(0, x.dtype)
        tx = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + tx
        partial_sum[tx] = x[i] if i < n else identity
        cuda.syncthreads()

        stride = np.uint32(1)
        while stride < cuda.blockDim.x:
            index = np.int32(2 * stride * tx)
            if index < np.uint32(cuda.blockDim.x):
                other = partial_sum[index + stride] if index + stride < n else identity
                partial_sum[index] = combine(partial_sum[index], other)
            cuda.syncthreads()
            stride <<= 1

        if tx == 0:
            y[cuda.blockIdx.x] = partial_sum[0]

    return reduction2


@one_load()
def reduction3(template: Template) -> Kernel:
    """Sequential addressing: no conflicts, but half of the threads never add."""
    combine, identity = COMBINE[template.operation], template.identity

    @cuda.jit
    def reduction3(x, n, y):
        partial_sum = cuda.shared.array(0, x.dtype)
        tx = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + tx
        partial_sum[tx] = x[i] if i < n else identity
        cuda.syncthreads()

        stride = np.uint32(cuda.blockDim.x) // 2
        while stride > 0:
            if tx < stride:
                partial_sum[tx] = combine(partial_sum[tx], partial_sum[tx + stride])
            cuda.syncthreads()
            stride >>= 1

        if tx == 0:
            y[cuda.blockIdx.x] = partial_sum[0]

    return reduction3


@two_loads()
def reduction4(template: Template) -> Kernel:
    """Two elements per thread, the second added while loading, each with its own guard."""
    combine, identity = COMBINE[template.operation], template.identity

    @cuda.jit
    def reduction4(x, n, y):
        partial_sum = cuda.shared.array(0, x.dtype)
        tx = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * (np.uint32(cuda.blockDim.x) * 2) + tx
        partial_sum[tx] = x[i] if i < n else identity
        second = x[i + cuda.blockDim.x] if i + cuda.blockDim.x < n else identity
        partial_sum[tx] = combine(partial_sum[tx], second)
        cuda.syncthreads()

        stride = np.uint32(cuda.blockDim.x) // 2
        while stride > 0:
            if tx < stride:
                partial_sum[tx] = combine(partial_sum[tx], partial_sum[tx + stride])
            cuda.syncthreads()
            stride >>= 1

        if tx == 0:
            y[cuda.blockIdx.x] = partial_sum[0]

    return reduction4


@two_loads(
    block_rule=BlockRule(64),
    defect="No barrier separates the load and the first addition: a warp may read elements "
    "before another warp stores them.",
)
def reduction5(template: Template) -> Kernel:
    """The last warp is unrolled in volatile memory; one barrier too many was removed."""
    combine, identity = COMBINE[template.operation], template.identity

    @cuda.jit
    def reduction5(x, n, y):
        partial_sum = cuda.shared.array(0, x.dtype)
        tx = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * (np.uint32(cuda.blockDim.x) * 2) + tx
        partial_sum[tx] = x[i] if i < n else identity
        second = x[i + cuda.blockDim.x] if i + cuda.blockDim.x < n else identity
        partial_sum[tx] = combine(partial_sum[tx], second)

        stride = np.uint32(cuda.blockDim.x) // 2
        while stride > 32:
            if tx < stride:
                partial_sum[tx] = combine(partial_sum[tx], partial_sum[tx + stride])
            cuda.syncthreads()
            stride >>= 1

        if tx < 32:
            tail = cuda.volatile(partial_sum)
            tail[tx] = combine(tail[tx], tail[tx + 32])
            tail[tx] = combine(tail[tx], tail[tx + 16])
            tail[tx] = combine(tail[tx], tail[tx + 8])
            tail[tx] = combine(tail[tx], tail[tx + 4])
            tail[tx] = combine(tail[tx], tail[tx + 2])
            tail[tx] = combine(tail[tx], tail[tx + 1])

        if tx == 0:
            y[cuda.blockIdx.x] = partial_sum[0]

    return reduction5


@two_loads(block_rule=BlockRule(64), fixes="reduction5")
def reduction5_fixed(template: Template) -> Kernel:
    """The last warp is unrolled in volatile memory, after a barrier that follows the loads."""
    combine, identity = COMBINE[template.operation], template.identity

    @cuda.jit
    def reduction5_fixed(x, n, y):
        partial_sum = cuda.shared.array(0, x.dtype)
        tx = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * (np.uint32(cuda.blockDim.x) * 2) + tx
        partial_sum[tx] = x[i] if i < n else identity
        second = x[i + cuda.blockDim.x] if i + cuda.blockDim.x < n else identity
        partial_sum[tx] = combine(partial_sum[tx], second)
        cuda.syncthreads()

        stride = np.uint32(cuda.blockDim.x) // 2
        while stride > 32:
            if tx < stride:
                partial_sum[tx] = combine(partial_sum[tx], partial_sum[tx + stride])
            cuda.syncthreads()
            stride >>= 1

        if tx < 32:
            tail = cuda.volatile(partial_sum)
            tail[tx] = combine(tail[tx], tail[tx + 32])
            tail[tx] = combine(tail[tx], tail[tx + 16])
            tail[tx] = combine(tail[tx], tail[tx + 8])
            tail[tx] = combine(tail[tx], tail[tx + 4])
            tail[tx] = combine(tail[tx], tail[tx + 2])
            tail[tx] = combine(tail[tx], tail[tx + 1])

        if tx == 0:
            y[cuda.blockIdx.x] = partial_sum[0]

    return reduction5_fixed
