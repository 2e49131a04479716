"""Numbers of instructions and keys of warps, equal for equal columns, and orders behind them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.prediction.streams import instruction_ids as module
from gpusim.prediction.streams.instruction_ids import numbered_columns
from gpusim.prediction.streams.instruction_table import COLUMNS, MOST_BEHIND
from gpusim.prediction.streams.ordering import ranges, stable_order, starts
from gpusim.prediction.streams.stream import WarpStream

FLAGS = ("is_on", "is_taken", "joins")


def columns_of(pcs: list[int], changes: list[tuple[int, str, int]]) -> dict[str, Any]:
    """Return columns of computations, with values of their own at some places."""
    columns = {name: np.zeros(len(pcs), dtype=np.int32) for name in COLUMNS}
    columns["pc"][:] = pcs
    columns["behind"][:], columns["constant"][:] = MOST_BEHIND, -1
    for place, name, value in changes:
        columns[name][place % len(pcs)] = value
    return {n: c.astype(bool) if n in FLAGS else c for n, c in columns.items()}


changed = st.tuples(
    st.integers(0, 40), st.sampled_from(COLUMNS[1:]), st.sampled_from([-1, 0, 1, 2**31 - 1])
)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.lists(changed, max_size=60))
def test_instructions_have_one_number_exactly_where_all_their_columns_are_equal(
    pcs: list[int], changes: list[tuple[int, str, int]]
) -> None:
    unsigned = [change for change in changes if change[1:] != ("lanes", -1)]
    columns = columns_of(pcs, unsigned)
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    table, numbers = numbered_columns(columns)
    ids = numbers.tolist()
    assert len(set(ids)) == len(table) == len(set(rows)) == len(set(zip(ids, rows, strict=True)))
    for name, column in columns.items():
        assert table.columns[name][numbers].tolist() == column.tolist()


def test_accesses_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the hash of all accesses is the same."""
    monkeypatch.setattr(module, "hashed", lambda contents, _: np.full_like(contents, 2**63))
    columns = columns_of([3, 3, 3], [(0, "cost", 1), (1, "cost", 2), (2, "cost", 1)])
    table, numbers = numbered_columns(columns)
    assert table.columns["cost"][numbers].tolist() == [1, 2, 1]


@given(st.lists(st.integers(0, 2**62) | st.integers(0, 9), max_size=60))
def test_numbers_of_any_width_are_put_in_a_stable_order(numbers: list[int]) -> None:
    order = stable_order(np.array(numbers, dtype=np.int64))
    assert order.tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


def test_ranges_and_the_starts_of_equal_neighbours() -> None:
    assert ranges(np.array([5, 0, 7]), np.array([2, 0, 3])).tolist() == [5, 6, 7, 8, 9]
    assert starts(np.array([1, 1, 2, 2]), np.array([0, 3, 3, 3])).tolist() == [0, 1, 2]
    assert starts(np.zeros(0)).tolist() == []


def test_warps_have_one_key_exactly_where_all_their_columns_are_equal() -> None:
    """Values of all widths, and columns that differ at one place, by an offset or in width."""
    made, length = [], 600
    for first, offset in ((0, 0), (1, 0), (0, 1), (0, 1 << 8), (0, 1 << 16)):
        values = np.arange(length, dtype=np.int32) % 200 + offset
        values[0] += first
        for name in ("pc", "lanes", "earlier"):
            columns = columns_of([7] * length, [])
            columns[name] = values
            made.append(WarpStream.of(**columns))
    made += [WarpStream.of(**columns_of([pc] * length, [(5, "is_on", 1)])) for pc in (7, 8)]
    assert len({warp.key for warp in made}) == len(made)
    again = [WarpStream.of(**{n: getattr(warp, n)[::-1] for n in COLUMNS}) for warp in made]
    again = [warp.at(np.arange(length)[::-1]) for warp in again]
    assert [warp.key for warp in again] == [warp.key for warp in made]
