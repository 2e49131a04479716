"""A reduction in five steps, to be traced thread by thread; nothing guards the loads."""

# Bodies of kernels are in the dialect: the compiler infers their types.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from functools import partial

import numpy as np

from gpusim import cuda
from gpusim.catalogue import REDUCTION, BlockRule, Kernel, Template, kernel
from gpusim.kernels.operations import COMBINE
from gpusim.kernels.origins import PATTERNS

unguarded = partial(
    kernel,
    family=REDUCTION,
    origin=PATTERNS,
    signature=("input", "output"),
    block_rule=BlockRule(2),
    guarded=False,
    dynamic_shared=True,
    default_block=128,
)
one_load = partial(
    unguarded,
)
two_loads = partial(unguarded, per_thread=2)


@one_load()
def step1(template: Template) -> Kernel:
    """Half of the lanes of a warp take the branch: thread 0 does, thread 1 does not."""
    combine = COMBINE[template.operation]

    @cuda.jit
    def step1(values, sums):
        shared = cuda.shared.array(0, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + tid
        shared[tid] = values[i]
        cuda.syncthreads()

        distance = np.uint32(1)
        while distance < cuda.blockDim.x:
            if tid % (2 * distance) == 0:
                shared[tid] = combine(shared[tid], shared[tid + distance])
            cuda.syncthreads()
            distance *= 2

        if tid == 0:
            sums[cuda.blockIdx.x] = shared[0]

    return step1


@one_load(
    defect="The bound shrinks with the stride (blockDim.x / s instead of blockDim.x): from the "
    "second iteration on the upper part of the block is skipped."
)
def step2(template: Template) -> Kernel:
    """Neighbouring threads take the branch; bounded by too little, they leave elements out."""
    combine = COMBINE[template.operation]

    @cuda.jit
    def step2(values, sums):
        shared = cuda.shared.array(0, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + tid
        shared[tid] = values[i]
        cuda.syncthreads()

        distance = np.uint32(1)
        while distance < cuda.blockDim.x:
            index = np.int32(2 * distance * tid)
            if index < np.uint32(cuda.blockDim.x) // distance:
                shared[index] = combine(shared[index], shared[index + distance])
            cuda.syncthreads()
            distance *= 2

        if tid == 0:
            sums[cuda.blockIdx.x] = shared[0]

    return step2


@one_load(fixes="step2")
def step2_fixed(template: Template) -> Kernel:
    """Neighbouring threads take the branch: whole warps do or do not, but banks are shared."""
    combine = COMBINE[template.operation]

    @cuda.jit
    def step2_fixed(values, sums):
        shared = cuda.shared.array(0, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + tid
        shared[tid] = values[i]
        cuda.syncthreads()

        distance = np.uint32(1)
        while distance < cuda.blockDim.x:
            index = np.int32(2 * distance * tid)
            if index < np.uint32(cuda.blockDim.x):
                shared[index] = combine(shared[index], shared[index + distance])
            cuda.syncthreads()
            distance *= 2

        if tid == 0:
            sums[cuda.blockIdx.x] = shared[0]

    return step2_fixed


@one_load()
def step3(template: Template) -> Kernel:
    """Each thread uses one bank, its own: both of its elements lie a whole stride apart."""
    combine = COMBINE[template.operation]

    @cuda.jit
    def step3(values, sums):
        shared = cuda.shared.array(0, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + tid
        shared[tid] = values[i]
        cuda.syncthreads()

        distance = np.uint32(cuda.blockDim.x) // 2
        while distance > 0:
            if tid < distance:
                shared[tid] = combine(shared[tid], shared[tid + distance])
            cuda.syncthreads()
            distance //= 2

        if tid == 0:
            sums[cuda.blockIdx.x] = shared[0]

    return step3


@two_loads()
def step4(template: Template) -> Kernel:
    """The first addition is done while loading, by all threads: twice the elements."""
    combine = COMBINE[template.operation]

    @cuda.jit
    def step4(values, sums):
        shared = cuda.shared.array(0, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) * 2 + tid
        shared[tid] = combine(values[i], values[i + cuda.blockDim.x])
        cuda.syncthreads()

        distance = np.uint32(cuda.blockDim.x) // 2
        while distance > 0:
            if tid < distance:
                shared[tid] = combine(shared[tid], shared[tid + distance])
            cuda.syncthreads()
            distance //= 2

        if tid == 0:
            sums[cuda.blockIdx.x] = shared[0]

    return step4


@two_loads(
    block_rule=BlockRule(64),
    defect="Lanes of a warp are taken to be in step by themselves: in plain shared memory, with "
    "neither volatile nor a warp barrier, they read sums before these are stored.",
)
def step5(template: Template) -> Kernel:
    """The last warp needs no block barrier; that it needs none at all is a mistake."""
    combine = COMBINE[template.operation]

    @cuda.jit
    def step5(values, sums):
        shared = cuda.shared.array(0, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) * 2 + tid
        shared[tid] = combine(values[i], values[i + cuda.blockDim.x])
        cuda.syncthreads()

        distance = np.uint32(cuda.blockDim.x) // 2
        while distance > 32:
            if tid < distance:
                shared[tid] = combine(shared[tid], shared[tid + distance])
            cuda.syncthreads()
            distance //= 2

        if tid < 32:
            shared[tid] = combine(shared[tid], shared[tid + 32])
            shared[tid] = combine(shared[tid], shared[tid + 16])
            shared[tid] = combine(shared[tid], shared[tid + 8])
            shared[tid] = combine(shared[tid], shared[tid + 4])
            shared[tid] = combine(shared[tid], shared[tid + 2])
            shared[tid] = combine(shared[tid], shared[tid + 1])

        if tid == 0:
            sums[cuda.blockIdx.x] = shared[0]

    return step5


@two_loads(block_rule=BlockRule(64), fixes="step5")
def step5_fixed(template: Template) -> Kernel:
    """The last warp needs no block barrier, only a warp barrier on either side of each store."""
    combine = COMBINE[template.operation]

    @cuda.jit
    def step5_fixed(values, sums):
        shared = cuda.shared.array(0, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) * 2 + tid
        shared[tid] = combine(values[i], values[i + cuda.blockDim.x])
        cuda.syncthreads()

        distance = np.uint32(cuda.blockDim.x) // 2
        while distance > 32:
            if tid < distance:
                shared[tid] = combine(shared[tid], shared[tid + distance])
            cuda.syncthreads()
            distance //= 2

        if tid < 32:
            total = combine(shared[tid], shared[tid + 32])
            cuda.syncwarp()
            shared[tid] = total
            cuda.syncwarp()
            total = combine(total, shared[tid + 16])
            cuda.syncwarp()
            shared[tid] = total
            cuda.syncwarp()
            total = combine(total, shared[tid + 8])
            cuda.syncwarp()
            shared[tid] = total
            cuda.syncwarp()
            total = combine(total, shared[tid + 4])
            cuda.syncwarp()
            shared[tid] = total
            cuda.syncwarp()
            total = combine(total, shared[tid + 2])
            cuda.syncwarp()
            shared[tid] = total
            cuda.syncwarp()
            total = combine(total, shared[tid + 1])
            cuda.syncwarp()
            shared[tid] = total

        if tid == 0:
            sums[cuda.blockIdx.x] = shared[0]

    return step5_fixed
