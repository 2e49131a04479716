"""Planted races in shared memory between warps: barriers that are missing or come too late."""

from __future__ import annotations

import numpy as np
from checking.planted import floats, ints, planted, zeros

from gpusim import cuda

EVERY_LANE = 0xFFFFFFFF


@planted("shared-race", 2, 64, ints(128), zeros(128))
def read_of_the_neighbour_before_the_barrier():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]  # <-
        out[cuda.grid(1)] = s[(t + 1) % 64]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        out[cuda.grid(1)] = s[(t + 1) % 64]

    return bug, twin


@planted("shared-race", 1, 128, ints(128), zeros(128))
def reversal_without_barrier():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(128, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]  # <-
        out[t] = s[127 - t]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(128, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        out[t] = s[127 - t]

    return bug, twin


@planted("shared-race", 3, 96, ints(300), zeros(300))
def broadcast_of_thread_0_without_barrier():
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
        cuda.syncthreads()
        out[cuda.grid(1)] = s[0]

    return bug, twin


@planted("shared-race", (2, 2), (16, 16), zeros((32, 32)), zeros((32, 32)))
def transposition_without_barrier():
    @cuda.jit
    def bug(x, out):
        tile = cuda.shared.array((16, 17), np.int32)
        column, row = cuda.threadIdx.x, cuda.threadIdx.y
        tile[row, column] = x[cuda.blockIdx.y * 16 + row, cuda.blockIdx.x * 16 + column]  # <-
        out[cuda.blockIdx.x * 16 + row, cuda.blockIdx.y * 16 + column] = tile[column, row]  # <-

    @cuda.jit
    def twin(x, out):
        tile = cuda.shared.array((16, 17), np.int32)
        column, row = cuda.threadIdx.x, cuda.threadIdx.y
        tile[row, column] = x[cuda.blockIdx.y * 16 + row, cuda.blockIdx.x * 16 + column]
        cuda.syncthreads()
        out[cuda.blockIdx.x * 16 + row, cuda.blockIdx.y * 16 + column] = tile[column, row]

    return bug, twin


@planted("shared-race", 2, 256, ints(512), zeros(2))
def tree_without_barrier_in_its_loop():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(256, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        o = 128
        while o > 0:
            if t < o:
                s[t] += s[t + o]  # <-
            o //= 2
        if t == 0:
            out[cuda.blockIdx.x] = s[0]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(256, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        o = 128
        while o > 0:
            if t < o:
                s[t] += s[t + o]
            cuda.syncthreads()
            o //= 2
        if t == 0:
            out[cuda.blockIdx.x] = s[0]

    return bug, twin


@planted("shared-race", 2, 256, ints(512), zeros(2))
def tree_without_barrier_before_its_loop():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(256, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]  # <-
        o = 128
        while o > 0:
            if t < o:
                s[t] += s[t + o]  # <-
            cuda.syncthreads()
            o //= 2
        if t == 0:
            out[cuda.blockIdx.x] = s[0]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(256, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        o = 128
        while o > 0:
            cuda.syncthreads()
            if t < o:
                s[t] += s[t + o]
            o //= 2
        if t == 0:
            out[cuda.blockIdx.x] = s[0]

    return bug, twin


@planted("shared-race", 1, 64, ints(64), zeros(64))
def race_through_device_functions():
    @cuda.jit(device=True)
    def put(s, place, value):
        s[place] = value  # <-

    @cuda.jit(device=True)
    def mirrored(s, place):
        return s[63 - place]  # <-

    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        put(s, t, x[t])
        out[t] = mirrored(s, t)

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        put(s, t, x[t])
        cuda.syncthreads()
        out[t] = mirrored(s, t)

    return bug, twin


@planted("shared-race", 2, 64, floats(128), zeros(128, np.float32), shared_bytes=256)
def race_in_dynamic_memory():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(0, np.float32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]  # <-
        out[cuda.grid(1)] = s[t ^ 32]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(0, np.float32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        out[cuda.grid(1)] = s[t ^ 32]

    return bug, twin


@planted("shared-race", 1, 96, floats(96), zeros(96, np.float64))
def race_of_wide_elements():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(96, np.float64)
        t = cuda.threadIdx.x
        s[t] = x[t]  # <-
        out[t] = s[(t + 40) % 96]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(96, np.float64)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        out[t] = s[(t + 40) % 96]

    return bug, twin


@planted("shared-race", 1, 64, ints(64), zeros(64))
def race_of_bytes():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int8)
        t = cuda.threadIdx.x
        s[t] = x[t]  # <-
        out[t] = s[(t + 1) % 64]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int8)
        t = cuda.threadIdx.x
        s[t] = x[t]  # bytes of one word belong to threads of their own
        out[t] = s[t]

    return bug, twin


@planted("shared-race", 1, 128, ints(128), zeros(128))
def vector_load_of_what_others_store():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(128, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]  # <-
        if t < 32:
            a, b, c, d = cuda.load_vector(s, 4 * t, 4)  # <-
            cuda.store_vector(out, 4 * t, (d, c, b, a))

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(128, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        if t < 32:
            a, b, c, d = cuda.load_vector(s, 4 * t, 4)
            cuda.store_vector(out, 4 * t, (d, c, b, a))

    return bug, twin


@planted("shared-race", 2, 64, ints(128), zeros(128))
def warp_barrier_where_the_block_must_meet():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]  # <-
        cuda.syncwarp()
        out[cuda.grid(1)] = s[63 - t]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        cuda.syncwarp()
        out[cuda.grid(1)] = s[t ^ 31]

    return bug, twin


@planted("shared-race", 2, 64, ints(128), zeros(128))
def fence_where_a_barrier_must_stand():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]  # <-
        cuda.threadfence_block()
        out[cuda.grid(1)] = s[63 - t]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        cuda.threadfence_block()
        cuda.syncthreads()
        out[cuda.grid(1)] = s[63 - t]

    return bug, twin


@planted("shared-race", 2, 128, ints(256), zeros(16))
def histogram_read_before_all_have_counted():
    @cuda.jit
    def bug(x, out):
        own = cuda.shared.array(16, np.int32)
        t = cuda.threadIdx.x
        if t < 16:
            own[t] = 0
        cuda.syncthreads()
        cuda.atomic.add(own, x[cuda.grid(1)] % 16, 1)  # <-
        if t < 16:
            cuda.atomic.add(out, t, own[t])  # <-

    @cuda.jit
    def twin(x, out):
        own = cuda.shared.array(16, np.int32)
        t = cuda.threadIdx.x
        if t < 16:
            own[t] = 0
        cuda.syncthreads()
        cuda.atomic.add(own, x[cuda.grid(1)] % 16, 1)
        cuda.syncthreads()
        if t < 16:
            cuda.atomic.add(out, t, own[t])

    return bug, twin


@planted("shared-race", 2, 128, ints(256), zeros(16))
def histogram_counted_before_it_is_cleared():
    @cuda.jit
    def bug(x, out):
        own = cuda.shared.array(16, np.int32)
        t = cuda.threadIdx.x
        if t < 16:
            own[t] = 0  # <-
        cuda.atomic.add(own, x[cuda.grid(1)] % 16, 1)  # <-
        cuda.syncthreads()
        if t < 16:
            cuda.atomic.add(out, t, own[t])

    @cuda.jit
    def twin(x, out):
        own = cuda.shared.array(16, np.int32)
        t = cuda.threadIdx.x
        if t < 16:
            own[t] = 0
        cuda.syncthreads()
        cuda.atomic.add(own, x[cuda.grid(1)] % 16, 1)
        cuda.syncthreads()
        if t < 16:
            cuda.atomic.add(out, t, own[t])

    return bug, twin


@planted("shared-race", 1, 128, ints(128), zeros(128))
def scan_with_one_buffer_and_one_barrier():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(128, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        o = 1
        while o < 128:
            if t >= o:
                s[t] += s[t - o]  # <-
            cuda.syncthreads()
            o *= 2
        out[t] = s[t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(128, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        o = 1
        while o < 128:
            before = 0
            if t >= o:
                before = s[t - o]
            cuda.syncthreads()
            s[t] += before
            cuda.syncthreads()
            o *= 2
        out[t] = s[t]

    return bug, twin


@planted("shared-race", 2, 256, ints(512), zeros(2))
def sums_of_warps_read_before_the_barrier():
    @cuda.jit
    def bug(x, out):
        sums = cuda.shared.array(8, np.int32)
        t = cuda.threadIdx.x
        v = x[cuda.grid(1)]
        o = 16
        while o > 0:
            v += cuda.shfl_down_sync(EVERY_LANE, v, o)
            o //= 2
        if t % 32 == 0:
            sums[t // 32] = v  # <-
        if t == 0:
            total = 0
            for w in range(8):
                total += sums[w]  # <-
            out[cuda.blockIdx.x] = total

    @cuda.jit
    def twin(x, out):
        sums = cuda.shared.array(8, np.int32)
        t = cuda.threadIdx.x
        v = x[cuda.grid(1)]
        o = 16
        while o > 0:
            v += cuda.shfl_down_sync(EVERY_LANE, v, o)
            o //= 2
        if t % 32 == 0:
            sums[t // 32] = v
        cuda.syncthreads()
        if t == 0:
            total = 0
            for w in range(8):
                total += sums[w]
            out[cuda.blockIdx.x] = total

    return bug, twin


@planted("shared-race", 1, 64, ints(64), zeros(64))
def overwrite_before_all_have_read():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        v = s[63 - t]  # <-
        s[t] = v + 1  # <-
        cuda.syncthreads()
        out[t] = s[t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        v = s[63 - t]
        cuda.syncthreads()
        s[t] = v + 1
        cuda.syncthreads()
        out[t] = s[t]

    return bug, twin


@planted("shared-race", 2, 64, ints(512), zeros(128))
def tile_refilled_before_all_have_read():
    @cuda.jit
    def bug(x, out):
        tile = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        total = 0
        for k in range(4):
            tile[t] = x[64 * k + t]  # <-
            cuda.syncthreads()
            for j in range(64):
                total += tile[j]  # <-
        out[cuda.grid(1)] = total

    @cuda.jit
    def twin(x, out):
        tile = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        total = 0
        for k in range(4):
            tile[t] = x[64 * k + t]
            cuda.syncthreads()
            for j in range(64):
                total += tile[j]
            cuda.syncthreads()
        out[cuda.grid(1)] = total

    return bug, twin


@planted("shared-race", 1, 128, ints(128), zeros(128))
def scratch_used_again_too_early():
    @cuda.jit
    def bug(x, out):
        part = cuda.shared.array(128, np.int32)
        t = cuda.threadIdx.x
        part[t] = x[t]
        cuda.syncthreads()
        o = 64
        while o > 0:
            if t < o:
                part[t] = max(part[t], part[t + o])
            cuda.syncthreads()
            o //= 2
        most = part[0]  # <-
        part[t] = most - x[t]  # <-
        cuda.syncthreads()
        out[t] = part[127 - t]

    @cuda.jit
    def twin(x, out):
        part = cuda.shared.array(128, np.int32)
        t = cuda.threadIdx.x
        part[t] = x[t]
        cuda.syncthreads()
        o = 64
        while o > 0:
            if t < o:
                part[t] = max(part[t], part[t + o])
            cuda.syncthreads()
            o //= 2
        most = part[0]
        cuda.syncthreads()
        part[t] = most - x[t]
        cuda.syncthreads()
        out[t] = part[127 - t]

    return bug, twin


@planted("shared-race", 1, 128, ints(128), zeros(128))
def two_buffers_that_do_not_change_roles():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array((2, 128), np.int32)
        t = cuda.threadIdx.x
        source = 0
        s[0, t] = x[t]
        cuda.syncthreads()
        for _ in range(3):
            s[source, t] = s[source, (t + 32) % 128] + 1  # <-
            cuda.syncthreads()
        out[t] = s[source, t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array((2, 128), np.int32)
        t = cuda.threadIdx.x
        source = 0
        s[0, t] = x[t]
        cuda.syncthreads()
        for _ in range(3):
            s[1 - source, t] = s[source, (t + 32) % 128] + 1
            source = 1 - source
            cuda.syncthreads()
        out[t] = s[source, t]

    return bug, twin


@planted("shared-race", 4, 64, ints(256), zeros(256))
def thread_0_overwrites_what_others_still_read():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        total = 0
        for k in range(3):
            if t == 0:
                s[0] = x[cuda.blockIdx.x] + k  # <-
            cuda.syncthreads()
            total += s[0]  # <-
        out[cuda.grid(1)] = total

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        total = 0
        for k in range(3):
            if t == 0:
                s[0] = x[cuda.blockIdx.x] + k
            cuda.syncthreads()
            total += s[0]
            cuda.syncthreads()
        out[cuda.grid(1)] = total

    return bug, twin


@planted("shared-race", 1, 64, ints(64), zeros(32))
def two_warps_store_to_the_same_elements():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        s[t % 32] = x[t]  # <-
        cuda.syncthreads()
        if t < 32:
            out[t] = s[t]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        if t < 32:
            out[t] = s[t] + s[t + 32]

    return bug, twin


@planted("shared-race", 1, 64, ints(64), zeros(64))
def two_threads_initialise_one_element():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        if t == 0:
            s[0] = x[0]  # <-
        if t == 32:
            s[0] = x[32]  # <-
        cuda.syncthreads()
        out[t] = s[0]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(2, np.int32)
        t = cuda.threadIdx.x
        if t == 0:
            s[0] = x[0]
        if t == 32:
            s[1] = x[32]
        cuda.syncthreads()
        out[t] = s[0] + s[1]

    return bug, twin


@planted("shared-race", 1, 96, ints(96), zeros(96))
def barrier_that_comes_before_the_store():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(96, np.int32)
        t = cuda.threadIdx.x
        v = x[t] * 2
        cuda.syncthreads()
        s[t] = v  # <-
        out[t] = s[95 - t]  # <-

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(96, np.int32)
        t = cuda.threadIdx.x
        v = x[t] * 2
        s[t] = v
        cuda.syncthreads()
        out[t] = s[95 - t]

    return bug, twin


@planted("shared-race", 1, 64, ints(64), zeros(64))
def flag_in_plain_shared_memory():
    @cuda.jit
    def bug(x, out):
        s = cuda.shared.array(2, np.int32)
        t = cuda.threadIdx.x
        if t < 2:
            s[t] = 0
        cuda.syncthreads()
        if t == 0:
            s[0] = x[0] + 7
            cuda.threadfence_block()
            s[1] = 1  # <-
        if t == 32:
            while s[1] == 0:  # <-
                pass
            out[0] = s[0]

    @cuda.jit
    def twin(x, out):
        s = cuda.shared.array(2, np.int32)
        flags = cuda.volatile(s)
        t = cuda.threadIdx.x
        if t < 2:
            s[t] = 0
        cuda.syncthreads()
        if t == 0:
            s[0] = x[0] + 7
            cuda.threadfence_block()
            flags[1] = 1
        if t == 32:
            while flags[1] == 0:
                pass
            cuda.threadfence_block()
            out[0] = s[0]

    return bug, twin


@planted("shared-race", 1, 64, zeros(1))
def clearing_that_atomics_of_its_own_warp_come_behind():
    @cuda.jit
    def bug(out):
        s = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        if t == 0:
            s[0] = 0  # <-
        cuda.syncwarp()
        if t < 32:
            cuda.atomic.add(s, 0, 1)
        else:
            steps = 0
            while steps < t:
                steps += 1
            cuda.atomic.add(s, 0, steps)  # <-
        cuda.syncthreads()
        if t == 0:
            out[0] = s[0]

    @cuda.jit
    def twin(out):
        s = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        if t == 0:
            s[0] = 0
        cuda.syncthreads()
        if t < 32:
            cuda.atomic.add(s, 0, 1)
        else:
            steps = 0
            while steps < t:
                steps += 1
            cuda.atomic.add(s, 0, steps)
        cuda.syncthreads()
        if t == 0:
            out[0] = s[0]

    return bug, twin
