"""What numbers come to in a kernel: the same at both levels, folded or computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.codegen.programs import bind, parameter_types
from gpusim.compiler.build import build
from gpusim.compiler.ir import INT32
from gpusim.cuda import Kernel
from gpusim.errors import KernelSourceError

LEVELS = ("O0", "O3")
NAN, INF = math.nan, math.inf
SIZE = np.int8(-128)


def results(kernel: Kernel, out: Any, *arguments: Any, block: int = 1) -> list[Any]:
    """Return what a kernel leaves in `out`, which has to be the same at both levels."""
    found = []
    for level in LEVELS:
        left = out.copy()
        gpusim.trace(kernel[1, block], left, *arguments, level=level)
        found.append(left)
    assert found[0].tobytes() == found[1].tobytes()
    return list(found[0].tolist())


def longs(count: int) -> Any:
    return np.zeros(count, np.int64)


def test_a_literal_that_no_int32_holds_is_wider() -> None:
    @cuda.jit
    def kernel(out, i):
        out[0] = 1 if i < 3000000000 else 0
        out[1] = i & 4294967295
        out[2] = (i + 1) * 2654435761
        out[3] = i & 0xFFFFFFFF
        wide = 7
        if i < 0:
            wide = 3000000000
        out[4] = wide

    assert results(kernel, longs(5), np.int32(-1)) == [1, 2**32 - 1, 0, 2**32 - 1, 3000000000]


def test_a_literal_beyond_2_to_the_63_is_unsigned() -> None:
    @cuda.jit
    def kernel(out, i):
        out[0] = 9223372036854775808
        out[1] = i | 0x8000000000000000

    out = np.zeros(2, np.uint64)
    assert results(kernel, out, np.int64(5)) == [2**63, 2**63 + 5]


def test_a_literal_stays_in_an_unsigned_type_that_holds_it() -> None:
    @cuda.jit
    def kernel(out, x):
        out[0] = x * 2654435761 >> 16

    assert results(kernel, longs(1), np.uint32(3)) == [3 * 2654435761 % 2**32 >> 16]


def test_a_range_goes_where_its_step_says_whatever_types_meet() -> None:
    @cuda.jit
    def kernel(out, five, size, down):
        n = 0
        for i in range(np.uint32(5), 0, -1):
            out[n] = i
            n += 1
        for i in range(five, -1, -2):
            out[n] = i
            n += 1
        for i in range(five, np.uint32(3), down):
            out[n] = i
            n += 1
        for k in range(1, -300, np.int8(cuda.blockDim.x)):
            out[n] = k
            n += 1
        for k in range(1, -200, SIZE):
            out[n] = k
            n += 1
        for k in range(2147483645, 2147483647, 5):
            out[n] = k
            n += 1

    expected = [5, 4, 3, 2, 1, 5, 3, 1, 5, 4, 1, -127, -255, 1, -127, 2147483645]
    arguments = (np.uint32(5), np.int32(0), np.int32(-1))
    assert results(kernel, longs(16), *arguments, block=128) == expected


def test_floats_become_integers_by_saturating_whether_folded_or_not() -> None:
    @cuda.jit
    def kernel(out, x, huge):
        out[0] = np.uint32(np.float64(x))
        out[1] = np.uint32(np.float64(-5))
        out[2] = np.int32(huge)
        out[3] = np.int32(1e10)
        out[4] = np.int32(math.inf)
        out[5] = np.uint8(np.float32(x))
        out[6] = np.int64(np.float64(x))
        out[7] = np.int32(math.nan)

    most = 2**31 - 1
    expected = [0, 0, most, most, most, 0, -5, 0]
    assert results(kernel, longs(8), np.int32(-5), np.float64(1e10)) == expected


def test_integer_casts_of_constants_wrap() -> None:
    @cuda.jit
    def kernel(out):
        out[0] = np.int32(4294967295)
        out[1] = np.uint8(-1)
        out[2] = np.int8(200)

    assert results(kernel, longs(3)) == [-1, 255, -56]


def test_float_quotient_and_remainder_are_pythons() -> None:
    """So that (a // b) * b + a % b is a; C's remainder is math.fmod."""

    @cuda.jit
    def kernel(out, a, b):
        out[0] = a // b
        out[1] = a % b
        out[2] = math.fmod(a, b)
        out[3] = -7.5 // 2.0
        out[4] = -7.5 % 2.0
        out[5] = 1.0 // 0.1

    expected = [-4.0, 0.5, -1.5, -4.0, 0.5, 9.0]
    assert results(kernel, np.zeros(6), np.float64(-7.5), np.float64(2)) == expected


def test_integers_divide_as_in_c() -> None:
    @cuda.jit
    def kernel(out, a, b):
        out[0] = a // b
        out[1] = a % b
        out[2] = -7 // 2
        out[3] = -7 % 2

    assert results(kernel, longs(4), np.int32(-7), np.int32(2)) == [-3, -1, -3, -1]


def test_an_integer_to_an_integer_power_is_an_integer_that_wraps() -> None:
    @cuda.jit
    def kernel(out, a, b, c, p):
        out[0] = a**b
        out[1] = a**0
        out[2] = c**b
        out[3] = (-a) ** (-b)
        out[4] = (a - 4) ** (-b)
        out[5] = out[a**2 - 9]
        out[6] = (p > 0) ** 2 + (p > 0) ** 1
        out[7] = a**-1

    expected = [3**19 - 2**32 * (3**19 > 2**31), 1, 5**19, 0, -1, 0, 2, 0]
    expected[5] = expected[0]
    arguments = (np.int32(3), np.int32(19), np.int64(5), np.float32(1))
    assert results(kernel, longs(8), *arguments) == expected


def test_a_power_of_a_half_is_that_of_cs_pow() -> None:
    """Unlike the square root, it knows no -0, and infinity's sign makes no difference."""

    @cuda.jit
    def kernel(out, a, half):
        out[0, cuda.laneid] = a[cuda.laneid] ** 0.5
        out[1, cuda.laneid] = a[cuda.laneid] ** half
        out[2, cuda.laneid] = math.sqrt(a[cuda.laneid])
        out[3, cuda.laneid] = (-INF) ** 0.5

    given = np.array([-INF, -0.0, 4.0, -4.0])
    found = results(kernel, np.zeros((4, 4)), given, 0.5, block=4)
    powers, roots = [INF, 0.0, 2.0, NAN], [NAN, -0.0, 2.0, NAN]
    np.testing.assert_array_equal(found, [powers, powers, roots, [INF] * 4])
    assert not np.signbit(found[0][1])
    assert not np.signbit(found[1][1])


def test_abs_of_a_truth_value_is_a_number() -> None:
    @cuda.jit
    def kernel(out, x):
        out[0] = abs(x > 0) + abs(True)
        out[1] = -abs(x > 0)

    assert results(kernel, longs(2), np.int32(3)) == [2, -1]


def test_a_conditional_has_the_type_in_which_its_sides_meet() -> None:
    """A tenth is another number in float64 than in float32."""

    @cuda.jit
    def kernel(out, x, n):
        out[0] = 0.1 if n > 0 else x
        out[1] = x if n < 0 else 0.1
        out[2] = (1 if n > 0 else x) / 2
        out[3] = (7 if n > 0 else n) // 2

    tenth = float(np.float32(0.1))
    out = results(kernel, np.zeros(4), np.float32(3), np.int32(1))
    assert out == [tenth, tenth, 0.5, 3.0]


def test_a_chain_of_comparisons_goes_no_further_than_it_needs() -> None:
    @cuda.jit
    def kernel(out, a, n):
        i = cuda.threadIdx.x
        if 0 < n < a[i + n]:
            out[0] = 1
        out[1] = 0 < n < a[i + n]
        out[2] = 1 if 5 > -n > a[0] > 3 else 2

    assert results(kernel, longs(3), np.zeros(1, np.int32), np.int32(-100)) == [0, 0, 2]


def test_a_number_wins_over_nan_and_the_sign_decides_between_zeros() -> None:
    @cuda.jit
    def kernel(out, plus, minus, nan):
        i = cuda.threadIdx.x
        if i == 0:
            out[0] = math.copysign(1.0, min(plus, minus))
            out[1] = math.copysign(1.0, min(minus, plus))
            out[2] = math.copysign(1.0, max(plus, minus))
            out[3] = math.copysign(1.0, max(minus, plus))
            out[4] = math.copysign(1.0, min(0.0, -0.0))
            out[5] = math.copysign(1.0, max(-0.0, 0.0))
            out[6] = min(nan, 1.0)
            out[7] = min(NAN, 1.0)
            out[8] = max(2, NAN)

    expected = [-1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0, 1.0, 2.0]
    for dtype in (np.float32, np.float64):
        numbers = (dtype(0), dtype(-0.0), dtype(NAN))
        for block in (1, 32, 33):
            assert results(kernel, np.zeros(9, dtype), *numbers, block=block) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_atomic_extremes_keep_the_number_and_decide_between_zeros_by_sign(dtype: type) -> None:
    @cuda.jit
    def kernel(out, values):
        i = cuda.threadIdx.x
        cuda.atomic.max(out, 0, values[i])
        cuda.atomic.min(out, 1, values[i])
        was = cuda.atomic.max(out, 2, values[i])
        cuda.atomic.min(out, 3, was)

    values = np.zeros(40, dtype)
    values[::3] = -0.0
    values[1::5] = NAN
    out = np.array([-0.0, 0.0, NAN, INF], dtype)
    found = results(kernel, out, values, block=40)
    assert found == [0.0, 0.0, 0.0, 0.0]
    assert [math.copysign(1, x) for x in found] == [1, -1, 1, -1]
    lowest = np.array([-INF, 5, 7, NAN], dtype)
    assert results(kernel, lowest, np.array([NAN, 3, -INF, 9], dtype), block=4)[:3] == [9, -INF, 9]


def constants_beyond_64_bits() -> Kernel:
    @cuda.jit
    def kernel(out, x):
        out[0] = x * (1 << 2000)

    return kernel


def a_shift_without_end() -> Kernel:
    @cuda.jit
    def kernel(out, x):
        out[0] = 1 << 100000000000

    return kernel


def a_power_without_end() -> Kernel:
    @cuda.jit
    def kernel(out, x):
        out[0] = 10**10**10

    return kernel


def too_large_for_a_float() -> Kernel:
    @cuda.jit
    def kernel(out, x):
        out[0] = np.float32(x) + (1 << 3000)

    return kernel


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (constants_beyond_64_bits, "more than 64 bits"),
        (a_shift_without_end, "over 4096 bits"),
        (a_power_without_end, "over 4096 bits"),
        (too_large_for_a_float, "too large to convert to float"),
    ],
)
def test_constants_that_are_no_number_of_a_kernel_are_marked(make: Any, message: str) -> None:
    types = parameter_types(bind(make(), (longs(1), np.int32(1))))
    with pytest.raises(KernelSourceError) as caught:
        build(make().source, types)
    assert message in str(caught.value)
    assert "^" in str(caught.value).splitlines()[-1]


