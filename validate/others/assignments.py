"""Launches of `assignments.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float32, float64, int32, int64, uint8, uint32

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


def _double(length: int, seed: int) -> Numbers:
    """Return floats from 0 to 1, of 64 bits."""
    return of(lambda: uniform(length, seed).make().astype(float64), length, float64)


@measured(SEEN, 2**14, 2**18, 2**22)
def join_chains(n: int) -> Plan:
    rows = n // 2
    shift = 33 - rows.bit_length()
    keys = deciding(below(rows, rows, 3))

    def chained() -> tuple[Array, Array]:
        bucket = keys.make().astype(uint32) * uint32(2654435761) >> uint32(shift)
        order = np.argsort(bucket, kind="stable").astype(int32)
        same = bucket[order[1:]] == bucket[order[:-1]]
        heads, after = np.full(rows, -1, int32), np.full(rows, -1, int32)
        after[order[1:][same]] = order[:-1][same]
        heads[bucket[order]] = order  # the last one of a bucket is the first of its chain
        return heads, after

    def expected(heads: Array, after: Array, keys: Array, amounts: Array, probes: Array,
                 *_: object) -> Expected:  # fmt: skip
        return {5: np.bincount(keys, amounts, rows)[probes]}

    heads = deciding(of(lambda: chained()[0], rows, int32))
    after = deciding(of(lambda: chained()[1], rows, int32))
    arrays = heads, after, keys, below(1000, rows, 4), deciding(below(rows, n, 5))
    arguments = *arrays, zeros(n, int64), int32(shift), int32(n)
    return Plan(n // 256, 256, arguments, expected, tolerance=1e-12)


@measured(SEEN, 2**18, 2**21, 2**24)
def select_rows(n: int) -> Plan:
    def expected(price: Array, quantity: Array, least: int, most: int, *_: object) -> Expected:
        chosen = ((price >= least) & (quantity < most)).reshape(-1, 512)
        counts = chosen.sum(1)
        made = np.zeros((n // 512, 512), int64)
        made[np.arange(512) < counts[:, None]] = np.flatnonzero(chosen)
        return {4: made.ravel(), 5: counts}

    columns = deciding(below(1024, n)), deciding(below(64, n, 2))
    arguments = *columns, int32(600), int32(24), zeros(n, int64), zeros(n // 512, int32), int32(n)
    return Plan(n // 512, 512, arguments, expected, tolerance=1e-12)


@measured(SEEN, 2**16, 2**20, 2**24)
def group_by(n: int) -> Plan:
    def expected(group: Array, amount: Array, *_: object) -> Expected:
        return {2: np.bincount(group & 63, amount, 64), 3: np.bincount(group & 63, minlength=64)}

    of_rows = deciding(random_bytes(n)), deciding(_double(n, 2))
    results = afresh(zeros(64, float64)), afresh(zeros(64, uint32))
    return Plan(min(n // 1024, 528), 256, (*of_rows, *results, int32(n)), expected, 1e-9)


@measured(SEEN, 2**7, 2**11, 2**15, small=4)
def cyclic_reduction(n: int) -> Plan:
    def expected(a: Array, b: Array, c: Array, d: Array, x: Array) -> Expected:
        matrices = np.zeros((n, 256, 256))
        k = np.arange(256)
        for given, shifted in ((a, -1), (b, 0), (c, 1)):
            inside = (k + shifted >= 0) & (k + shifted < 256)
            matrices[:, k[inside], k[inside] + shifted] = given.reshape(n, 256)[:, inside]
        return {4: np.linalg.solve(matrices, d.reshape(n, 256, 1)).ravel()}

    size = 256 * n
    middle = of(lambda: 3 + uniform(size, 2).make(), size, float32)
    given = uniform(size), middle, uniform(size, 3), uniform(size, 4)
    return Plan(n, 256, (*map(deciding, given), zeros(size)), expected, tolerance=1e-4)


@measured(SEEN, 256, 1024, 4096, small=64)
def red_black(n: int) -> Plan:
    def expected(u: Array, f: Array, h2: float64, colour: int, n: int) -> Expected:
        made = u.reshape(n, n).copy()
        around = made[:-2, 1:-1] + made[2:, 1:-1] + made[1:-1, :-2] + made[1:-1, 2:]
        row, column = np.ogrid[1 : n - 1, 1 : n - 1]
        new = 0.25 * (around - h2 * f.reshape(n, n)[1:-1, 1:-1])
        made[1:-1, 1:-1] = np.where((row + column + colour) % 2 == 0, new, made[1:-1, 1:-1])
        return {0: made.ravel()}

    arrays = afresh(_double(n * n, 1)), _double(n * n, 2)
    arguments = *arrays, float64(1 / 64), int32(1), int32(n)
    return Plan((n // 64, n // 8), (32, 8), arguments, expected, tolerance=1e-12)


@measured(SEEN, 2**14, 2**17, 2**20)
def asian_option(n: int) -> Plan:
    start, strike, drift, swing = (float32(v) for v in (100, 98, 0.0002, 0.02))

    def expected(*_: object) -> Expected:
        state = np.arange(n, dtype=uint32) * uint32(747796405) + uint32(2891336453)
        price, total = np.full(n, 100.0), np.zeros(n)
        for _day in range(64):
            u = ((_stepped(state) >> uint32(8)) + 1) / 16777217
            v = (_stepped(state) >> uint32(8)) / 16777216
            normal = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)
            price *= np.exp(drift + swing * normal)
            total += price
        return {0: np.maximum(total / 64 - 98, 0).reshape(-1, 128).sum(1)}

    arguments = zeros(n // 128), start, strike, drift, swing
    return Plan(n // 128, 128, arguments, expected, tolerance=1e-4)


def _stepped(state: Array) -> Array:
    """Return words of Marsaglia's xorshift, a step on; they are changed in place."""
    state ^= state << uint32(13)
    state ^= state >> uint32(17)
    state ^= state << uint32(5)
    return state


