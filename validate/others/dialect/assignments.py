"""The kernels of `assignments.cu` in gpusim's dialect; it has no constant memory."""

from __future__ import annotations

import math

from numpy import float32, float64, int32, int64, uint8, uint32

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
TURN = float32(6.2831853)


@cuda.jit
def join_chains(heads, after, keys, amounts, probes, sums, shift, n):
    i = cuda.grid(1)
    if i >= n:
        return
    key = probes[i]
    total = int64(0)
    row = heads[int32(uint32(key) * uint32(2654435761) >> uint32(shift))]
    while row >= 0:
        if keys[row] == key:
            total += amounts[row]
        row = after[row]
    sums[i] = total


@cuda.jit
def select_rows(price, quantity, least, most, rows, counts, n):
    begins = cuda.shared.array(16, int32)
    i = cuda.grid(1)
    lane = cuda.threadIdx.x & 31
    warp = cuda.threadIdx.x >> 5
    chosen = i < n and price[i] >= least and quantity[i] < most
    votes = cuda.ballot_sync(EVERY_LANE, chosen)
    if lane == 0:
        begins[warp] = int32(cuda.popc(votes))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        total = 0
        for k in range(16):
            count = begins[k]
            begins[k] = total
            total += count
        counts[cuda.blockIdx.x] = total
    cuda.syncthreads()
    before = uint32(votes) & ((uint32(1) << uint32(lane)) - uint32(1))
    place = begins[warp] + int32(cuda.popc(before))
    if chosen:
        rows[int64(cuda.blockIdx.x) * cuda.blockDim.x + place] = i


@cuda.jit
def group_by(group, amount, sums, counts, n):
    own = cuda.shared.array(64, float64)
    number = cuda.shared.array(64, uint32)
    t = cuda.threadIdx.x
    if t < 64:
        own[t] = float64(0)
        number[t] = uint32(0)
    cuda.syncthreads()
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        g = int32(group[i]) & 63
        cuda.atomic.add(own, g, amount[i])
        cuda.atomic.add(number, g, uint32(1))
    cuda.syncthreads()
    if t < 64:
        cuda.atomic.add(sums, t, own[t])
        cuda.atomic.add(counts, t, number[t])


@cuda.jit
def cyclic_reduction(a, b, c, d, x):
    as_ = cuda.shared.array(256, float32)
    bs = cuda.shared.array(256, float32)
    cs = cuda.shared.array(256, float32)
    ds = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    at = int64(cuda.blockIdx.x) * 256 + t
    as_[t] = a[at] if t > 0 else float32(0)
    bs[t] = b[at]
    cs[t] = c[at] if t < 255 else float32(0)
    ds[t] = d[at]
    cuda.syncthreads()
    step = 1
    while step < 256:
        up = max(t - step, 0)
        down = min(t + step, 255)
        alpha = -as_[t] / bs[up]
        gamma = -cs[t] / bs[down]
        na = alpha * as_[up]
        nc = gamma * cs[down]
        nb = bs[t] + alpha * cs[up] + gamma * as_[down]
        nd = ds[t] + alpha * ds[up] + gamma * ds[down]
        cuda.syncthreads()
        as_[t] = na
        bs[t] = nb
        cs[t] = nc
        ds[t] = nd
        cuda.syncthreads()
        step *= 2
    x[at] = ds[t] / bs[t]


@cuda.jit
def red_black(u, f, h2, colour, n):
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    column = 2 * (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) + ((row + colour) & 1)
    if row == 0 or column == 0 or row >= n - 1 or column >= n - 1:
        return
    i = row * n + column
    u[i] = 0.25 * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] - h2 * f[i])


@cuda.jit(device=True)
def stepped(state):
    state ^= state << uint32(13)
    state ^= state >> uint32(17)
    return state ^ (state << uint32(5))


