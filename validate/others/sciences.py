"""Launches of `sciences.cu`."""

from __future__ import annotations

import zlib

import numpy as np
from numpy import float32, int32, uint32

from .data import (
    Array,
    Numbers,
    afresh,
    below,
    deciding,
    of,
    random_bytes,
    random_words,
    uniform,
    words,
    zeros,
)
from .plans import SEEN, Expected, Plan, measured


@measured(SEEN, 256, 1024, 2048, small=64)
def fluid(n: int) -> Plan:
    steps = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))

    def expected(f: Array, g: Array, omega: float32, n: int) -> Expected:
        planes = f.reshape(9, n, n).astype(np.float64)
        moved = [np.roll(p, (dy, dx), (0, 1)) for p, (dx, dy) in zip(planes, steps, strict=True)]
        density = sum(moved)
        u = sum(dx * p for p, (dx, _) in zip(moved, steps, strict=True)) / density
        v = sum(dy * p for p, (_, dy) in zip(moved, steps, strict=True)) / density
        made = []
        for k, (p, (dx, dy)) in enumerate(zip(moved, steps, strict=True)):
            weight = 4 / 9 if k == 0 else 1 / 9 if k < 5 else 1 / 36
            along = 3 * (dx * u + dy * v)
            rest = weight * density * (1 + along + along**2 / 2 - 1.5 * (u**2 + v**2))
            made.append(p + omega * (rest - p))
        return {1: np.concatenate([p.ravel() for p in made])}

    arguments = _densities(9 * n * n), zeros(9 * n * n), float32(1.2), int32(n)
    return Plan((n // 64, n), 64, arguments, expected, tolerance=1e-4)


def _densities(length: int) -> Numbers:
    """Return floats from 1 to 2, so that none of their sums is zero."""
    plain = uniform(length)
    return deciding(of(lambda: 1 + plain.make(), length, float32))


@measured(SEEN, 512, 2048, 8192, small=64)
def heat_tile(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        c = np.pad(x.reshape(n, n), 1, mode="edge")
        around = c[:-2, 1:-1] + c[2:, 1:-1] + c[1:-1, :-2] + c[1:-1, 2:]
        inner = c[1:-1, 1:-1]
        return {1: (inner + float32(0.2) * (around - 4 * inner)).ravel()}

    arguments = uniform(n * n), zeros(n * n), int32(n)
    return Plan((n // 32, n // 16), (32, 16), arguments, expected)


@measured(SEEN, 512, 2048, 8192, small=256)
def shorter_ways(n: int) -> Plan:
    k = n // 3

    def expected(ways: Array, k: int, n: int) -> Expected:
        m = ways.reshape(n, n)
        return {0: np.minimum(m, m[:, k : k + 1] + m[k]).ravel()}

    arguments = afresh(deciding(uniform(n * n))), int32(k), int32(n)
    return Plan((n // 256, n), 256, arguments, expected)


def _graph(nodes: int, most: int, seed: int) -> tuple[Numbers, Numbers]:
    """Return begins and neighbours of nodes that have 1 to `most` of them."""

    def begins() -> Array:
        lengths = 1 + (words(nodes, seed) & uint32(most - 1)).astype(np.int64)
        return np.concatenate([[0], np.cumsum(lengths)]).astype(int32)

    count = int(begins()[-1])
    return deciding(of(begins, nodes + 1, int32)), deciding(below(nodes, count, seed + 1))


@measured(SEEN, 2**14, 2**18, 2**21)
def page_rank(n: int) -> Plan:
    def expected(begins: Array, sources: Array, given: Array, ranks: Array, n: int) -> Expected:
        sums = np.add.reduceat(given[sources].astype(np.float64), begins[:-1])
        return {3: 0.15 / n + 0.85 * sums}

    arguments = *_graph(n, 32, 7), uniform(n, 3), zeros(n), int32(n)
    return Plan(n // 256, 256, arguments, expected)


@measured(SEEN, 2**14, 2**18, 2**21)
def next_level(n: int) -> Plan:
    def levels() -> Array:
        return np.where(words(n, 5) % uint32(8) == 0, 3, -1).astype(int32)

    def expected(begins: Array, targets: Array, levels: Array, level: int, n: int) -> Expected:
        made = levels.copy()
        owner = np.repeat(np.arange(n), np.diff(begins))
        reached = targets[levels[owner] == level]
        made[reached[made[reached] < 0]] = level + 1
        return {2: made}

    given = afresh(deciding(of(levels, n, int32)))
    return Plan(n // 256, 256, (*_graph(n, 16, 9), given, int32(3), int32(n)), expected)


@measured(SEEN, 2**16, 2**19, 2**22)
def nearest(n: int) -> Plan:
    def expected(points: Array, centres: Array, y: Array, n: int) -> Expected:
        p, c = points.reshape(8, n).T.astype(np.float64), centres.reshape(64, 8)
        return {2: ((p[:, None] - c) ** 2).sum(2).argmin(1)}

    arguments = deciding(uniform(8 * n)), deciding(uniform(512, 2)), zeros(n, int32), int32(n)
    return Plan(n // 256, 256, arguments, expected)


@measured(SEEN, 2**16, 2**19, 2**22, small=2**10)
def collatz(n: int) -> Plan:
    def expected(y: Array, n: int) -> Expected:
        value, steps = np.arange(1, n + 1), np.zeros(n, int32)
        while (value != 1).any():
            steps += value != 1
            value = np.where(value == 1, 1, np.where(value % 2, 3 * value + 1, value // 2))
        return {0: steps}

    return Plan(n // 256, 256, (zeros(n, int32), int32(n)), expected)


@measured(SEEN, 2**14, 2**17, 2**20)
def circle_by_blocks(n: int) -> Plan:
    rounds = 64

    def expected(inside: Array, rounds: int) -> Expected:
        state = np.arange(n, dtype=uint32) * uint32(2654435761) + uint32(1)
        found = 0
        for _ in range(rounds):
            state ^= state << uint32(13)
            state ^= state >> uint32(17)
            state ^= state << uint32(5)
            x = (state & uint32(0xFFFF)).astype(float32) / 65536
            y = (state >> uint32(16)).astype(float32) / 65536
            found += int(np.count_nonzero(x * x + y * y < 1))
        return {0: np.asarray([found])}

    return Plan(n // 256, 256, (afresh(zeros(1, uint32)), int32(rounds)), expected)


@measured(SEEN, 2**16, 2**20, 2**25)
def butterflies(n: int) -> Plan:
    stride = 64

    def expected(x: Array, stride: int, n: int) -> Expected:
        pairs = x.view(np.complex64).reshape(-1, 2, stride).astype(np.complex128)
        turned = pairs[:, 1] * np.exp(-1j * np.pi * np.arange(stride) / stride)
        made = np.stack([pairs[:, 0] + turned, pairs[:, 0] - turned], 1)
        return {0: made.astype(np.complex64).ravel().view(float32)}

    arguments = afresh(uniform(2 * n)), int32(stride), int32(n)
    return Plan(n // 512, 256, arguments, expected, tolerance=1e-4)


@measured(SEEN, 512, 2048, 8192, small=64)
def edges(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        p = x.reshape(n, n).astype(int32)
        smooth_down = p[:-2] + 2 * p[1:-1] + p[2:]
        smooth_across = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
        across = smooth_down[:, 2:] - smooth_down[:, :-2]
        down = smooth_across[2:] - smooth_across[:-2]
        return {1: np.pad(np.minimum(255, abs(across) + abs(down)), 1).ravel()}

    arguments = random_bytes(n * n), zeros(n * n, np.uint8), int32(n)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected)


@measured(SEEN, 2**18, 2**22, 2**26)
def hexadecimal(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        digits = np.frombuffer(b"0123456789abcdef", np.uint8)
        return {1: digits[np.stack([x >> 4, x & 15], 1)].ravel()}

    return Plan(n // 256, 256, (random_bytes(n), zeros(2 * n, np.uint8), int32(n)), expected)


def _crc_table() -> Array:
    """Return the table of a CRC-32, one entry for each byte."""
    table = np.arange(256, dtype=uint32)
    for _ in range(8):
        table = np.where(
            table & uint32(1), uint32(0xEDB88320) ^ table >> uint32(1), table >> uint32(1)
        )
    return table


@measured(SEEN, 2**14, 2**17, 2**20, small=2**10)
def checksums(n: int) -> Plan:
    def expected(records: Array, table: Array, y: Array, n: int) -> Expected:
        return {2: np.asarray([zlib.crc32(row.tobytes()) for row in records.reshape(n, 16)])}

    arguments = (
        deciding(random_words(16 * n)),
        deciding(of(_crc_table, 256, uint32)),
        zeros(n, uint32),
        int32(n),
    )
    return Plan(n // 256, 256, arguments, expected, tolerance=1e-12)


def _sorted(length: int, seed: int) -> Numbers:
    def made() -> Array:
        return np.sort((words(length, seed) >> uint32(1)).astype(int32))

    return deciding(of(made, length, int32))


@measured(SEEN, 2**16, 2**20, 2**24)
def merge(n: int) -> Plan:
    def expected(a: Array, b: Array, y: Array, n: int) -> Expected:
        return {2: np.sort(np.concatenate([a, b]))}

    arguments = _sorted(n, 3), _sorted(n, 4), zeros(2 * n, int32), int32(n)
    return Plan(n // 1024, 256, arguments, expected, tolerance=1e-12)


@measured(SEEN, 2**18, 2**21, 2**25)
def sums_by_key(n: int) -> Plan:
    def keys() -> Array:
        return np.sort((words(n, 5) & uint32(n // 32 - 1)).astype(int32))

    def expected(keys: Array, values: Array, sums: Array, n: int) -> Expected:
        return {2: np.bincount(keys, values, n // 32)}

    arguments = deciding(of(keys, n, int32)), uniform(n, 2), afresh(zeros(n // 32)), int32(n)
    return Plan(n // 4096, 256, arguments, expected, tolerance=1e-4)
