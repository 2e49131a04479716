"""Launches of `engineering.cu`."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from numpy import float32, float64, int8, int32, int64, uint8, uint32, uint64

from .data import Array, Numbers, afresh, deciding, mixed, of, uniform, words, zeros
from .plans import SEEN, Expected, Plan, measured

EXACT = 0.0


def _begins(sizes: Array) -> Array:
    """Return where each of some groups begins, and where the last one ends."""
    return np.r_[0, np.cumsum(sizes)].astype(int32)


def _doubles(length: int, seed: int) -> Numbers:
    """Return doubles from -1 to 1."""

    def made() -> Array:
        return 2 * uniform(length, seed).make().astype(float64) - 1

    return of(made, length, float64)


@measured(SEEN, 2**12, 2**15, 2**21, small=2**9)
def sph_density(n: int) -> Plan:
    cells = round((n / 8) ** (1 / 3))

    def cell_of() -> Array:
        return np.sort((words(n, 1) % uint32(cells**3)).astype(int32))

    def pos() -> Array:
        cell, made = cell_of(), uniform(4 * n, 2).make().reshape(n, 4).copy()
        corner = np.stack([cell % cells, cell // cells % cells, cell // cells**2], 1)
        made[:, :3] = corner + float32(0.999) * made[:, :3]
        return made.ravel()

    def starts() -> Array:
        return _begins(np.bincount(cell_of(), minlength=cells**3))

    def expected(pos: Array, starts: Array, density: Array, h2: float32, *_: object) -> Expected:
        given = pos.reshape(n, 4).astype(float64)
        made = np.zeros(n)
        for begin in range(0, n, 256):
            r2 = ((given[begin : begin + 256, None, :3] - given[:, :3]) ** 2).sum(2)
            made[begin : begin + 256] = np.maximum(h2 - r2, 0) ** 3 @ given[:, 3]
        return {2: made}

    given = deciding(of(pos, 4 * n, float32)), deciding(of(starts, cells**3 + 1, int32))
    arguments = *given, zeros(n), float32(0.81), int32(cells), int32(n)
    return Plan(n // 128, 128, arguments, expected)


@measured(SEEN, 2**16, 2**20, 2**23)
def push_particles(n: int) -> Plan:
    cells, dt = 512, float32(0.1)

    def places(seed: int) -> Numbers:
        def made() -> Array:
            return np.minimum(uniform(n, seed).make() * float32(cells), float32(cells - 0.01))

        return afresh(deciding(of(made, n, float32)))

    def speeds(seed: int) -> Numbers:
        made = of(lambda: 2 * uniform(n, seed).make() - float32(1), n, float32)
        return afresh(deciding(made))

    def expected(x: Array, y: Array, vx: Array, vy: Array, fields: Array, *_: object) -> Expected:
        nodes = fields.reshape(cells, cells, 4).astype(float64)
        cx, cy = x.astype(int32), y.astype(int32)
        fx, fy = (x.astype(float64) - cx)[:, None], (y.astype(float64) - cy)[:, None]
        right, below = (cx + 1) % cells, (cy + 1) % cells
        upper = (1 - fx) * nodes[cy, cx] + fx * nodes[cy, right]
        lower = (1 - fx) * nodes[below, cx] + fx * nodes[below, right]
        ex, ey, bz, _unused = ((1 - fy) * upper + fy * lower).T
        ux, uy = vx + dt / 2 * ex, vy + dt / 2 * ey
        t = dt / 2 * bz
        s = 2 * t / (1 + t * t)
        wx, wy = ux + uy * t, uy - ux * t
        ux, uy = ux + wy * s + dt / 2 * ex, uy - wx * s + dt / 2 * ey
        return {0: (x + ux * dt) % cells, 1: (y + uy * dt) % cells, 2: ux, 3: uy}

    moving = places(3), places(4), speeds(5), speeds(6)
    arguments = *moving, deciding(uniform(4 * cells**2, 7)), dt, int32(cells), int32(n)
    return Plan(min(n // 256, 1056), 256, arguments, expected)


@measured(SEEN, 100_000, 1_000_000, 10_000_000, small=5_000)
def cg_step(n: int) -> Plan:
    def expected(
        x: Array, r: Array, p: Array, q: Array, rr: Array, pq: Array, *_: object
    ) -> Expected:
        alpha = rr[0] / pq[0]
        later = r - alpha * q
        return {0: x + alpha * p, 1: later, 6: later @ later}

    vectors = afresh(_doubles(n, 8)), afresh(_doubles(n, 9)), _doubles(n, 10), _doubles(n, 11)
    scalars = _doubles(1, 12), _doubles(1, 13), afresh(zeros(1, float64))
    blocks = min(-(-n // 512), 1056)
    return Plan(blocks, 256, (*vectors, *scalars, int32(n // 2)), expected, tolerance=1e-10)


@measured(SEEN, 16, 64, 128, small=8)
def restrict3d(n: int) -> Plan:
    size = 8 * n**3

    def expected(fine: Array, *_: object) -> Expected:
        padded = np.pad(fine.reshape(2 * n, 2 * n, 2 * n), ((1, 0), (1, 0), (1, 0)))
        made = np.zeros((n, n, n))
        for place in product(range(3), repeat=3):
            part = padded[tuple(slice(d, d + 2 * n - 1, 2) for d in place)]
            made += part * 0.125 * 0.5 ** sum(d != 1 for d in place)
        return {1: made.ravel()}

    arguments = _doubles(size, 14), zeros(n**3, float64), int32(n)
    return Plan((n // 8, n // 8, n // 4), (8, 8, 4), arguments, expected, tolerance=1e-12)


@measured(SEEN, 2**16, 2**20, 2**26)
def index_delimiters(n: int) -> Plan:
    letters = np.frombuffer(b"0123456789.-,,,\nabcdefghijklmnop", uint8)

    def text() -> Array:
        return letters[words(n // 4, 15).view(uint8) & uint8(31)].view(uint32)

    @cache
    def places() -> Array:
        held = text().view(uint8)
        return np.flatnonzero((held == ord(",")) | (held == ord("\n")))

    def before() -> Array:
        return np.searchsorted(places(), np.arange(n // 4096) * 4096).astype(int32)

    def expected(*_: object) -> Expected:
        return {2: places()}

    given = deciding(of(text, n // 4, uint32)), deciding(of(before, n // 4096, int32))
    return Plan(n // 4096, 256, (*given, zeros(n // 4, int32)), expected, EXACT)


def _finished(h: Array) -> Array:
    """Return 64-bit words mixed (MurmurHash3's finalizer)."""
    h = (h ^ h >> uint64(33)) * uint64(0xFF51AFD7ED558CCD)
    h = (h ^ h >> uint64(33)) * uint64(0xC4CEB9FE1A85EC53)
    return h ^ h >> uint64(33)


@measured(SEEN, 2**16, 2**20, 2**24)
def partition_rows(n: int) -> Plan:
    blocks = n // 4096

    def customers() -> Array:
        return (words(n, 16) % uint32(1_000_000)).astype(int64) * 7919

    def items() -> Array:
        return (words(n, 17) % uint32(5_000)).astype(int32)

    def expected(customers: Array, items: Array, *_: object) -> Expected:
        hashed = _finished(customers.astype(uint64)) * uint64(31) + items.astype(uint64)
        partitions = (_finished(hashed) >> uint64(56)).astype(int32)
        both = partitions * blocks + np.arange(n) // 4096
        return {2: partitions, 3: np.bincount(both, minlength=256 * blocks)}

    given = deciding(of(customers, n, int64)), deciding(of(items, n, int32))
    made = zeros(n, uint8), zeros(256 * blocks, int32)
    return Plan(blocks, 512, (*given, *made, int32(n)), expected, EXACT)


@cache
def _degrees(n: int) -> Array:
    """Return how many neighbours each node has: a few have hundreds (a power law)."""
    return np.minimum(3 / np.sqrt(uniform(n, 18).make() + float32(1e-5)), 600).astype(int32)


@measured(SEEN, 10_000, 100_000, 1_000_000, small=2_000)
def independent_set(n: int) -> Plan:
    begins = _begins(_degrees(n))
    edges, seed = int(begins[-1]), uint32(12345)

    def neighbours() -> Array:
        near = uniform(edges, 19).make().astype(float64) ** 3
        return (near * n).astype(int32)

    def states() -> Array:
        return (words(n, 20) % uint32(5) == 0).astype(int32)

    def expected(begins: Array, neighbours: Array, states: Array, *_: object) -> Expected:
        numbers = mixed(np.arange(n, dtype=uint32) ^ seed)
        of_edge = np.arange(n).repeat(_degrees(n))
        larger = (states[neighbours] == 0) & (numbers[neighbours] > numbers[of_edge])
        beaten = np.bincount(of_edge, larger, n) > 0
        return {3: np.where(states == 0, ~beaten, states)}

    lists = deciding(of(lambda: begins, n + 1, int32)), deciding(of(neighbours, edges, int32))
    arguments = *lists, deciding(of(states, n, int32)), zeros(n, int32), seed, int32(n)
    return Plan(-(-n // 256), 256, arguments, expected, EXACT)


@measured(SEEN, 256, 1024, 4096, small=64)
def paeth_filter(n: int) -> Plan:
    def image() -> Array:
        down, across = np.indices((n, n), int32)
        smooth = (across // 3 + down // 5) % 200
        noise = (words(4 * n * n, 21) & uint32(31)).astype(int32).reshape(n, n, 4)
        return (smooth[:, :, None] + noise).astype(uint8).ravel()

    def expected(image: Array, *_: object) -> Expected:
        padded = np.pad(image.reshape(n, n, 4).astype(int32), ((1, 0), (1, 0), (0, 0)))
        a, b, c = padded[1:, :-1], padded[:-1, 1:], padded[:-1, :-1]
        p = a + b - c
        pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
        nearest = np.where((pa <= pb) & (pa <= pc), a, np.where(pb <= pc, b, c))
        made = np.full((n, 4 * n + 1), 4, uint8)
        made[:, 1:] = (padded[1:, 1:] - nearest).astype(uint8).reshape(n, 4 * n)
        return {1: made.ravel()}

    given = deciding(of(image, 4 * n * n, uint8))
    arguments = given, zeros(n * (4 * n + 1), uint8), int32(n), int32(n)
    return Plan((4 * n // 128, n), 128, arguments, expected, EXACT)


@measured(SEEN, 2**12, 2**15, 2**18, small=2**10)
def photons(n: int) -> Plan:
    bins, seed = 100, uint32(7)
    total, albedo, depth = float32(3), float32(0.8), float32(2)

    def step(state: Array) -> Array:
        state = state ^ state << uint32(13)
        state = state ^ state >> uint32(17)
        return state ^ state << uint32(5)

    def fraction(state: Array) -> Array:
        return ((state >> uint32(8)) + 0.5) / 2**24

    def expected(*_: object) -> Expected:
        absorbed, escaped = np.zeros(bins), np.zeros(2)
        state = mixed(np.arange(n, dtype=uint32) ^ seed) | uint32(1)
        z, direction, weight = np.zeros(n), np.ones(n), 1.0
        while len(state) and weight >= 0.05:
            state = step(state)
            z = z - np.log(fraction(state)) / total * direction
            out = (z < 0) | (z >= depth)
            escaped += weight * np.bincount((z[out] >= depth).astype(int), minlength=2)
            state, z = state[~out], z[~out]
            places = (z / depth * bins).astype(int)
            absorbed += weight * (1 - albedo) * np.bincount(places, minlength=bins)
            weight *= float(albedo)
            state = step(state)
            direction = 2 * fraction(state) - 1
        return {0: absorbed, 1: escaped}

    tallies = afresh(zeros(bins)), afresh(zeros(2))
    arguments = *tallies, total, albedo, depth, int32(bins), seed, int32(n)
    return Plan(n // 128, 128, arguments, expected, tolerance=2e-3)


@measured(SEEN, 10_000, 200_000, 2_000_000, small=1_000)
def parse_dates(n: int) -> Plan:
    def seconds() -> Array:
        made = (words(n, 22) % uint32(2_000_000_000)).astype(int64)
        return np.where(words(n, 23) % uint32(20) == 0, -1, made)

    def text() -> Array:
        made = np.datetime_as_string(seconds().astype("datetime64[s]")).astype("S20")
        lines = made.view(uint8).reshape(n, 20).copy()
        lines[:, 10] = ord(" ")
        lines[seconds() < 0] = ord(" ")
        lines[:, 19] = ord("\n")
        return lines.ravel().view(int8)

    def expected(*_: object) -> Expected:
        return {1: seconds()}

    arguments = deciding(of(text, 20 * n, int8)), zeros(n, int64), int32(n)
    return Plan(-(-n // 256), 256, arguments, expected, EXACT)


@measured(SEEN, 2**10, 2**14, 2**18, small=2**8)
def solve6(n: int) -> Plan:
    def expected(matrices: Array, rhs: Array, *_: object) -> Expected:
        made = np.linalg.solve(matrices.reshape(n, 6, 6), rhs.reshape(n, 6, 1))
        return {2: made.ravel()}

    given = deciding(_doubles(36 * n, 24)), deciding(_doubles(6 * n, 25))
    arguments = *given, zeros(6 * n, float64), int32(n)
    return Plan(n // 64, 64, arguments, expected, tolerance=1e-9)


def _letter_and_digits() -> Array:
    """Return the table of an automaton that looks for a letter and three digits behind it."""
    made = np.zeros((16, 256), uint8)
    made[:, ord("A") : ord("Z") + 1] = 1
    for state in range(1, 4):
        made[state, ord("0") : ord("9") + 1] = state + 1
    return made.ravel()


@measured(SEEN, 2**12, 2**16, 2**20, small=2**10)
def match_lines(n: int) -> Plan:
    letters = np.frombuffer(b"ABCDEFGHI0123456", uint8)

    def text() -> Array:
        return letters[words(16 * n, 26).view(uint8) & uint8(15)]

    def expected(text: Array, *_: object) -> Expected:
        is_digit = text.reshape(n, 64) < ord("A")
        found = ~is_digit[:, :-3] & is_digit[:, 1:-2] & is_digit[:, 2:-1] & is_digit[:, 3:]
        return {3: np.where(found.any(1), found.argmax(1) + 3, -1)}

    given = deciding(of(text, 64 * n, uint8)), deciding(of(_letter_and_digits, 4096, uint8))
    arguments = *given, int32(4), zeros(n, int32), int32(n)
    return Plan(n // 256, 256, arguments, expected, EXACT)
