"""The kernels of `tiles.cu` in gpusim's dialect; it has no copies behind a kernel's back."""

from __future__ import annotations

import math

import numpy as np
from numpy import float32, int32, uint8

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF


@cuda.jit
def matrix_product_4x4(a, b, c, n):
    rows = cuda.shared.array((16, 64), float32)
    columns = cuda.shared.array((16, 64), float32)
    sums = cuda.local.array(16, float32)
    t = cuda.threadIdx.x
    tx = t % 16
    ty = t // 16
    top = cuda.blockIdx.y * 64
    left = cuda.blockIdx.x * 64
    for i in range(16):
        sums[i] = float32(0)
    for k0 in range(0, n, 16):
        for j in range(4):
            e = t + 256 * j
            rows[e % 16, e // 16] = a[(top + e // 16) * n + k0 + e % 16]
            columns[e // 64, e % 64] = b[(k0 + e // 64) * n + left + e % 64]
        cuda.syncthreads()
        for k in range(16):
            for i in range(4):
                for j in range(4):
                    product = rows[k, 4 * ty + i], columns[k, 4 * tx + j]
                    sums[4 * i + j] = cuda.fma(product[0], product[1], sums[4 * i + j])
        cuda.syncthreads()
    for i in range(4):
        for j in range(4):
            c[(top + 4 * ty + i) * n + left + 4 * tx + j] = sums[4 * i + j]


@cuda.jit
def thin_product(a, b, c, n, depth):
    rows = cuda.shared.array(1024, float32)
    sums = cuda.local.array(8, float32)
    t = cuda.threadIdx.x
    column = cuda.blockIdx.x * 128 + t
    for r in range(8):
        sums[r] = float32(0)
    for k0 in range(0, depth, 128):
        for r in range(8):
            rows[r * 128 + t] = a[r * depth + k0 + t]
        cuda.syncthreads()
        for j in range(128):
            v = b[np.int64(k0 + j) * n + column]
            for r in range(8):
                sums[r] = cuda.fma(rows[r * 128 + j], v, sums[r])
        cuda.syncthreads()
    for r in range(8):
        c[r * n + column] = sums[r]


@cuda.jit
def stencil3d(x, y, n):
    i = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    j = cuda.blockIdx.y * 4 + cuda.threadIdx.y
    if i < 1 or j < 1 or i >= n - 1 or j >= n - 1:
        return
    plane = np.int64(n) * n
    first = cuda.blockIdx.z * 16
    for k in range(1 + first, min(n - 1, 17 + first)):
        at = (np.int64(k) * n + j) * n + i
        around = x[at - 1] + x[at + 1] + x[at - n] + x[at + n] + x[at - plane] + x[at + plane]
        y[at] = float32(0.4) * x[at] + float32(0.1) * around


@cuda.jit
def blur_tile(x, y, n):
    tile = cuda.shared.array((12, 36), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    left = cuda.blockIdx.x * 32 - 2
    top = cuda.blockIdx.y * 8 - 2
    for r in range(ty, 12, 8):
        for c in range(tx, 36, 32):
            row = min(max(top + r, 0), n - 1)
            column = min(max(left + c, 0), n - 1)
            tile[r, c] = x[row * n + column]
    cuda.syncthreads()
    total = float32(0)
    for r in range(5):
        for c in range(5):
            total += tile[ty + r, tx + c]
    y[(top + 2 + ty) * n + left + 2 + tx] = total * float32(0.04)


@cuda.jit
def blur_columns(x, y, n):
    c = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    r = cuda.blockIdx.y * 8 + cuda.threadIdx.y
    total = float32(0)
    for k in range(-8, 9):
        total += x[min(max(r + k, 0), n - 1) * n + c]
    y[r * n + c] = total / float32(17)


@cuda.jit
def halve_picture(x, y, n):
    c = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    r = cuda.blockIdx.y * 8 + cuda.threadIdx.y
    a, b = cuda.load_vector(x, 2 * (2 * r * n + c), 2)
    d, e = cuda.load_vector(x, 2 * ((2 * r + 1) * n + c), 2)
    y[r * n + c] = float32(0.25) * (a + b + d + e)


@cuda.jit
def game_of_life(x, y, n):
    c = cuda.blockIdx.x * 64 + cuda.threadIdx.x
    r = cuda.blockIdx.y * 4 + cuda.threadIdx.y
    alive = 0
    for i in range(-1, 2):
        for j in range(-1, 2):
            alive += x[((r + i) & (n - 1)) * n + ((c + j) & (n - 1))]
    own = x[r * n + c]
    lives = alive == 3 or (own != 0 and alive == 4)
    y[r * n + c] = uint8(1) if lives else uint8(0)


@cuda.jit
def gravity(bodies, forces, n):
    tile = cuda.shared.array(1024, float32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * 256 + t
    x, y, z, _ = cuda.load_vector(bodies, 4 * i, 4)
    fx = float32(0)
    fy = float32(0)
    fz = float32(0)
    for j in range(0, n, 256):
        cuda.store_vector(tile, 4 * t, cuda.load_vector(bodies, 4 * (j + t), 4))
        cuda.syncthreads()
        for k in range(256):
            ox, oy, oz, mass = cuda.load_vector(tile, 4 * k, 4)
            dx = ox - x
            dy = oy - y
            dz = oz - z
            square = cuda.fma(dx, dx, cuda.fma(dy, dy, cuda.fma(dz, dz, float32(0.01))))
            root = float32(1) / math.sqrt(square)
            pull = mass * root * root * root
            fx = cuda.fma(dx, pull, fx)
            fy = cuda.fma(dy, pull, fy)
            fz = cuda.fma(dz, pull, fz)
        cuda.syncthreads()
    cuda.store_vector(forces, 4 * i, (fx, fy, fz, float32(0)))


@cuda.jit
def block_scan(x, y, n):
    parts = cuda.shared.array(32, int32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * 1024 + t
    lane = t % 32
    warp = t // 32
    v = x[i]
    o = 1
    while o < 32:
        before = cuda.shfl_up_sync(EVERY_LANE, v, o)
        if lane >= o:
            v += before
        o *= 2
    if lane == 31:
        parts[warp] = v
    cuda.syncthreads()
    if warp == 0:
        total = parts[lane]
        o = 1
        while o < 32:
            before = cuda.shfl_up_sync(EVERY_LANE, total, o)
            if lane >= o:
                total += before
            o *= 2
        parts[lane] = total
    cuda.syncthreads()
    y[i] = v + (parts[warp - 1] if warp != 0 else 0)


@cuda.jit
def tree_scan(x, y, n):
    tree = cuda.shared.array(512, int32)
    t = cuda.threadIdx.x
    base = cuda.blockIdx.x * 512
    step = 1
    tree[t] = x[base + t]
    tree[t + 256] = x[base + t + 256]
    d = 256
    while d > 0:
        cuda.syncthreads()
        if t < d:
            tree[step * (2 * t + 2) - 1] += tree[step * (2 * t + 1) - 1]
        d //= 2
        step *= 2
    if t == 0:
        tree[511] = 0
    d = 1
    while d < 512:
        step //= 2
        cuda.syncthreads()
        if t < d:
            left = tree[step * (2 * t + 1) - 1]
            tree[step * (2 * t + 1) - 1] = tree[step * (2 * t + 2) - 1]
            tree[step * (2 * t + 2) - 1] += left
        d *= 2
    cuda.syncthreads()
    y[base + t] = tree[t]
    y[base + t + 256] = tree[t + 256]


@cuda.jit
def bitonic_step(x, y, distance, size):
    i = cuda.grid(1)
    own = x[i]
    other = x[i ^ distance]
    is_upper = (i & distance) != 0
    is_down = (i & size) != 0
    y[i] = min(own, other) if is_upper == is_down else max(own, other)
