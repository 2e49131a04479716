"""Launches of `backends.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float32, float64, int8, int32, uint8, uint32, uint64

from .data import (
    Array,
    Numbers,
    afresh,
    deciding,
    of,
    random_bytes,
    random_words,
    uniform,
    words,
    zeros,
)
from .plans import HELD, Expected, Plan, measured

EXACT = 0.0


def _signed(length: int, seed: int) -> Numbers:
    """Return floats from -1 to 1."""
    return of(lambda: 2 * uniform(length, seed).make() - float32(1), length, float32)


@measured(HELD, 2**8, 2**12, 2**16, small=2**5)
def mix_experts(n: int) -> Plan:
    count = 2 * n

    def chosen() -> Array:
        return (words(2 * n, 1) % np.uint32(count)).astype(int32)

    def expected(rows: Array, chosen: Array, weights: Array, _out: Array) -> Expected:
        taken = rows.reshape(count, 1024)[chosen] * weights[:, None]
        return {3: (taken[::2] + taken[1::2]).ravel()}

    given = uniform(1024 * count, 2), deciding(of(chosen, 2 * n, int32)), uniform(2 * n, 3)
    return Plan(n, 256, (*given, zeros(1024 * n)), expected)


@measured(HELD, 2**10, 2**14, 2**18, small=2**6)
def quantise_groups(n: int) -> Plan:
    def expected(x: Array, *_: object) -> Expected:
        return {2: np.abs(x.reshape(n, 128)).max(1) * float32(1 / 127)}

    arguments = _signed(128 * n, 4), zeros(128 * n, int8), zeros(n), int32(n)
    return Plan(n // 8, 256, arguments, expected)


@measured(HELD, 2**6, 2**10, 2**14, small=4)
def row_logsumexp(n: int) -> Plan:
    def expected(x: Array, _out: Array) -> Expected:
        return {1: np.log(np.exp(x.reshape(n, 4096).astype(float64)).sum(1))}

    return Plan(n, 256, (deciding(_signed(4096 * n, 5)), zeros(n)), expected)


@measured(HELD, 2**16, 2**20, 2**24)
def cross_products(n: int) -> Plan:
    def expected(a: Array, b: Array, *_: object) -> Expected:
        return {2: np.cross(a.reshape(n, 3), b.reshape(n, 3)).ravel()}

    arguments = uniform(3 * n, 6), uniform(3 * n, 7), zeros(3 * n), int32(n)
    return Plan(n // 256, 256, arguments, expected)


@measured(HELD, 2**14, 2**18, 2**22)
def table_rounds(n: int) -> Plan:
    def expected(text: Array, tables: Array, *_: object) -> Expected:
        table, s = tables.reshape(4, 256), list(text.reshape(n, 4).T)
        for _round in range(10):
            s = [
                table[0][s[k] >> 24]
                ^ table[1][s[(k + 1) % 4] >> 16 & 255]
                ^ table[2][s[(k + 2) % 4] >> 8 & 255]
                ^ table[3][s[(k + 3) % 4] & 255]
                for k in range(4)
            ]
        return {2: np.stack(s, 1).ravel()}

    given = deciding(random_words(4 * n, 8)), deciding(random_words(1024, 9))
    return Plan(n // 256, 256, (*given, zeros(4 * n, uint32), int32(n)), expected, EXACT)


@measured(HELD, 2**10, 2**14, 2**19, small=2**6)
def adler(n: int) -> Plan:
    def expected(data: Array, *_: object) -> Expected:
        rows = data.reshape(n, 1024).astype(uint32)
        a = 1 + rows.sum(1, dtype=uint32)
        b = 1024 + (rows * np.arange(1024, 0, -1, dtype=uint32)).sum(1, dtype=uint32)
        return {1: b % 65521 << 16 | a % 65521}

    arguments = random_bytes(1024 * n, 10), zeros(n, uint32), int32(n)
    return Plan(n // 8, 256, arguments, expected, EXACT)


@measured(HELD, 512, 2048, 8192, small=64)
def wave_step(n: int) -> Plan:
    def expected(now: Array, before: Array, *_: object) -> Expected:
        u = now.reshape(n, n).astype(float64)
        far = u[4:, 2:-2] + u[:-4, 2:-2] + u[2:-2, 4:] + u[2:-2, :-4]
        near = u[3:-1, 2:-2] + u[1:-3, 2:-2] + u[2:-2, 3:-1] + u[2:-2, 1:-3]
        c = u[2:-2, 2:-2]
        made = np.zeros((n, n))
        made[2:-2, 2:-2] = 2 * c - before.reshape(n, n)[2:-2, 2:-2]
        made[2:-2, 2:-2] += 0.1 * (4 / 3 * near - far / 12 - 5 * c)
        return {2: made.ravel()}

    arguments = uniform(n * n, 11), uniform(n * n, 12), zeros(n * n), int32(n)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected)


@measured(HELD, 2**12, 2**16, 2**20, small=2**9)
def sparse_rows(n: int) -> Plan:
    sizes = 4 + (words(n, 13) & 15).astype(int32)
    begins = np.r_[0, np.cumsum(sizes)].astype(int32)
    total = int(begins[-1])

    def columns() -> Array:
        near = np.arange(n).repeat(sizes) + (words(total, 14) & 4095).astype(int32) - 2048
        return (near % n).astype(int32)

    def doubles(length: int, seed: int) -> Numbers:
        return of(lambda: uniform(length, seed).make().astype(float64), length, float64)

    def expected(begins: Array, columns: Array, values: Array, x: Array, *_: object) -> Expected:
        return {4: np.add.reduceat(values * x[columns], begins[:-1])}

    given = deciding(of(lambda: begins, n + 1, int32)), deciding(of(columns, total, int32))
    arguments = *given, doubles(total, 15), doubles(n, 16), zeros(n, float64), int32(n)
    return Plan(n // 128, 128, arguments, expected)


@measured(HELD, 2**14, 2**18, 2**23)
def upper_bounds(n: int) -> Plan:
    def expected(ordered: Array, keys: Array, *_: object) -> Expected:
        return {2: np.searchsorted(ordered, keys, side="right")}

    ordered = of(lambda: np.sort(words(2**16, 17)), 2**16, uint32)
    arguments = deciding(ordered), deciding(random_words(n, 18)), zeros(n, int32), int32(n)
    return Plan(n // 256, 256, arguments, expected, EXACT)


@measured(HELD, 2**16, 2**20, 2**25)
def filter_blocks(n: int) -> Plan:
    def expected(x: Array, *_: object) -> Expected:
        return {2: (x.reshape(-1, 256) < float32(0.3)).sum(1)}

    arguments = deciding(uniform(n, 19)), zeros(n), zeros(n // 256, int32), float32(0.3)
    return Plan(n // 256, 256, arguments, expected, EXACT)


@measured(HELD, 256, 1024, 4096, small=32)
def set_overlaps(n: int) -> Plan:
    def given() -> Array:
        return words(16 * n, 20).view(uint64)

    def expected(sets: Array, *_: object) -> Expected:
        bits = np.unpackbits(sets.view(uint8).reshape(n, 64), axis=1).astype(float32)
        both, sizes = bits @ bits.T, bits.sum(1)
        return {1: (both / (sizes[:, None] + sizes - both)).ravel()}

    arguments = of(given, 8 * n, uint64), zeros(n * n), int32(n)
    return Plan((n // 16, n // 16), (16, 16), arguments, expected)


@measured(HELD, 2**12, 2**16, 2**20)
def draws_inside(n: int) -> Plan:
    def expected(*_: object) -> Expected:
        state = (np.arange(1, n + 1, dtype=uint64) * 2654435761).astype(uint32)
        found = 0
        for _draw in range(64):
            state ^= state << uint32(13)
            state ^= state >> uint32(17)
            state ^= state << uint32(5)
            x, y = (v.astype(float32) / float32(65536) for v in (state & 0xFFFF, state >> 16))
            found += int(np.count_nonzero(x * x + y * y < 1))
        return {0: np.asarray([found])}

    return Plan(n // 256, 256, (afresh(zeros(1, uint32)), int32(n)), expected, 1e-5)
