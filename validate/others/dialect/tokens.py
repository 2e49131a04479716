"""The kernels of `tokens.cu` in gpusim's dialect; it has no halves."""

from __future__ import annotations

import math

from numpy import float32, int32, int64, uint32

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
LEAST = float32(-1e30)


@cuda.jit(device=True)
def best_of(low, high, lane):
    most = max(low, high)
    at = lane if low >= high else lane + 32
    mask = 16
    while mask > 0:
        other = cuda.shfl_xor_sync(EVERY_LANE, most, mask)
        place = cuda.shfl_xor_sync(EVERY_LANE, at, mask)
        if other > most or (other == most and place < at):
            most = other
            at = place
        mask >>= 1
    return most, at


@cuda.jit
def route_tokens(logits, experts, weights, counts, tokens):
    token = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    lane = cuda.threadIdx.x
    if token >= tokens:
        return
    low = logits[token * 64 + lane]
    high = logits[token * 64 + 32 + lane]
    first, best = best_of(low, high, lane)
    if best == lane:
        low = LEAST
    if best == lane + 32:
        high = LEAST
    second, next_best = best_of(low, high, lane)
    if lane == 0:
        part = math.exp(second - first)
        one = float32(1)
        cuda.store_vector(experts, 2 * token, (best, next_best))
        cuda.store_vector(weights, 2 * token, (one / (one + part), part / (one + part)))
        cuda.atomic.add(counts, best, 1)
        cuda.atomic.add(counts, next_best, 1)


@cuda.jit
def dispatch_rows(x, slots, y):
    token = cuda.blockIdx.x
    slot = slots[token * cuda.gridDim.y + cuda.blockIdx.y]
    if slot < 0:
        return
    t = cuda.threadIdx.x
    row = cuda.load_vector(x, 4 * (int64(token) * cuda.blockDim.x + t), 4)
    cuda.store_vector(y, 4 * (int64(slot) * cuda.blockDim.x + t), row)


@cuda.jit
def sample_token(logits, uniforms, tokens, temperature, vocabulary):
    parts = cuda.shared.array(8, float32)
    found = cuda.shared.array(1, int32)
    row = int64(cuda.blockIdx.x) * vocabulary
    t = cuda.threadIdx.x
    lane = t & 31
    warp = t >> 5
    if t == 0:
        found[0] = vocabulary

    most = LEAST
    for i in range(t, vocabulary, 256):
        most = max(most, logits[row + i])
    mask = 16
    while mask > 0:
        most = max(most, cuda.shfl_xor_sync(EVERY_LANE, most, mask))
        mask >>= 1
    if lane == 0:
        parts[warp] = most
    cuda.syncthreads()
    for w in range(8):
        most = max(most, parts[w])
    cuda.syncthreads()

    whole = float32(0)
    for i in range(t, vocabulary, 256):
        whole += math.exp((logits[row + i] - most) / temperature)
    mask = 16
    while mask > 0:
        whole += cuda.shfl_xor_sync(EVERY_LANE, whole, mask)
        mask >>= 1
    if lane == 0:
        parts[warp] = whole
    cuda.syncthreads()
    whole = float32(0)
    for w in range(8):
        whole += parts[w]

    target = uniforms[cuda.blockIdx.x] * whole
    before = float32(0)
    for begin in range(0, vocabulary, 256):
        i = begin + t
        scan = float32(0)
        if i < vocabulary:
            scan = math.exp((logits[row + i] - most) / temperature)
        offset = 1
        while offset < 32:
            other = cuda.shfl_up_sync(EVERY_LANE, scan, offset)
            if lane >= offset:
                scan += other
            offset *= 2
        cuda.syncthreads()
        if lane == 31:
            parts[warp] = scan
        cuda.syncthreads()
        total = float32(0)
        for w in range(8):
            if w < warp:
                scan += parts[w]
            total += parts[w]
        if i < vocabulary and before + scan > target:
            cuda.atomic.min(found, 0, i)
        cuda.syncthreads()
        if found[0] < vocabulary:
            break
        before += total
    if t == 0:
        tokens[cuda.blockIdx.x] = min(found[0], vocabulary - 1)


