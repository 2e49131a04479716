"""Counters of bulk copies and mbarriers: equal to Nsight Compute's on an H200."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.gpu.memory import bulk_sectors
from gpusim.launch.tensor_maps import TensorMap
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source
from gpusim.tracing.counters import COUNTERS
from validate.table import rows_of

BULK = Path(__file__).parents[2] / "validate" / "bulk"
# They count a loop that waits, which the hardware runs as often as it has time.
OF_WAITS = {"instructions", "thread_instructions", "thread_instructions_guard_on", "branches"}

Launch = tuple[str, ...]


@cache
def kernels(begin: str) -> CodeFile:
    """Return the kernels that were counted, for pieces that begin somewhere in an array."""
    text = f'#define BEGIN {begin}\n#include "counted.cuh"'
    return cuda_source(text, includes=[str(BULK)])


def counted() -> list[tuple[Launch, dict[str, int]]]:
    """Return launches with the hardware's counters that are not 0."""
    names = "kernel", "grid", "threads", "begin", "arguments"
    launches: dict[Launch, dict[str, int]] = defaultdict(dict)
    for row in rows_of(BULK / "counters.csv"):
        launches[tuple(row[name] for name in names)][row["counter"]] = int(row["value"])
    return list(launches.items())


def arguments_of(name: str, given: str) -> list[Any]:
    """Return the arguments of a launch: an array, or first a map of 100 rows of 40 words."""
    x = np.zeros(1 << 20, np.int8)
    first, *others = given.split()
    if not name.startswith("box"):
        return [x, *map(np.int32, (first, *others))]
    columns, rows = map(int, first.split("x"))
    array = x[: 100 * 160].view(np.uint32).reshape(100, 40)
    size = np.int32(4 * columns * rows)
    return [TensorMap(array, (rows, columns)), x, size, *map(np.int32, others)]


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
@pytest.mark.parametrize(
    ("launch", "found"), counted(), ids=lambda one: "-".join(one) if isinstance(one, tuple) else ""
)
def test_bulk_copies_count_as_on_an_h200(launch: Launch, found: dict[str, int]) -> None:
    """Pieces that begin on a line or not, boxes that lie outside in part, peers, multicast."""
    name, grid, block, begin, given = launch
    kernel = kernels(begin)[name][int(grid), int(block), 0, 65536]
    traced = gpusim.trace(kernel, *arguments_of(name, given))
    for counter, spec in COUNTERS.items():
        if spec.ncu.endswith(".sum") and counter not in OF_WAITS:
            assert traced.counters[counter] == found.get(spec.ncu, 0), counter


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
@pytest.mark.parametrize("name", ["bulk_store", "bulk_add", "box_add"])
def test_instructions_of_copies_count_once(name: str) -> None:
    """Without a loop that waits for a phase they are the hardware's, as are the branches."""
    launch, found = next(one for one in counted() if one[0][0] == name)
    kernel = kernels("0")[name][int(launch[1]), int(launch[2]), 0, 65536]
    traced = gpusim.trace(kernel, *arguments_of(name, launch[4]))
    assert traced.counters["instructions"] == found["smsp__inst_executed.sum"]
    assert traced.counters["branches"] == found["smsp__sass_branch_targets.sum"]


def test_a_copy_is_asked_for_by_lines_of_shared_memory() -> None:
    """Of 256 bytes from 16 on, 128 touch 5 sectors; shifted by 16 there, 112, 128 and 16 bytes."""
    assert bulk_sectors(16, 0, 256) == 5 + 5
    assert bulk_sectors(16, 16, 256) == 4 + 4 + 1
    assert bulk_sectors(0, 0, 16) == 1


def test_three_sectors_of_a_multicast_come_as_four() -> None:
    """From 32 on a line's rest has 3 sectors, and the piece's other sector comes alone."""
    assert bulk_sectors(32, 0, 128) == 4
    assert bulk_sectors(32, 0, 128, is_multicast=True) == 4 + 1
