"""The kernels of `atomics.cu` in gpusim's dialect."""

from __future__ import annotations

from numpy import float32, int32, uint32

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF


@cuda.jit
def count_above(x, limit, count, n):
    i = cuda.grid(1)
    if i < n and x[i] > limit:
        cuda.atomic.add(count, 0, 1)


@cuda.jit
def float_to_one_word(x, total, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(total, 0, x[i])


@cuda.jit
def keep_by_tickets(x, limit, y, count, n):
    i = cuda.grid(1)
    if i < n and x[i] > limit:
        y[cuda.atomic.add(count, 0, 1)] = x[i]


@cuda.jit
def keep_by_warps(x, limit, y, count, n):
    i = cuda.grid(1)
    lane = cuda.threadIdx.x % 32
    kept = i < n and x[i] > limit
    votes = cuda.ballot_sync(EVERY_LANE, kept)
    first = 0
    if lane == 0 and votes != 0:
        first = cuda.atomic.add(count, 0, int32(cuda.popc(votes)))
    first = cuda.shfl_sync(EVERY_LANE, first, 0)
    if kept:
        before = uint32(votes) & ((uint32(1) << uint32(lane)) - uint32(1))
        y[first + int32(cuda.popc(before))] = x[i]


@cuda.jit
def histogram_global(x, counts, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(counts, x[i], 1)


histogram_of_many = histogram_global


@cuda.jit
def histogram_skewed(x, counts, n):
    own = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    own[t] = 0
    cuda.syncthreads()
    for i in range(cuda.blockIdx.x * 256 + t, n, cuda.gridDim.x * 256):
        cuda.atomic.add(own, x[i], 1)
    cuda.syncthreads()
    if own[t] != 0:
        cuda.atomic.add(counts, t, own[t])


@cuda.jit
def float_to_sector(x, sums, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(sums, i % 8, x[i])


@cuda.jit
def float_to_line(x, sums, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(sums, i % 32, x[i])


@cuda.jit
def scatter_add(x, places, sums, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(sums, places[i], x[i])


@cuda.jit
def largest(x, most, n):
    parts = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    best = 0
    for i in range(cuda.blockIdx.x * 256 + t, n, cuda.gridDim.x * 256):
        best = max(best, x[i])
    o = 16
    while o > 0:
        best = max(best, cuda.shfl_xor_sync(EVERY_LANE, best, o))
        o >>= 1
    if t % 32 == 0:
        parts[t // 32] = best
    cuda.syncthreads()
    if t != 0:
        return
    for k in range(1, 8):
        best = max(best, parts[k])
    cuda.atomic.max(most, 0, best)


@cuda.jit
def shared_float_sum(x, y, n):
    total = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    if t == 0:
        total[0] = float32(0)
    cuda.syncthreads()
    cuda.atomic.add(total, 0, x[cuda.blockIdx.x * 256 + t])
    cuda.syncthreads()
    if t == 0:
        y[cuda.blockIdx.x] = total[0]


@cuda.jit
def radix_count(x, counts, shift, n):
    own = cuda.shared.array(16, int32)
    t = cuda.threadIdx.x
    if t < 16:
        own[t] = 0
    cuda.syncthreads()
    for k in range(8):
        digit = (x[cuda.blockIdx.x * 2048 + k * 256 + t] >> uint32(shift)) & uint32(15)
        cuda.atomic.add(own, int32(digit), 1)
    cuda.syncthreads()
    if t < 16:
        counts[t * cuda.gridDim.x + cuda.blockIdx.x] = own[t]


@cuda.jit
def exchange(slots, places, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = cuda.atomic.exch(slots, places[i], i)
