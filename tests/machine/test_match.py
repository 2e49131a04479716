"""Lanes that have the same value: what `match_any_sync` and `match_all_sync` give, and become."""

from __future__ import annotations

from typing import Any

import lane_runner
import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.compiler.build import build
from gpusim.compiler.ir import FLOAT64, INT32, UINT32, Array, DType
from gpusim.errors import LaunchError
from gpusim.isa.ops import OPS
from gpusim.launch.grid import ComputeCapability
from gpusim.lowering import lower

FULL = 0xFFFFFFFF
EVEN = 0x55555555
EVERY_WAY = [("O0", "7.5"), ("O3", "7.5"), ("O3", "9.0")]
every_way = pytest.mark.parametrize(("level", "cc"), EVERY_WAY)


@cuda.jit
def any_of(values, out):
    tid = cuda.threadIdx.x
    out[tid] = cuda.match_any_sync(0xFFFFFFFF, values[tid])


@cuda.jit
def all_of(values, out):
    tid = cuda.threadIdx.x
    lanes, alike = cuda.match_all_sync(0xFFFFFFFF, values[tid])
    out[2 * tid] = lanes
    out[2 * tid + 1] = alike


@cuda.jit
def apart(values, out):
    tid = cuda.threadIdx.x
    if values[tid] > 3:
        mask = cuda.activemask()
        out[tid] = cuda.match_any_sync(mask, values[tid])
    else:
        lanes, alike = cuda.match_all_sync(0x0000FFFF, values[tid] % 2)
        if alike:
            out[tid] = lanes
        else:
            out[tid] = 7


def masks(kernel: cuda.Kernel, values: Any, count: int, level: str, cc: str) -> list[int]:
    out = np.zeros(count, np.uint32)
    gpusim.trace(kernel[1, len(values)], values, out, cc=cc, level=level)
    second = np.zeros(count, np.uint32)
    lane_runner.run(kernel, 1, len(values), 0, values, second)
    assert out.tolist() == second.tolist()
    return out.tolist()


@every_way
@pytest.mark.parametrize("dtype", [np.int32, np.uint64])
def test_match_any_gives_each_lane_the_lanes_that_have_its_value(
    dtype: Any, level: str, cc: str
) -> None:
    """Lanes 0 to 31 count 0 1 0 1 ...; those of the second warp are all alike."""
    values = np.array([lane % 2 for lane in range(32)] + [5] * 32).astype(dtype)
    expected = [EVEN, EVEN << 1] * 16 + [FULL] * 32
    assert masks(any_of, values, 64, level, cc) == expected


@every_way
def test_all_64_bits_count(level: str, cc: str) -> None:
    values = np.array([1 + (lane // 16 << 32) for lane in range(32)], np.int64)
    assert masks(any_of, values, 32, level, cc) == [0xFFFF] * 16 + [0xFFFF0000] * 16


@every_way
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_match_by_their_bits(dtype: Any, level: str, cc: str) -> None:
    values = np.array([0.0, -0.0, np.nan, np.nan] * 8, dtype)
    ones = 0x11111111
    expected = [ones, ones << 1, 0xCCCCCCCC, 0xCCCCCCCC] * 8
    assert masks(any_of, values, 32, level, cc) == expected


@every_way
@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_match_all_gives_all_lanes_or_none(dtype: Any, level: str, cc: str) -> None:
    values = np.array([3] * 32 + [3] * 31 + [4] + [3] * 8).astype(dtype)
    expected = [FULL, 1] * 32 + [0, 0] * 32 + [0xFF, 1] * 8
    assert masks(all_of, values, 144, level, cc) == expected


@every_way
def test_lanes_that_are_apart_match_those_that_their_mask_names(level: str, cc: str) -> None:
    """Lanes 0 to 15 go one way, where all have an odd value; 16 to 31 the other, in pairs."""
    values = np.array([1, 3] * 8 + [lane // 2 for lane in range(16, 32)], np.int32)
    out = np.zeros(32, np.uint32)
    gpusim.trace(apart[1, 32], values, out, cc=cc, level=level)
    assert out[:16].tolist() == [0xFFFF] * 16
    assert out[16:].tolist() == [0b11 << lane // 2 * 2 for lane in range(16, 32)]


def ops(kernel: cuda.Kernel, cc: str, dtype: DType = INT32) -> list[str]:
    types = {
        name: Array(name, "global", kind) for name, kind in (("values", dtype), ("out", UINT32))
    }
    program = lower(build(kernel.source, types), ComputeCapability.parse(cc), "O3")
    return [i.op for i in program.instructions if OPS[i.op].issued]


def test_one_instruction_matches_32_or_64_bits() -> None:
    for dtype in (INT32, FLOAT64):
        assert ops(any_of, "9.0", dtype).count("MATCH") == 1
        assert ops(all_of, "9.0", dtype).count("MATCH") == 1


def test_before_8_0_match_all_is_worked_out_from_match_any() -> None:
    """As nvcc 13.0 does for sm_75: the lanes there are, those of them alike, and a choice."""
    names = ops(all_of, "7.5")
    at = names.index("MATCH")
    assert names[at : at + 5] == ["MATCH", "ACTIVEMASK", "LOP3", "ISETP", "SEL"]


def test_lanes_that_may_be_apart_are_gathered_and_joined_again_around_a_match() -> None:
    """Never a guarded instruction: those that are guarded off would not take part."""

    @cuda.jit
    def kernel(values, out):
        tid = cuda.threadIdx.x
        if values[tid] > 3:
            out[tid] = cuda.match_any_sync(0xFFFFFFFF, values[tid])
        values[tid] = 3

    names = ops(kernel, "9.0")
    control = [n for n in names if n in ("BSSY", "BRA", "WARPSYNC.ALL", "MATCH", "BSYNC")]
    assert control == ["BSSY", "BRA", "WARPSYNC.ALL", "MATCH", "BSYNC"]


def test_a_loop_is_not_rotated_around_a_match_in_its_condition() -> None:
    """A copy before the loop would let other lanes take part in each."""

    @cuda.jit
    def kernel(values, out):
        n = values[cuda.threadIdx.x]
        while cuda.match_any_sync(0xFFFFFFFF, n) != 1:
            n += 1
        out[0] = n

    assert ops(kernel, "9.0").count("MATCH") == 1


def test_gpus_before_7_0_have_no_match() -> None:
    values, out = np.zeros(32, np.int32), np.zeros(32, np.uint32)
    with pytest.raises(
        LaunchError, match=r"line \d+: cuda.match_any_sync needs compute capability 7.0 or higher"
    ):
        gpusim.trace(any_of[1, 32], values, out, cc="6.1")
