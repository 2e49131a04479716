"""Numbers of eight bits: rounding, saturation, and where the two of a row go; by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sass.rows import worked_out

F16, F32, U32 = np.float16, np.float32, np.uint32
NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("kind", "value", "bits"),
    [
        ("E4M3", 1.0, 0x38),
        ("E4M3", 1.0625, 0x38),  # as near to 1.125: the even one
        ("E4M3", 1.1875, 0x3A),
        ("E4M3", -448.0, 0xFE),
        ("E4M3", 1e9, 0x7E),
        ("E4M3", -INFINITY, 0xFE),
        ("E4M3", -NAN, 0x7F),
        ("E4M3", 2.0**-10, 0x00),
        ("E4M3", -(2.0**-9) * 1.5, 0x82),
        ("E4M3", -0.0, 0x80),
        ("E5M2", 1.125, 0x3C),
        ("E5M2", 1.375, 0x3E),
        ("E5M2", INFINITY, 0x7B),
        ("E5M2", 61440.0, 0x7B),
        ("E5M2", NAN, 0x7F),
        ("E5M2", 2.0**-17, 0x00),
        ("E5M2", 1.5 * 2.0**-17, 0x01),
    ],
)
def test_numbers_are_rounded_to_eight_bits_once(kind: str, value: float, bits: int) -> None:
    row = f"F2FP.SATFINITE.{kind}.F32.PACK_AB_MERGE_C R0, R2, RZ, RZ"
    assert worked_out(row, R2=np.array([value], F32))["R0"] == bits << 8


def test_two_numbers_stand_below_those_of_another_register() -> None:
    one, two, rest = np.array([1], F32), np.array([2], F32), np.array([0xABCD1234], U32)
    row = "F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C R0, R2, R3, R4"
    assert worked_out(row, R2=one, R3=two, R4=rest)["R0"] == 0x12343840
    halves = np.array([1, -2], F16).view(U32)
    row = "F2FP.SATFINITE.E5M2.F16.UNPACK_B_MERGE_C R0, R2, R4"
    assert worked_out(row, R2=halves, R4=rest)["R0"] == 0x1234C03C


@pytest.mark.parametrize(
    ("kind", "byte", "value"),
    [
        ("E4M3", 0x7E, 448.0),
        ("E4M3", 0xFF, NAN),
        ("E4M3", 0x81, -(2.0**-9)),
        ("E4M3", 0x80, -0.0),
        ("E5M2", 0x7C, INFINITY),
        ("E5M2", 0xFD, NAN),
        ("E5M2", 0x01, 2.0**-16),
    ],
)
def test_bytes_are_numbers_of_half_precision(kind: str, byte: int, value: float) -> None:
    word = np.array([0xFFFF0000 | byte << 8 | 0x38], U32)
    found = int(worked_out(f"F2FP.F16.{kind}.UNPACK_B R0, R2", R2=word)["R0"].item())
    expected = 0x7FFF if np.isnan(value) else int(np.array([value], F16).view(np.uint16)[0])
    assert found == expected << 16 | {"E4M3": 0x3C00, "E5M2": 0x3800}[kind]


@pytest.mark.parametrize("kind", ["E4M3", "E5M2"])
def test_each_byte_comes_back(kind: str) -> None:
    words = np.arange(256, dtype=U32)
    wide = worked_out(f"F2FP.F16.{kind}.UNPACK_B R0, R2", R2=words)["R0"].view(U32)
    row = f"F2FP.SATFINITE.{kind}.F16.UNPACK_B_MERGE_C R0, R2, RZ"
    back = worked_out(row, R2=wide)["R0"].view(U32) & U32(0xFF)
    finite = (words & 0x7F) < {"E4M3": 0x7F, "E5M2": 0x7C}[kind]
    assert (back[finite] == words[finite]).all()
