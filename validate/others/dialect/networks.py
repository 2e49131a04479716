"""The kernels of `networks.cu` in gpusim's dialect; it has no vectors of bytes."""

from __future__ import annotations

import math

import numpy as np
from numpy import float32, int32, int64

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
LOWEST = float32(-1e30)
ALMOST_ZERO = float32(1e-8)
TINY = float32(1e-5)


@cuda.jit(device=True)
def leaky(v):
    return v if v > float32(0) else float32(0.01) * v


@cuda.jit
def leaky_relu4(x, y, n):
    i = cuda.grid(1)
    if i >= n // 4:
        return
    a, b, c, d = cuda.load_vector(x, 4 * i, 4)
    cuda.store_vector(y, 4 * i, (leaky(a), leaky(b), leaky(c), leaky(d)))


@cuda.jit
def max_pool(x, y, n):
    column, row = cuda.grid(2)
    half = n // 2
    channel = int64(cuda.blockIdx.z)
    if column >= half or row >= half:
        return
    top = (channel * n + 2 * row) * n + 2 * column
    upper = max(x[top], x[top + 1])
    y[(channel * half + row) * half + column] = max(upper, max(x[top + n], x[top + n + 1]))


@cuda.jit
def depthwise3x3(x, weights, y, n):
    column = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    row = cuda.blockIdx.y * 8 + cuda.threadIdx.y
    channel = cuda.blockIdx.z
    picture = int64(channel) * n * n
    total = float32(0)
    for i in range(-1, 2):
        for j in range(-1, 2):
            r = row + i
            c = column + j
            if r >= 0 and r < n and c >= 0 and c < n:
                weight = weights[9 * channel + 3 * i + j + 4]
                total = cuda.fma(x[picture + r * n + c], weight, total)
    y[(int64(channel) * n + row) * n + column] = total


@cuda.jit
def batch_norm(x, mean, variance, scale, shift, y, plane, n):
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        channel = i // plane % 64
        centred = x[i] - mean[channel]
        factor = float32(1) / math.sqrt(variance[channel] + TINY)
        y[i] = centred * factor * scale[channel] + shift[channel]


@cuda.jit
def adam(weights, gradient, first, second, rate, n):
    i = cuda.grid(1)
    if i >= n:
        return
    g = gradient[i]
    m = float32(0.9) * first[i] + float32(0.1) * g
    v = float32(0.999) * second[i] + float32(0.001) * g * g
    first[i] = m
    second[i] = v
    weights[i] -= rate * m / (math.sqrt(v) + ALMOST_ZERO)


@cuda.jit(device=True)
def warp_sum(v):
    o = 16
    while o > 0:
        v += cuda.shfl_xor_sync(EVERY_LANE, v, o)
        o //= 2
    return v


@cuda.jit
def attend(query, keys, values, y, n):
    scores = cuda.shared.array(4096, float32)
    q = cuda.shared.array(64, float32)
    parts = cuda.shared.array(8, float32)
    rows = cuda.shared.array((4, 64), float32)
    head = cuda.blockIdx.x
    t = cuda.threadIdx.x
    lane = t % 32
    warp = t // 32
    if t < 64:
        q[t] = query[head * 64 + t]
    cuda.syncthreads()
    most = LOWEST
    for k in range(warp, n, 8):
        key = (int64(head) * n + k) * 64
        dot = keys[key + lane] * q[lane] + keys[key + lane + 32] * q[lane + 32]
        dot = warp_sum(dot)
        if lane == 0:
            scores[k] = dot / float32(8)
        most = max(most, dot / float32(8))
    if lane == 0:
        parts[warp] = most
    cuda.syncthreads()
    for k in range(8):
        most = max(most, parts[k])
    cuda.syncthreads()
    total = float32(0)
    for k in range(t, n, 256):
        scores[k] = math.exp(scores[k] - most)
        total += scores[k]
    total = warp_sum(total)
    if lane == 0:
        parts[warp] = total
    cuda.syncthreads()
    total = float32(0)
    for k in range(8):
        total += parts[k]
    made = float32(0)
    for k in range(t // 64, n, 4):
        made += scores[k] * values[(int64(head) * n + k) * 64 + t % 64]
    rows[t // 64, t % 64] = made
    cuda.syncthreads()
    if t < 64:
        y[head * 64 + t] = (rows[0, t] + rows[1, t] + rows[2, t] + rows[3, t]) / total


@cuda.jit
def windows(x, y, n):
    i = cuda.grid(1)
    if i >= n * n:
        return
    row = i // n
    column = i % n
    for k in range(9):
        r = row + k // 3 - 1
        c = column + k % 3 - 1
        value = float32(0)
        if r >= 0 and r < n and c >= 0 and c < n:
            value = x[r * n + c]
        y[int64(k) * n * n + i] = value


@cuda.jit
def enlarge(x, y, n):
    column = cuda.blockIdx.x * 16 + cuda.threadIdx.x
    row = cuda.blockIdx.y * 16 + cuda.threadIdx.y
    u = max(float32(0.5) * column - float32(0.25), float32(0))
    v = max(float32(0.5) * row - float32(0.25), float32(0))
    left = int32(u)
    top = int32(v)
    right = min(left + 1, n - 1)
    bottom = min(top + 1, n - 1)
    a = u - left
    b = v - top
    upper = x[top * n + left] * (1 - a) + x[top * n + right] * a
    lower = x[bottom * n + left] * (1 - a) + x[bottom * n + right] * a
    y[int64(row) * 2 * n + column] = upper * (1 - b) + lower * b


@cuda.jit
def product_of_tiles(a, b, c, n):
    at = cuda.shared.array((16, 68), float32)
    bt = cuda.shared.array(16 * 64, float32)
    sums = cuda.local.array((4, 4), float32)
    t = cuda.threadIdx.x
    tx = t % 16
    ty = t // 16
    top = int64(cuda.blockIdx.y) * 64
    left = cuda.blockIdx.x * 64
    for p in range(4):
        for q in range(4):
            sums[p, q] = float32(0)
    for k in range(0, n, 16):
        u = cuda.load_vector(a, (top + t // 4) * n + k + 4 * (t % 4), 4)
        at[4 * (t % 4), t // 4] = u[0]
        at[4 * (t % 4) + 1, t // 4] = u[1]
        at[4 * (t % 4) + 2, t // 4] = u[2]
        at[4 * (t % 4) + 3, t // 4] = u[3]
        tile = cuda.load_vector(b, np.int64(k + t // 16) * n + left + 4 * tx, 4)
        cuda.store_vector(bt, 64 * (t // 16) + 4 * tx, tile)
        cuda.syncthreads()
        for j in range(16):
            right = cuda.load_vector(bt, 64 * j + 4 * tx, 4)
            for p in range(4):
                up = at[j, 4 * ty + p]
                sums[p, 0] = cuda.fma(up, right[0], sums[p, 0])
                sums[p, 1] = cuda.fma(up, right[1], sums[p, 1])
                sums[p, 2] = cuda.fma(up, right[2], sums[p, 2])
                sums[p, 3] = cuda.fma(up, right[3], sums[p, 3])
        cuda.syncthreads()
    for p in range(4):
        made = sums[p, 0], sums[p, 1], sums[p, 2], sums[p, 3]
        cuda.store_vector(c, (top + 4 * ty + p) * n + left + 4 * tx, made)
