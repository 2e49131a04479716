"""The kernels of `classics.cu` in gpusim's dialect, but for that of constant memory."""

from __future__ import annotations

import math

from numpy import float32, float64, int32, int64, uint32

from gpusim import cuda

FAR = float32(1e30)
TWO = float32(2)
ONE = float32(1)
HALF = float32(0.5)


@cuda.jit
def hotspot(power, before, after, rows, columns, step, rx, ry, rz, ambient):
    now = cuda.shared.array((16, 16), float32)
    drawn = cuda.shared.array((16, 16), float32)
    later = cuda.shared.array((16, 16), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    row0 = 12 * cuda.blockIdx.y - 2
    column0 = 12 * cuda.blockIdx.x - 2
    row = row0 + ty
    column = column0 + tx
    is_inside = row >= 0 and row < rows and column >= 0 and column < columns
    index = row * columns + column
    if is_inside:
        now[ty, tx] = before[index]
        drawn[ty, tx] = power[index]
    cuda.syncthreads()

    top = -row0 if row0 < 0 else 0
    bottom = rows - 1 - row0 if row0 + 16 > rows else 15
    left = -column0 if column0 < 0 else 0
    right = columns - 1 - column0 if column0 + 16 > columns else 15
    north = max(ty - 1, top)
    south = min(ty + 1, bottom)
    west = max(tx - 1, left)
    east = min(tx + 1, right)

    is_computed = False
    for i in range(2):
        is_computed = False
        if tx >= i + 1 and tx <= 14 - i and ty >= i + 1 and ty <= 14 - i and is_inside:
            is_computed = True
            t = now[ty, tx]
            down = now[south, tx] + now[north, tx] - TWO * t
            across = now[ty, east] + now[ty, west] - TWO * t
            change = drawn[ty, tx] + down * ry + across * rx + (ambient - t) * rz
            later[ty, tx] = t + step * change
        cuda.syncthreads()
        if i == 1:
            break
        if is_computed:
            now[ty, tx] = later[ty, tx]
        cuda.syncthreads()
    if is_computed:
        after[index] = later[ty, tx]


@cuda.jit
def lu_panel(panels):
    pivots = cuda.shared.array((2, 16), float64)
    row = cuda.local.array(16, float64)
    r = cuda.threadIdx.x
    begin = int64(cuda.blockIdx.x) * 2048 + r
    for c in range(16):
        row[c] = panels[begin + c * 128]
    for k in range(16):
        if r == k:
            for c in range(k, 16):
                pivots[k % 2, c] = row[c]
        cuda.syncthreads()
        if r > k:
            factor = row[k] / pivots[k % 2, k]
            row[k] = factor
            for c in range(k + 1, 16):
                row[c] -= factor * pivots[k % 2, c]
    for c in range(16):
        panels[begin + c * 128] = row[c]


@cuda.jit(device=True)
def align(table, similar, x, y, penalty):
    best = table[y - 1, x - 1] + similar[y - 1, x - 1]
    best = max(best, table[y, x - 1] - penalty)
    table[y, x] = max(best, table[y - 1, x] - penalty)


@cuda.jit
def needle(reference, scores, pitch, penalty):
    table = cuda.shared.array((33, 33), int32)
    similar = cuda.shared.array((32, 32), int32)
    t = cuda.threadIdx.x
    across = cuda.blockIdx.x
    down = cuda.gridDim.x - 1 - cuda.blockIdx.x
    corner = pitch * 32 * down + 32 * across
    if t == 0:
        table[0, 0] = scores[corner]
    for k in range(32):
        similar[k, t] = reference[corner + pitch * (k + 1) + t + 1]
    table[t + 1, 0] = scores[corner + pitch * (t + 1)]
    table[0, t + 1] = scores[corner + t + 1]
    cuda.syncthreads()
    for m in range(32):
        if t <= m:
            align(table, similar, t + 1, m - t + 1, penalty)
        cuda.syncthreads()
    for m in range(30, -1, -1):
        if t <= m:
            align(table, similar, t + 32 - m, 32 - t, penalty)
        cuda.syncthreads()
    for k in range(32):
        scores[corner + pitch * (k + 1) + t + 1] = table[k + 1, t + 1]


@cuda.jit(device=True)
def scattered(v):
    v ^= v >> uint32(16)
    v *= uint32(0x7FEB352D)
    v ^= v >> uint32(15)
    v *= uint32(0x846CA68B)
    return v ^ v >> uint32(16)


@cuda.jit
def cross_sections(
    energies, places, nuclides, begins, members, densities, sums, points, kinds, per_kind, n
):
    macro = cuda.local.array(5, float64)
    i = cuda.grid(1)
    if i >= n:
        return
    energy = (float64(scattered(uint32(2 * i))) + 0.5) / 4294967296.0
    material = int32(scattered(uint32(2 * i + 1)) % uint32(12))
    low = 0
    length = points
    while length > 1:
        half = length // 2
        if energies[low + half] <= energy:
            low += half
        length -= half
    for k in range(5):
        macro[k] = 0.0
    for j in range(begins[material], begins[material + 1]):
        kind = members[j]
        density = densities[j]
        place = places[low * kinds + kind]
        below = (int64(kind) * per_kind + place) * 6
        least = nuclides[below]
        most = nuclides[below + 6]
        f = (most - energy) / (most - least)
        for k in range(5):
            upper = nuclides[below + 7 + k]
            macro[k] += density * (upper - f * (upper - nuclides[below + 1 + k]))
    for k in range(5):
        sums[int64(i) * 5 + k] = macro[k]


@cuda.jit
def srad_step(image, up, down, left, right, dn, ds, dw, de, spread, q0, rows, pixels):
    i = cuda.grid(1)
    if i >= pixels:
        return
    row = i % rows
    column = i // rows
    center = image[i]
    n = image[up[row] + rows * column] - center
    s = image[down[row] + rows * column] - center
    w = image[row + rows * left[column]] - center
    e = image[row + rows * right[column]] - center
    g2 = (n * n + s * s + w * w + e * e) / (center * center)
    laplacian = (n + s + w + e) / center
    num = HALF * g2 - float32(0.0625) * (laplacian * laplacian)
    den = ONE + float32(0.25) * laplacian
    q = num / (den * den)
    den = (q - q0) / (q0 * (ONE + q0))
    c = ONE / (ONE + den)
    if c < float32(0):
        c = float32(0)
    elif c > ONE:
        c = ONE
    dn[i] = n
    ds[i] = s
    dw[i] = w
    de[i] = e
    spread[i] = c


@cuda.jit
def layer_forward(inputs, weights, partial, hidden):
    node = cuda.shared.array(16, float32)
    matrix = cuda.shared.array((16, 16), float32)
    by = cuda.blockIdx.y
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    index = (hidden + 1) * 16 * by + (hidden + 1) * ty + tx + 1 + (hidden + 1)
    if tx == 0:
        node[ty] = inputs[16 * by + ty + 1]
    cuda.syncthreads()
    matrix[ty, tx] = weights[index]
    cuda.syncthreads()
    matrix[ty, tx] = matrix[ty, tx] * node[ty]
    cuda.syncthreads()
    i = 1
    while i <= math.log2(float32(16)):
        power_two = int32(math.exp2(float32(i)))
        if ty % power_two == 0:
            matrix[ty, tx] = matrix[ty, tx] + matrix[ty + power_two // 2, tx]
        cuda.syncthreads()
        i += 1
    weights[index] = matrix[ty, tx]
    cuda.syncthreads()
    if tx == 0:
        partial[by * hidden + ty] = matrix[tx, ty]


@cuda.jit(device=True)
def pressure_of(density, energy, squared):
    return float32(0.4) * (energy - HALF * density * squared)


@cuda.jit
def cfd_flux(cells, neighbours, normals, variables, fluxes, far_density, far_energy):
    i = cuda.grid(1)
    density = variables[i]
    mx = variables[i + cells]
    my = variables[i + 2 * cells]
    mz = variables[i + 3 * cells]
    energy = variables[i + 4 * cells]
    vx = mx / density
    vy = my / density
    vz = mz / density
    squared = vx * vx + vy * vy + vz * vz
    pressure = pressure_of(density, energy, squared)
    sound = math.sqrt(float32(1.4) * pressure / density)
    speed = math.sqrt(squared)
    f0 = float32(0)
    f1 = float32(0)
    f2 = float32(0)
    f3 = float32(0)
    f4 = float32(0)
    for j in range(4):
        other = neighbours[i + j * cells]
        nx = normals[i + j * cells]
        ny = normals[i + (j + 4) * cells]
        nz = normals[i + (j + 8) * cells]
        if other >= 0:
            od = variables[other]
            ox = variables[other + cells]
            oy = variables[other + 2 * cells]
            oz = variables[other + 3 * cells]
            oe = variables[other + 4 * cells]
            wx = ox / od
            wy = oy / od
            wz = oz / od
            other_squared = wx * wx + wy * wy + wz * wz
            other_pressure = pressure_of(od, oe, other_squared)
            other_sound = math.sqrt(float32(1.4) * other_pressure / od)
            length = math.sqrt(nx * nx + ny * ny + nz * nz)
            speeds = speed + math.sqrt(other_squared) + sound + other_sound
            factor = -length * float32(0.1) * speeds
            own = HALF * (nx * vx + ny * vy + nz * vz)
            its = HALF * (nx * wx + ny * wy + nz * wz)
            push = HALF * (pressure + other_pressure)
            f0 += factor * (density - od) + own * density + its * od
            f1 += factor * (mx - ox) + own * mx + its * ox + push * nx
            f2 += factor * (my - oy) + own * my + its * oy + push * ny
            f3 += factor * (mz - oz) + own * mz + its * oz + push * nz
            f4 += factor * (energy - oe) + own * (energy + pressure) + its * (oe + other_pressure)
        elif other == -1:
            f1 += nx * pressure
            f2 += ny * pressure
            f3 += nz * pressure
        else:
            own = HALF * (nx * vx + ny * vy + nz * vz)
            f0 += own * (density + far_density)
            f1 += own * mx
            f2 += own * my
            f3 += own * mz
            f4 += own * (energy + far_energy)
    fluxes[i] = f0
    fluxes[i + cells] = f1
    fluxes[i + 2 * cells] = f2
    fluxes[i + 3 * cells] = f3
    fluxes[i + 4 * cells] = f4


@cuda.jit
def k_nearest(points, queries, distances, places, count, n):
    tile = cuda.shared.array(2 * 256 * 4, float32)
    best = cuda.local.array(8, float32)
    which = cuda.local.array(8, int32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * 256 + t
    qx, qy, qz, qw = cuda.load_vector(queries, 4 * i, 4)
    for k in range(8):
        best[k] = FAR
        which[k] = -1
    buffer = 0
    cuda.store_vector(tile, 4 * t, cuda.load_vector(points, 4 * t, 4))
    cuda.syncthreads()
    begin = 0
    ax = float32(0)
    ay = float32(0)
    az = float32(0)
    aw = float32(0)
    while begin < count:
        is_more = begin + 256 < count
        if is_more:
            ax, ay, az, aw = cuda.load_vector(points, 4 * (begin + 256 + t), 4)
        for j in range(256):
            px, py, pz, pw = cuda.load_vector(tile, 4 * (buffer * 256 + j), 4)
            x = px - qx
            y = py - qy
            z = pz - qz
            w = pw - qw
            d = x * x + y * y + z * z + w * w
            if d < best[7]:
                best[7] = d
                which[7] = begin + j
                for k in range(7, 0, -1):
                    if best[k] < best[k - 1]:
                        held = best[k]
                        best[k] = best[k - 1]
                        best[k - 1] = held
                        place = which[k]
                        which[k] = which[k - 1]
                        which[k - 1] = place
        if is_more:
            cuda.store_vector(tile, 4 * ((buffer ^ 1) * 256 + t), (ax, ay, az, aw))
        cuda.syncthreads()
        buffer ^= 1
        begin += 256
    for k in range(8):
        distances[k * n + i] = best[k]
        places[k * n + i] = which[k]


@cuda.jit
def find_in_suffixes(text, suffixes, reads, places, lengths, letters, n):
    i = cuda.grid(1)
    if i >= n:
        return
    read = i * 24
    low = 0
    high = letters
    longest = 0
    while low < high:
        middle = (low + high) // 2
        suffix = suffixes[middle]
        k = 0
        while k < 24 and text[suffix + k] == reads[read + k]:
            k += 1
        if k > longest:
            longest = k
        if k < 24 and text[suffix + k] < reads[read + k]:
            low = middle + 1
        else:
            high = middle
    places[i] = low
    lengths[i] = longest


@cuda.jit(device=True)
def times(ax, ay, bx, by):
    return ax * bx - ay * by, ax * by + ay * bx


@cuda.jit
def radix8_pass(before, after, done, eighth):
    re = cuda.local.array(8, float32)
    im = cuda.local.array(8, float32)
    i = cuda.blockIdx.x * 128 + cuda.threadIdx.x
    k = i & (done - 1)
    for j in range(8):
        re[j], im[j] = cuda.load_vector(before, 2 * (i + j * eighth), 2)
    angle = float32(-6.283185307) * float32(k) / float32(8 * done)
    wx = math.cos(angle)
    wy = math.sin(angle)
    tx = wx
    ty = wy
    for j in range(1, 8):
        re[j], im[j] = times(re[j], im[j], tx, ty)
        tx, ty = times(tx, ty, wx, wy)
    h = float32(0.70710678)
    for j in range(4):
        re[j], re[j + 4] = re[j] + re[j + 4], re[j] - re[j + 4]
        im[j], im[j + 4] = im[j] + im[j + 4], im[j] - im[j + 4]
    re[5], im[5] = h * (re[5] + im[5]), h * (im[5] - re[5])
    re[6], im[6] = im[6], -re[6]
    re[7], im[7] = h * (im[7] - re[7]), -h * (re[7] + im[7])
    for j in range(0, 8, 4):
        for m in range(2):
            re[j + m], re[j + m + 2] = re[j + m] + re[j + m + 2], re[j + m] - re[j + m + 2]
            im[j + m], im[j + m + 2] = im[j + m] + im[j + m + 2], im[j + m] - im[j + m + 2]
        re[j + 3], im[j + 3] = im[j + 3], -re[j + 3]
        for m in range(0, 4, 2):
            re[j + m], re[j + m + 1] = re[j + m] + re[j + m + 1], re[j + m] - re[j + m + 1]
            im[j + m], im[j + m + 1] = im[j + m] + im[j + m + 1], im[j + m] - im[j + m + 1]
    out = (i - k) * 8 + k
    cuda.store_vector(after, 2 * out, (re[0], im[0]))
    cuda.store_vector(after, 2 * (out + done), (re[4], im[4]))
    cuda.store_vector(after, 2 * (out + 2 * done), (re[2], im[2]))
    cuda.store_vector(after, 2 * (out + 3 * done), (re[6], im[6]))
    cuda.store_vector(after, 2 * (out + 4 * done), (re[1], im[1]))
    cuda.store_vector(after, 2 * (out + 5 * done), (re[5], im[5]))
    cuda.store_vector(after, 2 * (out + 6 * done), (re[3], im[3]))
    cuda.store_vector(after, 2 * (out + 7 * done), (re[7], im[7]))


@cuda.jit
def kalman_tracks(measured, tracks, dt, noise, blur, n):
    x = cuda.local.array(4, float32)
    p = cuda.local.array((4, 4), float32)
    first = cuda.local.array(4, float32)
    second = cuda.local.array(4, float32)
    i = cuda.grid(1)
    if i >= n:
        return
    for r in range(4):
        x[r] = tracks[i * 20 + r]
        for c in range(4):
            p[r, c] = tracks[i * 20 + 4 + r * 4 + c]
    for step in range(32):
        x[0] += dt * x[2]
        x[1] += dt * x[3]
        for c in range(4):
            p[0, c] += dt * p[2, c]
            p[1, c] += dt * p[3, c]
        for r in range(4):
            p[r, 0] += dt * p[r, 2]
            p[r, 1] += dt * p[r, 3]
            p[r, r] += noise
        zx = measured[(i * 32 + step) * 2]
        zy = measured[(i * 32 + step) * 2 + 1]
        if zx > float32(-1e6):
            a = p[0, 0] + blur
            b = p[0, 1]
            c10 = p[1, 0]
            d = p[1, 1] + blur
            det = a * d - b * c10
            ex = zx - x[0]
            ey = zy - x[1]
            for k in range(4):
                first[k] = p[0, k]
                second[k] = p[1, k]
            for r in range(4):
                p0 = p[r, 0]
                p1 = p[r, 1]
                k0 = (p0 * d - p1 * c10) / det
                k1 = (p1 * a - p0 * b) / det
                x[r] += k0 * ex + k1 * ey
                for k in range(4):
                    p[r, k] -= k0 * first[k] + k1 * second[k]
    for r in range(4):
        tracks[i * 20 + r] = x[r]
        for c in range(4):
            tracks[i * 20 + 4 + r * 4 + c] = p[r, c]
