"""Exclusive scans: each element becomes the sum of all elements before it."""

# Bodies of kernels are in the dialect: the compiler infers their types.
# Some published kernels take a count that they do not look at.
# ruff: noqa: ARG001
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from functools import partial

import numpy as np

from gpusim import cuda
from gpusim.catalogue import NUMBERS, SCAN, BlockRule, Kernel, Template, kernel
from gpusim.kernels.origins import COARSENING_NOTES

exclusive = partial(
    kernel,
    family=SCAN,
    origin=COARSENING_NOTES,
    signature=("input", "output", np.int32),
    block_rule=BlockRule(1, power_of_two=False),
    guarded=False,
    dtypes=("float32", *(name for name in NUMBERS if name != "float32")),
)
one_block = partial(exclusive, one_block=True, default_n=256)


@exclusive(default_n=2**10)
def naive_scan(_: Template) -> Kernel:
    """Each thread adds all elements before its own: n squared additions for n sums."""

    @cuda.jit
    def naive_scan(values, sums, length):
        index = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + cuda.threadIdx.x
        total = 0
        i = np.uint32(0)
        while i < index:
            total += values[i]
            i += 1
        sums[index] = total

    return naive_scan


@one_block(
    defect="Thread 0 reads input[-1] (as tid is unsigned, element 4,294,967,295), outside the "
    "array: nothing comes before the first element, and its sum is 0."
)
def kogge_stone_scan(template: Template) -> Kernel:
    """Sums of 2, 4, 8 neighbours in log2(n) steps; the shift that makes it exclusive goes wrong."""
    BLOCK = template.block

    @cuda.jit
    def kogge_stone_scan(values, sums, length):
        shared = cuda.shared.array(BLOCK, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        shared[tid] = values[tid - 1]

        stride = np.uint32(1)
        while stride < length:
            cuda.syncthreads()
            if tid >= stride:
                total = shared[tid] + shared[tid - stride]
            cuda.syncthreads()
            if tid >= stride:
                shared[tid] = total
            stride *= 2

        sums[tid] = shared[tid]

    return kogge_stone_scan


@one_block(fixes="kogge_stone_scan")
def kogge_stone_scan_fixed(template: Template) -> Kernel:
    """Sums of 2, 4, 8 neighbours in log2(n) steps of two barriers; thread 0 begins with 0."""
    BLOCK = template.block

    @cuda.jit
    def kogge_stone_scan_fixed(values, sums, length):
        shared = cuda.shared.array(BLOCK, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        shared[tid] = values[tid - 1] if tid > 0 else 0

        stride = np.uint32(1)
        while stride < length:
            cuda.syncthreads()
            if tid >= stride:
                total = shared[tid] + shared[tid - stride]
            cuda.syncthreads()
            if tid >= stride:
                shared[tid] = total
            stride *= 2

        sums[tid] = shared[tid]

    return kogge_stone_scan_fixed


@one_block(
    defect="It gives inclusive sums, although by its name it replaces the exclusive scan: it "
    "starts with input[i] where the exclusive scan starts with input[i - 1]."
)
def kogge_stone_scan_double(template: Template) -> Kernel:
    """Double buffering saves one of the two barriers of each step."""
    BLOCK = template.block

    @cuda.jit
    def kogge_stone_scan_double(values, sums, length):
        shared = cuda.shared.array(2 * BLOCK, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        source, target = np.uint32(1), np.uint32(0)
        shared[tid] = values[tid]
        shared[length + tid] = shared[tid]
        cuda.syncthreads()

        stride = np.uint32(1)
        while stride < length:
            target = 1 - target
            source = 1 - source
            if tid >= stride:
                earlier = shared[source * length + tid - stride]
                shared[target * length + tid] = shared[source * length + tid] + earlier
            else:
                shared[target * length + tid] = shared[source * length + tid]
            cuda.syncthreads()
            stride *= 2

        sums[tid] = shared[target * length + tid]

    return kogge_stone_scan_double


@one_block(fixes="kogge_stone_scan_double")
def kogge_stone_scan_double_fixed(template: Template) -> Kernel:
    """Double buffering saves one of the two barriers of each step; exclusive."""
    BLOCK = template.block

    @cuda.jit
    def kogge_stone_scan_double_fixed(values, sums, length):
        shared = cuda.shared.array(2 * BLOCK, values.dtype)
        tid = np.uint32(cuda.threadIdx.x)
        source, target = np.uint32(1), np.uint32(0)
        shared[tid] = values[tid - 1] if tid > 0 else 0
        shared[length + tid] = shared[tid]
        cuda.syncthreads()

        stride = np.uint32(1)
        while stride < length:
            target = 1 - target
            source = 1 - source
            if tid >= stride:
                earlier = shared[source * length + tid - stride]
                shared[target * length + tid] = shared[source * length + tid] + earlier
            else:
                shared[target * length + tid] = shared[source * length + tid]
            cuda.syncthreads()
            stride *= 2

        sums[tid] = shared[target * length + tid]

    return kogge_stone_scan_double_fixed
