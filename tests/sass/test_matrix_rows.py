"""Matrix products of a warp and fragments of matrices, against the PTX ISA's places of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim.isa import matrices
from gpusim.isa.matrices import MatrixProduct
from gpusim.sass.decoding import Context, UnknownFormError, micros
from gpusim.sass.listing import row_of_text
from gpusim.typing import Array

F16, F32, F64, U32 = np.float16, np.float32, np.float64, np.uint32


def form_of(text: str, arch: int = 90) -> MatrixProduct:
    """Return the product that a row of machine code makes."""
    [micro] = micros(row_of_text(text), 0, Context(0, arch=arch))
    assert isinstance(micro.detail, MatrixProduct)
    assert len(micro.sources) == sum(micro.detail.registers)
    assert len(micro.results) == micro.detail.registers[2]
    return micro.detail


# Where the PTX ISA puts element i of a lane's fragment: (row, column), of B (k, column).
def place_in_a_16816(lane: int, i: int) -> tuple[int, int]:
    row = lane // 4 + (0 if i < 2 or 4 <= i < 6 else 8)
    return row, lane % 4 * 2 + (i & 1) + (8 if i >= 4 else 0)


def place_in_b_16816(lane: int, i: int) -> tuple[int, int]:
    return lane % 4 * 2 + (i & 1) + (8 if i >= 2 else 0), lane // 4


def place_in_a_1688_tf32(lane: int, i: int) -> tuple[int, int]:
    return lane // 4 + (8 if i in (1, 3) else 0), lane % 4 + (4 if i >= 2 else 0)


def place_in_b_1688_tf32(lane: int, i: int) -> tuple[int, int]:
    return lane % 4 + (4 if i == 1 else 0), lane // 4


def place_in_a_16832_s8(lane: int, i: int) -> tuple[int, int]:
    row = lane // 4 + (0 if i < 4 or 8 <= i < 12 else 8)
    return row, lane % 4 * 4 + (i & 3) + (16 if i >= 8 else 0)


def place_in_b_16832_s8(lane: int, i: int) -> tuple[int, int]:
    return lane % 4 * 4 + (i & 3) + (16 if i >= 4 else 0), lane // 4


def place_in_a_16816_f64(lane: int, i: int) -> tuple[int, int]:
    return lane // 4 + (8 if i % 2 else 0), 2 * i + lane % 4 - (2 if i % 2 else 0)


def place_in_b_16816_f64(lane: int, i: int) -> tuple[int, int]:
    return lane % 4 + 4 * i, lane // 4


def place_in_c(lane: int, i: int) -> tuple[int, int]:
    return lane // 4 + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)


def place_in_a_8832_s4(lane: int, i: int) -> tuple[int, int]:
    return lane // 4, lane % 4 * 8 + i


def place_in_b_8832_s4(lane: int, i: int) -> tuple[int, int]:
    return lane % 4 * 8 + i, lane // 4


FLOATS = {"f16": F16, "f32": F32, "f64": F64, "tf32": F32}


def registers(matrix: Array, kind: str, place: Any) -> list[Array]:
    """Return a fragment's registers, shaped (1, 1, 32) each."""
    count = matrix.size // 32
    held = np.array([[matrix[place(lane, i)] for i in range(count)] for lane in range(32)])
    if kind in FLOATS:
        words = np.ascontiguousarray(held, dtype=FLOATS[kind]).view(U32)
    elif kind == "s32":
        words = held.astype(np.int32).view(U32)
    elif kind[1:] == "8":
        words = np.ascontiguousarray(held.astype(np.uint8)).view(U32)
    else:
        bits = int(kind[1:])
        per = 32 // bits
        parts = (held.astype(np.int64) & (1 << bits) - 1).reshape(32, -1, per)
        words = (parts << bits * np.arange(per)).sum(axis=2).astype(U32)
    return [words[:, n].reshape(1, 1, 32) for n in range(words.shape[1])]


