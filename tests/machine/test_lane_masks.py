"""Shuffles, votes and warp barriers whose mask does not name the lanes that take part."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.cuda import Kernel
from gpusim.errors import LaneMaskError

EVERY_LANE = 0xFFFFFFFF


@cuda.jit
def lanes_that_left(a, out):
    t = cuda.threadIdx.x
    if t >= 40:
        for i in range(a[t]):
            out[t] = i
        return
    out[t] = cuda.shfl_down_sync(EVERY_LANE, t, 1, 8)


@cuda.jit
def vote_in_a_branch(a, out):
    t = cuda.threadIdx.x
    if t < 40:
        out[t] = cuda.ballot_sync(EVERY_LANE, a[t] > 0)


@cuda.jit
def not_in_its_own_mask(a, out):
    out[cuda.threadIdx.x] = cuda.any_sync(0x3FF, a[0] > 0)


@cuda.jit
def from_a_lane_outside_the_mask(a, out):
    t = cuda.threadIdx.x
    if t < 20:
        out[t] = cuda.shfl_sync(0xFFFFF, a[t], t + 2)


@cuda.jit
def from_a_lane_that_the_block_does_not_have(a, out):
    out[cuda.threadIdx.x] = cuda.shfl_xor_sync(EVERY_LANE, a[0], 16)


@cuda.jit
def barrier_without_itself(a, out):
    cuda.syncwarp(a[0] | 0xFFFFFFF0)
    out[0] = 1


@cuda.jit
def match_without_itself(a, out):
    out[cuda.threadIdx.x] = cuda.match_any_sync(0xFFFF0000, a[0])


FAULTS = [
    (not_in_its_own_mask, 32, "any_sync: lanes 10-31 of warp 0 (block 0) not in their own mask"),
    (from_a_lane_outside_the_mask, 32, "shfl_sync: lanes 18-19 of warp 0 (block 0) read from"),
    (from_a_lane_that_the_block_does_not_have, 40, "shfl_xor_sync: lanes 0-7 of warp 1 (block 0)"),
    (barrier_without_itself, 32, "syncwarp: lanes 0-3 of warp 0 (block 0) not in their own mask"),
    (match_without_itself, 32, "match_any_sync: lanes 0-15 of warp 0 (block 0) not in their own"),
]


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize(("kernel", "block", "message"), FAULTS)
def test_lanes_and_masks_that_do_not_fit_are_told_with_line_warp_and_lanes(
    kernel: Kernel, block: int, message: str, level: str
) -> None:
    a, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    with pytest.raises(LaneMaskError, match=rf"^line \d+: {re.escape(message)}") as caught:
        gpusim.trace(kernel[2, block], a, out, level=level)
    place = caught.value.place
    assert place is not None
    text = kernel.source.lines[place.line - kernel.source.first_line]
    assert "cuda." in text
    assert "sync" in text


ABSENT = [
    (lanes_that_left, "shfl_down_sync: the mask names lanes 8-31 of warp 1 (block 0), but they do"),
    (vote_in_a_branch, "ballot_sync: the mask names lanes 8-31 of warp 1 (block 0), but they do"),
]


@pytest.mark.parametrize(("kernel", "message"), ABSENT)
def test_lanes_that_do_not_come_are_told_by_a_check_and_a_gpu_goes_on_without_them(
    kernel: Kernel, message: str
) -> None:
    a, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    found = gpusim.check(kernel[1, 64], a, out)
    assert any(message in one.message for one in found if one.rule == "mask")
    for level in ("O0", "O3"):
        out = np.zeros(64, np.int32)
        gpusim.trace(kernel[1, 64], a, out, level=level)
        if kernel is vote_in_a_branch:
            assert out.astype(np.uint32).tolist() == [0xFFFFFFFE] * 32 + [0xFF] * 8 + [0] * 24
        else:  # segments of 8: the last lane of each keeps its own
            assert out[:40].tolist() == [t if t % 8 == 7 else t + 1 for t in range(40)]


@pytest.mark.parametrize("cc", ["3.5", "6.0", "9.0"])
def test_masks_that_name_those_who_take_part_are_right_for_every_generation(cc: str) -> None:
    """Halves of a warp by themselves, lanes chosen by a vote, and a block of 40 threads."""

    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        if t % 32 < 16:
            out[t] = cuda.shfl_xor_sync(0xFFFF, t, 1)
        else:
            out[t] = cuda.shfl_xor_sync(0xFFFF0000, t, 1)
        odd = cuda.ballot_sync(EVERY_LANE, t % 2 == 1)
        if t % 2 == 1:
            out[t] += cuda.all_sync(odd, t > 0)
        mine = cuda.shfl_sync(0xFFFF if t % 32 < 16 else 0xFFFF0000, t, t % 32)
        out[t] += 100 * (mine == t)

    out = np.zeros(64, np.int32)
    gpusim.trace(kernel[1, 64], out, cc=cc)
    t = np.arange(64)
    assert out.tolist() == ((t ^ 1) + t % 2 + 100).tolist()
    short = np.zeros(40, np.int32)

    @cuda.jit
    def votes(out):
        out[cuda.threadIdx.x] = cuda.popc(cuda.ballot_sync(EVERY_LANE, True))

    gpusim.trace(votes[1, 40], short, cc=cc)
    assert short.tolist() == [32] * 32 + [8] * 8
