"""Planted races in global memory: within a block, and between blocks that run in any order."""

from __future__ import annotations

import numpy as np
from checking.planted import floats, ints, number, planted, zeros

from gpusim import cuda


@planted("global-race", 1, 128, ints(128), zeros(128))
def result_of_another_thread_read_without_barrier():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t] = x[t] * 2  # <-
        x[t] = out[127 - t]  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        out[t] = x[t] * 2
        cuda.syncthreads()
        x[t] = out[127 - t]

    return bug, twin


@planted("global-race", 1, 256, ints(256))
def tree_in_global_memory_without_barrier():
    @cuda.jit
    def bug(x):
        t = cuda.threadIdx.x
        o = 128
        while o > 0:
            if t < o:
                x[t] += x[t + o]  # <-
            o //= 2

    @cuda.jit
    def twin(x):
        t = cuda.threadIdx.x
        o = 128
        while o > 0:
            if t < o:
                x[t] += x[t + o]
            cuda.syncthreads()
            o //= 2

    return bug, twin


@planted("global-race", 1, 128, floats(130))
def stencil_in_place_within_a_block():
    @cuda.jit
    def bug(x):
        t = cuda.threadIdx.x + 1
        x[t] = x[t - 1] + x[t + 1]  # <-

    @cuda.jit
    def twin(x):
        t = cuda.threadIdx.x + 1
        v = x[t - 1] + x[t + 1]
        cuda.syncthreads()
        x[t] = v

    return bug, twin


@planted("global-race", 1, 64, ints(64), zeros(32))
def warps_of_a_block_store_to_the_same_elements():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        out[t % 32] = x[t]  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        cuda.atomic.max(out, t % 32, x[t])

    return bug, twin


@planted("global-race", 2, 64, ints(128), zeros(2))
def sum_of_a_block_without_atomics():
    @cuda.jit
    def bug(x, out):
        out[cuda.blockIdx.x] += x[cuda.grid(1)]  # <-

    @cuda.jit
    def twin(x, out):
        cuda.atomic.add(out, cuda.blockIdx.x, x[cuda.grid(1)])

    return bug, twin


@planted("block-race", 4, 1, zeros(1))
def one_counter_for_all_blocks():
    @cuda.jit
    def bug(out):
        out[0] += 1  # <-

    @cuda.jit
    def twin(out):
        cuda.atomic.add(out, 0, 1)

    return bug, twin


@planted("block-race", 8, 64, ints(512), zeros(1))
def every_block_stores_its_sum_to_one_element():
    @cuda.jit
    def bug(x, out):
        if cuda.threadIdx.x == 0:
            out[0] = x[cuda.grid(1)]  # <-

    @cuda.jit
    def twin(x, out):
        if cuda.threadIdx.x == 0:
            cuda.atomic.add(out, 0, x[cuda.grid(1)])

    return bug, twin


@planted("block-race", 8, 32, ints(256), zeros(16))
def histogram_without_atomics():
    @cuda.jit
    def bug(x, out):
        place = x[cuda.grid(1)] % 16
        out[place] = out[place] + 1  # <-

    @cuda.jit
    def twin(x, out):
        cuda.atomic.add(out, x[cuda.grid(1)] % 16, 1)

    return bug, twin


@planted("block-race", 4, 64, floats(258), zeros(258, np.float32))
def stencil_in_place_across_blocks():
    @cuda.jit
    def bug(x, out):
        i = cuda.grid(1) + 1
        v = x[i - 1] + x[i + 1]  # <-
        cuda.syncthreads()
        x[i] = v  # <-

    @cuda.jit
    def twin(x, out):
        i = cuda.grid(1) + 1
        out[i] = x[i - 1] + x[i + 1]

    return bug, twin


@planted("block-race", 8, 32, ints(256), zeros(9))
def block_0_adds_up_what_others_have_not_stored_yet():
    @cuda.jit
    def bug(x, out):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            out[b] = x[b * 32]  # <-
        cuda.syncthreads()
        if b == 0 and cuda.threadIdx.x == 0:
            total = 0
            for k in range(8):
                total += out[k]  # <-
            out[8] = total

    @cuda.jit
    def twin(x, out):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            out[b] = x[b * 32]
            cuda.atomic.add(out, 8, x[b * 32])

    return bug, twin


