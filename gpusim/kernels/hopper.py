"""Reductions with instructions of Ampere and Hopper, and a scan of one pass."""

# Bodies of kernels are in the dialect: the compiler infers their types.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from functools import partial

import numpy as np

from gpusim import cuda
from gpusim.catalogue import REDUCTION, SCAN, BlockRule, Kernel, Template, kernel
from gpusim.kernels.operations import COMBINE
from gpusim.kernels.origins import LOOK_BACK, PROGRAMMING_GUIDE

FULL_MASK = 0xFFFFFFFF
WHOLE_WARPS = BlockRule(32, power_of_two=False, multiple_of=32)
STAGES = 4
OF_WARP = {
    "sum": cuda.reduce_add_sync, "max": cuda.reduce_max_sync, "min": cuda.reduce_min_sync,
}  # fmt: skip
AGGREGATE, PREFIX = np.uint64(1 << 32), np.uint64(2 << 32)

in_nvccs_code = partial(
    kernel,
    family=REDUCTION,
    origin=PROGRAMMING_GUIDE,
    block_rule=WHOLE_WARPS,
    per_thread=4,
    is_lowered=False,
)


def block_total(template: Template) -> Kernel:
    """Return a device function that combines a number of each thread, for thread 0."""
    combine, identity, WARPS = COMBINE[template.operation], template.identity, template.block // 32

    @cuda.jit(device=True)
    def warp_total(mine):
        offset = 16
        while offset > 0:
            mine = combine(mine, cuda.shfl_down_sync(FULL_MASK, mine, offset))
            offset >>= 1
        return mine

    @cuda.jit(device=True)
    def block_total(mine, totals):
        tid = cuda.threadIdx.x
        mine = warp_total(mine)
        if tid % 32 == 0:
            totals[tid // 32] = mine
        cuda.syncthreads()
        if tid < 32:
            mine = warp_total(totals[tid] if tid < WARPS else identity)
        return mine

    return block_total


@in_nvccs_code(signature=("input", np.uint32, "output"), dtypes=("int32", "uint32"), least_cc="8.0")
def reduce_redux(template: Template) -> Kernel:
    """redux.sync combines the lanes of a warp: one instruction in place of five shuffles."""
    combine, identity, BLOCK = COMBINE[template.operation], template.identity, template.block
    warp_total, WARPS = OF_WARP[template.operation], template.block // 32

    @cuda.jit
    def reduce_redux(values, n, partials):
        totals = cuda.shared.array(32, values.dtype)
        tid = cuda.threadIdx.x
        i = np.uint32(cuda.blockIdx.x) * np.uint32(4 * BLOCK) + tid
        mine = identity
        for _ in range(4):
            mine = combine(mine, values[i] if i < n else identity)
            i += BLOCK

        mine = warp_total(FULL_MASK, mine)
        if tid % 32 == 0:
            totals[tid // 32] = mine
        cuda.syncthreads()

        if tid < 32:
            mine = warp_total(FULL_MASK, totals[tid] if tid < WARPS else identity)
            if tid == 0:
                partials[cuda.blockIdx.x] = mine

    return reduce_redux


@in_nvccs_code(signature=("input", np.uint32, "output"), default_cluster=8, least_cc="9.0")
def reduce_cluster(template: Template) -> Kernel:
    """A cluster leaves one sum: its blocks store theirs in the shared memory of the first."""
    combine, identity, BLOCK = COMBINE[template.operation], template.identity, template.block
    of_block = block_total(template)

    @cuda.jit
    def reduce_cluster(values, n, partials):
        cuda.cluster.barrier_arrive()
        warps = cuda.shared.array(32, values.dtype)
        blocks = cuda.shared.array(16, values.dtype)
        tid = cuda.threadIdx.x
        i = np.uint32(cuda.blockIdx.x) * np.uint32(4 * BLOCK) + tid
        mine = identity
        for _ in range(4):
            mine = combine(mine, values[i] if i < n else identity)
            i += BLOCK

        mine = of_block(mine, warps)
        rank = cuda.cluster.block_rank()
        cuda.cluster.barrier_wait()
        if tid == 0:
            of_first = cuda.cluster.map_shared_rank(blocks, 0)
            of_first[rank] = mine
        cuda.cluster.sync()

        if rank == 0 and tid == 0:
            size = cuda.cluster.num_blocks()
            for other in range(1, size):
                mine = combine(mine, blocks[other])
            partials[cuda.blockIdx.x // size] = mine

    return reduce_cluster


@in_nvccs_code(
    signature=("input", "output"),
    block_rule=BlockRule(32, 512, power_of_two=False, multiple_of=32),
    dtypes=("int32", "uint32", "float32"),
    guarded=False,
    default_coarse=8,
    least_cc="9.0",
)
def reduce_bulk(template: Template) -> Kernel:
    """Bulk copies run ahead of the sums: mbarriers mark four stages as full or empty."""
    combine, identity, BLOCK = COMBINE[template.operation], template.identity, template.block
    of_block, TILES, TILE = block_total(template), template.coarse, 4 * template.block
    TILE_BYTES = TILE * template.dtype.itemsize

    @cuda.jit
    def reduce_bulk(values, partials):
        stages = cuda.shared.array(STAGES * TILE, values.dtype)
        full = cuda.shared.array(STAGES, np.uint64)
        empty = cuda.shared.array(STAGES, np.uint64)
        warps = cuda.shared.array(32, values.dtype)
        tid = cuda.threadIdx.x
        first = np.uint32(cuda.blockIdx.x) * np.uint32(TILES * TILE)
        if tid == 0:
            for stage in range(STAGES):
                cuda.barrier.init(full, stage, 1)
                cuda.barrier.init(empty, stage, BLOCK)
            cuda.fence_proxy_async()
            for tile in range(min(STAGES, TILES)):
                cuda.barrier.arrive_tx(full, tile, 1, TILE_BYTES)
                cuda.memcpy_async_tx(
                    stages, tile * TILE, values, first + tile * TILE, TILE, full, tile
                )
        cuda.syncthreads()

        mine = identity
        for tile in range(TILES):
            stage = tile % STAGES
            parity = tile // STAGES % 2
            cuda.barrier.wait_parity(full, stage, parity)
            for k in range(4):
                mine = combine(mine, stages[stage * TILE + k * BLOCK + tid])
            cuda.barrier.arrive(empty, stage)
            following = tile + STAGES
            if tid == 0 and following < TILES:
                cuda.barrier.wait_parity(empty, stage, parity)
                cuda.barrier.arrive_tx(full, stage, 1, TILE_BYTES)
                cuda.memcpy_async_tx(
                    stages, stage * TILE, values, first + following * TILE, TILE, full, stage
                )

        mine = of_block(mine, warps)
        if tid == 0:
            partials[cuda.blockIdx.x] = mine

    return reduce_bulk


@cuda.jit(device=True)
def warp_scan(mine, lane):
    """Return the sum of a number of the lanes up to each."""
    offset = 1
    while offset < 32:
        other = cuda.shfl_up_sync(FULL_MASK, mine, offset)
        if lane >= offset:
            mine += other
        offset *= 2
    return mine


def sum_before_in(number: type) -> Kernel:
    """Return a device function that sums all tiles before one, in numbers of a type."""

    @cuda.jit(device=True)
    def sum_before(words, tile, lane):
        total = number(0)
        place = tile - 1 - lane
        complete = np.uint32(0)
        while complete == 0:
            while True:
                word = words[max(place, 0)]
                if cuda.all_sync(FULL_MASK, word != 0):
                    break
            complete = cuda.ballot_sync(FULL_MASK, word >= PREFIX)
            nearest = cuda.ffs(complete) - 1 if complete != 0 else 31
            part = number(word) if lane <= nearest else number(0)
            offset = 16
            while offset > 0:
                part += cuda.shfl_xor_sync(FULL_MASK, part, offset)
                offset >>= 1
            total += part
            place -= 32
        return total

    return sum_before


@kernel(
    family=SCAN,
    origin=LOOK_BACK,
    signature=("input", "output", "flags"),
    block_rule=WHOLE_WARPS,
    per_thread=4,
    guarded=False,
    dtypes=("int32", "uint32"),
)
def lookback_scan(template: Template) -> Kernel:
    """One pass: a warp reads the sums of 32 earlier blocks, back to one with all before it."""
    BLOCK, WARPS, number = template.block, template.block // 32, template.dtype.type
    sum_before = sum_before_in(number)

    @cuda.jit
    def lookback_scan(values, sums, flags):
        totals = cuda.shared.array(32, values.dtype)
        before = cuda.shared.array(1, values.dtype)
        words = cuda.volatile(flags)
        tid, tile = cuda.threadIdx.x, cuda.blockIdx.x
        warp, lane = tid // 32, tid % 32
        i = np.uint32(tile) * np.uint32(4 * BLOCK) + np.uint32(4 * tid)
        a, b, c, d = cuda.load_vector(values, i, 4)
        own = a + b + c + d
        through = warp_scan(own, lane)
        if lane == 31:
            totals[warp] = through
        cuda.syncthreads()

        if warp == 0:
            through_warp = warp_scan(totals[lane] if lane < WARPS else number(0), lane)
            totals[lane] = through_warp
            if lane == 31:
                status = AGGREGATE if tile > 0 else PREFIX
                cuda.atomic.exch(flags, tile, status | np.uint32(through_warp))
            earlier = number(0)
            if tile > 0:
                earlier = sum_before(words, tile, lane)
                if lane == 31:
                    cuda.atomic.exch(flags, tile, PREFIX | np.uint32(earlier + through_warp))
            if lane == 0:
                before[0] = earlier
        cuda.syncthreads()

        start = before[0] + through - own
        if warp > 0:
            start += totals[warp - 1]
        cuda.store_vector(sums, i, (start, start + a, start + a + b, start + a + b + c))

    return lookback_scan
