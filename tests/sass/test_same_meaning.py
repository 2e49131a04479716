"""A kernel in Python means the same at -O0, at -O3 and in nvcc's code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from gpusim import cuda
from gpusim.codegen.programs import as_cuda, prepare
from gpusim.cuda import Kernel
from gpusim.errors import OutOfBoundsError
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
HOPPER = ComputeCapability(9, 0)
SLOW = partial(pytest.param, marks=pytest.mark.slow)
WAYS = (("O0", "lowering"), ("O3", "lowering"), ("O3", "nvcc"))


def in_each_way(kernel: Kernel, block: int, *arguments: Any) -> list[list[Any]]:
    """Return the arguments as each way to run a kernel leaves them."""
    made = []
    for level, code in WAYS:
        given = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
        run(prepare(kernel[1, block, 0, 128], given, HOPPER, level, code=code))
        made.append(given)
    return made


def agreed(kernel: Kernel, block: int, *arguments: Any) -> Any:
    """Return what a kernel leaves in its first argument, the same in each way."""
    one, *others = (given[0] for given in in_each_way(kernel, block, *arguments))
    for other in others:
        np.testing.assert_array_equal(other, one)
        assert (np.isnan(one) | (np.signbit(one) == np.signbit(other))).all()
    return one


INT32 = np.array([-(2**31), -(2**31) + 1, -7, -2, -1, 0, 1, 2, 3, 31, 32, 33, 2**30, 2**31 - 1],
                 np.int32)  # fmt: skip
INT64 = np.array([-(2**63), -(2**32), -7, -1, 0, 1, 2, 63, 64, 65, 2**32, 2**62, 2**63 - 1],
                 np.int64)  # fmt: skip
EDGES = {
    "int32": INT32, "uint32": INT32.view(np.uint32), "int64": INT64,
    "uint64": INT64.view(np.uint64),
}  # fmt: skip


@cuda.jit
def whole_numbers(out, a, b):
    i = cuda.threadIdx.x
    x, y = a[i], b[i]
    n = i * 24
    out[n] = x + y
    out[n + 1] = x - y
    out[n + 2] = x * y
    out[n + 3] = x // y
    out[n + 4] = x % y
    out[n + 5] = x << y
    out[n + 6] = x >> y
    out[n + 7] = -x
    out[n + 8] = abs(x)
    out[n + 9] = min(x, y)
    out[n + 10] = max(x, y)
    out[n + 11] = x**y
    out[n + 12] = x + 1 < x
    out[n + 13] = x * 2 // 2 == x
    out[n + 14] = (x << 1) >> 1
    out[n + 15] = x // -1
    out[n + 16] = x % -1
    out[n + 17] = x >> 40
    out[n + 18] = x - 1 > x
    out[n + 19] = -(x // 3) + x % 3
    out[n + 20] = ~x & y | x ^ y
    out[n + 21] = x * x < 0
    if y == 0:
        out[n + 22] = x // y
        out[n + 23] = x % y


@pytest.mark.parametrize("dtype", ["int32", *map(SLOW, ("uint32", "int64", "uint64"))])
def test_whole_numbers_wrap_shift_out_and_divide_by_zero(dtype: str) -> None:
    edges = EDGES[dtype]
    a, b = (side.reshape(-1) for side in np.meshgrid(edges, edges))
    out = agreed(whole_numbers, len(a), np.zeros(24 * len(a), dtype), a, b).reshape(-1, 24)
    at = {(int(x), int(y)): row for x, y, row in zip(a, b, out, strict=True)}
    top, zero = int(np.iinfo(dtype).max), at[int(edges[-1]), 0]
    all_bits = np.array(-1).astype(dtype)
    assert zero[3] == zero[4] == zero[22] == zero[23] == all_bits
    least = int(np.iinfo(dtype).min)
    if dtype[0] == "i":
        assert at[top, 1][12]
        assert not at[top, 1][13]
        assert at[least, int(edges[3])][7] == least == at[least, 1][8] == at[least, 1][15]


@cuda.jit
def real_numbers(out, a, b):
    i = cuda.threadIdx.x
    x, y = a[i], b[i]
    n = i * 10
    out[n] = x // y
    out[n + 1] = x % y
    out[n + 2] = min(x, y)
    out[n + 3] = max(x, y)
    out[n + 4] = abs(x)
    out[n + 5] = -x
    out[n + 6] = x if x < y else y
    out[n + 7] = (x <= y) + 2 * (x != y) + 4 * (not x > y) + 8 * (x == y)
    out[n + 8] = x / y
    out[n + 9] = -np.float32(-7.25)


REALS = (0.0, -0.0, 1.0, -1.0, 0.3, -7.5, 2.0, 1e30, -1e30, 5e-324, np.inf, -np.inf, np.nan, 6.1)


@pytest.mark.parametrize("dtype", ["float32", SLOW("float64")])
def test_real_numbers_divide_down_and_take_a_number_for_nan(dtype: str) -> None:
    with np.errstate(under="ignore"):
        edges = np.array(REALS).astype(dtype)
    a, b = (side.reshape(-1) for side in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        out = agreed(real_numbers, len(a), np.zeros(10 * len(a), dtype), a, b).reshape(-1, 10)
        np.testing.assert_array_equal(out[:, 0], a // b)
        np.testing.assert_array_equal(out[:, 1], a % b)
    assert (out[:, 9] == 7.25).all()


@cuda.jit
def conversions(out, a):
    i = cuda.threadIdx.x
    n = i * 11
    out[n] = np.int64(np.int8(a[i]))
    out[n + 1] = np.int64(np.uint8(a[i]))
    out[n + 2] = np.int64(np.int16(a[i]))
    out[n + 3] = np.int64(np.uint16(a[i]))
    out[n + 4] = np.int64(np.int32(a[i]))
    out[n + 5] = np.int64(np.uint32(a[i]))
    out[n + 6] = np.int64(a[i])
    out[n + 7] = np.int64(np.uint64(a[i]))
    out[n + 8] = np.bool_(a[i])
    out[n + 9] = np.int64(np.float32(a[i]))
    out[n + 10] = np.int64(np.float64(a[i]))


FAR = (*REALS[:-2], np.nan, 127.5, 128.0, -128.9, -129.0, 255.9, 256.0, 32767.9, -32769.0, 65535.5,
       65536.0, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e10, -3.7)  # fmt: skip


@pytest.mark.parametrize("dtype", [SLOW("float32"), "float64", *map(SLOW, EDGES)])
def test_conversions_saturate_from_floats_and_wrap_from_integers(dtype: str) -> None:
    with np.errstate(under="ignore"):
        values = EDGES[dtype] if dtype in EDGES else np.array(FAR).astype(dtype)
    out = agreed(conversions, len(values), np.zeros(11 * len(values), np.int64), values)
    if dtype == "float64":
        at = dict(zip(FAR[11:], out.reshape(-1, 11)[11:], strict=True))
        assert at[1e10][:8].tolist() == [
            127,
            255,
            32767,
            65535,
            2**31 - 1,
            2**32 - 1,
            10**10,
            10**10,
        ]
        assert out.reshape(-1, 11)[12].tolist()[:8] == [0] * 8  # NaN


@cuda.jit
def float_atomics(out, a):
    i = cuda.threadIdx.x
    cuda.atomic.max(out, 0, a[i])
    cuda.atomic.min(out, 1, a[i])
    cuda.atomic.sub(out, 2, a[i] if i < 4 else a[0] - a[0])
    cuda.atomic.exch(out, 3, a[5])
    cuda.atomic.cas(out, 4, a[5] - a[5], a[6])
    cuda.atomic.cas(out, 5, a[5], a[6])


@cuda.jit
def whole_atomics(out, a):
    i = cuda.threadIdx.x
    cuda.atomic.and_(out, 0, a[i])
    cuda.atomic.or_(out, 1, a[i])
    cuda.atomic.xor(out, 2, a[i])
    cuda.atomic.sub(out, 3, a[i])
    cuda.atomic.max(out, 4, a[i])
    cuda.atomic.exch(out, 5, a[7])
    cuda.atomic.cas(out, 6, out[6], a[2])


@pytest.mark.parametrize("dtype", ["float32", "int64", SLOW("float64"), SLOW("uint32")])
def test_atomic_operations_have_all_types(dtype: str) -> None:
    kernel = float_atomics if dtype[0] == "f" else whole_atomics
    agreed(kernel, 32, np.zeros(8, dtype), (np.arange(32) * 3 - 40).astype(dtype))


@cuda.jit
def least_taken_away(out, a):
    cuda.atomic.sub(out, cuda.threadIdx.x, a[cuda.threadIdx.x] << 31)


def test_an_atomic_difference_wraps_for_the_least_number() -> None:
    out = agreed(least_taken_away, 2, np.zeros(2, np.int32), np.array([2, 3], np.int32))
    assert out.tolist() == [0, -(2**31)]


@cuda.jit(device=True)
def picked(x):
    held = cuda.local.array(4, np.int32)
    for j in range(4):
        held[j] = x + j
    return held[x & 3]


@cuda.jit
def calls(out, a):
    i = cuda.threadIdx.x
    out[i] = picked(a[i]) * 100 + picked(i)


def test_a_device_function_has_its_local_array_anew_at_each_call() -> None:
    out = agreed(calls, 32, np.zeros(32, np.int32), np.arange(32, dtype=np.int32)[::-1].copy())
    assert out[:3].tolist() == [(31 + 3) * 100, (30 + 2) * 100 + 2, (29 + 1) * 100 + 4]


@cuda.jit
def rows(out, m):
    i = cuda.threadIdx.x
    out[i] = m[i // 8, i % 8] + m.shape[0] * 1000


WHOLE = np.arange(128, dtype=np.int32).reshape(16, 8)


@pytest.mark.parametrize("take", [
    lambda m: m[:8].T, lambda m: m[::2], lambda m: m[7::-1], lambda m: m[::2, ::-1],
])  # fmt: skip
def test_arrays_may_have_strides(take: Callable[[Any], Any]) -> None:
    m = take(WHOLE)
    for level, code in WAYS:
        out = np.zeros(64, np.int32)
        run(prepare(rows[1, 64], (out, m), HOPPER, level, code=code))
        assert out.tolist() == (m.reshape(-1) + m.shape[0] * 1000).tolist()


@cuda.jit
def dynamic(out, a):
    whole = cuda.shared.array(0, np.int32)
    halves = cuda.shared.array(0, np.int16)
    i = cuda.threadIdx.x
    whole[i] = a[i]
    cuda.syncthreads()
    mask, alike = cuda.match_all_sync(0xFFFFFFFF, a[i] // 100)
    out[i] = whole[len(whole) - 1 - i] + len(halves) * 100 + (1000 if alike else 0) + (mask & 1)


def test_dynamic_shared_memory_has_a_length_and_lanes_may_all_match() -> None:
    out = agreed(dynamic, 32, np.zeros(32, np.int32), np.arange(32, dtype=np.int32))
    assert out.tolist() == [31 - i + 6400 + 1001 for i in range(32)]


@cuda.jit
def exp(out, double, xor, fmod):
    out[cuda.threadIdx.x] = double[0] + xor % np.float32(fmod)


def test_names_may_be_those_of_c() -> None:
    assert (agreed(exp, 32, np.zeros(32), np.ones(1), 7, 4) == 4).all()


@cuda.jit
def sums(out, n, step):
    total = 0
    for i in range(cuda.threadIdx.x, n, step):
        total += i
    out[cuda.threadIdx.x] = total


def test_sums_that_keep_to_their_type_are_those_of_c_and_others_wrap() -> None:
    out = np.zeros(32, np.int32)
    short, long = (as_cuda(sums, (out, n, 4)) for n in (1000, 2**31 - 2))
    assert "= (int)((unsigned)" in short  # the total, which nobody knows
    assert short.count("unsigned") + 2 == long.count("unsigned")  # and the step of the range
    agreed(sums, 32, out, 1000, 4)


@cuda.jit
def element(out, m, places):
    row, column = places[0], places[1]
    out[0] = m[row, column]
    held = cuda.local.array((2, 4), np.int32)
    for k in range(8):
        held[k // 4, k % 4] = k
    out[1] = held[row, column]


@pytest.mark.parametrize(("row", "column"), [(0, 40), (3, -1), (4, 0), (1, 3), (0, 5), (-1, 7)])
def test_an_index_keeps_to_its_own_axis(row: int, column: int) -> None:
    m, places = np.arange(32, dtype=np.int32).reshape(4, 8), np.array([row, column], np.int32)
    for level, code in WAYS:
        out = np.zeros(2, np.int32)
        launch = prepare(element[1, 1], (out, m, places), HOPPER, level, code=code)
        if (row, column) == (1, 3):
            run(launch)
            assert out.tolist() == [11, 7]
        else:
            with pytest.raises(OutOfBoundsError, match="along axis"):
                run(launch)
            assert not out.any() or code == "lowering"


@cuda.jit
def transposed(out, m):
    x, y = cuda.grid(2)
    if x < m.shape[0] and y < m.shape[1]:
        out[y, x] = m[x, y]


def test_indices_that_a_launch_keeps_within_their_axes_are_not_checked_by_another_run() -> None:
    m = np.arange(12, dtype=np.int32).reshape(3, 4)
    launch = prepare(transposed[1, (8, 8)], (np.zeros((4, 3), np.int32), m), HOPPER, code="nvcc")
    assert launch.rehearsal is None
    launch = prepare(element[1, 1], (m[0], m, m[0]), HOPPER, code="nvcc")
    assert launch.rehearsal is not None


@cuda.jit
def shuffles(out, a, far):
    i = cuda.threadIdx.x
    n = i * 5
    out[n] = cuda.shfl_sync(0xFFFFFFFF, a[i], far)
    out[n + 1] = cuda.shfl_up_sync(0xFFFFFFFF, a[i], far)
    out[n + 2] = cuda.shfl_down_sync(0xFFFFFFFF, a[i], far, 16)
    out[n + 3] = cuda.shfl_xor_sync(0xFFFFFFFF, a[i], far)
    out[n + 4] = cuda.shfl_sync(0xFFFFFFFF, a[i], far, 8)


@pytest.mark.parametrize("far", [33, -3, 64])
def test_shuffles_take_the_last_five_bits_of_lanes_and_distances(far: int) -> None:
    a = np.arange(32, dtype=np.int32) + 100
    out = agreed(shuffles, 32, np.zeros(160, np.int32), a, np.int32(far)).reshape(32, 5)
    near = far % 32
    lanes = np.arange(32)
    assert out[:, 0].tolist() == [100 + near] * 32
    assert out[:, 1].tolist() == (100 + np.where(lanes < near, lanes, lanes - near)).tolist()
    assert out[:, 3].tolist() == (100 + (lanes ^ near)).tolist()
    assert out[:, 4].tolist() == (100 + lanes // 8 * 8 + near % 8).tolist()


@cuda.jit
def powers(out, a):
    i = cuda.threadIdx.x
    total = np.int64(0)
    for k in range(7):
        x, n = a[i] + k, a[(i + k) & 31] & 7
        total += (x**n) ** (n & 3) + (x * k) ** n - (x + n) ** (x & 7)
    out[i] = total


def test_powers_are_loops_that_the_compiler_leaves_as_they_are() -> None:
    """Unrolled, their squares of squares keep it busy for minutes."""
    arguments = (np.zeros(32, np.int64), np.arange(32, dtype=np.int32) - 9)
    assert '_Pragma("unroll 1") for' in as_cuda(powers, arguments)
    agreed(powers, 32, *arguments)


@cuda.jit
def quotients(out):
    i = cuda.threadIdx.x
    out[i] = i // np.int64(np.float32(4294967296))


def test_a_number_of_64_bits_in_a_conversion_is_its_upper_word() -> None:
    assert agreed(quotients, 32, np.ones(32, np.int64)).tolist() == [0] * 32
