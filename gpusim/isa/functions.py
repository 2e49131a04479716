"""Functions of C's mathematical library, and of the special function unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.isa import floats

Array = np.ndarray[Any, Any]


def truncated_division(a: Array, b: Array) -> Array:
    """C's integer division; by zero all bits are set, as the hardware's sequence leaves them."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = a // safe
    else:
        quotient = np.floor_divide(a, safe)
        quotient = quotient + ((a - quotient * safe != 0) & (quotient < 0)).astype(a.dtype)
    return np.where(b == 0, np.bitwise_not(b), quotient)


def truncated_remainder(a: Array, b: Array) -> Array:
    """C's remainder, with the sign of `a`; by zero all bits are set."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    remainder = a - truncated_division(a, safe) * safe
    return np.where(b == 0, np.bitwise_not(b), remainder)


def integer_power(base: Array, exponent: Array) -> Array:
    """Return a power that wraps around; 1 / base**n, toward zero, where the exponent is -n."""
    base, exponent = np.broadcast_arrays(base, exponent)
    negative, odd = exponent < 0, (exponent & 1) == 1
    left = np.where(negative, 0, exponent).astype(exponent.dtype)
    result, square = np.ones_like(base), base
    while left.any():
        result = np.where((left & 1) == 1, result * square, result)
        square = square * square
        left = left >> 1
    reciprocal = np.where(np.abs(base) == 1, np.where(odd, base, np.ones_like(base)), 0)
    return np.where(negative, reciprocal.astype(base.dtype), result)


# By the names of C and Python, in the type of the operands.
LIBRARY: Mapping[str, Callable[..., Array]] = {
    "div": np.divide,
    "idiv": truncated_division,
    "rem": truncated_remainder,
    "ipow": integer_power,
    "floordiv": np.floor_divide,
    "floormod": np.remainder,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "fabs": np.abs,
    "fmod": np.fmod,
    "pow": floats.power,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}

PHASE_STEPS = 2.0**25  # of a turn: smaller angles and differences vanish (measured)


def _phase(turns: Array) -> Array:
    return np.trunc(np.fmod(np.abs(turns), 1.0) * PHASE_STEPS) / PHASE_STEPS


def _sine_of_phase(phase: Array) -> Array:
    half_turns = 2 * phase
    return np.where(half_turns == np.rint(half_turns), 0.0, np.sin(np.pi * half_turns))


def _sine(turns: Array) -> Array:
    size = _sine_of_phase(_phase(turns))
    return np.where(np.signbit(turns), np.negative(size), size)


def _cosine(turns: Array) -> Array:
    return _sine_of_phase(_phase(turns) + 0.25)


def reciprocal(value: Array) -> Array:
    """Return 1 / value in the type of the operand."""
    return np.asarray(value.dtype.type(1) / value)


# By MUFU's names; angles in turns.
SPECIAL: Mapping[str, Callable[[Array], Array]] = {
    "RCP": reciprocal,
    "RSQ": LIBRARY["rsqrt"],
    "SQRT": LIBRARY["sqrt"],
    "EX2": LIBRARY["exp2"],
    "LG2": LIBRARY["log2"],
    "SIN": _sine,
    "COS": _cosine,
    "TANH": LIBRARY["tanh"],
}


def reciprocal_bits(value: Array) -> Array:
    """Return the bits of a float32's reciprocal, as uint32."""
    with np.errstate(divide="ignore"):
        return reciprocal(value).view(np.uint32)
