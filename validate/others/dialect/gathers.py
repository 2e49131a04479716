"""The kernels of `gathers.cu` in gpusim's dialect; it has no constant memory."""

from __future__ import annotations

import math

import numpy as np
from numpy import float32, int32, uint32

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF


@cuda.jit
def gather_within(x, places, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[places[i]]


@cuda.jit
def scatter(x, places, y, n):
    i = cuda.grid(1)
    if i < n:
        y[places[i]] = x[i]


@cuda.jit
def embedding(table, tokens, y, n):
    token = cuda.blockIdx.x * 8 + cuda.threadIdx.y
    if token < n:
        row = cuda.load_vector(table, 2 * (tokens[token] * 32 + cuda.threadIdx.x), 2)
        cuda.store_vector(y, 2 * (np.int64(token) * 32 + cuda.threadIdx.x), row)


@cuda.jit
def spmv_by_threads(begins, columns, values, x, y, rows):
    row = cuda.grid(1)
    if row >= rows:
        return
    total = float32(0)
    for k in range(begins[row], begins[row + 1]):
        total = cuda.fma(values[k], x[columns[k]], total)
    y[row] = total


@cuda.jit
def spmv_by_warps(begins, columns, values, x, y, rows):
    row = cuda.blockIdx.x * 4 + cuda.threadIdx.y
    if row >= rows:
        return
    total = float32(0)
    for k in range(begins[row] + cuda.threadIdx.x, begins[row + 1], 32):
        total = cuda.fma(values[k], x[columns[k]], total)
    o = 16
    while o > 0:
        total += cuda.shfl_down_sync(EVERY_LANE, total, o)
        o >>= 1
    if cuda.threadIdx.x == 0:
        y[row] = total


@cuda.jit
def binary_search(table, wanted, y, size, n):
    i = cuda.grid(1)
    if i >= n:
        return
    low = 0
    high = size
    value = wanted[i]
    while low < high:
        middle = (low + high) // 2
        if table[middle] < value:
            low = middle + 1
        else:
            high = middle
    y[i] = low


@cuda.jit
def hash_lookup(slots, keys, y, mask, n):
    i = cuda.grid(1)
    if i >= n:
        return
    key = keys[i]
    found = -1
    slot = (uint32(key) * uint32(2654435769)) >> uint32(7)
    while True:
        held, value = cuda.load_vector(slots, 2 * int32(slot & uint32(mask)), 2)
        if held == key:
            found = value
        if held == key or held < 0:
            break
        slot += uint32(1)
    y[i] = found


@cuda.jit
def rotate_picture(x, y, n):
    c = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    r = cuda.blockIdx.y * 8 + cuda.threadIdx.y
    half = float32(0.5) * float32(n)
    dx = float32(c) - half
    dy = float32(r) - half
    u = float32(0.8660254) * dx - float32(0.5) * dy + half
    v = float32(0.5) * dx + float32(0.8660254) * dy + half
    left = int32(math.floor(u))
    top = int32(math.floor(v))
    value = float32(0)
    if left >= 0 and top >= 0 and left < n - 1 and top < n - 1:
        a = u - float32(left)
        b = v - float32(top)
        at = top * n + left
        upper = (float32(1) - a) * x[at] + a * x[at + 1]
        lower = (float32(1) - a) * x[at + n] + a * x[at + n + 1]
        value = (float32(1) - b) * upper + b * lower
    y[r * n + c] = value


@cuda.jit
def bit_reversal(x, y, bits):
    i = uint32(cuda.grid(1))
    y[int32(cuda.brev(i) >> uint32(32 - bits))] = x[int32(i)]