@planted("block-race", 8, 64, ints(512), zeros(8), zeros(1), zeros(1))
def last_block_without_fence():
    @cuda.jit
    def bug(x, sums, count, out):
        last = cuda.shared.array(1, np.int32)
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            sums[b] = x[b * 64]  # <-
            last[0] = cuda.atomic.add(count, 0, 1) == cuda.gridDim.x - 1
        cuda.syncthreads()
        if last[0] and cuda.threadIdx.x == 0:
            cuda.threadfence()
            total = 0
            for k in range(8):
                total += sums[k]  # <-
            out[0] = total

    @cuda.jit
    def twin(x, sums, count, out):
        last = cuda.shared.array(1, np.int32)
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            sums[b] = x[b * 64]
            cuda.threadfence()
            last[0] = cuda.atomic.add(count, 0, 1) == cuda.gridDim.x - 1
        cuda.syncthreads()
        if last[0] and cuda.threadIdx.x == 0:
            cuda.threadfence()
            total = 0
            for k in range(8):
                total += sums[k]
            out[0] = total
            count[0] = 0

    return bug, twin


@planted("block-race", 6, 64, ints(384), zeros(384), zeros(1), zeros(64))
def last_block_reads_what_all_threads_of_others_stored():
    @cuda.jit
    def bug(x, parts, count, out):
        last = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        parts[cuda.grid(1)] = x[cuda.grid(1)]  # <-
        if t == 0:  # no barrier: the other threads may not have stored yet
            cuda.threadfence()
            last[0] = cuda.atomic.add(count, 0, 1) == cuda.gridDim.x - 1
        cuda.syncthreads()
        if last[0]:
            cuda.threadfence()
            total = 0
            for k in range(6):
                total += parts[64 * k + t]  # <-
            out[t] = total

    @cuda.jit
    def twin(x, parts, count, out):
        last = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        parts[cuda.grid(1)] = x[cuda.grid(1)]
        cuda.threadfence()
        cuda.syncthreads()
        if t == 0:
            last[0] = cuda.atomic.add(count, 0, 1) == cuda.gridDim.x - 1
        cuda.syncthreads()
        if last[0]:
            cuda.threadfence()
            total = 0
            for k in range(6):
                total += parts[64 * k + t]
            out[t] = total

    return bug, twin


@planted("block-race", 6, 32, ints(192), zeros(6), zeros(1), zeros(1))
def first_block_takes_itself_for_the_last():
    @cuda.jit
    def bug(x, sums, count, out):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            sums[b] = x[b * 32]  # <-
            cuda.threadfence()
            if cuda.atomic.add(count, 0, 1) == 0:
                cuda.threadfence()
                total = 0
                for k in range(6):
                    total += sums[k]  # <-
                out[0] = total

    @cuda.jit
    def twin(x, sums, count, out):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            sums[b] = x[b * 32]
            cuda.threadfence()
            if cuda.atomic.add(count, 0, 1) == cuda.gridDim.x - 1:
                cuda.threadfence()
                total = 0
                for k in range(6):
                    total += sums[k]
                out[0] = total

    return bug, twin


@planted("block-race", 2, 32, ints(64), zeros(2), zeros(1))
def flag_without_fence():
    @cuda.jit
    def bug(x, out, flags):
        flag = cuda.volatile(flags)
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                out[0] = x[5]  # <-
                flag[0] = 1
            else:
                while flag[0] == 0:
                    pass
                out[1] = out[0]  # <-

    @cuda.jit
    def twin(x, out, flags):
        flag = cuda.volatile(flags)
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                out[0] = x[5]
                cuda.threadfence()
                flag[0] = 1
            else:
                while flag[0] == 0:
                    pass
                cuda.threadfence()
                out[1] = out[0]

    return bug, twin


@planted("block-race", 2, 32, ints(64), zeros(2), zeros(1))
def flag_behind_a_fence_of_the_block_alone():
    @cuda.jit
    def bug(x, out, flag):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                out[0] = x[5]  # <-
                cuda.threadfence_block()
                cuda.atomic.exch(flag, 0, 1)
            else:
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass
                cuda.threadfence()
                out[1] = out[0]  # <-

    @cuda.jit
    def twin(x, out, flag):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                out[0] = x[5]
                cuda.threadfence()
                cuda.atomic.exch(flag, 0, 1)
            else:
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass
                cuda.threadfence()
                out[1] = out[0]

    return bug, twin


