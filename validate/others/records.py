"""Launches of `records.cu`."""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy import float16, float32, float64, int16, int32, uint8, uint32, uint64

from .data import (
    Array,
    Numbers,
    afresh,
    below,
    deciding,
    mixed,
    of,
    permuted,
    random_words,
    uniform,
    words,
    zeros,
)
from .plans import SEEN, Expected, Plan, measured

EXACT = 1e-12


def _marks(length: int, one_of: int, seed: int) -> Numbers:
    """Return bytes, one in `one_of` of them 1, the others 0."""

    def made() -> Array:
        return (words(length, seed) % uint32(one_of) == 0).astype(uint8)

    return deciding(of(made, length, uint8))


@measured(SEEN, 2**17, 2**21, 2**25)
def segment_sums(n: int) -> Plan:
    def expected(x: Array, heads: Array, y: Array, n: int) -> Expected:
        starts = (heads != 0) | (np.arange(n) % 512 == 0)
        whole = np.cumsum(x, dtype=np.int64)
        first = np.maximum.accumulate(np.where(starts, np.arange(n), 0))
        return {2: whole - whole[first] + x[first]}

    arguments = deciding(below(1024, n)), _marks(n, 40, 2), zeros(n, int32), int32(n)
    return Plan(n // 512, 512, arguments, expected, EXACT)


@measured(SEEN, 2**18, 2**22, 2**26)
def runs(n: int) -> Plan:
    def given() -> Array:
        return np.cumsum(_marks(n, 6, 3).make(), dtype=uint8)

    def expected(x: Array, values: Array, begins: Array, counts: Array) -> Expected:
        made = np.zeros(n, uint8), np.zeros(n, int16), np.zeros(n // 1024, int32)
        for block, part in enumerate(x.reshape(-1, 1024)):
            starts = np.flatnonzero(np.r_[True, part[1:] != part[:-1]])
            places = slice(1024 * block, 1024 * block + len(starts))
            made[0][places], made[1][places], made[2][block] = part[starts], starts, len(starts)
        return dict(enumerate(made, 1))

    arguments = deciding(of(given, n, uint8)), zeros(n, uint8), zeros(n, int16)
    return Plan(n // 1024, 1024, (*arguments, zeros(n // 1024, int32)), expected, EXACT)


@measured(SEEN, 2**16, 2**20, 2**24)
def radix_pass(n: int) -> Plan:
    shift = 8

    def begins() -> Array:
        digits = (words(n, 1) >> uint32(shift) & uint32(15)).reshape(-1, 256)
        counts = np.stack([np.count_nonzero(digits == digit, 1) for digit in range(16)])
        return (np.cumsum(counts.ravel()) - counts.ravel()).astype(int32)

    def expected(keys: Array, begins: Array, y: Array, shift: int) -> Expected:
        return {2: keys[np.argsort(keys >> uint32(shift) & uint32(15), kind="stable")]}

    keys = deciding(random_words(n)), deciding(of(begins, n // 16, int32))
    return Plan(n // 256, 256, (*keys, zeros(n, uint32), int32(shift)), expected, EXACT)


def _letters(length: int, seed: int) -> Numbers:
    """Return letters of an alphabet of four."""

    def made() -> Array:
        return np.frombuffer(b"ACGT", uint8)[words(length, seed) & uint32(3)]

    return deciding(of(made, length, uint8))


@measured(SEEN, 2**8, 2**13, 2**16, small=4)
def edit_distances(n: int) -> Plan:
    def expected(a: Array, b: Array, y: Array) -> Expected:
        first, second = a.reshape(n, 64), b.reshape(n, 64)
        rows = np.tile(np.arange(65), (n, 1))
        for k in range(64):
            above, rows = rows, np.empty_like(rows)
            rows[:, 0] = k + 1
            for j in range(64):
                changed = above[:, j] + (first[:, k] != second[:, j])
                rows[:, j + 1] = np.minimum(changed, np.minimum(above[:, j + 1], rows[:, j]) + 1)
        return {2: rows[:, 64]}

    arguments = _letters(64 * n, 4), _letters(64 * n, 5), zeros(n, int32)
    return Plan(n, 64, arguments, expected, EXACT)


@measured(SEEN, 2**12, 2**15, 2**18, small=2**8)
def align_locally(n: int) -> Plan:
    letters, length = 24, 40

    def expected(query: Array, letters: int, texts: Array, length: int,
                 y: Array, n: int) -> Expected:  # fmt: skip
        rows, best = np.zeros((letters + 1, n), int32), np.zeros(n, int32)
        for letter in texts.reshape(length, n):
            above, rows = rows, np.zeros_like(rows)
            for j, wanted in enumerate(query):
                both = above[j] + np.where(letter == wanted, 2, -1)
                other = np.maximum(above[j + 1], rows[j]) - 1
                rows[j + 1] = np.maximum(np.maximum(both, 0), other)
            best = np.maximum(best, rows.max(0))
        return {4: best}

    query, texts = _letters(letters, 6), _letters(length * n, 7)
    arguments = query, int32(letters), texts, int32(length), zeros(n, int32), int32(n)
    return Plan(n // 128, 128, arguments, expected, EXACT)


@measured(SEEN, 2**14, 2**18, 2**23)
def bloom_insert(n: int) -> Plan:
    count = 16 * n

    def expected(keys: Array, bits: Array, mask: uint32, n: int) -> Expected:
        place = mixed(keys)
        step = mixed(place) | uint32(1)
        made = np.zeros(count, bool)
        for k in range(4):
            made[place + uint32(k) * step & mask] = True
        return {1: np.packbits(made, bitorder="little").view(uint32)}

    arguments = deciding(random_words(n, 8)), afresh(zeros(count // 32, uint32))
    return Plan(n // 256, 256, (*arguments, uint32(count - 1), int32(n)), expected, EXACT)


def _round_constants() -> Array:
    """Return SHA-256's: 32 bits behind the point of the cube roots of the first 64 primes."""
    primes = [p for p in range(2, 312) if all(p % q for q in range(2, math.isqrt(p) + 1))]
    return np.asarray([_cube_root(p << 96) & 0xFFFFFFFF for p in primes], uint32)


def _cube_root(value: int) -> int:
    """Return the whole part of a number's cube root."""
    low, high = 0, 1 << 36
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**3 <= value else (low, middle - 1)
    return low


@measured(SEEN, 2**12, 2**17, 2**21, small=2**8)
def sha256(n: int) -> Plan:
    def expected(messages: Array, constants: Array, y: Array, n: int) -> Expected:
        sent = messages.astype(">u4").reshape(n, 8)
        made = b"".join(hashlib.sha256(row.tobytes()).digest() for row in sent)
        return {2: np.frombuffer(made, ">u4").reshape(n, 8).T.ravel()}

    arguments = random_words(8 * n, 9), of(_round_constants, 64, uint32), zeros(8 * n, uint32)
    return Plan(n // 256, 256, (*arguments, int32(n)), expected, EXACT)


@measured(SEEN, 2**16, 2**20, 2**25, small=2**12)
def swiglu(n: int) -> Plan:
    width = 1024

    def given() -> Array:
        return (8 * uniform(2 * n).make() - 4).astype(float16)

    def expected(x: Array, y: Array, width: int) -> Expected:
        gate, value = x.reshape(-1, 2, 2 * width).astype(float64).transpose(1, 0, 2)
        return {1: (gate / (1 + np.exp(-gate)) * value).ravel()}

    arguments = deciding(of(given, 2 * n, float16)), zeros(n, float16), int32(width)
    return Plan((width // 256, n // (2 * width)), 256, arguments, expected, tolerance=1e-3)


@measured(SEEN, 32, 2048, 32768, small=64)
def append_to_pages(n: int) -> Plan:
    heads = 8
    words_each = heads * 64

    def slots() -> Array:
        return np.where(words(n, 10) % uint32(9) == 0, -1, permuted(n).make()).astype(int32)

    def expected(keys: Array, values: Array, slots: Array, *_: object) -> Expected:
        made = np.zeros((2, n, heads * 16, 4), uint32)
        kept = slots >= 0
        for pages, given in zip(made, (keys, values), strict=True):
            pages[slots[kept]] = given.reshape(n, -1, 4)[kept]
        key_pages = made[0].reshape(n // 16, 16, -1, 4).transpose(0, 2, 1, 3)
        return {3: key_pages.ravel(), 4: made[1].ravel()}

    given = random_words(words_each * n, 1), random_words(words_each * n, 2)
    pages = zeros(words_each * n, uint32), zeros(words_each * n, uint32)
    arguments = *given, deciding(of(slots, n, int32)), *pages, int32(heads)
    return Plan(n, 128, arguments, expected, EXACT)


@measured(SEEN, 128, 512, 2048, small=32)
def causal_attention(n: int) -> Plan:
    heads = 8

    def expected(queries: Array, keys: Array, values: Array, y: Array, n: int) -> Expected:
        q, k, v = (a.reshape(heads, n, 64).astype(float64) for a in (queries, keys, values))
        scores = q @ k.transpose(0, 2, 1) / 8
        scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(2, keepdims=True))
        return {3: (weights @ v / weights.sum(2, keepdims=True)).ravel()}

    size = 64 * heads * n
    given = [deciding(uniform(size, seed)) for seed in (1, 2, 3)]
    arguments = *given, zeros(size), int32(n)
    return Plan((n // 8, heads), (32, 8), arguments, expected, tolerance=1e-4)


@measured(SEEN, 2**18, 2**22, 2**26)
def dropout(n: int) -> Plan:
    seed, limit, scale = uint32(2024), uint32(0.8 * 2**32), float32(1.25)

    def expected(x: Array, y: Array, limit: uint32, scale: float32,
                 seed: uint32, n: int) -> Expected:  # fmt: skip
        low, key, second = uint64(0xFFFFFFFF), int(seed), 0
        a, b, c, d = np.arange(n // 4, dtype=uint64), *np.zeros((3, n // 4), uint64)
        for _ in range(10):
            first, other = uint64(0xD2511F53) * a, uint64(0xCD9E8D57) * c
            a, b = other >> uint64(32) ^ b ^ uint64(key), other & low
            c, d = first >> uint64(32) ^ d ^ uint64(second), first & low
            key, second = (key + 0x9E3779B9) % 2**32, (second + 0xBB67AE85) % 2**32
        return {1: np.where(np.stack([a, b, c, d], 1).ravel() < limit, scale * x, 0)}

    return Plan(n // 1024, 256, (uniform(n), zeros(n), limit, scale, seed, int32(n)), expected)


def _tree(n: int) -> tuple[Numbers, Numbers]:
    """Return parents and children of a tree with n leaves at permuted places."""
    inner = n - 1

    def places() -> Array:
        return np.r_[np.arange(inner), inner + permuted(n).make()].astype(int32)

    def children() -> Array:
        return places()[1:]  # children of node k are at 2 k + 1 and 2 k + 2

    def parents() -> Array:
        made = np.empty(2 * n - 1, int32)
        made[0] = -1
        made[children()] = np.repeat(np.arange(inner), 2)
        return made

    return deciding(of(parents, 2 * n - 1, int32)), deciding(of(children, 2 * inner, int32))


@measured(SEEN, 2**12, 2**17, 2**22, small=2**10)
def refit(n: int) -> Plan:
    def spans(seed: int, add: float) -> Numbers:
        def made() -> Array:
            return np.r_[np.zeros(n - 1), uniform(n, seed).make() + add].astype(float32)

        return afresh(of(made, 2 * n - 1, float32))

    def expected(parents: Array, children: Array, lows: Array, highs: Array,
                 visits: Array, n: int) -> Expected:  # fmt: skip
        low, high = lows.copy(), highs.copy()
        pairs, end = children.reshape(-1, 2), n - 1
        while end > 0:
            level = slice((end - 1) // 2, end)
            low[level], high[level] = low[pairs[level]].min(1), high[pairs[level]].max(1)
            end = level.start
        return {2: low, 3: high, 4: np.full(n - 1, 2)}

    arguments = *_tree(n), spans(2, 0), spans(3, 1), deciding(afresh(zeros(n - 1, int32))), int32(n)
    return Plan(n // 256, 256, arguments, expected)
