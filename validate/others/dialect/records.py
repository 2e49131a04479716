"""The kernels of `records.cu` in gpusim's dialect; it has no halves."""

from __future__ import annotations

import math

import numpy as np
from numpy import float32, int32, int64, uint32, uint64

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
LOWEST = float32(-1e30)
BEGIN = (
    uint32(0x6A09E667),
    uint32(0xBB67AE85),
    uint32(0x3C6EF372),
    uint32(0xA54FF53A),
    uint32(0x510E527F),
    uint32(0x9B05688C),
    uint32(0x1F83D9AB),
    uint32(0x5BE0CD19),
)


@cuda.jit
def segment_sums(x, heads, y, n):
    tails = cuda.shared.array(16, int32)
    is_open = cuda.shared.array(16, np.uint8)
    i = cuda.blockIdx.x * 512 + cuda.threadIdx.x
    lane = cuda.threadIdx.x % 32
    warp = cuda.threadIdx.x // 32
    total = 0
    if i < n:
        total = x[i]
    starts = uint32(cuda.ballot_sync(EVERY_LANE, i < n and heads[i] != 0))
    before = starts & (uint32(EVERY_LANE) >> uint32(31 - lane))
    reach = lane
    if before != 0:
        reach = lane - (31 - int32(cuda.clz(before)))
    o = 1
    while o < 32:
        other = cuda.shfl_up_sync(EVERY_LANE, total, o)
        if o <= reach:
            total += other
        o *= 2
    if lane == 31:
        tails[warp] = total
        is_open[warp] = np.uint8(1 if starts == 0 else 0)
    cuda.syncthreads()
    if before == 0:
        for w in range(warp - 1, -1, -1):
            total += tails[w]
            if is_open[w] == 0:
                break
    if i < n:
        y[i] = total


@cuda.jit
def runs(x, values, begins, counts):
    of_warps = cuda.shared.array(32, int32)
    t = cuda.threadIdx.x
    lane = t % 32
    warp = t // 32
    first = cuda.blockIdx.x * 1024
    value = x[first + t]
    starts = t == 0 or value != x[first + t - 1]
    votes = uint32(cuda.ballot_sync(EVERY_LANE, starts))
    if lane == 0:
        of_warps[warp] = int32(cuda.popc(votes))
    cuda.syncthreads()
    place = int32(cuda.popc(votes & ((uint32(1) << uint32(lane)) - uint32(1))))
    for w in range(warp):
        place += of_warps[w]
    if starts:
        values[first + place] = value
        begins[first + place] = np.int16(t)
    if t == 1023:
        counts[cuda.blockIdx.x] = place + (1 if starts else 0)


