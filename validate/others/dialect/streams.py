"""The kernels of `streams.cu` in gpusim's dialect; it has no halves and no products of bytes."""

from __future__ import annotations

import math

import numpy as np
from numpy import float32, int32, uint8, uint32

from gpusim import cuda


@cuda.jit
def fill(value, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = value


@cuda.jit
def iota4(y, n):
    i = cuda.grid(1)
    if i < n // 4:
        cuda.store_vector(y, 4 * i, (4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3))


@cuda.jit
def expand(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i // 16] * float32(1 + i % 16)


@cuda.jit
def scale_in_place(factor, x, n):
    i = cuda.grid(1)
    if i >= n // 4:
        return
    a, b, c, d = cuda.load_vector(x, 4 * i, 4)
    cuda.store_vector(x, 4 * i, (factor * a, factor * b, factor * c, factor * d))


@cuda.jit
def copy_by_few_blocks(x, y, n):
    for i in range(cuda.grid(1), n // 4, cuda.gridsize(1)):
        cuda.store_vector(y, 4 * i, cuda.load_vector(x, 4 * i, 4))


@cuda.jit
def every_line(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[32 * np.int64(i)]


@cuda.jit
def every_sector(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[8 * np.int64(i)] = x[i]


@cuda.jit
def every_page(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[8192 * np.int64(i)] + float32(1)


@cuda.jit
def sweeps(x, y, n):
    first = cuda.grid(1)
    step = cuda.gridsize(1)
    total = float32(0)
    for _ in range(4):
        for i in range(first, n, step):
            total = cuda.fma(total, float32(0.5), x[i])
    y[first] = total


@cuda.jit
def sector_by_words(x, y, n):
    first = cuda.grid(1)
    step = cuda.gridsize(1)
    total = float32(0)
    for word in range(8):
        for i in range(first, n // 8, step):
            total += x[8 * i + word]
    y[first] = total


@cuda.jit
def lane_rows(x, y, n):
    row = cuda.grid(1)
    total = float32(0)
    for k in range(32):
        total += x[32 * row + k]
    y[row] = total


@cuda.jit
def submatrix_add(x, y, width, pitch):
    c = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    r = cuda.blockIdx.y * 8 + cuda.threadIdx.y
    if c < width and r < width:
        y[r * pitch + c] += x[r * pitch + c]


@cuda.jit
def particles_as_structs(dt, particles, n):
    i = cuda.grid(1)
    if i >= n:
        return
    for axis in range(3):
        particles[8 * i + axis] = cuda.fma(dt, particles[8 * i + 3 + axis], particles[8 * i + axis])


@cuda.jit
def particles_as_arrays(dt, px, py, pz, vx, vy, vz, n):
    i = cuda.grid(1)
    if i >= n:
        return
    px[i] = cuda.fma(dt, vx[i], px[i])
    py[i] = cuda.fma(dt, vy[i], py[i])
    pz[i] = cuda.fma(dt, vz[i], pz[i])


@cuda.jit
def lengths(x, y, n):
    i = cuda.grid(1)
    if i >= n:
        return
    a = x[3 * i]
    b = x[3 * i + 1]
    c = x[3 * i + 2]
    y[i] = math.sqrt(a * a + b * b + c * c)


@cuda.jit
def gray(x, y, n):
    i = cuda.grid(1)
    if i >= n:
        return
    y[i] = uint8((77 * x[3 * i] + 150 * x[3 * i + 1] + 29 * x[3 * i + 2]) >> 8)


@cuda.jit
def daxpy(a, x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = cuda.fma(a, x[i], y[i])


@cuda.jit
def black_scholes(price, strike, years, call, put, n):
    i = cuda.grid(1)
    if i >= n:
        return
    s = price[i] + float32(0.001)
    k = strike[i] + float32(0.001)
    t = years[i] + float32(0.001)
    root = math.sqrt(t)
    d1 = (math.log(s / k) + float32(0.065) * t) / (float32(0.3) * root)
    d2 = d1 - float32(0.3) * root
    n1 = float32(1) / (float32(1) + math.exp(float32(-1.702) * d1))
    n2 = float32(1) / (float32(1) + math.exp(float32(-1.702) * d2))
    left = k * math.exp(float32(-0.02) * t)
    call[i] = s * n1 - left * n2
    put[i] = left * (float32(1) - n2) - s * (float32(1) - n1)


@cuda.jit(device=True)
def mixed(v):
    v = v ^ (v >> uint32(16))
    v = v * uint32(0x7FEB352D)
    v = v ^ (v >> uint32(15))
    v = v * uint32(0x846CA68B)
    return v ^ (v >> uint32(16))


@cuda.jit
def random_fill(y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = mixed(uint32(i))


@cuda.jit
def circle(inside, points):
    i = uint32(cuda.grid(1))
    state = mixed(i) | uint32(1)
    hits = uint32(0)
    for _ in range(points):
        state ^= state << uint32(13)
        state ^= state >> uint32(17)
        state ^= state << uint32(5)
        x = state & uint32(0xFFFF)
        y = state >> uint32(16)
        if x * x + y * y >= x * x:
            hits += uint32(1)
    inside[int32(i)] = hits
