"""Calls through registers, recursion, jump tables, numbered barriers and structures by value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from evaluators import agree
from sass import test_corpus
from sass.test_corpus import F32, I32, LANES, ints, launched

import gpusim
from gpusim.errors import BarrierError, KernelFault, LaunchError
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
cc = test_corpus.cc


def test_a_function_that_calls_itself_has_a_stack(cc: str) -> None:
    out = np.zeros(32, I32)
    launched("calls:recursion", cc, out)
    assert out[:12].tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    assert (out[12:24] == out[:12]).all()


ACKERMANN = """
__device__ __noinline__ int f(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? f(m - 1, 1) : f(m - 1, f(m, n - 1));
}
__global__ void k(int *o, const int *m, const int *n) {
    o[threadIdx.x] = f(m[threadIdx.x], n[threadIdx.x]);
}"""


def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


@pytest.mark.parametrize(
    ("m", "n"),
    [
        # Lane 2 comes to a barrier in a call within the one whose lanes wait there for it.
        ([2, 0, 1, 0, 1], [0, 1, 1, 2, 0]),
        ([lane % 3 for lane in range(32)], [lane // 3 % 4 for lane in range(32)]),
    ],
)
def test_lanes_wait_for_others_that_are_deeper_in_the_same_function(
    m: list[int], n: list[int]
) -> None:
    out = np.zeros(len(m), I32)
    cuda_source(ACKERMANN)["k"][1, len(m)](out, np.array(m, I32), np.array(n, I32))
    assert out.tolist() == [ackermann(*pair) for pair in zip(m, n, strict=True)]
    agree(cuda_source(ACKERMANN)["k"], 1, len(m), "nvcc", out, np.array(m, I32), np.array(n, I32))


def test_lanes_call_what_their_pointers_say(cc: str) -> None:
    a, b, c = LANES.astype(F32), np.full(32, 3, F32), np.zeros(32, F32)
    which = (LANES % 3).astype(I32)
    launched("calls:pointers", cc, a, b, c, which)
    assert (c == np.choose(which, [a + b, a * b, a - b])).all()


def test_virtual_functions_are_found_by_the_object(cc: str) -> None:
    out = np.zeros(32, F32)
    launched("calls:virtuals", cc, out)
    assert (out == LANES * LANES / np.where(LANES % 2, 1, 2)).all()


def interpreted(code: list[int], a: int) -> int:
    b = 1
    for one in code:
        steps = [a + b, a - 3, a * 3, a ^ 0x55, a, a // 7 if a > 1000 else a, ~a, a | b << 4]
        b = a & 7 if one == 4 else b
        a = (steps[one] + 2**31) % 2**32 - 2**31
    return a


def test_a_switch_goes_through_its_table(cc: str) -> None:
    code = ints(0, 8, 40, np.uint8)
    out = np.zeros(32, I32)
    launched("calls:interpreter", cc, code, 40, out)
    assert out.tolist() == [interpreted(code.tolist(), lane) for lane in range(32)]


def test_lanes_go_different_ways_through_a_table(cc: str) -> None:
    which, x, y = (LANES % 9).astype(I32), np.linspace(-2, 2, 32, dtype=F32), np.zeros(32, F32)
    launched("calls:by_data", cc, which, x, y)
    v = x.astype(float)
    ways = [np.sin(v), v * v + 1, np.sqrt(abs(v)), np.exp(v), -v, v / 3, np.floor(v), v + 100, v]
    assert np.allclose(y, np.choose(which, ways), rtol=1e-5, atol=1e-6)


def test_warps_hand_buffers_on_through_numbered_barriers(cc: str) -> None:
    numbers, out = ints(n=320), np.zeros(32, I32)
    launched("calls:producer", cc, numbers, out, 10, block=64)
    assert (out == numbers.reshape(10, 32).sum(axis=0)).all()


def test_halves_of_a_block_meet_at_barriers_of_their_own(cc: str) -> None:
    x = np.arange(256, dtype=I32)[:128].copy()
    launched("calls:halves", cc, x, block=128)
    assert x.tolist() == [*range(63, -1, -1), *range(127, 63, -1)]


def test_a_numbered_barrier_that_too_few_reach_stands_still() -> None:
    with pytest.raises(BarrierError, match="at the named barrier on line 109"):
        launched("calls:never_met", "9.0", np.zeros(64, I32), block=64)


def parts_of_a_layer(x: Any, y: Any) -> list[Any]:
    return [x, y, 30, (0.5, (2.0, -1.0))]


def test_a_structure_is_a_tuple_a_dictionary_or_its_members(cc: str) -> None:
    x = LANES.astype(F32)
    expected = np.where(LANES % 2, -1, 2) * x + 0.5 + 321
    expected[30:] = 0
    for given in (
        lambda y: (tuple(parts_of_a_layer(x, y)), (1, 2, 3)),
        lambda y: (x, y, 30, 0.5, 2.0, -1.0, 1, 2, 3),
        lambda y: (
            {"x": x, "y": y, "n": 30, "weights": {"bias": 0.5, "scale": {"0": 2.0, "1": -1.0}}},
            np.array([1, 2, 3], F32).tobytes(),
        ),
    ):
        y = np.zeros(32, F32)
        launched("calls:layer", cc, *given(y))
        assert (y == expected).all()


def test_members_of_a_structure_are_named_where_they_do_not_fit() -> None:
    members = "x, y, n, weights.bias, weights.scale.0, weights.scale.1"
    with pytest.raises(LaunchError, match=f"'layer' is a Layer with the members {members}"):
        launched("calls:layer", "9.0", (np.zeros(4, F32), 1), (1, 2, 3))


def test_a_fault_names_the_array_in_a_structure() -> None:
    x, y = np.zeros(8, F32), np.zeros(32, F32)
    with pytest.raises(KernelFault, match=r"layer\.x\[8\] is out of bounds: layer\.x has 8 el"):
        launched("calls:layer", "9.0", tuple(parts_of_a_layer(x, y)), (1, 2, 3))


def test_clocks_go_forward(cc: str) -> None:
    taken, x = np.zeros(32, np.int64), np.ones(32, F32)
    launched("calls:clocks", cc, taken, x)
    assert (taken > 0).all()
    assert np.allclose(x, 1.5**10 * 3 - 2)


def test_a_trap_names_its_line_and_thread() -> None:
    x = np.where(LANES == 5, -1, 1).astype(I32)
    with pytest.raises(KernelFault, match=r"line 139: the kernel ends with .*block 0, thread 5"):
        launched("calls:traps", "9.0", x, np.zeros(32, I32))


DRIVER = """
#include <cstdio>
#include <cassert>
__global__ void asserting(int *x) {
  assert(x[threadIdx.x] >= 0);
  x[threadIdx.x] += 1;
}
__global__ void printing(int *x) {
  if (x[threadIdx.x] < 0) printf("%d", x[threadIdx.x]);
  x[threadIdx.x] += 1;
}
"""


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (
            "asserting",
            r"line 5: an assertion fails: x\[threadIdx.x\] >= 0 .* \(block 0, thread 3\)",
        ),
    ],
)
def test_what_calls_the_driver_runs_as_far_as_it_does_not(kernel: str, said: str) -> None:
    right, wrong = np.zeros(32, I32), np.where(LANES == 3, -1, 0).astype(I32)
    configured = cuda_source(DRIVER)[kernel][1, 32]
    gpusim.trace(configured, right)
    assert (right == 1).all()
    with pytest.raises(KernelFault, match=said):
        gpusim.trace(configured, wrong)


SIGMOIDS = """
__device__ float sigmoid(float v) { return 1 / (1 + expf(-v)); }
__global__ void gates(const float *x, float *state, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float old = state[i];
  state[i] = sigmoid(x[i]) * old;
  y[i] = sigmoid(x[i + n]) * old;
}
"""


def test_what_a_quotient_calls_for_does_not_ask_for_elements_of_what_is_written() -> None:
    kernel = cuda_source(SIGMOIDS)["gates"][4, 128]
    x, n = np.linspace(-1, 1, 1024, dtype=F32), 512
    shapes = gpusim.array_spec(n, F32), gpusim.array_spec(n, F32)
    zeros = np.zeros(n, F32), np.zeros(n, F32)
    expected = pytest.approx(gpusim.predict(kernel, x, *zeros, n).time_us)
    assert gpusim.predict(kernel, x, *shapes, n).time_us == expected
    assert gpusim.predict(kernel, gpusim.array_spec(1024, F32), *shapes, n).time_us == expected


LAMBDA = """
template <typename F> __device__ void each(int n, F f) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) f(i);
}
__global__ void doubled(int *x, int n) { each(n, [=] __device__ (int i) { x[i] *= 2; }); }
"""


def test_a_lambda_may_say_that_it_is_for_the_device() -> None:
    x = np.arange(50, dtype=I32)
    cuda_source(LAMBDA)["doubled"][1, 32](x, 50)
    assert (x == 2 * np.arange(50)).all()


def test_what_a_kernel_prints_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    printing = cuda_source(DRIVER)["printing"]
    x = -LANES.astype(I32)
    printing[1, 32](x)
    assert x.tolist() == [1 - lane for lane in range(32)]
    assert capsys.readouterr() == ("", "")
    trace = gpusim.trace(printing[1, 32], np.zeros(32, I32))
    assert (
        gpusim.trace(printing[1, 32], -LANES.astype(I32)).counters["instructions"]
        > (trace.counters["instructions"])
    )


BY_BLOCK = """
#include <cassert>
__global__ void switched(int *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i;
  switch ((i + blockIdx.x) % 9) {
    case 0: v = i * 3; break;
    case 1: v ^= 55; break;
    case 2: v = i / 7; break;
    case 3: v -= 7 * i; break;
    case 4: v = v << 3; break;
    case 5: v = v * v; break;
    case 6: v = -v; break;
    case 7: v = ~v; break;
  }
  y[i] = v;
}
__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
typedef int (*Function)(int);
__device__ Function functions[] = {twice, square};
__global__ void called(int *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = functions[blockIdx.x & 1](i);
}
__global__ void asserted(int *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(i < 100);
  y[i] = 1;
}
"""


def test_blocks_go_different_ways_through_a_table() -> None:
    """Blocks run together as long as they agree: where a jump leads, they do not."""
    y = np.zeros(256, I32)
    cuda_source(BY_BLOCK)["switched"][4, 64](y)
    i = np.arange(256)
    ways = [i * 3, i ^ 55, i // 7, -6 * i, i << 3, i * i, -i, ~i, i]
    assert (y == np.choose((i + i // 64) % 9, ways)).all()


def test_blocks_call_different_functions() -> None:
    y = np.zeros(256, I32)
    cuda_source(BY_BLOCK)["called"][4, 64](y)
    i = np.arange(256)
    assert (y == np.where(i // 64 % 2, i * i, 2 * i)).all()


def test_an_assertion_may_fail_in_some_blocks() -> None:
    with pytest.raises(KernelFault, match=r"an assertion fails.* \(block 1, thread 36\)"):
        cuda_source(BY_BLOCK)["asserted"][4, 64](np.zeros(256, I32))


METHODS = """
struct Base { int k; __device__ virtual int f() { return k; } __device__ int h() { return -k; } };
struct Derived : Base { __device__ int f() override { return k * 5; } };
__global__ void methods(int *out) {
  int t = threadIdx.x;
  Base base; base.k = t; Derived derived; derived.k = t;
  int (Base::*table[3])() = {&Base::f, &Base::h, &Base::f};
  Base *one = t & 1 ? &derived : &base;
  out[t] = (one->*table[t % 3])();
}
"""


def test_a_stack_begins_where_the_widest_access_is_aligned() -> None:
    """Functions with frames of 8 bytes are called by one with accesses of 16 bytes."""
    out = np.zeros(32, I32)
    cuda_source(METHODS)["methods"][1, 32](out)
    called = np.where(LANES % 2, 5 * LANES, LANES)
    assert (out == np.where(LANES % 3 == 1, -LANES, called)).all()
