"""The thread-per-lane runner is itself held against results worked out by hand."""

from __future__ import annotations

import lane_runner
import numpy as np
import pytest

from gpusim import cuda


def run(kernel: cuda.Kernel, block: int, count: int, grid: int = 1) -> list[int]:
    out = np.zeros(count, np.int32)
    lane_runner.run(kernel, grid, block, 0, out)
    return out.tolist()


def test_lanes_meet_at_barriers() -> None:
    """Each element is written by one lane and read by its mirror image."""

    @cuda.jit
    def mirror(out):
        shared = cuda.shared.array(40, np.int32)
        tid = cuda.threadIdx.x
        shared[tid] = 10 * tid
        cuda.syncthreads()
        out[tid] = shared[39 - tid]

    assert run(mirror, 40, 40) == [10 * (39 - tid) for tid in range(40)]


def test_shuffles_stay_within_warp_and_width() -> None:
    @cuda.jit
    def shift(out):
        tid = cuda.threadIdx.x
        out[tid] = cuda.shfl_down_sync(0xFFFFFFFF, tid, 1, 4)

    assert run(shift, 8, 8) == [1, 2, 3, 3, 5, 6, 7, 7]


def test_votes_count_the_lanes_that_are_there() -> None:
    @cuda.jit
    def vote(out):
        tid = cuda.threadIdx.x
        if tid == 3:
            return
        votes = cuda.ballot_sync(0xFFFFFFFF, tid % 2 == 0)
        if tid == 0:
            out[0] = votes
            out[1] = cuda.popc(votes)
        out[2] = cuda.syncthreads_count(tid > 3)

    assert run(vote, 6, 3) == [0b010101, 3, 2]


def test_atomics_lose_nothing_and_give_the_old_value() -> None:
    @cuda.jit
    def count(out):
        order = cuda.atomic.add(out, 0, 1)
        cuda.atomic.max(out, 1, order)

    assert run(count, 48, 2, grid=2) == [96, 95]


def test_integers_wrap_as_in_c() -> None:
    @cuda.jit
    def wrap(out):
        out[0] = np.int32(2**31 - 1) + np.int32(1)
        out[1] = np.uint32(0) - np.uint32(1) > np.uint32(5)

    assert run(wrap, 1, 2) == [-(2**31), 1]


def test_a_barrier_that_some_lanes_wait_at_for_ever_is_told() -> None:
    @cuda.jit
    def split(out):
        if cuda.threadIdx.x == 0:
            cuda.syncwarp()
        else:
            cuda.syncthreads()
        out[0] = 1

    with pytest.raises(lane_runner.StuckError, match="0 at warp, 1 at barrier"):
        run(split, 2, 1)


def test_negative_indices_are_outside() -> None:
    @cuda.jit
    def before(out):
        out[cuda.threadIdx.x - 1] = 1

    with pytest.raises(IndexError, match="-1 is outside"):
        run(before, 1, 1)
