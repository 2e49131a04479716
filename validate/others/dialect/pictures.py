"""The kernels of `pictures.cu` in gpusim's dialect; bytes and shorts go one by one."""

from __future__ import annotations

import math

from numpy import float32, int16, int32, int64, uint8, uint32

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
FAR = 1 << 20
SIZE = 33


@cuda.jit(device=True)
def clamp_u8(v):
    return uint8(min(max(v, 0), 255))


@cuda.jit
def nv12_to_rgba(luma, chroma, out, width, height):
    x, y = cuda.grid(2)
    if x >= width or y >= height:
        return
    c = 298 * (luma[y * width + x] - 16) + 128
    colour = 2 * ((y // 2) * (width // 2) + x // 2)
    u = chroma[colour] - 128
    v = chroma[colour + 1] - 128
    at = 4 * (y * width + x)
    out[at] = clamp_u8((c + 409 * v) >> 8)
    out[at + 1] = clamp_u8((c - 100 * u - 208 * v) >> 8)
    out[at + 2] = clamp_u8((c + 516 * u) >> 8)
    out[at + 3] = uint8(255)


@cuda.jit
def integral_rows(image, sums, quads):
    warp_sums = cuda.shared.array(8, uint32)
    carry = cuda.shared.array(1, uint32)
    row = int64(cuda.blockIdx.x) * quads
    t = cuda.threadIdx.x
    lane = t & 31
    warp = t >> 5
    if t == 0:
        carry[0] = uint32(0)
    cuda.syncthreads()
    for base in range(0, quads, cuda.blockDim.x):
        i = base + t
        a = uint32(0)
        b = uint32(0)
        c = uint32(0)
        d = uint32(0)
        if i < quads:
            at = 4 * (row + i)
            a = uint32(image[at])
            b = uint32(image[at + 1])
            c = uint32(image[at + 2])
            d = uint32(image[at + 3])
        b += a
        c += b
        d += c
        scan = d
        offset = 1
        while offset < 32:
            up = cuda.shfl_up_sync(EVERY_LANE, scan, offset)
            if lane >= offset:
                scan += up
            offset <<= 1
        if lane == 31:
            warp_sums[warp] = scan
        cuda.syncthreads()
        before = carry[0] + scan - d
        for w in range(warp):
            before += warp_sums[w]
        if i < quads:
            cuda.store_vector(sums, 4 * (row + i), (before + a, before + b, before + c, before + d))
        cuda.syncthreads()
        if t == cuda.blockDim.x - 1:
            carry[0] = before + d
        cuda.syncthreads()


@cuda.jit(device=True)
def mix(a, b, t):
    return a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t


@cuda.jit(device=True)
def edge_of_cube(lut, corner, t):
    a = cuda.load_vector(lut, 4 * corner, 4)
    b = cuda.load_vector(lut, 4 * corner + 4, 4)
    return a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t


@cuda.jit
def color_cube(lut, given, out, n):
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        r = given[4 * i] * float32(32 / 255)
        g = given[4 * i + 1] * float32(32 / 255)
        b = given[4 * i + 2] * float32(32 / 255)
        r0 = min(int32(r), SIZE - 2)
        g0 = min(int32(g), SIZE - 2)
        b0 = min(int32(b), SIZE - 2)
        corner = (b0 * SIZE + g0) * SIZE + r0
        fr = r - r0
        fg = g - g0
        fb = b - b0
        c00 = edge_of_cube(lut, corner, fr)
        c10 = edge_of_cube(lut, corner + SIZE, fr)
        c01 = edge_of_cube(lut, corner + SIZE * SIZE, fr)
        c11 = edge_of_cube(lut, corner + SIZE * SIZE + SIZE, fr)
        low = mix(c00, c10, fg)
        high = mix(c01, c11, fg)
        made = mix(low, high, fb)
        out[4 * i] = uint8(int32(made[0] * float32(255) + float32(0.5)))
        out[4 * i + 1] = uint8(int32(made[1] * float32(255) + float32(0.5)))
        out[4 * i + 2] = uint8(int32(made[2] * float32(255) + float32(0.5)))
        out[4 * i + 3] = given[4 * i + 3]


@cuda.jit
def distance_columns(mask, dist, width, height):
    x = cuda.grid(1)
    if x >= width:
        return
    d = FAR
    for y in range(height):
        d = 0 if mask[y * width + x] != 0 else min(d + 1, FAR)
        dist[y * width + x] = d
    d = FAR
    for y in range(height - 1, -1, -1):
        d = min(d + 1, dist[y * width + x])
        dist[y * width + x] = d


@cuda.jit
def hough_lines(edges, cosines, sines, votes, n, reach):
    cos_table = cuda.shared.array(180, int32)
    sin_table = cuda.shared.array(180, int32)
    tid = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    for k in range(tid, 180, cuda.blockDim.x * cuda.blockDim.y):
        cos_table[k] = cosines[k]
        sin_table[k] = sines[k]
    cuda.syncthreads()
    x, y = cuda.grid(2)
    if x >= n or y >= n or edges[y * n + x] == 0:
        return
    for theta in range(180):
        rho = ((x * cos_table[theta] + y * sin_table[theta] + 4096) >> 13) + reach
        cuda.atomic.add(votes, theta * (2 * reach + 1) + rho, uint32(1))


@cuda.jit
def undistort(src, dst, n, focal, k1, k2):
    x, y = cuda.grid(2)
    if x >= n or y >= n:
        return
    centre = float32(0.5) * float32(n - 1)
    u = (x - centre) / focal
    v = (y - centre) / focal
    r2 = u * u + v * v
    scale = float32(1) + r2 * (k1 + r2 * k2)
    most = float32(n) - float32(1.001)
    sx = min(max(u * scale * focal + centre, float32(0)), most)
    sy = min(max(v * scale * focal + centre, float32(0)), most)
    x0 = int32(sx)
    y0 = int32(sy)
    fx = sx - x0
    fy = sy - y0
    for c in range(3):
        plane = int64(c) * n * n
        at = plane + y0 * n + x0
        top = src[at] * (float32(1) - fx) + src[at + 1] * fx
        bottom = src[at + n] * (float32(1) - fx) + src[at + n + 1] * fx
        dst[plane + y * n + x] = top * (float32(1) - fy) + bottom * fy


@cuda.jit
def fft256(given, out):
    re = cuda.shared.array(256, float32)
    im = cuda.shared.array(256, float32)
    vx = cuda.local.array(4, float32)
    vy = cuda.local.array(4, float32)
    j = cuda.threadIdx.x
    first = cuda.blockIdx.x * 256 + j
    for r in range(4):
        vx[r], vy[r] = cuda.load_vector(given, 2 * (first + r * 64), 2)
    ns = 1
    while ns < 256:
        k = j % ns
        angle = float32(-6.283185307) * k / (ns * 4)
        for r in range(1, 4):
            s = math.sin(r * angle)
            c = math.cos(r * angle)
            x = vx[r] * c - vy[r] * s
            vy[r] = vx[r] * s + vy[r] * c
            vx[r] = x
        ax = vx[0] + vx[2]
        ay = vy[0] + vy[2]
        bx = vx[0] - vx[2]
        by = vy[0] - vy[2]
        cx = vx[1] + vx[3]
        cy = vy[1] + vy[3]
        dx = vy[1] - vy[3]
        dy = vx[3] - vx[1]
        to = (j // ns) * ns * 4 + k
        re[to] = ax + cx
        im[to] = ay + cy
        re[to + ns] = bx + dx
        im[to + ns] = by + dy
        re[to + 2 * ns] = ax - cx
        im[to + 2 * ns] = ay - cy
        re[to + 3 * ns] = bx - dx
        im[to + 3 * ns] = by - dy
        cuda.syncthreads()
        for r in range(4):
            vx[r] = re[j + r * 64]
            vy[r] = im[j + r * 64]
        cuda.syncthreads()
        ns *= 4
    for r in range(4):
        cuda.store_vector(out, 2 * (first + r * 64), (vx[r], vy[r]))


@cuda.jit
def wavelet_rows(given, out):
    x = cuda.shared.array(1024, int32)
    high = cuda.shared.array(512, int32)
    row = int64(cuda.blockIdx.x) * 1024
    for i in range(cuda.threadIdx.x, 512, cuda.blockDim.x):
        x[2 * i] = given[row + 2 * i]
        x[2 * i + 1] = given[row + 2 * i + 1]
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, 512, cuda.blockDim.x):
        right = x[2 * i + 2] if i + 1 < 512 else x[2 * i]
        high[i] = x[2 * i + 1] - ((x[2 * i] + right) >> 1)
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, 512, cuda.blockDim.x):
        left = high[i - 1] if i > 0 else high[0]
        out[row + i] = int16(x[2 * i] + ((left + high[i] + 2) >> 2))
        out[row + 512 + i] = int16(high[i])


@cuda.jit(device=True)
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@cuda.jit(device=True)
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@cuda.jit
def hit_triangles(triangles, count, depth, hit, n):
    tile = cuda.shared.array(32 * 9, float32)
    px = cuda.blockIdx.x * 16 + cuda.threadIdx.x
    py = cuda.blockIdx.y * 16 + cuda.threadIdx.y
    tid = cuda.threadIdx.y * 16 + cuda.threadIdx.x
    right = (2 * px + float32(1)) / n - float32(1)
    down = (2 * py + float32(1)) / n - float32(1)
    ray = (right, down, float32(1))
    nearest = float32(1e30)
    which = -1
    for base in range(0, count, 32):
        for k in range(tid, 32 * 9, 256):
            tile[k] = triangles[base * 9 + k]
        cuda.syncthreads()
        for t in range(32):
            f = t * 9
            e1 = (tile[f + 3], tile[f + 4], tile[f + 5])
            e2 = (tile[f + 6], tile[f + 7], tile[f + 8])
            p = cross(ray, e2)
            det = dot(e1, p)
            if abs(det) < float32(1e-8):
                continue
            inv = float32(1) / det
            s = (-tile[f], -tile[f + 1], -tile[f + 2])
            u = dot(s, p) * inv
            if u < float32(0) or u > float32(1):
                continue
            q = cross(s, e1)
            v = dot(ray, q) * inv
            if v < float32(0) or u + v > float32(1):
                continue
            d = dot(e2, q) * inv
            if d > float32(0) and d < nearest:
                nearest = d
                which = base + t
        cuda.syncthreads()
    depth[py * n + px] = float32(0) if which < 0 else nearest
    hit[py * n + px] = which


@cuda.jit(device=True)
def between(volume, at, fx, fy):
    low = volume[at] + (volume[at + 1] - volume[at]) * fx
    high = volume[at + 64] + (volume[at + 65] - volume[at + 64]) * fx
    return low + (high - low) * fy


@cuda.jit
def render_volume(volume, image, n, tilt, density):
    px, py = cuda.grid(2)
    if px >= n or py >= n:
        return
    x0 = (px + float32(0.5)) * float32(62) / n
    y0 = (py + float32(0.5)) * float32(62) / n
    light = float32(1)
    colour = float32(0)
    for step in range(126):
        z = float32(0.5) * step
        x = min(x0 + tilt * z, float32(62.99))
        ix = int32(x)
        iy = int32(y0)
        iz = int32(z)
        at = (iz * 64 + iy) * 64 + ix
        v0 = between(volume, at, x - ix, y0 - iy)
        v1 = between(volume, at + 64 * 64, x - ix, y0 - iy)
        value = v0 + (v1 - v0) * (z - iz)
        alpha = float32(1) - math.exp(-density * value)
        colour += light * alpha * value
        light *= float32(1) - alpha
        if light < float32(0.01):
            break
    image[py * n + px] = colour


@cuda.jit
def stereo_match(left, right, disparity, n):
    lt = cuda.shared.array((22, 22), uint8)
    rt = cuda.shared.array((22, 53), uint8)
    x0 = cuda.blockIdx.x * 16
    y0 = cuda.blockIdx.y * 16
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    for y in range(ty, 22, 16):
        row = min(max(y0 + y - 3, 0), n - 1) * n
        for x in range(tx, 22, 16):
            lt[y, x] = left[row + min(max(x0 + x - 3, 0), n - 1)]
        for x in range(tx, 53, 16):
            rt[y, x] = right[row + min(max(x0 + x - 34, 0), n - 1)]
    cuda.syncthreads()
    best = 1 << 30
    found = 0
    for d in range(32):
        sad = 0
        for dy in range(7):
            for dx in range(7):
                sad += abs(int32(lt[ty + dy, tx + dx]) - int32(rt[ty + dy, tx + dx + 31 - d]))
        if sad < best:
            best = sad
            found = d
    disparity[(y0 + ty) * n + x0 + tx] = uint8(found)


@cuda.jit(device=True)
def hung(bones, at, p):
    a = cuda.load_vector(bones, at, 4)
    return a[0] * p[0] + a[1] * p[1] + a[2] * p[2] + a[3]


@cuda.jit
def skin_vertices(bones, positions, ids, weights, out, n):
    bone = cuda.local.array(4, int32)
    weight = cuda.local.array(4, float32)
    i = cuda.grid(1)
    if i >= n:
        return
    p = (positions[3 * i], positions[3 * i + 1], positions[3 * i + 2])
    for k in range(4):
        bone[k] = ids[4 * i + k]
    weight[0], weight[1], weight[2], weight[3] = cuda.load_vector(weights, 4 * i, 4)
    x = float32(0)
    y = float32(0)
    z = float32(0)
    for k in range(4):
        m = 12 * bone[k]
        x += weight[k] * hung(bones, m, p)
        y += weight[k] * hung(bones, m + 4, p)
        z += weight[k] * hung(bones, m + 8, p)
    out[3 * i] = x
    out[3 * i + 1] = y
    out[3 * i + 2] = z
