"""Conversions between all types: rounding, saturation, and what NaN becomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sass.rows import worked_out

from gpusim.sass.decoding import UnknownFormError

U32 = np.uint32
NAN = 0x7FC00000


def converted(row: str, low: int, high: int = 0) -> int:
    """Return what a row leaves in R0, and in R1 above it, its operand being R2 (and R3)."""
    registers: dict[str, Any] = {"R2": np.array([low], U32), "R3": np.array([high], U32)}
    made = worked_out(row, **registers)
    return int(made["R0"][0]) | int(made["R1"][0] if "R1" in made else 0) << 32


@pytest.mark.parametrize(
    ("row", "number", "expected"),
    [
        ("F2I.S16.NTZ R0, R2", 0x47000000, 0x7FFF),  # 32768.0
        ("F2I.S16.NTZ R0, R2", 0xC7800000, 0xFFFF8000),  # -65536.0, extended
        ("F2I.U16.TRUNC.NTZ R0, R2", 0xBF800000, 0),
        ("F2I.S8.CEIL.NTZ R0, R2", 0xC2FF0000, 0xFFFFFF81),  # -127.5
        ("F2I.U8.F16.NTZ R0, R2", 0x5BFF, 0xFF),  # 255.875
        ("F2I.U32.BF16.CEIL.NTZ R0, R2", 0x3F81, 2),
        ("F2I.S8.NTZ R0, R2", NAN, 0),
        ("F2I.FTZ.S8.CEIL.NTZ R0, R2", 0x00000001, 0),
        ("F2I.S8.CEIL.NTZ R0, R2", 0x00000001, 1),
        ("F2IP.U8.F32.NTZ R0, RZ, R2, RZ", 0x437F8000, 0xFF),  # 255.5
    ],
)
def test_numbers_become_the_nearest_that_a_whole_type_holds(
    row: str, number: int, expected: int
) -> None:
    assert converted(row, number) == expected


def test_what_is_no_double_becomes_the_sign_bit_of_the_type() -> None:
    for name, expected in (("U8", 0x80), ("S16", 0xFFFF8000), ("U32", 1 << 31), ("S64", 1 << 63)):
        assert converted(f"F2I.{name}.F64 R0, R2", 0, 0x7FF80000) == expected


@pytest.mark.parametrize(
    ("row", "low", "high", "expected"),
    [
        ("I2F.F64.S64.RM R0, R2", 0xFFFFFFFF, 0x7FFFFFFF, 0x43DFFFFFFFFFFFFF),
        ("I2F.F64.S64.RP R0, R2", 0xFFFFFFFF, 0x7FFFFFFF, 0x43E0000000000000),
        ("I2F.F64.S64.RZ R0, R2", 0x00000001, 0x80000000, 0xC3DFFFFFFFFFFFFF),
        ("I2F.F64.U64.RZ R0, R2", 0xFFFFFFFF, 0xFFFFFFFF, 0x43EFFFFFFFFFFFFF),
        ("I2F.S64 R0, R2", 0x00000001, 0x01000001, 0x5B800001),  # above half way between two
        ("I2F.F64.RM R0, R2", 0xFFFFFFFF, 0, 0xBFF0000000000000),
        ("I2F.BF16.RZ R0, R2", 0x000001FF, 0, 0x43FF),
        ("I2F.BF16 R0, R2", 0x000001FF, 0, 0x4400),
        ("I2F.BF16.U16.RM R0, R2", 0xFFFF01FF, 0, 0x43FF),
        ("I2F.F16.RZ R0, R2", 0x0001FFFF, 0, 0x7BFF),
        ("I2F.F16 R0, R2", 0x0001FFFF, 0, 0x7C00),
        ("I2F.S8 R0, R2.B1", 0x00008000, 0, 0xC3000000),
        ("F2F.BF16.F64 R0, R2", 0x00000001, 0x3FF01000, 0x3F81),  # not to single precision first
        ("F2F.BF16.F64.RM R0, R2", 0x00000000, 0xFFEFFFFF, 0xFF80),
        ("F2F.BF16.F64.RZ R0, R2", 0x00000000, 0xFFEFFFFF, 0xFF7F),
        ("F2F.F16.F32.RP R0, R2", 0x00000001, 0, 1),
        ("F2F.F16.BF16 R0, R2", 0x4780, 0, 0x7C00),
        ("F2F.F32.F64 R0, R2", 0x20000001, 0xFFF00000, 0xFFC00001),  # measured
        ("F2F.F16.F64 R0, R2", 0, 0xFFF40000, 0xFF00),
        ("F2F.F64.BF16 R0, R2.H1", 0x3F810000, 0, 0x3FF0200000000000),
        ("F2F.F64.F32 R0, R2", 0xFF800001, 0, 0xFFF8000020000000),
        ("FRND.BF16.CEIL R0, R2.H1", 0xBF000000, 0, 0x8000),  # -0.5
        ("FRND.F16 R0, R2", 0x4100, 0, 0x4000),  # 2.5
        ("I2I.S8.S32.SAT R0, R2", 0xFFFFFF00, 0, 0xFFFFFF80),
        ("I2I.U16.S32.SAT R0, R2", 0x00010000, 0, 0xFFFF),
        ("I2IP.S16.S32.SAT R0, R3, R2, RZ", 0xFFFF0000, 0x7FFFFFFF, 0x7FFF8000),
        ("F2FP.BF16.F32.PACK_AB.RZ R0, R3, R2", 0x3F80FFFF, 0xBF80FFFF, 0xBF803F80),
        ("F2FP.RELU.BF16.F32.MERGE_C R0, R2, RZ", 0x3F808000, 0, 0x3F80),
        ("F2FP.RELU.F16.F32.PACK_AB R0, R3, R2", 0x3F800000, 0xBF800000, 0x00003C00),
    ],
)
def test_conversions_round_once(row: str, low: int, high: int, expected: int) -> None:
    assert converted(row, low, high) == expected


@pytest.mark.parametrize(
    "row",
    [
        "F2FP.RELU.F16.F32.MERGE_C R0, R2, R3",  # where R3 goes is not known
        "FMNMX.XORSIGN R0, R2, R3, PT",  # of magnitudes alone
        "F2I.S16.F16 R0, R2.B1",
        "F2F.S16.F32 R0, R2",
    ],
)
def test_forms_of_conversions_that_are_not_known_are_refused(row: str) -> None:
    with pytest.raises(UnknownFormError):
        converted(row, 0)
