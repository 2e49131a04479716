"""Launches of `fields.cu`."""

from __future__ import annotations

import math

import numpy as np
from numpy import float32, float64, int8, int16, int32, uint8, uint32

from .data import Array, Numbers, afresh, deciding, mixed, of, random_bytes, uniform, words, zeros
from .plans import SEEN, Expected, Plan, measured


@measured(SEEN, 256, 1024, 4096, small=96)
def ways_by_tile(n: int) -> Plan:
    tiles = n // 32
    k = tiles // 3

    def expected(ways: Array, k: int, n: int) -> Expected:
        m = ways.reshape(n, n)
        least = m.copy()
        for j in range(32 * k, 32 * k + 32):
            least = np.minimum(least, m[:, j : j + 1] + m[j])
        own = slice(32 * k, 32 * k + 32)
        least[own], least[:, own] = m[own], m[:, own]
        return {0: least.ravel()}

    arguments = afresh(uniform(n * n)), int32(k), int32(n)
    return Plan((tiles, tiles), (32, 32), arguments, expected)


@measured(SEEN, 2**12, 2**17, 2**21, small=2**10)
def inverses3x3(n: int) -> Plan:
    def given() -> Array:
        parts = uniform(9 * n).make().astype(float64).reshape(n, 3, 3)
        return (parts + 2 * np.eye(3)).ravel()

    def expected(a: Array, b: Array, n: int) -> Expected:
        return {1: np.linalg.inv(a.reshape(n, 3, 3)).ravel()}

    arguments = deciding(of(given, 9 * n, float64)), zeros(9 * n, float64), int32(n)
    return Plan(n // 128, 128, arguments, expected)


@measured(SEEN, 64, 2048, 32768, small=8)
def cholesky_by_warps(n: int) -> Plan:
    def given() -> Array:
        parts = uniform(1024 * n).make().reshape(n, 32, 32)
        return (parts + parts.transpose(0, 2, 1) + 32 * np.eye(32, dtype=float32)).ravel()

    def expected(a: Array, n: int) -> Expected:
        return {0: np.linalg.cholesky(a.reshape(n, 32, 32)).ravel()}

    arguments = afresh(deciding(of(given, 1024 * n, float32))), int32(n)
    return Plan(n // 4, (32, 4), arguments, expected)


@measured(SEEN, 2**12, 2**16, 2**20, small=2**9)
def rotate_rows(n: int) -> Plan:
    rows = 64

    def turns() -> Array:
        angles = 6 * uniform(rows - 1, 2).make()
        return np.stack([np.cos(angles), np.sin(angles)], 1).ravel()

    def expected(a: Array, turns: Array, rows: int, columns: int) -> Expected:
        made = a.reshape(rows, columns).astype(float64)
        for r, (c, s) in enumerate(turns.reshape(-1, 2)):
            made[r : r + 2] = np.asarray([[c, s], [-s, c]], float64) @ made[r : r + 2]
        return {0: made.ravel()}

    arguments = afresh(uniform(rows * n)), of(turns, 2 * rows - 2, float32), int32(rows), int32(n)
    return Plan(n // 64, 64, arguments, expected)


@measured(SEEN, 128, 2048, 32768, small=4)
def reflect_columns(n: int) -> Plan:
    rows = 2000

    def expected(a: Array, v: Array, tau: float32, rows: int) -> Expected:
        m, w = a.reshape(n, rows).astype(float64), v.astype(float64)
        return {0: (m - tau * (m @ w)[:, None] * w).ravel()}

    tau = float32(2 / (uniform(rows, 2).make() ** 2).sum())
    arguments = afresh(uniform(rows * n)), uniform(rows, 2), tau, int32(rows)
    return Plan(n, 512, arguments, expected, tolerance=1e-4)


@measured(SEEN, 256, 1024, 4096, small=64)
def eliminate(n: int) -> Plan:
    k = n // 7

    def given() -> Array:
        return uniform(n * n).make().astype(float64) + 1

    def expected(a: Array, k: int, n: int) -> Expected:
        m = a.reshape(n, n).copy()
        m[k + 1 :, k + 1 :] -= m[k + 1 :, k : k + 1] / m[k, k] * m[k, k + 1 :]
        return {0: m.ravel()}

    rest = n - k - 1
    arguments = afresh(deciding(of(given, n * n, float64))), int32(k), int32(n)
    return Plan((-(-rest // 32), -(-rest // 8)), (32, 8), arguments, expected)


def _cosines() -> Array:
    """Return the basis of the cosine transform of eight values."""
    u, x = np.mgrid[:8, :8]
    scale = np.where(u == 0, math.sqrt(1 / 8), 0.5)
    return (scale * np.cos((2 * x + 1) * u * math.pi / 16)).astype(float32).ravel()


@measured(SEEN, 256, 1024, 8192, small=64)
def cosines8x8(n: int) -> Plan:
    def steps() -> Array:
        v, u = np.mgrid[:8, :8]
        return (8 + 4 * (u + v)).astype(float32).ravel()

    def expected(x: Array, table: Array, steps: Array, y: Array, n: int) -> Expected:
        squares = x.reshape(n // 8, 8, n // 8, 8).transpose(0, 2, 1, 3).astype(float64) - 128
        basis = table.reshape(8, 8).astype(float64)
        made = np.floor(basis @ squares @ basis.T / steps.reshape(8, 8) + 0.5)
        return {3: made.transpose(0, 2, 1, 3).ravel()}

    given = random_bytes(n * n), of(_cosines, 64, float32), of(steps, 64, float32)
    arguments = *map(deciding, given), zeros(n * n, int16), int32(n)
    # Where a quotient is halfway between two numbers either will do.
    return Plan((n // 32, n // 8), (8, 8, 4), arguments, expected, tolerance=4e-2)


@measured(SEEN, 2**10, 2**14, 2**18, small=2**9)
def biquads(n: int) -> Plan:
    steps = 128 if n < 2**14 else 256

    def filters() -> Array:
        return float32(0.4) * uniform(5 * n, 2).make()

    def expected(x: Array, filters: Array, y: Array, steps: int, channels: int) -> Expected:
        b0, b1, b2, a1, a2 = filters.reshape(5, channels).astype(float64)
        first, second = np.zeros((2, channels))
        made = np.empty((steps, channels))
        for t, given in enumerate(x.reshape(steps, channels)):
            made[t] = b0 * given + first
            first = b1 * given - a1 * made[t] + second
            second = b2 * given - a2 * made[t]
        return {2: made.ravel()}

    size = steps * n
    arguments = uniform(size), of(filters, 5 * n, float32), zeros(size), int32(steps), int32(n)
    return Plan(n // 128, 128, arguments, expected)


@measured(SEEN, 2**17, 2**21, 2**25, small=2**13)
def resample(n: int) -> Plan:
    def expected(x: Array, taps: Array, y: Array, n: int) -> Expected:
        place = np.arange(n, dtype=np.int64) * 147
        first, phase = place // 160, place % 160
        by_phase = taps.reshape(160, 8).astype(float64)
        return {2: sum(x[first + k] * by_phase[phase, k] for k in range(8))}

    arguments = uniform(n * 147 // 160 + 8), uniform(1280, 2), zeros(n), int32(n)
    return Plan(min(n // 256, 1056), 256, arguments, expected)


@measured(SEEN, 512, 2048, 8192, small=64)
def ising(n: int) -> Plan:
    seed, colour = uint32(12345), 1

    def given() -> Array:
        ups = np.where(words(n * n, 3) & uint32(256), 1, -1)
        return ups.astype(int8)

    def chances() -> Array:
        return (np.exp(np.asarray([-1.6, -3.2])) * 2**32).astype(uint32)

    def expected(spins: Array, chances: Array, seed: uint32, colour: int, n: int) -> Expected:
        s = spins.reshape(n, n).astype(int32)
        cost = s * sum(np.roll(s, by, axis) for by in (1, -1) for axis in (0, 1))
        chance = mixed(seed + np.arange(n * n, dtype=uint32)).reshape(n, n)
        turns = (cost <= 0) | (chance < chances[np.maximum(cost // 2 - 1, 0)])
        row, column = np.mgrid[:n, :n]
        return {0: np.where(turns & ((row + column) % 2 == colour), -s, s).ravel()}

    arguments = (
        afresh(deciding(of(given, n * n, int8))),
        deciding(of(chances, 2, uint32)),
        seed,
        int32(colour),
        int32(n),
    )
    return Plan((n // 64, n // 4), (32, 4), arguments, expected)


@measured(SEEN, 256, 1024, 4096, small=64)
def occlusion(n: int) -> Plan:
    def offsets() -> Array:
        return (words(32, 4) % uint32(25)).astype(int32) - 12

    def expected(depths: Array, offsets: Array, y: Array, n: int) -> Expected:
        d = depths.reshape(n, n)
        row, column = np.mgrid[:n, :n]
        turn = mixed(np.arange(n * n, dtype=uint32)).reshape(n, n)
        hidden = np.zeros((n, n), int32)
        for x, y in offsets.reshape(16, 2):
            is_aside, sign = turn & uint32(1), np.where(turn & uint32(2), -1, 1)
            r = np.clip(row + sign * np.where(is_aside, -x, y), 0, n - 1)
            c = np.clip(column + sign * np.where(is_aside, y, x), 0, n - 1)
            nearer = d - d[r, c]
            hidden += (nearer > float32(0.02)) & (nearer < float32(0.5))
        return {2: (255 - 15 * hidden).ravel()}

    given = deciding(uniform(n * n)), deciding(of(offsets, 32, int32))
    return Plan((n // 16, n // 16), (16, 16), (*given, zeros(n * n, uint8), int32(n)), expected)


def _balls(count: int, n: int) -> Numbers:
    """Return spheres before n x n rays, in whole numbers, so that all squares are exact."""

    def made() -> Array:
        parts = words(4 * count, 6).reshape(count, 4)
        x, y = parts[:, 0] % uint32(n), parts[:, 1] % uint32(n)
        depth, radius = parts[:, 2] % uint32(4096), parts[:, 3] % uint32(n // 8) + uint32(n // 32)
        return np.stack([x, y, depth, radius], 1).astype(float32).ravel()

    return deciding(of(made, 4 * count, float32))


@measured(SEEN, 256, 1024, 4096, small=64)
def spheres(n: int) -> Plan:
    count = 48

    def expected(balls: Array, count: int, depths: Array, n: int) -> Expected:
        row, column = np.mgrid[:n, :n].astype(float64)
        nearest = np.full((n, n), 10000.0)
        for x, y, z, radius in balls.reshape(count, 4).astype(float64):
            rest = radius**2 - (column - x) ** 2 - (row - y) ** 2
            depth = np.where(rest > 0, z - np.sqrt(np.maximum(rest, 0)), 10000)
            nearest = np.minimum(nearest, depth)
        return {2: nearest.ravel()}

    arguments = _balls(count, n), int32(count), zeros(n * n), int32(n)
    return Plan((n // 16, n // 16), (16, 16), arguments, expected)