@cuda.jit
def asian_option(sums, start, strike, drift, swing):
    parts = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    state = uint32(cuda.grid(1)) * uint32(747796405) + uint32(2891336453)
    price = start
    total = float32(0)
    for _ in range(64):
        state = stepped(state)
        u = float32((state >> uint32(8)) + uint32(1)) / float32(16777217)
        state = stepped(state)
        v = float32(state >> uint32(8)) / float32(16777216)
        normal = math.sqrt(float32(-2) * math.log(u)) * math.cos(TURN * v)
        price *= math.exp(drift + swing * normal)
        total += price
    pay = max(total / float32(64) - strike, float32(0))
    o = 16
    while o > 0:
        pay += cuda.shfl_down_sync(EVERY_LANE, pay, o)
        o >>= 1
    if t % 32 == 0:
        parts[t // 32] = pay
    cuda.syncthreads()
    if t == 0:
        sums[cuda.blockIdx.x] = parts[0] + parts[1] + parts[2] + parts[3]


@cuda.jit
def ell_product(columns, values, x, y, n):
    row = cuda.grid(1)
    if row >= n:
        return
    total = float64(0)
    for k in range(16):
        column = columns[int64(k) * n + row]
        if column >= 0:
            total += values[int64(k) * n + row] * x[column]
    y[row] = total


@cuda.jit
def bilateral(x, y, space, span, n):
    c, r = cuda.grid(2)
    if c >= n or r >= n:
        return
    centre = x[r * n + c]
    total = float32(0)
    norm = float32(0)
    for i in range(-2, 3):
        for j in range(-2, 3):
            v = x[min(max(r + i, 0), n - 1) * n + min(max(c + j, 0), n - 1)]
            weight = math.exp(-(i * i + j * j) * space - (v - centre) * (v - centre) * span)
            total += weight * v
            norm += weight
    y[r * n + c] = total / norm


@cuda.jit(device=True)
def order(v, a, b):
    low = min(v[a], v[b])
    v[b] = max(v[a], v[b])
    v[a] = low


@cuda.jit
def median3x3(x, y, n):
    v = cuda.local.array(9, int32)
    c, r = cuda.grid(2)
    if c < 1 or r < 1 or c >= n - 1 or r >= n - 1:
        return
    for k in range(9):
        v[k] = int32(x[(r + k // 3 - 1) * n + c + k % 3 - 1])
    for k in range(1, 8, 3):
        order(v, k, k + 1)
    for k in range(0, 7, 3):
        order(v, k, k + 1)
    for k in range(1, 8, 3):
        order(v, k, k + 1)
    order(v, 0, 3)
    order(v, 5, 8)
    order(v, 4, 7)
    order(v, 3, 6)
    order(v, 1, 4)
    order(v, 2, 5)
    order(v, 4, 7)
    order(v, 4, 2)
    order(v, 6, 4)
    order(v, 4, 2)
    y[r * n + c] = uint8(v[4])


@cuda.jit
def rule_110(cells, later, n):
    line = cuda.shared.array((2, 256), uint32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * 254 + t - 1
    own = cells[(i + n) % n]
    line[0, t] = own
    for k in range(32):
        cuda.syncthreads()
        before = line[k & 1, max(t - 1, 0)]
        after = line[k & 1, min(t + 1, 255)]
        left = (own << uint32(1)) | (before >> uint32(31))
        right = (own >> uint32(1)) | (after << uint32(31))
        own = (own | right) & ~(left & own & right)
        line[~k & 1, t] = own
    if t >= 1 and t < 255 and i < n:
        later[i] = own


@cuda.jit
def random_walks(begins, targets, ends, n):
    i = cuda.grid(1)
    if i >= n:
        return
    state = uint32(i) * uint32(2654435761) + uint32(1)
    node = i
    for _ in range(16):
        begin = begins[node]
        degree = begins[node + 1] - begin
        state = state * uint32(1664525) + uint32(1013904223)
        node = targets[begin + int32((state >> uint32(16)) % uint32(degree))]
    ends[i] = node
