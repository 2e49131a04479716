"""Harris' seven reductions, as taught in a lecture: each removes a bottleneck of the one before.

`reduce1` to `reduce3` load one element a thread and look at n; the others load two and do not,
so that their input has to fill whole blocks.
"""

# Bodies of kernels are in the dialect: the compiler infers their types.
# Some published kernels take a count that they do not look at.
# ruff: noqa: ARG001
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from functools import partial

import numpy as np

from gpusim import cuda
from gpusim.catalogue import REDUCTION, BlockRule, Kernel, Template, kernel
from gpusim.kernels.operations import COMBINE
from gpusim.kernels.origins import LECTURE

lecture = partial(
    kernel,
    family=REDUCTION,
    origin=LECTURE,
    signature=("input", "output", np.uint32),
    dynamic_shared=True,
)
one_load = partial(lecture, block_rule=BlockRule(2))
two_loads = partial(
    lecture,
    per_thread=2,
    block_rule=BlockRule(2),
    guarded=False,
)
warp_tail = partial(two_loads, block_rule=BlockRule(64))


@one_load()
def reduce1(template: Template) -> Kernel:
    """Every second, fourth, eighth thread adds its neighbour: warps diverge, and % is slow."""
    combine, identity = COMBINE[template.operation], template.identity

    @cuda.jit
    def reduce1(numbers, partials, n):
        shared = cuda.shared.array(0, numbers.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + tid
        shared[tid] = numbers[i] if i < n else identity
        cuda.syncthreads()

        stride = np.uint32(1)
        while stride < cuda.blockDim.x:
            if tid % (2 * stride) == 0:
                shared[tid] = combine(shared[tid], shared[tid + stride])
            cuda.syncthreads()
            stride *= 2

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return reduce1


@one_load()
def reduce2(template: Template) -> Kernel:
    """Neighbouring threads work, so that whole warps go idle; their strides meet in few banks."""
    combine, identity = COMBINE[template.operation], template.identity

    @cuda.jit
    def reduce2(numbers, partials, n):
        shared = cuda.shared.array(0, numbers.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + tid
        shared[tid] = numbers[i] if i < n else identity
        cuda.syncthreads()

        stride = np.uint32(1)
        while stride < cuda.blockDim.x:
            index = np.int32(2 * stride * tid)
            if index < np.uint32(cuda.blockDim.x):
                shared[index] = combine(shared[index], shared[index + stride])
            cuda.syncthreads()
            stride *= 2

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return reduce2


@one_load()
def reduce3(template: Template) -> Kernel:
    """The lower half adds the upper half: neighbouring threads, neighbouring banks."""
    combine, identity = COMBINE[template.operation], template.identity

    @cuda.jit
    def reduce3(numbers, partials, n):
        shared = cuda.shared.array(0, numbers.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + tid
        shared[tid] = numbers[i] if i < n else identity
        cuda.syncthreads()

        stride = np.uint32(cuda.blockDim.x) // 2
        while stride > 0:
            if tid < stride:
                shared[tid] = combine(shared[tid], shared[tid + stride])
            cuda.syncthreads()
            stride //= 2

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return reduce3


@two_loads()
def reduce4(template: Template) -> Kernel:
    """Each thread adds two elements while it loads: no thread only loads."""
    combine = COMBINE[template.operation]

    @cuda.jit
    def reduce4(numbers, partials, n):
        shared = cuda.shared.array(0, numbers.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * (np.uint32(cuda.blockDim.x) * 2) + tid
        shared[tid] = combine(numbers[i], numbers[i + cuda.blockDim.x])
        cuda.syncthreads()

        stride = np.uint32(cuda.blockDim.x) // 2
        while stride > 0:
            if tid < stride:
                shared[tid] = combine(shared[tid], shared[tid + stride])
            cuda.syncthreads()
            stride >>= 1

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return reduce4


@warp_tail(
    defect="The last warp adds in plain shared memory with neither volatile nor a warp barrier: "
    "the compiler may keep elements in registers, and the lanes read sums before they are stored."
)
def reduce5(template: Template) -> Kernel:
    """The last warp continues without loop and barriers: fewer instructions, if it were correct."""
    combine = COMBINE[template.operation]

    @cuda.jit
    def reduce5(numbers, partials, n):
        shared = cuda.shared.array(0, numbers.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * (np.uint32(cuda.blockDim.x) * 2) + tid
        shared[tid] = combine(numbers[i], numbers[i + cuda.blockDim.x])
        cuda.syncthreads()

        stride = np.uint32(cuda.blockDim.x) // 2
        while stride > 32:
            if tid < stride:
                shared[tid] = combine(shared[tid], shared[tid + stride])
            cuda.syncthreads()
            stride >>= 1

        if tid < 32:
            shared[tid] = combine(shared[tid], shared[tid + 32])
            shared[tid] = combine(shared[tid], shared[tid + 16])
            shared[tid] = combine(shared[tid], shared[tid + 8])
            shared[tid] = combine(shared[tid], shared[tid + 4])
            shared[tid] = combine(shared[tid], shared[tid + 2])
            shared[tid] = combine(shared[tid], shared[tid + 1])

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return reduce5


@warp_tail(fixes="reduce5")
def reduce5_fixed(template: Template) -> Kernel:
    """The last warp continues without loop and barriers, in volatile shared memory."""
    combine = COMBINE[template.operation]

    @cuda.jit
    def reduce5_fixed(numbers, partials, n):
        shared = cuda.shared.array(0, numbers.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * (np.uint32(cuda.blockDim.x) * 2) + tid
        shared[tid] = combine(numbers[i], numbers[i + cuda.blockDim.x])
        cuda.syncthreads()

        stride = np.uint32(cuda.blockDim.x) // 2
        while stride > 32:
            if tid < stride:
                shared[tid] = combine(shared[tid], shared[tid + stride])
            cuda.syncthreads()
            stride >>= 1

        if tid < 32:
            tail = cuda.volatile(shared)
            tail[tid] = combine(tail[tid], tail[tid + 32])
            tail[tid] = combine(tail[tid], tail[tid + 16])
            tail[tid] = combine(tail[tid], tail[tid + 8])
            tail[tid] = combine(tail[tid], tail[tid + 4])
            tail[tid] = combine(tail[tid], tail[tid + 2])
            tail[tid] = combine(tail[tid], tail[tid + 1])

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return reduce5_fixed


@warp_tail(fixes="reduce6_published")
def reduce6(template: Template) -> Kernel:
    """The block size is known to the compiler, and the loop is fully unrolled."""
    # The listing begins with the step of 512 threads, although its own figures are for 1024;
    # `reduce6_published` is the listing to the letter.
    combine, BLOCK = COMBINE[template.operation], template.block

    @cuda.jit
    def reduce6(numbers, partials, n):
        shared = cuda.shared.array(0, numbers.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * (np.uint32(cuda.blockDim.x) * 2) + tid
        shared[tid] = combine(numbers[i], numbers[i + cuda.blockDim.x])
        cuda.syncthreads()

        if BLOCK >= 1024:
            if tid < 512:
                shared[tid] = combine(shared[tid], shared[tid + 512])
            cuda.syncthreads()
        if BLOCK >= 512:
            if tid < 256:
                shared[tid] = combine(shared[tid], shared[tid + 256])
            cuda.syncthreads()
        if BLOCK >= 256:
            if tid < 128:
                shared[tid] = combine(shared[tid], shared[tid + 128])
            cuda.syncthreads()
        if BLOCK >= 128:
            if tid < 64:
                shared[tid] = combine(shared[tid], shared[tid + 64])
            cuda.syncthreads()

        if tid < 32:
            tail = cuda.volatile(shared)
            tail[tid] = combine(tail[tid], tail[tid + 32])
            tail[tid] = combine(tail[tid], tail[tid + 16])
            tail[tid] = combine(tail[tid], tail[tid + 8])
            tail[tid] = combine(tail[tid], tail[tid + 4])
            tail[tid] = combine(tail[tid], tail[tid + 2])
            tail[tid] = combine(tail[tid], tail[tid + 1])

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return reduce6


@warp_tail(
    defect="The unrolled steps begin with that of 512 threads: a block of 1024, which the lecture "
    "measures, leaves the upper half of its sums out. Smaller blocks are right."
)
def reduce6_published(template: Template) -> Kernel:
    """The block size is known to the compiler, but only up to 512 threads."""
    combine, BLOCK = COMBINE[template.operation], template.block

    @cuda.jit
    def reduce6_published(numbers, partials, n):
        shared = cuda.shared.array(0, numbers.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * (np.uint32(cuda.blockDim.x) * 2) + tid
        shared[tid] = combine(numbers[i], numbers[i + cuda.blockDim.x])
        cuda.syncthreads()

        if BLOCK >= 512:
            if tid < 256:
                shared[tid] = combine(shared[tid], shared[tid + 256])
            cuda.syncthreads()
        if BLOCK >= 256:
            if tid < 128:
                shared[tid] = combine(shared[tid], shared[tid + 128])
            cuda.syncthreads()
        if BLOCK >= 128:
            if tid < 64:
                shared[tid] = combine(shared[tid], shared[tid + 64])
            cuda.syncthreads()

        if tid < 32:
            tail = cuda.volatile(shared)
            tail[tid] = combine(tail[tid], tail[tid + 32])
            tail[tid] = combine(tail[tid], tail[tid + 16])
            tail[tid] = combine(tail[tid], tail[tid + 8])
            tail[tid] = combine(tail[tid], tail[tid + 4])
            tail[tid] = combine(tail[tid], tail[tid + 2])
            tail[tid] = combine(tail[tid], tail[tid + 1])

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return reduce6_published


@warp_tail(grid_free=True)
def reduce7(template: Template) -> Kernel:
    """A grid-stride loop: each thread adds several elements before the tree begins."""
    combine, identity, BLOCK = COMBINE[template.operation], template.identity, template.block

    @cuda.jit
    def reduce7(numbers, partials, n):
        shared = cuda.shared.array(0, numbers.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.blockIdx.x) * (np.uint32(cuda.blockDim.x) * 2) + tid
        whole_grid = BLOCK * 2 * np.uint32(cuda.gridDim.x)
        shared[tid] = identity
        while i < n:
            shared[tid] = combine(shared[tid], combine(numbers[i], numbers[i + BLOCK]))
            i += whole_grid
        cuda.syncthreads()

        if BLOCK >= 1024:
            if tid < 512:
                shared[tid] = combine(shared[tid], shared[tid + 512])
            cuda.syncthreads()
        if BLOCK >= 512:
            if tid < 256:
                shared[tid] = combine(shared[tid], shared[tid + 256])
            cuda.syncthreads()
        if BLOCK >= 256:
            if tid < 128:
                shared[tid] = combine(shared[tid], shared[tid + 128])
            cuda.syncthreads()
        if BLOCK >= 128:
            if tid < 64:
                shared[tid] = combine(shared[tid], shared[tid + 64])
            cuda.syncthreads()

        if tid < 32:
            tail = cuda.volatile(shared)
            tail[tid] = combine(tail[tid], tail[tid + 32])
            tail[tid] = combine(tail[tid], tail[tid + 16])
            tail[tid] = combine(tail[tid], tail[tid + 8])
            tail[tid] = combine(tail[tid], tail[tid + 4])
            tail[tid] = combine(tail[tid], tail[tid + 2])
            tail[tid] = combine(tail[tid], tail[tid + 1])

        if tid == 0:
            partials[cuda.blockIdx.x] = shared[0]

    return reduce7
