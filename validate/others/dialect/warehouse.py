"""The kernels of `warehouse.cu` in gpusim's dialect; it has no halves and no bits of floats."""

from __future__ import annotations

import math

from numpy import float32, int32, int64, uint8, uint32, uint64

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
FAR = float32(1e30)


@cuda.jit(device=True)
def run_of(ends, wanted, low, high):
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] > wanted:
            high = middle
        else:
            low = middle + 1
    return low


@cuda.jit
def expand_runs(ends, values, out, runs):
    bounds = cuda.shared.array(2, int32)
    made = cuda.local.array(4, int32)
    t = cuda.threadIdx.x
    begin = cuda.blockIdx.x * 1024
    if t < 2:
        bounds[t] = run_of(ends, begin + t * 1023, 0, runs - 1)
    cuda.syncthreads()
    at = begin + 4 * t
    run = run_of(ends, at, bounds[0], bounds[1])
    end = ends[run]
    for k in range(4):
        while at + k >= end:
            run += 1
            end = ends[run]
        made[k] = values[run]
    cuda.store_vector(out, at, (made[0], made[1], made[2], made[3]))


@cuda.jit
def decode_varints(text, begins, firsts, out, pages):
    page = cuda.grid(1)
    if page >= pages:
        return
    p = begins[page]
    value = firsts[page]
    for k in range(64):
        number = uint64(0)
        shift = 0
        while True:
            byte = int32(text[p])
            p += 1
            number |= uint64(byte & 127) << uint64(shift)
            shift += 7
            if byte & 128 == 0:
                break
        value += int64(number >> uint64(1)) ^ -int64(number & uint64(1))
        out[int64(page) * 64 + k] = value


@cuda.jit
def group_strings(text, begins, owners, counts, groups, mask, n):
    row = cuda.grid(1)
    if row >= n:
        return
    begin = begins[row]
    length = begins[row + 1] - begin
    hashed = uint32(2166136261)
    for k in range(length):
        hashed = (hashed ^ uint32(text[begin + k])) * uint32(16777619)
    slot = int32(hashed) & mask
    while True:
        owner = owners[slot]
        if owner < 0:
            owner = cuda.atomic.cas(owners, slot, -1, row)
            if owner < 0:
                cuda.atomic.add(groups, 0, 1)
                break
        other = begins[owner]
        is_same = begins[owner + 1] - other == length
        k = 0
        while is_same and k < length:
            is_same = text[other + k] == text[begin + k]
            k += 1
        if is_same:
            break
        slot = (slot + 1) & mask
    cuda.atomic.add(counts, slot, 1)


@cuda.jit
def candles(prices, volumes, begins, bars, traded, count):
    warp = cuda.grid(1) // 32
    lane = cuda.threadIdx.x % 32
    if warp >= count:
        return
    begin = begins[warp]
    end = begins[warp + 1]
    high = -FAR
    low = FAR
    total = int64(0)
    for k in range(begin + lane, end, 32):
        price = prices[k]
        high = max(high, price)
        low = min(low, price)
        total += volumes[k]
    offset = 16
    while offset > 0:
        high = max(high, cuda.shfl_down_sync(EVERY_LANE, high, offset))
        low = min(low, cuda.shfl_down_sync(EVERY_LANE, low, offset))
        total += cuda.shfl_down_sync(EVERY_LANE, total, offset)
        offset //= 2
    if lane == 0:
        if begin < end:
            cuda.store_vector(bars, 4 * warp, (prices[begin], high, low, prices[end - 1]))
        else:
            none = float32(0)
            cuda.store_vector(bars, 4 * warp, (none, none, none, none))
        traded[warp] = total


@cuda.jit
def range_sums(nodes, values, lows, highs, sums, levels):
    ends = cuda.shared.array(2, int32)
    parts = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    low = lows[cuda.blockIdx.x]
    high = highs[cuda.blockIdx.x]
    if t == 0:
        ends[0] = 0
        ends[1] = 0
    cuda.syncthreads()
    width = 64
    level = 0
    for _depth in range(levels):
        from_low = ends[0]
        from_high = ends[1]
        first = level + from_low * 64 + t
        is_first = nodes[first] <= low and (t == 63 or nodes[first + 1] > low)
        last = level + from_high * 64 + t
        is_last = nodes[last] <= high and (t == 63 or nodes[last + 1] > high)
        cuda.syncthreads()
        if is_first:
            ends[0] = from_low * 64 + t
        if is_last:
            ends[1] = from_high * 64 + t
        cuda.syncthreads()
        level += width
        width *= 64
    total = float32(0)
    for k in range(ends[0] + t, ends[1] + 1, 64):
        total += values[k]
    parts[t] = total
    cuda.syncthreads()
    s = 32
    while s > 0:
        if t < s:
            parts[t] += parts[t + s]
        cuda.syncthreads()
        s >>= 1
    if t == 0:
        sums[cuda.blockIdx.x] = parts[0]


