"""The kernels of `engineering.cu` in gpusim's dialect; bytes go one by one."""

from __future__ import annotations

import math

from numpy import float32, float64, int32, int64, uint8, uint32, uint64

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
EVERY_SEVENTH = uint32(0x7F7F7F7F)


@cuda.jit
def sph_density(pos, cell_start, density, h2, cells, n):
    i = cuda.grid(1)
    if i >= n:
        return
    px, py, pz, mass = cuda.load_vector(pos, 4 * i, 4)
    cx = int32(px)
    cy = int32(py)
    cz = int32(pz)
    found = float32(0)
    for dz in range(-1, 2):
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                x = cx + dx
                y = cy + dy
                z = cz + dz
                if x >= 0 and y >= 0 and z >= 0 and x < cells and y < cells and z < cells:
                    cell = (z * cells + y) * cells + x
                    for j in range(cell_start[cell], cell_start[cell + 1]):
                        qx, qy, qz, mass = cuda.load_vector(pos, 4 * j, 4)
                        ex = px - qx
                        ey = py - qy
                        ez = pz - qz
                        r2 = ex * ex + ey * ey + ez * ez
                        if r2 < h2:
                            d = h2 - r2
                            found += mass * d * d * d
    density[i] = found


@cuda.jit
def push_particles(x, y, vx, vy, fields, dt, cells, n):
    half = float32(0.5)
    one = float32(1)
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        px = x[i]
        py = y[i]
        cx = int32(px)
        cy = int32(py)
        fx = px - cx
        fy = py - cy
        right = (cx + 1) & (cells - 1)
        below = (cy + 1) & (cells - 1)
        ax, ay, az, _aw = cuda.load_vector(fields, 4 * (cy * cells + cx), 4)
        bx, by, bz, _bw = cuda.load_vector(fields, 4 * (cy * cells + right), 4)
        gx, gy, gz, _gw = cuda.load_vector(fields, 4 * (below * cells + cx), 4)
        dx, dy, dz, _dw = cuda.load_vector(fields, 4 * (below * cells + right), 4)
        wa = (one - fx) * (one - fy)
        wb = fx * (one - fy)
        wc = (one - fx) * fy
        wd = fx * fy
        ex = wa * ax + wb * bx + wc * gx + wd * dx
        ey = wa * ay + wb * by + wc * gy + wd * dy
        field = wa * az + wb * bz + wc * gz + wd * dz
        ux = vx[i] + half * dt * ex
        uy = vy[i] + half * dt * ey
        t = half * dt * field
        s = float32(2) * t / (one + t * t)
        wx = ux + uy * t
        wy = uy - ux * t
        ux += wy * s
        uy -= wx * s
        ux += half * dt * ex
        uy += half * dt * ey
        px += ux * dt
        py += uy * dt
        if px < 0:
            px += cells
        if px >= cells:
            px -= cells
        if py < 0:
            py += cells
        if py >= cells:
            py -= cells
        x[i] = px
        y[i] = py
        vx[i] = ux
        vy[i] = uy


