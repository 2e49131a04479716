"""Addresses at O3: what accesses share, and what is added to one at hand for the next."""

# Kernels are in the dialect, whose types the compiler works out.

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from verified import verified

from gpusim import cuda
from gpusim.compiler.build import build
from gpusim.compiler.ir import FLOAT32, INT32, UINT32, Array, DType, Value, constant
from gpusim.isa import OPS, Program
from gpusim.launch import ComputeCapability
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
