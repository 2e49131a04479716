"""Groups of equal rows of tables."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpusim.prediction.arithmetic.grouping import groups_by_hash, small_numbers

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2**62), st.booleans()), min_size=1)


@given(ROWS)
def test_rows_have_one_number_if_they_are_equal_and_not_else(rows: list[tuple[int, ...]]) -> None:
    first, number = groups_by_hash(*(np.array(column) for column in zip(*rows, strict=True)))
    assert sorted(set(number.tolist())) == list(range(len(set(rows))))
    assert [rows[first[one]] for one in number.tolist()] == rows


def test_rows_of_equal_hashes_are_told_apart() -> None:
    """The second column makes up for the first: by their hashes alone these two are equal."""
    k = np.uint64(0xBF58476D1CE4E5B9)
    first = np.array([1, 2], dtype=np.int64)
    with np.errstate(over="ignore"):
        mixed = (first.view(np.uint64) ^ (first.view(np.uint64) >> np.uint64(29))) * k
        second = np.array([0, int(mixed[0] - mixed[1])], dtype=np.uint64).view(np.int64)
    _, number = groups_by_hash(first, second)
    assert len(set(number.tolist())) == 2


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=60), st.integers(0, 63))
def test_equal_values_have_one_small_number(values: list[int], shift: int) -> None:
    """Multiples of a power of two fall into few slots: some are left for another hash."""
    made = np.array([value << shift & 2**64 - 1 for value in values], dtype=np.uint64)
    numbers, places = small_numbers(made)
    assert sorted(made[places].tolist()) == sorted(set(made.tolist()))
    assert made[places][numbers].tolist() == made.tolist()
