"""The kernels of `sciences.cu` in gpusim's dialect, except for unsupported words."""

from __future__ import annotations

import numpy as np
from numpy import float32, int32, int64, uint32, uint64

from gpusim import cuda

LARGE = float32(1e30)


@cuda.jit
def heat_tile(x, y, n):
    tile = cuda.shared.array((18, 34), float32)
    column = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    row = cuda.blockIdx.y * 16 + cuda.threadIdx.y
    for k in range(cuda.threadIdx.y * 32 + cuda.threadIdx.x, 18 * 34, 512):
        r = min(max(cuda.blockIdx.y * 16 + k // 34 - 1, 0), n - 1)
        c = min(max(cuda.blockIdx.x * 32 + k % 34 - 1, 0), n - 1)
        tile[k // 34, k % 34] = x[int64(r) * n + c]
    cuda.syncthreads()
    i = cuda.threadIdx.y + 1
    j = cuda.threadIdx.x + 1
    around = tile[i - 1, j] + tile[i + 1, j] + tile[i, j - 1] + tile[i, j + 1]
    y[int64(row) * n + column] = tile[i, j] + float32(0.2) * (around - 4 * tile[i, j])


@cuda.jit
def shorter_ways(ways, k, n):
    to = cuda.grid(1)
    origin = int64(cuda.blockIdx.y)
    by = ways[origin * n + k] + ways[int64(k) * n + to]
    if by < ways[origin * n + to]:
        ways[origin * n + to] = by


@cuda.jit
def page_rank(begins, sources, given, ranks, n):
    page = cuda.grid(1)
    if page >= n:
        return
    total = float32(0)
    for k in range(begins[page], begins[page + 1]):
        total += given[sources[k]]
    ranks[page] = float32(0.15) / n + float32(0.85) * total


@cuda.jit
def next_level(begins, targets, levels, level, n):
    node = cuda.grid(1)
    if node >= n or levels[node] != level:
        return
    for k in range(begins[node], begins[node + 1]):
        if levels[targets[k]] < 0:
            levels[targets[k]] = level + 1


@cuda.jit
def nearest(points, centres, y, n):
    c = cuda.shared.array((64, 8), float32)
    p = cuda.local.array(8, float32)
    for k in range(cuda.threadIdx.x, 512, cuda.blockDim.x):
        c[k // 8, k % 8] = centres[k]
    cuda.syncthreads()
    i = cuda.grid(1)
    found = 0
    if i >= n:
        return
    least = LARGE
    for d in range(8):
        p[d] = points[int64(d) * n + i]
    for k in range(64):
        far = float32(0)
        for d in range(8):
            far += (p[d] - c[k, d]) * (p[d] - c[k, d])
        if far < least:
            least = far
            found = k
    y[i] = found


@cuda.jit
def collatz(y, n):
    i = cuda.grid(1)
    if i >= n:
        return
    value = uint64(i + 1)
    steps = 0
    while value != uint64(1):
        value = uint64(3) * value + uint64(1) if value & uint64(1) else value >> uint64(1)
        steps += 1
    y[i] = steps


@cuda.jit
def edges(x, y, n):
    c, r = cuda.grid(2)
    if c < 1 or r < 1 or c >= n - 1 or r >= n - 1:
        return
    p = int64(r) * n + c
    right = int32(x[p + 1 - n]) + 2 * int32(x[p + 1]) + int32(x[p + 1 + n])
    left = int32(x[p - 1 - n]) + 2 * int32(x[p - 1]) + int32(x[p - 1 + n])
    lower = int32(x[p + n - 1]) + 2 * int32(x[p + n]) + int32(x[p + n + 1])
    upper = int32(x[p - n - 1]) + 2 * int32(x[p - n]) + int32(x[p - n + 1])
    y[p] = np.uint8(min(255, abs(right - left) + abs(lower - upper)))


@cuda.jit
def checksums(records, table, y, n):
    t = cuda.shared.array(256, uint32)
    t[cuda.threadIdx.x] = table[cuda.threadIdx.x]
    cuda.syncthreads()
    i = cuda.grid(1)
    if i >= n:
        return
    crc = uint32(0xFFFFFFFF)
    for k in range(16):
        word = records[int64(i) * 16 + k]
        for b in range(4):
            crc = t[(crc ^ word >> uint32(8 * b)) & uint32(255)] ^ crc >> uint32(8)
    y[i] = ~crc


@cuda.jit
def merge(a, b, y, n):
    first = 8 * cuda.grid(1)
    if first >= 2 * n:
        return
    low = max(0, first - n)
    high = min(first, n)
    while low < high:
        middle = (low + high) // 2
        if a[middle] < b[first - 1 - middle]:
            low = middle + 1
        else:
            high = middle
    i = low
    j = first - low
    for k in range(8):
        takes = j >= n or (i < n and a[i] <= b[j])
        if takes:
            y[first + k] = a[i]
            i += 1
        else:
            y[first + k] = b[j]
            j += 1


@cuda.jit
def sums_by_key(keys, values, sums, n):
    first = 16 * cuda.grid(1)
    if first >= n:
        return
    key = keys[first]
    total = float32(0)
    for k in range(first, first + 16):
        if keys[k] != key:
            cuda.atomic.add(sums, key, total)
            key = keys[k]
            total = float32(0)
        total += values[k]
    cuda.atomic.add(sums, key, total)
