"""Numbers for kernels' arrays: the same bytes wherever and whenever they are made.

An element follows from its place and the seed alone, so that a shorter array is the beginning of
a longer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim.launch.arguments import array_spec

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK = 2**20  # elements computed at a time, within the cache


@dataclass(frozen=True)
class Numbers:
    """An array argument.

    `decides` says that addresses or branches follow its elements: a prediction needs them.
    `is_afresh` says that every launch has to find it as it was made.
    """

    dtype: np.dtype[Any]
    length: int
    make: Callable[[], Array]
    decides: bool = False
    is_afresh: bool = False

    def spec(self) -> Any:
        """Return the array's argument in a prediction: its spec, or its elements."""
        return self.make() if self.decides else array_spec(self.length, self.dtype)


def deciding(numbers: Numbers) -> Numbers:
    """Return numbers that addresses or branches follow."""
    return replace(numbers, decides=True)


def afresh(numbers: Numbers) -> Numbers:
    """Return numbers that every launch has to find as they were made."""
    return replace(numbers, is_afresh=True)


def zeros(length: int, dtype: Any = np.float32) -> Numbers:
    """Return an output array."""
    return Numbers(np.dtype(dtype), length, lambda: np.zeros(length, dtype))


def of(array: Callable[[], Array], length: int, dtype: Any) -> Numbers:
    """Return numbers that a function makes on demand."""
    return Numbers(np.dtype(dtype), length, array)


def uniform(length: int, seed: int = 1) -> Numbers:
    """Return floats from 0 to 1."""
    return of(lambda: _uniform(length, seed), length, np.float32)


def _uniform(length: int, seed: int) -> Array:
    return _longest("uniform", length, seed, _floats)


def below(limit: int, length: int, seed: int = 1) -> Numbers:
    """Return integers from 0 to a power of two less one."""
    return of(lambda: (words(length, seed) & (limit - 1)).astype(np.int32), length, np.int32)


def skewed(limit: int, length: int, seed: int = 1) -> Numbers:
    """Return integers below a limit, with far more small ones."""

    def made() -> Array:
        part = _uniform(length, seed).astype(np.float64)
        return (limit * part**4).astype(np.int32)

    return of(made, length, np.int32)


def permuted(length: int) -> Numbers:
    """Return each number below a power of two once, in no order."""

    def made() -> Array:
        places = np.arange(length, dtype=np.uint32)
        half = max(1, length.bit_length() // 2)
        for factor in (2654435761, 2246822519, 3266489917):
            places = (places * np.uint32(factor) + np.uint32(12345)) & np.uint32(length - 1)
            places ^= places >> np.uint32(half)
        return places.astype(np.int32)

    return of(made, length, np.int32)


def random_words(length: int, seed: int = 1) -> Numbers:
    """Return 32 random bits each."""
    return of(lambda: words(length, seed), length, np.uint32)


def random_bytes(length: int, seed: int = 1) -> Numbers:
    """Return random bytes."""
    return of(lambda: words(-(-length // 4), seed).view(np.uint8)[:length], length, np.uint8)


def words(length: int, seed: int) -> Array:
    """Return 32 bits for each place: a hash of place and seed (lowbias32 of C. Wellons)."""
    return _longest("words", length, seed, _hashed)


def _hashed(length: int, seed: int) -> Array:
    made = np.empty(length, np.uint32)
    for begin, chunk in _chunks(length, seed):
        made[begin : begin + CHUNK] = chunk
    return made


def _chunks(length: int, seed: int) -> Iterator[tuple[int, Array]]:
    """Yield pieces of an array, each with its first index."""
    for begin in range(0, length, CHUNK):
        v = np.arange(begin, min(begin + CHUNK, length), dtype=np.uint32)
        yield begin, mixed(v + np.uint32(seed * 0x9E3779B9 & 0xFFFFFFFF))


def mixed(v: Array) -> Array:
    """Return the hash of 32-bit words, as in `streams.cu`."""
    v = v ^ v >> np.uint32(16)
    v *= np.uint32(0x7FEB352D)
    v ^= v >> np.uint32(15)
    v *= np.uint32(0x846CA68B)
    v ^= v >> np.uint32(16)
    return v


def _floats(length: int, seed: int) -> Array:
    made = np.empty(length, np.float32)
    for begin, chunk in _chunks(length, seed):
        made[begin : begin + CHUNK] = chunk >> np.uint32(8)
    made *= np.float32(2**-24)
    return made


# The longest array so far of each kind and seed; shorter ones are its beginning.
_made: dict[tuple[str, int], Array] = {}


def _longest(kind: str, length: int, seed: int, make: Callable[[int, int], Array]) -> Array:
    """Return the beginning of a shared array, which must not be changed."""
    held = _made.get((kind, seed))
    if held is None or len(held) < length:
        held = _made[kind, seed] = make(length, seed)
        held.flags.writeable = False
    return held[:length]
