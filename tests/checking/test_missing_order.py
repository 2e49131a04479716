"""Races at flags and copies say what is missing, in the message, the fix and the picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checking.planted import Case
from checking.test_planted import CASES as PYTHON_CASES
from checking.test_planted_cuda import CASES as CUDA_CASES
from checking.test_planted_cuda import checked

import gpusim
from gpusim.reports.checking import interval
from gpusim.sass import wheels

compiles = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

# What is missing in each planted kernel with a wrong use of memory order; "" where no flag, fence
# or wait is between the accesses.
CUDA = {
    "planted_flags.cu": {
        "shared_flag_without_fences": {"release"},
        "shared_flag_without_the_readers_fence": {"acquire"},
        "volatile_data_behind_a_shared_flag": {"release"},
        "slot_that_is_refilled_too_early": {"fence order"},
        "lock_without_a_fence_behind_it": {"acquire"},
        "lock_with_a_fence_of_the_block": {"acquire scope"},
        "lock_of_one_side_without_a_fence": {"acquire"},
        "lock_given_back_before_the_fence": {"fence order"},
        "volatile_store_against_an_atomic": {"atomic"},
        "relaxed_in_place_of_acquire": {"acquire"},
        "relaxed_in_place_of_release": {"release"},
        "relaxed_in_place_of_acquire_within_the_block": {"acquire"},
        "swap_that_does_not_acquire": {"acquire"},
        "last_block_without_a_fence_of_its_own": {"acquire"},
        "guard_read_beside_joined_atomics": {"atomic"},
    },
    "planted_scopes.cu": {
        "plain_store_against_an_atomic": {"atomic"},
        "atomic_of_the_block_against_another_block": {"scope"},
        "old_value_of_an_atomic_of_the_block": {"scope"},
        "atomics_of_two_scopes": {"scope"},
        "atomics_of_one_block_each": {"scope"},
        "fence_of_the_block_behind_another": {"fence scope"},
        "release_to_the_block_alone": {"fence scope", "scope"},
        "flag_within_the_block": {"release"},
        "tile_without_a_fence": {"release"},
    },
    "planted_copies.cu": {
        "copy_read_without_a_wait": {"wait"},
        "own_copy_read_without_a_wait": {"wait"},
        "group_that_was_not_committed": {"commit"},
        "newest_group_read": {"wait for all"},
        "buffer_filled_before_it_is_read": {""},
        "wait_without_a_barrier": {"barrier"},
        "barrier_before_the_wait": {"barrier"},
        "source_overwritten": {"wait"},
        "source_overwritten_by_another_warp": {"wait"},
        "two_copies_to_one_element": {"wait"},
        "store_before_the_copy_has_ended": {"wait"},
        "sixteen_bytes_by_the_pipeline": {"wait for all"},
        "barrier_of_another_warp_behind_the_wait": {"barrier"},
        "source_of_all_warps_overwritten": {"barrier"},
        "lanes_that_copy_to_one_element": {""},
    },
}
PYTHON = {
    "flag_in_plain_shared_memory": {"acquire", ""},
    "last_block_without_fence": {"release"},
    "last_block_reads_what_all_threads_of_others_stored": {"barrier"},
    "flag_without_fence": {"release"},
    "flag_behind_a_fence_of_the_block_alone": {"fence scope"},
    "flag_raised_before_the_data": {"flag order"},
    "chain_of_blocks_without_fence": {"release"},
    "lock_given_back_without_fence": {"release"},
    "block_0_clears_what_others_add_to": {"atomic"},
    "total_read_while_others_add": {"atomic"},
}


@compiles
@pytest.mark.parametrize(
    ("file", "name"), [case for case in CUDA_CASES if case[0] in CUDA], ids=lambda part: part
)
def test_a_planted_race_of_cuda_names_what_is_missing(file: str, name: str) -> None:
    assert {one.missing for one in checked(file, name)} == CUDA[file][name]


@pytest.mark.parametrize(
    "case", [one for one in PYTHON_CASES if one.name in PYTHON], ids=lambda one: one.name
)
def test_a_planted_race_of_python_names_what_is_missing(case: Case) -> None:
    found = case.check(case.pair()[0])
    assert {one.missing for one in found.errors} == PYTHON[case.name]


def test_every_row_of_the_table_is_a_planted_kernel() -> None:
    assert PYTHON.keys() <= {one.name for one in PYTHON_CASES}
    assert {(file, name) for file, rows in CUDA.items() for name in rows} <= {*CUDA_CASES}


HANDOVER = """__global__ void k(int *x, volatile int *flag, int *out) {{
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {{
        x[0] = 5;
        {before}
        flag[0] = 1;
    }} else {{
        while (flag[0] == 0) {{}}
        {behind}
        out[0] = x[0];
    }}
}}"""
FENCE, NONE = "__threadfence();", ""


def handed_over(before: str, behind: str, **options: Any) -> list[gpusim.Finding]:
    arrays = [np.zeros(4, np.int32) for _ in range(3)]
    kernel = gpusim.cuda_source(HANDOVER.format(before=before, behind=behind))["k"]
    return list(gpusim.check(kernel[2, 32], *arrays, **options))


@compiles
def test_fences_on_both_sides_are_clean() -> None:
    assert handed_over(FENCE, FENCE) == []


@compiles
def test_the_message_and_the_fix_name_lines_and_flag() -> None:
    (race,) = handed_over(NONE, FENCE)
    assert race.lines == (4, 10)
    assert race.message.endswith(
        "no fence between the write in line 4 and the flag flag[0] set in line 6"
    )
    assert race.fix == "put __threadfence() between the write in line 4 and line 6"


@compiles
def test_lenient_is_named_where_it_clears_the_report() -> None:
    (race,) = handed_over(FENCE, NONE)
    assert race.message.endswith(
        "no fence between the flag flag[0] read in line 8 and the read in line 10; "
        "--lenient takes the flag for an acquire"
    )
    assert handed_over(FENCE, NONE, lenient=True) == []


@compiles
def test_the_picture_has_the_flag_and_the_fences_in_the_order_of_execution() -> None:
    (race,) = handed_over(FENCE, NONE)
    rows = [text.plain.strip() for text in interval(race, 100)][3:-1]
    assert rows == [
        "line 4: writes x[0]",
        "line 5: fence",
        "line 6: sets flag[0]",
        "line 8: reads flag[0]",
        "no fence",
        "line 10: reads x[0]",
    ]
    assert [place.line for place in race.sequence] == [4, 5, 6, 8, 0, 10]
