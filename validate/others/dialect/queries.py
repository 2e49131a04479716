"""The kernels of `queries.cu` in gpusim's dialect; bytes go one by one."""

from __future__ import annotations

import numpy as np
from numpy import float32, int16, int32, int64, uint8, uint32, uint64

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
EMPTY = uint32(0xFFFFFFFF)
FAR = 2**31 - 1


@cuda.jit
def count_distinct(keys, table, mask, distinct, n):
    i = cuda.grid(1)
    if i >= n:
        return
    key = keys[i]
    slot = (key ^ (key >> uint32(15))) * uint32(0x9E3779B1) & mask
    while True:
        old = cuda.atomic.cas(table, slot, EMPTY, key)
        if old == EMPTY:
            cuda.atomic.add(distinct, 0, 1)
            return
        if old == key:
            return
        slot = (slot + uint32(1)) & mask


@cuda.jit
def parse_prices(text, offsets, cents, n):
    i = cuda.grid(1)
    if i >= n:
        return
    p = offsets[i]
    end = offsets[i + 1]
    negative = text[p] == 45
    if negative:
        p += 1
    value = int64(0)
    while p < end:
        c = text[p]
        if c != 46:
            value = value * 10 + (c - 48)
        p += 1
    cents[i] = -value if negative else value


@cuda.jit
def unpack_bits(packed, dictionary, out, bits, n):
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        bit = int64(i) * bits
        word = int32(bit >> 5)
        shift = uint64(bit & 31)
        both = uint64(packed[word]) | uint64(packed[word + 1]) << uint64(32)
        code = uint32(both >> shift) & ((uint32(1) << uint32(bits)) - uint32(1))
        out[i] = dictionary[code]


@cuda.jit
def delta_decode(deltas, bases, out):
    totals = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    lane = t & 31
    warp = t >> 5
    first = (int64(cuda.blockIdx.x) * 256 + t) * 4
    a = int32(deltas[first])
    b = a + deltas[first + 1]
    c = b + deltas[first + 2]
    total = c + deltas[first + 3]
    scan = total
    offset = 1
    while offset < 32:
        other = cuda.shfl_up_sync(EVERY_LANE, scan, offset)
        if lane >= offset:
            scan += other
        offset *= 2
    if lane == 31:
        totals[warp] = scan
    cuda.syncthreads()
    if t < 8:
        v = totals[t]
        offset = 1
        while offset < 8:
            other = cuda.shfl_up_sync(0xFF, v, offset)
            if t >= offset:
                v += other
            offset *= 2
        totals[t] = v
    cuda.syncthreads()
    before = bases[cuda.blockIdx.x] + scan - total
    if warp > 0:
        before += totals[warp - 1]
    cuda.store_vector(out, first, (before + a, before + b))
    cuda.store_vector(out, first + 2, (before + c, before + total))


@cuda.jit
def count_triangles(sources, targets, offsets, count, edges):
    e = cuda.grid(1)
    found = 0
    if e < edges:
        u = sources[e]
        v = targets[e]
        i = offsets[u]
        i_end = offsets[u + 1]
        j = offsets[v]
        j_end = offsets[v + 1]
        while i < i_end and j < j_end:
            a = targets[i]
            b = targets[j]
            if a == b:
                found += 1
                i += 1
                j += 1
            elif a < b:
                i += 1
            else:
                j += 1
    offset = 16
    while offset > 0:
        found += cuda.shfl_down_sync(EVERY_LANE, found, offset)
        offset //= 2
    if cuda.threadIdx.x & 31 == 0 and found > 0:
        cuda.atomic.add(count, 0, uint64(found))


@cuda.jit
def relax_edges(sources, to, weight, dist, later, m):
    e = cuda.grid(1)
    if e >= m:
        return
    d = dist[sources[e]]
    if d == FAR:
        return
    cuda.atomic.min(later, to[e], d + weight[e])


@cuda.jit
def coo_product(rows, columns, values, x, y, nnz):
    i = cuda.grid(1)
    if i < nnz:
        cuda.atomic.add(y, rows[i], values[i] * x[columns[i]])


@cuda.jit
def bsr_product(offsets, columns, values, x, y, rows):
    thread = cuda.grid(1)
    row = thread // 16
    r = thread % 16 // 4
    c = thread % 4
    total = float32(0)
    if row < rows:
        for b in range(offsets[row], offsets[row + 1]):
            total += values[b * 16 + r * 4 + c] * x[columns[b] * 4 + c]
    total += cuda.shfl_down_sync(EVERY_LANE, total, 2, 4)
    total += cuda.shfl_down_sync(EVERY_LANE, total, 1, 4)
    if row < rows and c == 0:
        y[row * 4 + r] = total


@cuda.jit
def split_sort(keys):
    ordered = cuda.shared.array(256, np.uint16)
    zeros_of = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    lane = t & 31
    warp = t >> 5
    key = int32(keys[cuda.blockIdx.x * 256 + t])
    for bit in range(16):
        one = (key >> bit & 1) != 0
        votes = uint32(cuda.ballot_sync(EVERY_LANE, not one))
        if lane == 0:
            zeros_of[warp] = int32(cuda.popc(votes))
        cuda.syncthreads()
        zeros = int32(cuda.popc(votes & ((uint32(1) << uint32(lane)) - uint32(1))))
        total = 0
        for w in range(8):
            if w < warp:
                zeros += zeros_of[w]
            total += zeros_of[w]
        to = total + t - zeros if one else zeros
        ordered[to] = np.uint16(key)
        cuda.syncthreads()
        key = int32(ordered[t])
    keys[cuda.blockIdx.x * 256 + t] = np.uint16(key)


@cuda.jit
def date_parts(days, years, months, mdays, n):
    i = cuda.grid(1)
    if i >= n:
        return
    z = days[i] + 719468
    era = (z if z >= 0 else z - 146096) // 146097
    doe = uint32(z - era * 146097)
    of_leaps = doe - doe // uint32(1460) + doe // uint32(36524) - doe // uint32(146096)
    yoe = of_leaps // uint32(365)
    doy = doe - (uint32(365) * yoe + yoe // uint32(4) - yoe // uint32(100))
    mp = (uint32(5) * doy + uint32(2)) // uint32(153)
    month = mp + uint32(3) if mp < uint32(10) else mp - uint32(9)
    later = 1 if month <= uint32(2) else 0
    years[i] = int16(int32(yoe) + era * 400 + later)
    months[i] = uint8(month)
    mdays[i] = uint8(doy - (uint32(153) * mp + uint32(2)) // uint32(5) + uint32(1))


@cuda.jit
def count_kmers(genome, counts, n):
    first = cuda.grid(1) * 8
    if first >= n:
        return
    code = 0
    for k in range(7):
        code = code << 2 | (genome[first + k] >> 1 & 3)
    for k in range(8):
        code = (code << 2 | (genome[first + k + 7] >> 1 & 3)) & 0xFFFF
        cuda.atomic.add(counts, code, uint32(1))


@cuda.jit
def btree_lookup(nodes, wanted, ranks, levels, n):
    i = cuda.grid(1)
    if i >= n:
        return
    key = wanted[i]
    node = 0
    rank = 0
    for _ in range(levels):
        way = 0
        while way < 15 and nodes[node * 16 + way] <= key:
            way += 1
        rank = rank * 16 + way
        node = node * 16 + 1 + way
    ranks[i] = rank
