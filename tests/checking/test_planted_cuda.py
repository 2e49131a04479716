"""Planted bugs that only CUDA C++ can have: found at their lines, and corrected twins are clean."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
FOLDER = Path(__file__).parent
KERNEL = re.compile(r"__global__ void (\w+)\(")
# Planted file: the rule of its kernels, and the rules, grids and blocks of others.
RULES: dict[str, tuple[str, dict[str, str]]] = {
    "planted_barriers.cu": (
        "shared-race",
        {"lanes_that_come_apart": "barrier-apart", "flag_behind_a_barrier_of_some": "block-race"},
    ),
    "planted_copies.cu": (
        "copy-race",
        {
            "source_of_all_warps_overwritten": "global-race",
            "lanes_that_copy_to_one_element": "one-instruction",
        }
        | dict.fromkeys(
            (
                "buffer_filled_before_it_is_read",
                "wait_without_a_barrier",
                "barrier_before_the_wait",
                "barrier_of_another_warp_behind_the_wait",
            ),
            "shared-race",
        ),
    ),
    "planted_groups.cu": (
        "shared-race",
        {
            "tile_of_sixteen_left": "warp-race",
            "lanes_that_the_mask_does_not_name": "warp-race",
            "barrier_in_place_of_a_wait": "copy-race",
        },
    ),
    "planted_flags.cu": (
        "block-race",
        dict.fromkeys(
            (
                "shared_flag_without_fences",
                "shared_flag_without_the_readers_fence",
                "volatile_data_behind_a_shared_flag",
                "slot_that_is_refilled_too_early",
            ),
            "shared-race",
        )
        | {
            "relaxed_in_place_of_acquire_within_the_block": "global-race",
            "guard_read_beside_joined_atomics": "warp-race",
        },
    ),
    "planted_scopes.cu": (
        "block-race",
        {"flag_within_the_block": "global-race", "tile_without_a_fence": "shared-race"},
    ),
}
MARKS = ("// <-", "// <+")
# Headers that not every installation of the compiler has.
NEEDS = {"planted_copies.cu": "cuda_pipeline.h", "planted_groups.cu": "cooperative_groups.h"}
BLOCKS = {"planted_flags.cu": 2, "planted_scopes.cu": 2, "flag_behind_a_barrier_of_some": 2}
CASES = [(file, name) for file in RULES for name in KERNEL.findall((FOLDER / file).read_text())]
every_case = pytest.mark.parametrize(("file", "name"), CASES, ids=lambda part: part)


@cache
def kernels(file: str, *definitions: str) -> Any:
    header = NEEDS.get(file)
    if header and not any((folder / header).exists() for folder in wheels.headers()):
        pytest.skip(header)
    return gpusim.cuda_file(str(FOLDER / file), definitions=definitions)


def checked(file: str, name: str, *definitions: str) -> list[Any]:
    arrays = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    launch = kernels(file, *definitions)[name][BLOCKS.get(name, BLOCKS.get(file, 1)), 128]
    return list(gpusim.check(launch, *arrays).errors)


def marked_lines(file: str, name: str) -> set[frozenset[int]]:
    """Return the lines of a kernel that bear a mark, mark by mark."""
    lines = (FOLDER / file).read_text().splitlines()
    first = next(at for at, line in enumerate(lines) if f" {name}(" in line)
    last = lines.index("}", first)
    marked = {
        mark: [at + 1 for at in range(first, last) if lines[at].endswith(mark)] for mark in MARKS
    }
    return {frozenset(found) for found in marked.values() if found}


@every_case
def test_a_planted_bug_is_found_at_its_lines_and_nothing_else(file: str, name: str) -> None:
    rule, others = RULES[file]
    found = {(f.rule, frozenset(f.lines)) for f in checked(file, name)}
    assert found == {(others.get(name, rule), lines) for lines in marked_lines(file, name)}


@every_case
def test_the_corrected_twin_has_no_error(file: str, name: str) -> None:
    assert [(f.rule, f.lines, f.message) for f in checked(file, name, "FIXED")] == []


def test_a_kernel_without_parameters_is_checked() -> None:
    file = gpusim.cuda_source("__device__ int v[4]; __global__ void k() { v[0] = threadIdx.x; }")
    assert [found.rule for found in gpusim.check(file["k"][1, 32])] == ["one-instruction"]


def test_a_store_that_nobody_reads_is_judged_without_optimisation(tmp_path: Path) -> None:
    file = tmp_path / "dead.cu"
    file.write_text("__global__ void k() { __shared__ int last; last = threadIdx.x; }")
    for debug, rules in ((False, []), (True, ["one-instruction"])):
        kernel = gpusim.cuda_file(file, debug=debug)["k"]
        assert [found.rule for found in gpusim.check(kernel[1, 64])] == rules


def test_a_store_to_constant_memory_is_an_error_and_the_host_may_set_it_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "constant.cu"
    path.write_text("""
    __constant__ int table[64];
    __global__ void stores(int *x) { table[threadIdx.x] = x[threadIdx.x]; }
    __global__ void reads(int *x, int n) { const int *p = n ? table : x; x[threadIdx.x] = p[3]; }
    """)
    x = np.arange(64, dtype=np.int32)
    for debug, rule in ((True, "read-only"), (False, "fault")):
        file = gpusim.cuda_file(path, debug=debug)
        assert [one.rule for one in gpusim.check(file["stores"][1, 64], x).errors] == [rule]
    for value in (5, 7):
        file.set("table", np.full(64, value, np.int32))
        file["reads"][1, 64](x, 1)
        assert (x == value).all()


def test_lanes_behind_a_trap_have_left() -> None:
    text = "__global__ void k(int *x) { if (x[threadIdx.x] > 7) __trap(); x[threadIdx.x] = 50; }"
    x = np.arange(64, dtype=np.int32)
    found = gpusim.check(gpusim.cuda_source(text)["k"][1, 64], x)
    assert [(one.rule, one.count) for one in found] == [("fault", 56)]
    assert x.tolist() == [50] * 8 + [*range(8, 64)]
