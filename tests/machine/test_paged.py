"""Copies of arrays that are filled where a run touches them."""

from __future__ import annotations

import numpy as np

from gpusim import cuda, machine
from gpusim.codegen.programs import prepare
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.paged import PAGE_BYTES, PagedCopy
from gpusim.launch.prepared import Prepared
from gpusim.machine.storage import allocate, with_copies
from gpusim.typing import Array

WORDS = PAGE_BYTES // 4


def test_pages_are_filled_where_an_access_begins_and_ends() -> None:
    """8 bytes from 4 bytes before the second page's end on, of four pages and a half."""
    original = np.arange(9 * PAGE_BYTES // 2, dtype=np.int64).astype(np.uint8) | 1
    copy = PagedCopy(original)
    copy.fill(np.array([2 * PAGE_BYTES - 4]), 8)
    filled = [bool(copy.bytes[page * PAGE_BYTES]) for page in range(5)]
    assert filled == [False, True, True, False, False]
    copy.bytes[PAGE_BYTES] = 77
    copy.fill_all()
    assert copy.bytes[PAGE_BYTES] == 77  # what was written stays
    copy.bytes[PAGE_BYTES] = original[PAGE_BYTES]
    assert (copy.bytes == original).all()


@cuda.jit
def doubled(x, out):
    """Each block's first thread doubles its own word of a page, and says what it found."""
    if cuda.threadIdx.x == 0:
        i = 1024 * cuda.blockIdx.x + 5
        out[cuda.blockIdx.x] = x[i]
        x[i] *= 2


def copied(x: Array, out: Array) -> Prepared:
    """Return a launch of four blocks on copies of its arrays."""
    prepared = prepare(doubled[4, 32], (x, out), ComputeCapability(9, 0), code="lowering")
    arguments, copies = with_copies(prepared.arguments, {"x", "out"})
    return Prepared(
        prepared.program, prepared.launch, arguments, ComputeCapability(9, 0), copies=copies
    )


def test_blocks_find_what_arrays_hold_and_leave_them_as_they_are() -> None:
    x, out = np.arange(4 * WORDS, dtype=np.int32) + 1, np.zeros(4, np.int32)
    run = copied(x, out)
    machine.run(run, blocks=[1, 3])
    assert run.arguments["out"].tolist() == [0, WORDS + 6, 0, 3 * WORDS + 6]
    assert run.arguments["x"][[WORDS + 5, WORDS + 6]].tolist() == [2 * WORDS + 12, WORDS + 7]
    assert x.tolist() == list(range(1, 4 * WORDS + 1))
    assert out.tolist() == [0, 0, 0, 0]


def test_arrays_that_overlap_do_so_in_their_copies() -> None:
    """The second is the first backwards, every other element."""
    base = np.arange(64, dtype=np.int32)
    given = {"x": base[:40], "y": base[::-2], "n": 3, "z": np.zeros(4, np.int32)}
    made, copies = with_copies(given, {"x"})
    assert len(copies) == 1
    assert made["z"] is given["z"]
    copies[0].fill_all()
    assert made["y"].tolist() == given["y"].tolist()
    made["x"][3] = 99
    assert made["y"][-2] == 99
    assert base[3] == 3
    places = [[one[name].address for name in "xy"] for one in map(allocate, (given, made))]
    assert places[0] == places[1]
