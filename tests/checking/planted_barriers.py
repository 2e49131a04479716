"""Planted barriers that not all threads of a block reach, or not at the same place."""

from __future__ import annotations

import numpy as np
from checking.planted import ints, number, planted, zeros

from gpusim import cuda


@planted("barrier-missed", 1, 64, ints(64), zeros(64))
def barrier_in_a_branch_of_one_warp():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        if t < 32:
            cuda.syncthreads()  # <-
            out[t] = s[t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        if t < 32:
            out[t] = s[t + 32]

    return bug, twin


@planted("deadlock", 2, 64, ints(128), zeros(128))
def barrier_in_a_branch_of_some_lanes():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        if x[t] % 2 == 0:
            cuda.syncthreads()  # <-
        out[cuda.grid(1)] = s[t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        if x[0] % 2 == 0:  # the same for all
            cuda.syncthreads()
        out[cuda.grid(1)] = s[t]

    return bug, twin


@planted("barrier-place", 1, 64, ints(64), zeros(64))
def barriers_on_both_sides_of_a_branch():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        if t < 32:
            s[t] = x[t]
            cuda.syncthreads()  # <-
        else:
            s[t] = x[t] + 1
            cuda.syncthreads()  # <-
        out[t] = s[63 - t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        if t < 32:
            s[t] = x[t]
        else:
            s[t] = x[t] + 1
        cuda.syncthreads()
        out[t] = s[63 - t]

    return bug, twin


@planted("barrier-missed", 1, 96, ints(96), zeros(96))
def barrier_in_a_loop_that_warps_leave_at_different_times():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        total = 0
        for k in range(t // 32 + 1):
            total += x[(t + k) % 96]
            cuda.syncthreads()  # <-
        out[t] = total

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        total = 0
        for k in range(3):
            if k <= t // 32:
                total += x[(t + k) % 96]
            cuda.syncthreads()
        out[t] = total

    return bug, twin


@planted("barrier-place", 1, 96, ints(96), zeros(96))
def barrier_of_the_loop_meets_the_one_behind_it():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(96, np.int32)
        t = cuda.threadIdx.x
        s[t] = 0
        for _ in range(t // 32 + 1):
            s[t] += x[t]
            cuda.syncthreads()  # <-
        cuda.syncthreads()  # <-
        out[t] = s[t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(96, np.int32)
        t = cuda.threadIdx.x
        s[t] = 0
        for _ in range(t // 32 + 1):
            s[t] += x[t]
        cuda.syncthreads()
        out[t] = s[95 - t]

    return bug, twin


@planted("barrier-missed", 2, 64, ints(100), zeros(100), number(np.int32(100)))
def barrier_inside_the_guard():
    @cuda.jit
    def bug(x, out, n):
        s = cuda.shared.array(64, np.int32)
        i = cuda.grid(1)
        if i < n:
            s[cuda.threadIdx.x] = x[i]
            cuda.syncthreads()  # <-
            out[i] = s[cuda.threadIdx.x]

    @cuda.jit
    def twin(x, out, n):
        s = cuda.shared.array(64, np.int32)
        i = cuda.grid(1)
        if i < n:
            s[cuda.threadIdx.x] = x[i]
        cuda.syncthreads()
        if i < n:
            out[i] = s[cuda.threadIdx.x]

    return bug, twin


@planted("barrier-after-return", 2, 64, ints(100), zeros(100), number(np.int32(100)))
def barrier_after_threads_have_returned():
    @cuda.jit
    def bug(x, out, n):
        s = cuda.shared.array(64, np.int32)
        i = cuda.grid(1)
        if i >= n:
            return
        s[cuda.threadIdx.x] = x[i]
        cuda.syncthreads()  # <-
        out[i] = s[cuda.threadIdx.x ^ 1]

    @cuda.jit
    def twin(x, out, n):
        s = cuda.shared.array(64, np.int32)
        i = cuda.grid(1)
        s[cuda.threadIdx.x] = x[i] if i < n else 0
        cuda.syncthreads()
        if i < n:
            out[i] = s[cuda.threadIdx.x ^ 1]

    return bug, twin


@planted("deadlock", 1, 64, ints(64), zeros(64))
def loop_left_before_its_barrier():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        total = 0
        for k in range(4):
            total += x[(t + k) % 64]
            if total > 60:
                break
            cuda.syncthreads()  # <-
        out[t] = total

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        total = 0
        for k in range(4):
            if total <= 60:
                total += x[(t + k) % 64]
            cuda.syncthreads()
        out[t] = total

    return bug, twin


@planted("barrier-missed", 1, 64, ints(64), zeros(64))
def counting_barrier_in_a_branch():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        if t >= 16:
            out[t] = cuda.syncthreads_count(x[t] > 20)  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        count = cuda.syncthreads_count(t >= 16 and x[t] > 20)
        if t >= 16:
            out[t] = count

    return bug, twin


@planted("barrier-place", 1, 64, ints(64), zeros(64))
def barrier_in_a_device_function_of_one_side():
    @cuda.jit(device=True)
    def wait():
        cuda.syncthreads()  # <-

    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = x[t]
        if t < 32:
            wait()
        else:
            cuda.syncthreads()  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        out[t] = x[t]
        wait()

    return bug, twin


@planted("deadlock", 1, 32, ints(32), zeros(32))
def half_a_warp_waits_for_the_other_half_at_the_barrier():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        if t < 16:
            cuda.syncwarp()  # <-
        else:
            cuda.syncthreads()
        out[t] = x[t]

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        cuda.syncwarp()
        cuda.syncthreads()
        out[t] = x[t]

    return bug, twin
