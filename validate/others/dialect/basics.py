"""The kernels of `basics.cu` in gpusim's dialect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF


@cuda.jit
def copy(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i]


@cuda.jit
def saxpy(a, x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = a * x[i] + y[i]


@cuda.jit
def saxpy_stride(a, x, y, n):
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        y[i] = cuda.fma(a, x[i], y[i])


@cuda.jit
def add4(x, y, z):
    i = cuda.grid(1) * 4
    a, b, c, d = cuda.load_vector(x, i, 4)
    e, f, g, h = cuda.load_vector(y, i, 4)
    cuda.store_vector(z, i, (a + e, b + f, c + g, d + h))


@cuda.jit
def stencil(x, y, n):
    i = cuda.grid(1)
    if i > 0 and i < n - 1:
        y[i] = x[i - 1] + x[i] + x[i + 1]


@cuda.jit
def stencil2d(x, y, n):
    c = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    r = cuda.blockIdx.y * 8 + cuda.threadIdx.y
    if c > 0 and c < n - 1 and r > 0 and r < n - 1:
        row = x[r * n + c] + x[r * n + c - 1] + x[r * n + c + 1]
        y[r * n + c] = np.float32(0.2) * (row + x[(r - 1) * n + c] + x[(r + 1) * n + c])


@cuda.jit
def convolution(x, weights, y, n):
    tile = cuda.shared.array(264, np.float32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * 256 + t
    tile[t + 4] = x[i]
    if t < 4:
        tile[t] = x[i - 4] if i >= 4 else np.float32(0)
        tile[t + 260] = x[i + 256] if i + 256 < n else np.float32(0)
    cuda.syncthreads()
    total = np.float32(0)
    for k in range(9):
        total = cuda.fma(weights[k], tile[t + k], total)
    y[i] = total


@cuda.jit
def polynomial(x, y, n):
    i = cuda.grid(1)
    if i < n:
        v = x[i]
        s = np.float32(0.5)
        for _ in range(64):
            s = cuda.fma(s, v, v)
        y[i] = s


@cuda.jit
def gather(x, places, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[places[i]]


@cuda.jit
def transpose(x, y, n):
    c = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    r = cuda.blockIdx.y * 32 + cuda.threadIdx.y
    for j in range(0, 32, 8):
        y[c * n + r + j] = x[(r + j) * n + c]


def _transpose_with_rows_of(width: int) -> Any:
    WIDTH = width
    SIZE = 32 * width

    @cuda.jit
    def transpose_tile(x, y, n):
        tile = cuda.shared.array(SIZE, np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        c = cuda.blockIdx.x * 32 + tx
        r = cuda.blockIdx.y * 32 + ty
        for j in range(0, 32, 8):
            tile[(ty + j) * WIDTH + tx] = x[(r + j) * n + c]
        cuda.syncthreads()
        c = cuda.blockIdx.y * 32 + tx
        r = cuda.blockIdx.x * 32 + ty
        for j in range(0, 32, 8):
            y[(r + j) * n + c] = tile[tx * WIDTH + ty + j]

    return transpose_tile


transpose_tile = _transpose_with_rows_of(32)
transpose_padded = _transpose_with_rows_of(33)


@cuda.jit
def matrix_product(a, b, c, n):
    rows = cuda.shared.array(256, np.float32)
    columns = cuda.shared.array(256, np.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    row = cuda.blockIdx.y * 16 + ty
    column = cuda.blockIdx.x * 16 + tx
    total = np.float32(0)
    for t in range(0, n, 16):
        rows[ty * 16 + tx] = a[row * n + t + tx]
        columns[ty * 16 + tx] = b[(t + ty) * n + column]
        cuda.syncthreads()
        for k in range(16):
            total = cuda.fma(rows[ty * 16 + k], columns[k * 16 + tx], total)
        cuda.syncthreads()
    c[row * n + column] = total


@cuda.jit
def matrix_product_plain(a, b, c, n):
    column = cuda.blockIdx.x * 16 + cuda.threadIdx.x
    row = cuda.blockIdx.y * 16 + cuda.threadIdx.y
    total = np.float32(0)
    for k in range(n):
        total = cuda.fma(a[row * n + k], b[k * n + column], total)
    c[row * n + column] = total


@cuda.jit
def row_sums(x, y, n):
    row = cuda.blockIdx.x * 8 + cuda.threadIdx.y
    lane = cuda.threadIdx.x
    total = np.float32(0)
    for k in range(lane, n, 32):
        total = total + x[row * n + k]
    o = 16
    while o > 0:
        total += cuda.shfl_down_sync(EVERY_LANE, total, o)
        o >>= 1
    if lane == 0:
        y[row] = total


@cuda.jit
def column_sums(x, y, n):
    c = cuda.grid(1)
    total = np.float32(0)
    for r in range(n):
        total += x[r * n + c]
    y[c] = total


@cuda.jit
def dot(x, y, out, n):
    sums = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(cuda.blockIdx.x * 256 + t, n, cuda.gridDim.x * 256):
        total = cuda.fma(x[i], y[i], total)
    sums[t] = total
    cuda.syncthreads()
    o = 128
    while o > 0:
        if t < o:
            sums[t] += sums[t + o]
        cuda.syncthreads()
        o >>= 1
    if t == 0:
        out[cuda.blockIdx.x] = sums[0]


@cuda.jit
def softmax(x, y, n):
    part = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    most = np.float32(-1e30)
    for k in range(t, n, 256):
        most = max(most, x[row * n + k])
    part[t] = most
    cuda.syncthreads()
    o = 128
    while o > 0:
        if t < o:
            part[t] = max(part[t], part[t + o])
        cuda.syncthreads()
        o >>= 1
    most = part[0]
    cuda.syncthreads()
    total = np.float32(0)
    for k in range(t, n, 256):
        total += math.exp(x[row * n + k] - most)
    part[t] = total
    cuda.syncthreads()
    o = 128
    while o > 0:
        if t < o:
            part[t] += part[t + o]
        cuda.syncthreads()
        o >>= 1
    total = part[0]
    for k in range(t, n, 256):
        y[row * n + k] = math.exp(x[row * n + k] - most) / total


@cuda.jit
def histogram(x, counts, n):
    own = cuda.shared.array(256, np.int32)
    t = cuda.threadIdx.x
    own[t] = 0
    cuda.syncthreads()
    for i in range(cuda.blockIdx.x * 256 + t, n, cuda.gridDim.x * 256):
        cuda.atomic.add(own, x[i], 1)
    cuda.syncthreads()
    cuda.atomic.add(counts, t, own[t])


@cuda.jit
def sum_by_atomics(x, out, n):
    v = x[cuda.grid(1)]
    o = 16
    while o > 0:
        v += cuda.shfl_down_sync(EVERY_LANE, v, o)
        o >>= 1
    if cuda.threadIdx.x % 32 == 0:
        cuda.atomic.add(out, 0, v)


@cuda.jit
def bitonic_sort(x):
    s = cuda.shared.array(512, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.blockIdx.x * 512 + t]
    cuda.syncthreads()
    k = 2
    while k <= 512:
        j = k // 2
        while j > 0:
            o = t ^ j
            if o > t:
                a = s[t]
                b = s[o]
                if (a > b) == ((t & k) == 0):
                    s[t] = b
                    s[o] = a
            cuda.syncthreads()
            j //= 2
        k *= 2
    x[cuda.blockIdx.x * 512 + t] = s[t]


@cuda.jit
def bodies(px, py, pz, ax, n):
    sx = cuda.shared.array(256, np.float32)
    sy = cuda.shared.array(256, np.float32)
    sz = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * 256 + t
    x = px[i]
    y = py[i]
    z = pz[i]
    total = np.float32(0)
    for j in range(0, n, 256):
        sx[t] = px[j + t]
        sy[t] = py[j + t]
        sz[t] = pz[j + t]
        cuda.syncthreads()
        for k in range(256):
            dx = sx[k] - x
            dy = sy[k] - y
            dz = sz[k] - z
            r = cuda.fma(dx, dx, cuda.fma(dy, dy, dz * dz)) + np.float32(0.01)
            total = cuda.fma(dx, r, total)
        cuda.syncthreads()
    ax[i] = total


@cuda.jit
def mandelbrot(out, width, limit):
    px = cuda.blockIdx.x * 16 + cuda.threadIdx.x
    py = cuda.blockIdx.y * 16 + cuda.threadIdx.y
    cx = np.float32(px) * (np.float32(3) / np.float32(width)) - np.float32(2)
    cy = np.float32(py) * (np.float32(3) / np.float32(width)) - np.float32(1.5)
    x = np.float32(0)
    y = np.float32(0)
    k = 0
    while k < limit and cuda.fma(x, x, y * y) < np.float32(4):
        following = cuda.fma(x, x, -(y * y)) + cx
        y = cuda.fma(np.float32(2) * x, y, cy)
        x = following
        k += 1
    out[py * width + px] = k