@cuda.jit
def sampled_product(sources, targets, a, b, weights, out, edges):
    lane = cuda.threadIdx.x % 16
    edge = cuda.grid(1) // 16
    if edge >= edges:
        return
    ux, uy, uz, uw = cuda.load_vector(a, 4 * (int64(sources[edge]) * 16 + lane), 4)
    vx, vy, vz, vw = cuda.load_vector(b, 4 * (int64(targets[edge]) * 16 + lane), 4)
    dot = ux * vx + uy * vy + uz * vz + uw * vw
    mask = 8
    while mask > 0:
        dot += cuda.shfl_xor_sync(EVERY_LANE, dot, mask, 16)
        mask >>= 1
    if lane == 0:
        out[edge] = weights[edge] * dot


@cuda.jit
def mel_energies(spectra, weights, starts, offsets, out, frames):
    powers = cuda.shared.array(257, float32)
    t = cuda.threadIdx.x
    lane = t % 32
    for frame in range(cuda.blockIdx.x, frames, cuda.gridDim.x):
        for k in range(t, 257, cuda.blockDim.x):
            powers[k] = spectra[frame * 257 + k]
        cuda.syncthreads()
        for band in range(t // 32, 40, cuda.blockDim.x // 32):
            offset = offsets[band]
            length = offsets[band + 1] - offset
            start = starts[band]
            total = float32(0)
            for k in range(lane, length, 32):
                total += weights[offset + k] * powers[start + k]
            mask = 16
            while mask > 0:
                total += cuda.shfl_xor_sync(EVERY_LANE, total, mask)
                mask >>= 1
            if lane == 0:
                out[frame * 40 + band] = math.log(total + float32(1e-6))
        cuda.syncthreads()


@cuda.jit
def motion_search(now, last, moves, width, height):
    block = cuda.shared.array((16, 16), uint8)
    window = cuda.shared.array((32, 32), uint8)
    best = cuda.shared.array(8, uint32)
    t = cuda.threadIdx.x
    x0 = cuda.blockIdx.x * 16
    y0 = cuda.blockIdx.y * 16
    block[t // 16, t % 16] = now[int64(y0 + t // 16) * width + x0 + t % 16]
    row = min(max(y0 - 8 + t // 8, 0), height - 1)
    for k in range(4):
        column = min(max(x0 - 8 + t % 8 * 4 + k, 0), width - 1)
        window[t // 8, t % 8 * 4 + k] = last[int64(row) * width + column]
    cuda.syncthreads()

    dx = t % 16
    dy = t // 16
    difference = 0
    for y in range(16):
        for x in range(16):
            difference += abs(block[y, x] - window[dy + y, dx + x])
    least = uint32(difference << 8 | t)
    mask = 16
    while mask > 0:
        least = min(least, cuda.shfl_xor_sync(EVERY_LANE, least, mask))
        mask >>= 1
    if t % 32 == 0:
        best[t // 32] = least
    cuda.syncthreads()
    if t == 0:
        for w in range(1, 8):
            least = min(least, best[w])
        moves[cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x] = least


@cuda.jit
def decompress_blocks(packed, begins, out, size, blocks):
    block = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    lane = cuda.threadIdx.x
    if block >= blocks:
        return
    p = begins[block]
    end = begins[block + 1]
    q = int64(block) * size
    while p < end:
        token = int32(packed[p])
        p += 1
        literals = token >> 4
        if literals == 15:
            while True:
                more = int32(packed[p])
                p += 1
                literals += more
                if more != 255:
                    break
        for k in range(lane, literals, 32):
            out[q + k] = packed[p + k]
        p += literals
        q += literals
        cuda.syncwarp()
        if p >= end:
            break
        distance = int32(packed[p]) | int32(packed[p + 1]) << 8
        p += 2
        length = (token & 15) + 4
        if length == 19:
            while True:
                more = int32(packed[p])
                p += 1
                length += more
                if more != 255:
                    break
        if distance >= length:
            for k in range(lane, length, 32):
                out[q + k] = out[q - distance + k]
        else:
            for k in range(lane, length, 32):
                out[q + k] = out[q - distance + k % distance]
        q += length
        cuda.syncwarp()


@cuda.jit
def hyperloglog(keys, registers, n):
    own = cuda.shared.array(4096, int32)
    for k in range(cuda.threadIdx.x, 4096, cuda.blockDim.x):
        own[k] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        h = keys[i] * uint64(0x9E3779B97F4A7C15)
        h ^= h >> uint64(32)
        h *= uint64(0xD6E8FEB86659FD93)
        h ^= h >> uint64(32)
        bucket = int32(h >> uint64(52))
        rank = int32(cuda.clz(h << uint64(12) | uint64(2048))) + 1
        if own[bucket] < rank:
            cuda.atomic.max(own, bucket, rank)
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, 4096, cuda.blockDim.x):
        if own[k] > registers[k]:
            cuda.atomic.max(registers, k, own[k])