@cuda.jit
def radix_pass(keys, begins, y, shift):
    counts = cuda.shared.array((8, 16), int32)
    t = cuda.threadIdx.x
    lane = t % 32
    warp = t // 32
    if t < 128:
        counts[t // 16, t % 16] = 0
    cuda.syncthreads()
    key = keys[cuda.blockIdx.x * 256 + t]
    digit = int32(key >> uint32(shift) & uint32(15))
    same = uint32(cuda.match_any_sync(EVERY_LANE, digit))
    rank = int32(cuda.popc(same & ((uint32(1) << uint32(lane)) - uint32(1))))
    if rank == 0:
        counts[warp, digit] = int32(cuda.popc(same))
    cuda.syncthreads()
    for w in range(warp):
        rank += counts[w, digit]
    y[begins[digit * cuda.gridDim.x + cuda.blockIdx.x] + rank] = key


@cuda.jit
def edit_distances(a, b, y):
    word = cuda.shared.array(64, np.uint8)
    diagonals = cuda.shared.array((3, 65), int32)
    t = cuda.threadIdx.x
    letter = a[cuda.blockIdx.x * 64 + t]
    word[t] = b[cuda.blockIdx.x * 64 + t]
    if t == 0:
        diagonals[0, 0] = 0
        diagonals[1, 0] = 1
        diagonals[1, 1] = 1
    cuda.syncthreads()
    for d in range(2, 129):
        now = d % 3
        last = (d + 2) % 3
        older = (d + 1) % 3
        column = d - t - 1
        if column >= 1 and column <= 64:
            changed = diagonals[older, t] + (1 if letter != word[column - 1] else 0)
            moved = min(diagonals[last, t], diagonals[last, t + 1]) + 1
            diagonals[now, t + 1] = min(changed, moved)
        if column == 0:
            diagonals[now, t + 1] = d
        if t == 0 and d <= 64:
            diagonals[now, 0] = d
        cuda.syncthreads()
    if t == 0:
        y[cuda.blockIdx.x] = diagonals[128 % 3, 64]


@cuda.jit
def align_locally(query, letters, texts, length, y, n):
    row = cuda.local.array(32, int32)
    i = cuda.grid(1)
    best = 0
    if i >= n:
        return
    for j in range(letters):
        row[j] = 0
    for k in range(length):
        letter = texts[int64(k) * n + i]
        corner = 0
        left = 0
        for j in range(letters):
            both = corner + (2 if letter == query[j] else -1)
            above = row[j]
            left = max(max(both, 0), max(above, left) - 1)
            corner = above
            row[j] = left
            best = max(best, left)
    y[i] = best


@cuda.jit(device=True)
def scrambled(v):
    v ^= v >> uint32(16)
    v *= uint32(0x7FEB352D)
    v ^= v >> uint32(15)
    v *= uint32(0x846CA68B)
    return v ^ v >> uint32(16)


@cuda.jit
def bloom_insert(keys, bits, mask, n):
    i = cuda.grid(1)
    if i >= n:
        return
    place = scrambled(keys[i])
    step = scrambled(place) | uint32(1)
    for _ in range(4):
        cuda.atomic.or_(bits, (place & mask) >> uint32(5), uint32(1) << (place & uint32(31)))
        place += step


@cuda.jit(device=True)
def turned(v, by):
    return v >> uint32(by) | v << uint32(32 - by)


@cuda.jit
def sha256(messages, constants, y, n):
    rounds = cuda.shared.array(64, uint32)
    w = cuda.local.array(16, uint32)
    if cuda.threadIdx.x < 64:
        rounds[cuda.threadIdx.x] = constants[cuda.threadIdx.x]
    cuda.syncthreads()
    i = cuda.grid(1)
    if i >= n:
        return
    w[0], w[1], w[2], w[3] = cuda.load_vector(messages, 8 * i, 4)
    w[4], w[5], w[6], w[7] = cuda.load_vector(messages, 8 * i + 4, 4)
    w[8] = uint32(0x80000000)
    for j in range(9, 15):
        w[j] = uint32(0)
    w[15] = uint32(256)
    a, b, c, d, e, f, g, h = BEGIN
    for r in range(0, 64, 16):
        for j in range(16):
            if r > 0:
                old = w[(j + 1) % 16]
                young = w[(j + 14) % 16]
                s0 = turned(old, 7) ^ turned(old, 18) ^ old >> uint32(3)
                s1 = turned(young, 17) ^ turned(young, 19) ^ young >> uint32(10)
                w[j] += s0 + w[(j + 9) % 16] + s1
            sum1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)
            t1 = h + sum1 + (e & f ^ ~e & g) + rounds[r + j] + w[j]
            sum0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)
            t2 = sum0 + (a & b ^ a & c ^ b & c)
            h, g, f, e = g, f, e, d + t1
            d, c, b, a = c, b, a, t1 + t2
    plane = int64(n)
    y[i] = BEGIN[0] + a
    y[plane + i] = BEGIN[1] + b
    y[2 * plane + i] = BEGIN[2] + c
    y[3 * plane + i] = BEGIN[3] + d
    y[4 * plane + i] = BEGIN[4] + e
    y[5 * plane + i] = BEGIN[5] + f
    y[6 * plane + i] = BEGIN[6] + g
    y[7 * plane + i] = BEGIN[7] + h


