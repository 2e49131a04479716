"""The kernels of `rows.cu` in gpusim's dialect."""

from __future__ import annotations

import math

import numpy as np
from numpy import float32, int32

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
LOWEST = float32(-1e30)
TINY = float32(1e-5)


@cuda.jit(device=True)
def warp_sum(v):
    o = 16
    while o > 0:
        v += cuda.shfl_xor_sync(EVERY_LANE, v, o)
        o >>= 1
    return v


@cuda.jit(device=True)
def warp_max(v):
    o = 16
    while o > 0:
        v = max(v, cuda.shfl_xor_sync(EVERY_LANE, v, o))
        o >>= 1
    return v


@cuda.jit(device=True)
def block_sum(v, parts):
    v = warp_sum(v)
    cuda.syncthreads()
    if cuda.threadIdx.x % 32 == 0:
        parts[cuda.threadIdx.x // 32] = v
    cuda.syncthreads()
    total = float32(0)
    for k in range(8):
        total += parts[k]
    return total


@cuda.jit
def layernorm(x, scale, shift, y, n):
    parts = cuda.shared.array(8, float32)
    t = cuda.threadIdx.x
    row = np.int64(cuda.blockIdx.x) * n
    total = float32(0)
    for k in range(t, n, 256):
        total += x[row + k]
    mean = block_sum(total, parts) / float32(n)
    squares = float32(0)
    for k in range(t, n, 256):
        squares += (x[row + k] - mean) * (x[row + k] - mean)
    factor = float32(1) / math.sqrt(block_sum(squares, parts) / float32(n) + TINY)
    for k in range(t, n, 256):
        y[row + k] = (x[row + k] - mean) * factor * scale[k] + shift[k]


@cuda.jit
def rmsnorm(x, scale, y, n):
    row = np.int64(cuda.blockIdx.x * 4 + cuda.threadIdx.y) * n
    squares = float32(0)
    for k in range(cuda.threadIdx.x, n // 4, 32):
        a, b, c, d = cuda.load_vector(x, row + 4 * k, 4)
        squares += a * a + b * b + c * c + d * d
    factor = float32(1) / math.sqrt(warp_sum(squares) / float32(n) + TINY)
    for k in range(cuda.threadIdx.x, n // 4, 32):
        a, b, c, d = cuda.load_vector(x, row + 4 * k, 4)
        e, f, g, h = cuda.load_vector(scale, 4 * k, 4)
        scaled = a * factor * e, b * factor * f, c * factor * g, d * factor * h
        cuda.store_vector(y, row + 4 * k, scaled)


@cuda.jit
def softmax_online(x, y, n):
    row = np.int64(cuda.blockIdx.x * 8 + cuda.threadIdx.y) * n
    most = LOWEST
    total = float32(0)
    for k in range(cuda.threadIdx.x, n, 32):
        v = x[row + k]
        larger = max(most, v)
        total = total * math.exp(most - larger) + math.exp(v - larger)
        most = larger
    whole = warp_max(most)
    factor = float32(1) / warp_sum(total * math.exp(most - whole))
    for k in range(cuda.threadIdx.x, n, 32):
        y[row + k] = math.exp(x[row + k] - whole) * factor


@cuda.jit
def cross_entropy(x, labels, loss, n):
    mosts = cuda.shared.array(8, float32)
    parts = cuda.shared.array(8, float32)
    t = cuda.threadIdx.x
    row = np.int64(cuda.blockIdx.x) * n
    most = LOWEST
    for k in range(t, n, 256):
        most = max(most, x[row + k])
    most = warp_max(most)
    if t % 32 == 0:
        mosts[t // 32] = most
    cuda.syncthreads()
    for k in range(8):
        most = max(most, mosts[k])
    total = float32(0)
    for k in range(t, n, 256):
        total += math.exp(x[row + k] - most)
    total = block_sum(total, parts)
    if t == 0:
        loss[cuda.blockIdx.x] = math.log(total) + most - x[row + labels[cuda.blockIdx.x]]


@cuda.jit
def variance(x, y, n):
    row = cuda.blockIdx.x * 8 + cuda.threadIdx.y
    begin = np.int64(row) * n
    mean = float32(0)
    squares = float32(0)
    count = float32(0)
    for k in range(cuda.threadIdx.x, n, 32):
        v = x[begin + k]
        off = v - mean
        count += float32(1)
        mean += off / count
        squares += off * (v - mean)
    o = 16
    while o > 0:
        other = cuda.shfl_xor_sync(EVERY_LANE, mean, o) - mean
        theirs = cuda.shfl_xor_sync(EVERY_LANE, squares, o)
        squares += theirs + other * other * count / float32(2)
        mean += other / float32(2)
        count *= float32(2)
        o >>= 1
    if cuda.threadIdx.x == 0:
        y[row] = squares / float32(n)


@cuda.jit
def argmax(x, y, n):
    values = cuda.shared.array(8, float32)
    places = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    row = np.int64(cuda.blockIdx.x) * n
    best = LOWEST
    place = 0
    for k in range(t, n, 256):
        if x[row + k] > best:
            best = x[row + k]
            place = k
    o = 16
    while o > 0:
        value = cuda.shfl_down_sync(EVERY_LANE, best, o)
        other = cuda.shfl_down_sync(EVERY_LANE, place, o)
        if value > best or (value == best and other < place):
            best = value
            place = other
        o >>= 1
    if t % 32 == 0:
        values[t // 32] = best
        places[t // 32] = place
    cuda.syncthreads()
    if t != 0:
        return
    for k in range(1, 8):
        if values[k] > best or (values[k] == best and places[k] < place):
            best = values[k]
            place = places[k]
    y[cuda.blockIdx.x] = place


@cuda.jit
def top4(x, y, rows):
    row = cuda.grid(1)
    a = LOWEST
    b = LOWEST
    c = LOWEST
    d = LOWEST
    for k in range(64):
        v = x[np.int64(k) * rows + row]
        if v <= d:
            continue
        d = v
        if d > c:
            c, d = d, c
        if c > b:
            b, c = c, b
        if b > a:
            a, b = b, a
    y[row] = a
    y[rows + row] = b
    y[2 * rows + row] = c
    y[3 * rows + row] = d


@cuda.jit
def gemv_rows(a, numbers, begin, y, n):
    row = cuda.blockIdx.x * 8 + cuda.threadIdx.y
    total = float32(0)
    for k in range(cuda.threadIdx.x, n, 32):
        total = cuda.fma(a[np.int64(row) * n + k], numbers[begin + k], total)
    total = warp_sum(total)
    if cuda.threadIdx.x == 0:
        y[row] = total


@cuda.jit
def gemv_columns(a, x, y, n):
    c = cuda.blockIdx.x * 128 + cuda.threadIdx.x
    total = float32(0)
    first = cuda.blockIdx.y * 64
    for r in range(first, first + 64):
        total = cuda.fma(a[np.int64(r) * n + c], x[r], total)
    cuda.atomic.add(y, c, total)


@cuda.jit
def bias_gelu(x, bias, y, width):
    c = cuda.blockIdx.x * 256 + cuda.threadIdx.x
    i = np.int64(cuda.blockIdx.y) * width + c
    v = x[i] + bias[c]
    inner = float32(0.7978845608) * (v + float32(0.044715) * v * v * v)
    y[i] = float32(0.5) * v * (float32(1) + math.tanh(inner))


@cuda.jit
def rotary(x, cosines, sines, positions):
    pair = cuda.threadIdx.x
    row = cuda.blockIdx.x
    place = row % positions * 64 + pair
    i = 2 * (np.int64(row) * 64 + pair)
    a, b = cuda.load_vector(x, i, 2)
    c = cosines[place]
    s = sines[place]
    cuda.store_vector(x, i, (a * c - b * s, a * s + b * c))


@cuda.jit(device=True)
def inner_product(a, i, p, q, r, s):
    e, f, g, h = cuda.load_vector(a, i, 4)
    return e * p + f * q + g * r + h * s


@cuda.jit
def small_products(a, x, y, n):
    i = cuda.grid(1)
    if i >= n:
        return
    p, q, r, s = cuda.load_vector(x, 4 * i, 4)
    sums = (
        inner_product(a, 16 * i, p, q, r, s),
        inner_product(a, 16 * i + 4, p, q, r, s),
        inner_product(a, 16 * i + 8, p, q, r, s),
        inner_product(a, 16 * i + 12, p, q, r, s),
    )
    cuda.store_vector(y, 4 * i, sums)


@cuda.jit
def triangle(a, x, y, n):
    row = cuda.blockIdx.x * 8 + cuda.threadIdx.y
    total = float32(0)
    for k in range(cuda.threadIdx.x, row + 1, 32):
        total = cuda.fma(a[np.int64(row) * n + k], x[k], total)
    total = warp_sum(total)
    if cuda.threadIdx.x == 0:
        y[row] = total
