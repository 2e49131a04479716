"""The kernels of `models.cu` in gpusim's dialect; it has no constant memory, so no `seismic`."""

from __future__ import annotations

import math

from numpy import float32, float64, int32, int64, uint8, uint32, uint64

from gpusim import cuda

LOWEST = float32(-1e30)


@cuda.jit(device=True)
def nearest_image(d, box):
    if d > float32(0.5) * box:
        d -= box
    if d < float32(-0.5) * box:
        d += box
    return d


@cuda.jit
def lennard_jones(pos, neighbors, counts, force, box, cutoff2, n):
    i = cuda.grid(1)
    if i >= n:
        return
    x, y, z, _ = cuda.load_vector(pos, 4 * i, 4)
    fx = float32(0)
    fy = float32(0)
    fz = float32(0)
    energy = float32(0)
    count = counts[i]
    for k in range(count):
        ox, oy, oz, _ = cuda.load_vector(pos, 4 * neighbors[k * n + i], 4)
        dx = nearest_image(x - ox, box)
        dy = nearest_image(y - oy, box)
        dz = nearest_image(z - oz, box)
        r2 = dx * dx + dy * dy + dz * dz
        if r2 < cutoff2:
            inv2 = float32(1) / r2
            inv6 = inv2 * inv2 * inv2
            f = float32(24) * inv6 * (float32(2) * inv6 - float32(1)) * inv2
            fx += f * dx
            fy += f * dy
            fz += f * dz
            energy += float32(4) * inv6 * (inv6 - float32(1))
    cuda.store_vector(force, 4 * i, (fx, fy, fz, float32(0.5) * energy))


@cuda.jit
def update_e(ex, ey, ez, hx, hy, hz, c, n):
    i, j, k = cuda.grid(3)
    if i < 1 or j < 1 or k < 1 or i >= n or j >= n or k >= n:
        return
    at = (k * n + j) * n + i
    ex[at] += c * ((hz[at] - hz[at - n]) - (hy[at] - hy[at - n * n]))
    ey[at] += c * ((hx[at] - hx[at - n * n]) - (hz[at] - hz[at - 1]))
    ez[at] += c * ((hy[at] - hy[at - 1]) - (hx[at] - hx[at - n]))


@cuda.jit(device=True)
def state_at(h, hu, hv, i):
    return h[i], hu[i], hv[i]


@cuda.jit
def shallow_water(h, hu, hv, h2, hu2, hv2, r, n):
    x, y = cuda.grid(2)
    if x >= n or y >= n:
        return
    g = float32(9.81)
    half = float32(0.5) * g
    eh, eu, ev = state_at(h, hu, hv, y * n + (x + 1) % n)
    wh, wu, wv = state_at(h, hu, hv, y * n + (x + n - 1) % n)
    sh, su, sv = state_at(h, hu, hv, (y + 1) % n * n + x)
    th, tu, tv = state_at(h, hu, hv, (y + n - 1) % n * n + x)
    ue = eu / eh
    uw = wu / wh
    vs = sv / sh
    vt = tv / th
    i = y * n + x
    quarter = float32(0.25)
    h2[i] = quarter * (eh + wh + sh + th) - r * (eu - wu + sv - tv)
    flow_u = eu * ue + half * eh * eh - wu * uw - half * wh * wh + su * vs - tu * vt
    hu2[i] = quarter * (eu + wu + su + tu) - r * flow_u
    flow_v = ev * ue - wv * uw + sv * vs + half * sh * sh - tv * vt - half * th * th
    hv2[i] = quarter * (ev + wv + sv + tv) - r * flow_v


