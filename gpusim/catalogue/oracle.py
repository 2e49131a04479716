"""Expected results of reductions and scans, from NumPy alone.

Nothing here knows a kernel's source: only the elements of each block. Integers are
compared as they are; sums of floats within the bound that rounding allows.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusim.typing import Array, DType

# As in CUDA C, the larger of a number and NaN is the number.
COMBINE: dict[str, np.ufunc] = {"sum": np.add, "max": np.fmax, "min": np.fmin}
OPERATIONS: tuple[str, ...] = tuple(COMBINE)


def identity(operation: str, dtype: DType) -> Any:
    """Return the number, of the dtype, that changes nothing: 0, or the least for a maximum."""
    if operation == "sum":
        return dtype.type(0)
    if dtype.kind == "f":
        return dtype.type(-math.inf if operation == "max" else math.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if operation == "max" else limits.max)


@dataclass(frozen=True, eq=False)
class Expected:
    """Values that a kernel should give, and how far rounding may take a result from each.

    `tolerance` is None where every bit counts, infinite where any value is right.
    `filling` is the operation's identity: where a maximum or minimum finds nothing but NaN,
    NaN and `filling` are both right.
    """

    values: Array
    tolerance: NDArray[np.float64] | None = None
    filling: Any = None

    def wrong(self, actual: Array) -> NDArray[np.bool_]:
        """Return, per value, whether `actual` is wrong."""
        if actual.shape != self.values.shape:
            raise ValueError(f"{actual.shape} values cannot be compared with {self.values.shape}")
        same: NDArray[np.bool_] = np.equal(actual, self.values)
        if self.values.dtype.kind != "f":
            return np.logical_not(same)
        same |= np.isnan(actual) & np.isnan(self.values)
        if self.filling is not None:
            same |= np.isnan(self.values) & (actual == self.filling)
        if self.tolerance is not None:
            with np.errstate(all="ignore"):
                difference = np.abs(actual.astype(np.float64) - self.values)
                same |= np.isfinite(self.values) & (difference <= self.tolerance)
                same |= np.isposinf(self.tolerance)
        return np.logical_not(same)


def _rounded(
    sums: Array, largest: Array, count: Array | int, additions: int, dtype: DType
) -> Expected:
    """Return float sums of `count` numbers, with a bound on the rounding error.

    The bound is `additions * epsilon * count * largest`, the largest of the finite numbers.
    Infinities and NaN among the numbers reach the sum in any order; where the sum of the others
    may leave the type's range, the order decides.
    """
    limits = np.finfo(dtype)
    with np.errstate(all="ignore"):
        magnitude = largest.astype(np.float64) * count
        tolerance = additions * float(limits.eps) * magnitude
        tolerance[magnitude > float(limits.max) / 2] = np.inf
        return Expected(sums.astype(dtype), tolerance)


def _finite(data: Array) -> Array:
    """Return magnitudes, 0 for infinities and NaN."""
    return np.where(np.isfinite(data), np.abs(data), data.dtype.type(0))


def _strides(data: Array, nothing: Any, grid: int, chunk: int) -> list[Array]:
    """Return `data` as arrays shaped (strides, grid, chunk): whole grid strides, then the rest."""
    used = len(data) // (grid * chunk) * grid * chunk
    parts = [data[:used].reshape(-1, grid, chunk)] if used else []
    if used < len(data):
        rest = np.full(grid * chunk, nothing, data.dtype)
        rest[: len(data) - used] = data[used:]
        parts.append(rest.reshape(1, grid, chunk))
    return parts


def reduce_blocks(data: Array, operation: str, grid: int, chunk: int, additions: int) -> Expected:
    """Return the expected result of each of `grid` blocks; integers wrap.

    Blocks take `chunk` consecutive elements in turn, block 0 again after the last block, until
    `data` is used up. No number goes through more than `additions` additions on its way.
    """
    dtype = data.dtype
    combine = COMBINE[operation]
    nothing = identity(operation, dtype)
    parts = _strides(data, nothing, grid, chunk)
    floats = dtype.kind == "f"
    wide = np.dtype(np.float64) if floats and operation == "sum" else dtype
    with np.errstate(all="ignore"):
        totals = [combine.reduce(part, axis=(0, 2), dtype=wide) for part in parts]
        total = functools.reduce(combine, totals)
        if not floats:
            return Expected(total)
        if operation != "sum":
            return Expected(total, filling=nothing)
        largest = functools.reduce(np.maximum, [_finite(p).max(axis=(0, 2)) for p in parts])
    per_block = -(-len(data) // (grid * chunk)) * chunk
    return _rounded(total, largest, per_block, additions, dtype)


def reduce_whole(data: Array, operation: str, additions: int) -> Expected:
    """Return the one value of all of `data`, as one block would give it."""
    return reduce_blocks(data, operation, 1, len(data), additions)


def exclusive_scan(data: Array) -> Expected:
    """Return, for each element, the sum of all elements before it; 0 for the first."""
    dtype = data.dtype
    sums = np.zeros(len(data), np.float64 if dtype.kind == "f" else dtype)
    with np.errstate(all="ignore"):
        np.cumsum(data[:-1], dtype=sums.dtype, out=sums[1:])
        if dtype.kind != "f":
            return Expected(sums)
        largest = np.zeros(len(data), dtype)
        np.maximum.accumulate(_finite(data[:-1]), out=largest[1:])
    return _rounded(sums, largest, np.arange(1, len(data) + 1), len(data), dtype)
