"""What a check says it has compared: accesses, ordered pairs, and pairs without an order."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpusim
from gpusim import cuda
from gpusim.checking.sink import Sink


def ints(count: int) -> Any:
    return np.zeros(count, np.int32)


@cuda.jit
def passed_on(out):
    s = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    out[t] = s[63 - t]


def test_each_ordered_pair_is_counted() -> None:
    found = gpusim.check(passed_on[1, 64], ints(64))
    # Stores and loads of shared memory, stores of global memory; each load with its store.
    assert (found.coverage.accesses, found.coverage.ordered) == (192, 64)
    assert str(found.coverage) == "192 accesses, 64 pairs of accesses ordered"


def test_blocks_that_are_run_as_one_are_counted_each() -> None:
    found = gpusim.check(passed_on[8, 64], ints(64))
    assert found.coverage.accesses == 8 * 192


def test_json_has_the_counts() -> None:
    made = gpusim.check(passed_on[1, 64], ints(64)).to_dict()
    assert made["checked"] == {
        "accesses": 192,
        "ordered_pairs": 64,
        "not_compared": {},
        "lines_not_run": [],
    }


def test_lines_that_did_not_run_are_named() -> None:
    @cuda.jit
    def branches(x, out):
        i = cuda.threadIdx.x
        if x[i] > 5:
            out[i] = 1
            out[i] += 2
        elif x[i] < 0:
            out[i] = 3
        else:
            out[i] = 4

    found = gpusim.check(branches[1, 64], ints(64) * 0, ints(64))
    numbers = sorted(found.coverage.lines_not_run)
    assert [number - numbers[0] for number in numbers] == [0, 1, 3]
    assert f"lines {numbers[0]}-{numbers[1]}, {numbers[2]} not run" in str(found.coverage)


def test_pairs_of_flags_have_no_order() -> None:
    @cuda.jit
    def flag(out):
        if cuda.threadIdx.x == 0:
            cuda.threadfence_block()
            cuda.atomic.exch(out, 0, 1)
        elif cuda.threadIdx.x == 32:
            while cuda.volatile(out)[0] == 0:
                pass

    found = gpusim.check(flag[1, 64], ints(1))
    assert not found.errors
    assert found.coverage.not_compared["strong"] >= 1
    assert "not comparable (races of atomics and flags" in str(found.coverage)


@cuda.jit
def crossed_by_block(x, out, first):
    s = cuda.shared.array(64, np.int32)
    flags = cuda.volatile(s)
    t, b = cuda.threadIdx.x, first + cuda.blockIdx.x
    flags[t] = t
    s[t ^ 1] = t
    cuda.syncwarp()
    flags[t ^ 2] = flags[t]
    held = s[(t + 16 * x[b]) % 64]
    out[64 * b + t] = held + flags[(t + 32 * x[b]) % 64]


def test_blocks_that_part_keep_the_accesses_they_made_as_one() -> None:
    x = np.arange(4, dtype=np.int32)

    def counts(*launches: tuple[int, int]) -> dict[tuple[str, tuple[int, ...]], int]:
        """Count the findings of launches of some blocks from a first one on, joined as of one."""
        sink = Sink()
        for blocks, first in launches:
            out = np.zeros(256, np.int32)
            for one in gpusim.check(crossed_by_block[blocks, 64], x, out, np.int32(first)):
                sink.add(one)
        return {(one.rule, one.lines): one.count for one in sink.sorted()}

    each = counts(*((1, block) for block in range(4)))
    assert counts((4, 0)) == each
    assert len(each) > 3
