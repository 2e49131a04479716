"""Launches of `laws.cu`, measured in `laws.csv` and `laws_counters.csv`.

Each shows one law of the machine: how often a swap fails, how atomics meet in the L2, what the L2
keeps. Sizes are threads of a lone block, blocks of a grid, or elements.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import float64, int32

from gpusim.typing import Array

from .data import Numbers, afresh, deciding, of, random_words, uniform, words, zeros
from .plans import LAW, Plan, measured

WARPS = 32, 64, 128, 256, 512, 1024  # threads of a lone block
# Words of global memory, and how many words they are apart, as the kernels take them.
PLACES = 1001, 2001, 8001, 64001, 2008, 8008, 2032, 8032, 8064, 8256


def _nothing(*_: object) -> dict[int, object]:
    """Return that no result is compared: times and counters are measured."""
    return {}


def _plan(grid: int, block: int, *arguments: object, constants: object = ()) -> Plan:
    return Plan(grid, block, arguments, _nothing, constants=constants)  # type: ignore[arg-type]


def _law(instance: str, sizes: tuple[int, ...], plan: Callable[[int], Plan]) -> None:
    """Register a kernel by its name and number."""

    def planned(n: int) -> Plan:
        return plan(n)

    planned.__module__ = __name__
    planned.__name__ = instance.replace("<", "_").rstrip(">")
    measured(LAW, *sizes, small=sizes[0], instance=instance)(planned)


def _adds(words_of_block: int) -> Callable[[int], Plan]:
    return lambda n: _plan(1, n, zeros(words_of_block))


def _global_adds(dtype: type) -> Callable[[int], Plan]:
    return lambda n: _plan(n, 256, afresh(zeros(65536, dtype)))


def _asks(n: int) -> Plan:
    return _plan(n, 256, deciding(zeros(65536, int32)), zeros(65536, int32))


def _row_sums(n: int) -> Plan:
    """Each of n rows is named four times, in any order."""

    def named() -> Array:
        return np.random.default_rng(5).permutation(np.arange(n, dtype=int32).repeat(4))

    warps, table = n // 4, deciding(of(named, 4 * n, int32))
    return _plan(warps // 8, 256, uniform(32 * n), table, zeros(32 * warps), int32(n))


def _whole(length: int, seed: int) -> Numbers:
    return deciding(of(lambda: words(2 * length, seed).view(np.int64), length, np.int64))


def _bytes(length: int) -> Numbers:
    return of(lambda: words(length // 4, 3).view(np.uint8), length, np.uint8)


def _bins(n: int) -> Plan:
    x = deciding(of(lambda: words(n, 3), n, np.uint32))
    return _plan(min(n // 256, 1056), 256, x, afresh(zeros(64)), int32(n))


def _polynomial(n: int) -> Plan:
    x, held = (of(lambda k=k: uniform(k).make().astype(float64), k, float64) for k in (n, 64))  # type: ignore[misc]
    constants = (("coefficients", held),)
    return _plan(n // 256, 256, x, zeros(n, float64), int32(64), constants=constants)


def _segments(n: int) -> Plan:
    def begins() -> Array:
        return np.concatenate([[0], np.cumsum(64 + (words(n, 7) & 127))]).astype(int32)

    x, at = uniform(int(begins()[-1])), deciding(of(begins, n + 1, int32))
    return _plan(n, 128, x, at, zeros(n))


def _random_adds(n: int) -> Plan:
    places = deciding(of(lambda: words(n, 3) & np.uint32(2**26 - 1), n, np.uint32))
    return _plan(n // 256, 256, places, afresh(zeros(2**26, int32)), int32(n))


def _quad_sums(n: int) -> Plan:
    constants = (("quads", uniform(4096, 5)),)
    return _plan(n // 256, 256, uniform(n), zeros(n), int32(1024), constants=constants)


def _far_rows(n: int) -> Plan:
    arguments = uniform(n * n), zeros(n * n), int32(n)
    return Plan((n // 32, n // 32), (32, 8), arguments, _nothing)


def _scattered(dtype: type, words_of_place: int, lanes: int) -> Callable[[int], Plan]:
    """Return a plan of 4 million sectors' accesses in n MB."""

    def plan(n: int) -> Plan:
        places = (n << 20) // (4 * words_of_place)
        threads = 2**19 * lanes * 8 // words_of_place
        return _plan(threads // 256, 256, zeros(n << 18, dtype), np.uint32(places - 1))

    return plan


for _number in (1, 2, 8, 32):
    _law(f"shared_adds<{_number}>", WARPS, _adds(_number))
_law("shared_bins", (2**16, 2**20, 2**22), _bins)
for _number in (1, 4, 16):
    _law(
        f"polls<{_number}>",
        (132, 528, 2112, 8448),
        lambda n: _plan(n, 128, deciding(zeros(n, int32)), zeros(n, int32)),
    )
for _number in (1, 4, 16):
    _law(f"row_sums<{_number}>", (2**13, 2**16, 2**18, 2**20), _row_sums)
_law(
    "fenced_adds",
    (2**16, 2**20, 2**22),
    lambda n: _plan(n // 256, 256, uniform(n), afresh(zeros(64))),
)
_law("double_polynomial", (2**16, 2**20), _polynomial)
_law(
    "quotients",
    (2**16, 2**20),
    lambda n: _plan(n // 256, 256, _whole(n, 1), _whole(n, 2), zeros(n, np.int64)),
)
_law(
    "byte_sums",
    (2**16, 2**20, 2**22),
    lambda n: _plan(n // 256, 256, _bytes(4 * n), zeros(4 * n, np.uint8)),
)
_law("short_segments", (2**10, 2**14, 2**17), _segments)
_law(
    "own_counts",
    (2**14, 2**17, 2**19),
    lambda n: _plan(n // 128, 128, deciding(_bytes(64 * n)), zeros(n, int32), int32(n)),
)
_law(
    "all_weights",
    (2**15, 2**18, 2**20),
    lambda n: _plan(n // 256, 256, uniform(16384), uniform(n), zeros(n)),
)
_law("random_adds", (2**16, 2**20, 2**22), _random_adds)
_law("far_rows", (2048, 4096, 8192), _far_rows)
for _number in (1, 4):
    _law(f"shared_adds_times<{_number}>", WARPS, _adds(1))
_law("shared_adds_looped", (64, 256, 1024), _adds(1))
for _number in PLACES:
    _law(f"global_adds<{_number}>", (528,), _global_adds(np.float32))
    _law(f"global_adds_fenced<{_number}>", (528,), _global_adds(np.float32))
    _law(f"global_counts<{_number}>", (528,), _global_adds(np.int32))
for _number in (1, 2, 4, 8):
    _law(f"part_stores<{_number}>", (2**16, 2**18), lambda n: _plan(n // 256, 256, zeros(2**21)))
for _number in (1, 2, 4, 16, 64, 256):
    _law(f"line_adds<{_number}>", (132, 528), _global_adds(np.int32))
    _law(f"line_asks<{_number}>", (132, 528), _asks)
    _law(f"word_asks<{_number}>", (132, 528), _asks)
MEGABYTES = 16, 64, 256, 1024
for _number in (8, 16, 32):
    _law(f"scattered_stores<{_number}>", MEGABYTES, _scattered(np.float32, _number, _number))
    _law(f"scattered_updates<{_number}>", MEGABYTES, _scattered(np.float32, _number, _number))
_law("scattered_words", MEGABYTES, _scattered(np.float32, 8, 1))
_law("scattered_adds", MEGABYTES, _scattered(int32, 8, 1))
for _number in (1, 100, 65536):
    _law(
        f"two_sums<{_number}>",
        (132, 528, 1056),
        lambda n: _plan(n, 256, afresh(zeros(2)), afresh(zeros(65536))),
    )
for _number in (0, 32, 128):
    _law(f"quad_sums<{_number}>", (2**15, 2**17, 2**18, 2**20), _quad_sums)
for _number in (1, 4):
    _law(
        f"changed_parts<{_number}>",
        (16, 32, 56),  # MB
        lambda n: _plan(n * 2**10, 256, random_words(n * 2**18)),
    )