@planted("plain-flag", 2, 32, ints(64), zeros(2), zeros(1))
def flag_raised_by_a_plain_store():
    @cuda.jit
    def bug(x, out, flag):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                out[0] = x[5]
                cuda.threadfence()
                flag[0] = 1  # <-
            else:
                while cuda.atomic.add(flag, 0, 0) == 0:  # <-
                    pass
                cuda.threadfence()
                out[1] = out[0]

    @cuda.jit
    def twin(x, out, flag):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                out[0] = x[5]
                cuda.threadfence()
                cuda.atomic.exch(flag, 0, 1)
            else:
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass
                cuda.threadfence()
                out[1] = out[0]

    return bug, twin


@planted("block-race", 4, 32, floats(128), zeros(1, np.float32))
def largest_number_compared_but_not_swapped():
    @cuda.jit
    def bug(x, out):
        v = x[cuda.grid(1)]
        old = out[0]  # <-
        while v > old:
            out[0] = v  # <-
            old = out[0]

    @cuda.jit
    def twin(x, out):
        v = x[cuda.grid(1)]
        old = out[0]
        while v > old:
            seen = cuda.atomic.cas(out, 0, old, v)
            if seen == old:
                break
            old = seen

    return bug, twin


@planted("block-race", 2, 32, ints(64), zeros(2), zeros(1))
def flag_raised_before_the_data():
    @cuda.jit
    def bug(x, out, flag):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                cuda.threadfence()
                cuda.atomic.exch(flag, 0, 1)
                out[0] = x[5]  # <-
            else:
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass
                cuda.threadfence()
                out[1] = out[0]  # <-

    @cuda.jit
    def twin(x, out, flag):
        if cuda.threadIdx.x == 0:
            if cuda.blockIdx.x == 0:
                out[0] = x[5]
                cuda.threadfence()
                cuda.atomic.exch(flag, 0, 1)
            else:
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass
                cuda.threadfence()
                out[1] = out[0]

    return bug, twin


@planted("block-race", 4, 64, ints(256), zeros(5), zeros(5))
def chain_of_blocks_without_fence():
    @cuda.jit
    def bug(x, sums, flags):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            before = 0
            if b > 0:
                while cuda.atomic.add(flags, b, 0) == 0:
                    pass
                before = sums[b]  # <-
            sums[b + 1] = before + x[b]  # <-
            cuda.atomic.exch(flags, b + 1, 1)

    @cuda.jit
    def twin(x, sums, flags):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            before = 0
            if b > 0:
                while cuda.atomic.add(flags, b, 0) == 0:
                    pass
                cuda.threadfence()
                before = sums[b]
            sums[b + 1] = before + x[b]
            cuda.threadfence()
            cuda.atomic.exch(flags, b + 1, 1)

    return bug, twin


@planted("block-race", 4, 32, ints(128), zeros(1), zeros(1))
def lock_given_back_without_fence():
    @cuda.jit
    def bug(x, out, lock):
        if cuda.threadIdx.x == 0:
            while cuda.atomic.cas(lock, 0, 0, 1) != 0:
                pass
            out[0] = out[0] + x[cuda.grid(1)]  # <-
            cuda.atomic.exch(lock, 0, 0)

    @cuda.jit
    def twin(x, out, lock):
        if cuda.threadIdx.x == 0:
            while cuda.atomic.cas(lock, 0, 0, 1) != 0:
                pass
            cuda.threadfence()
            out[0] = out[0] + x[cuda.grid(1)]
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)

    return bug, twin


@planted("block-race", 4, 64, ints(256), zeros(260))
def tiles_of_blocks_overlap():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        start = cuda.blockIdx.x * 63
        out[start + t] = x[cuda.grid(1)]  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        start = cuda.blockIdx.x * 64
        out[start + t] = x[cuda.grid(1)]

    return bug, twin


@planted("block-race", 4, 64, ints(256), zeros(1))
def block_0_clears_what_others_add_to():
    @cuda.jit
    def bug(x, out):
        if cuda.grid(1) == 0:
            out[0] = 0  # <-
        cuda.syncthreads()
        cuda.atomic.add(out, 0, x[cuda.grid(1)])  # <-

    @cuda.jit
    def twin(x, out):
        cuda.atomic.add(out, 0, x[cuda.grid(1)])

    return bug, twin


@planted("block-race", 4, 64, ints(256), zeros(1))
def maximum_by_comparing_and_storing():
    @cuda.jit
    def bug(x, out):
        v = x[cuda.grid(1)]
        if cuda.threadIdx.x == 63 and v > out[0]:  # <-
            out[0] = v  # <-

    @cuda.jit
    def twin(x, out):
        v = x[cuda.grid(1)]
        if cuda.threadIdx.x == 63:
            cuda.atomic.max(out, 0, v)

    return bug, twin


