"""A launch with something to report runs in compiled code, which tells the checker its steps."""

from __future__ import annotations

import functools
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.checking.check import check_prepared, to_check
from gpusim.gpu.device import load
from gpusim.machine.compiled import checked_steps, examination, modules
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeKernel

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

BLOCKS, THREADS = 3, 64
PLACES = ("t", "t ^ 1", "t ^ 32", "(t + 1) % 64", "63 - t", "7", "t + 40 * r")
ORDERS = (
    "__syncthreads();",
    "__syncthreads();",
    "__syncwarp();",
    "if (t < 32) __syncwarp(0xffff0000u >> (t & 16));",
    "__threadfence();",
    "__threadfence_block();",
    "if (__syncthreads_or(v == 3)) v++;",
    "v += __shfl_xor_sync(-1, v, 3);",
    "if (t == 40 && r) return;",
    "if (t == 41 && r) __trap();",
    'asm volatile("bar.sync 1, 64;" ::: "memory");',
    'asm volatile("bar.sync 2;" ::: "memory");',
)


def random_kernel(name: str, draw: random.Random) -> str:
    """Return a kernel whose loop accesses memory, ordered here and there."""
    lines = []
    for _ in range(draw.randint(3, 8)):
        place = draw.choice(PLACES)
        array = draw.choice(("s", "s", "g", "mine"))
        lines.append(
            draw.choice(
                (
                    f"v += {array}[{place}];",
                    f"v += {array}[{place}];",
                    f"{array}[{place}] = v;",
                    f"{array}[{place}] = 5;",
                    f"atomicAdd(&{array}[{place}], 1);",
                    f"atomicAdd_block(&g[{place}], 1);",
                    f"atomicAdd(&sums[{place}], 0.5f * t);",
                    f"v += *(volatile int *)&{array}[{place}];",
                    f"*(volatile int *)&{array}[{place}] = v;",
                    f"v = at(t & 1 ? s : mine, {place});",
                    f"v += fixed[{place}];",
                    f"*(short *)((char *)&{array}[{place}] + (t == 5)) = 1;",
                )
            )
        )
        if draw.random() < 0.2:
            lines[-1] = f"if (t {draw.choice(('< 40', '& 1', '== 5'))}) {{ {lines[-1]} }}"
        if draw.random() < 0.6:
            lines.append(draw.choice(ORDERS))
    body = "\n        ".join(lines)
    return f"""
__global__ void {name}(
    int *g, float *sums, int *out, int rounds, const int *__restrict__ fixed
) {{
    __shared__ int s[64];
    int t = threadIdx.x, v = t, *mine = g + 64 * (1 + blockIdx.x);
    {draw.choice(("s[t] = t;", "s[t] = t; __syncthreads();"))}
    #pragma unroll 1
    for (int r = 0; r < rounds; r++) {{
        {body}
    }}
    out[blockIdx.x * 64 + t] = v;
}}"""


def checked(
    seed: int, count: int, patched: pytest.MonkeyPatch, order: int | None = None
) -> list[bool]:
    """Assert that random kernels are judged as by NumPy; return whether each has findings."""
    draw = random.Random(seed)
    names = [f"k{number}" for number in range(count)]
    text = "".join(random_kernel(name, draw) for name in names)
    file = gpusim.cuda_source(
        f"__device__ __noinline__ int at(int *x, int i) {{ return x[i]; }}\n{text}"
    )
    reported = []
    for name in names:
        found = []
        for fast in "01":
            patched.setenv("GPUSIM_FAST", fast)
            g, out = np.arange(64 * (1 + BLOCKS), dtype=np.int32), np.zeros(64 * BLOCKS, np.int32)
            arrays = g, np.zeros(64, np.float32), out
            fixed = np.arange(64, dtype=np.int32)
            findings = gpusim.check(file[name][BLOCKS, THREADS], *arrays, 2, fixed, order=order)
            found.append((findings.to_dict(), [array.tobytes() for array in arrays]))
        assert found[0] == found[1], text
        reported.append(bool(findings))
    return reported


def test_random_loops_with_races_are_judged_as_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(checked(0, 12, monkeypatch))


def test_random_loops_in_a_random_order_are_judged_as_by_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert any(checked(20, 6, monkeypatch, order=5))


