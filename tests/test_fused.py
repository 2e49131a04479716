"""A fused multiply-add rounds a * b + c once, in lanes of any number."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.isa import fused

INF = math.inf


def computed(*operands: Any) -> Any:
    with np.errstate(all="ignore"):
        return fused.fused_multiply_add(*operands)


def exactly(a: float, b: float, c: float) -> float:
    """Return a * b + c, rounded once: a quotient of Python's integers is."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return INF if exact > 0 else -INF


numbers = st.floats(allow_nan=False, allow_infinity=False)
ulps = st.integers(-8, 8).map(lambda k: 1 + k * 2.0**-52)


@given(a=st.one_of(numbers, ulps), b=st.one_of(numbers, ulps), c=numbers, cancels=st.booleans())
def test_float64_rounds_once(*, a: float, b: float, c: float, cancels: bool) -> None:
    c = -(a * b) if cancels and math.isfinite(a * b) else c
    assert computed(*(np.array([x]) for x in (a, b, c)))[0] == exactly(a, b, c)


@pytest.mark.parametrize("sign", [1, -1])
def test_float64_rounds_once_next_to_half_way_between_two_numbers(sign: int) -> None:
    """The product is a little less than 1, half the last bit of the addend, and rounds to 1."""
    for k, j in itertools.product((1, 2, 3, 9), range(1, 6)):
        a, b, c = 1 + k * 2.0**-52, 1 - k * 2.0**-52, 2.0**53 + 2 * j
        assert a * b == 1
        assert Fraction(a) * Fraction(b) == 1 - Fraction(k * k, 2**104)
        assert computed(np.array([sign * a]), np.array([b]), np.array([c])) == [c]


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        (0.0, -1.0, 0.0, 0.0),
        (0.0, -1.0, -0.0, -0.0),  # both are -0
        (3.0, 5.0, -15.0, 0.0),
        (-1e-200, 1e-200, 0.0, -0.0),  # what underflows keeps its sign
        (1e300, 1e10, -INF, -INF),
        (1e300, 1e10, -1e308, INF),
        (1e200, 1e200, math.nan, math.nan),
        (INF, 0.0, 1.0, math.nan),
    ],
)
def test_zeros_have_ieee_754s_signs_and_what_overflows_is_infinite(
    a: float, b: float, c: float, expected: float
) -> None:
    found = computed(*(np.array([x]) for x in (a, b, c)))
    np.testing.assert_array_equal(found, [expected])
    assert math.isnan(expected) or np.signbit(found[0]) == np.signbit(expected)


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        (1.5, 2.0, 0.25, 3.25),
        (1.0, 1.0, math.nan, math.nan),
        (INF, 2.0, 0.0, INF),
        (1.0, 1.0, -1.0, 0.0),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_alone_are_what_lanes_are(
    dtype: str, a: float, b: float, c: float, expected: float
) -> None:
    """Constants are folded as arrays without axes."""
    lanes = [np.array([of], dtype) for of in (a, b, c)]
    np.testing.assert_array_equal(computed(*lanes), [expected])
    np.testing.assert_array_equal(computed(*(of.reshape(()) for of in lanes)), expected)


def test_float32_rounds_once() -> None:
    """Half a unit of the last place, and less than float64 keeps of it: up, where even was down."""
    a, b = np.float32(1 + 2**-12), np.float32(1 + 2**-12)
    exact = Fraction(float(a)) ** 2
    assert exact == 1 + Fraction(1, 2**11) + Fraction(1, 2**24)
    tiny = np.float32(2.0**-80)
    up, down = np.float32(1 + 2**-11 + 2**-23), np.float32(1 + 2**-11)
    found = [
        computed(*(np.array([x], np.float32) for x in (a, b, c)))[0]
        for c in (tiny, -tiny, np.float32(0))
    ]
    assert found == [up, down, down]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", [
    [(300, 4, 32), (1, 1, 1), (300, 1, 32)],
    [(1, 700, 32), (1, 700, 1), (1, 1, 32)],
    [(500, 1, 1), (1, 1, 32), (1, 6, 1)],
])  # fmt: skip
def test_many_lanes_are_what_few_are(dtype: str, shapes: list[tuple[int, ...]]) -> None:
    """More than are computed at a time, along either axis, with operands that do not vary."""
    random = np.random.default_rng(5)
    a, b, c = (random.standard_normal(shape).astype(dtype) for shape in shapes)
    many = computed(a, b, c)
    assert many.size > fused.AT_A_TIME
    assert many.dtype == dtype
    whole = np.broadcast_arrays(a, b, c)
    for row in range(0, whole[0].shape[0], 37):
        few = computed(*(x[row : row + 1, :1] for x in whole))
        np.testing.assert_array_equal(many[row : row + 1, :1], few)
