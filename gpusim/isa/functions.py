"""Functions of C's mathematical library, and of the special function unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gpusim.isa import floats
from gpusim.typing import Array


def truncated_division(a: Array, b: Array) -> Array:
    """C's integer division; by zero all bits are set, as by the hardware's sequence."""
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
# A number of which no fraction is left once it is added: the sum's lowest bits are an integer.
_WHOLE = 1.5 * 2.0**52
_WHOLE_BITS = 0x4338 << 48
_HALF_ROOT_BITS = 0x3FE6A09E667F3BCD  # of the square root of 1/2
_EXPONENT = 52  # the lowest bit of a double's exponent

# Terms of series in double precision: the error is below 2^-42 of the result.
_EXP2 = tuple(math.log(2) ** k / math.factorial(k) for k in range(10))
_LOG2 = tuple(2 / math.log(2) / (2 * k + 1) for k in range(8))
_SINE = tuple((-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(9))


def _series(x: Array, terms: Sequence[float]) -> Array:
    """Return a polynomial by Horner's rule; `terms` begin with the constant."""
    *lower, total = terms
    made = x * total
    for term in reversed(lower[1:]):
        made = (made + term) * x
    return np.asarray(made + lower[0])


def _power_of_two(x: Array) -> Array:
    bound = np.minimum(np.maximum(x, -1000.0), 1000.0)
    shifted = bound + _WHOLE
    made = _series(bound - (shifted - _WHOLE), _EXP2)
    return np.asarray((made.view(np.int64) + (shifted.view(np.int64) << _EXPONENT)).view(x.dtype))


def _binary_logarithm(x: Array) -> Array:
    bits = x.view(np.int64)
    exponent = (bits - _HALF_ROOT_BITS) >> _EXPONENT
    part = (bits - (exponent << _EXPONENT)).view(x.dtype)
    ratio = (part - 1.0) / (part + 1.0)
    whole = (exponent + _WHOLE_BITS).view(x.dtype) - _WHOLE
    made = whole + ratio * _series(ratio * ratio, _LOG2)
    limit = np.where(x == 0, -np.inf, np.nan)
    return np.where(x > 0, np.where(x == np.inf, x, made), limit)


def _hyperbolic_tangent(x: Array) -> Array:
    size = np.abs(x)
    made = 1.0 - 2.0 / (_power_of_two(size * (2 / math.log(2))) + 1.0)
    small = size - size * size * size / 3
    return np.copysign(np.where(size < 2.0**-9, small, made), x)


def _phase(turns: Array) -> Array:
    size = np.abs(turns)
    return np.trunc((size - np.trunc(size)) * PHASE_STEPS) / PHASE_STEPS


def _sine_of_phase(phase: Array) -> Array:
    half_turns = 2 * phase
    shifted = half_turns + _WHOLE
    rest = half_turns - (shifted - _WHOLE)
    made = rest * _series(rest * rest, _SINE)
    odd = shifted.view(np.int64) << 63
    return np.where(rest == 0, 0.0, (made.view(np.int64) ^ odd).view(made.dtype))


def _sine(turns: Array) -> Array:
    size = _sine_of_phase(_phase(turns))
    return np.where(np.signbit(turns), np.negative(size), size)


def _cosine(turns: Array) -> Array:
    return _sine_of_phase(_phase(turns) + 0.25)


def reciprocal(value: Array) -> Array:
    """Return 1 / value in the type of the operand."""
    return np.asarray(value.dtype.type(1) / value)


# By MUFU's names, of double precision; angles in turns.
SPECIAL: Mapping[str, Callable[[Array], Array]] = {
    "RCP": reciprocal,
    "RSQ": LIBRARY["rsqrt"],
    "SQRT": LIBRARY["sqrt"],
    "EX2": _power_of_two,
    "LG2": _binary_logarithm,
    "SIN": _sine,
    "COS": _cosine,
    "TANH": _hyperbolic_tangent,
}


def reciprocal_bits(value: Array) -> Array:
    """Return the bits of a float32's reciprocal, as uint32."""
    with np.errstate(divide="ignore"):
        return reciprocal(value).view(np.uint32)
