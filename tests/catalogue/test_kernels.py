"""Every kernel of the catalogue gives what NumPy says, on the machine and lane by lane.

Kernels that are wrong as published stand beside their corrected form.
"""

from __future__ import annotations

from typing import Any

import lane_runner
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import ENTRIES, REDUCTIONS, RIGHT, blocks, calls, numbers

import gpusim
from gpusim import catalogue
from gpusim.catalogue import Call, Entry, Request, reduction
from gpusim.errors import OutOfBoundsError

every_right_kernel = pytest.mark.parametrize("entry", RIGHT, ids=lambda e: e.name)
every_reduction = pytest.mark.parametrize("entry", REDUCTIONS, ids=lambda e: e.name)


def lane_by_lane(call: Call) -> None:
    launch = call.launch
    lane_runner.run(
        call.kernel, launch.grid[0], launch.block[0], launch.dynamic_shared_bytes, *call.arguments
    )


def at_level(level: str) -> Any:
    def run(call: Call) -> None:
        gpusim.trace(call.configured, *call.arguments, level=level)

    return run


def again(call: Call) -> Call:
    """The same launch once more, with memory of its own."""
    return call.setup.call(call.data)


# -- kernels that are right ------------------------------------------------------------


@every_right_kernel
@settings(max_examples=3)
@given(data=st.data())
def test_a_kernel_gives_what_its_oracle_says(entry: Entry, data: st.DataObject) -> None:
    """For any size, block, numbers, type, operation and grid."""
    call = data.draw(calls(entry))
    call.run()
    assert call.wrong() == 0


@pytest.mark.slow
@every_right_kernel
@settings(max_examples=50)
@given(data=st.data())
def test_a_kernel_gives_what_its_oracle_says_in_a_long_round(
    entry: Entry, data: st.DataObject
) -> None:
    call = data.draw(calls(entry))
    call.run()
    assert call.wrong() == 0


@every_right_kernel
@settings(max_examples=2)
@given(data=st.data())
def test_a_kernel_gives_the_same_without_optimisation(entry: Entry, data: st.DataObject) -> None:
    call = data.draw(calls(entry))
    at_level("O0")(call)
    assert call.wrong() == 0


@every_right_kernel
@settings(max_examples=2)
@given(data=st.data())
def test_the_machine_and_a_thread_for_each_lane_agree(entry: Entry, data: st.DataObject) -> None:
    """Bit for bit, floats too: both add in the order that the kernel says."""
    call = data.draw(calls(entry, most_threads=64, most_turns=2))
    other = again(call)
    call.run()
    lane_by_lane(other)
    assert np.array_equal(call.result, other.result, equal_nan=call.result.dtype.kind == "f")


@every_right_kernel
@pytest.mark.parametrize("n", [1, 65])
def test_a_thread_for_each_lane_gives_what_the_oracle_says(entry: Entry, n: int) -> None:
    """The runner itself is right: it needs no machine to find what NumPy finds."""
    block = None if entry.one_block else next(filter(entry.block_rule.allows, (16, 32, 64)))
    grid = 2 if entry.grid_free else None
    call = entry.call(catalogue.sample(n, entry.dtypes[0]), block=block, grid=grid)
    lane_by_lane(call)
    assert call.wrong() == 0


@every_reduction
@pytest.mark.parametrize("operation", ["sum", "max", "min"])
def test_negative_numbers_are_reduced(entry: Entry, operation: str) -> None:
    """No kernel begins with a 0 that would win over numbers below it."""
    data = np.arange(-1000, -1, dtype=np.int32)
    value, _ = reduction.reduce_all(Request(entry.name, block=64, operation=operation), data)
    assert value == {"sum": -500499, "max": -2, "min": -1000}[operation]


@every_reduction
def test_a_sum_that_overflows_wraps(entry: Entry) -> None:
    data = np.full(3, 2**31 - 1, np.int32)
    value, _ = reduction.reduce_all(Request(entry.name, block=64), data)
    assert value == 2**31 - 3


@every_reduction
def test_nan_reaches_the_sum_but_not_the_maximum(entry: Entry) -> None:
    data = np.arange(200, dtype=np.float32)
    data[77] = np.nan
    values = {
        operation: reduction.reduce_all(
            Request(entry.name, block=64, operation=operation), data
        ).value
        for operation in ("sum", "max")
    }
    assert np.isnan(values["sum"])
    assert values["max"] == 199


@every_reduction
@settings(max_examples=3)
@given(data=st.data())
def test_a_whole_reduction_leaves_what_numpy_finds(entry: Entry, data: st.DataObject) -> None:
    """For any n from 1, pass after pass."""
    n = data.draw(st.integers(1, 3000))
    values = data.draw(numbers(n, data.draw(st.sampled_from(entry.dtypes))))
    request = Request(
        entry.name,
        block=data.draw(blocks(entry, 256).filter(lambda block: block >= 8)),
        operation=data.draw(st.sampled_from(entry.operations)),
        grid=data.draw(st.integers(1, 20)) if entry.grid_free else None,
    )
    found = reduction.reduce_all(request, values)
    assert reduction.is_right(found)


@pytest.mark.parametrize("entry", REDUCTIONS, ids=lambda e: e.name)
def test_one_element_is_its_own_sum(entry: Entry) -> None:
    value, passes = reduction.reduce_all(Request(entry.name), np.array([-5], np.int32))
    assert value == -5
    assert len(passes) == (2 if entry.default_grid else 1)


