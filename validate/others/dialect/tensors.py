"""The kernels of `tensors.cu` in gpusim's dialect; it has no halves, nor `__dp4a`."""

from __future__ import annotations

import math

from numpy import float32, float64, int32, int64, uint64

from gpusim import cuda

FILTERS = 8
CHANNELS = 32


@cuda.jit
def direct_conv(x, weights, bias, y, n):
    tile = cuda.shared.array((18, 18), float32)
    w = cuda.shared.array((FILTERS, 9), float32)
    acc = cuda.local.array(FILTERS, float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tid = ty * 16 + tx
    x0 = cuda.blockIdx.x * 16
    y0 = cuda.blockIdx.y * 16
    f0 = cuda.blockIdx.z * FILTERS
    for f in range(FILTERS):
        acc[f] = bias[f0 + f]
    for c in range(CHANNELS):
        for k in range(tid, 18 * 18, 256):
            py = y0 + k // 18 - 1
            px = x0 + k % 18 - 1
            inside = py >= 0 and py < n and px >= 0 and px < n
            tile[k // 18, k % 18] = x[(c * n + py) * n + px] if inside else float32(0)
        if tid < FILTERS * 9:
            w[tid // 9, tid % 9] = weights[((f0 + tid // 9) * CHANNELS + c) * 9 + tid % 9]
        cuda.syncthreads()
        for i in range(3):
            for j in range(3):
                v = tile[ty + i, tx + j]
                for f in range(FILTERS):
                    acc[f] += v * w[f, i * 3 + j]
        cuda.syncthreads()
    for f in range(FILTERS):
        y[((f0 + f) * n + y0 + ty) * n + x0 + tx] = max(acc[f], float32(0))


@cuda.jit(device=True)
def sample(features, plane, size, y, x):
    y = min(max(y, float32(0)), float32(size - 1))
    x = min(max(x, float32(0)), float32(size - 1))
    y0 = int32(y)
    x0 = int32(x)
    y1 = min(y0 + 1, size - 1)
    x1 = min(x0 + 1, size - 1)
    fy = y - y0
    fx = x - x0
    one = float32(1)
    upper = plane + y0 * size
    lower = plane + y1 * size
    top = (one - fx) * features[upper + x0] + fx * features[upper + x1]
    bottom = (one - fx) * features[lower + x0] + fx * features[lower + x1]
    return (one - fy) * top + fy * bottom


@cuda.jit
def roi_align(features, rois, out, channels, size, total):
    for i in range(cuda.grid(1), total, cuda.gridsize(1)):
        bx = i % 7
        by = i // 7 % 7
        c = i // 49 % channels
        r = i // 49 // channels
        left, top, right, bottom = cuda.load_vector(rois, 4 * r, 4)
        bin_w = max(right - left, float32(1)) / float32(7)
        bin_h = max(bottom - top, float32(1)) / float32(7)
        plane = c * size * size
        found = float32(0)
        for sy in range(2):
            for sx in range(2):
                y = top + (by + (sy + float32(0.5)) / float32(2)) * bin_h
                x = left + (bx + (sx + float32(0.5)) / float32(2)) * bin_w
                found += sample(features, plane, size, y, x)
        out[i] = found / float32(4)


@cuda.jit(device=True)
def overlap(a, b):
    w = max(min(a[2], b[2]) - max(a[0], b[0]), float32(0))
    h = max(min(a[3], b[3]) - max(a[1], b[1]), float32(0))
    both = w * h
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


@cuda.jit
def nms_mask(boxes, threshold, masks, n):
    column = cuda.shared.array(64 * 4, float32)
    if cuda.blockIdx.y > cuda.blockIdx.x:
        return
    t = cuda.threadIdx.x
    words = n // 64
    other = cuda.load_vector(boxes, 4 * (cuda.blockIdx.x * 64 + t), 4)
    cuda.store_vector(column, 4 * t, other)
    cuda.syncthreads()
    own = cuda.blockIdx.y * 64 + t
    box = cuda.load_vector(boxes, 4 * own, 4)
    bits = uint64(0)
    first = t + 1 if cuda.blockIdx.x == cuda.blockIdx.y else 0
    for k in range(first, 64):
        if overlap(box, cuda.load_vector(column, 4 * k, 4)) > threshold:
            bits |= uint64(1) << uint64(k)
    masks[int64(own) * words + cuda.blockIdx.x] = bits


@cuda.jit
def rbf_matrix(x, y, out, gamma, n):
    xs = cuda.shared.array((16, 17), float32)
    ys = cuda.shared.array((16, 17), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    row = cuda.blockIdx.y * 16 + ty
    column = cuda.blockIdx.x * 16 + tx
    total = float32(0)
    for d in range(0, 64, 16):
        xs[ty, tx] = x[row * 64 + d + tx]
        ys[ty, tx] = y[(cuda.blockIdx.x * 16 + ty) * 64 + d + tx]
        cuda.syncthreads()
        for k in range(16):
            diff = xs[ty, k] - ys[tx, k]
            total += diff * diff
        cuda.syncthreads()
    out[int64(row) * n + column] = math.exp(-gamma * total)


@cuda.jit
def kmeans_update(points, centres, sums, counts, n):
    centre = cuda.shared.array(16 * 4, float32)
    own = cuda.shared.array((16, 4), float32)
    count = cuda.shared.array(16, int32)
    t = cuda.threadIdx.x
    if t < 16:
        cuda.store_vector(centre, 4 * t, cuda.load_vector(centres, 4 * t, 4))
        count[t] = 0
    if t < 64:
        own[t // 4, t % 4] = float32(0)
    cuda.syncthreads()
    for i in range(cuda.blockIdx.x * cuda.blockDim.x + t, n, cuda.gridsize(1)):
        x, y, z, w = cuda.load_vector(points, 4 * i, 4)
        best = 0
        least = float32(1e30)
        for k in range(16):
            cx, cy, cz, cw = cuda.load_vector(centre, 4 * k, 4)
            dx = x - cx
            dy = y - cy
            dz = z - cz
            dw = w - cw
            d = dx * dx + dy * dy + dz * dz + dw * dw
            if d < least:
                least = d
                best = k
        cuda.atomic.add(own, (best, 0), x)
        cuda.atomic.add(own, (best, 1), y)
        cuda.atomic.add(own, (best, 2), z)
        cuda.atomic.add(own, (best, 3), w)
        cuda.atomic.add(count, best, 1)
    cuda.syncthreads()
    if t < 64:
        cuda.atomic.add(sums, t, own[t // 4, t % 4])
    if t < 16:
        cuda.atomic.add(counts, t, count[t])


@cuda.jit
def selective_scan(u, delta, a, b, c, y, steps, channels):
    rate = cuda.local.array(16, float32)
    state = cuda.local.array(16, float32)
    d = cuda.grid(1)
    if d >= channels:
        return
    for s in range(16):
        rate[s] = a[d * 16 + s]
        state[s] = float32(0)
    for t in range(steps):
        dt = delta[t * channels + d]
        given = u[t * channels + d] * dt
        made = float32(0)
        for s in range(16):
            state[s] = state[s] * math.exp(dt * rate[s]) + given * b[t * 16 + s]
            made += state[s] * c[t * 16 + s]
        y[t * channels + d] = made


@cuda.jit
def huber_loss(predicted, wanted, delta, loss, n):
    parts = cuda.shared.array(256, float64)
    t = cuda.threadIdx.x
    total = 0.0
    half = float32(0.5)
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        off = abs(predicted[i] - wanted[i])
        total += half * off * off if off <= delta else delta * (off - half * delta)
    parts[t] = total
    cuda.syncthreads()
    reach = cuda.blockDim.x // 2
    while reach > 0:
        if t < reach:
            parts[t] += parts[t + reach]
        cuda.syncthreads()
        reach >>= 1
    if t == 0:
        cuda.atomic.add(loss, 0, parts[0])


@cuda.jit
def eigen3x3(m, values, n):
    i = cuda.grid(1)
    if i >= n:
        return
    xx = m[i]
    xy = m[n + i]
    xz = m[2 * n + i]
    yy = m[3 * n + i]
    yz = m[4 * n + i]
    zz = m[5 * n + i]
    q = (xx + yy + zz) / 3.0
    p1 = xy * xy + xz * xz + yz * yz
    p2 = (xx - q) * (xx - q) + (yy - q) * (yy - q) + (zz - q) * (zz - q) + 2.0 * p1
    p = math.sqrt(p2 / 6.0)
    bxx = (xx - q) / p
    byy = (yy - q) / p
    bzz = (zz - q) / p
    bxy = xy / p
    bxz = xz / p
    byz = yz / p
    det = bxx * (byy * bzz - byz * byz)
    det += bxz * (bxy * byz - byy * bxz) - bxy * (bxy * bzz - byz * bxz)
    phi = math.acos(min(max(det / 2.0, -1.0), 1.0)) / 3.0
    first = q + 2.0 * p * math.cos(phi)
    last = q + 2.0 * p * math.cos(phi + 2.0943951023931953)
    values[i] = first
    values[n + i] = 3.0 * q - first - last
    values[2 * n + i] = last


@cuda.jit
def hadamard(x):
    s = cuda.shared.array(1024, float32)
    row = int64(cuda.blockIdx.x) * 1024
    t = cuda.threadIdx.x
    for i in range(t, 1024, cuda.blockDim.x):
        s[i] = x[row + i]
    h = 1
    while h < 1024:
        cuda.syncthreads()
        for k in range(t, 512, cuda.blockDim.x):
            i = k // h * 2 * h + k % h
            a = s[i]
            b = s[i + h]
            s[i] = a + b
            s[i + h] = a - b
        h *= 2
    cuda.syncthreads()
    for i in range(t, 1024, cuda.blockDim.x):
        x[row + i] = s[i] / float32(32)
