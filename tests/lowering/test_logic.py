"""Logic at O3: functions of three inputs are one LOP3, words that are shifted together one SHF."""

# Kernels are in the dialect, whose types the compiler works out.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from verified import verified

from gpusim import cuda
from gpusim.compiler.build import build
from gpusim.compiler.ir import UINT32, Array
from gpusim.isa.lookup_tables import looked_up
from gpusim.isa.ops import OPS, Program
from gpusim.launch.grid import ComputeCapability

WORDS = Array("words", "global", UINT32)
BITS = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]


def lowered(kernel: Any) -> Program:
    return verified(build(kernel.source, {"words": WORDS}), ComputeCapability(9, 0), "O3")


def ops(program: Program) -> Counter[str]:
    return Counter(i.op for i in program.instructions if OPS[i.op].issued)


@given(st.integers(0, 255))
def test_a_table_gives_the_bit_that_its_inputs_choose(table: int) -> None:
    a, b, c = np.array(BITS, np.uint32).T
    chosen = [table >> (4 * a + 2 * b + c) & 1 for a, b, c in BITS]
    assert (looked_up(table, a, b, c) & 1).tolist() == chosen


@cuda.jit
def choice(words):
    a, b, c = words[0], words[1], words[2]
    words[3] = (a & b) | (~a & c)


@cuda.jit
def parity(words):
    a, b, c = words[0], words[1], words[2]
    words[3] = a ^ b ^ c


@cuda.jit
def majority(words):
    a, b, c = words[0], words[1], words[2]
    words[3] = ((a | b) & c) | (a & b)


@pytest.mark.parametrize(
    ("kernel", "table"),
    [
        (choice, lambda a, b, c: b if a else c),
        (parity, lambda a, b, c: a ^ b ^ c),
        (majority, lambda a, b, c: int(a + b + c >= 2)),
    ],
)
def test_a_function_of_three_words_is_one_instruction(
    kernel: Any, table: Callable[[int, int, int], int]
) -> None:
    assert ops(lowered(kernel))["LOP3"] == 1
    for a, b, c in BITS:
        words = np.array([a, b, c, 7], np.uint32)
        kernel[1, 1](words)
        assert words[3] == table(a, b, c)


def test_what_is_taken_in_and_needed_elsewhere_is_computed_once_more() -> None:
    """`a & b` is stored, and a part of the parity; four inputs take two instructions."""

    @cuda.jit
    def kernel(words):
        both = words[0] & words[1]
        words[4] = both
        words[5] = both ^ words[2] ^ words[3]

    assert ops(lowered(kernel))["LOP3"] == 2
    words = np.array([3, 5, 6, 12, 0, 0], np.uint32)
    kernel[1, 1](words)
    assert words[4:].tolist() == [1, 1 ^ 6 ^ 12]


def test_a_mask_of_a_shared_index_is_applied_alone() -> None:
    """It is applied once the index is scaled, which leaves the exclusive or before it."""

    @cuda.jit
    def kernel(words):
        table = cuda.shared.array(256, np.uint32)
        words[0] = table[(words[0] ^ words[1]) & np.uint32(255)]

    assert ops(lowered(kernel))["LOP3"] == 2


@cuda.jit
def rotation(words):
    words[0] = (words[0] << np.uint32(7)) | (words[0] >> np.uint32(25))
    words[1] = (words[1] >> np.uint32(31)) | (words[2] << np.uint32(1))


def test_two_words_are_shifted_together() -> None:
    count = ops(lowered(rotation))
    assert (count["SHF.L.W"], count["SHF"], count["LOP3"]) == (2, 0, 0)
    words = np.array([0x80000001, 0x80000000, 0x80000001], np.uint32)
    rotation[1, 1](words)
    assert words.tolist() == [0xC0, 3, 0x80000001]


def test_shifts_that_leave_bits_free_stay_two() -> None:
    @cuda.jit
    def kernel(words):
        words[0] = (words[0] << np.uint32(7)) | (words[0] >> np.uint32(26))

    assert ops(lowered(kernel))["SHF"] == 2
