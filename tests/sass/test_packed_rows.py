"""Packed whole numbers, and other forms of integer rows, against integers of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sass.rows import worked_out

from gpusim.sass.decoding import Context, UnknownFormError, micros
from gpusim.sass.listing import row_of_text

U32 = np.uint32
ONES = 0xFFFFFFFF
EDGES = [
    0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFF8000, 0x80007FFF, 0x80000000, 0x7FFFFFFF, ONES,
    0x80808080, 0x7F807F80, 0xFF00FF00, 0x01020304, 0xDEADBEEF,
]  # fmt: skip
FIRST = np.repeat(np.array(EDGES, U32), len(EDGES))
SECOND = np.tile(np.array(EDGES, U32), len(EDGES))
THIRD = SECOND[::-1].copy() ^ U32(0x00010001)


def parts(word: int, bits: int, signed: bool) -> list[int]:
    """Return the numbers of so many bits in a word, the lowest first."""
    numbers = [int(word) >> place & (1 << bits) - 1 for place in range(0, 32, bits)]
    return [n - (1 << bits) if signed and n >> bits - 1 else n for n in numbers]


def packed(numbers: list[int]) -> int:
    """Return numbers, of which each wraps, as one word."""
    bits = 32 // len(numbers)
    return sum((n & (1 << bits) - 1) << bits * place for place, n in enumerate(numbers))


def of_each(bits: int, signed: bool, of: Callable[..., int], *words: Any) -> list[int]:
    """Return a function of the numbers that stand at the same place of some words."""
    rows = zip(*words, strict=True)
    return [
        packed([of(*n) for n in zip(*(parts(w, bits, signed) for w in row), strict=True)])
        for row in rows
    ]


def halves(value: int, signed: bool) -> int:
    return parts(value & 0xFFFF, 16, signed)[0]


@pytest.mark.parametrize("negated", [False, True])
def test_halves_are_added_and_subtracted_each_for_itself(negated: bool) -> None:
    sign = "-" if negated else ""
    made = worked_out(f"VIADD.16x2 R0, R1, {sign}R2", R1=FIRST, R2=SECOND)["R0"]
    want = of_each(16, False, lambda a, b: a - b if negated else a + b, FIRST, SECOND)
    assert made.tolist() == want


@pytest.mark.parametrize("kind", ["S16x2", "U16x2", "S16x2.RELU"])
@pytest.mark.parametrize(("least", "of"), [("PT", min), ("!PT", max)])
def test_extremes_of_halves(kind: str, least: str, of: Callable[..., int]) -> None:
    signed, floor = "S" in kind, (0,) if "RELU" in kind else ()
    given = {"R1": FIRST, "R2": SECOND, "R3": THIRD}
    two = worked_out(f"VIMNMX.{kind} R0, R1, R2, {least}", R1=FIRST, R2=SECOND)["R0"]
    assert two.tolist() == of_each(
        16, signed, lambda a, b: max(of(a, b), *floor, of(a, b)), FIRST, SECOND
    )
    three = worked_out(f"VIMNMX3.{kind} R0, R1, R2, R3, {least}", **given)["R0"]
    assert three.tolist() == of_each(
        16, signed, lambda *n: max(of(n), *floor, of(n)), FIRST, SECOND, THIRD
    )
    total = worked_out(f"VIADDMNMX.{kind} R0, R1, R2, R3, {least}", **given)["R0"]

    def bounded(a: int, b: int, c: int) -> int:
        best = of(halves(a + b, signed), c)
        return max(best, *floor, best)

    assert total.tolist() == of_each(16, signed, bounded, FIRST, SECOND, THIRD)


def test_which_half_is_the_first_operands_own_is_told_by_predicates() -> None:
    made = worked_out("VIMNMX.S16x2 R0, P0, P1, R1, R2, !PT", R1=FIRST, R2=SECOND)
    pairs = zip(FIRST, SECOND, strict=True)
    want = [[a >= b for a, b in zip(parts(x, 16, True), parts(y, 16, True), strict=True)]
            for x, y in pairs]  # fmt: skip
    assert made["P0"].tolist() == [low for low, _ in want]
    assert made["P1"].tolist() == [high for _, high in want]
    assert made["R0"].tolist() == of_each(16, True, max, FIRST, SECOND)


def test_two_results_in_one_register_are_refused() -> None:
    with pytest.raises(UnknownFormError):
        list(micros(row_of_text("VIMNMX.S16x2 R0, P0, P0, R1, R2, !PT"), 0, Context(0)))


def test_distances_of_bytes_by_themselves_and_added_up() -> None:
    apart = worked_out("VABSDIFF4.U8 R0, R1, R2, R3", R1=FIRST, R2=SECOND, R3=THIRD)["R0"]
    assert apart.tolist() == of_each(8, False, lambda a, b: abs(a - b), FIRST, SECOND)
    added = worked_out("VABSDIFF4.U8.ACC R0, R1, R2, R3", R1=FIRST, R2=SECOND, R3=THIRD)["R0"]
    assert added.tolist() == [
        sum(parts(one, 8, False)) + int(c) & ONES
        for one, c in zip(apart.tolist(), THIRD, strict=True)
    ]


@pytest.mark.parametrize("second", ["S8", "U8"])
@pytest.mark.parametrize("first", ["4A.S8", "4A.U8", "2A.LO.S16", "2A.HI.S16", "2A.LO.U16",
                                   "2A.HI.U16"])  # fmt: skip
def test_dot_products_of_packed_numbers_of_any_signs(first: str, second: str) -> None:
    made = worked_out(f"IDP.{first}.{second} R0, R1, R2, R3", R1=FIRST, R2=SECOND, R3=THIRD)
    bits, begin = 8 if "8" in first else 16, 2 if "HI" in first else 0

    def dot(a: int, b: int, c: int) -> int:
        bytes_of_b = parts(b, 8, second == "S8")[begin:]
        numbers = parts(a, bits, "S" in first)
        return sum(x * y for x, y in zip(numbers, bytes_of_b, strict=False)) + int(c) & ONES

    want = [dot(*row) for row in zip(FIRST, SECOND, THIRD, strict=True)]
    assert made["R0"].tolist() == want


def test_a_shifted_register_is_negated_behind_the_shift() -> None:
    made = worked_out("LEA R0, P0, -R1, R2, 0x1", R1=FIRST, R2=SECOND)
    totals = [
        ((int(a) << 1 & ONES) ^ ONES) + 1 + int(b) for a, b in zip(FIRST, SECOND, strict=True)
    ]
    assert made["R0"].tolist() == [total & ONES for total in totals]
    assert made["P0"].tolist() == [total > ONES for total in totals]


@pytest.mark.parametrize("sign", ["", "~"])
def test_a_scaled_sum_takes_a_carry(sign: str) -> None:
    carry = FIRST > SECOND
    text = f"LEA.X R0, P1, R1, {sign}R2, 0x3, P0"
    made = worked_out(text, R1=FIRST, R2=SECOND, P0=carry)
    rows = zip(FIRST, SECOND, carry, strict=True)
    totals = [(int(a) << 3 & ONES) + (int(b) ^ (ONES if sign else 0)) + bool(c) for a, b, c in rows]
    assert made["R0"].tolist() == [total & ONES for total in totals]
    assert made["P1"].tolist() == [total > ONES for total in totals]
    alone = worked_out(text.replace("P1, ", ""), R1=FIRST, R2=SECOND, P0=carry)
    assert alone["R0"].tolist() == made["R0"].tolist()


@pytest.mark.parametrize(
    ("mode", "places"),
    [
        ("F4E", [(0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)]),
        ("B4E", [(0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)]),
        ("RC8", [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)]),
        ("ECL", [(0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)]),
        ("ECR", [(0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)]),
        ("RC16", [(0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)]),
    ],
)
def test_bytes_in_the_orders_that_ptx_names(mode: str, places: list[tuple[int, ...]]) -> None:
    a, c = 0x13121110, 0x17161514
    which = np.array([0, 1, 2, 3, 7], U32)
    made = worked_out(f"PRMT.{mode} R0, R1, R2, R3", R1=U32(a), R2=which, R3=U32(c))["R0"]
    assert made.tolist() == [packed([0x10 + p for p in places[w & 3]]) for w in which.tolist()]


def test_extended_signs_of_counts_that_wrap() -> None:
    counts = np.array([0, 8, 32, 40], U32)
    made = worked_out("SGXT.W R0, R1, R2", R1=U32(0x1FF), R2=counts)["R0"]
    assert made.tolist() == [0, ONES, 0, ONES]
    made = worked_out("SGXT.W.U32 R0, R1, R2", R1=U32(0x1FF), R2=counts)["R0"]
    assert made.tolist() == [0, 0xFF, 0, 0xFF]


@pytest.mark.parametrize("kind", ["S8", "U8", "S16", "U16"])
def test_whole_numbers_saturate_to_narrower_ones(kind: str) -> None:
    limits = np.iinfo(np.dtype(f"{'i' if kind[0] == 'S' else 'u'}{int(kind[1:]) // 8}"))
    made = worked_out(f"I2I.{kind}.S32.SAT R0, R1", R1=FIRST)["R0"].view(np.int32)
    assert made.tolist() == FIRST.view(np.int32).clip(limits.min, limits.max).tolist()


def test_signs_of_registers_are_looked_up_as_predicates() -> None:
    a, b, c = (np.array([-(place >> k & 1) for place in range(8)]).astype(U32) for k in (2, 1, 0))
    text = "PLOP3.LUT P0, PT, R1.SIGN, R2.SIGN, R3.SIGN, 0x2, 0x0"
    assert worked_out(text, R1=a, R2=b, R3=c)["P0"].tolist() == [p == 1 for p in range(8)]
    with pytest.raises(UnknownFormError):
        list(micros(row_of_text(text.replace("R2.SIGN", "R2")), 0, Context(0)))