@cuda.jit
def american_put(spot, strike, value, up, p, discount):
    v = cuda.shared.array(257, float32)
    t = cuda.threadIdx.x
    s = spot[cuda.blockIdx.x] * math.pow(up, float32(2) * t - float32(255))
    k = strike[cuda.blockIdx.x]
    if t == 0:
        v[256] = float32(0)
    v[t] = max(k - s, float32(0))
    step = 255
    while step > 0:
        cuda.syncthreads()
        held = discount * (p * v[t + 1] + (float32(1) - p) * v[t])
        s *= up
        cuda.syncthreads()
        if t < step:
            v[t] = max(held, k - s)
        step -= 1
    if t == 0:
        value[cuda.blockIdx.x] = v[0]


@cuda.jit
def epidemics(seeds, recovered, peaks, n):
    i = cuda.grid(1)
    if i >= n:
        return
    state = seeds[i] | uint32(1)
    healthy = 252
    ill = 4
    peak = 4
    while ill > 0:
        state ^= state << uint32(13)
        state ^= state >> uint32(17)
        state ^= state << uint32(5)
        infect = uint32(3 * healthy)
        if state % (infect + uint32(512)) < infect:
            healthy -= 1
            ill += 1
            if ill > peak:
                peak = ill
        else:
            ill -= 1
    recovered[i] = 256 - healthy
    peaks[i] = peak


@cuda.jit(device=True)
def normal_cdf(d):
    k = float32(1) / (float32(1) + float32(0.2316419) * abs(d))
    total = float32(-1.821255978) + k * float32(1.330274429)
    total = float32(-0.356563782) + k * (float32(1.781477937) + k * total)
    total = k * (float32(0.31938153) + k * total)
    c = float32(0.39894228) * math.exp(float32(-0.5) * d * d) * total
    return float32(1) - c if d > float32(0) else c


@cuda.jit
def implied_vol(price, spot, strike, years, vol, rate, n):
    i = cuda.grid(1)
    if i >= n:
        return
    s = spot[i]
    k = strike[i]
    t = years[i]
    target = price[i]
    root = math.sqrt(t)
    discounted = k * math.exp(-rate * t)
    moneyness = math.log(s / k)
    sigma = float32(0.5)
    for _ in range(20):
        d1 = (moneyness + (rate + float32(0.5) * sigma * sigma) * t) / (sigma * root)
        d2 = d1 - sigma * root
        value = s * normal_cdf(d1) - discounted * normal_cdf(d2)
        vega = s * root * float32(0.39894228) * math.exp(float32(-0.5) * d1 * d1)
        diff = value - target
        if abs(diff) < float32(1e-3):
            break
        sigma -= diff / vega
        sigma = min(max(sigma, float32(0.01)), float32(3))
    vol[i] = sigma


@cuda.jit(device=True)
def lorenz(p):
    x, y, z = p
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - (8.0 / 3.0) * z


@cuda.jit(device=True)
def along(p, d, h):
    return p[0] + h * d[0], p[1] + h * d[1], p[2] + h * d[2]


@cuda.jit
def lorenz_rk4(x, y, z, h, steps, n):
    i = cuda.grid(1)
    if i >= n:
        return
    px = x[i]
    py = y[i]
    pz = z[i]
    for _ in range(steps):
        k1 = lorenz((px, py, pz))
        k2 = lorenz(along((px, py, pz), k1, 0.5 * h))
        k3 = lorenz(along((px, py, pz), k2, 0.5 * h))
        k4 = lorenz(along((px, py, pz), k3, h))
        px += h / float64(6) * (k1[0] + 2.0 * k2[0] + 2.0 * k3[0] + k4[0])
        py += h / float64(6) * (k1[1] + 2.0 * k2[1] + 2.0 * k3[1] + k4[1])
        pz += h / float64(6) * (k1[2] + 2.0 * k2[2] + 2.0 * k3[2] + k4[2])
    x[i] = px
    y[i] = py
    z[i] = pz


