"""Launches of `warehouse.cu`."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy import float16, float32, float64, int32, int64, uint8, uint32, uint64

from .data import Array, Numbers, afresh, deciding, of, skewed, uniform, words, zeros
from .plans import LAST, Expected, Plan, measured

EXACT = 0.0


def _signed(length: int, seed: int) -> Numbers:
    """Return floats around 0."""
    return of(lambda: 2 * uniform(length, seed).make() - float32(1), length, float32)


def _begins(sizes: Array) -> Array:
    """Return where each of some groups begins, and where the last one ends."""
    return np.r_[0, np.cumsum(sizes)].astype(int32)


@cache
def _run_ends(n: int) -> Array:
    """Return where runs end that hold n values: most are short, some of dozens."""
    sizes = 1 + (64 * uniform(n // 8, 1).make().astype(float64) ** 4).astype(int32)
    ends = np.cumsum(sizes)
    ends = ends[: np.searchsorted(ends, n) + 1].astype(int32)
    ends[-1] = n
    return ends


@measured(LAST, 2**16, 2**20, 2**24)
def expand_runs(n: int) -> Plan:
    runs = len(_run_ends(n))

    def values() -> Array:
        return words(runs, 2).view(int32)

    def expected(ends: Array, values: Array, *_: object) -> Expected:
        return {2: values.repeat(np.diff(ends, prepend=0))}

    given = deciding(of(lambda: _run_ends(n), runs, int32)), of(values, runs, int32)
    return Plan(n // 1024, 256, (*given, zeros(n, int32), int32(runs)), expected, EXACT)


@cache
def _varints(count: int) -> tuple[Array, Array]:
    """Return numbers, and how many bytes each has: most one, some two or four."""
    sizes = np.asarray([1] * 12 + [2] * 3 + [4])[words(count, 3) & uint32(15)]
    bits = 7 * sizes
    return words(count, 4) & ((1 << bits) - 1) | (1 << bits - 7), sizes


@measured(LAST, 2**8, 2**12, 2**17, small=2**8)
def decode_varints(n: int) -> Plan:
    numbers, sizes = _varints(64 * n)
    ends = np.cumsum(sizes)
    begins, total = (ends - sizes).astype(int32), int(ends[-1])

    def text() -> Array:
        made = np.zeros(total, uint8)
        for k in range(4):
            has = sizes > k
            more = np.where(sizes[has] > k + 1, 128, 0)
            made[begins[has] + k] = numbers[has] >> 7 * k & 127 | more
        return made

    def expected(_bytes: Array, _begins: Array, firsts: Array, *_: object) -> Expected:
        steps = (numbers.astype(int64) >> 1) ^ -(numbers.astype(int64) & 1)
        return {3: (firsts[:, None] + steps.reshape(n, 64).cumsum(1)).ravel()}

    given = deciding(of(text, total, uint8)), deciding(of(lambda: begins[::64].copy(), n, int32))
    firsts = of(lambda: words(n, 5).astype(int64), n, int64)
    arguments = *given, firsts, zeros(64 * n, int64), int32(n)
    return Plan(-(-n // 128), 128, arguments, expected, EXACT)


POOL = 3000


@cache
def _pool() -> tuple[Array, Array]:
    """Return texts of three to eighteen letters, one behind the other, and where each begins."""
    begins = _begins(3 + (words(POOL, 6) & uint32(15)))
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz .-_'&", uint8)
    return letters[words(int(begins[-1]), 7) & uint32(31)], begins


@measured(LAST, 2**14, 2**18, 2**21, small=2**12)
def group_strings(n: int) -> Plan:
    slots = 2**14
    pool, starts = _pool()
    which = skewed(POOL, n, 8).make()
    sizes = np.diff(starts)[which]
    begins = _begins(sizes)
    total = int(begins[-1])

    def text() -> Array:
        return pool[np.arange(total) + (starts[which] - begins[:-1]).repeat(sizes)]

    def expected(*_: object) -> Expected:
        texts = {pool[starts[k] : starts[k + 1]].tobytes() for k in np.unique(which)}
        return {4: np.asarray([len(texts)])}

    given = deciding(of(text, total, uint8)), deciding(of(lambda: begins, n + 1, int32))
    owners = afresh(deciding(of(lambda: np.full(slots, -1, int32), slots, int32)))
    tallies = afresh(zeros(slots, int32)), afresh(zeros(1, int32))
    arguments = *given, owners, *tallies, int32(slots - 1), int32(n)
    return Plan(n // 256, 256, arguments, expected, EXACT)


@measured(LAST, 16, 256, 2048, small=2)
def select_kth(n: int) -> Plan:
    width, k = 8192, 64

    def expected(rows: Array, *_: object) -> Expected:
        return {1: np.sort(rows.reshape(n, width), 1)[:, -k]}

    arguments = deciding(_signed(n * width, 9)), zeros(n), int32(k)
    return Plan(n, 512, arguments, expected, EXACT)


@measured(LAST, 2**10, 2**14, 2**17, small=2**8)
def candles(n: int) -> Plan:
    sizes = (200 * uniform(n, 10).make().astype(float64) ** 3).astype(int32)
    begins = _begins(sizes)
    total = int(begins[-1])

    def volumes() -> Array:
        return (words(total, 12) >> uint32(4)).astype(int32)

    def expected(prices: Array, volumes: Array, begins: Array, *_: object) -> Expected:
        made = np.zeros((n, 4), float32)
        has = sizes > 0
        first, last = begins[:-1][has], begins[1:][has] - 1
        high, low = np.maximum.reduceat(prices, first), np.minimum.reduceat(prices, first)
        made[has] = np.stack([prices[first], high, low, prices[last]], 1)
        sums = np.r_[0, volumes.astype(int64).cumsum()]
        return {3: made.ravel(), 4: np.diff(sums[begins])}

    given = uniform(total, 11), of(volumes, total, int32)
    lists = deciding(of(lambda: begins, n + 1, int32))
    arguments = *given, lists, zeros(4 * n), zeros(n, int64), int32(n)
    return Plan(n // 8, 256, arguments, expected, EXACT)


@measured(LAST, 2**8, 2**12, 2**16, small=2**6)
def range_sums(n: int) -> Plan:
    order, levels = 64, 3
    count = order**levels

    @cache
    def keys() -> Array:
        made = np.sort((words(count, 13) >> uint32(2)).astype(int32))
        made[0] = -1
        return made

    def nodes() -> Array:
        return np.concatenate([keys()[:: order**k] for k in (2, 1, 0)])

    def lows() -> Array:
        return (words(n, 14) >> uint32(2)).astype(int32)

    def highs() -> Array:
        return lows() + (words(n, 15) >> uint32(11)).astype(int32)

    def expected(_nodes: Array, values: Array, lows: Array, highs: Array, *_: object) -> Expected:
        sums = np.r_[0, values.astype(float64).cumsum()]
        begin = np.searchsorted(keys(), lows, "right") - 1
        return {4: sums[np.searchsorted(keys(), highs, "right")] - sums[begin]}

    tree = deciding(of(nodes, order + order**2 + count, int32)), deciding(uniform(count, 16))
    ranges = deciding(of(lows, n, int32)), deciding(of(highs, n, int32))
    arguments = *tree, *ranges, zeros(n), int32(levels)
    return Plan(n, 64, arguments, expected)


@measured(LAST, 2**14, 2**18, 2**21)
def sampled_product(n: int) -> Plan:
    nodes, width = 2**16, 64

    def sources() -> Array:
        return np.sort((words(n, 17) & uint32(nodes - 1)).astype(int32))

    def expected(
        sources: Array, targets: Array, a: Array, b: Array, weights: Array, *_: object
    ) -> Expected:
        made = np.empty(n)
        for begin in range(0, n, 2**16):
            part = slice(begin, begin + 2**16)
            left = a.reshape(nodes, width)[sources[part]].astype(float64)
            made[part] = (left * b.reshape(nodes, width)[targets[part]]).sum(1)
        return {5: weights * made}

    edges = deciding(of(sources, n, int32)), deciding(skewed(nodes, n, 18))
    rows = _signed(nodes * width, 19), _signed(nodes * width, 20)
    arguments = *edges, *rows, uniform(n, 21), zeros(n), int32(n)
    return Plan(n // 16, 256, arguments, expected)


@measured(LAST, 64, 1024, 16384, small=4)
def interact_features(n: int) -> Plan:
    features, width = 27, 64
    size = n * features * width
    pairs = features * (features - 1) // 2

    def vectors() -> Array:
        return _signed(size, 22).make().astype(float16)

    def expected(vectors: Array, *_: object) -> Expected:
        rows = vectors.reshape(n, features, width).astype(float32)
        products = rows @ rows.transpose(0, 2, 1)
        i, j = np.tril_indices(features, -1)
        return {1: np.concatenate([rows[:, 0], products[:, i, j]], 1).ravel()}

    arguments = of(vectors, size, float16), zeros(n * (width + pairs), float16)
    return Plan(n, 128, arguments, expected, tolerance=2e-3)


@cache
def _bands() -> tuple[Array, Array, Array]:
    """Return triangles of 40 bands: heights, where each begins in a spectrum and in the heights."""
    corners = np.rint(2 * 64 ** (np.arange(42) / 41) * np.arange(1, 43) ** 0.18 * 1.03).astype(int)
    corners = np.maximum.accumulate(np.minimum(corners + np.arange(42), 256))
    made = []
    for low, middle, high in zip(corners, corners[1:], corners[2:], strict=False):
        made.append(np.interp(np.arange(low, high + 1), [low, middle, high], [0, 1, 0]))
    return np.concatenate(made).astype(float32), corners[:40], _begins(np.array([*map(len, made)]))


@measured(LAST, 2**8, 2**12, 2**16, small=2**6)
def mel_energies(n: int) -> Plan:
    bins, bands = 257, 40
    heights, starts, offsets = _bands()

    def expected(
        spectra: Array, weights: Array, starts: Array, offsets: Array, *_: object
    ) -> Expected:
        matrix = np.zeros((bins, bands))
        for k, start in enumerate(starts):
            part = weights[offsets[k] : offsets[k + 1]]
            matrix[start : start + len(part), k] = part
        return {4: np.log(spectra.reshape(n, bins).astype(float64) @ matrix + 1e-6).ravel()}

    lists = (
        of(lambda: heights, len(heights), float32),
        deciding(of(lambda: starts.astype(int32), bands, int32)),
        deciding(of(lambda: offsets, bands + 1, int32)),
    )
    arguments = uniform(n * bins, 23), *lists, zeros(n * bands), int32(n)
    return Plan(min(n, 528), 128, arguments, expected)


@measured(LAST, 256, 1024, 3840, small=256)
def motion_search(n: int) -> Plan:
    width, height = n, n * 9 // 16

    def moved() -> Array:
        """Return how far each block of 16 x 16 has come, to the right and down."""
        blocks = words(width * height // 256, 24).reshape(1, height // 16, width // 16)
        both = np.concatenate([blocks & uint32(7), blocks >> uint32(8) & uint32(7)]).astype(int32)
        return (both - 4).repeat(16, 1).repeat(16, 2)

    @cache
    def last() -> Array:
        down, across = np.indices((height, width), int32)
        waves = 60 * np.sin(across / 7) + 60 * np.cos(down / 5 + across / 31) + 120
        noise = (words(width * height, 25) & uint32(7)).reshape(height, width)
        return (waves + noise).astype(uint8)

    def now() -> Array:
        down, across = np.indices((height, width), int32)
        right, below = moved()
        rows, columns = np.clip(down + below, 0, height - 1), np.clip(across + right, 0, width - 1)
        noise = (words(width * height, 26) & uint32(3)).reshape(height, width)
        return (last()[rows, columns] + noise).astype(uint8)

    def expected(now: Array, last: Array, *_: object) -> Expected:
        padded = np.pad(last.reshape(height, width).astype(int32), 8, "edge")
        best = np.full((height // 16, width // 16), 2**31 - 1)
        for t in range(256):
            part = padded[t // 16 :][:height, t % 16 :][:, :width]
            off = abs(part - now.reshape(height, width))
            sums = off.reshape(height // 16, 16, width // 16, 16).sum((1, 3))
            best = np.minimum(best, sums * 256 + t)
        return {2: best.ravel()}

    pixels = width * height
    given = of(lambda: now().ravel(), pixels, uint8), of(lambda: last().ravel(), pixels, uint8)
    made = zeros(width * height // 256, uint32)
    arguments = *given, made, int32(width), int32(height)
    return Plan((width // 16, height // 16), 256, arguments, expected, EXACT)


def _with_length(number: int) -> bytes:
    """Return the bytes of a length after a token, for lengths beyond its half byte."""
    return b"" if number < 15 else b"\xff" * ((number - 15) // 255) + bytes([(number - 15) % 255])


def _packed(text: bytes) -> bytes:
    """Return a text as a block of LZ4, by the first match that is found."""
    made = bytearray()
    seen: dict[bytes, int] = {}
    begin = at = 0
    while at < len(text) - 12:
        found = seen.get(text[at : at + 4])
        seen[text[at : at + 4]] = at
        if found is None:
            at += 1
            continue
        length = 4
        while at + length < len(text) - 5 and text[found + length] == text[at + length]:
            length += 1
        literals = text[begin:at]
        made.append(min(len(literals), 15) << 4 | min(length - 4, 15))
        made += _with_length(len(literals)) + literals + (at - found).to_bytes(2, "little")
        made += _with_length(length - 4)
        at = begin = at + length
    literals = text[begin:]
    made.append(min(len(literals), 15) << 4)
    return bytes(made + _with_length(len(literals)) + literals)


SIZE, TEXTS = 4096, 64


@cache
def _texts() -> list[bytes]:
    """Return pieces of a log, one of zeros among them."""
    numbers = words(TEXTS * 128 * 3, 27).reshape(TEXTS, 128, 3).tolist()
    verbs = "GET", "GET", "GET", "POST", "HEAD"
    made = []
    for text in numbers:
        lines = (
            f'10.0.{a % 7}.{a % 251} "{verbs[b % 5]} /v{b % 3}/items/{b % 4093}" {200 + c % 5}\n'
            for a, b, c in text
        )
        made.append("".join(lines).encode()[:SIZE])
    return [*made[:-1], bytes(SIZE)]


@measured(LAST, 2**6, 2**10, 2**14, small=2**3)
def decompress_blocks(n: int) -> Plan:
    which = words(n, 28) % uint32(TEXTS)
    packed = [_packed(text) for text in _texts()]
    begins = _begins(np.array([*map(len, packed)])[which])
    total = int(begins[-1])

    def text() -> Array:
        return np.frombuffer(b"".join(packed[k] for k in which), uint8)

    def expected(*_: object) -> Expected:
        return {2: np.frombuffer(b"".join(_texts()[k] for k in which), uint8)}

    given = deciding(of(text, total, uint8)), deciding(of(lambda: begins, n + 1, int32))
    arguments = *given, zeros(n * SIZE, uint8), int32(SIZE), int32(n)
    return Plan(n // 4, (32, 4), arguments, expected, EXACT)


@measured(LAST, 2**16, 2**20, 2**24)
def hyperloglog(n: int) -> Plan:
    registers = 4096

    def keys() -> Array:
        return (words(n, 29) % uint32(n // 4)).astype(uint64) * uint64(1_000_003)

    def expected(keys: Array, *_: object) -> Expected:
        h = keys * uint64(0x9E3779B97F4A7C15)
        h = (h ^ h >> uint64(32)) * uint64(0xD6E8FEB86659FD93)
        h ^= h >> uint64(32)
        _parts, bits = np.frexp((h & uint64(2**52 - 1)).astype(float64))
        made = np.zeros(registers, int32)
        np.maximum.at(made, (h >> uint64(52)).astype(int32), 53 - bits)
        return {1: made}

    kept = afresh(deciding(zeros(registers, int32)))
    arguments = deciding(of(keys, n, uint64)), kept, int32(n)
    return Plan(min(n // 512, 264), 512, arguments, expected, EXACT)
