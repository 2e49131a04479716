"""Planted reads of memory never written, indices out of bounds, vectors out of line."""

from __future__ import annotations

import numpy as np
from checking.planted import floats, ints, number, planted, zeros

from gpusim import cuda


@planted("uninitialised", 1, 64, ints(64), zeros(64))
def halo_of_a_tile_not_loaded():
    @cuda.jit
    def bug(x, out):
        tile = cuda.shared.array(66, np.int32)
        t = cuda.threadIdx.x
        tile[t + 1] = x[t]
        cuda.syncthreads()
        out[t] = tile[t] + tile[t + 1] + tile[t + 2]  # <-

    @cuda.jit
    def twin(x, out):
        tile = cuda.shared.array(66, np.int32)
        t = cuda.threadIdx.x
        tile[t + 1] = x[t]
        if t == 0:
            tile[0] = 0
            tile[65] = 0
        cuda.syncthreads()
        out[t] = tile[t] + tile[t + 1] + tile[t + 2]

    return bug, twin


@planted("uninitialised", 2, 64, ints(100), zeros(2), number(np.int32(100)))
def elements_behind_the_guard_never_stored():
    @cuda.jit
    def bug(x, out, n):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        if cuda.grid(1) < n:
            s[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        if t == 0:
            total = 0
            for k in range(64):
                total += s[k]  # <-
            out[cuda.blockIdx.x] = total

    @cuda.jit
    def twin(x, out, n):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)] if cuda.grid(1) < n else 0
        cuda.syncthreads()
        if t == 0:
            total = 0
            for k in range(64):
                total += s[k]
            out[cuda.blockIdx.x] = total

    return bug, twin


@planted("uninitialised", 1, 32, ints(32), zeros(32))
def shared_counter_not_cleared():
    @cuda.jit
    def bug(x, out):
        count = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        if x[t] > 4:
            cuda.atomic.add(count, 0, 1)  # <-
        cuda.syncthreads()
        out[t] = count[0]

    @cuda.jit
    def twin(x, out):
        count = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        if t == 0:
            count[0] = 0
        cuda.syncthreads()
        if x[t] > 4:
            cuda.atomic.add(count, 0, 1)
        cuda.syncthreads()
        out[t] = count[0]

    return bug, twin


@planted("uninitialised", 1, 32, ints(32), zeros(32))
def local_counts_not_cleared():
    @cuda.jit
    def bug(x, out):
        counts = cuda.local.array(4, np.int32)
        t = cuda.threadIdx.x
        counts[x[t] % 4] += 1  # <-
        out[t] = counts[x[t] % 4]

    @cuda.jit
    def twin(x, out):
        counts = cuda.local.array(4, np.int32)
        t = cuda.threadIdx.x
        for k in range(4):
            counts[k] = 0
        counts[x[t] % 4] += 1
        out[t] = counts[x[t] % 4]

    return bug, twin


@planted("uninitialised", 2, 32, floats(64), zeros(64, np.float32))
def local_array_stored_in_part():
    @cuda.jit
    def bug(x, out):
        own = cuda.local.array(4, np.float32)
        i = cuda.grid(1)
        for k in range(3):
            own[k] = x[i] * k
        out[i] = own[0] + own[3]  # <-

    @cuda.jit
    def twin(x, out):
        own = cuda.local.array(4, np.float32)
        i = cuda.grid(1)
        for k in range(4):
            own[k] = x[i] * k
        out[i] = own[0] + own[3]

    return bug, twin


