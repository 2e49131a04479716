"""The kernels of `fields.cu` in gpusim's dialect."""

from __future__ import annotations

import math

import numpy as np
from numpy import float32, float64, int32, int64, uint32

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
FAR = float32(10000)


@cuda.jit
def ways_by_tile(ways, k, n):
    down = cuda.shared.array((32, 32), float32)
    across = cuda.shared.array((32, 32), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    if cuda.blockIdx.x == k or cuda.blockIdx.y == k:
        return
    row = int64(cuda.blockIdx.y * 32 + ty)
    column = cuda.blockIdx.x * 32 + tx
    down[ty, tx] = ways[row * n + k * 32 + tx]
    across[ty, tx] = ways[int64(k * 32 + ty) * n + column]
    cuda.syncthreads()
    least = ways[row * n + column]
    for j in range(32):
        least = min(least, down[ty, j] + across[j, tx])
    ways[row * n + column] = least


@cuda.jit
def inverses3x3(a, b, n):
    m = cuda.local.array(9, float64)
    i = cuda.grid(1)
    if i >= n:
        return
    first = int64(9) * i
    for k in range(9):
        m[k] = a[first + k]
    p = m[4] * m[8] - m[5] * m[7]
    q = m[5] * m[6] - m[3] * m[8]
    r = m[3] * m[7] - m[4] * m[6]
    factor = float64(1) / (m[0] * p + m[1] * q + m[2] * r)
    b[first] = p * factor
    b[first + 1] = (m[2] * m[7] - m[1] * m[8]) * factor
    b[first + 2] = (m[1] * m[5] - m[2] * m[4]) * factor
    b[first + 3] = q * factor
    b[first + 4] = (m[0] * m[8] - m[2] * m[6]) * factor
    b[first + 5] = (m[2] * m[3] - m[0] * m[5]) * factor
    b[first + 6] = r * factor
    b[first + 7] = (m[1] * m[6] - m[0] * m[7]) * factor
    b[first + 8] = (m[0] * m[4] - m[1] * m[3]) * factor


@cuda.jit
def cholesky_by_warps(a, n):
    m = cuda.shared.array((4, 32, 33), float32)
    lane = cuda.threadIdx.x
    warp = cuda.threadIdx.y
    matrix = cuda.blockIdx.x * 4 + warp
    if matrix >= n:
        return
    given = int64(matrix) * 1024
    for r in range(32):
        m[warp, r, lane] = a[given + r * 32 + lane]
    cuda.syncwarp()
    for k in range(32):
        root = math.sqrt(m[warp, k, k])
        cuda.syncwarp()
        if lane == k:
            m[warp, k, k] = root
        if lane > k:
            m[warp, lane, k] /= root
        cuda.syncwarp()
        for j in range(k + 1, lane + 1):
            m[warp, lane, j] -= m[warp, lane, k] * m[warp, j, k]
        cuda.syncwarp()
    for r in range(32):
        a[given + r * 32 + lane] = m[warp, r, lane] if lane <= r else float32(0)


@cuda.jit
def rotate_rows(a, turns, rows, columns):
    column = cuda.grid(1)
    if column >= columns:
        return
    upper = a[column]
    for r in range(1, rows):
        along, across = cuda.load_vector(turns, 2 * (r - 1), 2)
        lower = a[int64(r) * columns + column]
        a[int64(r - 1) * columns + column] = along * upper + across * lower
        upper = along * lower - across * upper
    a[int64(rows - 1) * columns + column] = upper


@cuda.jit(device=True)
def warp_sum(v):
    o = 16
    while o > 0:
        v += cuda.shfl_down_sync(EVERY_LANE, v, o)
        o //= 2
    return v


@cuda.jit
def reflect_columns(a, v, tau, rows):
    parts = cuda.shared.array(16, float32)
    t = cuda.threadIdx.x
    column = int64(cuda.blockIdx.x) * rows
    total = float32(0)
    for r in range(t, rows, cuda.blockDim.x):
        total += v[r] * a[column + r]
    total = warp_sum(total)
    if t % 32 == 0:
        parts[t // 32] = total
    cuda.syncthreads()
    if t < 32:
        total = parts[t] if t < cuda.blockDim.x // 32 else float32(0)
        total = warp_sum(total)
        if t == 0:
            parts[0] = tau * total
    cuda.syncthreads()
    factor = parts[0]
    for r in range(t, rows, cuda.blockDim.x):
        a[column + r] -= factor * v[r]


@cuda.jit
def eliminate(a, k, n):
    i, j = cuda.grid(2)
    column = k + 1 + i
    row = int64(k + 1 + j)
    if row >= n or column >= n:
        return
    factor = a[row * n + k] / a[int64(k) * n + k]
    a[row * n + column] -= factor * a[int64(k) * n + column]


@cuda.jit
def cosines8x8(x, table, steps, y, n):
    basis = cuda.shared.array((8, 8), float32)
    square = cuda.shared.array((4, 8, 9), float32)
    half = cuda.shared.array((4, 8, 9), float32)
    u = cuda.threadIdx.x
    v = cuda.threadIdx.y
    z = cuda.threadIdx.z
    column = (cuda.blockIdx.x * 4 + z) * 8 + u
    row = int64(cuda.blockIdx.y * 8 + v)
    if z == 0:
        basis[v, u] = table[v * 8 + u]
    square[z, v, u] = float32(x[row * n + column]) - float32(128)
    cuda.syncthreads()
    total = float32(0)
    for k in range(8):
        total += square[z, v, k] * basis[u, k]
    half[z, v, u] = total
    cuda.syncthreads()
    total = float32(0)
    for k in range(8):
        total += half[z, k, u] * basis[v, k]
    nearest = math.floor(total / steps[v * 8 + u] + float32(0.5))
    y[row * n + column] = np.int16(nearest)


@cuda.jit
def biquads(x, filters, y, steps, channels):
    c = cuda.grid(1)
    if c >= channels:
        return
    b0 = filters[c]
    b1 = filters[channels + c]
    b2 = filters[2 * channels + c]
    a1 = filters[3 * channels + c]
    a2 = filters[4 * channels + c]
    first = float32(0)
    second = float32(0)
    for t in range(steps):
        given = x[int64(t) * channels + c]
        made = b0 * given + first
        first = b1 * given - a1 * made + second
        second = b2 * given - a2 * made
        y[int64(t) * channels + c] = made


@cuda.jit
def resample(x, taps, y, n):
    bank = cuda.shared.array(160 * 8, float32)
    for k in range(cuda.threadIdx.x, 160 * 8, cuda.blockDim.x):
        bank[k] = taps[k]
    cuda.syncthreads()
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        place = int64(i) * 147
        first = int32(place // 160)
        phase = int32(place % 160)
        total = float32(0)
        for k in range(8):
            total += x[first + k] * bank[phase * 8 + k]
        y[i] = total


@cuda.jit(device=True)
def hashed(v):
    v ^= v >> uint32(16)
    v *= uint32(0x7FEB352D)
    v ^= v >> uint32(15)
    v *= uint32(0x846CA68B)
    return v ^ v >> uint32(16)


@cuda.jit
def ising(spins, chances, seed, colour, n):
    half, row = cuda.grid(2)
    column = 2 * half + (row + colour) % 2
    if row >= n or column >= n:
        return
    above = n - 1 if row == 0 else row - 1
    below = 0 if row == n - 1 else row + 1
    left = n - 1 if column == 0 else column - 1
    right = 0 if column == n - 1 else column + 1
    i = row * n + column
    around = spins[above * n + column] + spins[below * n + column]
    around += spins[row * n + left] + spins[row * n + right]
    cost = spins[i] * around
    if cost <= 0 or hashed(seed + uint32(i)) < chances[cost // 2 - 1]:
        spins[i] = -spins[i]


@cuda.jit
def occlusion(depths, offsets, y, n):
    around = cuda.shared.array(32, int32)
    tid = cuda.threadIdx.y * 16 + cuda.threadIdx.x
    if tid < 16:
        cuda.store_vector(around, 2 * tid, cuda.load_vector(offsets, 2 * tid, 2))
    cuda.syncthreads()
    column = cuda.blockIdx.x * 16 + cuda.threadIdx.x
    row = cuda.blockIdx.y * 16 + cuda.threadIdx.y
    turn = hashed(uint32(row * n + column))
    own = depths[row * n + column]
    hidden = 0
    for k in range(16):
        right, down = cuda.load_vector(around, 2 * k, 2)
        dx = down if turn & uint32(1) else right
        dy = -right if turn & uint32(1) else down
        if turn & uint32(2):
            dx = -dx
            dy = -dy
        r = min(max(row + dy, 0), n - 1)
        c = min(max(column + dx, 0), n - 1)
        nearer = own - depths[r * n + c]
        if nearer > float32(0.02) and nearer < float32(0.5):
            hidden += 1
    y[row * n + column] = np.uint8(255 - 15 * hidden)


@cuda.jit
def spheres(balls, count, depths, n):
    column, row = cuda.grid(2)
    nearest = FAR
    for k in range(count):
        x, y, z, radius = cuda.load_vector(balls, 4 * k, 4)
        dx = column - x
        dy = row - y
        rest = radius * radius - dx * dx - dy * dy
        if rest <= float32(0):
            continue
        nearest = min(nearest, z - math.sqrt(rest))
    depths[int64(row) * n + column] = nearest
