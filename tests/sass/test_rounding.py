"""Every result is rounded once, in the direction that the row names, and NaN has one pattern."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sass.rows import pair, worked_out

F32, F64, U32, U64 = np.float32, np.float64, np.uint32, np.uint64
MAX64, MIN64 = 0x7FEFFFFFFFFFFFFF, 0x0000000000000001
NAN32, NAN64, INF64 = 0x7FFFFFFF, 0xFFF8000000000000, 0x7FF0000000000000


def word(*values: int) -> Any:
    return np.array(values, dtype=U32)


def words(row: str, *values: int) -> int:
    """Return the word that a row leaves in R0, its operands being R2, R3, R4."""
    made = worked_out(row, **{f"R{k}": word(v) for k, v in enumerate(values, 2)})
    return int(made["R0"][0])


def doubles(row: str, *values: float) -> int:
    """Return the bits that a row leaves in R0 and R1, its operands being R2, R4, R6."""
    registers = {}
    for number, value in enumerate(values):
        low, high = pair([value], F64)
        registers |= {f"R{2 * number + 2}": low, f"R{2 * number + 3}": high}
    made = worked_out(row, **registers)
    return int(made["R0"][0]) | int(made["R1"][0]) << 32


@pytest.mark.parametrize(
    ("row", "operands", "expected"),
    [
        ("DMUL.RZ R0, R2, R4", (1e300, 1e300), MAX64),
        ("DMUL.RM R0, R2, R4", (1e300, 1e300), MAX64),
        ("DMUL.RP R0, R2, R4", (1e300, 1e300), INF64),
        ("DMUL.RP R0, R2, R4", (-1e300, 1e300), MAX64 | 1 << 63),
        ("DMUL.RP R0, R2, R4", (1e-300, 1e-300), MIN64),
        ("DMUL.RM R0, R2, R4", (1e-300, 1e-300), 0),
        ("DMUL.RM R0, R2, R4", (-1e-300, 1e-300), MIN64 | 1 << 63),
        ("DMUL.RM R0, R2, R4", (0.0, 5.0), 0),
        ("DADD.RM R0, R2, R4", (1.5, -1.5), 1 << 63),
        ("DADD.RM R0, R2, R4", (0.0, 0.0), 0),
        ("DADD.RP R0, R2, R4", (1.5, -1.5), 0),
        ("DADD.RZ R0, R2, R4", (1.7e308, 1.7e308), MAX64),
        ("DADD.RP R0, R2, R4", (math.inf, 1.0), INF64),
        ("DADD.RP R0, R2, R4", (1.0, 5e-324), 0x3FF0000000000001),
        ("DFMA.RM R0, R2, R4, R6", (1e-200, 1e-200, -0.0), 0),
        ("DFMA.RP R0, R2, R4, R6", (1e-200, 1e-200, -0.0), MIN64),
        ("DFMA.RM R0, R2, R4, R6", (3.0, 5.0, -15.0), 1 << 63),
        ("DFMA.RZ R0, R2, R4, R6", (1e300, 1e300, -1e300), MAX64),
    ],
)
def test_directed_rounding_of_doubles_at_the_ends(
    row: str, operands: tuple[float, ...], expected: int
) -> None:
    """The largest number stands for what overflows, the least for what underflows."""
    assert doubles(row, *operands) == expected


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(a=finite, b=finite, c=finite)
def test_directed_rounding_of_doubles_takes_the_neighbour(*, a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    for mode, sign in (("RM", 1), ("RP", -1)):
        bits = doubles(f"DFMA.{mode} R0, R2, R4, R6", a, b, c)
        made = float(np.array(bits, dtype=U64).view(F64))
        beyond = math.nextafter(made, sign * math.inf)
        assert math.isinf(made) or sign * (exact - Fraction(made)) >= 0
        assert math.isinf(beyond) or sign * (Fraction(beyond) - exact) > 0


@pytest.mark.parametrize(
    ("row", "operands", "expected"),
    [
        ("FADD.RM R0, R2, -R2", (0x3F800000,), 0x80000000),
        ("FADD R0, R2, -R2", (0x3F800000,), 0),
        ("FADD.RP R0, R2, R3", (0x7F7FFFFF, 1), 0x7F800000),
        ("FADD.RZ R0, R2, R3", (0x7F7FFFFF, 0x7F7FFFFF), 0x7F7FFFFF),
        ("FMUL.RP R0, R2, R3", (1, 1), 1),
        ("FMUL.RM R0, R2, R3", (1, 1), 0),
        ("FMUL.RM R0, R2, -R3", (1, 1), 0x80000001),
        ("FFMA.RM R0, R2, R3, -R4", (0x40400000, 0x3F800000, 0x40400000), 0x80000000),
        ("FFMA.RZ R0, R2, R3, R4", (0x7F7FFFFF, 0x40000000, 0), 0x7F7FFFFF),
        ("FADD.FTZ R0, R2, R3", (0x00800001, 0x80800000), 0),
        ("FADD R0, R2, R3", (0x00800001, 0x80800000), 1),
        ("FMUL R0, R2, R3", (0x00800000, 0x3F7FFFFF), 0x00800000),
        ("FMUL.FTZ R0, R2, R3", (0x00800000, 0x3F7FFFFF), 0),  # measured: less, with more bits
        ("FMUL.FTZ R0, R2, R3", (0x00800000, 0x3F800000), 0x00800000),
        ("FADD.SAT R0, R2, R3", (0x7FC00000, 0), 0),
    ],
)
def test_directed_rounding_of_single_precision_at_the_ends(
    row: str, operands: tuple[int, ...], expected: int
) -> None:
    assert words(row, *operands) == expected


@pytest.mark.parametrize(
    ("row", "operands"),
    [
        ("FADD R0, R2, R3", (0x7F800000, 0xFF800000)),
        ("FADD R0, R2, R3", (0xFFC00001, 0)),
        ("FMUL R0, R2, R3", (0, 0x7F800000)),
        ("FFMA R0, R2, R3, R4", (0x3F800000, 0x7F800001, 0)),
        ("FFMA.RZ R0, R2, R3, R4", (0x7F800000, 0x3F800000, 0xFF800000)),
        ("FMNMX R0, R2, R3, PT", (0xFFC00000, 0x7FC00000)),
        ("FMNMX.NAN R0, R2, R3, PT", (0xFFC00000, 0x3F800000)),
        ("MUFU.RSQ R0, R2", (0xBF800000,)),
        ("MUFU.SIN R0, R2", (0x7F800000,)),
        ("FRND R0, R2", (0xFFC00000,)),
        ("HADD2.F32 R0, -RZ, R2.H0_H0", (0xFC01,)),
    ],
)
def test_what_is_no_number_has_one_pattern(row: str, operands: tuple[int, ...]) -> None:
    assert words(row, *operands) == NAN32


def test_doubles_keep_the_bits_of_the_last_operand_that_is_none() -> None:
    """Measured: quiet, with its own sign; a second factor comes before an addend."""
    one, two = np.array([0x7FF8000000000123, 0xFFF0000000000001], dtype=U64).view(F64)
    assert doubles("DADD R0, R2, R4", math.inf, -math.inf) == NAN64
    assert doubles("DFMA R0, R2, R4, R6", 0.0, math.inf, 1.0) == NAN64
    assert doubles("DMUL R0, R2, R4", one, 1.0) == 0x7FF8000000000123
    assert doubles("DADD R0, R2, -R4", one, two) == 0xFFF8000000000001
    assert doubles("DADD R0, -RZ, |R2|", two) == 0xFFF8000000000001
    assert doubles("DFMA R0, R2, R4, R6", 1.0, one, two) == 0x7FF8000000000123
    assert doubles("DFMA R0, R2, R4, R6", two, 1.0, one) == 0x7FF8000000000123


@pytest.mark.parametrize(
    ("row", "operands", "expected"),
    [
        # 1.5 * (1 + 2**-7) lies half way between two; 2**-60 less of it decides.
        ("HFMA2.BF16_V2 R0, R2, R3, R4", (0x3FC0, 0x3F81, 0xA180), 0x3FC1),
        ("HFMA2.BF16_V2 R0, R2, R3, R4", (0x3FC0, 0x3F81, 0x2180), 0x3FC2),
        # 2**15 and 2**-48, half precision: the least that is there decides.
        ("HFMA2 R0, R2, R3, R4", (0x0001, 0x0001, 0x7801), 0x7801),
        ("HFMA2 R0, R2, R3, R4", (0x3C01, 0x3C00, 0x0001), 0x3C01),
        ("HADD2.BF16_V2 R0, R2, R3", (0x4380, 0x3F80), 0x4380),
        ("HADD2.BF16_V2 R0, R2, R3", (0x4380, 0x3F81), 0x4381),
        ("HFMA2.RELU R0, R2, R3, R4", (0x7E00, 0x3C00, 0), 0x7FFF),
        ("HFMA2.RELU R0, R2, R3, R4", (0xBC00, 0x3C00, 0), 0),
        ("HFMA2.SAT R0, R2, R3, R4", (0x7E00, 0x3C00, 0), 0),
        ("HFMA2.SAT R0, R2, R3, R4", (0x4400, 0x3C00, 0), 0x3C00),
        ("HMUL2.FTZ R0, R2, R3", (0x8401, 0x3800), 0x8000),
        ("HMUL2 R0, R2, R3", (0x8401, 0x3800), 0x8200),
        ("HMNMX2 R0, R2, R3, PT", (0x8000, 0x0000), 0x8000),
        ("HMNMX2 R0, R2, R3, !PT", (0x8000, 0x0000), 0x0000),
        ("HMNMX2 R0, R2, R3, PT", (0x7E01, 0x3C00), 0x3C00),
        ("HMNMX2.NAN R0, R2, R3, PT", (0x7E01, 0x3C00), 0x7FFF),
        ("HMNMX2.BF16_V2.NAN R0, R2, R3, PT", (0x7FC1, 0x3F80), 0x7FFF),
        ("HMNMX2.XORSIGN R0, |R2|, |R3|, PT", (0xC000, 0x4200), 0xC000),
        ("FMNMX.XORSIGN R0, |R2|, |R3|, !PT", (0xC0000000, 0xBF800000), 0x40000000),
    ],
)
def test_half_precision_and_bfloat16_round_once(
    row: str, operands: tuple[int, ...], expected: int
) -> None:
    """The upper halves of the operands are 0, which leaves the lower half of the result."""
    assert words(row, *operands) & (0xFFFFFFFF if row.startswith("F") else 0xFFFF) == expected


@pytest.mark.parametrize(
    ("row", "operands", "expected"),
    [
        ("MUFU.RCP R0, R2", (1,), 0x7F800000),
        ("MUFU.RCP R0, R2", (0x80000001,), 0xFF800000),
        ("MUFU.RCP R0, R2", (0x7E800001,), 0),  # beyond 2**126, of which quotients are 0
        ("MUFU.RCP R0, R2", (0x7E800000,), 0x00800000),
        ("MUFU.RSQ R0, R2", (1,), 0x7F800000),
        ("MUFU.LG2 R0, R2", (1,), 0xFF800000),
        ("MUFU.SQRT R0, R2", (0x80000001,), 0x80000000),
        ("MUFU.EX2 R0, R2", (0xC2FD0000,), 0),  # 2**-126.5
        ("MUFU.SIN R0, R2", (0x4E6E6B28,), 0),  # 10**9 turns
        ("MUFU.COS R0, R2", (0x7E967699,), 0x3F800000),  # 10**38 turns
        ("MUFU.SIN R0, R2", (0x3F000000,), 0),  # half a turn
        ("MUFU.SIN R0, R2", (0xB0000000,), 0x80000000),  # 2**-31 turns back (measured)
        ("MUFU.COS R0, R2", (0x3F400000,), 0),
        ("MUFU.TANH R0, R2", (1,), 1),
        ("MUFU.TANH.F16 R0, R2.H1", (0x7C000000,), 0x3C00),
        ("MUFU.EX2.F16 R0, R2", (0xCC00,), 0x0100),  # 2**-16, subnormal
        ("MUFU.EX2.BF16 R0, R2", (0xC300,), 0),  # 2**-128 counts as zero
        ("MUFU.RCP64H R0, R2", (0x00080000,), 0x7FF00000),
        ("MUFU.RCP64H R0, R2", (0xFFE00000,), 0x80000000),
    ],
)
def test_special_functions_take_subnormal_numbers_for_zero(
    row: str, operands: tuple[int, ...], expected: int
) -> None:
    assert words(row, *operands) == expected