@planted("block-race", 4, 32, zeros(1), zeros(4))
def total_read_while_others_add():
    @cuda.jit
    def bug(total, out):
        if cuda.threadIdx.x == 0:
            cuda.atomic.add(total, 0, 1)  # <-
            out[cuda.blockIdx.x] = total[0]  # <-

    @cuda.jit
    def twin(total, out):
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = cuda.atomic.add(total, 0, 1)

    return bug, twin


@planted("block-race", 3, 64, ints(192), zeros(64))
def grid_stride_loop_with_the_wrong_stride():
    @cuda.jit
    def bug(x, out):
        t = cuda.threadIdx.x
        for i in range(cuda.grid(1), 192, cuda.gridDim.x * 64):
            out[t] = x[i]  # <-

    @cuda.jit
    def twin(x, out):
        t = cuda.threadIdx.x
        if cuda.blockIdx.x == 0:
            total = 0
            for i in range(t, 192, 64):
                total += x[i]
            out[t] = total

    return bug, twin


@planted("residency", 18, 1024, zeros(1), zeros(18), device="gtx1650", step_limit=200_000)
def grid_barrier_of_more_blocks_than_fit():
    @cuda.jit
    def bug(count, out):
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.threadfence()
            cuda.atomic.add(count, 0, 1)
            while cuda.atomic.add(count, 0, 0) < cuda.gridDim.x:  # <-
                pass
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = 1

    @cuda.jit
    def twin(count, out):
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.threadfence()
            cuda.atomic.add(count, 0, 1)
            if cuda.blockIdx.x < 14:  # those that wait are few enough
                while cuda.atomic.add(count, 0, 0) < 10:
                    pass
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = 1

    return bug, twin


@planted("residency", 18, 1024, zeros(19), device="gtx1650", step_limit=200_000)
def blocks_wait_for_the_block_after_them():
    @cuda.jit
    def bug(flags):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            if b < cuda.gridDim.x - 1:
                while cuda.atomic.add(flags, b + 1, 0) == 0:  # <-
                    pass
            cuda.threadfence()
            cuda.atomic.exch(flags, b, 1)

    @cuda.jit
    def twin(flags):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            if b > 0:
                while cuda.atomic.add(flags, b - 1, 0) == 0:
                    pass
            cuda.threadfence()
            cuda.atomic.exch(flags, b, 1)

    return bug, twin


@planted("no-progress", 1, 32, zeros(1), number(np.int32(3)), step_limit=20_000)
def flag_that_nobody_raises():
    @cuda.jit
    def bug(flag, n):
        while cuda.atomic.add(flag, 0, 0) < n:  # <-
            pass

    @cuda.jit
    def twin(flag, n):
        while cuda.atomic.add(flag, 0, 1) < n:
            pass

    return bug, twin


@planted("no-progress", 1, 32, zeros(1), number(np.int32(5)), step_limit=20_000)
def loop_whose_counter_never_moves():
    @cuda.jit
    def bug(out, n):
        i = 0
        while i < n:  # <-
            if cuda.threadIdx.x == 0:
                out[0] += i

    @cuda.jit
    def twin(out, n):
        i = 0
        while i < n:
            if cuda.threadIdx.x == 0:
                out[0] += i
            i += 1

    return bug, twin


@planted("block-race", 3, 1, ints(1), zeros(2), zeros(1))
def overwrite_after_one_of_two_readers_has_said_so():
    @cuda.jit
    def bug(data, out, flag):
        if cuda.blockIdx.x == 0:
            out[0] = data[0]  # <-
        elif cuda.blockIdx.x == 1:
            out[1] = data[0]
            cuda.threadfence()
            cuda.atomic.add(flag, 0, 1)
        else:
            while cuda.atomic.add(flag, 0, 0) < 1:
                pass
            cuda.threadfence()
            data[0] = 7  # <-

    @cuda.jit
    def twin(data, out, flag):
        if cuda.blockIdx.x < 2:
            out[cuda.blockIdx.x] = data[0]
            cuda.threadfence()
            cuda.atomic.add(flag, 0, 1)
        else:
            while cuda.atomic.add(flag, 0, 0) < 2:
                pass
            cuda.threadfence()
            data[0] = 7

    return bug, twin
