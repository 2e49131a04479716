"""Barriers in shared memory (cuda::barrier, mbarrier): phases, counts, drops, and races."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from evaluators import agree
from hypothesis import example, given
from hypothesis import strategies as st
from typed_python import Linked

import gpusim
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import barrier_words as by_numpy
from gpusim.machine import run
from gpusim.machine.barrier_words import arrive, arrive_and_drop, arrive_in_halves
from gpusim.machine.warps import barrier_words
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source

U64 = np.uint64
CODE = """
#include <cuda/barrier>
typedef cuda::barrier<cuda::thread_scope_block> Barrier;
#pragma nv_diag_suppress static_var_with_dynamic_init
extern "C" __global__ void turns(int *x) {
  __shared__ Barrier bar; __shared__ int s[128];
  int t = threadIdx.x, r = x[t];
  if (t == 0) init(&bar, 128);
  __syncthreads();
  for (int k = 0; k < 3; k++) {
    s[t] = r + k;
    auto token = bar.arrive();
    r *= 2;
    bar.wait(static_cast<Barrier::arrival_token &&>(token));
    r += s[127 - t];
    bar.arrive_and_wait();
  }
  x[t] = r;
}
extern "C" __global__ void drops(int *x) {
  __shared__ Barrier bar; __shared__ int s[128];
  int t = threadIdx.x;
  if (t == 0) init(&bar, 128);
  __syncthreads();
  s[t] = x[t];
  if (t >= 40) { bar.arrive_and_drop(); return; }
  bar.arrive_and_wait();
  int r = s[t + 40];
  bar.arrive_and_wait();
  s[t] = r;
  bar.arrive_and_wait();
  x[t] = s[39 - t];
}
extern "C" __global__ void counted(int *x) {
  __shared__ Barrier bar; __shared__ int s[128];
  int t = threadIdx.x;
  if (t == 0) init(&bar, 128 + 4 * 31);
  __syncthreads();
  s[t] = x[t];
  auto token = bar.arrive(t % 32 ? 1 : 32);
  bar.wait(static_cast<Barrier::arrival_token &&>(token));
  x[t] = s[t ^ 100];
}
extern "C" __global__ void in_time(int *x) {
  __shared__ Barrier bar; __shared__ int s[128];
  int t = threadIdx.x;
  if (t == 0) init(&bar, blockDim.x);
  __syncthreads();
  s[t] = x[t];
  bar.arrive_and_wait();
  x[t] = s[t ^ 33];
}
extern "C" __global__ void too_early(int *x) {
  __shared__ Barrier bar; __shared__ int s[128];
  int t = threadIdx.x;
  if (t == 0) init(&bar, blockDim.x);
  __syncthreads();
  s[t] = x[t];
  auto token = bar.arrive();
  x[t] = s[t ^ 33];
  bar.wait(static_cast<Barrier::arrival_token &&>(token));
}
"""
needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)


@functools.cache
def code() -> CodeFile:
    return cuda_source(CODE)


def ran(name: str, cc: str) -> list[int]:
    x = np.arange(128, dtype=np.int32)
    configured = code()[name][1, 128]
    run(configured.kernel.prepare(configured.launch, (x,), ComputeCapability.parse(cc)))
    made: list[int] = x.tolist()
    return made


@needs_compiler
@pytest.mark.parametrize("cc", ["8.0", "9.0"])
def test_threads_wait_for_the_phase_in_which_they_have_arrived(cc: str) -> None:
    r = np.arange(128)
    for k in range(3):
        r = r * 2 + (r + k)[::-1]
    assert ran("turns", cc) == r.tolist()


@needs_compiler
@pytest.mark.parametrize("cc", ["8.0", "9.0"])
def test_later_phases_do_not_expect_threads_that_have_dropped(cc: str) -> None:
    assert ran("drops", cc) == [*range(79, 39, -1), *range(40, 128)]


@needs_compiler
@pytest.mark.parametrize("cc", ["8.0", "9.0"])
def test_an_arrival_counts_for_as_many_as_it_says(cc: str) -> None:
    assert ran("counted", cc) == [t ^ 100 for t in range(128)]


@needs_compiler
@pytest.mark.parametrize("name", ["turns", "drops", "counted"])
def test_compiled_code_agrees(name: str) -> None:
    agree(code()[name], 1, 128, "nvcc", np.arange(128, dtype=np.int32))


FUNCTIONS = {
    "arrive": barrier_words.arrived,
    "arrive_and_drop": barrier_words.dropped,
    "arrive_in_halves": barrier_words.arrived_in_halves,
    "expect_transactions": barrier_words.expecting,
    "complete_transactions": barrier_words.completed,
}


@pytest.fixture(scope="module")
def linked() -> Linked:
    return Linked({one.__name__: one for one in FUNCTIONS.values()}, ("gpusim.machine.warps",))


@given(word=st.integers(0, (1 << 64) - 1), count=st.integers(0, (1 << 20) - 1))
@example(word=1 << 31, count=0)
def test_words_are_updated_alike_by_numpy_by_python_and_compiled(
    linked: Linked, word: int, count: int
) -> None:
    """Near the last arrival as well, where the phase changes."""
    last = (1 << 20) - count
    for now in (word, word & ~(((1 << 20) - 1) << 43) | (last & ((1 << 20) - 1)) << 43):
        held, signed = np.array([now], U64), now - (now >> 63 << 64)
        for name, function in FUNCTIONS.items():
            wanted = int(by_numpy.UPDATES[name](held, np.array([count], U64))[0])
            interpreted, compiled = (
                function(signed, count),
                linked.call(function.__name__, signed, count),
            )
            assert interpreted % (1 << 64) == compiled % (1 << 64) == wanted, name


@needs_compiler
def test_what_is_read_behind_the_wait_is_ordered_and_before_it_races() -> None:
    x = np.arange(64, dtype=np.int32)
    assert not gpusim.check(code()["in_time"][1, 64], x).errors
    assert "shared-race" in {one.rule for one in gpusim.check(code()["too_early"][1, 64], x).errors}


def test_the_last_arrival_begins_a_phase_with_the_expected_count() -> None:
    missing = (1 << 20) - 2
    word = np.array([missing << 43 | missing << 1], U64)
    one = np.ones(1, U64)
    once = arrive(word, one)
    assert int(once[0]) == (missing + 1) << 43 | missing << 1
    assert int(arrive(once, one)[0]) == 1 << 63 | int(word[0])
    assert int(arrive(arrive(once, one), one * U64(2))[0]) == int(word[0])
    dropped = arrive_and_drop(once, one)
    assert int(dropped[0]) == 1 << 63 | (missing + 1) << 43 | (missing + 1) << 1


def test_before_compute_capability_9_the_counts_are_in_two_halves() -> None:
    word = np.array([((1 << 31) - 1) << 32 | (1 << 30) - 1], U64)
    after = arrive_in_halves(word, np.ones(1, U64))
    assert int(after[0]) == 1 << 63 | int(word[0])