@planted("uninitialised", 1, 64, ints(64), zeros(64), shared_bytes=512)
def upper_half_of_dynamic_memory_never_stored():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(0, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        out[t] = s[t + 64]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(0, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        s[t + 64] = 0
        cuda.syncthreads()
        out[t] = s[t + 64]

    return bug, twin


@planted("uninitialised", 1, 256, ints(256), zeros(1))
def sums_of_more_warps_than_there_are():
    @cuda.jit
    def bug(x, out):
        sums = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        if t % 32 == 0:
            sums[t // 32] = x[t]
        cuda.syncthreads()
        if t < 32:
            v = sums[t]  # <-
            cuda.atomic.add(out, 0, v)

    @cuda.jit
    def twin(x, out):
        sums = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        if t % 32 == 0:
            sums[t // 32] = x[t]
        cuda.syncthreads()
        if t < 32:
            v = sums[t] if t < cuda.blockDim.x // 32 else 0
            cuda.atomic.add(out, 0, v)

    return bug, twin


@planted("bounds", 2, 64, ints(100), zeros(100), number(np.int32(100)))
def guard_that_lets_one_too_many_through():
    @cuda.jit
    def bug(x, out, n):
        i = cuda.grid(1)
        if i <= n:
            out[i] = x[i]  # <-

    @cuda.jit
    def twin(x, out, n):
        i = cuda.grid(1)
        if i < n:
            out[i] = x[i]

    return bug, twin


@planted("bounds", 2, 64, ints(100), zeros(100))
def no_guard_at_all():
    @cuda.jit
    def bug(x, out):
        i = cuda.grid(1)
        v = 2 * i
        out[i] = v  # <-

    @cuda.jit
    def twin(x, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = 2 * i

    return bug, twin


@planted("bounds", 1, 64, ints(64), zeros(64))
def neighbour_before_the_first_element():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = x[t - 1]  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        out[t] = x[t - 1] if t > 0 else 0

    return bug, twin


@planted("bounds", 1, 64, ints(64), zeros(64))
def unsigned_index_that_wraps():
    @cuda.jit
    def bug(x, out):
        t = np.uint32(cuda.threadIdx.x)
        out[t] = x[t - 1]  # <-

    @cuda.jit
    def twin(x, out):
        t = np.uint32(cuda.threadIdx.x)
        out[t] = x[(t + 63) % 64]

    return bug, twin


@planted("bounds", 1, 64, ints(64), zeros(64))
def shared_array_too_short():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]  # <-
        out[t] = x[t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        out[t] = s[t]

    return bug, twin


@planted("bounds", 1, 32, ints(32), zeros(32))
def local_array_too_short():
    @cuda.jit
    def bug(x, out):
        own = cuda.local.array(4, np.int32)
        t = cuda.threadIdx.x
        for k in range(5):
            own[k] = x[t] + k  # <-
        out[t] = own[0]

    @cuda.jit
    def twin(x, out):
        own = cuda.local.array(5, np.int32)
        t = cuda.threadIdx.x
        for k in range(5):
            own[k] = x[t] + k
        out[t] = own[0]

    return bug, twin


@planted("bounds", 1, 64, ints(64), zeros(16))
def atomic_outside_the_histogram():
    @cuda.jit
    def bug(x, out):
        cuda.atomic.add(out, x[cuda.threadIdx.x], 1)  # <-

    @cuda.jit
    def twin(x, out):
        cuda.atomic.add(out, x[cuda.threadIdx.x] % 16, 1)

    return bug, twin


@planted("bounds", 1, (32, 4), zeros((4, 16)))
def column_beyond_the_row():
    @cuda.jit
    def bug(out):
        row = cuda.threadIdx.y
        column = cuda.threadIdx.x
        if row < 2:
            out[row, column] = row  # <-

    @cuda.jit
    def twin(out):
        row = cuda.threadIdx.y
        column = cuda.threadIdx.x
        if column < out.shape[1]:
            out[row, column] = row

    return bug, twin


@planted("bounds", 1, 32, zeros((4, 32)), zeros(32))
def negative_column():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = x[1, t - 1]  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        out[t] = x[1, t - 1] if t > 0 else 0

    return bug, twin


@planted("bounds", 1, 32, ints(126), zeros(128))
def vector_beyond_the_end():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        a, b, c, d = cuda.load_vector(x, 4 * t, 4)  # <-
        cuda.store_vector(out, 4 * t, (a, b, c, d))

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        if 4 * t + 3 < x.size:
            a, b, c, d = cuda.load_vector(x, 4 * t, 4)
            cuda.store_vector(out, 4 * t, (a, b, c, d))

    return bug, twin


@planted("misaligned", 1, 16, ints(80), zeros(64))
def vector_load_one_element_off():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        a, b, c, d = cuda.load_vector(x, 4 * t + 1, 4)  # <-
        cuda.store_vector(out, 4 * t, (a, b, c, d))

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        a, b, c, d = cuda.load_vector(x, 4 * t + 4, 4)
        cuda.store_vector(out, 4 * t, (a, b, c, d))

    return bug, twin


@planted("misaligned", 1, 32, ints(64), zeros(66))
def vector_store_at_odd_indices():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(66, np.int32)
        t = cuda.threadIdx.x
        cuda.store_vector(s, 2 * t + 1, (x[t], x[t]))  # <-
        cuda.store_vector(out, 2 * t, (x[t], x[t]))

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(66, np.int32)
        t = cuda.threadIdx.x
        cuda.store_vector(s, 2 * t, (x[t], x[t]))
        cuda.store_vector(out, 2 * t, (s[2 * t], s[2 * t + 1]))

    return bug, twin


@planted("uninitialised", 1, 32, ints(32), zeros(32), zeros(32), uninitialised=("more",))
def global_memory_never_written():
    @cuda.jit
    def bug(x, out, more):
        t = cuda.threadIdx.x
        out[t] = x[t] + more[t]  # <-

    @cuda.jit
    def twin(x, out, more):
        t = cuda.threadIdx.x
        more[t] = 1
        out[t] = x[t] + more[t]

    return bug, twin