@cuda.jit
def cg_step(x, r, p, q, rr, pq, rr_next, pairs):
    parts = cuda.shared.array(8, float64)
    alpha = rr[0] / pq[0]
    total = 0.0
    for i in range(cuda.grid(1), pairs, cuda.gridsize(1)):
        x0, x1 = cuda.load_vector(x, 2 * i, 2)
        r0, r1 = cuda.load_vector(r, 2 * i, 2)
        p0, p1 = cuda.load_vector(p, 2 * i, 2)
        q0, q1 = cuda.load_vector(q, 2 * i, 2)
        r0 -= alpha * q0
        r1 -= alpha * q1
        cuda.store_vector(x, 2 * i, (x0 + alpha * p0, x1 + alpha * p1))
        cuda.store_vector(r, 2 * i, (r0, r1))
        total += r0 * r0 + r1 * r1
    t = cuda.threadIdx.x
    offset = 16
    while offset > 0:
        total += cuda.shfl_down_sync(EVERY_LANE, total, offset)
        offset >>= 1
    if t % 32 == 0:
        parts[t // 32] = total
    cuda.syncthreads()
    if t < 8:
        total = parts[t]
        offset = 4
        while offset > 0:
            total += cuda.shfl_down_sync(0xFF, total, offset, 8)
            offset >>= 1
        if t == 0:
            cuda.atomic.add(rr_next, 0, total)


@cuda.jit
def restrict3d(fine, coarse, m):
    i, j, k = cuda.grid(3)
    if i >= m or j >= m or k >= m:
        return
    n = 2 * m
    total = 0.0
    for dk in range(-1, 2):
        for dj in range(-1, 2):
            for di in range(-1, 2):
                x = 2 * i + di
                y = 2 * j + dj
                z = 2 * k + dk
                if x >= 0 and y >= 0 and z >= 0:
                    weight = 0.125
                    if di != 0:
                        weight *= 0.5
                    if dj != 0:
                        weight *= 0.5
                    if dk != 0:
                        weight *= 0.5
                    total += weight * fine[(int64(z) * n + y) * n + x]
    coarse[(int64(k) * m + j) * m + i] = total


@cuda.jit(device=True)
def equal_bytes(word, wanted):
    differs = word ^ wanted
    low = (differs & EVERY_SEVENTH) + EVERY_SEVENTH
    return ~(low | differs) & uint32(0x80808080)


@cuda.jit(device=True)
def marked(word):
    hits = equal_bytes(word, uint32(0x2C2C2C2C)) | equal_bytes(word, uint32(0x0A0A0A0A))
    hits >>= uint32(7)
    return (hits | hits >> uint32(7) | hits >> uint32(14) | hits >> uint32(21)) & uint32(15)


@cuda.jit
def index_delimiters(text, before, places):
    totals = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    lane = t & 31
    warp = t >> 5
    piece = cuda.blockIdx.x * 256 + t
    a, b, c, d = cuda.load_vector(text, 4 * piece, 4)
    marks = marked(a) | marked(b) << uint32(4) | marked(c) << uint32(8) | marked(d) << uint32(12)
    count = int32(cuda.popc(marks))
    scan = count
    offset = 1
    while offset < 32:
        other = cuda.shfl_up_sync(EVERY_LANE, scan, offset)
        if lane >= offset:
            scan += other
        offset <<= 1
    if lane == 31:
        totals[warp] = scan
    cuda.syncthreads()
    to = before[cuda.blockIdx.x] + scan - count
    for w in range(warp):
        to += totals[w]
    while marks != 0:
        places[to] = piece * 16 + int32(cuda.ffs(marks)) - 1
        to += 1
        marks &= marks - uint32(1)


@cuda.jit(device=True)
def finished(h):
    h ^= h >> uint64(33)
    h *= uint64(0xFF51AFD7ED558CCD)
    h ^= h >> uint64(33)
    h *= uint64(0xC4CEB9FE1A85EC53)
    return h ^ h >> uint64(33)


@cuda.jit
def partition_rows(customers, items, partitions, counts, n):
    own = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    if t < 256:
        own[t] = 0
    cuda.syncthreads()
    begin = cuda.blockIdx.x * 4096
    for k in range(t, 4096, cuda.blockDim.x):
        i = begin + k
        if i < n:
            hashed = finished(uint64(customers[i]))
            hashed = finished(hashed * uint64(31) + uint64(items[i]))
            partition = int32(hashed >> uint64(56))
            partitions[i] = uint8(partition)
            cuda.atomic.add(own, partition, 1)
    cuda.syncthreads()
    if t < 256:
        counts[t * cuda.gridDim.x + cuda.blockIdx.x] = own[t]


@cuda.jit(device=True)
def mixed(v):
    v ^= v >> uint32(16)
    v *= uint32(0x7FEB352D)
    v ^= v >> uint32(15)
    v *= uint32(0x846CA68B)
    return v ^ v >> uint32(16)


@cuda.jit
def independent_set(begins, neighbours, states, later, seed, n):
    v = cuda.grid(1)
    if v >= n:
        return
    state = states[v]
    if state == 0:
        own = mixed(uint32(v) ^ seed)
        is_largest = True
        k = begins[v]
        while k < begins[v + 1]:
            u = neighbours[k]
            if u != v and states[u] == 0 and mixed(uint32(u) ^ seed) > own:
                is_largest = False
                break
            k += 1
        if is_largest:
            state = 1
    later[v] = state


@cuda.jit
def paeth_filter(image, out, width, height):
    i = cuda.grid(1)
    row = cuda.blockIdx.y
    size = 4 * width
    if i >= size:
        return
    line = int64(row) * size
    a = int32(image[line + i - 4]) if i >= 4 else 0
    b = int32(image[line + i - size]) if row > 0 else 0
    c = int32(image[line + i - size - 4]) if row > 0 and i >= 4 else 0
    p = a + b - c
    pa = abs(p - a)
    pb = abs(p - b)
    pc = abs(p - c)
    other = b if pb <= pc else c
    nearest = a if pa <= pb and pa <= pc else other
    to = int64(row) * (size + 1)
    if i == 0:
        out[to] = uint8(4)
    out[to + 1 + i] = uint8(image[line + i] - nearest)


@cuda.jit(device=True)
def stepped(state):
    state ^= state << uint32(13)
    state ^= state >> uint32(17)
    state ^= state << uint32(5)
    return state


@cuda.jit(device=True)
def fraction(state):
    return (float32(state >> uint32(8)) + float32(0.5)) * float32(1 / 16777216)


@cuda.jit
def photons(absorbed, escaped, total, albedo, depth, bins, seed, n):
    i = cuda.grid(1)
    if i >= n:
        return
    state = mixed(uint32(i) ^ seed) | uint32(1)
    z = float32(0)
    direction = float32(1)
    weight = float32(1)
    while True:
        state = stepped(state)
        z -= math.log(fraction(state)) / total * direction
        if z < 0 or z >= depth:
            cuda.atomic.add(escaped, 0 if z < 0 else 1, weight)
            break
        cuda.atomic.add(absorbed, int32(z / depth * bins), weight * (float32(1) - albedo))
        weight *= albedo
        if weight < float32(0.05):
            break
        state = stepped(state)
        direction = float32(2) * fraction(state) - float32(1)


@cuda.jit(device=True)
def two_digits(text, at):
    return (text[at] - 48) * 10 + (text[at + 1] - 48)


@cuda.jit
def parse_dates(text, seconds, n):
    i = cuda.grid(1)
    if i >= n:
        return
    s = i * 20
    if text[s + 4] != 45 or text[s + 7] != 45:
        seconds[i] = -1
        return
    year = two_digits(text, s) * 100 + two_digits(text, s + 2)
    month = two_digits(text, s + 5)
    day = two_digits(text, s + 8)
    hour = two_digits(text, s + 11)
    minute = two_digits(text, s + 14)
    second = two_digits(text, s + 17)
    if month <= 2:
        year -= 1
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    days = era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468
    seconds[i] = int64(days) * 86400 + hour * 3600 + minute * 60 + second


@cuda.jit
def solve6(matrices, rhs, solutions, n):
    m = cuda.local.array((6, 7), float64)
    i = cuda.grid(1)
    if i >= n:
        return
    for r in range(6):
        for c in range(6):
            m[r, c] = matrices[i * 36 + r * 6 + c]
        m[r, 6] = rhs[i * 6 + r]
    for c in range(6):
        pivot = c
        for r in range(c + 1, 6):
            if abs(m[r, c]) > abs(m[pivot, c]):
                pivot = r
        if pivot != c:
            for k in range(c, 7):
                held = m[c, k]
                m[c, k] = m[pivot, k]
                m[pivot, k] = held
        for r in range(c + 1, 6):
            factor = m[r, c] / m[c, c]
            for k in range(c, 7):
                m[r, k] -= factor * m[c, k]
    for back in range(6):
        r = 5 - back
        total = m[r, 6]
        for k in range(r + 1, 6):
            total -= m[r, k] * m[k, 6]
        m[r, 6] = total / m[r, r]
    for r in range(6):
        solutions[i * 6 + r] = m[r, 6]


@cuda.jit
def match_lines(text, table, accepting, ends, n):
    later = cuda.shared.array(16 * 256, uint8)
    for k in range(cuda.threadIdx.x, 16 * 256, cuda.blockDim.x):
        later[k] = table[k]
    cuda.syncthreads()
    line = cuda.grid(1)
    if line >= n:
        return
    state = 0
    end = -1
    for k in range(64):
        state = int32(later[state * 256 + text[line * 64 + k]])
        if state == accepting:
            end = k
            break
    ends[line] = end
