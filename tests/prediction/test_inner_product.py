"""Inner products: whole columns, whatever their length."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.prediction.arithmetic.inner_product import MOST_AT_ONCE, inner


@pytest.mark.parametrize("length", [0, 1, MOST_AT_ONCE, MOST_AT_ONCE + 1, 3 * MOST_AT_ONCE - 1])
def test_an_inner_product_adds_up_all_numbers_in_whatever_pieces(length: int) -> None:
    """0 to n - 1, each twice, are n times n - 1."""
    numbers = np.arange(length)
    assert inner(numbers, np.full(length, 2.0)) == length * (length - 1)
