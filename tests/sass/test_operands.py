"""Operands as text and bits of an instruction say them; what is unknown in them is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sass.rows import worked_out

from gpusim.errors import InputError
from gpusim.sass import wheels
from gpusim.sass.decoding import Context, UnknownFormError, decoded
from gpusim.sass.kernels import cuda_source
from gpusim.sass.listing import row_of_text, section
from gpusim.sass.slots import SLOTS
from gpusim.sass.table import MNEMONICS

TRUE = np.array([True])
ONE = np.array([1], np.uint32)


def held(text: str, immediate: int) -> int:
    """Return the first number among what an instruction reads, of which bits 32 to 63 are given."""
    [micro] = decoded([row_of_text(text, immediate << 32)], Context(0))
    return next(int(one) for one in micro.sources if isinstance(one, np.uint32) and one)


@pytest.mark.parametrize(
    ("text", "immediate"),
    [
        ("FSEL R0, R1, -QNAN , P0", 0xFFF00000),  # the upper half of -inf in double precision
        ("FSEL R0, R1, +QNAN , P0", 0x7FF80000),
        ("FSEL R0, R1, +SNAN , P0", 0x7F800001),
        ("FADD R0, R1, -SNAN ", 0xFFA00000),
        ("MUFU.RSQ R0, -QNAN ", 0xFFFFFFFF),
        ("DADD R0, R2, +QNAN ", 0x7FF80001),
        ("HADD2 R0, R1, -QNAN , 1", 0xFE013C00),
        ("HFMA2.BF16_V2 R0, R1, R2, +QNAN , -SNAN ", 0x7FC1FF81),
        ("FSEL R0, R1, +INF , P0", 0x7F800000),
        ("FMUL R0, R1, 1.4012984643248170709e-45", 1),
        ("DMUL R0, R2, 0.10000002384186", 0x3FB9999A),
        ("MUFU.RCP64H R0, 10", 0x40240000),
        ("IADD3 R0, R1, -0x2, RZ", 0xFFFFFFFE),
    ],
)
def test_a_number_has_the_bits_of_its_instruction(text: str, immediate: int) -> None:
    assert held(text, immediate) == immediate


@pytest.mark.parametrize(
    ("text", "immediate"),
    [
        ("FSEL R0, R1, -QNAN , P0", 0x7FF00000),
        ("FSEL R0, R1, +QNAN , P0", 0x7F800001),
        ("FSEL R0, R1, +QNAN , P0", 0x7F800000),
        ("FADD R0, R1, 1.5", 0x3FC00001),
        ("DADD R0, R2, 1.5", 0x3FF80001),
        ("HADD2 R0, R1, 1, 2", 0x40003C00),
        ("IADD3 R0, R1, -0x2, RZ", 0xFFFFFFFF),
    ],
)
def test_text_and_bits_that_do_not_agree_are_refused(text: str, immediate: int) -> None:
    with pytest.raises(UnknownFormError, match="please report"):
        held(text, immediate)


def test_a_nan_without_its_bits_is_refused() -> None:
    with pytest.raises(UnknownFormError, match="a NaN has bits without a text"):
        list(decoded([row_of_text("FADD R0, R1, +QNAN ")], Context(0)))


def test_a_listing_of_other_rows_than_the_machine_code_is_refused() -> None:
    text = "\t.section\t.text.k,\n        /*0000*/  NOP ;\n        /*0010*/  EXIT ;\n"
    found = section(text, "k", (), bytes(range(32)))
    assert found is not None
    assert [row.immediate for row in found.rows] == [0x07060504, 0x17161514]
    with pytest.raises(InputError, match="has 2 instructions in another order than its 48 bytes"):
        section(text, "k", (), bytes(48))


@pytest.mark.parametrize(
    "text",
    [
        "FADD R0, R1.H0_H0, R2",
        "FADD R0, ~R1, R2",
        "FADD R0, !R1, R2",
        "FADD R0.H0, R1, R2",
        "FADD -R0, R1, R2",
        "FADD R0, R1, R2, R3",
        "HADD2 R0, R1.H1_H0_FOO, R2",
        "HADD2 R0, R1.H0_H0.H1_H1, R2",
        "HADD2 R0, |R1|.H0_NH1, R2",
        "ISETP.GT.AND P0, PT, -R1, R2, PT",
        "ISETP.GT.AND !P0, PT, R1, R2, PT",
        "SEL R0, ~R1, R2, P0",
        "LEA.HI R0, -R1, R2, R3, 0x1",
        "IMAD.WIDE R0, -R2, R3, R4",
        "POPC R0, |R1|",
        "I2F.U8 R0, R1.H1",
        "I2F.U16 R0, R1.B1",
        "MOV R0, c[0x0][0x160].F32",
        "LDG.E R0, desc[UR4][R2.64].FOO",
        "LDG.E R0, [R2.S64]",
        "LDG.E -R0, [R2.64]",
        "LDS R0, desc[UR4][R2]",
        "LDS R0, [-R2]",
        "LDS R0, [R2.X4.X4]",
        "STS [R2], -R0",
        "STS [R2], R0.H1",
        "ATOMS.ADD R0, [R2], -R1",
        "RED.E.ADD.STRONG.GPU [R2.64], R1.H0",
        "SHFL.IDX !P0, R0, R1, R2, 0x1f",
        "SHFL.IDX PT, R0, -R1, R2, 0x1f",
        "VOTE.ANY R0, PT, P0, P1",
        "VOTE.ANY R0, PT, -P0",
        "MATCH.ANY R0, ~R1",
        "REDUX.SUM UR0, -R1",
        "BRA.DIV ~UR4, `(.L_1)",
        "BRA.DIV P0, UR4, `(.L_1)",
        "BRA.DIV !PT, UR4, `(.L_1)",
        "BAR.RED.POPC.DEFER_BLOCKING R4, P0",
        "BAR.SYNC.DEFER_BLOCKING -R4",
        "LDC R0, -c[0x0][0x160]",
        "S2R R0, -SR_TID.X",
        "EXIT 0x1",
        "NOP R1",
        "MEMBAR.SC.GPU R1",
        "YIELD R1",
        "IDP.4A.S8.S8.S8 R0, R1, R2, R3",
        "FADD.FTZ.FTZ R0, R1, R2",
    ],
)
def test_what_a_row_does_not_name_is_refused(text: str) -> None:
    with pytest.raises(UnknownFormError, match="please report"):
        list(decoded([row_of_text(text)], Context(0, {".L_1": 0})))


@pytest.mark.parametrize(
    ("text", "groups"),
    [("DEPBAR.LE SB0, 0x1", 1), ("DEPBAR.LE SB0, 0x0, {2,1}", 0), ("DEPBAR {5,4,3}", None)],
)
def test_a_list_of_scoreboards_is_one_operand(text: str, groups: int | None) -> None:
    micro, *_ = decoded([row_of_text(text)], Context(0))
    assert micro.detail == groups


def test_every_row_names_its_operands_by_known_codes() -> None:
    for found in MNEMONICS.values():
        codes = (found.results + found.sources).replace("|", "") + found.shape.replace("?", "")
        assert set(codes) <= set(SLOTS), found.name
        assert (found.evaluate is not None) >= bool(found.sources), found.name
        assert len(found.signs.split()) <= len(found.sources.replace("|", "")), found.name


def halves(low: float, high: float) -> np.ndarray:
    return np.array([low, high], np.float16).view(np.uint32)


@pytest.mark.parametrize(
    ("operand", "low", "high"),
    [
        ("R1", 3, 5),
        ("-R1", -3, -5),
        ("R1.H0_H0", 3, 3),
        ("-R1.H1_H1", -5, -5),
        ("R1.H0_NH1", -5, 3),
        ("-R1.H0_NH1", 5, -3),
        ("|R1|.H1_H1", 5, 5),
    ],
)
def test_a_suffix_puts_halves_in_another_order(operand: str, low: float, high: float) -> None:
    made = worked_out(f"HADD2 R0, {operand}, -RZ", R1=halves(3, 5))
    assert made["R0"].view(np.float16).tolist() == [low, high]


def test_a_sum_of_halves_may_have_an_operand_of_single_precision() -> None:
    """1 + 2^-11 lies between two halves, and a bit more above the middle of them."""
    one = np.array([1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-23], np.float32)
    made = worked_out("HADD2 R0, R1.F32, -RZ.H0_H0", R1=one)["R0"].view(np.float16)
    assert made.tolist() == [1, 1, 1 + 2.0**-10, 1 + 2.0**-10]


def test_products_of_complex_halves_take_two_rows() -> None:
    """(1 + 2i)(3 + 4i) + 10 is 5 + 10i."""
    a, b, c = halves(1, 2), halves(3, 4), halves(10, 0)
    first = worked_out("HFMA2 R4, R1.H0_H0, R2, R3", R1=a, R2=b, R3=c)["R4"]
    made = worked_out("HFMA2 R4, R1.H1_H1, R2.H0_NH1, R4", R1=a, R2=b, R4=first)["R4"]
    assert made.view(np.float16).tolist() == [5, 10]


def test_the_sign_of_a_double_is_that_of_its_upper_word() -> None:
    upper = np.array([0x40240000], np.uint32)
    plain = worked_out("MUFU.RCP64H R0, R1", R1=upper)["R0"]
    negated = worked_out("MUFU.RCP64H R0, -R1", R1=upper)["R0"]
    assert (plain ^ negated).tolist() == [1 << 31]
    assert worked_out("MUFU.RCP64H R0, |R1|", R1=upper | 1 << 31)["R0"] == plain


KERNEL = """
__global__ void k(long long *twice, double *log_of, const long long *a, const double *x) {
    int i = threadIdx.x;
    twice[i] = a[i] * -2LL;
    log_of[i] = log(x[i]);
}
"""


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_numbers_and_carries_of_the_compilers_code() -> None:
    """The upper half of -inf is a NaN in single precision; 2^32 has a lower word of zero."""
    twice, logs = np.zeros(4, np.int64), np.zeros(4)
    a = np.array([1 << 32, 3, 0, -(1 << 62)], np.int64)
    with np.errstate(divide="ignore"):
        x = np.array([0.0, 1.0, np.inf, 2.0])
        cuda_source(KERNEL)["k"][1, 4](twice, logs, a, x)
        assert twice.tolist() == (a * -2).tolist()
        assert np.allclose(logs, np.log(x), rtol=1e-15)
