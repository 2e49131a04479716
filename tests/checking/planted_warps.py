"""Planted races between lanes of a warp, and masks that do not name who takes part."""

from __future__ import annotations

import numpy as np
from checking.planted import ints, planted, zeros

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF
LOWER_HALF = 0x0000FFFF


@planted("warp-race", 2, 32, ints(64), zeros(2))
def warp_tail_in_plain_memory():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        s[t + 32] = 0
        cuda.syncthreads()
        s[t] += s[t + 16]  # <-
        s[t] += s[t + 8]  # <-
        if t == 0:
            out[cuda.blockIdx.x] = s[0]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        s[t + 32] = 0
        cuda.syncthreads()
        o = 16
        while o > 4:
            v = s[t + o]
            cuda.syncwarp()
            s[t] += v
            cuda.syncwarp()
            o //= 2
        if t == 0:
            out[cuda.blockIdx.x] = s[0]

    return bug, twin


@planted("warp-race", 1, 32, ints(32), zeros(1))
def guarded_warp_tail_without_barriers():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncwarp()
        if t < 16:
            s[t] += s[t + 16]  # <-
        if t < 8:
            s[t] += s[t + 8]  # <-
        if t == 0:
            out[0] = s[0]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncwarp()
        if t < 16:
            s[t] += s[t + 16]
        cuda.syncwarp()
        if t < 8:
            s[t] += s[t + 8]
        cuda.syncwarp()
        if t == 0:
            out[0] = s[0]

    return bug, twin


@planted("warp-race", 1, 32, ints(32), zeros(32))
def exchange_between_lanes_without_warp_barrier():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]  # <-
        out[t] = s[t ^ 1]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncwarp()
        out[t] = s[t ^ 1]

    return bug, twin


@planted("warp-race", 2, 64, ints(128), zeros(128))
def one_side_of_a_branch_reads_what_the_other_stores():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = 0
        cuda.syncthreads()
        if t % 32 < 16:
            s[t] = x[cuda.grid(1)]  # <-
        else:
            out[cuda.grid(1)] = s[t - 16]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = 0
        cuda.syncthreads()
        if t % 32 < 16:
            s[t] = x[cuda.grid(1)]
        cuda.syncwarp()
        if t % 32 >= 16:
            out[cuda.grid(1)] = s[t - 16]

    return bug, twin


@planted("warp-race", 1, 32, ints(32), zeros(32))
def scan_within_a_warp_without_warp_barriers():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncwarp()
        o = 1
        while o < 32:
            if t >= o:
                s[t] += s[t - o]  # <-
            o *= 2
        out[t] = s[t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncwarp()
        o = 1
        while o < 32:
            before = 0
            if t >= o:
                before = s[t - o]
            cuda.syncwarp()
            s[t] += before
            cuda.syncwarp()
            o *= 2
        out[t] = s[t]

    return bug, twin


@planted("warp-race", 1, 32, ints(32), zeros(32))
def warp_barrier_of_half_the_lanes():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]  # <-
        if t < 16:
            cuda.syncwarp(LOWER_HALF)
            out[t] = s[t + 16]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        if t < 16:
            cuda.syncwarp(LOWER_HALF)
            out[t] = s[15 - t]

    return bug, twin


@planted("warp-race", 3, 32, ints(96), zeros(96))
def lane_0_stores_for_all_without_warp_barrier():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(1, np.int32)
        if cuda.threadIdx.x == 0:
            s[0] = x[cuda.blockIdx.x]  # <-
        out[cuda.grid(1)] = s[0]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(1, np.int32)
        if cuda.threadIdx.x == 0:
            s[0] = x[cuda.blockIdx.x]
        cuda.syncwarp()
        out[cuda.grid(1)] = s[0]

    return bug, twin


