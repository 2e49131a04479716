"""Counting: steps are added to the tables of their blocks; blocks with equal ones share them."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.launch.events import Placement, Step
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.tracing import counting
from gpusim.tracing.tally import Tally

FLOATS = Memory("global", "x", np.dtype(np.float32))
LOAD = Instruction("LDG", dst=(0,), src=(1,), memory=FLOATS)
BLOCKS = Placement(np.arange(2), 1, folded=True)


def loaded(addresses: np.ndarray) -> Step:
    mask = np.ones((1, 1, 32), dtype=bool)
    return Step(0, LOAD, BLOCKS, np.arange(1), mask, mask, addresses)


def of_two_blocks(apart: int) -> np.ndarray:
    """Return addresses of 32 neighbours in each of two blocks, so many bytes apart."""
    return (4096 + 4 * np.arange(32) + np.array([0, apart])[:, None])[:, None, :]


@pytest.mark.parametrize(
    ("apart", "sectors"), [(128, [[4], [4]]), (-256, [[4], [4]]), (16, [[4], [5]])]
)
def test_blocks_that_run_as_one_have_sectors_of_their_own(
    apart: int, sectors: list[list[int]]
) -> None:
    assert Tally(loaded(of_two_blocks(apart)), 9).served.sectors.tolist() == sectors


def counted(placement: Placement, rows: list[int], mask: np.ndarray) -> counting.Counters:
    """Return the counters after a load of 8 bytes a lane, side by side."""
    counters = counting.Counters(ComputeCapability(9, 0))
    blocks = len(placement.blocks)
    counters.begin(Program("load", (LOAD,), registers=2), Launch((blocks, 1, 1), (32, 1, 1), 0))
    addresses = 4096 + 8 * np.arange(32).reshape(1, 1, 32)
    counters.step(Step(0, LOAD, placement, np.array(rows), mask, mask, addresses))
    counters.batch_end(placement.blocks)
    return counters


def test_a_step_of_blocks_that_run_as_one_counts_for_each() -> None:
    counters = counted(BLOCKS, [0], np.ones((1, 1, 32), dtype=bool))
    assert counters.named(counters.by_pc[0])["global_load_sectors"] == 2 * 8
    assert counters.table_of_block.tolist() == [0, 0]


def test_two_parts_of_a_warp_count_for_it_both() -> None:
    halves = np.arange(32) < np.array([[16], [32]])
    halves[1] &= ~halves[0]
    counters = counted(Placement(np.arange(1), 1, folded=False), [0, 0], halves[None])
    (table,) = counters.tables
    assert counters.named(table[0])["global_load_sectors"] == 4 + 4
    assert counters.named(table[0])["thread_instructions"] == 32


@pytest.mark.parametrize("mixed", [counting.MIXED, np.int64(0)])
def test_rows_that_differ_are_told_apart_also_where_their_numbers_are_one(
    mixed: np.int64,
) -> None:
    rows = np.array([[1, 2], [2, 1], [1, 2], [0, 0]])
    first, which = counting._different(rows, counting._mixed(rows, mixed))
    assert rows[first][which].tolist() == rows.tolist()
    assert len(first) == 3


def test_tables_that_differ_are_told_apart_also_where_their_keys_are_one() -> None:
    counters = counting.Counters(ComputeCapability(9, 0))
    some, other = np.array([[1, 2]]), np.array([[2, 1]])
    numbers = [counters._table(table, 0) for table in (some, other, other)]
    assert [counters.tables[number].tolist() for number in numbers] == [
        [[1, 2]],
        [[2, 1]],
        [[2, 1]],
    ]
    assert numbers == [0, 1, 1]
