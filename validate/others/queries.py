"""Launches of `queries.cu`."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy import float64, int8, int16, int32, int64, uint8, uint32, uint64

from .data import (
    Array,
    Numbers,
    afresh,
    below,
    deciding,
    of,
    random_words,
    uniform,
    words,
    zeros,
)
from .plans import SEEN, Expected, Plan, measured

EXACT = 0.0


def _begins(sizes: Array) -> Array:
    """Return where each of some groups begins, and where the last one ends."""
    return np.r_[0, np.cumsum(sizes)].astype(int32)


@measured(SEEN, 2**14, 2**18, 2**22)
def count_distinct(n: int) -> Plan:
    def expected(keys: Array, *_: object) -> Expected:
        return {3: np.asarray([len(np.unique(keys))])}

    def keys() -> Array:
        return words(n, 1) & uint32(n - 1)

    table = of(lambda: np.full(2 * n, 0xFFFFFFFF, uint32), 2 * n, uint32)
    given = deciding(of(keys, n, uint32)), deciding(afresh(table))
    arguments = *given, uint32(2 * n - 1), afresh(zeros(1, int32)), int32(n)
    return Plan(n // 256, 256, arguments, expected, EXACT)


def _prices(n: int) -> tuple[Array, Array]:
    """Return how many digits stand before the point of each price, and whether it is negative."""
    return (1 + words(n, 2) % uint32(6)).astype(int32), words(n, 3) % uint32(9) == 0


@measured(SEEN, 2**12, 2**16, 2**20)
def parse_prices(n: int) -> Plan:
    digits, negative = _prices(n)
    offsets = _begins(digits + 3 + negative)
    length = int(offsets[-1])

    def text() -> Array:
        made = words(length, 4).astype(uint8) % uint8(10) + uint8(ord("0"))
        made[offsets[1:] - 3] = ord(".")
        made[offsets[:-1][negative]] = ord("-")
        return made

    def expected(text: Array, offsets: Array, *_: object) -> Expected:
        value, made = np.zeros(n, int64), np.where(negative, -1, 1)
        for place in range(9):
            at = offsets[:-1] + negative + place
            letter = text[np.minimum(at, length - 1)]
            counts = (at < offsets[1:]) & (letter != ord("."))
            value = np.where(counts, value * 10 + letter - ord("0"), value)
        return {2: made * value}

    given = deciding(of(text, length, int8)), deciding(of(lambda: offsets, n + 1, int32))
    return Plan(n // 256, 256, (*given, zeros(n, int64), int32(n)), expected, EXACT)


@measured(SEEN, 2**16, 2**20, 2**24)
def unpack_bits(n: int) -> Plan:
    bits = 11

    def expected(packed: Array, dictionary: Array, *_: object) -> Expected:
        bit = np.arange(n) * bits
        both = packed[bit >> 5].astype(uint64) | packed[(bit >> 5) + 1].astype(uint64) << uint64(32)
        return {2: dictionary[both >> (bit & 31).astype(uint64) & uint64(2**bits - 1)]}

    given = deciding(random_words(n * bits // 32 + 1, 5)), deciding(below(2**20, 2**bits, 6))
    arguments = *given, zeros(n, int32), int32(bits), int32(n)
    return Plan(min(n // 256, 2112), 256, arguments, expected, EXACT)


@measured(SEEN, 2**16, 2**20, 2**24)
def delta_decode(n: int) -> Plan:
    def deltas() -> Array:
        return words(n // 4, 7).view(int8)

    def bases() -> Array:
        return words(n // 1024, 8).astype(int64) << 8

    def expected(deltas: Array, bases: Array, out: Array) -> Expected:
        sums = np.cumsum(deltas.reshape(-1, 1024), 1, dtype=int64)
        return {2: (bases[:, None] + sums).ravel()}

    given = of(deltas, n, int8), of(bases, n // 1024, int64)
    return Plan(n // 1024, 256, (*given, zeros(n, int64)), expected, EXACT)


@cache
def _graph(n: int) -> tuple[Array, Array]:
    """Return the beginnings of the nodes' adjacency lists, and the lists: nodes a little behind."""
    sizes = (2 + words(n, 9) % uint32(14)).astype(int32)
    sizes[max(0, n - 128) :] = 0
    begins = _begins(sizes)
    steps = 1 + (words(int(begins[-1]), 10) & uint32(7)).astype(int32)
    whole = np.r_[0, np.cumsum(steps)]
    first = np.repeat(np.arange(n) - whole[begins[:-1]], sizes)
    return begins, (first + whole[1:]).astype(int32)


