"""Loops found in streams that were recorded whole: nothing is lost, and barriers stay paired."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpusim.prediction.streams import folding
from gpusim.prediction.streams.folding import FEWEST_INSTRUCTIONS, is_worth_folding, unfolded
from gpusim.prediction.streams.instruction_ids import numbered_columns
from gpusim.prediction.streams.instruction_table import COLUMNS
from gpusim.prediction.streams.stream import BlockStream, WarpStream

BARRIER = 9
ARE_BARRIERS = np.arange(16) == BARRIER
LONG = [*range(16)] * (FEWEST_INSTRUCTIONS // 16)


def a_warp(pcs: list[int], sectors: list[int] | None = None) -> WarpStream:
    columns = {name: np.zeros(len(pcs), dtype=np.int64) for name in COLUMNS}
    columns["pc"] = np.array(pcs)
    if sectors is not None:
        columns["fresh"] = np.array(sectors)
    return WarpStream.of(**columns)


def folded(block: BlockStream) -> BlockStream:
    """Return a block folded, of which the warps have a table in common."""
    columns = {n: np.concatenate([getattr(warp, n) for warp in block.warps]) for n in COLUMNS}
    table, numbers = numbered_columns(columns)
    ends = np.cumsum([len(warp) for warp in block.warps])
    warps = (WarpStream(table, own) for own in np.split(numbers, ends[:-1]))
    return folding.folded(BlockStream(tuple(warps)), ARE_BARRIERS)


def barriers_by_loop(warp: WarpStream) -> list[tuple[int, int, int]]:
    """Return for each loop with barriers those before it, those in an iteration, and its times."""
    times = warp.times * ARE_BARRIERS[warp.pc]
    found = []
    for first, end, often in warp.loops:
        inside = int(ARE_BARRIERS[warp.pc[first:end]].sum())
        if inside:
            found.append((int(times[:first].sum()), inside, often))
    return found


sections = st.lists(
    st.tuples(st.lists(st.integers(0, 8), min_size=1, max_size=12), st.integers(1, 60)), max_size=5
)


@given(st.lists(sections, min_size=1, max_size=3))
def test_a_folded_stream_written_out_is_the_recorded_one(
    warps: list[list[tuple[list[int], int]]],
) -> None:
    pcs = [LONG + [pc for body, times in parts for pc in body * times] for parts in warps]
    block = BlockStream(tuple(map(a_warp, pcs)))
    made = folded(block)
    assert made.kept < block.kept
    assert made.instructions == block.instructions
    assert unfolded(made).key == block.key


def test_a_period_spans_the_iterations_until_a_new_sector_is_touched() -> None:
    body, times = [1, 2, 3, 4], 2048
    sectors = [int(place % 32 == 0) for place in range(4 * times)]
    (warp,) = folded(BlockStream((a_warp(body * times, sectors),))).warps
    assert warp.loops == ((0, 32, times // 8 - 1),)
    assert len(warp) == 32


@given(st.lists(st.integers(0, 7), min_size=2, max_size=4), st.integers(1, 5))
def test_loops_with_barriers_meet_at_the_same_ones_in_all_warps(
    cold: list[int], length: int
) -> None:
    pcs = [*range(1, 1 + length), BARRIER] * 2500
    touched = [np.arange(len(pcs)) < few * (length + 1) for few in cold]
    block = BlockStream(tuple(a_warp(pcs, list(map(int, few))) for few in touched))
    made = folded(block)
    (alike,) = {tuple(barriers_by_loop(warp)) for warp in made.warps}
    assert len(alike) == 1
    assert unfolded(made).key == block.key


def test_a_barrier_that_only_some_warps_have_in_a_loop_is_in_none() -> None:
    mine, others = [1, 2, BARRIER] * 1500, [1, 2, BARRIER, 3, BARRIER] * 750
    made = folded(BlockStream((a_warp(LONG + mine), a_warp(LONG + others))))
    assert not any(barriers_by_loop(warp) for warp in made.warps)


def test_blocks_of_a_launch_are_folded_all_or_none() -> None:
    loop = folded(BlockStream((a_warp([1, 2] * 4096),)))
    whole = BlockStream((a_warp(np.random.default_rng(1).integers(0, 9, 8192).tolist()),))
    short = BlockStream((a_warp([1, 2, 3]),))
    assert is_worth_folding([loop, loop, short])
    assert not is_worth_folding([loop, whole])
