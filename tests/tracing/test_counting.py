"""Counting: what many steps or blocks have alike is worked out once, and comes out the same."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.launch.events import Placement, Step
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.tracing import counting
from gpusim.tracing.copies import LastCopies
from gpusim.tracing.tally import MOST_COMPARED_BYTES, Seen

FLOATS = Memory("global", "x", np.dtype(np.float32))
LOAD = Instruction("LDG", dst=(0,), src=(1,), memory=FLOATS)
BLOCKS = Placement(np.arange(2), 1, folded=True)


def loaded(addresses: np.ndarray, on: np.ndarray | None = None) -> Step:
    mask = np.ones((1, 1, 32), dtype=bool) if on is None else on
    return Step(0, LOAD, BLOCKS, np.arange(1), mask, mask, addresses)


def of_two_blocks(apart: int) -> np.ndarray:
    """Return addresses of 32 neighbours in each of two blocks, so many bytes apart."""
    return (4096 + 4 * np.arange(32) + np.array([0, apart])[:, None])[:, None, :]


def test_equal_masks_and_addresses_are_one_tally() -> None:
    seen = Seen(9, LastCopies())
    first, second = (seen.tally(loaded(of_two_blocks(128))) for _ in range(2))
    assert first == second


def test_masks_of_two_warps_are_not_those_of_two_blocks() -> None:
    seen = Seen(9, LastCopies())
    warps, blocks = (np.ones(shape, dtype=bool) for shape in ((1, 2, 32), (2, 1, 32)))
    shapes = [
        seen.tally(loaded(of_two_blocks(128), mask)).masks.lanes_on.shape
        for mask in (warps, blocks)
    ]
    assert shapes == [(1, 2), (2, 1)]


@pytest.mark.parametrize(
    ("apart", "sectors"),
    [(128, [[4]]), (1 << 20, [[4]]), (-256, [[4]]), (16, [[4], [5]]), (32, [[4], [4]])],
)
def test_blocks_that_are_whole_lines_apart_share_their_sectors(
    apart: int, sectors: list[list[int]]
) -> None:
    assert (
        Seen(9, LastCopies()).tally(loaded(of_two_blocks(apart))).served.sectors.tolist() == sectors
    )


def test_one_lane_elsewhere_is_not_alike() -> None:
    addresses = of_two_blocks(128)
    addresses[1, 0, 31] += 4096
    assert Seen(9, LastCopies()).tally(loaded(addresses)).served.sectors.tolist() == [[4], [5]]


def test_what_large_accesses_come_to_is_kept_and_their_addresses_are_not() -> None:
    blocks = MOST_COMPARED_BYTES // (32 * 8) + 1
    counters = counting.Counters(ComputeCapability(9, 0), LastCopies())
    launch = Launch((blocks, 1, 1), (32, 1, 1), 0)
    counters.begin(Program("load", (LOAD,), registers=2), launch)
    placement = Placement(np.arange(blocks), 1, folded=False)
    mask = np.ones((1, blocks, 32), dtype=bool)
    addresses = 4096 + 8 * np.arange(mask.size).reshape(mask.shape)
    counters.step(Step(0, LOAD, placement, np.arange(blocks), mask, mask, addresses))
    ((tally, _),) = counters._batches[0].times
    assert tally.served.nbytes == 0
    assert tally.served.sectors.tolist() == [[8] * blocks]
    counters.batch_end(np.arange(blocks))
    assert counters.named(counters.by_pc[0])["global_load_sectors"] == 8 * blocks


@pytest.mark.parametrize("mixed", [counting.MIXED, np.int64(0)])
def test_rows_that_differ_are_told_apart_also_where_their_numbers_are_one(
    mixed: np.int64,
) -> None:
    rows = np.array([[1, 2], [2, 1], [1, 2], [0, 0]])
    first, which = counting._different(rows, counting._mixed(rows, mixed))
    assert rows[first][which].tolist() == rows.tolist()
    assert len(first) == 3


def test_tables_that_differ_are_told_apart_also_where_their_keys_are_one() -> None:
    counters = counting.Counters(ComputeCapability(9, 0), LastCopies())
    some, other = np.array([[1, 2]]), np.array([[2, 1]])
    numbers = [counters._table(table, 0) for table in (some, other, other)]
    assert [counters.tables[number].tolist() for number in numbers] == [
        [[1, 2]],
        [[2, 1]],
        [[2, 1]],
    ]
    assert numbers == [0, 1, 1]