@pytest.mark.parametrize("block", [64, 128, 256, 512, 1024])
@pytest.mark.parametrize("number", range(1, 8))
def test_the_seven_reductions_work_for_every_block(number: int, block: int) -> None:
    name = f"reduce{number}_fixed" if number == 5 else f"reduce{number}"
    call = catalogue.find(name).call(catalogue.sample(2**13 + 1, "int32"), block=block)
    call.run()
    assert call.wrong() == 0


@pytest.mark.parametrize("coarse", [1, 2, 3, 8])
def test_the_coarse_factor_is_free(coarse: int) -> None:
    data = catalogue.sample(3000, "float64")
    call = catalogue.find("reduce_coarsening_gpu").call(data, block=128, coarse=coarse)
    call.run()
    assert call.wrong() == 0
    assert call.launch.grid[0] == -(-3000 // (128 * coarse))


@pytest.mark.parametrize("name", ["kernel0", "kernel1", "kernel2", "kernel4", "reduce7"])
@pytest.mark.parametrize("grid", [1, 5, 100])
def test_any_grid_will_do_where_blocks_come_back_for_more(name: str, grid: int) -> None:
    data = catalogue.sample(5003, "int32")
    value, passes = reduction.reduce_all(Request(name, block=64, grid=grid), data)
    assert value == data.sum()
    assert passes[0].call.launch.grid == (grid, 1, 1)


@pytest.mark.parametrize("n", [1, 2, 31, 33, 1000, 1024])
def test_scans_take_sizes_that_are_no_power_of_two(n: int) -> None:
    for name in ("naive_scan", "kogge_stone_scan_fixed", "kogge_stone_scan_double_fixed"):
        call = catalogue.find(name).call(catalogue.sample(n, "float32"))
        call.run()
        assert call.wrong() == 0


# -- kernels that are wrong as published -----------------------------------------------


def published_and_fixed(name: str, n: int, block: int, run: Any) -> tuple[Call, Call]:
    """Both forms of a kernel, run on the same numbers."""
    entry = catalogue.find(name)
    assert entry.fixed_by is not None
    both = [
        e.call(catalogue.sample(n, e.dtypes[0]), block=block)
        for e in (entry, catalogue.find(entry.fixed_by))
    ]
    for call in both:
        run(call)
    return both[0], both[1]


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("block", [64, 128, 256, 1024])
def test_step2_leaves_elements_out_in_every_block(block: int, level: str) -> None:
    """Unoptimised too: its bound is wrong, not its timing."""
    published, fixed = published_and_fixed("step2", 4 * block, block, at_level(level))
    assert published.wrong() == 4
    assert fixed.wrong() == 0


def test_step2_adds_only_what_its_shrinking_bound_admits() -> None:
    """With 8 threads: the pairs 0-1, 2-3 and 4-5 reach element 0, the pair 6-7 never does."""
    call = catalogue.find("step2").call(np.array([1, 2, 4, 8, 16, 32, 64, 128], np.int32), block=8)
    call.run()
    assert call.result.tolist() == [1 + 2 + 4 + 8 + 16 + 32]


@pytest.mark.parametrize("name", ["reduce5", "step5"])
@pytest.mark.parametrize("block", [64, 128, 1024])
def test_a_tail_in_plain_shared_memory_is_wrong_once_optimised(name: str, block: int) -> None:
    """As on an H200: every block wrong at -O3, every block right with -G, where the bug hides."""
    published, fixed = published_and_fixed(name, 8 * block, block, at_level("O3"))
    assert published.wrong() == len(published.result)
    assert fixed.wrong() == 0
    published, fixed = published_and_fixed(name, 8 * block, block, at_level("O0"))
    assert published.wrong() == 0
    assert fixed.wrong() == 0


def test_reduction5_reads_what_other_warps_have_not_stored_yet() -> None:
    """A thread after the other, each up to its first barrier: the tree starts on empty memory."""
    published, fixed = published_and_fixed("reduction5", 512, 128, lane_by_lane)
    assert published.wrong() == 2
    assert fixed.wrong() == 0


def test_the_listing_of_reduce6_leaves_half_of_1024_threads_out() -> None:
    ones = np.ones(4096, np.int32)
    published, complete = (
        catalogue.find(name).call(ones, block=1024) for name in ("reduce6_published", "reduce6")
    )
    published.run()
    complete.run()
    assert published.result.tolist() == [1024, 1024]
    assert complete.result.tolist() == [2048, 2048]


def test_the_listing_of_reduce6_is_right_for_smaller_blocks() -> None:
    call = catalogue.find("reduce6_published").call(catalogue.sample(4096, "int32"), block=512)
    call.run()
    assert call.wrong() == 0


def test_kogge_stone_reads_before_the_first_element() -> None:
    call = catalogue.find("kogge_stone_scan").call(np.ones(64, np.float32))
    with pytest.raises(OutOfBoundsError, match="values"):
        call.run()
    with pytest.raises(IndexError, match="4294967295"):
        lane_by_lane(again(call))


def test_the_double_buffered_scan_is_inclusive_as_published() -> None:
    data = catalogue.sample(100, "float32")
    published, fixed = published_and_fixed("kogge_stone_scan_double", 100, 100, Call.run)
    assert np.array_equal(published.result, np.cumsum(data, dtype=np.float32))
    assert published.wrong() > 90
    assert fixed.wrong() == 0


def test_every_defect_is_shown_by_a_test_above() -> None:
    assert {e.name for e in ENTRIES if e.defect} == {
        *("step2", "reduce5", "step5", "reduction5", "reduce6_published"),
        *("kogge_stone_scan", "kogge_stone_scan_double"),
    }
