"""Integer operations: sums, products, shifts, and bits.

Arrays of one type in, arrays out; results wrap around. The width is the operands' own, but where
a function says 32 bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpusim.typing import Array

WORD_BITS = 32


def signed_sum(signs: str | None, *terms: Array) -> Array:
    """Return a sum of terms with a sign each, "+-" for a difference; None adds all of them."""
    if not signs:
        signs = "+" * len(terms)
    total = terms[0] if signs[0] == "+" else np.negative(terms[0])
    for sign, term in zip(signs[1:], terms[1:], strict=True):
        total = total + term if sign == "+" else total - term
    return total


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c in the type of `c`."""
    return (a * b).astype(c.dtype, copy=False) + c


def wide_product(a: Array, b: Array) -> Array:
    """Return the 64 bits of a product of 32-bit integers, as int64."""
    return np.asarray(a.astype(np.int64) * b.astype(np.int64))


def upper_word(wide: Array) -> Array:
    """Return the upper 32 of 64 bits."""
    return np.asarray(wide >> wide.dtype.type(WORD_BITS)).astype(np.uint32)


def multiply_add_wide(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c with a product and an addend of 64 bits, in the type of `c`."""
    return wide_product(a, b).astype(c.dtype, copy=False) + c


def multiply_add_high(a: Array, b: Array, c: Array) -> Array:
    """Return the upper word of a product of 64 bits, plus `c`."""
    return upper_word(wide_product(a, b)).astype(a.dtype, copy=False) + c


@cache
def _unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"u{dtype.itemsize}")


@cache
def _width(dtype: np.dtype[Any]) -> Any:
    """Return the bits of a type, as a number of the unsigned type of its size."""
    return _unsigned(dtype).type(dtype.itemsize * 8)


def shift_left(value: Array, count: Array) -> Array:
    """Shift left; a count of the width or more, or below zero, shifts all bits out."""
    amount, over = _shift_count(value, count)
    if not np.count_nonzero(over):
        return np.left_shift(value, amount)
    zero = value.dtype.type(0)
    return np.where(over, zero, np.left_shift(value, np.where(over, zero, amount)))


def shift_right(value: Array, count: Array) -> Array:
    """Shift right, with copies of the sign if there is one; counts as for `shift_left`."""
    amount, over = _shift_count(value, count)
    if not np.count_nonzero(over):
        return np.right_shift(value, amount)
    last = value.dtype.type(value.dtype.itemsize * 8 - 1)
    shifted = np.right_shift(value, np.where(over, last, amount))
    return np.where(over, value.dtype.type(0), shifted) if value.dtype.kind == "u" else shifted


def _shift_count(value: Array, count: Array) -> tuple[Array, Array]:
    """Return a count in the type of the value, and its lanes of at least the width."""
    amount = count.astype(value.dtype, copy=False)
    return amount, amount.view(_unsigned(value.dtype)) >= _width(value.dtype)


def shift(direction: str, value: Array, count: Array) -> Array:
    """Shift "left" or "right"."""
    return shift_left(value, count) if direction == "left" else shift_right(value, count)


def funnel_left(high: Any, low: Array, count: Any) -> Array:
    """Return the upper of two words after a shift left of both as one, by up to their width."""
    rest = _width(high.dtype) - count
    return np.asarray(np.left_shift(high, count) | np.right_shift(low, rest))


def shift_add(count: int, a: Array, b: Array) -> Array:
    """Return `a`, shifted left, plus `b`, in the type of `b`."""
    total: Array = np.left_shift(a, a.dtype.type(count)).astype(b.dtype, copy=False) + b
    return total


def high_shift_add(count: int, a: Array, b: Array) -> Array:
    """Return the bits that a shift left moves out of `a` at the top, plus `b`."""
    unsigned = _unsigned(a.dtype)
    high = funnel_left(unsigned.type(0), a.view(unsigned), unsigned.type(count))
    total: Array = high.astype(b.dtype, copy=False) + b
    return total


def absolute(value: Array) -> Array:
    """Return magnitudes, also of floating-point numbers; that of the least integer is itself."""
    return np.asarray(np.abs(value))


def population_count(value: Array) -> Array:
    """Return the number of set bits, as int32."""
    return np.asarray(np.bitwise_count(value.view(_unsigned(value.dtype))), dtype=np.int32)


def highest_bit(value: Array) -> Array:
    """Return the position of the highest set bit as int32, -1 where there is none."""
    unsigned = _unsigned(value.dtype)
    bits = value.view(unsigned)
    step = 1
    while step < unsigned.itemsize * 8:
        bits = bits | bits >> unsigned.type(step)
        step *= 2
    return population_count(bits) - np.int32(1)


def count_leading_zeros(value: Array) -> Array:
    """Return the number of zeros above the highest set bit, as int32."""
    return np.int32(value.dtype.itemsize * 8 - 1) - highest_bit(value)


def find_first_set(value: Array) -> Array:
    """Return the position of the lowest set bit from 1 as int32, 0 where there is none."""
    lowest = value & (np.bitwise_not(value) + value.dtype.type(1))
    below = population_count(lowest - value.dtype.type(1))
    return np.where(value == 0, np.int32(0), below + np.int32(1))


def reverse_bits(value: Array) -> Array:
    """Return the bits in the opposite order: neighbours change places, then pairs, and so on."""
    unsigned = _unsigned(value.dtype)
    bits, width = value.view(unsigned), unsigned.itemsize * 8
    step, every = 1, (1 << width) - 1
    while step < width:
        low = unsigned.type(every // ((1 << step) + 1))  # ones at every other run of `step` bits
        count = unsigned.type(step)
        bits = (bits >> count & low) | (bits & low) << count
        step *= 2
    return bits.view(value.dtype)
