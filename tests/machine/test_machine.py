"""How kernels run: divergence, barriers, lanes together, blocks that wait, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusim
from gpusim import cuda
from gpusim.errors import (
    BarrierError,
    KernelFault,
    LaunchError,
    NoProgressError,
    OutOfBoundsError,
)
from gpusim.isa.ops import Instruction, Program
from gpusim.launch.events import Observer, Step
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.launch.prepared import Prepared
from gpusim.machine import chunk_blocks, run

LEVELS = ["O0", "O3"]
both_levels = pytest.mark.parametrize("level", LEVELS)


def zeros(n: int, dtype: object = np.int32) -> np.ndarray:
    return np.zeros(n, dtype=dtype)  # type: ignore[call-overload]


@both_levels
def test_nested_divergence_runs_every_side_with_its_own_lanes(level: str) -> None:
    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        value = 0
        if t % 2 == 0:
            if t % 4 == 0:
                value = 1
            else:
                value = 2
            value += 10
        elif t < 16:
            value = 3
        else:
            value = 4
        out[t] = value

    out = zeros(64)
    gpusim.trace(kernel[1, 64], out, level=level)
    t = np.arange(64)
    expected = np.where(t % 2 == 0, np.where(t % 4 == 0, 11, 12), np.where(t < 16, 3, 4))
    assert out.tolist() == expected.tolist()


@both_levels
def test_lanes_that_returned_do_not_take_part_in_later_barriers(level: str) -> None:
    @cuda.jit
    def kernel(out):
        shared = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        shared[t] = t
        if t >= 40:
            return
        cuda.syncthreads()
        out[t] = shared[39 - t]

    out = zeros(64)
    gpusim.trace(kernel[1, 64], out, level=level)
    assert out[:40].tolist() == list(range(39, -1, -1))


@both_levels
def test_lanes_may_run_a_loop_a_different_number_of_times(level: str) -> None:
    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        total = 0
        for i in range(t):
            if i == 20:
                break
            if i % 3 == 0:
                continue
            total += i
        out[t] = total

    out = zeros(64)
    gpusim.trace(kernel[1, 64], out, level=level)
    assert out.tolist() == [sum(i for i in range(min(t, 20)) if i % 3) for t in range(64)]


@both_levels
def test_a_loop_ends_where_a_while_condition_with_a_load_says(level: str) -> None:
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.grid(1)
        i = t
        while i < n and a[i] > 0:
            i += 1
        out[t] = i

    a = np.array([1, 1, 0, 1, 1, 1, 0, 1], dtype=np.int32)
    out = zeros(32)
    gpusim.trace(kernel[1, 32], a, out, 8, level=level)
    assert out.tolist()[:9] == [2, 2, 2, 6, 6, 6, 6, 8, 8]


@both_levels
def test_a_block_may_wait_for_a_later_block(level: str) -> None:
    @cuda.jit
    def kernel(flag, out):
        if cuda.blockIdx.x == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                cuda.threadfence()
            out[0] = 7
        elif cuda.blockIdx.x == cuda.gridDim.x - 1:
            cuda.atomic.exch(flag, 0, 1)

    flag, out = zeros(1), zeros(1)
    gpusim.trace(kernel[3, 1], flag, out, level=level)
    assert out[0] == 7


def test_a_block_may_wait_for_a_block_of_another_chunk() -> None:
    @cuda.jit
    def kernel(flag, out):
        if cuda.blockIdx.x == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                cuda.threadfence()
            out[0] = 7
        elif cuda.blockIdx.x == cuda.gridDim.x - 1:
            cuda.atomic.exch(flag, 0, 1)

    flag, out = zeros(1), zeros(1)
    gpusim.trace(kernel[3, 1], flag, out, blocks_per_chunk=1)
    assert out[0] == 7


@both_levels
def test_the_last_block_to_arrive_can_finish_the_work(level: str) -> None:
    @cuda.jit
    def last_block(data, partial, count, out):
        shared = cuda.shared.array(1, np.int32)
        t = cuda.threadIdx.x
        total = data[cuda.grid(1)]
        step = 16
        while step > 0:
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
            step //= 2
        if t == 0:
            partial[cuda.blockIdx.x] = total
            cuda.threadfence()
            shared[0] = cuda.atomic.add(count, 0, 1)
        cuda.syncthreads()
        if shared[0] == cuda.gridDim.x - 1 and t == 0:
            whole = 0
            for b in range(cuda.gridDim.x):
                whole += partial[b]
            out[0] = whole

    data = np.arange(40 * 32, dtype=np.int32)
    partial, count, out = zeros(40), zeros(1), zeros(1)
    gpusim.trace(last_block[40, 32], data, partial, count, out, level=level)
    assert (out[0], count[0]) == (data.sum(), 40)


@both_levels
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("down", [*range(3, 32), 29, 30, 31]),
        ("up", [0, 1, 2, *range(29)]),
        ("xor", [lane ^ 3 for lane in range(32)]),
        ("idx", [5] * 32),
    ],
)
def test_shuffles_move_values_between_lanes(level: str, mode: str, expected: list[int]) -> None:
    @cuda.jit
    def down(out):
        out[cuda.laneid] = cuda.shfl_down_sync(0xFFFFFFFF, cuda.laneid, 3)

    @cuda.jit
    def up(out):
        out[cuda.laneid] = cuda.shfl_up_sync(0xFFFFFFFF, cuda.laneid, 3)

    @cuda.jit
    def xor(out):
        out[cuda.laneid] = cuda.shfl_xor_sync(0xFFFFFFFF, cuda.laneid, 3)

    @cuda.jit
    def idx(out):
        out[cuda.laneid] = cuda.shfl_sync(0xFFFFFFFF, cuda.laneid, 5)

    out = zeros(32)
    kernel = {"down": down, "up": up, "xor": xor, "idx": idx}[mode]
    trace = gpusim.trace(kernel[1, 32], out, level=level)
    assert out.tolist() == expected
    assert trace.counters["shuffles"] == 1


@both_levels
def test_a_shuffle_keeps_to_segments_of_its_width(level: str) -> None:
    @cuda.jit
    def kernel(out):
        lane = cuda.laneid
        out[lane] = cuda.shfl_down_sync(0xFFFFFFFF, lane, 1, 8)

    out = zeros(32)
    gpusim.trace(kernel[1, 32], out, level=level)
    assert out.tolist() == [lane if lane % 8 == 7 else lane + 1 for lane in range(32)]


@both_levels
def test_votes_see_the_lanes_of_the_mask(level: str) -> None:
    @cuda.jit
    def kernel(out):
        lane = cuda.laneid
        out[lane] = cuda.ballot_sync(0xFFFFFFFF, lane % 3 == 0)
        if lane < 8:
            out[32 + lane] = cuda.all_sync(0xFF, lane < 8)
            out[64 + lane] = cuda.any_sync(0xFF, lane == 9)

    out = zeros(96, np.uint32)
    gpusim.trace(kernel[1, 32], out, level=level)
    assert set(out[:32].tolist()) == {sum(1 << lane for lane in range(0, 32, 3))}
    assert out[32:40].tolist() == [1] * 8
    assert out[64:72].tolist() == [0] * 8


@both_levels
def test_barriers_that_count_see_every_thread_of_the_block(level: str) -> None:
    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        count = cuda.syncthreads_count(t % 3 == 0)
        every = cuda.syncthreads_and(t < 96)
        some = cuda.syncthreads_or(t == 95)
        out[cuda.grid(1)] = count * 100 + every * 10 + some

    out = zeros(192)
    gpusim.trace(kernel[2, 96], out, level=level)
    assert set(out.tolist()) == {3211}


@both_levels
def test_barriers_that_count_tell_blocks_that_come_one_after_the_other(level: str) -> None:
    @cuda.jit
    def kernel(out, seen, mine):
        i = cuda.grid(1)
        old = cuda.atomic.add(seen, 0, 0)
        while True:
            now = cuda.atomic.cas(seen, 0, old, old + 1)
            if now == old:
                break
            old = now
        out[i] = cuda.syncthreads_count(mine[i]) * 10 + cuda.syncthreads_or(mine[i] == 2)

    out = zeros(256)
    gpusim.trace(kernel[4, 64], out, zeros(1), np.arange(256, dtype=np.int32) // 64, level=level)
    assert out.tolist() == [0] * 64 + [640] * 64 + [641] * 64 + [640] * 64


@cuda.jit
def tickets_of_keys(keys, bins, tickets):
    i = cuda.grid(1)
    tickets[i] = cuda.atomic.add(bins, keys[i], 1)


@both_levels
@given(data=st.data())
@settings(max_examples=20)
def test_atomics_on_one_address_add_up_and_hand_out_every_ticket(
    level: str, data: st.DataObject
) -> None:
    keys = np.array(
        data.draw(st.lists(st.integers(0, 5), min_size=128, max_size=128)), dtype=np.int32
    )
    bins, tickets = zeros(6), zeros(128)
    gpusim.trace(tickets_of_keys[2, 64], keys, bins, tickets, level=level)
    assert bins.tolist() == np.bincount(keys, minlength=6).tolist()
    for key in range(6):
        assert sorted(tickets[keys == key]) == list(range(bins[key]))


@both_levels
def test_every_atomic_does_what_its_name_says(level: str) -> None:
    @cuda.jit
    def kernel(values, a, out):
        i = cuda.threadIdx.x
        v = values[i]
        cuda.atomic.max(a, 0, v)
        cuda.atomic.min(a, 1, v)
        cuda.atomic.sub(a, 2, v)
        out[i] = cuda.atomic.cas(a, 3, 0, v)
        cuda.atomic.exch(a, 4, v)

    values = np.arange(5, 37, dtype=np.int32)
    a, out = np.array([0, 99, 1000, 0, 0], dtype=np.int32), zeros(32)
    gpusim.trace(kernel[1, 32], values, a, out, level=level)
    assert a[:3].tolist() == [36, 5, 1000 - values.sum()]
    assert sorted(out.tolist()) == [0] + [int(a[3])] * 31
    assert a[4] in values


@both_levels
def test_integers_wrap_and_divide_as_in_c(level: str) -> None:
    @cuda.jit
    def kernel(a, b, out):
        i = cuda.threadIdx.x
        out[0, i] = a[i] + b[i]
        out[1, i] = a[i] * b[i]
        out[2, i] = a[i] // b[i]
        out[3, i] = a[i] % b[i]
        out[4, i] = a[i] >> 3
        out[5, i] = a[i] << 3

    a = np.array([2**31 - 1, -7, 7, -(2**31), 5, 0, -1, 123456789], dtype=np.int32)
    b = np.array([1, 2, -2, 3, 7, 5, 10, -1000], dtype=np.int32)
    out = np.zeros((6, 8), dtype=np.int32)
    gpusim.trace(kernel[1, 8], a, b, out, level=level)
    wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
    quotient = np.trunc(wide_a / wide_b).astype(np.int64)
    expected = [
        wide_a + wide_b,
        wide_a * wide_b,
        quotient,
        wide_a - quotient * wide_b,
        wide_a >> 3,
        wide_a << 3,
    ]
    assert out.tolist() == np.array(expected).astype(np.int32).tolist()


@both_levels
def test_unsigned_arithmetic_is_unsigned(level: str) -> None:
    @cuda.jit
    def kernel(a, b, out):
        i = cuda.threadIdx.x
        out[0, i] = a[i] - b[i]
        out[1, i] = a[i] // b[i]
        out[2, i] = a[i] % b[i]
        out[3, i] = a[i] >> 1

    a = np.array([0, 5, 2**32 - 1, 2**31], dtype=np.uint32)
    b = np.array([1, 3, 10, 2**31 - 1], dtype=np.uint32)
    out = np.zeros((4, 4), dtype=np.uint32)
    gpusim.trace(kernel[1, 4], a, b, out, level=level)
    assert out.tolist() == [
        (a - b).tolist(),
        (a // b).tolist(),
        (a % b).tolist(),
        (a >> 1).tolist(),
    ]


@both_levels
def test_two_and_three_dimensional_launches_number_their_threads(level: str) -> None:
    @cuda.jit
    def kernel(out):
        x, y, z = cuda.grid(3)
        out[x, y, z] = (
            cuda.threadIdx.x
            + 10 * cuda.threadIdx.y
            + 100 * cuda.threadIdx.z
            + 1000 * cuda.blockIdx.x
            + 10000 * cuda.blockIdx.y
            + 100000 * cuda.blockIdx.z
        )

    out = np.zeros((8, 6, 4), dtype=np.int32)
    gpusim.trace(kernel[(2, 3, 2), (4, 2, 2)], out, level=level)
    x, y, z = np.meshgrid(range(8), range(6), range(4), indexing="ij")
    expected = (
        x % 4
        + 10 * (y % 2)
        + 100 * (z % 2)
        + 1000 * (x // 4)
        + 10000 * (y // 2)
        + 100000 * (z // 2)
    )
    assert out.tolist() == expected.tolist()


@both_levels
def test_vectors_load_and_store_several_elements_at_once(level: str) -> None:
    @cuda.jit
    def kernel(a, out):
        i = cuda.grid(1)
        x, y, z, w = cuda.load_vector(a, 4 * i, 4)
        cuda.store_vector(out, 4 * i, (w, z, y, x))

    a, out = np.arange(256, dtype=np.float32), zeros(256, np.float32)
    trace = gpusim.trace(kernel[2, 32], a, out, level=level)
    assert out.tolist() == a.reshape(-1, 4)[:, ::-1].reshape(-1).tolist()
    assert trace.counters["global_load_instructions"] == 2
    assert trace.counters["global_load_sectors"] == 32


@both_levels
def test_local_arrays_belong_to_one_thread(level: str) -> None:
    @cuda.jit
    def kernel(a, out):
        mine = cuda.local.array(4, np.int32)
        t = cuda.threadIdx.x
        for i in range(4):
            mine[i] = a[(t + i) % 64]
        total = 0
        for i in range(4):
            total += mine[(i + t) % 4] * (i + 1)
        out[t] = total

    a, out = np.arange(64, dtype=np.int32), zeros(64)
    gpusim.trace(kernel[1, 64], a, out, level=level)
    expected = [sum((t + (i + t) % 4) % 64 * (i + 1) for i in range(4)) for t in range(64)]
    assert out.tolist() == expected


@both_levels
def test_narrow_arrays_load_promoted_and_store_wrapped(level: str) -> None:
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        out[t] = a[t] * 3

    a = np.arange(-64, 64, dtype=np.int8)
    out = zeros(128, np.int8)
    gpusim.trace(kernel[1, 128], a, out, level=level)
    assert out.tolist() == (a.astype(np.int32) * 3).astype(np.int8).tolist()


@both_levels
def test_counters_do_not_depend_on_the_chunk_size(level: str) -> None:
    @cuda.jit
    def kernel(a, out, n):
        shared = cuda.shared.array(64, np.int32)
        i = cuda.grid(1)
        t = cuda.threadIdx.x
        shared[(t * 2 + t // 32) % 64] = a[i] if i < n else 0
        cuda.syncthreads()
        if a[i] % 3 == 0:
            for k in range(a[i] % 7):
                out[i] += shared[(t + k) % 64]

    a = np.random.default_rng(1).integers(0, 100, 640).astype(np.int32)
    results = []
    for size in (1, 3, 10):
        out = zeros(640)
        trace = gpusim.trace(kernel[10, 64], a, out, 600, level=level, blocks_per_chunk=size)
        per_line = [line.counters for line in trace.lines]
        results.append((trace.counters, per_line, list(trace.blocks), out.tolist()))
    assert results[0] == results[1] == results[2]


def test_fewer_blocks_run_at_a_time_where_a_program_has_many_registers() -> None:
    launch = Launch((4096, 1, 1), (128, 1, 1), 0)
    few, many = (Program("p", (), registers=registers) for registers in (64, 128))
    assert chunk_blocks(few, launch) == 2048  # 2^18 lanes
    assert chunk_blocks(many, launch) == 1024


def test_counters_of_lines_blocks_and_warps_add_up_to_the_launch() -> None:
    @cuda.jit
    def kernel(a, out):
        shared = cuda.shared.array(96, np.int32)
        t = cuda.threadIdx.x
        shared[t] = a[cuda.grid(1)]
        cuda.syncthreads()
        if t % 2 == 0 and a[t] > cuda.blockIdx.x:
            out[cuda.grid(1)] = shared[95 - t]

    a = np.random.default_rng(2).integers(0, 9, 96 * 5).astype(np.int32)
    trace = gpusim.trace(kernel[5, 96], a, zeros(96 * 5), block_index=3)
    for name, value in trace.counters.items():
        assert sum(block[name] for block in trace.blocks) == value
        assert sum(line.counters[name] for line in trace.lines) == value
        assert sum(warp.counters[name] for warp in trace.warps) == trace.blocks[3][name]


@pytest.mark.parametrize("level", LEVELS)
def test_an_index_out_of_bounds_names_array_index_size_block_thread_and_line(level: str) -> None:
    @cuda.jit
    def kernel(a, out):
        i = cuda.grid(1)
        out[i] = a[i - 1]

    with pytest.raises(OutOfBoundsError) as caught:
        gpusim.trace(kernel[2, 32], zeros(64), zeros(64), level=level)
    line = kernel.source.first_line + 3
    assert str(caught.value) == (
        f"line {line}: a[-1] is out of bounds: a has 64 elements (block 0, thread 0)"
    )


def test_an_index_out_of_bounds_in_shared_memory_is_found_within_the_block() -> None:
    @cuda.jit
    def kernel(out):
        first = cuda.shared.array(32, np.int32)
        second = cuda.shared.array(32, np.int32)
        t = cuda.threadIdx.x
        second[t] = t
        first[t + 1] = t
        out[t] = second[t]

    with pytest.raises(OutOfBoundsError, match=r"first\[32\].*32 elements \(block 0, thread 31\)"):
        gpusim.trace(kernel[1, 32], zeros(32))


def test_a_vector_access_must_be_aligned() -> None:
    @cuda.jit
    def kernel(a, out):
        x, y = cuda.load_vector(a, cuda.threadIdx.x, 2)
        out[0] = x + y

    with pytest.raises(KernelFault, match="not a multiple of 2"):
        gpusim.trace(kernel[1, 32], zeros(64), zeros(1))


@both_levels
def test_a_barrier_that_some_threads_never_reach_says_who_waits_where(level: str) -> None:
    @cuda.jit
    def kernel(flag, out):
        if cuda.threadIdx.x < 32:
            cuda.syncthreads()
        else:
            while cuda.atomic.add(flag, 0, 0) == 0:
                cuda.threadfence()
        out[0] = 1

    line = kernel.source.first_line + 3
    with pytest.raises((BarrierError, NoProgressError)) as caught:
        gpusim.trace(kernel[1, 64], zeros(1), zeros(1), level=level, step_limit=10_000)
    assert str(line) in str(caught.value) or "line" in str(caught.value)


@both_levels
def test_a_barrier_in_one_side_of_a_diverged_warp_stands_still(level: str) -> None:
    @cuda.jit
    def kernel(out):
        if cuda.threadIdx.x < 16:
            cuda.syncthreads()
            out[0] = 1
        out[1] = 2

    line = kernel.source.first_line + 3
    with pytest.raises(BarrierError, match=f"warp 0 .*waits at the barrier on line {line}"):
        gpusim.trace(kernel[1, 64], zeros(2), level=level)


def test_a_kernel_that_never_ends_is_stopped_by_the_step_limit() -> None:
    @cuda.jit
    def kernel(out):
        while out[0] == 0:
            cuda.atomic.add(out, 1, 1)

    with pytest.raises(NoProgressError, match="raise the step limit"):
        gpusim.trace(kernel[1, 32], zeros(2), step_limit=10_000)


def test_more_shared_memory_than_a_block_may_have_is_refused() -> None:
    @cuda.jit
    def kernel(out):
        shared = cuda.shared.array(0, np.int32)
        shared[0] = 1
        out[0] = shared[0]

    with pytest.raises(LaunchError, match="232448"):
        gpusim.trace(kernel[1, 32, 0, 232_452], zeros(1))
    with pytest.raises(LaunchError, match="at most 49152"):
        gpusim.trace(kernel[1, 32, 0, 50_000], zeros(1), cc="3.5")


def test_a_read_only_array_cannot_be_stored_to() -> None:
    @cuda.jit
    def kernel(out):
        out[0] = 1

    out = zeros(1)
    out.flags.writeable = False
    with pytest.raises(KernelFault, match="out is read-only"):
        gpusim.trace(kernel[1, 32], out)


def test_calling_a_kernel_runs_it() -> None:
    @cuda.jit
    def kernel(out, value):
        out[cuda.grid(1)] = value

    out = zeros(64, np.float32)
    kernel[2, 32](out, 1.5)
    assert out.tolist() == [1.5] * 64


@both_levels
def test_a_special_register_given_a_name_is_a_variable_like_any_other(level: str) -> None:
    @cuda.jit
    def kernel(out, n):
        t = cuda.threadIdx.x
        i = t
        while i < n:
            out[i] = t
            i += cuda.blockDim.x

    out = zeros(100)
    gpusim.trace(kernel[1, 32], out, 100, level=level)
    assert out.tolist() == [i % 32 for i in range(100)]


@both_levels
def test_bits_are_counted_and_found_in_signed_numbers_too(level: str) -> None:
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        out[0, t] = cuda.popc(a[t])
        out[1, t] = cuda.ffs(a[t])
        out[2, t] = cuda.clz(a[t])
        out[3, t] = cuda.brev(a[t])

    values = [-1, 0, 1, -(2**31), 96, 2**31 - 1]
    out = np.zeros((4, 6), dtype=np.int32)
    gpusim.trace(kernel[1, 6], np.array(values, dtype=np.int32), out, level=level)
    bits = [format(v & 0xFFFFFFFF, "032b") for v in values]
    assert out[0].tolist() == [b.count("1") for b in bits]
    assert out[1].tolist() == [32 - b.rfind("1") if "1" in b else 0 for b in bits]
    assert out[2].tolist() == [len(b) - len(b.lstrip("0")) for b in bits]
    reversed_bits = np.array([int(b[::-1], 2) for b in bits], dtype=np.uint32)
    assert out[3].tolist() == reversed_bits.view(np.int32).tolist()


@both_levels
def test_a_loop_may_keep_two_elements_up_to_date_and_be_left_early(level: str) -> None:
    @cuda.jit
    def kernel(out, n):
        shared = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        shared[t] = 0
        shared[t + 32] = 1
        for i in range(n):
            shared[t] += i
            shared[t + 32] *= 2
            if i == t % 5:
                break
        out[t] = shared[t]
        out[t + 32] = shared[t + 32]

    out = zeros(64)
    gpusim.trace(kernel[1, 32], out, 9, level=level)
    turns = [t % 5 + 1 for t in range(32)]
    assert out.tolist() == [sum(range(k)) for k in turns] + [2**k for k in turns]


@both_levels
def test_sums_of_shared_parts_compile_in_no_time(level: str) -> None:
    @cuda.jit
    def kernel(a, out):
        t = np.uint32(cuda.threadIdx.x)
        x = t
        for _ in range(40):
            x = x + (x ^ t)
        out[x % 32 * 0 + t] = a[t]

    a, out = np.arange(32, dtype=np.int32), zeros(32)
    gpusim.trace(kernel[1, 32], a, out, level=level)
    assert out.tolist() == a.tolist()


@both_levels
def test_warps_of_thousands_of_blocks_diverge_and_join_each_in_its_own_way(level: str) -> None:
    """One block of even numbers alone keeps the others from running as one."""

    @cuda.jit
    def kernel(a, out):
        i = cuda.grid(1)
        n = a[i]
        while n > 0:
            if n % 3 == 0:
                out[i] += 5
            else:
                out[i] += n
            n -= 1 + n % 2

    a = np.random.default_rng(3).integers(0, 9, 2048 * 32).astype(np.int32)
    a[:32] = 2
    out = zeros(a.size)
    gpusim.trace(kernel[2048, 32], a, out, level=level)
    sums = []
    for start in range(9):
        n, total = start, 0
        while n > 0:
            total += 5 if n % 3 == 0 else n
            n -= 1 + n % 2
        sums.append(total)
    assert out.tolist() == np.array(sums)[a].tolist()


class Rows(Observer):
    """Notes how many lanes run each SHFL."""

    def __init__(self) -> None:
        self.lanes: list[int] = []

    def step(self, step: Step) -> None:
        if step.instruction.op == "SHFL":
            self.lanes += np.count_nonzero(step.active, axis=2).reshape(-1).tolist()


def test_lanes_meet_those_whose_mask_names_the_same_lanes() -> None:
    """Quarters of a warp come to one shuffle apart; each half names itself, and meets as a half."""
    lane, mask, first_half, here, other, taken = range(6)
    low, high, eight, sixteen, full = range(6, 11)
    immediates = {
        low: np.uint32(0xFFFF),
        high: np.uint32(0xFFFF0000),
        eight: np.int32(8),
        sixteen: np.int32(16),
        full: np.int32(31),
    }
    shuffle = 11
    rows = (
        Instruction("S2R", (lane,), detail="laneid"),
        Instruction("ISETP", (first_half,), (lane, sixteen), detail=("lt",)),
        Instruction("SEL", (mask,), (low, high, first_half)),
        Instruction("ISETP", (here,), (lane, eight), detail=("lt",)),
        Instruction("BRA", guard=here, target=shuffle),
        Instruction("LOP3", (other,), (lane, sixteen), detail="xor"),
        Instruction("ISETP", (here,), (other, eight), detail=("lt",)),
        Instruction("BRA", guard=here, target=shuffle),
        Instruction("BRA", guard=first_half, target=shuffle),
        Instruction("NOP"),
        Instruction("NOP"),
        Instruction("SHFL", (taken,), (mask, lane, lane, full), detail=("idx", "value")),
        Instruction("EXIT"),
    )
    noted = Rows()
    program = Program("quarters", rows, registers=11, immediates=immediates)
    run(Prepared(program, Launch.of(1, 32), {}, ComputeCapability(9, 0)), observers=[noted])
    assert noted.lanes == [16, 16]


@both_levels
def test_the_length_of_dynamic_shared_memory_is_known_at_launch(level: str) -> None:
    @cuda.jit
    def kernel(out):
        wide = cuda.shared.array(0, np.float64)
        out[0] = len(wide)

    out = zeros(1)
    gpusim.trace(kernel[1, 32, 0, 512], out, level=level)
    assert out[0] == 64


def test_a_shared_index_outside_its_array_in_all_blocks_alike_is_told() -> None:
    @cuda.jit
    def kernel(out):
        shared = cuda.shared.array(32, np.int32)
        shared[cuda.threadIdx.x + 1] = 1
        out[0] = shared[0]

    with pytest.raises(OutOfBoundsError, match=r"shared\[32\].*\(block 0, thread 31\)"):
        kernel[4, 32](zeros(1))


@both_levels
def test_a_guard_that_comes_from_a_shuffle_counts_lanes(level: str) -> None:
    """A quotient by zero of the last lane's neighbour is guarded; the lanes' masks are counted."""

    @cuda.jit
    def kernel(out):
        g = cuda.grid(1)
        v = cuda.shfl_down_sync(0xFFFFFFFF, g, 1)
        out[g] = 100 // v

    out = zeros(64)
    gpusim.trace(kernel[2, 32], out, level=level)
    lane = np.arange(64)
    source = np.where(lane % 32 == 31, lane, lane + 1)
    assert out.tolist() == (100 // source).tolist()
