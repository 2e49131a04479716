"""Addresses at O3: what accesses share, what is added to one at hand, how indices are widened."""

# Kernels are in the dialect, whose types the compiler works out.

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from verified import verified

from gpusim import cuda
from gpusim.compiler.build import build
from gpusim.compiler.ir import FLOAT32, INT32, INT64, UINT32, Array, DType, Value, constant
from gpusim.isa.ops import OPS, Program
from gpusim.launch.grid import ComputeCapability
from gpusim.lowering.analysis.index_sums import index_sum

HOPPER = ComputeCapability(9, 0)
X = Array("x", "global", FLOAT32)
Y = Array("y", "global", FLOAT32)


def lowered(kernel: Any, **types: DType | Array) -> Program:
    return verified(build(kernel.source, types), HOPPER, "O3")


def ops(program: Program) -> Counter[str]:
    return Counter(i.op for i in program.instructions if OPS[i.op].issued)


def offsets(program: Program, op: str) -> list[int]:
    return [i.memory.offset for i in program.instructions if i.memory is not None and i.op == op]


def test_products_of_sums_are_multiplied_out() -> None:
    """`(r + 8) * n + c` is `r * n + c`, and `8 * n` more."""
    r, n, c = (Value("param", INT32, detail=name) for name in "rnc")
    first = Value("add", INT32, [Value("mul", INT32, [r, n]), c])
    later = Value("add", INT32, [r, constant(8, INT32)])
    second = Value("add", INT32, [Value("mul", INT32, [later, n]), c])
    assert index_sum(second).plus(index_sum(first), -1).factors == {(n,): 8}


def test_an_unsigned_sum_is_a_term_of_its_own_as_it_may_wrap() -> None:
    n = Value("param", UINT32, detail="n")
    total = Value("add", UINT32, [n, constant(8, UINT32)])
    assert index_sum(total).factors == {(total,): 1}


def test_rows_of_a_tile_share_one_shared_address() -> None:
    """Rows 8 apart of 32 floats lie 8 * 32 * 4 = 1024 bytes apart."""

    @cuda.jit
    def kernel(x):
        tile = cuda.shared.array(1024, np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        for j in range(0, 32, 8):
            tile[(ty + j) * 32 + tx] = x[tx]

    program = lowered(kernel, x=X)
    assert offsets(program, "STS") == [0, 1024, 2048, 3072]


def test_the_next_row_lies_a_multiple_of_the_width_behind_the_last() -> None:
    """One multiplication for the first, and then one wide addition for each."""

    @cuda.jit
    def kernel(x, y, n):
        total = np.float32(0)
        for j in range(4):
            total += x[(cuda.threadIdx.y + 8 * j) * n + cuda.threadIdx.x]
        y[0] = total

    count = ops(lowered(kernel, x=X, y=Y, n=INT32))
    assert count["IMAD"] == 1
    assert count["IMAD.WIDE"] == 4
    assert count["SHF"] == 1  # 8 * n


def test_a_wide_index_is_a_constant_away_though_its_parts_are_narrow() -> None:
    """512 * (r + 1) + c lies 2048 bytes behind 512 * r + c."""

    @cuda.jit
    def kernel(x, y, r):
        c = cuda.threadIdx.x
        one = x[np.int64(r) * 512 + c]
        y[c] = one + x[np.int64(r + 1) * 512 + c]

    program = lowered(kernel, x=X, y=Y, r=INT32)
    assert offsets(program, "LDG") == [0, 2048]
    assert ops(program)["LEA.HI"] == 1


def test_a_distance_beyond_24_bits_takes_an_address_of_its_own() -> None:
    @cuda.jit
    def kernel(x, y, r):
        c = cuda.threadIdx.x
        y[c] = x[r * 4194304 + c] + x[(r + 1) * 4194304 + c]

    assert offsets(lowered(kernel, x=X, y=Y, r=INT32), "LDG") == [0, 0]


@pytest.mark.parametrize("shift", [0, 5, 20])
def test_a_multiple_of_a_narrow_index_is_one_wide_multiplication(shift: int) -> None:
    @cuda.jit
    def kernel(x, y, i):
        y[0] = x[np.int64(i) << shift]

    count = ops(lowered(kernel, x=X, y=Y, i=INT32))
    assert count["IMAD.WIDE"] == 1
    assert count["SHF"] == count["LEA.HI"] == 0


def test_a_shared_index_times_33_is_multiplied_in_bytes() -> None:
    @cuda.jit
    def kernel(x):
        tile = cuda.shared.array(1024, np.float32)
        tile[cuda.threadIdx.x * 33] = x[0]

    program = lowered(kernel, x=X)
    (scale,) = (i.src[1] for i in program.instructions if i.op == "IMAD")
    assert program.immediates[scale] == 33 * 4


def test_an_unsigned_multiple_is_computed_before_it_is_widened_as_it_may_wrap() -> None:
    @cuda.jit
    def kernel(x, y, i):
        y[0] = x[i << 5]

    assert ops(lowered(kernel, x=X, y=Y, i=UINT32))["SHF"] == 1


# -- 64-bit integers of 32-bit ones ----------------------------------------------------------


@cuda.jit
def upper_halves(numbers, factor):
    i = cuda.threadIdx.x
    product = np.uint64(numbers[i]) * np.uint64(factor)
    numbers[i] = np.uint32(product >> np.uint64(32)) ^ np.uint32(product)


def test_a_product_of_64_bits_is_one_instruction_and_its_halves_are_there() -> None:
    types = {"numbers": Array("numbers", "global", UINT32), "factor": UINT32}
    count = ops(lowered(upper_halves, **types))
    assert count["IMAD.WIDE"] == 2  # an address, and the product
    assert count["IMAD"] == count["SHF"] == 0


def test_a_product_of_64_bits_has_all_its_bits() -> None:
    numbers = np.array([0, 1, 0xFFFFFFFF, 0x80000000], np.uint32)
    given = numbers.astype(np.uint64) * np.uint64(0xFFFFFFFB)
    upper_halves[1, 4](numbers, np.uint32(0xFFFFFFFB))
    assert (numbers == (given >> np.uint64(32)) ^ (given & np.uint64(0xFFFFFFFF))).all()


def test_a_sum_of_64_bits_extends_the_sign_of_one_operand() -> None:
    """IADD3 and LEA.HI.X.SX32 add a widened integer; two that are widened take a SHF for one."""

    @cuda.jit
    def one(totals, i):
        totals[0] = totals[1] + i

    @cuda.jit
    def two(totals, i, k):
        totals[0] = np.int64(i) + k

    totals = Array("totals", "global", INT64)
    assert ops(lowered(one, totals=totals, i=INT32))["SHF"] == 0
    assert ops(lowered(two, totals=totals, i=INT32, k=INT32))["SHF"] == 1


def test_a_wide_index_of_two_arrays_is_scaled_once() -> None:
    """Two rows shift it, and each address adds that to where its array starts, by halves."""

    @cuda.jit
    def kernel(x, y, first, i):
        y[first[0] + i] = x[first[0] + i]

    first = Array("first", "global", INT64)
    count = ops(lowered(kernel, x=X, y=Y, first=first, i=INT32))
    assert (count["SHF"], count["LEA"], count["LEA.HI"]) == (2, 0, 0)
