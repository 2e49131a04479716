"""Launches of `gathers.cu`."""

from __future__ import annotations

import numpy as np
from numpy import float32, int32

from .data import (
    Array,
    Numbers,
    below,
    deciding,
    of,
    permuted,
    random_bytes,
    skewed,
    uniform,
    words,
    zeros,
)
from .plans import SEEN, Plan, measured


@measured(SEEN, 2**13, 2**21, 2**26, small=2**12)
def gather_within(n: int) -> Plan:
    count = 2**22 if n >= 2**13 else 2**13
    arguments = uniform(n), deciding(below(n, count, 2)), zeros(count), int32(count)
    return Plan(count // 256, 256, arguments, lambda x, places, y, n: {2: x[places]})


@measured(SEEN, 2**18, 2**21, 2**24)
def scatter(n: int) -> Plan:
    def expected(x: Array, places: Array, y: Array, n: int) -> dict[int, Array]:
        made = np.zeros(n, float32)
        made[places] = x
        return {2: made}

    return Plan(n // 256, 256, (uniform(n), deciding(permuted(n)), zeros(n), int32(n)), expected)


@measured(SEEN, 2**12, 2**16, 2**20, small=256)
def embedding(n: int) -> Plan:
    rows = 2**18

    def expected(table: Array, tokens: Array, y: Array, n: int) -> dict[int, Array]:
        return {2: table.reshape(rows, 64)[tokens].ravel()}

    arguments = uniform(64 * rows), deciding(skewed(rows, n, 2)), zeros(64 * n), int32(n)
    return Plan(n // 8, (32, 8), arguments, expected)


def _matrix(rows: int, longest: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return begins, columns, values and the vector: rows of 1 to `longest`, at random."""

    def begins() -> Array:
        lengths = 1 + (words(rows, 5) & np.uint32(longest - 1)).astype(np.int64)
        return np.concatenate([[0], np.cumsum(lengths)]).astype(int32)

    count = int(begins()[-1])
    return (
        deciding(of(begins, rows + 1, int32)),
        deciding(below(rows, count, 6)),
        uniform(count, 1),
        uniform(rows, 2),
    )


def _product(
    begins: Array, columns: Array, values: Array, x: Array, *_: object
) -> dict[int, Array]:
    return {4: np.add.reduceat(values.astype(np.float64) * x[columns], begins[:-1])}


@measured(SEEN, 2**14, 2**17, 2**20)
def spmv_by_threads(n: int) -> Plan:
    return Plan(n // 128, 128, (*_matrix(n, 16), zeros(n), int32(n)), _product)


@measured(SEEN, 2**12, 2**15, 2**18)
def spmv_by_warps(n: int) -> Plan:
    return Plan(n // 4, (32, 4), (*_matrix(n, 64), zeros(n), int32(n)), _product)


@measured(SEEN, 2**16, 2**20, 2**23)
def binary_search(n: int) -> Plan:
    def table() -> Array:
        return np.sort(below(2**30, n, 3).make())

    wanted = min(n, 2**20)

    def expected(table: Array, wanted: Array, y: Array, size: int, n: int) -> dict[int, Array]:
        return {2: np.searchsorted(table, wanted)}

    given = deciding(of(table, n, int32)), deciding(below(2**30, wanted, 4))
    return Plan(
        wanted // 256, 256, (*given, zeros(wanted, int32), int32(n), int32(wanted)), expected
    )


def _slots(size: int) -> Array:
    """Return a table that is half full, by linear probing: key and value, or -1."""
    keys = 2 * np.arange(size // 2, dtype=np.int64)
    homes = ((keys * 2654435769 & 0xFFFFFFFF) >> 7) & (size - 1)
    order = np.argsort(homes, kind="stable")
    places = np.maximum.accumulate(homes[order] - np.arange(len(order))) + np.arange(len(order))
    table = np.full((size, 2), -1, int32)
    fits = places < size
    table[places[fits], 0] = keys[order][fits]
    table[places[fits], 1] = keys[order][fits] // 2 + 1
    free = np.flatnonzero(table[:, 0] < 0)[: np.count_nonzero(~fits)]
    table[free, 0] = keys[order][~fits]
    table[free, 1] = keys[order][~fits] // 2 + 1
    return table.ravel()


@measured(SEEN, 2**16, 2**20, 2**23)
def hash_lookup(n: int) -> Plan:
    wanted = min(n, 2**20)

    def expected(slots: Array, keys: Array, y: Array, mask: int, n: int) -> dict[int, Array]:
        return {2: np.where(keys % 2, -1, keys // 2 + 1)}

    slots = deciding(of(lambda: _slots(n), 2 * n, int32))
    arguments = (
        slots,
        deciding(below(n, wanted, 4)),
        zeros(wanted, int32),
        int32(n - 1),
        int32(wanted),
    )
    return Plan(wanted // 256, 256, arguments, expected)


@measured(SEEN, 512, 1024, 4096, small=64)
def rotate_picture(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> dict[int, Array]:
        r, c = np.mgrid[:n, :n].astype(float32)
        dx, dy, half = (
            c - float32(0.5) * float32(n),
            r - float32(0.5) * float32(n),
            float32(0.5) * float32(n),
        )
        u = float32(0.8660254) * dx - float32(0.5) * dy + half
        v = float32(0.5) * dx + float32(0.8660254) * dy + half
        left, top = np.floor(u).astype(int), np.floor(v).astype(int)
        inside = (left >= 0) & (top >= 0) & (left < n - 1) & (top < n - 1)
        left, top, a, b = np.where(inside, (left, top, u - left, v - top), 0)
        left, top, x = left.astype(int), top.astype(int), x.reshape(n, n)
        upper = (1 - a) * x[top, left] + a * x[top, left + 1]
        lower = (1 - a) * x[top + 1, left] + a * x[top + 1, left + 1]
        return {1: np.where(inside, (1 - b) * upper + b * lower, 0)}

    arguments = uniform(n * n), zeros(n * n), int32(n)
    return Plan((n // 32, n // 8), (32, 8), arguments, expected, tolerance=1e-3)


@measured(SEEN, 2**18, 2**22, 2**25)
def bit_reversal(n: int) -> Plan:
    bits = n.bit_length() - 1

    def expected(x: Array, y: Array, bits: int) -> dict[int, Array]:
        made = x.copy()
        for low in range(bits // 2):
            high = bits - 1 - low
            i = np.arange(n)
            swapped = (i & ~((1 << low) | (1 << high))) | ((i >> low & 1) << high)
            swapped |= (i >> high & 1) << low
            made = made[swapped]
        return {1: made}

    return Plan(n // 256, 256, (uniform(n), zeros(n), int32(bits)), expected)


@measured(SEEN, 2**18, 2**22, 2**24)
def constant_lookup(n: int) -> Plan:
    def expected(x: Array, y: Array, n: int) -> dict[int, Array]:
        return {1: curve.make()[x]}

    curve = below(2**16, 256, 9)
    arguments = deciding(random_bytes(n)), zeros(n, int32), int32(n)
    return Plan(n // 256, 256, arguments, expected, constants=(("curve", curve),))


@measured(SEEN, 2**14, 2**17, 2**20, small=512)
def constant_polynomial(n: int) -> Plan:
    coefficients = uniform(2048, 9)

    def expected(x: Array, y: Array, n: int) -> dict[int, Array]:
        total = np.zeros(n, np.float64)
        for c in coefficients.make():
            total = total * x + c
        return {1: total}

    given = (("coefficients", coefficients),)
    arguments = uniform(n), zeros(n), int32(n)
    return Plan(n // 256, 256, arguments, expected, tolerance=1e-3, constants=given)