@measured(SEEN, 2**14, 2**17, 2**20)
def ell_product(n: int) -> Plan:
    size = 16 * n

    def columns() -> Array:
        rows = np.tile(np.arange(n), 16)
        near = rows + (words(size, 3) & uint32(2047)).astype(int64) - 1024
        is_there = (words(size, 4) & uint32(3)) != 0
        return np.where(is_there, np.clip(near, 0, n - 1), -1).astype(int32)

    def expected(columns: Array, values: Array, x: Array, y: Array, n: int) -> Expected:
        made = np.where(columns >= 0, values * x[np.maximum(columns, 0)], 0)
        return {3: made.reshape(16, n).sum(0)}

    arrays = deciding(of(columns, size, int32)), _double(size, 1), _double(n, 2)
    return Plan(n // 128, 128, (*arrays, zeros(n, float64), int32(n)), expected, tolerance=1e-12)


@measured(SEEN, 256, 1024, 4096, small=64)
def bilateral(n: int) -> Plan:
    def expected(x: Array, y: Array, space: float32, span: float32, n: int) -> Expected:
        wide = np.pad(x.reshape(n, n), 2, mode="edge").astype(float64)
        total, norm = np.zeros((n, n)), np.zeros((n, n))
        for i in range(5):
            for j in range(5):
                v = wide[i : i + n, j : j + n]
                far = (i - 2) ** 2 + (j - 2) ** 2
                weight = np.exp(-far * space - (v - x.reshape(n, n)) ** 2 * span)
                total += weight * v
                norm += weight
        return {1: (total / norm).ravel()}

    arguments = deciding(uniform(n * n)), zeros(n * n), float32(0.2), float32(8), int32(n)
    return Plan((n // 16, n // 16), (16, 16), arguments, expected)


@measured(SEEN, 512, 2048, 8192, small=64)
def median3x3(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> Expected:
        p = x.reshape(n, n)
        seen = [p[i : n - 2 + i, j : n - 2 + j] for i in range(3) for j in range(3)]
        return {1: np.pad(np.median(seen, 0), 1).ravel()}

    arguments = random_bytes(n * n), zeros(n * n, uint8), int32(n)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected)


@measured(SEEN, 2**16, 2**20, 2**24)
def rule_110(n: int) -> Plan:
    def expected(cells: Array, later: Array, n: int) -> Expected:
        line = np.unpackbits(cells.view(uint8), bitorder="little").astype(bool)
        for _ in range(32):
            left, right = np.roll(line, 1), np.roll(line, -1)
            line = (line | right) & ~(left & line & right)
        return {1: np.packbits(line, bitorder="little").view(uint32)}

    arguments = random_words(n), zeros(n, uint32), int32(n)
    return Plan(-(-n // 254), 256, arguments, expected, tolerance=1e-12)


@measured(SEEN, 2**14, 2**17, 2**21)
def random_walks(n: int) -> Plan:
    def begins() -> Array:
        degrees = 1 + (words(n, 7) & uint32(15)).astype(int64)
        return np.concatenate([[0], np.cumsum(degrees)]).astype(int32)

    def expected(begins: Array, targets: Array, ends: Array, n: int) -> Expected:
        state, node = np.arange(n, dtype=uint32) * uint32(2654435761) + uint32(1), np.arange(n)
        degrees = np.diff(begins).astype(uint32)
        for _ in range(16):
            state = state * uint32(1664525) + uint32(1013904223)
            node = targets[begins[node] + (state >> uint32(16)) % degrees[node]]
        return {2: node}

    edges = int(begins()[-1])
    graph = deciding(of(begins, n + 1, int32)), deciding(below(n, edges, 8))
    return Plan(n // 256, 256, (*graph, zeros(n, int32), int32(n)), expected, tolerance=1e-12)


@measured(SEEN, 2**18, 2**22, 2**26)
def find_pattern(n: int) -> Plan:
    sought = of(lambda: np.frombuffer(b"ACGTTG", uint8), 6, uint8)

    def text() -> Array:
        return np.frombuffer(b"ACGT", uint8)[random_bytes(n).make() & 3]

    def expected(text: Array, *_: object) -> Expected:
        places = np.arange(n - 5)
        for k, letter in enumerate(sought.make()):
            places = places[text[places + k] == letter]
        return {1: np.asarray([len(places)]), 2: places[:1]}

    far = of(lambda: np.full(1, 2**30, int32), 1, int32)
    arrays = deciding(of(text, n, uint8)), afresh(zeros(1, uint32)), afresh(far)
    given = (("pattern", sought),)
    return Plan(n // 256, 256, (*arrays, int32(n)), expected, tolerance=1e-12, constants=given)
