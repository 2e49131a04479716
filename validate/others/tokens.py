"""Launches of `tokens.cu`."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy import float16, float32, float64, int8, int32, uint8, uint16, uint32

from .data import (
    Array,
    Numbers,
    afresh,
    deciding,
    of,
    permuted,
    random_words,
    skewed,
    uniform,
    words,
    zeros,
)
from .plans import SEEN, Expected, Plan, measured

EXACT = 0.0


def _signed(length: int, seed: int, most: float = 1.0) -> Numbers:
    """Return floats around 0."""

    def made() -> Array:
        return float32(most) * (2 * uniform(length, seed).make() - float32(1))

    return of(made, length, float32)


def _halves(length: int, seed: int, most: float = 1.0) -> Numbers:
    """Return halves around 0."""
    return of(lambda: _signed(length, seed, most).make().astype(float16), length, float16)


def _begins(sizes: Array) -> Array:
    """Return where each of some groups begins, and where the last one ends."""
    return np.r_[0, np.cumsum(sizes)].astype(int32)


@measured(SEEN, 2**10, 2**14, 2**17, small=2**7)
def route_tokens(n: int) -> Plan:
    def expected(logits: Array, *_: object) -> Expected:
        rows = logits.reshape(n, 64)
        both = np.argsort(-rows, 1, kind="stable")[:, :2]
        best = np.take_along_axis(rows, both, 1).astype(float64)
        first = 1 / (1 + np.exp(best[:, 1] - best[:, 0]))
        counts = np.bincount(both.ravel(), minlength=64)
        return {1: both.ravel(), 2: np.stack([first, 1 - first], 1).ravel(), 3: counts}

    made = zeros(2 * n, int32), zeros(2 * n), afresh(zeros(64, int32))
    arguments = deciding(_signed(64 * n, 1, 4.0)), *made, int32(n)
    return Plan(n // 8, (32, 8), arguments, expected)


@measured(SEEN, 2**8, 2**12, 2**15, small=2**6)
def dispatch_rows(n: int) -> Plan:
    width = 1024

    def slots() -> Array:
        dropped = words(2 * n, 2) % uint32(12) == 0
        return np.where(dropped, -1, permuted(2 * n).make()).astype(int32)

    def expected(x: Array, slots: Array, y: Array) -> Expected:
        made = np.zeros((2 * n, width // 2), uint32)
        kept = slots >= 0
        made[slots[kept]] = x.reshape(n, -1).repeat(2, 0)[kept]
        return {2: made.ravel()}

    given = random_words(n * width // 2, 3), deciding(of(slots, 2 * n, int32))
    return Plan((n, 2), 128, (*given, zeros(n * width, uint32)), expected, EXACT)


@measured(SEEN, 4, 32, 128, small=2)
def paged_attention(n: int) -> Plan:
    heads, page, most = 8, 16, 512
    pages = most // page
    size = n * pages * heads * page * 64
    scale = float32(0.125)

    def lengths() -> Array:
        return (32 + words(n, 4) % uint32(most - 31)).astype(int32)

    def expected(
        queries: Array, keys: Array, values: Array, tables: Array, lengths: Array, *_: object
    ) -> Expected:
        made = np.zeros((n, heads, 64))
        stored = keys.reshape(-1, heads, page, 64), values.reshape(-1, heads, page, 64)
        for s, length in enumerate(lengths):
            held = (
                part[tables[s * pages :][:pages]].transpose(1, 0, 2, 3).reshape(heads, -1, 64)
                for part in stored
            )
            key, value = (part[:, :length].astype(float64) for part in held)
            score = np.einsum("hd,hkd->hk", queries.reshape(n, heads, 64)[s], key) * scale
            weight = np.exp(score - score.max(1, keepdims=True))
            made[s] = np.einsum("hk,hkd->hd", weight / weight.sum(1, keepdims=True), value)
        return {5: made.ravel()}

    lists = deciding(permuted(n * pages)), deciding(of(lengths, n, int32))
    given = _signed(n * heads * 64, 5), _halves(size, 6), _halves(size, 7)
    arguments = *given, *lists, zeros(n * heads * 64), scale
    return Plan((heads, n), 128, arguments, expected, tolerance=1e-4)


@measured(SEEN, 2**10, 2**12, 2**15, small=2**6)
def gemv_int4(n: int) -> Plan:
    columns = 4096

    def scales() -> Array:
        return uniform(n * columns // 128, 8).make().astype(float16)

    def expected(weights: Array, scales: Array, x: Array, *_: object) -> Expected:
        nibbles = np.stack([weights >> uint32(4 * k) & uint32(15) for k in range(8)], 1)
        parts = (nibbles.reshape(-1, 128).astype(float64) - 8) * scales[:, None]
        return {3: parts.reshape(n, columns) @ x.astype(float64)}

    given = random_words(n * columns // 8, 9), of(scales, n * columns // 128, float16)
    arguments = *given, _signed(columns, 10), zeros(n), int32(columns)
    return Plan(n // 4, (32, 4), arguments, expected, tolerance=1e-4)


@measured(SEEN, 8, 64, 512, small=2)
def sample_token(n: int) -> Plan:
    vocabulary, temperature = 32000, float32(0.8)

    def expected(logits: Array, uniforms: Array, *_: object) -> Expected:
        rows = logits.reshape(n, vocabulary).astype(float64) / temperature
        sums = np.exp(rows - rows.max(1, keepdims=True)).cumsum(1)
        passed = sums > uniforms[:, None] * sums[:, -1:]
        return {2: passed.argmax(1)}  # a few places off where sums in floats are

    given = deciding(_signed(n * vocabulary, 11, 6.0)), deciding(uniform(n, 12))
    arguments = *given, zeros(n, int32), temperature, int32(vocabulary)
    return Plan(n, 256, arguments, expected, tolerance=1e-3)


@measured(SEEN, 4, 64, 512, small=2)
def mask_logits(n: int) -> Plan:
    vocabulary = 50257
    pieces = -(-vocabulary // 32)
    presence, frequency, temperature = float32(0.4), float32(0.2), float32(0.7)

    def allowed() -> Array:
        return words(n * pieces, 13) | words(n * pieces, 14)

    def counts() -> Array:
        seen = words(n * vocabulary, 15)
        return np.where(seen % uint32(50) == 0, seen >> uint32(29), 0).astype(uint16)

    def expected(logits: Array, allowed: Array, counts: Array, *_: object) -> Expected:
        bits = np.unpackbits(allowed.view(uint8), bitorder="little").reshape(n, -1)
        said = (counts > 0) * (presence + frequency * counts.astype(float64))
        made = (logits - said) / temperature
        return {0: np.where(bits[:, :vocabulary].ravel(), made, -10000)}

    logits = _signed(n * vocabulary, 16, 6.0)
    given = deciding(of(allowed, n * pieces, uint32)), deciding(of(counts, n * vocabulary, uint16))
    arguments = logits, *given, presence, frequency, temperature, int32(vocabulary)
    return Plan((-(-vocabulary // 256), n), 256, arguments, expected, tolerance=1e-9)


@measured(SEEN, 2**16, 2**20, 2**24)
def adamw_8bit(n: int) -> Plan:
    blocks = n // 256
    rate, beta1, beta2, epsilon, decay = map(float32, (0.1, 0.9, 0.99, 1e-3, 0.01))

    def first() -> Array:
        return (words(n, 17) % uint32(255)).astype(int32).astype(int8)

    def expected(
        weights: Array, gradient: Array, first: Array, second: Array, *scales: Array
    ) -> Expected:
        g = gradient.reshape(blocks, 256).astype(float64)
        m = beta1 * first.reshape(blocks, 256) * scales[0].astype(float64)[:, None] + g / 10
        root = second.reshape(blocks, 256) * scales[1].astype(float64)[:, None]
        root = np.sqrt(beta2 * root**2 + (1 - float64(beta2)) * g**2)
        w = weights - rate * (m / (root + epsilon) + decay * weights.reshape(blocks, 256)).ravel()
        most, most_root = abs(m).max(1), root.max(1)
        return {
            0: w,
            2: np.rint(m / most[:, None] * 127).ravel(),
            3: np.rint(root / most_root[:, None] * 255).ravel(),
            4: most / 127,
            5: most_root / 255,
        }

    moments = (
        of(first, n, int8),
        of(lambda: words(-(-n // 4), 18).view(uint8), n, uint8),
    )
    scales = uniform(blocks, 19), uniform(blocks, 20)
    arguments = _signed(n, 21), _halves(n, 22, 64.0), *moments, *scales
    numbers = rate, beta1, beta2, epsilon, decay
    return Plan(blocks, 256, (*arguments, *numbers), expected, tolerance=8e-3)


@measured(SEEN, 2**6, 2**11, 2**14, small=2**4)
def split_heads(n: int) -> Plan:
    heads, dim = 12, 64
    positions = min(n, 512)
    batch, width = n // positions, 3 * heads * dim

    def expected(qkv: Array, bias: Array, *_: object) -> Expected:
        parts = (qkv.reshape(n, width) + bias).reshape(batch, positions, 3, heads, dim)
        made = parts.transpose(2, 0, 3, 1, 4).reshape(3, -1)
        return {2: made[0], 3: made[1], 4: made[2]}

    made = (zeros(n * heads * dim) for _ in range(3))
    sizes = int32(batch), int32(positions), int32(heads), int32(dim)
    arguments = _signed(n * width, 23), _signed(width, 24), *made, *sizes
    return Plan(n * width // 192, 192, arguments, expected)


@cache
def _bags(n: int) -> Array:
    """Return how many rows each bag has: most a few, some dozens, some none."""
    return (64 * uniform(n, 25).make().astype(float64) ** 4).astype(int32)


@measured(SEEN, 2**9, 2**13, 2**16, small=2**7)
def embedding_bag(n: int) -> Plan:
    rows = 2**16
    begins = _begins(_bags(n))
    total = int(begins[-1])

    def expected(table: Array, which: Array, offsets: Array, *_: object) -> Expected:
        sums = np.zeros((n, 128))
        np.add.at(sums, np.arange(n).repeat(_bags(n)), table.reshape(rows, 128)[which])
        return {3: (sums / np.maximum(_bags(n), 1)[:, None]).ravel()}

    lists = deciding(skewed(rows, total, 26)), deciding(of(lambda: begins, n + 1, int32))
    arguments = _signed(rows * 128, 27), *lists, zeros(n * 128), int32(n)
    return Plan(n // 4, (32, 4), arguments, expected)


def _brains(length: int, seed: int) -> Numbers:
    """Return numbers of 16 bits with the exponent of a float (bfloat16), around 0, as bits."""

    def made() -> Array:
        return (_signed(length, seed).make().view(uint32) >> uint32(16)).astype(uint16)

    return of(made, length, uint16)


def _as_floats(bits: Array) -> Array:
    return (bits.astype(uint32) << uint32(16)).view(float32)


@measured(SEEN, 2**6, 2**10, 2**14, small=2**4)
def lora_shrink(n: int) -> Plan:
    hidden, adapters, rank = 2048, 8, 16

    def which() -> Array:
        return (words(n, 28) % uint32(adapters + 1)).astype(int32) - int32(1)

    def expected(x: Array, weights: Array, which: Array, *_: object) -> Expected:
        rows = _as_floats(x).reshape(n, hidden).astype(float64)
        matrices = _as_floats(weights).reshape(adapters, rank, hidden).astype(float64)
        made = np.zeros((n, rank))
        for adapter in range(adapters):
            made[which == adapter] = rows[which == adapter] @ matrices[adapter].T
        return {3: made.ravel()}

    given = _brains(n * hidden, 29), _brains(adapters * rank * hidden, 30)
    arguments = *given, deciding(of(which, n, int32)), zeros(n * rank), int32(hidden // 8)
    return Plan(n, (32, 16), arguments, expected, tolerance=1e-4)


@measured(SEEN, 2**6, 2**10, 2**12, small=2**6)
def accept_drafts(n: int) -> Plan:
    steps, vocabulary = 8, 1024
    size = n * steps * vocabulary

    def tokens() -> Array:
        return (words(n * steps, 31) & uint32(vocabulary - 1)).astype(int32)

    def expected(
        target: Array, draft: Array, tokens: Array, uniforms: Array, *_: object
    ) -> Expected:
        at = np.arange(n * steps) * vocabulary + tokens
        kept = (uniforms * draft[at] <= target[at]).reshape(n, steps)
        return {4: np.cumprod(kept, 1).sum(1)}

    given = deciding(uniform(size, 32)), deciding(uniform(size, 33))
    lists = deciding(of(tokens, n * steps, int32)), deciding(uniform(n * steps, 34))
    sizes = int32(steps), int32(vocabulary), int32(n)
    arguments = *given, *lists, zeros(n, int32), *sizes
    return Plan(n // 64, 64, arguments, expected, EXACT)


@measured(SEEN, 2**10, 2**13, 2**16, small=2**7)
def grouped_product(n: int) -> Plan:
    experts, inner, width = 8, 256, 512

    def expert_of() -> Array:
        return np.sort(words(n // 64, 35) % uint32(experts)).astype(int32)

    def expected(x: Array, weights: Array, expert_of: Array, *_: object) -> Expected:
        matrices = weights.reshape(experts, inner, width).astype(float64)
        tiles = x.reshape(-1, 64, inner).astype(float64)
        made = [tile @ matrices[e] for tile, e in zip(tiles, expert_of, strict=True)]
        return {3: np.stack(made).ravel()}

    given = _signed(n * inner, 36), _signed(experts * inner * width, 37)
    lists = deciding(of(expert_of, n // 64, int32))
    arguments = *given, lists, zeros(n * width), int32(inner), int32(width)
    return Plan((width // 64, n // 64), 256, arguments, expected)
