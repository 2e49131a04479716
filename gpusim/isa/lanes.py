"""Operations among the lanes of a warp: shuffles, votes, matches, reductions.

The last axis of arrays is the lane, and has 32 elements, or 1 for a value that all lanes have. An
instruction's `detail` names its results, in the order of its destinations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache

import numpy as np

from gpusim.typing import Array

LANES = np.arange(32)
LANE_BITS = np.left_shift(np.uint32(1), LANES.astype(np.uint32))
SEGMENT_AT = 8  # the first bit of a shuffle's segment mask among its limits


def shuffle_limits(mode: str, width: int) -> int:
    """Return a shuffle's limits: last lane and segment mask, for segments of `width` lanes."""
    return (32 - width) << SEGMENT_AT | last_lane(mode)


def last_lane(mode: str) -> int:
    """Return the last lane of a segment of 32, in the direction of a shuffle."""
    return 0 if mode == "up" else 31


def shuffle_sources(mode: str, lane: Array, limits: Array) -> tuple[Array, Array]:
    """Return the source lane of each lane, and whether it is inside the segment.

    `mode` is idx, up, down or bfly. A source outside the segment is the lane itself. The limits are
    the last lane of a segment and, above it, the bits that distinguish segments (PTX ISA,
    shfl.sync).
    """
    if lane.size == limits.size == 1:
        return _sources_alike(mode, int(lane.reshape(-1)[0]) & 31, int(limits.reshape(-1)[0]))
    return _sources(mode, lane.astype(np.int64) & 31, limits.astype(np.int64))


@lru_cache(maxsize=256)
def _sources_alike(mode: str, lane: int, limits: int) -> tuple[Array, Array]:
    """Return the source lanes of a shuffle with constant operands."""
    shape = (1, 1, 1)
    found = _sources(mode, np.full(shape, lane, np.int64), np.full(shape, limits, np.int64))
    for shared in found:
        shared.flags.writeable = False
    return found


def _sources(mode: str, lane: Array, limits: Array) -> tuple[Array, Array]:
    clamp, segment = limits & 31, limits >> SEGMENT_AT & 31
    last = (LANES & segment) | (clamp & ~segment)
    if mode == "idx":
        source = (LANES & segment) | (lane & ~segment)
    else:
        source = {"up": LANES - lane, "down": LANES + lane, "bfly": LANES ^ lane}[mode]
    inside = source >= last if mode == "up" else source <= last
    return np.where(inside, source, LANES), inside


def taken(value: Array, source: Array) -> Array:
    """Return each lane's value from its source lane."""
    if value.shape[2] == 1:
        return value
    if source.shape[:2] == (1, 1):
        return np.asarray(np.take(value, source[0, 0], axis=2))
    shape = (*np.broadcast_shapes(value.shape[:2], source.shape[:2]), 32)
    return np.take_along_axis(np.broadcast_to(value, shape), np.broadcast_to(source, shape), axis=2)


def transposed(value: Array) -> Array:
    """Return a matrix of 8 by 8 halves of words with its rows and columns exchanged.

    Lane 4 r + c holds columns 2 c and 2 c + 1 of row r, the first in the low half (PTX ISA,
    movmatrix).
    """
    row, pair = LANES // 4, LANES % 4
    whole = np.broadcast_to(value, (*value.shape[:2], 32)).astype(np.uint32)
    shift = (16 * (row % 2)).astype(np.uint32)
    low, high = ((whole[..., 8 * pair + 4 * side + row // 2] >> shift) & 0xFFFF for side in (0, 1))
    return np.asarray(low | high << np.uint32(16))


def packed(lanes: Array) -> Array:
    """Return lanes, the last axis, as bits of a number, in place of that axis."""
    bits = np.ascontiguousarray(np.packbits(lanes, axis=-1, bitorder="little"))
    return np.asarray(bits.view(np.uint32))


class Ballots:
    """The lanes with a true and with a false predicate, as bits.

    `on` are the lanes that vote, `mask` the lanes that count for each of them, None for all.
    """

    def __init__(self, on: Array, predicate: Array | None, mask: Array | None) -> None:
        self._on, self._predicate, self._mask = on, predicate, mask

    @cached_property
    def yes(self) -> Array:
        """The lanes with a true predicate; without a predicate, all that vote."""
        return self._counted(self._on if self._predicate is None else self._on & self._predicate)

    @cached_property
    def no(self) -> Array:
        """The lanes with a false predicate."""
        assert self._predicate is not None
        return self._counted(self._on & ~self._predicate)

    def _counted(self, lanes: Array) -> Array:
        bits = packed(lanes)
        return bits if self._mask is None else bits & self._mask.astype(np.uint32, copy=False)


# The results of votes, also of negated predicates.
VOTES: Mapping[str, Callable[[Ballots], Array]] = {
    "all": lambda ballots: ballots.no == 0,
    "any": lambda ballots: ballots.yes != 0,
    "alike": lambda ballots: (ballots.no == 0) | (ballots.yes == 0),
    "ballot": lambda ballots: ballots.yes,
    "none": lambda ballots: ballots.yes == 0,
    "not-all": lambda ballots: ballots.no != 0,
    "ballot-not": lambda ballots: ballots.no,
}
NEGATED = {
    "all": "none", "any": "not-all", "alike": "alike", "ballot": "ballot-not",
}  # fmt: skip


class Matches:
    """The lanes with equal values, by lane.

    `words` are the values, in one or more registers; `on` and `mask` as for `Ballots`.
    """

    def __init__(self, words: list[Array], on: Array, mask: Array | None) -> None:
        self._among = on[..., None, :]
        if mask is not None:
            named = (mask.astype(np.uint32, copy=False)[..., None] & LANE_BITS) != 0
            self._among = self._among & named
        same = self._among
        for word in words:
            bits = word.view(np.dtype(f"u{word.dtype.itemsize}"))
            bits = np.broadcast_to(bits, (*np.broadcast_shapes(bits.shape[:2], on.shape[:2]), 32))
            same = same & (bits[..., :, None] == bits[..., None, :])
        self._same = np.asarray(same)

    @cached_property
    def lanes(self) -> Array:
        """The lanes with the value of each lane, as bits."""
        return packed(self._same)[..., 0]

    @cached_property
    def agree(self) -> Array:
        """Whether all lanes have the value of each."""
        return np.asarray((self._same | ~self._among).all(axis=3))


# The results of matches.
MATCHES: Mapping[str, Callable[[Matches], Array]] = {
    "any": lambda matches: matches.lanes,
    "all": lambda matches: np.where(matches.agree, matches.lanes, np.uint32(0)),
    "agree": lambda matches: matches.agree,
}

_NEUTRAL = {"add": 0, "or": 0, "xor": 0, "and": -1}
_REDUCE: Mapping[str, np.ufunc] = {
    "add": np.add, "or": np.bitwise_or, "xor": np.bitwise_xor, "and": np.bitwise_and,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def reduced(operation: str, value: Array, on: Array) -> Array:
    """Return the reduction of the values of the lanes that are on."""
    limits = np.iinfo(value.dtype)
    neutral = {**_NEUTRAL, "min": limits.max, "max": limits.min}[operation]
    spare = np.array(neutral).astype(value.dtype)
    held = np.where(on, np.broadcast_to(value, np.broadcast_shapes(value.shape, on.shape)), spare)
    total = _REDUCE[operation].reduce(held, axis=2, keepdims=True, dtype=value.dtype)
    return np.asarray(total)
