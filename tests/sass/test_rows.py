"""Single rows of machine code, special cases first; no compiler is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sass.rows import pair, worked_out

from gpusim.isa import lanes
from gpusim.sass.decoding import Context, UnknownFormError, decoded, micros
from gpusim.sass.listing import row_of_text
from gpusim.sass.table import MNEMONICS

F32, F64, I32, U32 = np.float32, np.float64, np.int32, np.uint32
ONES = 0xFFFFFFFF


def words(*values: int) -> Any:
    return np.array([value & ONES for value in values], dtype=U32)


def floats(bits: Any) -> list[float]:
    return bits.view(F32).tolist()


def test_a_sum_gives_its_carry_also_of_what_is_subtracted() -> None:
    made = worked_out("IADD3 R0, P0, R1, -R2, RZ", R1=words(5, 0, 3, 7), R2=words(3, 0, 5, 7))
    assert made["R0"].tolist() == [2, 0, ONES - 1, 0]
    # No borrow is a carry: 5 - 3, 0 - 0 and 7 - 7 have none.
    assert made["P0"].tolist() == [True, True, False, True]


def test_two_carries_of_three_terms_go_on_to_the_upper_word() -> None:
    low = worked_out("IADD3 R0, P0, P1, R1, R1, R1", R1=words(ONES, 2))
    assert low["R0"].tolist() == [ONES - 2, 6]
    assert (low["P0"].tolist(), low["P1"].tolist()) == ([True, False], [True, False])
    high = worked_out("IADD3.X R0, R1, ~R2, RZ, P0, P1", R1=words(4), R2=words(1),
                      P0=np.array([True]), P1=np.array([True]))  # fmt: skip
    assert high["R0"].tolist() == [4 + (ONES - 1) + 2 & ONES]


def test_a_scaled_sum_gives_its_carry_and_its_upper_word() -> None:
    low = worked_out("LEA R0, P0, R1, R2, 0x2", R1=words(0x40000001, 3), R2=words(1, ONES))
    assert low["R0"].tolist() == [5, 11]
    assert low["P0"].tolist() == [False, True]
    high = worked_out("LEA.HI.X R0, R1, R2, R3, 0x2, P0", R1=words(0x40000001), R2=words(10),
                      R3=words(1), P0=np.array([True]))  # fmt: skip
    assert high["R0"].tolist() == [4 + 1 + 10 + 1]
    extended = worked_out("LEA.HI.X.SX32 R0, R1, R2, 0x1, P0", R1=words(-1), R2=words(10),
                          P0=np.array([True]))  # fmt: skip
    assert extended["R0"].tolist() == [10]


def test_the_upper_word_of_a_product_has_an_addend_of_64_bits() -> None:
    made = worked_out("IMAD.HI.U32 R0, R1, R2, R4", R1=words(ONES), R2=words(2), R4=words(2),
                      R5=words(7))  # fmt: skip
    assert made["R0"].tolist() == [7 + 2]
    signed = worked_out("IMAD.WIDE R0, R2, R3, RZ", R2=words(-2), R3=words(3))
    assert (signed["R0"].tolist(), signed["R1"].tolist()) == ([ONES - 5], [ONES])


def test_look_up_tables_of_bits_and_of_predicates() -> None:
    a, b, c = 0b11110000, 0b11001100, 0b10101010
    for table in (0xC0, 0xEA, 0x96, 0xCA, 0xB8, 0x1E, 0x00, 0xFF, 0x78, 0xF4):
        made = worked_out(f"LOP3.LUT R0, R1, R2, R3, {table:#x}, !PT", R1=words(a), R2=words(b),
                          R3=words(c))  # fmt: skip
        assert made["R0"][0] & 0xFF == table
    asked = worked_out("LOP3.LUT P0, RZ, R1, 0x1, RZ, 0xc0, !PT", R1=words(3, 2))
    assert asked["P0"].tolist() == [True, False]
    made = worked_out("PLOP3.LUT P0, P1, P2, PT, PT, 0x80, 0x8", P2=np.array([True, False]))
    assert (made["P0"].tolist(), made["P1"].tolist()) == ([True, False], [False, True])


def test_comparisons_of_64_bits_come_in_two() -> None:
    numbers = np.array([5, 5, -1, 1 << 40], dtype=np.int64)
    others = np.array([5, 6, 1, (1 << 40) - 1], dtype=np.int64)
    (a, b), (c, d) = pair(numbers, np.int64), pair(others, np.int64)
    low = worked_out("ISETP.LT.U32.AND P0, PT, R0, R2, PT", R0=a, R2=c)["P0"]
    whole = worked_out("ISETP.LT.AND.EX P0, PT, R1, R3, PT, P0", R1=b, R3=d, P0=low)["P0"]
    assert whole.tolist() == (numbers < others).tolist()


def test_a_comparison_of_lower_words_that_is_left_out_is_true() -> None:
    high = np.array([0, 1], dtype=np.uint32)
    differ = worked_out("ISETP.NE.AND.EX P0, PT, R3, RZ, PT", R3=high)["P0"]
    below = worked_out("ISETP.LT.AND.EX P0, PT, R3, 0x1, PT", R3=high)["P0"]
    assert (differ.tolist(), below.tolist()) == ([True, True], [True, True])


def test_shifts_by_more_than_the_width_shift_all_of_it_out() -> None:
    counts = words(0, 31, 32, 255)
    left = worked_out("SHF.L.U32 R0, R1, R2, RZ", R1=words(1), R2=counts)["R0"]
    right = worked_out("SHF.R.U32.HI R0, RZ, R2, R1", R1=words(-1), R2=counts)["R0"]
    signed = worked_out("SHF.R.S32.HI R0, RZ, R2, R1", R1=words(-2), R2=counts)["R0"]
    assert left.tolist() == [1, 1 << 31, 0, 0]
    assert right.tolist() == [ONES, 1, 0, 0]
    assert signed.view(I32).tolist() == [-2, -1, -1, -1]


def test_bits_are_found_spread_and_masked() -> None:
    a = words(0, 1, 0x80000000, 0x00010000)
    assert worked_out("FLO.U32 R0, R1", R1=a)["R0"].tolist() == [ONES, 0, 31, 16]
    assert worked_out("FLO.U32.SH R0, R1", R1=a)["R0"].tolist() == [ONES, 31, 0, 15]
    assert worked_out("FLO R0, R1", R1=words(-1, -2, 5))["R0"].tolist() == [ONES, 0, 2]
    assert worked_out("SGXT R0, R1, 0x8", R1=words(0x80, 0x7F))["R0"].tolist() == [ONES - 127, 127]
    assert worked_out("SGXT.U32 R0, R1, 0x8", R1=words(0x1FF))["R0"].tolist() == [0xFF]
    assert worked_out("BMSK R0, R1, 0x4", R1=words(0, 4, 30))["R0"].tolist() == [15, 240, 3 << 30]
    signs = worked_out("PRMT R0, R1, 0x9910, RZ", R1=words(0x8001, 0x7001))["R0"]
    assert signs.tolist() == [0xFFFF8001, 0x7001]
    assert worked_out("BREV R0, R1", R1=words(1, 6))["R0"].tolist() == [1 << 31, 3 << 29]


def test_predicates_are_packed_and_unpacked() -> None:
    none = {f"P{k}": np.array([k in (0, 2)]) for k in range(7)}
    made = worked_out("P2R R0, PR, R1, 0x6", R1=words(0xF0), **none)
    assert made["R0"].tolist() == [0xF4]
    back = worked_out("R2P PR, R1.B1, 0x5", R1=words(0x0400))
    assert {name: bool(value[0]) for name, value in back.items()} == {"P0": False, "P2": True}


NAN = float("nan")


def test_what_is_no_number_loses_and_compares_as_the_row_says() -> None:
    a, b = np.array([NAN, 1, 0.0, 2], F32), np.array([3, NAN, -0.0, 1], F32)
    least = worked_out("FMNMX R0, R1, R2, PT", R1=a, R2=b)["R0"].view(F32)
    assert least[:2].tolist() == [3, 1]
    assert np.signbit(least[2])
    assert not np.signbit(worked_out("FMNMX R0, R1, R2, !PT", R1=a, R2=b)["R0"].view(F32)[2])
    for name, want in (("LT", [0, 0, 0, 0]), ("GEU", [1, 1, 1, 1]), ("NE", [0, 0, 0, 1]),
                       ("NEU", [1, 1, 0, 1]),
                       ("NUM", [0, 0, 1, 1]), ("NAN", [1, 1, 0, 0])):  # fmt: skip
        made = worked_out(f"FSETP.{name}.AND P0, PT, R1, R2, PT", R1=a, R2=b)["P0"]
        assert made.astype(int).tolist() == want, name
    ones = worked_out("FSET.BF.GT.AND R0, R1, R2, PT", R1=a, R2=b)["R0"]
    assert floats(ones) == [0, 0, 0, 1]


def test_products_and_sums_are_rounded_once_and_to_where_the_row_says() -> None:
    third, one = np.array([1 / 3], F32), np.array([1], F32)
    exact = float(third[0]) * float(third[0])
    for rounding, better in (("RM", min), ("RP", max)):
        made = worked_out(f"FMUL.{rounding} R0, R1, R1", R1=third)["R0"].view(F32)[0]
        near = F32(exact)
        towards = np.nextafter(near, F32(-np.inf if rounding == "RM" else np.inf))
        ordered = near if (float(near) <= exact) == (rounding == "RM") else towards
        assert made == ordered, better
    # 1 + 2^-24 is a tie, which 2^-60 more decides upwards; twice rounded it would be lost.
    tiny = np.array([2.0**-30], F32)
    start = np.array([1 + 2.0**-23], F32)
    a = np.array([2.0**-24 + 2.0**-47], F32)
    made = worked_out("FFMA R0, R1, R2, R3", R1=a, R2=one, R3=start)["R0"].view(F32)[0]
    assert made == F32(1 + 2 * 2.0**-23)
    assert worked_out("FFMA.SAT R0, R1, R2, R3", R1=one, R2=one, R3=one)["R0"].view(F32)[0] == 1
    flushed = worked_out("FADD.FTZ R0, R1, RZ", R1=np.array([1e-40], F32))["R0"].view(F32)[0]
    assert flushed == 0
    assert tiny[0] > 0


def test_doubles_are_rounded_once() -> None:
    a, b = 1 + 2.0**-30, 1 - 2.0**-30
    low, high = pair([a], F64), pair([b], F64)
    minus = pair([-1.0], F64)
    made = worked_out("DFMA R0, R2, R4, R6", R2=low[0], R3=low[1], R4=high[0], R5=high[1],
                      R6=minus[0], R7=minus[1])  # fmt: skip
    whole = made["R0"].astype(np.uint64) | made["R1"].astype(np.uint64) << np.uint64(32)
    assert whole.view(F64)[0] == -(2.0**-60)
    most = worked_out("DMNMX R0, R2, R4, !PT", R2=low[0], R3=low[1], R4=high[0], R5=high[1])
    assert most["R1"].tolist() == low[1].reshape(-1).tolist()
    rounded = worked_out("FRND.F64.FLOOR R0, R2", R2=minus[0], R3=pair([-1.5], F64)[1])
    assert rounded["R1"].tolist() == pair([-2.0], F64)[1].reshape(-1).tolist()
    huge = pair([1e30, -5.0, 7.9], F64)
    made = worked_out("F2I.U64.F64.TRUNC R0, R2", R2=huge[0], R3=huge[1])
    assert made["R0"].tolist() == [ONES, 0, 7]
    double = worked_out("I2F.F64 R0, R2", R2=words(-3))
    assert double["R1"].tolist() == pair([-3.0], F64)[1].reshape(-1).tolist()


def test_nothing_becomes_zero_or_the_sign_alone() -> None:
    a = np.array([NAN, 1e20, -1e20, -0.5], F32)
    assert worked_out("F2I.NTZ R0, R1", R1=a)["R0"].view(I32).tolist() == [
        0,
        2**31 - 1,
        -(2**31),
        0,
    ]
    assert worked_out("F2I R0, R1", R1=a)["R0"].view(I32).tolist()[0] == -(2**31)
    assert worked_out("F2I.U32.TRUNC.NTZ R0, R1", R1=a)["R0"].tolist() == [0, ONES, 0, 0]
    assert floats(worked_out("I2F.U32.RP R0, R1", R1=words(0x1000001))["R0"]) == [0x1000002]
    assert floats(worked_out("I2F.S8 R0, R1.B1", R1=words(0xFE00))["R0"]) == [-2]
    assert floats(worked_out("I2F.U8 R0, R1.B3", R1=words(0xFE000000))["R0"]) == [254]


def test_halves_are_two_in_a_register() -> None:
    two = np.array([1.5, -2.0, 0.25, 4.0], np.float16).view(U32)
    product = worked_out("HMUL2 R0, R1, R1.H0_H0", R1=two)["R0"].view(np.float16)
    assert product.tolist() == [2.25, -3.0, 0.0625, 1.0]
    packed = worked_out("F2FP.F16.F32.PACK_AB R0, R1, R2", R1=np.array([2], F32),
                        R2=np.array([0.5], F32))["R0"]  # fmt: skip
    assert packed.view(np.float16).tolist() == [0.5, 2.0]
    brain = worked_out("F2FP.BF16.F32.PACK_AB R0, RZ, R2", R2=np.array([1.00390625], F32))["R0"]
    assert brain.tolist() == [0x3F80]  # a tie goes to the even one
    one = worked_out("HFMA2.MMA R0, -RZ, RZ, 0, 5.9604644775390625e-08")["R0"]
    assert one.tolist() == [1]


@pytest.mark.parametrize(
    "text",
    [
        "IADD3.FOO R0, R1, R2, R3",
        "LDG.E R0, desc[UR4][R2.64], P0",
        "BAR.SYNC.FOO 0x1, 0x40",
    ],
)
def test_a_form_that_the_table_lacks_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnknownFormError) as refused:
        list(decoded([row_of_text(text)], Context(0)))
    assert text.split()[0] in str(refused.value)
    assert "please report" in str(refused.value)


def halves(*numbers: float) -> Any:
    """Return numbers of the range of single precision, two in a register, the lower first."""
    bits = np.array(numbers, F32).view(U32) >> U32(16)
    return bits[::2] | bits[1::2] << U32(16)


def test_products_of_brain_floats_are_rounded_once_to_the_nearest() -> None:
    a, b = halves(3, 1.0078125), halves(-0.5, 1.0078125)
    assert worked_out("HMUL2.BF16_V2 R0, R1, R2", R1=a, R2=b)["R0"] == halves(-1.5, 1.015625)
    # 1.015625 + 2^-14 is a little more than what 8 bits hold.
    tiny = halves(0, 2.0**-9)
    made = worked_out("HFMA2.BF16_V2 R0, R1, R2, R3", R1=a, R2=b, R3=tiny)
    assert made["R0"] == halves(-1.5, 1.015625)
    least = worked_out("HMUL2.BF16_V2 R0, R1, R2", R1=halves(2.0**-130, 1e38), R2=halves(0.5, 1e3))
    assert least["R0"] == halves(2.0**-131, np.inf)


def test_a_sum_of_brain_floats_may_be_a_product_with_ones() -> None:
    made = worked_out("HFMA2.MMA.BF16_V2 R0, R1, 1, 1, R2", R1=halves(2, 8), R2=halves(0.5, -3))
    assert made["R0"] == halves(2.5, 5)


def test_comparisons_of_halves_give_ones_and_zeros() -> None:
    pair_of = np.array([2.0, -1.0], np.float16).view(U32)
    made = worked_out("HSET2.BF.EQ.AND R0, R1, 2, 2, PT", R1=pair_of)
    assert made["R0"].view(np.float16).tolist() == [1.0, 0.0]


def test_the_least_and_the_most_of_three() -> None:
    a, b, c = words(5, -1), words(7, 3), words(6, 0)
    least = worked_out("VIMNMX3 R0, R1, R2, R3, PT", R1=a, R2=b, R3=c)
    assert least["R0"].view(I32).tolist() == [5, -1]
    most = worked_out("VIMNMX3.U32 R0, R1, R2, R3, !PT", R1=a, R2=b, R3=c)
    assert most["R0"].tolist() == [7, ONES]
    a, b, c = halves(-8, 3), halves(2, 1), halves(5, -7)
    least = worked_out("VHMNMX.BF16_V2 R0, R1, R2, R3, PT", R1=a, R2=b, R3=c)
    assert least["R0"] == halves(-8, -7)
    most = worked_out("VHMNMX.BF16_V2 R0, |R1|.H0_H0, |R1|.H1_H1, R3.H0_H0, !PT", R1=a, R3=c)
    assert most["R0"] == halves(8, 8)


def test_a_clamp_from_below_at_zero_belongs_to_minima_and_maxima() -> None:
    a, b = words(300, -7, 12), words(-9, -3, 5)
    least = worked_out("VIMNMX.RELU R0, R1, 0xff, PT", R1=a)
    assert least["R0"].view(I32).tolist() == [255, 0, 12]
    most = worked_out("VIMNMX.RELU R0, R1, R2, !PT", R1=a, R2=b)
    assert most["R0"].view(I32).tolist() == [300, 0, 12]
    of_three = worked_out("VIMNMX3.RELU R0, R1, R2, 0x8, PT", R1=a, R2=b)
    assert of_three["R0"].view(I32).tolist() == [0, 0, 5]


def test_differences_of_bytes_are_added_up() -> None:
    made = worked_out(
        "VABSDIFF4.U8.ACC R0, R1, R2, R3", R1=words(0x01FF8010), R2=words(0x0200FF10), R3=words(9)
    )
    assert made["R0"].tolist() == [9 + 1 + 255 + 127 + 0]


def test_a_product_may_be_halved_before_it_is_rounded() -> None:
    least = np.array([2.0**-149, 3.0], F32)
    made = worked_out("FMUL.D2 R0, R1, R2", R1=least, R2=np.array([3.0, 5.0], F32))
    assert floats(made["R0"]) == [2.0**-148, 7.5]  # 1.5 of the least number is 2 of it


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("TLD4.R RZ, R4, R6, UR4, 0x0, 2D, 0x9", "gathers, gradients and queries of textures are"),
        ("TEX.LL RZ, R8, R8, R15, UR4, 0x0, CUBE, 0x1", "textures in this form are"),
        ("TEX.SCR.LL RZ, R5, R4, R8, 0x0, 0x58, 2D, 0x1", "textures in this form are"),
        ("HMMA.SP.16832.F32 R4, R8, R12, R4, R6, 0x0", "tensor cores in this form are"),
        ("HGMMA.SP.64x64x32.F32 R24, gdesc[UR4], R24, R8", "matrix products of warpgroups"),
        ("UCGABAR_GET R2", "clusters of blocks are"),
    ],
)
def test_units_that_are_not_simulated_are_named(text: str, unit: str) -> None:
    with pytest.raises(UnknownFormError, match=unit):
        list(decoded([row_of_text(text)], Context(0)))


def test_a_mask_of_all_lanes_may_be_written_as_zeros_turned_round() -> None:
    for text in ("BRA.DIV ~URZ, `(.L_1)", "BRA.CONV ~URZ, `(.L_1)", "BRA.DIV `(.L_1)"):
        [micro] = decoded([row_of_text(text)], Context(0))
        assert micro.sources == (U32(ONES),)


def test_a_number_of_double_precision_is_its_upper_word() -> None:
    ten = worked_out("MUFU.RCP64H R0, 10")
    same = worked_out("MUFU.RCP64H R0, R1", R1=words(0x40240000))
    assert ten["R0"] == same["R0"]
    low, high = pair([1.0], F64)
    text = "0.10000002384186"  # the disassembler's digits are fewer than a double has
    made = worked_out(f"DADD R0, R2, {text}", R2=low, R3=high)
    total = (int(made["R1"][0]) << 32 | int(made["R0"][0])).to_bytes(8, "little")
    assert np.frombuffer(total, F64) == 1 + np.array([0x3FB9999A_00000000]).view(F64)


@pytest.mark.parametrize(
    ("name", "unit"),
    [("I2FP.F32", "alu"), ("I2F", "xu"), ("F2I", "xu"), ("IDP.4A.S8.S8", "imad"), ("PRMT", "alu")],
)
def test_a_row_has_the_unit_that_keeps_pace_with_it_on_a_gpu(name: str, unit: str) -> None:
    """A scheduler of an H200 takes 2.16 cycles for I2FP and PRMT, 2.01 for IDP, 8 for the others.

    Beside twice as many LOP3, I2FP and PRMT take 6.13, which keep the ALU, IDP 4.14.
    """
    assert MNEMONICS[name].unit == unit


def half_of(*values: float) -> Any:
    return np.array(values, np.float16).view(np.uint16).astype(U32)


def test_whole_numbers_become_halves_as_the_row_rounds() -> None:
    """Between 2048 and 4096 halves lie 2 apart, beyond 65,504 there is none."""
    assert worked_out("I2F.F16 R0, R1", R1=words(-3, 2049, 70000))["R0"].tolist() == (
        half_of(-3, 2048, np.inf).tolist()
    )
    assert worked_out("I2F.F16.RP R0, R1", R1=words(2049))["R0"].tolist() == half_of(2050).tolist()
    assert worked_out("I2F.F16.U32.RZ R0, R1", R1=words(-1))["R0"].tolist() == (
        half_of(65504).tolist()
    )
    assert worked_out("I2F.F16.S16 R0, R1", R1=words(0xFFFE))["R0"].tolist() == half_of(-2).tolist()
    low, high = pair([-5], np.int64)
    assert worked_out("I2F.F16.S64 R0, R2", R2=low, R3=high)["R0"].tolist() == (
        half_of(-5).tolist()
    )
    low, high = pair([1 / 3], F64)
    assert worked_out("F2F.F16.F64 R0, R2", R2=low, R3=high)["R0"].tolist() == (
        half_of(1 / 3).tolist()
    )


def test_halves_become_whole_numbers() -> None:
    a = half_of(-1.5, 2.5, np.nan, 60000)
    assert worked_out("F2I.F16.NTZ R0, R1", R1=a)["R0"].view(I32).tolist() == [-2, 2, 0, 60000]
    assert worked_out("F2I.S16.F16.TRUNC.NTZ R0, R1", R1=a)["R0"].view(I32).tolist() == [
        -1, 2, 0, 32767,
    ]  # fmt: skip
    assert worked_out("F2I.U16.F16.CEIL.NTZ R0, R1", R1=a)["R0"].tolist() == [0, 3, 0, 60000]
    assert worked_out("F2I.U32.F16.CEIL.NTZ R0, R1", R1=a)["R0"].tolist() == [0, 3, 0, 60000]
    made = worked_out("F2I.S64.F16.FLOOR R0, R2", R2=half_of(-1.5))
    assert (made["R0"].tolist(), made["R1"].tolist()) == ([ONES - 1], [ONES])
    made = worked_out("F2I.U64.F16.FLOOR R0, R2", R2=half_of(7.9))
    assert (made["R0"].tolist(), made["R1"].tolist()) == ([7], [0])
    assert worked_out("FRND.F16.FLOOR R0, R1", R1=half_of(-1.5))["R0"].tolist() == (
        half_of(-2).tolist()
    )


def test_bytes_and_shorts_become_doubles() -> None:
    def double(text: str, value: int) -> float:
        made = worked_out(text, R2=words(value))
        return float((made["R0"] | made["R1"].astype(np.uint64) << np.uint64(32)).view(F64)[0])

    assert double("I2F.F64.S16 R0, R2", 0x1FFFE) == -2
    assert double("I2F.F64.U16 R0, R2", 0x1FFFE) == 65534
    assert double("I2F.F64.S8 R0, R2.B1", 0xFE00) == -2
    assert double("I2F.F64.U8 R0, R2", 0x1FE) == 254


def test_a_minimum_may_keep_what_is_no_number() -> None:
    a, b = np.array([NAN, 1, 3], F32), np.array([2, NAN, 2], F32)
    least = worked_out("FMNMX.NAN R0, R1, R2, PT", R1=a, R2=b)["R0"].view(F32)
    assert np.isnan(least[:2]).all()
    assert least[2] == 2
    assert worked_out("FMNMX.NAN R0, R1, R2, !PT", R1=a, R2=b)["R0"].view(F32)[2] == 3


def test_halves_of_words_are_compared_and_multiplied() -> None:
    two, other = words(0x0005FFFE), words(0x00030004)  # 5 and -2, 3 and 4
    assert worked_out("VIMNMX.S16x2 R0, R1, R2, !PT", R1=two, R2=other)["R0"].tolist() == [
        0x00050004
    ]
    assert worked_out("VIMNMX.U16x2 R0, R1, R2, PT", R1=two, R2=other)["R0"].tolist() == [
        0x00030004
    ]
    of_bytes = words(0x01FF0302)  # 2, 3, -1, 1
    made = worked_out("IDP.2A.LO.S16.S8 R0, R1, R2, R3", R1=two, R2=of_bytes, R3=words(100))
    assert made["R0"].tolist() == [-2 * 2 + 5 * 3 + 100]
    made = worked_out("IDP.2A.HI.S16.S8 R0, R1, R2, R3", R1=two, R2=of_bytes, R3=words(100))
    assert made["R0"].tolist() == [-2 * -1 + 5 * 1 + 100]
    made = worked_out("IDP.2A.HI.U16.U8 R0, R1, R2, R3", R1=two, R2=of_bytes, R3=words(0))
    assert made["R0"].tolist() == [0xFFFE * 255 + 5]
    made = worked_out("HSET2.GT.AND R0, R1, R2, PT", R1=np.array([1.5, -1], np.float16).view(U32),
                      R2=np.array([1, 1], np.float16).view(U32))  # fmt: skip
    assert made["R0"].tolist() == [0x0000FFFF]


def test_uniform_predicates_are_packed() -> None:
    none = {f"UP{k}": np.array([k in (0, 2)]) for k in range(7)}
    assert worked_out("UP2UR UR0, UPR, URZ, 0x5", **none)["UR0"].tolist() == [5]


def test_movm_exchanges_rows_and_columns() -> None:
    matrix = np.arange(64, dtype=np.uint16).reshape(8, 8)
    held = np.ascontiguousarray(matrix).view(np.uint32).reshape(1, 1, 32)
    [micro] = micros(row_of_text("MOVM.16.MT88 R5, R0"), 0, Context(0))
    assert (micro.op, micro.sources, micro.results) == ("MOVM.LANES", ("R0",), ("R5",))
    made = lanes.transposed(held).reshape(8, 4).view(np.uint16)
    assert made.tolist() == matrix.T.tolist()
    alike = lanes.transposed(np.full((1, 1, 1), 0x00020001, np.uint32)).reshape(8, 4)
    assert alike[0].tolist() == [0x00010001] * 4
    assert alike[1].tolist() == [0x00020002] * 4