def test_a_long_sum_is_built_however_long_it_is(tmp_path: Any) -> None:
    """Python itself reads no more than some thousands of nested operations."""
    path = tmp_path / "long_sum.py"
    terms = " + ".join(["x"] * 900)
    path.write_text(f"def kernel(out, x):\n    out[0] = {terms}\n", encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    assert results(cuda.jit(scope["kernel"]), longs(1), np.int32(3)) == [2700]


def test_every_dtype_converts_every_number_at_both_levels_alike() -> None:
    """What is folded at O3 comes out as the machine computes it at O0."""
    values = [-129.5, 65536.75, 2**53 + 1, 1e30]
    for source in (np.int32, np.uint64, np.float32, np.float64):
        for value in values:
            with np.errstate(all="ignore"):
                number = np.asarray(value).astype(source)[()]
            for target in (np.uint8, np.int32, np.uint32, np.int64, np.float32):
                casts(number, source, target)


def casts(number: Any, source: type, target: type) -> None:
    """A constant and an argument of the same type and value become the same."""
    value = np.dtype(source).type(number)

    @cuda.jit
    def kernel(out, x):
        out[0] = target(value)
        out[1] = target(x)

    first, second = results(kernel, np.zeros(2, target), value)
    assert first == second, (number, source, target)


def test_a_sum_of_int32_wraps_and_stays_int32() -> None:
    @cuda.jit
    def kernel(out, x):
        out[0] = x + 1

    assert results(kernel, longs(1), INT32.type(2**31 - 1)) == [-(2**31)]