@cuda.jit
def mask_logits(logits, allowed, counts, presence, frequency, temperature, vocabulary):
    v = cuda.grid(1)
    row = cuda.blockIdx.y
    if v >= vocabulary:
        return
    at = int64(row) * vocabulary + v
    word = allowed[row * ((vocabulary + 31) // 32) + v // 32]
    if word >> uint32(v % 32) & uint32(1) != 0:
        x = logits[at]
        count = int32(counts[at])
        if count > 0:
            x -= presence + frequency * count
        logits[at] = x / temperature
    else:
        logits[at] = float32(-10000)


@cuda.jit
def split_heads(qkv, bias, q, k, v, batch, positions, heads, dim):
    i = cuda.grid(1)
    width = 3 * heads * dim
    if i >= batch * positions * width:
        return
    d = i % dim
    h = (i // dim) % heads
    which = (i // (dim * heads)) % 3
    s = (i // width) % positions
    b = i // (width * positions)
    x = qkv[i] + bias[i % width]
    to = ((b * heads + h) * positions + s) * dim + d
    if which == 0:
        q[to] = x
    elif which == 1:
        k[to] = x
    else:
        v[to] = x


@cuda.jit
def embedding_bag(table, rows, offsets, y, bags):
    bag = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    lane = cuda.threadIdx.x
    if bag >= bags:
        return
    begin = offsets[bag]
    end = offsets[bag + 1]
    a = float32(0)
    b = float32(0)
    c = float32(0)
    d = float32(0)
    for k in range(begin, end):
        p, q, r, s = cuda.load_vector(table, 4 * (int64(rows[k]) * 32 + lane), 4)
        a += p
        b += q
        c += r
        d += s
    scale = float32(1) / float32(end - begin) if end > begin else float32(0)
    cuda.store_vector(y, 4 * (int64(bag) * 32 + lane), (a * scale, b * scale, c * scale, d * scale))


@cuda.jit
def accept_drafts(target, draft, tokens, uniforms, accepted, steps, vocabulary, sequences):
    s = cuda.grid(1)
    if s >= sequences:
        return
    count = 0
    for k in range(steps):
        token = tokens[s * steps + k]
        at = int64(s * steps + k) * vocabulary + token
        p = target[at]
        q = draft[at]
        if uniforms[s * steps + k] * q > p:
            break
        count += 1
    accepted[s] = count


@cuda.jit
def grouped_product(x, weights, expert_of, y, inner, width):
    left = cuda.shared.array((2, 16, 68), float32)
    right = cuda.shared.array(2 * 16 * 64, float32)
    acc = cuda.local.array((4, 4), float32)
    t = cuda.threadIdx.x
    tx = t % 16
    ty = t // 16
    row0 = cuda.blockIdx.y * 64
    column0 = cuda.blockIdx.x * 64
    from_x = int64(row0 + t // 4) * inner + t % 4 * 4
    of_expert = int64(expert_of[cuda.blockIdx.y]) * inner * width
    from_weights = of_expert + (t // 16) * width + column0 + t % 16 * 4
    for i in range(4):
        for j in range(4):
            acc[i, j] = float32(0)
    a0, a1, a2, a3 = cuda.load_vector(x, from_x, 4)
    b0, b1, b2, b3 = cuda.load_vector(weights, from_weights, 4)
    buffer = 0
    for k0 in range(0, inner, 16):
        left[buffer, t % 4 * 4, t // 4] = a0
        left[buffer, t % 4 * 4 + 1, t // 4] = a1
        left[buffer, t % 4 * 4 + 2, t // 4] = a2
        left[buffer, t % 4 * 4 + 3, t // 4] = a3
        cuda.store_vector(right, (buffer * 16 + t // 16) * 64 + t % 16 * 4, (b0, b1, b2, b3))
        cuda.syncthreads()
        if k0 + 16 < inner:
            a0, a1, a2, a3 = cuda.load_vector(x, from_x + k0 + 16, 4)
            after = from_weights + int64(k0 + 16) * width
            b0, b1, b2, b3 = cuda.load_vector(weights, after, 4)
        for k in range(16):
            r0, r1, r2, r3 = cuda.load_vector(right, (buffer * 16 + k) * 64 + tx * 4, 4)
            for i in range(4):
                value = left[buffer, k, ty * 4 + i]
                acc[i, 0] += value * r0
                acc[i, 1] += value * r1
                acc[i, 2] += value * r2
                acc[i, 3] += value * r3
        buffer ^= 1
    for i in range(4):
        made = (acc[i, 0], acc[i, 1], acc[i, 2], acc[i, 3])
        cuda.store_vector(y, int64(row0 + ty * 4 + i) * width + column0 + tx * 4, made)