@pytest.mark.parametrize(
    ("text", "in_a", "in_b"),
    [
        ("HMMA.16816.F32 R4, R8, R12, R4", place_in_a_16816, place_in_b_16816),
        ("HMMA.16816.F16 R4, R8, R12, R4", place_in_a_16816, place_in_b_16816),
        ("HMMA.1688.F32.TF32 R4, R8, R12, R4", place_in_a_1688_tf32, place_in_b_1688_tf32),
        ("IMMA.16832.S8.U8 R4, R8.ROW, R12.COL, R4", place_in_a_16832_s8, place_in_b_16832_s8),
        ("IMMA.8832.S4.U4 R4, R8.ROW, R12.COL, R4", place_in_a_8832_s4, place_in_b_8832_s4),
        ("DMMA.16x8x16 R4, R8, R12, R4", place_in_a_16816_f64, place_in_b_16816_f64),
    ],
)
def test_elements_lie_where_the_ptx_isa_says(text: str, in_a: Any, in_b: Any) -> None:
    form, draw = form_of(text), np.random.default_rng(1)
    low_a, low_b = (0 if kind[0] == "u" else -8 for kind in (form.a, form.b))
    a = draw.integers(low_a, 8, (form.m, form.k))
    b = draw.integers(low_b, 8, (form.k, form.n))
    c = draw.integers(-50, 50, (form.m, form.n))
    words = [
        *registers(a, form.a, in_a), *registers(b, form.b, in_b),
        *registers(c, form.sums, place_in_c),
    ]  # fmt: skip
    made = matrices.product(form, words)
    expected = registers(a @ b + c, form.sums, place_in_c)
    assert [one.tolist() for one in made] == [one.tolist() for one in expected]


def in_first_place(form: MatrixProduct, pairs: list[tuple[float, float]], c: float) -> Any:
    """Return the first element of D for some products along k, the rest zero."""
    a, b = np.zeros((form.m, form.k)), np.zeros((form.k, form.n))
    for k, (left, right) in enumerate(pairs):
        a[0, k], b[k, 0] = left, right
    first = np.zeros((form.m, form.n))
    first[0, 0] = c
    words = [
        *registers(a, form.a, place_in_a_16816), *registers(b, form.b, place_in_b_16816),
        *registers(first, form.sums, place_in_c),
    ]  # fmt: skip
    [value] = matrices.product(form, words)[0][0, 0, :1].view(FLOATS[form.sums])[:1]
    return float(value)


BIG = (4096.0, 4096.0)  # 2^24 as a product


def test_products_are_cut_off_behind_bits_of_the_largest() -> None:
    ampere, hopper = (form_of("HMMA.16816.F32 R4, R8, R12, R4", arch) for arch in (80, 90))
    cancelling = [BIG, (-4096.0, 4096.0), (0.75, 1.0), (0.75, 1.0)]
    assert in_first_place(ampere, cancelling, 0) == 0  # 24 bits: down to 1
    assert in_first_place(hopper, cancelling, 0) == 1  # 25 bits: down to one half
    assert in_first_place(hopper, [BIG, (-1.0, 0.75)], 0) == 2.0**24 - 1  # towards zero, both times


def test_steps_of_a_sum_are_rounded_one_after_the_other() -> None:
    ampere, hopper = (form_of("HMMA.16816.F32 R4, R8, R12, R4", arch) for arch in (80, 90))
    apart = [BIG, *[(0.0, 0.0)] * 7, (-4096.0, 4096.0), (1.0, 0.5)]
    small_first = [(0.5, 1.0), *[(0.0, 0.0)] * 7, BIG, (-4096.0, 4096.0)]
    assert in_first_place(hopper, apart, 0) == 0.5  # 16 products at once
    assert in_first_place(ampere, apart, 0) == 0  # 8: the sum is 2^24 before one half comes
    assert in_first_place(ampere, small_first, 0) == 0


def test_sums_in_half_precision_are_rounded_to_the_nearest() -> None:
    form = form_of("HMMA.16816.F16 R4, R8, R12, R4")
    assert in_first_place(form, [(1.0, 1.0)], 2048) == 2048  # half way: to the even one
    assert in_first_place(form, [(1.0, 1.0)], 2050) == 2052
    assert in_first_place(form, [(1.0, 1.0), (0.125, 0.125)], 2048) == 2050
    assert in_first_place(form, [(256.0, 256.0)], 0) == np.inf


def test_numbers_that_are_none_have_one_pattern() -> None:
    form = form_of("HMMA.16816.F32 R4, R8, R12, R4")
    assert in_first_place(form, [(np.inf, 1.0)], -1.0) == np.inf
    assert np.isnan(in_first_place(form, [(np.inf, 1.0), (-np.inf, 1.0)], 0))
    assert np.isnan(in_first_place(form, [(np.inf, 0.0)], 0))