@planted("one-instruction", 1, 32, ints(32), zeros(16))
def two_lanes_store_to_one_element_at_once():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t // 2] = x[t]  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        if t % 2 == 0:
            out[t // 2] = x[t] + x[t + 1]

    return bug, twin


@planted("one-instruction", 1, 32, ints(32), zeros(32))
def shared_element_stored_by_all_lanes_at_once():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        s[0] = x[t]  # <-
        cuda.syncwarp()
        out[t] = s[0]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        s[0] = 7  # the same value from all: a note
        cuda.syncwarp()
        out[t] = s[0] + x[t]

    return bug, twin


@planted("warp-race", 1, 64, ints(64), zeros(64))
def lanes_exchange_through_global_memory():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = x[t] * 2  # <-
        x[t] = out[t ^ 1]  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        out[t] = x[t] * 2
        cuda.syncwarp()
        x[t] = out[t ^ 1]

    return bug, twin


@planted("volatile-warp-race", 1, 32, ints(32), zeros(1))
def warp_tail_in_volatile_memory():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        s[t + 32] = 0
        cuda.syncthreads()
        tail = cuda.volatile(s)
        tail[t] += tail[t + 16]  # <-
        tail[t] += tail[t + 8]
        if t == 0:
            out[0] = s[0]

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        v = x[t]
        v += cuda.shfl_down_sync(EVERY_LANE, v, 16)
        v += cuda.shfl_down_sync(EVERY_LANE, v, 8)
        if t == 0:
            out[0] = v

    return bug, twin


@planted("warp-race", 1, 32, ints(32), zeros(32))
def one_of_three_warp_barriers_missing():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncwarp()
        v = s[(t + 1) % 32]  # <-
        s[t] = v + 1  # <-
        cuda.syncwarp()
        out[t] = s[31 - t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncwarp()
        v = s[(t + 1) % 32]
        cuda.syncwarp()
        s[t] = v + 1
        cuda.syncwarp()
        out[t] = s[31 - t]

    return bug, twin


@planted("mask", 1, 32, ints(32), zeros(32))
def shuffle_of_all_lanes_in_a_branch():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        v = x[t]
        if t < 16:
            v += cuda.shfl_down_sync(EVERY_LANE, v, 8)  # <-
        out[t] = v

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        v = x[t]
        other = cuda.shfl_down_sync(EVERY_LANE, v, 8)
        if t < 16:
            v += other
        out[t] = v

    return bug, twin


@planted("mask", 1, 32, ints(32), zeros(32))
def mask_without_its_caller():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = cuda.shfl_xor_sync(LOWER_HALF, x[t], 1)  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        out[t] = cuda.shfl_xor_sync(EVERY_LANE, x[t], 1)

    return bug, twin


@planted("mask", 1, 32, ints(32), zeros(32), lambda: np.int32(20))
def shuffle_after_some_lanes_have_returned():
    @cuda.jit
    def bug(x, out, n):
        t = cuda.threadIdx.x
        if t >= n:
            return
        out[t] = cuda.shfl_down_sync(EVERY_LANE, x[t], 1)  # <-

    @cuda.jit
    def twin(x, out, n):
        t = cuda.threadIdx.x
        v = x[t] if t < n else 0
        v = cuda.shfl_down_sync(EVERY_LANE, v, 1)
        if t < n:
            out[t] = v

    return bug, twin


@planted("mask", 1, 32, ints(32), zeros(32))
def ballot_of_all_lanes_in_a_branch():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        if x[t] % 2 == 0:
            out[t] = cuda.ballot_sync(EVERY_LANE, x[t] > 10)  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        said = cuda.ballot_sync(EVERY_LANE, x[t] > 10)
        if x[t] % 2 == 0:
            out[t] = said

    return bug, twin


@planted("mask", 1, 32, ints(32), zeros(32))
def shuffle_from_a_lane_outside_the_mask():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        if t < 16:
            out[t] = cuda.shfl_sync(LOWER_HALF, x[t], 20)  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        if t < 16:
            out[t] = cuda.shfl_sync(LOWER_HALF, x[t], 10)

    return bug, twin


@planted("deadlock", 1, 64, ints(64), zeros(64))
def warp_barrier_that_waits_for_lanes_at_the_block_barrier():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        if t % 32 < 16:
            cuda.syncwarp()  # <-
        cuda.syncthreads()
        out[t] = s[63 - t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        if t % 32 < 16:
            cuda.syncwarp(LOWER_HALF)
        cuda.syncthreads()
        out[t] = s[63 - t]

    return bug, twin
