"""A reduction in global memory, and one with several elements per thread (thread coarsening)."""

# Bodies of kernels are in the dialect: the compiler infers their types.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from functools import partial

import numpy as np

from gpusim import cuda
from gpusim.catalogue import NUMBERS, REDUCTION, BlockRule, Kernel, Template, kernel
from gpusim.kernels.operations import COMBINE
from gpusim.kernels.origins import COARSENING_NOTES

unguarded = partial(
    kernel,
    family=REDUCTION,
    origin=COARSENING_NOTES,
    signature=("input", "output"),
    guarded=False,
    dtypes=("float64", *(name for name in NUMBERS if name != "float64")),
)


@unguarded(per_thread=2, block_rule=BlockRule(1), overwrites_input=True)
def reduce_gpu(template: Template) -> Kernel:
    """The tree overwrites the input in global memory: every step goes to the L1 cache and back."""
    combine = COMBINE[template.operation]

    @cuda.jit
    def reduce_gpu(values, result):
        tid = np.uint32(cuda.threadIdx.x)
        first = np.uint32(cuda.blockDim.x) * np.uint32(cuda.blockIdx.x) * 2
        i = first + 2 * tid

        stride = np.uint32(1)
        while stride <= cuda.blockDim.x:
            if tid % stride == 0:
                values[i] = combine(values[i], values[i + stride])
            cuda.syncthreads()
            stride *= 2

        if tid == 0:
            result[cuda.blockIdx.x] = values[first]

    return reduce_gpu


@unguarded(block_rule=BlockRule(2), default_coarse=4)
def reduce_coarsening_gpu(template: Template) -> Kernel:
    """Each thread adds several elements in a register: fewer blocks, fewer barriers per element."""
    combine = COMBINE[template.operation]
    BLOCK, COARSE = template.block, template.coarse

    @cuda.jit
    def reduce_coarsening_gpu(values, result):
        shared = cuda.shared.array(BLOCK, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        first = np.uint32(cuda.blockDim.x) * np.uint32(cuda.blockIdx.x) * COARSE + tid

        total = values[first]
        for tile in range(1, COARSE):
            total = combine(total, values[first + tile * BLOCK])
        shared[tid] = total

        stride = np.uint32(cuda.blockDim.x) // 2
        while stride >= 1:
            cuda.syncthreads()
            if tid < stride:
                shared[tid] = combine(shared[tid], shared[tid + stride])
            stride //= 2

        if tid == 0:
            result[cuda.blockIdx.x] = shared[0]

    return reduce_coarsening_gpu
