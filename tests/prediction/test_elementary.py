"""The clock's own exponential and logarithm, against the system's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.prediction.arithmetic.elementary import exp, log, power

FEW_LAST_BITS = 1e-15


@given(st.floats(-690, 700))
def test_an_exponential_is_that_of_the_system_but_for_its_last_bits(x: float) -> None:
    assert exp(x) == pytest.approx(math.exp(x), rel=FEW_LAST_BITS)


@given(st.floats(1e-300, 1e300))
def test_a_logarithm_is_that_of_the_system_but_for_its_last_bits(x: float) -> None:
    assert log(x) == pytest.approx(math.log(x), rel=FEW_LAST_BITS)


@given(st.floats(0, 0.99), st.floats(1, 40))
def test_a_root_is_that_of_the_system_but_for_its_last_bits(x: float, draws: float) -> None:
    assert power(x, 1 / draws) == pytest.approx(x ** (1 / draws), rel=3 * FEW_LAST_BITS)


def test_bounds_are_exact() -> None:
    assert [exp(0.0), exp(-701.0), log(1.0)] == [1, 0, 0]
    assert [power(0.7, 1.0), power(0.0, 0.5)] == [0.7, 0]
