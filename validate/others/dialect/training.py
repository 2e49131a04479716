"""The kernels of `training.cu` in gpusim's dialect; it has no halves."""

from __future__ import annotations

import math

from numpy import float32, int32, int64, uint32

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
TINY = float32(1e-5)
ONE = float32(1)
MASKED = float32(-1e9)
LOWEST = float32(-3.4e38)


@cuda.jit(device=True)
def warp_total(v):
    o = 16
    while o > 0:
        v += cuda.shfl_xor_sync(EVERY_LANE, v, o)
        o >>= 1
    return v


@cuda.jit
def group_norm(x, gamma, beta, y, pixels, channels, groups):
    sums = cuda.shared.array(16, float32)
    squares = cuda.shared.array(16, float32)
    found = cuda.shared.array(2, float32)
    warp = cuda.threadIdx.x // 32
    lane = cuda.threadIdx.x % 32
    quads = channels // groups * pixels // 4
    base = int64(cuda.blockIdx.x) * quads
    total = float32(0)
    square = float32(0)
    for i in range(cuda.threadIdx.x, quads, cuda.blockDim.x):
        a, b, c, d = cuda.load_vector(x, 4 * (base + i), 4)
        total += a + b + c + d
        square += a * a + b * b + c * c + d * d
    total = warp_total(total)
    square = warp_total(square)
    if lane == 0:
        sums[warp] = total
        squares[warp] = square
    cuda.syncthreads()
    if warp == 0:
        total = warp_total(sums[lane] if lane < 16 else float32(0))
        square = warp_total(squares[lane] if lane < 16 else float32(0))
        if lane == 0:
            middle = total / (4 * quads)
            found[0] = middle
            found[1] = ONE / math.sqrt(square / (4 * quads) - middle * middle + TINY)
    cuda.syncthreads()
    first = cuda.blockIdx.x % groups * (channels // groups)
    for i in range(cuda.threadIdx.x, quads, cuda.blockDim.x):
        channel = first + 4 * i // pixels
        scale = gamma[channel] * found[1]
        shift = beta[channel] - found[0] * scale
        a, b, c, d = cuda.load_vector(x, 4 * (base + i), 4)
        made = a * scale + shift, b * scale + shift, c * scale + shift, d * scale + shift
        cuda.store_vector(y, 4 * (base + i), made)


@cuda.jit
def layernorm_backward(dy, x, means, scales, gamma, dx, rows):
    centred = cuda.local.array(24, float32)
    grad = cuda.local.array(24, float32)
    row = cuda.blockIdx.x * (cuda.blockDim.x // 32) + cuda.threadIdx.x // 32
    lane = cuda.threadIdx.x % 32
    if row >= rows:
        return
    base = int64(row) * 768
    mean = means[row]
    scale = scales[row]
    total = float32(0)
    dot = float32(0)
    for k in range(24):
        c = lane + 32 * k
        centred[k] = (x[base + c] - mean) * scale
        grad[k] = dy[base + c] * gamma[c]
        total += grad[k]
        dot += grad[k] * centred[k]
    total = warp_total(total) / float32(768)
    dot = warp_total(dot) / float32(768)
    for k in range(24):
        dx[base + lane + 32 * k] = scale * (grad[k] - total - centred[k] * dot)


@cuda.jit
def softmax_backward(y, dy, dx, columns, rows):
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    if row >= rows:
        return
    base = int64(row) * columns
    dot = float32(0)
    for c in range(cuda.threadIdx.x, columns, 32):
        dot += y[base + c] * dy[base + c]
    dot = warp_total(dot)
    for c in range(cuda.threadIdx.x, columns, 32):
        dx[base + c] = y[base + c] * (dy[base + c] - dot)


@cuda.jit
def causal_scores(q, k, scores, factor, n):
    qs = cuda.shared.array((16, 17), float32)
    ks = cuda.shared.array((16, 17), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.blockIdx.x * 16 + tx, cuda.blockIdx.y * 16 + ty
    head = int64(cuda.blockIdx.z) * n
    out = (head + row) * n + column
    if cuda.blockIdx.x > cuda.blockIdx.y:
        scores[out] = MASKED
        return
    queries = (head + row) * 64
    keys = (head + cuda.blockIdx.x * 16 + ty) * 64
    total = float32(0)
    for d in range(0, 64, 16):
        qs[ty, tx] = q[queries + d + tx]
        ks[ty, tx] = k[keys + d + tx]
        cuda.syncthreads()
        for j in range(16):
            total += qs[ty, j] * ks[tx, j]
        cuda.syncthreads()
    scores[out] = total * factor if column <= row else MASKED


@cuda.jit
def unpack_int4(packed, scales, y, n):
    i = cuda.grid(1)
    if 8 * i >= n:
        return
    v = cuda.local.array(8, float32)
    word = packed[i]
    scale = scales[i // 16]
    for k in range(8):
        v[k] = scale * (int32(word >> uint32(4 * k) & uint32(15)) - 8)
    cuda.store_vector(y, 8 * int64(i), (v[0], v[1], v[2], v[3]))
    cuda.store_vector(y, 8 * int64(i) + 4, (v[4], v[5], v[6], v[7]))


@cuda.jit
def embedding_backward(tokens, dy, table, n):
    i = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    if i >= n:
        return
    token = tokens[i]
    if token == 0:
        return
    for c in range(cuda.threadIdx.x, 128, cuda.blockDim.x):
        cuda.atomic.add(table, int64(token) * 128 + c, dy[int64(i) * 128 + c])


@cuda.jit(device=True)
def sigmoid(v):
    return ONE / (ONE + math.exp(-v))


@cuda.jit
def lstm_cell(gates, cells, hidden, n):
    i = cuda.grid(1)
    if i >= n:
        return
    row = int64(i // 512) * 2048 + i % 512
    kept = sigmoid(gates[row + 512]) * cells[i]
    cell = kept + sigmoid(gates[row]) * math.tanh(gates[row + 1024])
    cells[i] = cell
    hidden[i] = sigmoid(gates[row + 1536]) * math.tanh(cell)


@cuda.jit
def pool_with_places(x, y, places, n, total):
    half = n // 2
    for index in range(cuda.grid(1), total, cuda.gridsize(1)):
        pw = index % half
        ph = index // half % half
        c = index // half // half
        top, left = max(2 * ph - 1, 0), max(2 * pw - 1, 0)
        bottom, right = min(2 * ph + 2, n), min(2 * pw + 2, n)
        plane = int64(c) * n * n
        most = LOWEST
        place = -1
        for h in range(top, bottom):
            for w in range(left, right):
                if x[plane + h * n + w] > most:
                    place = h * n + w
                    most = x[plane + place]
        y[index] = most
        places[index] = place


@cuda.jit
def causal_convolution(x, weights, bias, y, n):
    v = cuda.local.array(7, float32)
    made = cuda.local.array(4, float32)
    i = cuda.grid(1)
    channel = cuda.blockIdx.y
    base = int64(channel) * n + 4 * i
    w = cuda.load_vector(weights, 4 * channel, 4)
    v[3], v[4], v[5], v[6] = cuda.load_vector(x, base, 4)
    for k in range(3):
        v[k] = float32(0)
    if i > 0:
        _, v[0], v[1], v[2] = cuda.load_vector(x, base - 4, 4)
    for k in range(4):
        total = bias[channel] + w[0] * v[k] + w[1] * v[k + 1] + w[2] * v[k + 2] + w[3] * v[k + 3]
        made[k] = total / (ONE + math.exp(-total))
    cuda.store_vector(y, base, (made[0], made[1], made[2], made[3]))


@cuda.jit
def batched_matvec(matrices, vectors, y):
    v = cuda.shared.array(48, float32)
    r = cuda.threadIdx.x
    if r < 48:
        v[r] = vectors[cuda.blockIdx.x * 48 + r]
    cuda.syncthreads()
    if r >= 48:
        return
    row = (int64(cuda.blockIdx.x) * 48 + r) * 48
    total = float32(0)
    for c in range(48):
        total += matrices[row + c] * v[c]
    y[cuda.blockIdx.x * 48 + r] = total


@cuda.jit
def bias_gradient(dy, bias, n):
    parts = cuda.shared.array((8, 33), float32)
    column = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    first = cuda.blockIdx.y * 256 + cuda.threadIdx.y
    total = float32(0)
    for r in range(first, min(n, (cuda.blockIdx.y + 1) * 256), 8):
        total += dy[int64(r) * 512 + column]
    parts[cuda.threadIdx.y, cuda.threadIdx.x] = total
    cuda.syncthreads()
    if cuda.threadIdx.y == 0:
        for k in range(1, 8):
            total += parts[k, cuda.threadIdx.x]
        cuda.atomic.add(bias, column, total)
