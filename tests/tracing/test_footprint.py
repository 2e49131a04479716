"""Footprints: how many different sectors a line touches, beside those that its warps request."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.reports.trace import trace_report
from gpusim.sass import wheels
from gpusim.tracing.footprint import Footprint

BLOCKS = 16
Rows = list[tuple[str, tuple[str, ...], int, int]]


@cuda.jit
def look_up(table, out):
    out[cuda.grid(1)] = table[cuda.threadIdx.x]


@cuda.jit
def guarded(a, out):
    i = cuda.grid(1)
    if i % 16 == 0:
        out[i] = a[i]


@cuda.jit
def gather(a, index, out):
    i = cuda.grid(1)
    out[i] = a[index[i]]


@cuda.jit
def twice(a, out):
    i = cuda.grid(1)
    first = a[i]
    cuda.syncthreads()
    out[i] = first + a[i ^ 1]


@cuda.jit
def odd_ones(a, out):
    """Blocks part: those with odd numbers alone read on, one sector each."""
    if cuda.blockIdx.x % 2 == 1:
        out[cuda.blockIdx.x] = a[8 * cuda.blockIdx.x]


def words(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.int32)


def rows(kernel: cuda.Kernel, *arrays: np.ndarray[Any, Any], **how: Any) -> Rows:
    made = gpusim.trace(kernel[BLOCKS, 64], *arrays, **{"code": "lowering", **how})
    return [
        (one.access, one.arrays, one.requested_sectors, one.distinct_sectors)
        for one in made.footprints
    ]


@pytest.mark.parametrize("chunk", [None, 3])
def test_a_table_that_all_blocks_read_is_requested_by_each_and_touched_once(
    chunk: int | None,
) -> None:
    """64 words are 8 sectors, which 16 blocks request; each block stores 8 sectors of its own."""
    assert rows(look_up, words(64), words(64 * BLOCKS), blocks_per_chunk=chunk) == [
        ("load", ("table",), 128, 8),
        ("store", ("out",), 128, 128),
    ]


def test_lanes_that_are_off_touch_nothing() -> None:
    """Every 16th of 1,024 words is touched: 64 sectors, each by one lane."""
    assert rows(guarded, words(64 * BLOCKS), words(64 * BLOCKS)) == [
        ("load", ("a",), 64, 64),
        ("store", ("out",), 64, 64),
    ]


def test_lines_of_one_array_have_footprints_of_their_own() -> None:
    found = rows(twice, words(64 * BLOCKS), words(64 * BLOCKS))
    assert found == [
        ("load", ("a",), 128, 128),
        ("load", ("a",), 128, 128),
        ("store", ("out",), 128, 128),
    ]


def test_gathered_sectors_are_those_that_sets_of_indices_hold() -> None:
    """The same by a second way: a set of what each warp's index names, in units of 8 words."""
    index = np.random.default_rng(4).integers(0, 4096, 64 * BLOCKS).astype(np.int32)
    warps = [set(warp.tolist()) for warp in (index // 8).reshape(-1, 32)]
    load = ("load", ("a",), sum(map(len, warps)), len(set.union(*warps)))
    assert load in rows(gather, words(4096), index, words(64 * BLOCKS))


def test_blocks_that_part_touch_what_each_of_them_does() -> None:
    """Both warps of eight blocks load a sector; they store to the two sectors of 16 words."""
    assert rows(odd_ones, words(8 * BLOCKS), words(BLOCKS)) == [
        ("load", ("a",), 16, 8),
        ("store", ("out",), 16, 2),
    ]


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_the_own_code_of_a_compiler_touches_the_same() -> None:
    arrays = words(64), words(64 * BLOCKS)
    assert rows(look_up, *arrays, code="nvcc") == rows(look_up, *arrays)


def test_the_report_and_the_document_say_it() -> None:
    made = gpusim.trace(look_up[BLOCKS, 64], words(64), words(64 * BLOCKS), code="lowering")
    assert made.footprints[0] == Footprint(made.footprints[0].line, "load", ("table",), 128, 8)
    text = "\n".join(line.plain for line in trace_report(made, 100))
    part = next(part for part in text.split("\n\n") if part.startswith("Footprint"))
    assert [line.split()[1:] for line in part.splitlines()[2:]] == [
        ["load", "table", "128", "8", "256", "bytes"],
        ["store", "out", "128", "128", "4.1", "KB"],
    ]
    assert made.to_dict()["footprints"][0] == {
        "line": made.footprints[0].line,
        "access": "load",
        "arrays": ["table"],
        "requested_sectors": 128,
        "distinct_sectors": 8,
    }
