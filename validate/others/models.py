"""Launches of `models.cu`."""

from __future__ import annotations

from itertools import product
from math import ceil

import numpy as np
from numpy import float32, float64, int32, uint8, uint32, uint64

from .data import Array, Numbers, afresh, deciding, of, random_words, uniform, words, zeros
from .plans import SEEN, Expected, Plan, measured

EXACT = 1e-12


@measured(SEEN, 2**12, 2**16, 2**20, small=2**10)
def lennard_jones(n: int) -> Plan:
    side = ceil(n ** (1 / 3))
    box, cutoff2 = float32(1.2 * side), float32(4)
    steps = [step for step in product((-1, 0, 1), repeat=3) if any(step)]

    def positions() -> Array:
        place = np.arange(n)
        cell = np.stack([place % side, place // side % side, place // side**2], 1)
        moved = 1.2 * cell + 0.3 * uniform(3 * n, 1).make().reshape(n, 3)
        return np.c_[moved, np.zeros(n)].astype(float32).ravel()

    def neighbors() -> Array:
        shifts = np.asarray([x + side * (y + side * z) for x, y, z in steps])
        return ((np.arange(n) + shifts[:, None]) % n).astype(int32).ravel()

    def counts() -> Array:
        return (14 + words(n, 2) % uint32(13)).astype(int32)

    def expected(pos: Array, neighbors: Array, counts: Array, *_: object) -> Expected:
        points = pos.reshape(n, 4)[:, :3].astype(float64)
        made = np.zeros((n, 4))
        for k, others in enumerate(neighbors.reshape(26, n)):
            way = points - points[others]
            way -= box * (way > 0.5 * box) - box * (way < -0.5 * box)
            r2 = (way * way).sum(1)
            near = (k < counts) & (r2 < cutoff2)
            inv6 = r2**-3
            made[:, :3] += (near * 24 * inv6 * (2 * inv6 - 1) / r2)[:, None] * way
            made[:, 3] += near * 2 * inv6 * (inv6 - 1)
        return {3: made.ravel()}

    lists = of(neighbors, 26 * n, int32), of(counts, n, int32)
    given = map(deciding, (of(positions, 4 * n, float32), *lists))
    arguments = *given, zeros(4 * n), box, cutoff2, int32(n)
    return Plan(n // 128, 128, arguments, expected, tolerance=1e-4)


@measured(SEEN, 64, 256, 768, small=32)
def seismic(n: int) -> Plan:
    width, depth = n + 8, 40
    size = depth * width * width
    weights = of(
        lambda: np.asarray([-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560], float32), 5, float32
    )

    def expected(now: Array, other: Array, speed: Array, width: int, depth: int) -> Expected:
        p, made, v = (a.reshape(depth, width, width).astype(float64) for a in (now, other, speed))
        inner = (slice(4, -4),) * 3
        total = 3 * weights.make()[0] * p
        for k, weight in enumerate(weights.make()[1:], 1):
            for axis in range(3):
                total += weight * (np.roll(p, k, axis) + np.roll(p, -k, axis))
        made[inner] = (2 * p - made + v * total)[inner]
        return {1: made.ravel()}

    given = uniform(size, 1), afresh(uniform(size, 2)), uniform(size, 3)
    arguments = *given, int32(width), int32(depth)
    constants = (("fd", weights),)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected, constants=constants)


@measured(SEEN, 32, 96, 192, small=16)
def update_e(n: int) -> Plan:
    c = float32(0.5)

    def expected(ex: Array, ey: Array, ez: Array, hx: Array, hy: Array, hz: Array,
                 c: float32, n: int) -> Expected:  # fmt: skip
        made = [a.reshape(n, n, n).astype(float64) for a in (ex, ey, ez)]
        x, y, z = (a.reshape(n, n, n).astype(float64) for a in (hx, hy, hz))
        inner = (slice(1, None),) * 3

        def rise(field: Array, axis: int) -> Array:
            return (field - np.roll(field, 1, axis))[inner]

        made[0][inner] += c * (rise(z, 1) - rise(y, 0))
        made[1][inner] += c * (rise(x, 0) - rise(z, 2))
        made[2][inner] += c * (rise(y, 2) - rise(x, 1))
        return {k: field.ravel() for k, field in enumerate(made)}

    fields = *(afresh(uniform(n**3, k)) for k in (1, 2, 3)), *(uniform(n**3, k) for k in (4, 5, 6))
    grid = -(-n // 32), -(-n // 4), -(-n // 2)
    return Plan(grid, (32, 4, 2), (*fields, c, int32(n)), expected)


@measured(SEEN, 256, 1024, 3072, small=64)
def shallow_water(n: int) -> Plan:
    r = float32(0.02)

    def height() -> Array:
        return uniform(n * n, 1).make() + float32(1)

    def expected(h: Array, hu: Array, hv: Array, *_: object) -> Expected:
        q = np.stack([h, hu, hv]).reshape(3, n, n).astype(float64)
        g = float64(float32(9.81))
        u, v = q[1] / q[0], q[2] / q[0]
        press = 0.5 * g * q[0] * q[0]
        flux_x = np.stack([q[1], q[1] * u + press, q[2] * u])
        flux_y = np.stack([q[2], q[1] * v, q[2] * v + press])
        around = sum(np.roll(q, step, axis) for step in (1, -1) for axis in (1, 2))
        flow_x = np.roll(flux_x, -1, 2) - np.roll(flux_x, 1, 2)
        flow_y = np.roll(flux_y, -1, 1) - np.roll(flux_y, 1, 1)
        made = 0.25 * around - r * (flow_x + flow_y)
        return {3 + k: part.ravel() for k, part in enumerate(made)}

    given = of(height, n * n, float32), uniform(n * n, 2), uniform(n * n, 3)
    made = zeros(n * n), zeros(n * n), zeros(n * n)
    arguments = *map(deciding, given), *made, r, int32(n)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected)


@measured(SEEN, 64, 1024, 8192, small=4)
def american_put(n: int) -> Plan:
    up = float32(np.exp(0.3 * np.sqrt(1 / 255)))
    discount = float32(np.exp(-0.05 / 255))
    p = float32((np.exp(0.05 / 255) - 1 / up) / (up - 1 / up))

    def prices() -> Array:
        return 80 + 40 * uniform(n, 1).make()

    def expected(spot: Array, strike: Array, value: Array, *_: object) -> Expected:
        steps = 2.0 * np.arange(256) - 255
        s = spot[:, None].astype(float64) * float64(up) ** steps
        k = strike[:, None].astype(float64)
        held = np.maximum(k - s, 0)
        for step in range(255, 0, -1):
            s = s[:, :step] * up
            later = discount * (p * held[:, 1:] + (1 - p) * held[:, :-1])
            held = np.maximum(later, k - s)
        return {2: held[:, 0]}

    strikes = of(lambda: np.full(n, 100, float32), n, float32)
    arguments = *map(deciding, (of(prices, n, float32), strikes)), zeros(n), up, p, discount
    return Plan(n, 256, arguments, expected, tolerance=1e-3)


@measured(SEEN, 2**12, 2**15, 2**18, small=2**8)
def epidemics(n: int) -> Plan:
    def expected(seeds: Array, recovered: Array, peaks: Array, n: int) -> Expected:
        state = seeds | uint32(1)
        healthy, ill, peak = np.full(n, 252), np.full(n, 4), np.full(n, 4)
        while (ill > 0).any():
            for by in (13, -17, 5):
                state ^= state << uint32(by) if by > 0 else state >> uint32(-by)
            infect = 3 * healthy
            falls = (state % (infect + 512) < infect) & (ill > 0)
            rises = ~falls & (ill > 0)
            healthy -= falls
            ill += falls.astype(int) - rises
            peak = np.maximum(peak, ill)
        return {1: 256 - healthy, 2: peak}

    made = zeros(n, int32), zeros(n, int32)
    return Plan(n // 128, 128, (deciding(random_words(n, 3)), *made, int32(n)), expected, EXACT)


def _cdf(d: Array) -> Array:
    """Return the normal distribution's by a polynomial."""
    k = 1 / (1 + 0.2316419 * abs(d))
    terms = 1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.31938153
    total = np.zeros_like(d)
    for term in terms:
        total = k * (total + term)
    tail = 0.39894228 * np.exp(-0.5 * d * d) * total
    return np.where(d > 0, 1 - tail, tail)


@measured(SEEN, 2**14, 2**18, 2**22)
def implied_vol(n: int) -> Plan:
    rate = float32(0.03)

    def between(low: float, high: float, seed: int) -> Array:
        return (low + (high - low) * uniform(n, seed).make()).astype(float32)

    def prices() -> Array:
        s, k, t = (between(*span).astype(float64) for span in spans)
        sigma = between(0.1, 0.9, 4)
        d1 = (np.log(s / k) + (rate + 0.5 * sigma**2) * t) / (sigma * np.sqrt(t))
        d2 = d1 - sigma * np.sqrt(t)
        return (s * _cdf(d1) - k * np.exp(-rate * t) * _cdf(d2)).astype(float32)

    def expected(*_: object) -> Expected:
        return {4: between(0.1, 0.9, 4)}

    spans = (90, 110, 1), (95, 105, 2), (0.5, 2, 3)
    given = [deciding(of(lambda span=span: between(*span), n, float32)) for span in spans]  # type: ignore[misc]
    arguments = deciding(of(prices, n, float32)), *given, zeros(n), rate, int32(n)
    return Plan(n // 256, 256, arguments, expected, tolerance=1e-3)


@measured(SEEN, 2**12, 2**16, 2**20, small=2**8)
def lorenz_rk4(n: int) -> Plan:
    h, steps = float64(0.005), 100

    def begin(seed: int) -> Numbers:
        return afresh(of(lambda: 10 * uniform(n, seed).make().astype(float64), n, float64))

    def expected(x: Array, y: Array, z: Array, h: float, steps: int, n: int) -> Expected:
        def slope(p: Array) -> Array:
            x, y, z = p
            return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

        p = np.stack([x, y, z])
        for _ in range(steps):
            k1 = slope(p)
            k2 = slope(p + h / 2 * k1)
            k3 = slope(p + h / 2 * k2)
            p = p + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(p + h * k3))
        return dict(enumerate(p))

    arguments = begin(1), begin(2), begin(3), h, int32(steps), int32(n)
    return Plan(n // 128, 128, arguments, expected, tolerance=1e-8)


@measured(SEEN, 2**14, 2**18, 2**22)
def deposit_charge(n: int) -> Plan:
    cells, charge = 256, float32(0.25)

    def expected(particles: Array, grid: Array, charge: float32, *_: object) -> Expected:
        x, y = particles.reshape(n, 2).astype(float64).T
        column, row = x.astype(int), y.astype(int)
        made = np.zeros(cells * cells)
        for down, right in product((0, 1), repeat=2):
            part = np.where(right, x - column, 1 - x + column)
            part *= np.where(down, y - row, 1 - y + row)
            place = (row + down) % cells * cells + (column + right) % cells
            made += np.bincount(place, charge * part, cells * cells)
        return {1: made}

    def particles() -> Array:
        return cells * uniform(2 * n, 5).make()

    arguments = deciding(of(particles, 2 * n, float32)), afresh(zeros(cells * cells))
    return Plan(n // 256, 256, (*arguments, charge, int32(cells), int32(n)), expected, 1e-4)


@measured(SEEN, 2**10, 2**14, 2**16, small=2**7)
def thomas(n: int) -> Plan:
    size = 64 * n

    def numbers(seed: int, add: float = 0) -> Numbers:
        return deciding(of(lambda: uniform(size, seed).make().astype(float64) + add, size, float64))

    def expected(*given: Array) -> Expected:
        lower, diag, upper, rhs = (a.reshape(64, n) for a in given[:4])
        c, d = upper[0] / diag[0], rhs[0] / diag[0]
        work, made = [c], [d]
        for k in range(1, 64):
            m = 1 / (diag[k] - lower[k] * c)
            c, d = upper[k] * m, (rhs[k] - lower[k] * d) * m
            work.append(c)
            made.append(d)
        for k in range(62, -1, -1):
            made[k] = made[k] - work[k] * made[k + 1]
        return {4: np.ravel(work), 5: np.ravel(made)}

    given = numbers(1), numbers(2, 3), numbers(3), numbers(4)
    arguments = *given, zeros(size, float64), zeros(size, float64), int32(n)
    return Plan(n // 128, 128, arguments, expected, tolerance=1e-10)


@measured(SEEN, 16, 512, 4096, small=2)
def viterbi(n: int) -> Plan:
    steps = 32

    def logs(length: int, seed: int) -> Numbers:
        return deciding(of(lambda: np.log(uniform(length, seed).make() + 0.01).astype(float32),
                           length, float32))  # fmt: skip

    def symbols() -> Array:
        return (words(n * steps, 3) & uint32(31)).astype(uint8)

    def expected(trans: Array, emit: Array, seen: Array, *_: object) -> Expected:
        t, e, of_each = trans.reshape(64, 64), emit.reshape(32, 64), seen.reshape(n, steps)
        path = np.zeros((n, steps), uint8)
        score, back = e[of_each[:, 0]], np.zeros((n, steps, 64), uint8)
        for s in range(1, steps):
            both = score[:, :, None] + t
            back[:, s] = both.argmax(1)
            score = both.max(1) + e[of_each[:, s]]
        at = score.argmax(1)
        for s in range(steps - 1, -1, -1):
            path[:, s] = at
            at = back[np.arange(n), s, at]
        return {4: path.ravel()}

    seen = deciding(of(symbols, n * steps, uint8))
    made = deciding(zeros(64 * n * steps, uint8)), zeros(n * steps, uint8)
    arguments = logs(64 * 64, 1), logs(32 * 64, 2), seen, *made, int32(steps)
    return Plan(n, 64, arguments, expected, EXACT)


@measured(SEEN, 9, 11, 13, small=7)
def queens(n: int) -> Plan:
    ways = {7: 40, 9: 352, 11: 2680, 13: 73712}

    def expected(found: Array, size: int) -> Expected:
        return {0: np.asarray([ways[n]])}

    return Plan(-(-(n**3) // 64), 64, (afresh(zeros(1, uint64)), int32(n)), expected, EXACT)