def test_sums_of_integers_wrap_or_saturate() -> None:
    for text, sums in (("", (-(2**31) + 126, 2**31 - 128)), (".SAT", (2**31 - 1, -(2**31)))):
        form = form_of(f"IMMA.8816.S8.S8{text} R4, R8.ROW, R12.COL, R4")
        a, b = np.zeros((8, 16)), np.zeros((16, 8))
        c = np.zeros((8, 8), np.int64)
        a[0, 0], b[0, 0], c[0, 0] = 127, 1, 2**31 - 1
        a[1, 1], b[1, 0], c[1, 0] = -128, 1, -(2**31)
        bytes_of = place_in_a_16832_s8, place_in_b_16832_s8
        words = [registers(a, "s8", bytes_of[0]), registers(b, "s8", bytes_of[1])]
        first, _ = matrices.product(form, [*words[0], *words[1], *registers(c, "s32", place_in_c)])
        held = first.view(np.int32)[0, 0]
        assert (held[0], held[4]) == sums


def test_single_bits_are_combined_and_counted() -> None:
    ones, some = np.full((1, 1, 32), 0xFFFFFFFF, U32), np.full((1, 1, 32), 0x0000FF01, U32)
    zero = np.zeros((1, 1, 32), U32)
    for operation, count in (("AND", 4 * 9), ("XOR", 4 * 23)):
        form = form_of(f"BMMA.88128.{operation}.POPC R4, R8.ROW, R12.COL, R4")
        made = matrices.product(form, [ones, some, zero, zero])
        assert [one.tolist() for one in made] == [[[[count] * 32]]] * 2


def test_doubles_are_added_one_after_the_other() -> None:
    form = form_of("DMMA.8x8x4 R4, R8, R12, R4")
    a, b, c = np.zeros((8, 4)), np.ones((4, 8)), np.zeros((8, 8))
    a[0] = [2.0**53, 1, 1, -(2.0**53)]
    words = [
        *registers(a, "f64", lambda lane, i: (lane // 4, lane % 4)),
        *registers(b, "f64", lambda lane, i: (lane % 4, lane // 4)),
        *registers(c, "f64", place_in_c),
    ]
    low, high, *_ = matrices.product(form, words)
    assert matrices._joined([low, high])[0, 0, 0].view(F64) == 0  # 2^53 + 1 is rounded to 2^53


def test_eight_bits_are_those_of_their_types() -> None:
    e4m3, e5m2 = (matrices.ELEMENTS[kind].values for kind in ("e4m3", "e5m2"))
    assert e4m3(np.array([0x01, 0x38, 0x7E, 0xFE, 0x80])).tolist() == [2.0**-9, 1, 448, -448, 0]
    assert e5m2(np.array([0x01, 0x3C, 0x7B, 0x7C, 0xFC])).tolist() == [
        2.0**-16, 1, 57344, np.inf, -np.inf,
    ]  # fmt: skip
    assert np.isnan(e4m3(np.array([0x7F, 0xFF]))).all()
    assert np.isnan(e5m2(np.array([0x7D, 0xFF]))).all()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_fragments_are_those_of_ldmatrix(count: int, transposed: bool) -> None:
    halves = np.random.default_rng(2).integers(0, 1 << 16, (32, 8)).astype(np.uint16)
    words = [halves.view(U32)[:, n].reshape(1, 1, 32) for n in range(4)]
    made = matrices.from_rows(words, count, transposed=transposed)
    assert len(made) == count
    for number, fragment in enumerate(made):
        matrix = halves[8 * number : 8 * number + 8]
        matrix = matrix.T if transposed else matrix
        for lane in range(32):
            low, high = matrix[lane // 4, 2 * (lane % 4)], matrix[lane // 4, 2 * (lane % 4) + 1]
            assert int(fragment[0, 0, lane]) == int(low) | int(high) << 16
    back = matrices.to_rows(made, transposed=transposed)
    for n in range(4):
        assert back[n][0, 0, : 8 * count].tolist() == words[n][0, 0, : 8 * count].tolist()


@pytest.mark.parametrize(
    "text",
    [
        "HMMA.16816.F32 R4, R8.ROW, R12, R4",
        "IMMA.16816.S8.S8 R4, R8.COL, R12.ROW, R4",
        "HMMA.16832.F32 R4, R8, R12, R4",
        "LDSM.16 R4, [R8]",
        "LDSM.M88.4 R4, [R8]",
        "LDSM.16.M88.2.4 R4, [R8]",
    ],
)
def test_forms_that_are_not_known_are_refused(text: str) -> None:
    with pytest.raises(UnknownFormError):
        list(micros(row_of_text(text), 0, Context(0)))