@cuda.jit
def append_to_pages(keys, values, slots, key_pages, value_pages, heads):
    token = int64(cuda.blockIdx.x)
    slot = slots[cuda.blockIdx.x]
    if slot < 0:
        return
    pieces = heads * 16
    page = int64(slot // 16)
    place = slot % 16
    for k in range(cuda.threadIdx.x, pieces, cuda.blockDim.x):
        piece = token * pieces + k
        key = cuda.load_vector(keys, 4 * piece, 4)
        cuda.store_vector(key_pages, 4 * ((page * pieces + k) * 16 + place), key)
        value = cuda.load_vector(values, 4 * piece, 4)
        cuda.store_vector(value_pages, 4 * ((page * 16 + place) * pieces + k), value)


@cuda.jit
def causal_attention(queries, keys, values, y, n):
    query = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    lane = cuda.threadIdx.x
    head = int64(cuda.blockIdx.y) * n
    qx, qy = cuda.load_vector(queries, 2 * ((head + query) * 32 + lane), 2)
    made_x = float32(0)
    made_y = float32(0)
    most = LOWEST
    total = float32(0)
    for k in range(query + 1):
        key_x, key_y = cuda.load_vector(keys, 2 * ((head + k) * 32 + lane), 2)
        value_x, value_y = cuda.load_vector(values, 2 * ((head + k) * 32 + lane), 2)
        score = qx * key_x + qy * key_y
        o = 16
        while o > 0:
            score += cuda.shfl_xor_sync(EVERY_LANE, score, o)
            o //= 2
        score *= float32(0.125)
        larger = max(most, score)
        before = math.exp(most - larger)
        now = math.exp(score - larger)
        total = total * before + now
        made_x = made_x * before + now * value_x
        made_y = made_y * before + now * value_y
        most = larger
    cuda.store_vector(y, 2 * ((head + query) * 32 + lane), (made_x / total, made_y / total))


@cuda.jit(device=True)
def high_product(a, b):
    return uint32(uint64(a) * uint64(b) >> uint64(32))


@cuda.jit
def dropout(x, y, limit, scale, seed, n):
    i = cuda.grid(1)
    if i >= n // 4:
        return
    a = uint32(i)
    b = uint32(0)
    c = uint32(0)
    d = uint32(0)
    key = seed
    second = uint32(0)
    for _ in range(10):
        low = uint32(0xD2511F53) * a
        high = high_product(uint32(0xD2511F53), a)
        a = high_product(uint32(0xCD9E8D57), c) ^ b ^ key
        b = uint32(0xCD9E8D57) * c
        c = high ^ d ^ second
        d = low
        key += uint32(0x9E3779B9)
        second += uint32(0xBB67AE85)
    v = cuda.load_vector(x, 4 * i, 4)
    first = v[0] * scale if a < limit else float32(0)
    other = v[1] * scale if b < limit else float32(0)
    third = v[2] * scale if c < limit else float32(0)
    fourth = v[3] * scale if d < limit else float32(0)
    cuda.store_vector(y, 4 * i, (first, other, third, fourth))


@cuda.jit
def refit(parents, children, lows, highs, visits, n):
    low = cuda.volatile(lows)
    high = cuda.volatile(highs)
    leaf = cuda.grid(1)
    if leaf >= n:
        return
    node = parents[n - 1 + leaf]
    while node >= 0:
        cuda.threadfence()
        if cuda.atomic.add(visits, node, 1) == 0:
            return
        cuda.threadfence()
        left, right = cuda.load_vector(children, 2 * node, 2)
        low[node] = min(low[left], low[right])
        high[node] = max(high[left], high[right])
        node = parents[node]