@pytest.mark.slow
@pytest.mark.parametrize("order", [None, 0, 1])
@pytest.mark.parametrize("seed", range(1, 13))
def test_more_random_loops_with_races_are_judged_as_by_numpy(
    seed: int, order: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(checked(seed, 16, monkeypatch, order))


LOCKED = """
__global__ void locked(int *sums, int *lock, int *last, int rounds) {
    for (int k = 0; k < rounds; k++) sums[2 + threadIdx.x] += k;
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(lock, 0, 1)) {}
        sums[0] += 1;
        last[sums[0] % 4] = blockIdx.x;
        atomicExch(lock, 0);
    }
}"""


def test_a_lock_is_taken_in_the_reverse_order_as_by_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = gpusim.cuda_source(LOCKED)["locked"]
    found = []
    for fast in "10":
        monkeypatch.setenv("GPUSIM_FAST", fast)
        arrays = np.zeros(70, np.int32), np.zeros(1, np.int32), np.zeros(4, np.int32)
        checked = gpusim.check(kernel[2, 64], *arrays, 20)
        found.append((checked.to_dict(), [one.tolist() for one in arrays]))
    assert found[0] == found[1]
    assert found[0][1][1] == [0]


SERIAL = """
__global__ void serial(double *out, int terms) {
    __shared__ double sum;
    if (threadIdx.x == 0) {
        double s = 0;
        for (int k = 0; k < terms; k++) s += (k % 2 ? -4.0 : 4.0) / (2 * k + 1);
        sum = s;
    }
    out[threadIdx.x] = sum;
}"""


@functools.cache
def serial_kernel() -> CodeKernel:
    return gpusim.cuda_source(SERIAL)["serial"]


def serial(terms: int, *, blocks: int = 1, **options: Any) -> gpusim.Findings:
    return gpusim.check(serial_kernel()[blocks, 64], np.zeros(64), terms, **options)


def test_a_race_behind_a_long_loop_of_one_lane_is_found() -> None:
    """A loop that makes progress goes far beyond the step limit."""
    examination.forget()
    assert [one.rule for one in serial(20_000, step_limit=10_000)] == ["shared-race"]
    assert [one.rule for one in serial(20_000, step_limit=10_000, order=1)] == ["shared-race"]


OUTSIDE = """
__global__ void outside(int *out, const int *__restrict__ x, int terms, int columns) {
    int t = threadIdx.x, sum = 0;
    for (int k = 0; k < terms; k++) sum += x[(t + k) % 40];
    out[t] = sum;
    __syncthreads();
    out[t + 1] += x[t - 1];
    out[(t - 63) * columns * 65536] = 1;
}"""


def outside(terms: int, columns: int, out: Any) -> gpusim.Findings:
    x = np.ones(40, np.int32)
    kernel = gpusim.cuda_source(OUTSIDE)["outside"]
    return gpusim.check(kernel[1, 64], out, x, terms, columns, step_limit=10_000)


def test_accesses_outside_their_arrays_behind_a_long_loop_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lanes with a fault skip their access and load zeros, compiled and interpreted."""
    kept, slow = np.zeros((2, 64), np.int32)
    found = outside(20_000, 0, kept)
    told = [(one.message.partition(" is")[0], one.count) for one in found if one.rule == "bounds"]
    assert told == [("line 7: out[64]", 2), ("line 7: x[-1]", 24)]
    assert kept[[63, 2, 1, 0]].tolist() == [20_000, 20_001, 20_000, 1]
    outside(100, 0, kept)
    monkeypatch.setenv("GPUSIM_FAST", "0")
    assert outside(100, 0, slow).found == found.found
    assert (kept == slow).all()


@pytest.mark.parametrize("fast", ["0", "1"])
def test_a_store_to_an_array_that_is_read_only_is_a_finding(
    fast: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUSIM_FAST", fast)
    kernel = gpusim.cuda_source("""
__global__ void stores(const int *x, int *out, int rounds) {
    int sum = 0;
    for (int k = 0; k < rounds; k++) sum += x[k];
    ((int *)x)[threadIdx.x] = sum;
    out[threadIdx.x] = sum;
}""")["stores"]
    x, out = np.ones(32, np.int32), np.zeros(32, np.int32)
    x.flags.writeable = False
    found = gpusim.check(kernel[1, 32], x, out, 5)
    assert [(one.rule, one.count) for one in found] == [("read-only", 32)]
    assert (out == 5).all()


def test_a_product_that_overflows_beside_an_access_outside_is_told_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [outside(10, 1025, np.zeros(64, np.int32)).to_dict()]
    monkeypatch.setenv("GPUSIM_FAST", "0")
    found.append(outside(10, 1025, np.zeros(64, np.int32)).to_dict())
    assert found[0] == found[1]
    assert "index-overflow" in str(found[0])


@cuda.jit
def beyond_an_axis(x):
    t = cuda.threadIdx.x
    for k in range(4):
        x[k, t] += 1


def test_indices_beyond_an_axis_in_a_loop_are_found_as_by_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for fast in "10":
        monkeypatch.setenv("GPUSIM_FAST", fast)
        x = np.zeros((5, 30), np.int32)
        checked = gpusim.check(beyond_an_axis[2, 32], x)
        found.append((checked.to_dict(), x.tolist()))
    assert found[0] == found[1]
    assert "x[0, 30] is out of bounds: index 30 along axis 1" in str(found[0])


def test_a_long_loop_of_each_of_many_blocks_beside_a_race_runs_in_compiled_code() -> None:
    found = serial(20_000, blocks=128, step_limit=10_000)
    assert [(one.rule, one.count) for one in found.errors] == [("shared-race", 2 * 128)]


def test_groups_of_many_warps_that_race_are_judged_as_by_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NumPy's machine runs each of their instructions at once; compiled code hands them over."""
    found = []
    for fast in "10":
        monkeypatch.setenv("GPUSIM_FAST", fast)
        monkeypatch.setattr(checked_steps, "MOST_STEPS", 512)
        found.append(serial(3, blocks=512).to_dict())
    assert found[0] == found[1]


def test_a_second_check_uses_the_modules_of_the_first() -> None:
    """Both are kept: the one that finds the race, and the one that writes the steps down."""
    examination.forget()
    modules._kept.clear()
    serial(10)
    before = {id(one) for one in modules._kept.values()}
    examination.forget()
    serial(10)
    assert {id(one) for one in modules._kept.values()} == before


def test_a_word_that_no_thread_writes_is_followed_to_its_use_from_the_start() -> None:
    """Compiled code tells no values of registers: arrays are as before when NumPy begins."""
    kernel = gpusim.cuda_source("""
__global__ void unset(int *x, int *out, int rounds) {
    __shared__ int s[64];
    int t = threadIdx.x;
    for (int r = 0; r < rounds; r++) { x[t] += 1; __syncthreads(); }
    if (t) s[t] = 1;
    __syncthreads();
    out[t ^ 1] = s[t];
}""")["unset"]
    x, out = np.zeros(64, np.int32), np.zeros(64, np.int32)
    found = gpusim.check(kernel[1, 64], x, out, 3)
    assert [(one.rule, one.count) for one in found] == [("uninitialised", 1)]
    assert (x == 3).all()


@pytest.mark.parametrize("fast", ["0", "1"])
def test_one_value_stored_by_some_lanes_of_several_blocks_is_no_race(
    fast: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lanes that do not store hold other values; the fence makes every earlier store count."""
    monkeypatch.setenv("GPUSIM_FAST", fast)
    kernel = gpusim.cuda_source("""
__global__ void alike(const int *y, int *x, int rounds) {
    int t = threadIdx.x, v = y[t];
    for (int r = 0; r < rounds; r++) {
        if (t & 1) x[t & 30] = v;
        __threadfence_block();
    }
}""")["alike"]
    values = np.where(np.arange(32) % 2, 5, 7).astype(np.int32)
    found = gpusim.check(kernel[3, 32], values, np.zeros(32, np.int32), 2)
    assert {one.rule for one in found} == {"same-value"}


def test_a_block_may_wait_for_one_that_begins_much_later() -> None:
    """At most 2,048 blocks run at a time, unless some of them wait for others."""
    text = """__global__ void k(int *x, int *y, int *flag) {
        int t = threadIdx.x;
        if (blockIdx.x == gridDim.x - 1) {
            y[t] = 5;
            __threadfence();
            __syncwarp();
            if (t == 0) atomicExch(flag, 1);
        }
        if (blockIdx.x == 0) {
            if (t == 0) while (atomicAdd(flag, 0) == 0);
            __threadfence();
            __syncwarp();
            x[t] = y[t];
        }
    }"""
    x, y, flag = np.zeros(32, np.int32), np.zeros(32, np.int32), np.zeros(1, np.int32)
    assert not gpusim.check(gpusim.cuda_source(text)["k"][2060, 32], x, y, flag).errors
    assert x.tolist() == [5] * 32


def test_a_check_prints_once_what_a_kernel_prints() -> None:
    """The kernel runs twice: with a lock, the last warps and blocks go first the second time."""
    text = """#include <cstdio>
    __global__ void k(int *lock, int *x) {
        if (threadIdx.x) return;
        while (atomicCAS(lock, 0, 1));
        __threadfence();
        printf("%d before %d\\n", blockIdx.x, *x);
        *x += 1;
        __threadfence();
        atomicExch(lock, 0);
    }"""
    lock, x = np.zeros(1, np.int32), np.zeros(1, np.int32)
    call = gpusim.cuda_source(text)["k"][2, 32], (lock, x)
    device = load("h200")
    prepared = replace(to_check(*call, device.cc, None), printed=[])
    assert not check_prepared(prepared, device).errors
    assert b"".join(prepared.printed or ()) == b"0 before 0\n1 before 1\n"
