"""Planted arithmetic that C leaves undefined, variables without a value, sums without an order."""

from __future__ import annotations

import numpy as np
from checking.planted import floats, ints, planted, zeros

from gpusim import cuda


@planted("unset-variable", 1, 32, ints(32), zeros(32))
def variable_set_on_one_side_only():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        if x[t] > 10:
            v = x[t]
        out[t] = v  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        v = 0
        if x[t] > 10:
            v = x[t]
        out[t] = v

    return bug, twin


@planted("unset-variable", 1, 32, ints(32), zeros(32))
def variable_set_in_a_loop_that_may_not_run():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        for k in range(x[t]):
            last = k
        out[t] = last  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        for k in range(x[t] + 1):
            last = k
        out[t] = last

    return bug, twin


@planted("unset-variable", 1, 64, ints(64), zeros(64))
def variable_set_under_another_condition():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        if t >= 2:
            v = x[t - 1]
        cuda.syncthreads()
        if t >= 1:
            out[t] = v  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        if t >= 1:
            v = x[t - 1]
        cuda.syncthreads()
        if t >= 1:
            out[t] = v

    return bug, twin


@planted("shift", 1, 64, ints(64), zeros(64))
def shift_by_the_width_or_more():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = 1 << x[t]  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        out[t] = 1 << (x[t] % 32)

    return bug, twin


@planted("shift", 1, 32, ints(32), zeros(32))
def shift_by_a_negative_count():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = x[t] >> (t - 4)  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        out[t] = x[t] >> (t - 4 if t > 4 else 0)

    return bug, twin


@planted("shift", 1, 32, ints(32), zeros(32))
def shifted_in_place_too_far():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        v = x[t]
        v <<= t + 1  # <-
        out[t] = v

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        v = x[t]
        v <<= t
        out[t] = v

    return bug, twin


@planted("cast", 1, 32, floats(32), zeros(32))
def number_too_large_for_its_type():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = np.int32(x[t] * np.float32(1e9))  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        out[t] = np.int32(min(x[t] * np.float32(1e9), np.float32(2e9)))

    return bug, twin


@planted("cast", 1, 32, floats(32), zeros(32, np.uint32))
def negative_number_made_unsigned():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = np.uint32(x[t] - np.float32(3))  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        out[t] = np.uint32(x[t] + np.float32(3))

    return bug, twin


@planted("division", 1, 32, ints(32), zeros(32))
def division_by_zero():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = 100 // x[t]  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        out[t] = 100 // (x[t] + 1)

    return bug, twin


@planted("division", 1, 32, ints(32), zeros(32))
def remainder_by_zero():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = t % x[t]  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        if x[t] != 0:
            out[t] = t % x[t]

    return bug, twin


@planted("float-order", 4, 64, floats(256), zeros(1, np.float32))
def floating_sum_by_atomics():
    @cuda.jit
    def bug(x, out):
        cuda.atomic.add(out, 0, x[cuda.grid(1)])  # <-

    @cuda.jit
    def twin(x, out):
        if cuda.grid(1) == 0:
            total = np.float32(0)
            for k in range(256):
                total += x[k]
            out[0] = total

    return bug, twin