@cuda.jit
def deposit_charge(particles, grid, charge, cells, n):
    i = cuda.grid(1)
    if i >= n:
        return
    x, y = cuda.load_vector(particles, 2 * i, 2)
    cx = int32(x)
    cy = int32(y)
    fx = x - cx
    fy = y - cy
    right = 0 if cx + 1 == cells else cx + 1
    below = 0 if cy + 1 == cells else cy + 1
    one = float32(1)
    cuda.atomic.add(grid, cy * cells + cx, charge * (one - fx) * (one - fy))
    cuda.atomic.add(grid, cy * cells + right, charge * fx * (one - fy))
    cuda.atomic.add(grid, below * cells + cx, charge * (one - fx) * fy)
    cuda.atomic.add(grid, below * cells + right, charge * fx * fy)


@cuda.jit
def thomas(lower, diag, upper, rhs, work, x, n):
    i = cuda.grid(1)
    if i >= n:
        return
    c = upper[i] / diag[i]
    d = rhs[i] / diag[i]
    work[i] = c
    x[i] = d
    for k in range(1, 64):
        at = k * n + i
        m = 1.0 / (diag[at] - lower[at] * c)
        d = (rhs[at] - lower[at] * d) * m
        c = upper[at] * m
        work[at] = c
        x[at] = d
    for k in range(62, -1, -1):
        d = x[k * n + i] - work[k * n + i] * d
        x[k * n + i] = d


@cuda.jit
def viterbi(trans, emit, seen, back, path, steps):
    t = cuda.shared.array(64 * 64, float32)
    score = cuda.shared.array((2, 64), float32)
    j = cuda.threadIdx.x
    symbols = cuda.blockIdx.x * steps
    begin = int64(cuda.blockIdx.x) * steps * 64
    for k in range(j, 64 * 64, 64):
        t[k] = trans[k]
    score[0, j] = emit[seen[symbols] * 64 + j]
    cuda.syncthreads()
    for s in range(1, steps):
        last = (s - 1) & 1
        best = LOWEST
        which = 0
        for i in range(64):
            v = score[last, i] + t[i * 64 + j]
            if v > best:
                best = v
                which = i
        score[s & 1, j] = best + emit[seen[symbols + s] * 64 + j]
        back[begin + s * 64 + j] = uint8(which)
        cuda.syncthreads()
    if j == 0:
        last = (steps - 1) & 1
        at = 0
        for i in range(1, 64):
            if score[last, i] > score[last, at]:
                at = i
        for s in range(steps - 1, 0, -1):
            path[symbols + s] = uint8(at)
            at = int32(back[begin + s * 64 + at])
        path[symbols] = uint8(at)


@cuda.jit
def queens(found, size):
    cols = cuda.local.array(16, uint32)
    left = cuda.local.array(16, uint32)
    right = cuda.local.array(16, uint32)
    todo = cuda.local.array(16, uint32)
    number = cuda.grid(1)
    if number >= size * size * size:
        return
    full = (uint32(1) << uint32(size)) - uint32(1)
    c = uint32(0)
    falling = uint32(0)
    r = uint32(0)
    rest = number
    for _ in range(3):
        bit = uint32(1) << uint32(rest % size)
        if (c | falling | r) & bit:
            return
        c |= bit
        falling = (falling | bit) << uint32(1)
        r = (r | bit) >> uint32(1)
        rest //= size
    row = 3
    count = 0
    cols[3] = c
    left[3] = falling
    right[3] = r
    todo[3] = full & ~(c | falling | r)
    while row >= 3:
        free = todo[row]
        if free == uint32(0):
            row -= 1
            continue
        bit = free & (uint32(0) - free)
        todo[row] = free ^ bit
        if row == size - 1:
            count += 1
            continue
        c = cols[row] | bit
        falling = (left[row] | bit) << uint32(1)
        r = (right[row] | bit) >> uint32(1)
        row += 1
        cols[row] = c
        left[row] = falling
        right[row] = r
        todo[row] = full & ~(c | falling | r)
    if count != 0:
        cuda.atomic.add(found, 0, uint64(count))
