"""Reductions with a fixed grid, four blocks for each multiprocessor of an A100.

Each thread takes elements a whole grid apart, then its block combines the threads' results. A
second launch of the same kernel, with one block, finishes the partial results.
"""

# Bodies of kernels are in the dialect: the compiler infers their types.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from functools import partial

import numpy as np

from gpusim import cuda
from gpusim.catalogue import NUMBERS, REDUCTION, BlockRule, Kernel, Template, kernel
from gpusim.kernels.operations import COMBINE
from gpusim.kernels.origins import OPERATOR_NOTES

BLOCKS = 4 * 108
FOUR_BYTES = ("float32", "int32", "uint32")

grid_stride = partial(
    kernel,
    family=REDUCTION,
    origin=OPERATOR_NOTES,
    signature=("input", np.int32, "output"),
    grid_free=True,
    default_grid=BLOCKS,
    default_n=2**20,
)
one_by_one = partial(
    grid_stride,
    block_rule=BlockRule(2),
    dtypes=("float32", *(name for name in NUMBERS if name != "float32")),
)
four_at_once = partial(grid_stride, per_thread=4, dtypes=FOUR_BYTES)


@one_by_one()
def kernel0(template: Template) -> Kernel:
    """A fixed grid strides over the input; within a block the tree makes warps diverge."""
    combine, identity, BLOCK = COMBINE[template.operation], template.identity, template.block

    @cuda.jit
    def kernel0(values, n, partials):
        tid = cuda.threadIdx.x
        mine = identity
        for i in range(cuda.blockIdx.x * BLOCK + tid, n, cuda.gridDim.x * BLOCK):
            mine = combine(mine, values[i])

        shared = cuda.shared.array(BLOCK, values.dtype)
        shared[tid] = mine
        cuda.syncthreads()

        offset = 1
        while offset < cuda.blockDim.x:
            if tid % (2 * offset) == 0:
                shared[tid] = combine(shared[tid], shared[tid + offset])
            cuda.syncthreads()
            offset *= 2

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return kernel0


@one_by_one()
def kernel1(template: Template) -> Kernel:
    """The lower half of a block adds the upper half's sums: warps stay whole down to the last."""
    combine, identity, BLOCK = COMBINE[template.operation], template.identity, template.block

    @cuda.jit
    def kernel1(values, n, partials):
        tid = cuda.threadIdx.x
        mine = identity
        for i in range(cuda.blockIdx.x * BLOCK + tid, n, cuda.gridDim.x * BLOCK):
            mine = combine(mine, values[i])

        shared = cuda.shared.array(BLOCK, values.dtype)
        shared[tid] = mine
        cuda.syncthreads()

        offset = BLOCK // 2
        while offset > 0:
            if tid < offset:
                shared[tid] = combine(shared[tid], shared[tid + offset])
            cuda.syncthreads()
            offset >>= 1

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return kernel1


@four_at_once(block_rule=BlockRule(2))
def kernel2(template: Template) -> Kernel:
    """Four elements per load: a quarter of the requests for the same bytes."""
    combine, identity, BLOCK = COMBINE[template.operation], template.identity, template.block

    @cuda.jit
    def kernel2(values, n, partials):
        tid = cuda.threadIdx.x
        mine = identity
        for i in range(4 * (cuda.blockIdx.x * BLOCK + tid), n, cuda.gridDim.x * BLOCK * 4):
            if i + 3 < n:
                a, b, c, d = cuda.load_vector(values, i, 4)
                mine = combine(mine, a)
                mine = combine(mine, b)
                mine = combine(mine, c)
                mine = combine(mine, d)
            else:
                for k in range(i, n):
                    mine = combine(mine, values[k])

        shared = cuda.shared.array(BLOCK, values.dtype)
        shared[tid] = mine
        cuda.syncthreads()

        offset = BLOCK // 2
        while offset > 0:
            if tid < offset:
                shared[tid] = combine(shared[tid], shared[tid + offset])
            cuda.syncthreads()
            offset >>= 1

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return kernel2


@four_at_once(block_rule=BlockRule(32, power_of_two=False, multiple_of=32))
def kernel4(template: Template) -> Kernel:
    """Warps reduce by shuffles, register to register; shared memory carries one value per warp."""
    combine, identity, BLOCK = COMBINE[template.operation], template.identity, template.block
    WARPS = BLOCK // 32

    @cuda.jit
    def kernel4(values, n, partials):
        tid = cuda.threadIdx.x
        warp = tid // 32
        lane = tid % 32
        mine = identity
        for i in range(4 * (cuda.blockIdx.x * BLOCK + tid), n, cuda.gridDim.x * BLOCK * 4):
            if i + 3 < n:
                a, b, c, d = cuda.load_vector(values, i, 4)
                mine = combine(mine, a)
                mine = combine(mine, b)
                mine = combine(mine, c)
                mine = combine(mine, d)
            else:
                for k in range(i, n):
                    mine = combine(mine, values[k])

        offset = 16
        while offset > 0:
            mine = combine(mine, cuda.shfl_down_sync(0xFFFFFFFF, mine, offset))
            offset >>= 1

        shared = cuda.shared.array(32, values.dtype)
        if lane == 0:
            shared[warp] = mine
        cuda.syncthreads()

        if warp == 0:
            mine = shared[lane] if lane < WARPS else identity
            offset = 16
            while offset > 0:
                mine = combine(mine, cuda.shfl_down_sync(0xFFFFFFFF, mine, offset))
                offset >>= 1
            if lane == 0:
                partials[cuda.blockIdx.x] = mine

    return kernel4
