"""Exponential and logarithm in plain arithmetic, accurate to a few units in the last place.

Math libraries of different systems differ in the last bit, and the compiled clock has none: these
functions give the same number wherever the clock is played.
"""

from __future__ import annotations

import math

_LOG2_E = 1.4426950408889634
# ln 2 in two parts; the first has few bits, so that its integer multiples are exact.
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_LEAST = -700.0  # below it the exponential is 0
_HALF_ROOT = 0.7071067811865476


def exp(x: float) -> float:
    """Return e to the power of a number up to 700; 0 below -700."""
    if x < _LEAST:
        return 0.0
    halvings = round(x * _LOG2_E)
    r = x - halvings * _LN2_HIGH - halvings * _LN2_LOW
    # Taylor series for |r| <= 0.35, from its last term on.
    rest = 1 / 3628800 + r * (1 / 39916800 + r * (1 / 479001600 + r * (1 / 6227020800)))
    rest = 1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * rest))
    rest = 1 / 24 + r * (1 / 120 + r * (1 / 720 + r * rest))
    return math.ldexp(1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r * rest))), halvings)


def log(x: float) -> float:
    """Return the natural logarithm of a positive number."""
    mantissa, exponent = math.frexp(x)
    if mantissa < _HALF_ROOT:
        mantissa, exponent = 2 * mantissa, exponent - 1
    # 2 atanh(s) for |s| <= 0.172, from the last term of its series on.
    s = (mantissa - 1) / (mantissa + 1)
    z = s * s
    rest = 1 / 15 + z * (1 / 17 + z * (1 / 19 + z * (1 / 21)))
    rest = 1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + z * rest)))
    rest = 1 / 3 + z * (1 / 5 + z * rest)
    return exponent * _LN2_HIGH + (2 * s + (2 * s * z * rest + exponent * _LN2_LOW))


def power(x: float, exponent: float) -> float:
    """Return a non-negative number to the power of a positive one."""
    if exponent == 1 or x == 0:
        return x
    return exp(exponent * log(x))
