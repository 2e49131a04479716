"""The kernels of `grids.cu` in gpusim's dialect."""

from __future__ import annotations

from numpy import float32, int32, uint32, uint64

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF


@cuda.jit(device=True)
def sum_of_block(v, parts):
    t = cuda.threadIdx.x
    o = 16
    while o > 0:
        v += cuda.shfl_down_sync(EVERY_LANE, v, o)
        o >>= 1
    if t % 32 == 0:
        parts[t // 32] = v
    cuda.syncthreads()
    v = parts[t] if t < 8 else float32(0)
    o = 4
    while o > 0:
        v += cuda.shfl_down_sync(EVERY_LANE, v, o)
        o >>= 1
    return v


@cuda.jit
def sum_by_last_block(x, partials, arrived, out, n):
    parts = cuda.shared.array(8, float32)
    is_last = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    total = float32(0)
    for i in range(cuda.blockIdx.x * 256 + t, n, cuda.gridDim.x * 256):
        total += x[i]
    total = sum_of_block(total, parts)
    if t == 0:
        partials[cuda.blockIdx.x] = total
        cuda.threadfence()
        before = cuda.atomic.add(arrived, 0, uint32(1))
        is_last[0] = 1 if before == uint32(cuda.gridDim.x - 1) else 0
    cuda.syncthreads()
    if is_last[0] == 0:
        return
    total = float32(0)
    seen = cuda.volatile(partials)
    for k in range(t, cuda.gridDim.x, 256):
        total += seen[k]
    total = sum_of_block(total, parts)
    if t == 0:
        out[0] = total


@cuda.jit
def fence_each(x, y, flags, n):
    i = cuda.blockIdx.x * 256 + cuda.threadIdx.x
    if i < n:
        y[i] = float32(2) * x[i]
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        raised = cuda.volatile(flags)
        raised[cuda.blockIdx.x] = 1


@cuda.jit(device=True)
def scanned_in_block(v, parts):
    t = cuda.threadIdx.x
    lane = t % 32
    warp = t // 32
    o = 1
    while o < 32:
        before = cuda.shfl_up_sync(EVERY_LANE, v, o)
        if lane >= o:
            v += before
        o *= 2
    if lane == 31:
        parts[warp] = v
    cuda.syncthreads()
    for k in range(warp):
        v += parts[k]
    return v


@cuda.jit
def chained_scan(x, y, sums, flags, tickets, n):
    parts = cuda.shared.array(8, int32)
    shared = cuda.shared.array(2, int32)
    t = cuda.threadIdx.x
    raised = cuda.volatile(flags)
    published = cuda.volatile(sums)
    if t == 0:
        shared[0] = cuda.atomic.add(tickets, 0, 1)
    cuda.syncthreads()
    ticket = shared[0]
    i = ticket * 256 + t
    v = scanned_in_block(x[i] if i < n else 0, parts)
    if t == 255:
        own = 0
        if ticket != 0:
            while raised[ticket - 1] == 0:
                pass
            cuda.threadfence()
            own = published[ticket - 1]
        shared[1] = own
        published[ticket] = own + v
        cuda.threadfence()
        raised[ticket] = 1
    cuda.syncthreads()
    if i < n:
        y[i] = shared[1] + v


@cuda.jit
def lookback_scan(x, y, states, tickets, n):
    parts = cuda.shared.array(8, int32)
    shared = cuda.shared.array(2, int32)
    t = cuda.threadIdx.x
    known = cuda.volatile(states)
    if t == 0:
        shared[0] = cuda.atomic.add(tickets, 0, 1)
    cuda.syncthreads()
    ticket = shared[0]
    base = ticket * 1024 + t * 4
    a, b, c, d = cuda.load_vector(x, base, 4)
    b += a
    c += b
    d += c
    inclusive = scanned_in_block(d, parts)
    if t == 255:
        first = uint64(1) if ticket != 0 else uint64(2)
        known[ticket] = (first << uint64(32)) | uint64(uint32(inclusive))
        prefix = 0
        other = ticket - 1
        while other >= 0:
            while True:
                state = known[other]
                if state != uint64(0):
                    break
            prefix += int32(uint32(state))
            if state >> uint64(32) == uint64(2):
                break
            other -= 1
        if ticket != 0:
            whole = uint64(uint32(prefix + inclusive))
            known[ticket] = (uint64(2) << uint64(32)) | whole
        shared[1] = prefix
    cuda.syncthreads()
    own = shared[1] + inclusive - d
    cuda.store_vector(y, base, (own + a, own + b, own + c, own + d))


@cuda.jit(device=True)
def smoothed(source, to, first, n, step):
    for i in range(first, n, step):
        left = source[i - 1 if i != 0 else 0]
        right = source[i + 1 if i < n - 1 else i]
        to[i] = float32(0.5) * source[i] + float32(0.25) * (left + right)


@cuda.jit
def rounds_of_grid(x, y, arrived, n, rounds):
    first = cuda.grid(1)
    step = cuda.gridsize(1)
    count = cuda.volatile(arrived)
    for k in range(rounds):
        if k % 2 != 0:
            smoothed(y, x, first, n, step)
        else:
            smoothed(x, y, first, n, step)
        cuda.threadfence()
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.atomic.add(arrived, 0, 1)
            while count[0] < (k + 1) * cuda.gridDim.x:
                pass
            cuda.threadfence()
        cuda.syncthreads()
