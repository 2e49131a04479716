"""Launches of `pictures.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float32, float64, int16, int32, uint8, uint32

from .data import Array, Numbers, afresh, deciding, of, random_bytes, uniform, words, zeros
from .plans import SEEN, Expected, Plan, measured

EXACT = 1e-12


@measured(SEEN, 256, 1024, 4096, small=64)
def nv12_to_rgba(n: int) -> Plan:
    def expected(luma: Array, chroma: Array, *_: object) -> Expected:
        c = 298 * (luma.reshape(n, n).astype(int32) - 16) + 128
        both = chroma.reshape(n // 2, n // 2, 2).astype(int32) - 128
        u, v = both.repeat(2, 0).repeat(2, 1).transpose(2, 0, 1)
        colours = [c + 409 * v, c - 100 * u - 208 * v, c + 516 * u]
        made = [np.clip(colour >> 8, 0, 255) for colour in colours]
        return {2: np.stack([*made, np.full((n, n), 255)], 2).ravel()}

    given = random_bytes(n * n), random_bytes(n * n // 2, 2)
    arguments = *given, zeros(4 * n * n, uint8), int32(n), int32(n)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected, EXACT)


@measured(SEEN, 256, 1024, 4096, small=64)
def integral_rows(n: int) -> Plan:
    width = 1920

    def expected(image: Array, sums: Array, quads: int) -> Expected:
        return {1: np.cumsum(image.reshape(n, width), 1, dtype=uint32).ravel()}

    arguments = random_bytes(n * width), zeros(n * width, uint32), int32(width // 4)
    return Plan(n, 256, arguments, expected, EXACT)


def _photograph(pixels: int) -> Numbers:
    """Return colours that change slowly from one pixel to the next, with some noise."""

    def made() -> Array:
        place = np.arange(pixels)
        noise = random_bytes(4 * pixels, 5).make().reshape(-1, 4) >> 4
        slow = np.stack([place // 61, place // 173, place // 997, place], 1) & 0xFF
        return np.minimum(255, slow + noise).astype(uint8).ravel()

    return deciding(of(made, 4 * pixels, uint8))


@measured(SEEN, 2**16, 2**20, 2**24)
def color_cube(n: int) -> Plan:
    def lut() -> Array:
        b, g, r = np.mgrid[:33, :33, :33] / 32
        parts = np.sqrt(r), 0.5 * (g + g * g), b * (0.7 + 0.3 * r), r
        return np.stack(parts, 3).astype(float32).ravel()

    def expected(lut: Array, given: Array, out: Array, n: int) -> Expected:
        cube = lut.reshape(33, 33, 33, 4)[..., :3].astype(float64)
        colours = given.reshape(n, 4)[:, :3] * (32 / 255)
        first = np.minimum(colours.astype(int), 31)
        part = colours - first
        made = np.zeros((n, 3))
        for corner in np.ndindex(2, 2, 2):
            weight = np.where(corner, part, 1 - part).prod(1)
            r, g, b = (first + corner).T
            made += weight[:, None] * cube[b, g, r]
        shown = np.floor(255 * made + 0.5)
        return {2: np.c_[shown, given.reshape(n, 4)[:, 3]].ravel()}

    table = deciding(of(lut, 4 * 33**3, float32))
    arguments = table, _photograph(n), zeros(4 * n, uint8), int32(n)
    # Where a colour is halfway between two numbers either will do.
    return Plan(min(n // 256, 1056), 256, arguments, expected, tolerance=5e-3)


def _dots(length: int, one_of: int, seed: int) -> Numbers:
    """Return bytes, one in `one_of` of them 255, the others 0."""

    def made() -> Array:
        return np.where(words(length, seed) % uint32(one_of) == 0, 255, 0).astype(uint8)

    return deciding(of(made, length, uint8))


@measured(SEEN, 2**10, 2**15, 2**18, small=2**8)
def distance_columns(n: int) -> Plan:
    height = 96

    def expected(mask: Array, dist: Array, width: int, height: int) -> Expected:
        rows = np.arange(height)[:, None]
        marked = mask.reshape(height, width) != 0
        above = np.maximum.accumulate(np.where(marked, rows, -(2**20)), 0)
        below = np.minimum.accumulate(np.where(marked, rows, 2**20)[::-1], 0)[::-1]
        made = np.minimum(rows - above, below - rows)
        return {1: np.where(marked.any(0), made, 2**20).ravel()}

    size = n * height
    arguments = _dots(size, 20, 3), zeros(size, int32), int32(n), int32(height)
    return Plan(n // 128, 128, arguments, expected, EXACT)


@measured(SEEN, 128, 512, 2048, small=64)
def hough_lines(n: int) -> Plan:
    reach = 3 * n // 2

    def turns(wave: np.ufunc) -> Numbers:
        return deciding(
            of(lambda: np.rint(8192 * wave(np.pi / 180 * np.arange(180))).astype(int32), 180, int32)
        )

    def expected(edges: Array, cosines: Array, sines: Array, *_: object) -> Expected:
        y, x = np.nonzero(edges.reshape(n, n))
        rho = (x[:, None] * cosines + y[:, None] * sines + 4096 >> 13) + reach
        place = np.arange(180) * (2 * reach + 1) + rho
        return {3: np.bincount(place.ravel(), minlength=180 * (2 * reach + 1))}

    votes = afresh(zeros(180 * (2 * reach + 1), uint32))
    tables = turns(np.cos), turns(np.sin)
    arguments = _dots(n * n, 64, 4), *tables, votes, int32(n), int32(reach)
    return Plan((n // 16, n // 16), (16, 16), arguments, expected, EXACT)


@measured(SEEN, 256, 1024, 3072, small=64)
def undistort(n: int) -> Plan:
    def expected(src: Array, dst: Array, n: int, focal: float, k1: float, k2: float) -> Expected:
        centre = 0.5 * (n - 1)
        v, u = (np.mgrid[:n, :n] - centre) / focal
        r2 = u * u + v * v
        scale = 1 + r2 * (k1 + r2 * k2)
        sx = np.clip(u * scale * focal + centre, 0, n - 1.001)
        sy = np.clip(v * scale * focal + centre, 0, n - 1.001)
        x, y = sx.astype(int), sy.astype(int)
        fx, fy = sx - x, sy - y
        planes = src.reshape(3, n, n).astype(float64)
        top = planes[:, y, x] * (1 - fx) + planes[:, y, x + 1] * fx
        bottom = planes[:, y + 1, x] * (1 - fx) + planes[:, y + 1, x + 1] * fx
        return {1: (top * (1 - fy) + bottom * fy).ravel()}

    lens = float32(0.9 * n), float32(-0.21), float32(0.04)
    arguments = uniform(3 * n * n), zeros(3 * n * n), int32(n), *lens
    return Plan((n // 32, n // 8), (32, 8), arguments, expected, tolerance=2e-3)


@measured(SEEN, 64, 4096, 2**16, small=4)
def fft256(n: int) -> Plan:
    def expected(given: Array, out: Array) -> Expected:
        made = np.fft.fft(given.astype(float64).view(np.complex128).reshape(n, 256))
        return {1: made.view(float64).ravel()}

    return Plan(n, 64, (uniform(512 * n), zeros(512 * n)), expected)


@measured(SEEN, 128, 4096, 2**15, small=8)
def wavelet_rows(n: int) -> Plan:
    def given() -> Array:
        return (words(1024 * n, 6) & uint32(1023)).astype(int16) - int16(512)

    def expected(x: Array, out: Array) -> Expected:
        even, odd = x.reshape(n, 512, 2).astype(int32).transpose(2, 0, 1)
        high = odd - (even + np.c_[even[:, 1:], even[:, -1]] >> 1)
        low = even + (np.c_[high[:, 0], high[:, :-1]] + high + 2 >> 2)
        return {1: np.c_[low, high].ravel()}

    arguments = of(given, 1024 * n, int16), zeros(1024 * n, int16)
    return Plan(n, 256, arguments, expected, EXACT)


@measured(SEEN, 128, 512, 1536, small=16)
def hit_triangles(n: int) -> Plan:
    count = 256

    def triangles() -> Array:
        parts = uniform(9 * count, 7).make().reshape(count, 9).copy()
        parts[:, 2] = 2 + 8 * parts[:, 2]
        parts[:, :2] = (2 * parts[:, :2] - 1) * parts[:, 2:3]
        parts[:, 3:] = 3 * parts[:, 3:] - 1.5
        return parts.ravel()

    def expected(triangles: Array, count: int, *_: object) -> Expected:
        y, x = (2 * np.mgrid[:n, :n] + 1.0) / n - 1
        ray = np.stack([x, y, np.ones((n, n))], 2)
        nearest, which = np.full((n, n), 1e30), np.full((n, n), -1)
        for k, f in enumerate(triangles.reshape(count, 3, 3).astype(float64)):
            p = np.cross(ray, f[2])
            det = p @ f[1]
            u = p @ -f[0] / det
            q = np.cross(-f[0], f[1])
            v, d = ray @ q / det, f[2] @ q / det
            hits = (abs(det) >= 1e-8) & (u >= 0) & (v >= 0) & (u + v <= 1) & (d > 0) & (d < nearest)
            nearest[hits], which[hits] = d[hits], k
        return {2: np.where(which < 0, 0, nearest).ravel(), 3: which.ravel()}

    given = deciding(of(triangles, 9 * count, float32)), int32(count)
    arguments = *given, zeros(n * n), zeros(n * n, int32), int32(n)
    return Plan((n // 16, n // 16), (16, 16), arguments, expected, tolerance=1e-4)


@measured(SEEN, 64, 256, 1024, small=32)
def render_volume(n: int) -> Plan:
    tilt, density = float32(0.35), float32(0.12)

    def cloud() -> Array:
        z, y, x = np.mgrid[:64, :64, :64] / 32 - 1
        noise = uniform(64**3, 8).make().reshape(64, 64, 64)
        return (np.exp(-3 * (x * x + y * y + z * z)) * (0.5 + noise)).astype(float32).ravel()

    def expected(volume: Array, *_: object) -> Expected:
        cube = volume.reshape(64, 64, 64).astype(float64)
        y, begin = (np.mgrid[:n, :n] + 0.5) * 62 / n
        light, colour, lit = np.ones((n, n)), np.zeros((n, n)), np.ones((n, n), bool)
        for step in range(126):
            z = 0.5 * step
            at = np.stack([np.full((n, n), z), y, np.minimum(begin + tilt * z, 62.99)])
            first = at.astype(int)
            value = np.zeros((n, n))
            for corner in np.ndindex(2, 2, 2):
                turn = np.reshape(corner, (3, 1, 1))
                weight = np.where(turn, at - first, 1 - at + first).prod(0)
                value += weight * cube[tuple(first + turn)]
            alpha = 1 - np.exp(-density * value)
            colour += lit * light * alpha * value
            light *= np.where(lit, 1 - alpha, 1)
            lit &= light >= 0.01
        return {1: colour.ravel()}

    arguments = deciding(of(cloud, 64**3, float32)), zeros(n * n), int32(n), tilt, density
    return Plan((n // 16, n // 16), (16, 16), arguments, expected, tolerance=1e-2)


@measured(SEEN, 128, 512, 1536, small=32)
def stereo_match(n: int) -> Plan:
    def seen(shift: int) -> Numbers:
        def made() -> Array:
            whole = random_bytes(n * (n + 16), 9).make().reshape(n, n + 16)
            return whole[:, shift : shift + n].ravel()

        return deciding(of(made, n * n, uint8))

    def expected(left: Array, right: Array, *_: object) -> Expected:
        l_rows, r_rows = (side.reshape(n, n).astype(int32) for side in (left, right))
        least, found = np.full((n, n), 2**30), np.zeros((n, n), int32)
        rows = np.clip(np.arange(-3, n + 3), 0, n - 1)
        for d in range(32):
            columns = np.clip(np.arange(-3 - d, n + 3 - d), 0, n - 1)
            off = abs(l_rows[rows][:, rows] - r_rows[rows][:, columns])
            sad = np.lib.stride_tricks.sliding_window_view(off, (7, 7)).sum((2, 3))
            found[sad < least] = d
            least = np.minimum(least, sad)
        return {2: found.ravel()}

    arguments = seen(0), seen(11), zeros(n * n, uint8), int32(n)
    return Plan((n // 16, n // 16), (16, 16), arguments, expected, EXACT)


@measured(SEEN, 2**12, 2**17, 2**21, small=2**9)
def skin_vertices(n: int) -> Plan:
    def ids() -> Array:
        return (np.arange(4 * n) // 1500 + (words(4 * n, 11) & uint32(7)) & 63).astype(uint8)

    def expected(bones: Array, positions: Array, ids: Array, weights: Array,
                 *_: object) -> Expected:  # fmt: skip
        points = np.c_[positions.reshape(n, 3), np.ones(n)].astype(float64)
        matrices = bones.reshape(64, 3, 4).astype(float64)
        made = np.zeros((n, 3))
        for bone, weight in zip(ids.reshape(n, 4).T, weights.reshape(n, 4).T, strict=True):
            made += weight[:, None] * np.einsum("nij,nj->ni", matrices[bone], points)
        return {4: made.ravel()}

    hung = deciding(of(ids, 4 * n, uint8)), uniform(4 * n, 3)
    arguments = uniform(64 * 12, 1), uniform(3 * n, 2), *hung, zeros(3 * n), int32(n)
    return Plan(n // 256, 256, arguments, expected)
