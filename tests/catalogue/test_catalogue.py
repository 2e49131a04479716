"""The catalogue: what is in it, how launches are made, what it refuses, what its oracle says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ENTRIES, REDUCTIONS, numbers

from gpusim import catalogue
from gpusim.catalogue import BlockRule, Request, oracle, reduction, registry
from gpusim.errors import GpusimError, InputError, LaunchError

PUBLISHED = (
    [f"reduce{k}" for k in range(1, 8)]
    + [f"reduction{k}" for k in range(1, 6)]
    + [f"step{k}" for k in range(1, 6)]
    + ["reduce_gpu", "reduce_coarsening_gpu"]
    + ["naive_scan", "kogge_stone_scan", "kogge_stone_scan_double"]
    + ["kernel0", "kernel1", "kernel2", "kernel4"]
)
WRONG = ["reduce5", "reduction5", "step2", "step5", "kogge_stone_scan", "kogge_stone_scan_double"]


def names(entries: Any) -> list[str]:
    return [entry.name for entry in entries]


def test_every_published_kernel_is_in_it_under_its_own_name() -> None:
    assert set(PUBLISHED) <= set(names(ENTRIES))


def test_every_kernel_tells_its_origin_and_what_it_teaches() -> None:
    for entry in ENTRIES:
        assert entry.origin.title
        assert entry.teaches.endswith(".")
        assert entry.teaches[0].isupper()


@pytest.mark.parametrize("name", WRONG)
def test_a_kernel_that_is_wrong_as_published_stands_beside_its_corrected_form(name: str) -> None:
    entry = catalogue.find(name)
    assert entry.defect
    assert entry.fixed_by == f"{name}_fixed"
    fixed = catalogue.find(entry.fixed_by)
    assert fixed.fixes == name
    assert fixed.defect is None
    assert fixed.origin == entry.origin
    assert fixed.block_rule == entry.block_rule


@pytest.mark.parametrize(
    ("fixes", "said"),
    [
        ("reduce55", "'mine' fixes 'reduce55': there is no such kernel; did you mean reduce5"),
        ("reduce3", "'mine' fixes 'reduce3', a kernel without a defect"),
    ],
)
def test_a_correction_is_of_a_kernel_with_a_defect(fixes: str, said: str) -> None:
    mine = replace(catalogue.find("reduce3"), name="mine", fixes=fixes)
    with pytest.raises(TypeError) as refused:
        registry._check_fixes(mine, {entry.name: entry for entry in ENTRIES})
    assert str(refused.value).startswith(said)


def test_no_other_kernel_has_a_defect() -> None:
    assert {e.name for e in ENTRIES if e.defect} == {*WRONG, "reduce6_published"}


def test_the_listing_of_reduce6_is_kept_beside_the_one_that_knows_1024_threads() -> None:
    assert catalogue.find("reduce6_published").fixed_by == "reduce6"


@pytest.mark.parametrize(
    ("name", "block", "grid"),
    [
        ("reduce1", 128, 8192),
        ("reduce2", 1024, 1024),
        ("reduce3", 128, 8192),
        ("reduce4", 128, 4096),
        ("reduce4", 1024, 512),
        ("reduce5_fixed", 1024, 512),
        ("reduce6", 128, 4096),
        ("reduce7", 1024, 512),
        ("kernel0", 256, 432),
    ],
)
def test_the_launch_rule_gives_the_grids_that_were_measured(
    name: str, block: int, grid: int
) -> None:
    launch = catalogue.find(name).setup(2**20, block=block).launch
    assert launch.grid == (grid, 1, 1)
    assert launch.block == (block, 1, 1)


def test_shared_memory_holds_one_element_a_thread() -> None:
    entry = catalogue.find("reduce3")
    assert entry.setup(1000, block=128).launch.dynamic_shared_bytes == 512
    assert entry.setup(1000, block=128, dtype="float64").launch.dynamic_shared_bytes == 1024
    assert catalogue.find("kernel1").setup(1000).launch.dynamic_shared_bytes == 0


def test_the_same_template_parameters_give_the_same_kernel() -> None:
    entry = catalogue.find("reduce6")
    assert entry.kernel(block=128) is entry.setup(5000, block=128).kernel
    assert entry.kernel(block=128) is not entry.kernel(block=256)
    assert entry.kernel(block=128).__name__ == "reduce6"


def test_input_of_an_unguarded_kernel_is_filled_up_to_whole_blocks() -> None:
    data = np.full(300, -7, np.int32)
    call = catalogue.find("reduce4").call(data, block=64, operation="max")
    filled = call.arguments[0]
    assert len(filled) == 384
    assert set(filled[300:].tolist()) == {-(2**31)}
    assert call.launch.grid == (3, 1, 1)
    assert call.arguments[2] == 300


def test_input_of_a_guarded_kernel_is_passed_as_it_is() -> None:
    data = np.arange(300, dtype=np.int32)
    assert catalogue.find("reduce3").call(data, block=64).arguments[0] is data


def test_a_kernel_that_works_in_its_input_gets_a_copy() -> None:
    data = np.arange(512, dtype=np.float64)
    call = catalogue.find("reduce_gpu").call(data)
    assert not np.shares_memory(call.arguments[0], data)


def test_a_scan_in_one_block_has_a_thread_for_each_element() -> None:
    entry = catalogue.find("kogge_stone_scan_fixed")
    assert entry.setup(300).launch.block == (300, 1, 1)
    call = entry.call(np.ones(300, np.float32), block=512)
    assert call.arguments[2] == 512
    assert len(call.output) == 512
    assert len(call.result) == 300


def test_an_unknown_kernel_offers_the_nearest_names() -> None:
    with pytest.raises(InputError, match=r"no kernel 'reduc2'; did you mean reduce2"):
        catalogue.find("reduc2")


@pytest.mark.parametrize(
    ("name", "asked", "message"),
    [
        ("reduce1", {"n": 0}, "n must be from 1"),
        ("reduce1", {"n": -1}, "n must be from 1"),
        ("reduce1", {"n": 2**31}, "n must be from 1"),
        ("reduce1", {"block": 0}, "reduce1 needs a block that is a power of two .* not 0"),
        ("reduce1", {"block": 96}, "power of two from 2 to 1024, not 96; try 64 or 128"),
        ("reduce1", {"block": 1025}, "not 1025; try 1024"),
        ("reduce6", {"block": 32}, "power of two from 64 to 1024, not 32; try 64"),
        ("kernel4", {"block": 100}, "multiple of 32 from 32 to 1024, not 100; try 96 or 128"),
        ("kernel4", {"dtype": "float64"}, "kernel4 does not take float64"),
        ("reduce1", {"dtype": "bool"}, "does not take bool"),
        ("reduce1", {"dtype": "number"}, "'number' is not a data type; reduce1 takes int32"),
        ("reduce1", {"operation": "mean"}, "does not do 'mean'; it does sum, max, min"),
        ("naive_scan", {"operation": "max"}, "does not do 'max'; it does sum"),
        ("kogge_stone_scan", {"n": 2000}, "works in one block: n is at most 1024, not 2,000"),
        ("kogge_stone_scan", {"n": 500, "block": 64}, "need a block of 500, not 64"),
        ("reduce3", {"n": 1000, "block": 128, "grid": 5}, "needs 8 blocks for 1,000 elements"),
        ("kernel0", {"grid": 0}, "at least 1 block"),
        ("reduce1", {"coarse": 4}, "reduce1 has no coarse factor"),
        ("reduce_coarsening_gpu", {"coarse": 0}, "at least 1, not 0"),
    ],
)
def test_what_a_kernel_does_not_work_for_is_refused(
    name: str, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(GpusimError, match=message):
        catalogue.find(name).setup(**asked)


def test_a_grid_that_agrees_with_the_rule_is_accepted() -> None:
    assert catalogue.find("reduce3").setup(1000, block=128, grid=8).grid == 8


@pytest.mark.parametrize("shape", [(0,), (4, 4), ()])
def test_only_a_row_of_numbers_is_reduced(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError):
        catalogue.find("reduce1").call(np.zeros(shape, np.int32))
    with pytest.raises(InputError):
        reduction.reduce_all(Request("reduce1"), np.zeros(shape, np.int32))


def test_numbers_of_another_type_than_the_setup_are_refused() -> None:
    setup = catalogue.find("reduce1").setup(4)
    with pytest.raises(InputError, match="expected 4 numbers of int32"):
        setup.call(np.zeros(4, np.float32))


def test_the_list_needs_neither_compiler_nor_machine() -> None:
    """`gpusim list` starts fast: nothing heavy comes with the catalogue."""
    heavy = ("gpusim.compiler.build", "gpusim.lowering", "gpusim.machine", "hypothesis")
    code = (
        "import sys; from gpusim import catalogue; catalogue.entries(); "
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_an_entry_is_ready_for_json() -> None:
    told = catalogue.find("reduce5").to_dict()
    assert told["fixed_by"] == "reduce5_fixed"
    assert told["operations"] == ["sum", "max", "min"]
    assert told["about"].startswith("Transcript of a lecture")
    assert told["url"] == ""
    assert catalogue.find("reduction5").to_dict()["url"].startswith("https://github.com/")


@given(st.integers(1, 2**20), st.sampled_from(REDUCTIONS))
def test_a_plan_ends_with_one_value_and_wastes_no_pass(n: int, entry: Any) -> None:
    setups = Request(entry.name, n, passes="all").setups()
    assert [s.n for s in setups[1:]] == [s.results for s in setups[:-1]]
    assert [s.results == 1 for s in setups] == [False] * (len(setups) - 1) + [True]


def test_a_grid_stride_kernel_finishes_in_a_second_stage_of_one_block() -> None:
    whole = Request("kernel1", 2**20, passes="all")
    for request, grids in (
        (whole, [432, 1]),
        (replace(whole, grid=1), [1]),
        (replace(whole, n=10, grid=1000), [1000, 1]),
    ):
        assert [setup.grid for setup in request.setups()] == grids


def test_a_scan_is_no_reduction() -> None:
    with pytest.raises(InputError, match="naive_scan is a scan"):
        Request("naive_scan", 10, passes="all").setups()


def test_whole_reductions_let_the_caller_run_each_pass() -> None:
    """Each pass is given to `launch` with its arguments made, and what it returns is kept."""
    seen = []

    def sum_by_numpy(call: Any) -> str:
        seen.append(call.launch.grid[0])
        call.output[:] = call.expected().values
        return f"pass {len(seen)}"

    value, passes = reduction.reduce_all(
        Request("reduce1", block=64), np.arange(1000, dtype=np.int32), sum_by_numpy
    )
    assert value == 499500
    assert value.dtype == np.int32
    assert seen == [16, 1]
    assert [p.outcome for p in passes] == ["pass 1", "pass 2"]


def test_an_error_comes_before_the_first_pass() -> None:
    def never(_: Any) -> None:
        raise AssertionError("a pass was run")

    with pytest.raises(LaunchError):
        reduction.reduce_all(Request("reduce1", block=96), np.ones(1000, np.int32), never)


def test_a_block_rule_names_the_sizes_next_to_a_wrong_one() -> None:
    rule = BlockRule(64)
    assert [rule.nearest(b) for b in (1, 96, 2000)] == [[64], [64, 128], [1024]]


def test_sample_numbers_are_small_mixed_and_the_same_each_time() -> None:
    for name in catalogue.NUMBERS:
        data = catalogue.sample(1000, name)
        assert data.dtype == name
        assert np.array_equal(data, catalogue.sample(1000, name))
        assert len(set(data.tolist())) > 50
        assert (data.min() < 0) == (np.dtype(name).kind != "u")


# -- the oracle ------------------------------------------------------------------------


@pytest.mark.parametrize("operation", oracle.OPERATIONS)
@pytest.mark.parametrize("dtype", catalogue.NUMBERS)
def test_the_identity_changes_nothing(operation: str, dtype: str) -> None:
    data = catalogue.sample(20, dtype)
    nothing = oracle.identity(operation, np.dtype(dtype))
    assert nothing.dtype == dtype
    assert np.array_equal(oracle.COMBINE[operation](data, nothing), data)


@given(st.data())
def test_partial_results_are_those_of_a_loop_over_elements(data: st.DataObject) -> None:
    n, grid, chunk = (data.draw(st.integers(1, most)) for most in (60, 4, 8))
    operation = data.draw(st.sampled_from(oracle.OPERATIONS))
    values = data.draw(numbers(n, data.draw(st.sampled_from(["int8", "uint32", "int64"]))))
    should_be = [oracle.identity(operation, values.dtype)] * grid
    with np.errstate(over="ignore"):
        for i, value in enumerate(values):
            block = i // chunk % grid
            should_be[block] = oracle.COMBINE[operation](should_be[block], value)
    found = oracle.reduce_blocks(values, operation, grid, chunk, additions=n)
    assert found.values.dtype == values.dtype
    assert found.values.tolist() == [int(v) for v in should_be]
    assert not found.wrong(np.array(should_be, values.dtype)).any()


@given(st.data())
def test_sums_of_floats_agree_within_rounding_in_any_order(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 200))
    values = data.draw(numbers(n, data.draw(st.sampled_from(["float32", "float64"]))))
    found = oracle.reduce_blocks(values, "sum", 1, n, additions=n)
    with np.errstate(all="ignore"):
        for order in (values, values[::-1], np.sort(values)):
            total = np.array([list(accumulate(order, np.add))[-1]], values.dtype)
            assert not found.wrong(total).any()


def test_a_float_sum_that_misses_an_element_is_wrong() -> None:
    values = np.ones(1000, np.float32)
    found = oracle.reduce_blocks(values, "sum", 1, 1000, additions=12)
    assert found.wrong(np.array([999], np.float32)).all()


def test_nan_reaches_every_sum_and_only_a_maximum_of_nothing_else() -> None:
    values = np.array([1, np.nan, np.nan, np.nan], np.float32)
    assert np.isnan(oracle.reduce_blocks(values, "sum", 2, 2, 2).values).all()
    largest = oracle.reduce_blocks(values, "max", 2, 2, 2)
    assert largest.values[0] == 1
    assert not largest.wrong(np.array([1, np.nan], np.float32)).any()
    assert not largest.wrong(np.array([1, -np.inf], np.float32)).any()
    assert largest.wrong(np.array([np.nan, 2], np.float32)).all()


def test_an_exclusive_scan_begins_with_nothing() -> None:
    found = oracle.exclusive_scan(np.array([3, 1, 4, 1], np.int32))
    assert found.values.tolist() == [0, 3, 4, 8]
    assert oracle.exclusive_scan(np.array([127, 1, 1], np.int8)).values.tolist() == [0, 127, -128]
    floats = oracle.exclusive_scan(np.array([1, np.inf, np.nan, 1], np.float32))
    assert not floats.wrong(np.array([0, 1, np.inf, np.nan], np.float32)).any()


def test_the_oracle_leaves_the_order_open_where_finite_sums_overflow() -> None:
    """3e38 + 3e38 - inf is NaN from the left and -inf in pairs; -inf + 1 is -inf in any order."""
    overflowing = np.array([3e38, 3e38, -np.inf, 1], np.float32)
    for third in (np.nan, -np.inf):
        found = np.array([0, 3e38, np.inf, third], np.float32)
        assert not oracle.exclusive_scan(overflowing).wrong(found).any()
    modest = oracle.exclusive_scan(np.array([-np.inf, 1, 1], np.float32))
    assert modest.wrong(np.array([0, -np.inf, 0], np.float32)).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("name", "n"), [("reduce2", 2**24), ("naive_scan", 2**10), ("kogge_stone_scan", 2**8)]
)
def test_a_prediction_without_a_size_fills_a_gpu_unless_a_kernel_has_a_limit(
    name: str, n: int
) -> None:
    """A scan of 2^24 elements by 2^48 additions does not end, and one of a block has a block's."""
    assert catalogue.find(name).predicted_n == n