@measured(SEEN, 2**12, 2**15, 2**18, small=2**10)
def count_triangles(n: int) -> Plan:
    begins, targets = _graph(n)
    edges = len(targets)

    def sources() -> Array:
        return np.repeat(np.arange(n, dtype=int32), np.diff(begins))

    def expected(sources: Array, targets: Array, offsets: Array, *_: object) -> Expected:
        known = sources.astype(int64) * n + targets
        sizes = np.diff(offsets)[targets]
        edge = np.repeat(np.arange(edges), sizes)
        places = np.arange(len(edge)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        third = targets[offsets[targets[edge]] + places]
        closed = np.isin(sources[edge].astype(int64) * n + third, known)
        return {3: np.asarray([np.count_nonzero(closed)])}

    lists = of(lambda: targets, edges, int32), of(lambda: begins, n + 1, int32)
    given = map(deciding, (of(sources, edges, int32), *lists))
    arguments = *given, afresh(zeros(1, uint64)), int32(edges)
    return Plan(-(-edges // 256), 256, arguments, expected, EXACT)


@measured(SEEN, 2**16, 2**20, 2**24)
def relax_edges(n: int) -> Plan:
    nodes = n // 8

    def dist() -> Array:
        known = words(nodes, 11) % uint32(3) != 0
        return np.where(known, words(nodes, 12) & uint32(0xFFFF), 2**31 - 1).astype(int32)

    def expected(
        sources: Array, to: Array, weight: Array, dist: Array, later: Array, m: int
    ) -> Expected:
        known = dist[sources] != 2**31 - 1
        made = later.copy()
        np.minimum.at(made, to[known], (dist[sources] + weight)[known])
        return {4: made}

    edges = deciding(below(nodes, n, 13)), deciding(below(nodes, n, 14)), below(1024, n, 15)
    known = deciding(of(dist, nodes, int32)), afresh(of(dist, nodes, int32))
    return Plan(n // 256, 256, (*edges, *known, int32(n)), expected, EXACT)


@measured(SEEN, 2**16, 2**20, 2**23)
def coo_product(n: int) -> Plan:
    rows = n // 8

    def places() -> Array:
        return np.sort((words(n, 16) & uint32(rows - 1)).astype(int32))

    def near() -> Array:
        return ((places() + (words(n, 17) & uint32(1023)).astype(int32)) % rows).astype(int32)

    def doubles(length: int, seed: int) -> Numbers:
        return of(lambda: uniform(length, seed).make().astype(float64), length, float64)

    def expected(
        rows_of: Array, columns: Array, values: Array, x: Array, y: Array, nnz: int
    ) -> Expected:
        return {4: np.bincount(rows_of, values * x[columns], rows)}

    given = deciding(of(places, n, int32)), deciding(of(near, n, int32)), doubles(n, 1)
    arguments = *given, doubles(rows, 2), afresh(zeros(rows, float64)), int32(n)
    return Plan(n // 256, 256, arguments, expected, tolerance=1e-10)


@measured(SEEN, 2**10, 2**14, 2**18, small=2**8)
def bsr_product(n: int) -> Plan:
    sizes = (3 + words(n, 18) % uint32(8)).astype(int32)
    begins = _begins(sizes)
    blocks = int(begins[-1])

    def columns() -> Array:
        own = np.repeat(np.arange(n), sizes)
        return ((own + (words(blocks, 19) & uint32(255)).astype(int32)) % n).astype(int32)

    def expected(offsets: Array, columns: Array, values: Array, x: Array, *_: object) -> Expected:
        parts = np.einsum(
            "bij,bj->bi", values.reshape(-1, 4, 4).astype(float64), x.reshape(n, 4)[columns]
        )
        return {4: np.add.reduceat(parts, offsets[:-1]).ravel()}

    lists = deciding(of(lambda: begins, n + 1, int32)), deciding(of(columns, blocks, int32))
    arguments = *lists, uniform(16 * blocks, 1), uniform(4 * n, 2), zeros(4 * n), int32(n)
    return Plan(n // 16, 256, arguments, expected)


@measured(SEEN, 2**14, 2**19, 2**24, small=2**10)
def split_sort(n: int) -> Plan:
    def keys() -> Array:
        return words(n // 2, 20).view(np.uint16)

    def expected(keys: Array) -> Expected:
        return {0: np.sort(keys.reshape(-1, 256), 1).ravel()}

    return Plan(n // 256, 256, (afresh(deciding(of(keys, n, np.uint16))),), expected, EXACT)


@measured(SEEN, 2**16, 2**20, 2**24)
def date_parts(n: int) -> Plan:
    def days() -> Array:
        return (words(n, 21) % uint32(80000)).astype(int32) - int32(30000)

    def expected(days: Array, *_: object) -> Expected:
        dates = days.astype("datetime64[D]")
        months = dates.astype("datetime64[M]")
        years = months.astype("datetime64[Y]")
        return {
            1: 1970 + years.astype(int),
            2: 1 + (months - years).astype(int),
            3: 1 + (dates - months).astype(int),
        }

    made = zeros(n, int16), zeros(n, uint8), zeros(n, uint8)
    return Plan(n // 256, 256, (deciding(of(days, n, int32)), *made, int32(n)), expected, EXACT)


@measured(SEEN, 2**16, 2**20, 2**24)
def count_kmers(n: int) -> Plan:
    def genome() -> Array:
        return np.frombuffer(b"ACTG", uint8)[words(n + 8, 22) & uint32(3)]

    def expected(genome: Array, *_: object) -> Expected:
        codes: Array = np.zeros(n, uint32)
        for k in range(8):
            codes = codes << uint32(2) | genome[k : n + k] >> 1 & uint32(3)
        return {1: np.bincount(codes, minlength=2**16)}

    arguments = deciding(of(genome, n + 8, uint8)), afresh(zeros(2**16, uint32)), int32(n)
    return Plan(n // 2048, 256, arguments, expected, EXACT)


@measured(SEEN, 2**14, 2**18, 2**21)
def btree_lookup(n: int) -> Plan:
    levels = 5
    count = 16**levels

    def nodes() -> Array:
        made = np.zeros(((count - 1) // 15, 16), int32)
        for level in range(levels):
            first, span = (16**level - 1) // 15, count // 16**level
            ranks = np.arange(16**level)[:, None] * span + np.arange(1, 16) * (span // 16)
            made[first : first + 16**level, :15] = 3 * ranks
        return made.ravel()

    def wanted() -> Array:
        return (words(n, 23) % uint32(3 * count)).astype(int32)

    def expected(nodes: Array, wanted: Array, *_: object) -> Expected:
        return {2: wanted // 3}

    tree = deciding(of(nodes, 16 * ((count - 1) // 15), int32))
    arguments = tree, deciding(of(wanted, n, int32)), zeros(n, int32), int32(levels), int32(n)
    return Plan(n // 256, 256, arguments, expected, EXACT)
