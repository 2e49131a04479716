"""Sums in registers with their carries, against whole numbers of any length."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sass.rows import worked_out

from gpusim.sass.decoding import UnknownFormError

BASE = 1 << 32
EDGES = (0, 1, 2, 5, 0x7FFFFFFF, 0x80000000, 0x80000001, BASE - 2, BASE - 1)
WIDE_EDGES = (0, 1, BASE - 1, BASE, (BASE - 1) * BASE, BASE**2 - BASE - 1, BASE**2 - 1)


def seen(value: int, sign: str, bits: int = 32) -> int:
    """Return a term as an adder sees it: inverted, and with one more where it is negated."""
    return ((1 << bits) - 1 - value) + (sign == "-") if sign else value


def registers(**numbers: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {name: np.array(numbers, np.uint32) for name, numbers in numbers.items()}


@pytest.mark.parametrize(("first", "second"), [("", ""), ("-", ""), ("", "-")])
@pytest.mark.parametrize("shift", [0, 1, 3, 31])
@pytest.mark.parametrize("name", ["LEA", "ULEA"])
def test_a_scaled_term_is_negated_behind_its_shift(
    name: str, first: str, second: str, shift: int
) -> None:
    """A multiple of 2^32 that is subtracted leaves no borrow: it is zero in the lower word."""
    a, b = zip(*itertools.product(EDGES, EDGES), strict=True)
    u = "U" * (name == "ULEA")
    made = worked_out(
        f"{name} {u}R0, {u}P0, {first}{u}R1, {second}{u}R2, {shift:#x}",
        **registers(**{f"{u}R1": a, f"{u}R2": b}),
    )
    totals = [
        seen(x << shift & BASE - 1, first) + seen(y, second) for x, y in zip(a, b, strict=True)
    ]
    assert made[f"{u}R0"].tolist() == [total % BASE for total in totals]
    assert made[f"{u}P0"].tolist() == [total >= BASE for total in totals]


@pytest.mark.parametrize("first", ["", "-"])
def test_a_scaled_term_alone_has_a_carry_of_its_own(first: str) -> None:
    made = worked_out(f"LEA R0, P0, {first}R1, RZ, 0x1", **registers(R1=EDGES))
    totals = [seen(x << 1 & BASE - 1, first) for x in EDGES]
    assert made["R0"].tolist() == [total % BASE for total in totals]
    assert made["P0"].tolist() == [total >= BASE for total in totals]


@pytest.mark.parametrize("signs", ["   ", "-  ", " - ", "  -", "- -", " --", "~  ", "~ ~", " ~~"])
@pytest.mark.parametrize("carries", ["", ", P2, P3"])
def test_three_terms_have_two_carries(signs: str, carries: str) -> None:
    numbers = list(zip(*itertools.product(EDGES, EDGES[::2], EDGES[1::3]), strict=True))
    ones = [np.arange(len(numbers[0])) % 2 == 1, np.arange(len(numbers[0])) % 3 == 1]
    if carries:  # the upper words of terms that are negated are inverted
        signs = signs.replace("-", "~")
    terms = ", ".join(f"{s}R{k}".strip() for k, s in enumerate(signs, start=1))
    x = ".X" if carries else ""
    made = worked_out(
        f"IADD3{x} R0, P0, P1, {terms}{carries}",
        **registers(**{f"R{k}": one for k, one in enumerate(numbers, start=1)}),
        P2=ones[0],
        P3=ones[1],
    )
    totals = [
        sum(seen(v, s.strip()) for v, s in zip(values, signs, strict=True))
        for values in zip(*numbers, strict=True)
    ]
    if carries:
        totals = [t + int(p) + int(q) for t, p, q in zip(totals, *ones, strict=True)]
    assert made["R0"].tolist() == [total % BASE for total in totals]
    assert (made["P0"] + 0 + made["P1"]).tolist() == [total // BASE for total in totals]


@pytest.mark.parametrize("sign", ["", "-", "~"])
@pytest.mark.parametrize("carry", ["", ", P1"])
@pytest.mark.parametrize("name", ["IMAD.WIDE.U32", "IMAD.HI.U32"])
def test_a_product_and_an_addend_of_64_bits_have_a_carry(name: str, carry: str, sign: str) -> None:
    a, b, c = zip(*itertools.product(EDGES, EDGES[::3], WIDE_EDGES), strict=True)
    one = np.arange(len(a)) % 2 == 0
    x = ".X" if carry else ""
    made = worked_out(
        f"{name}{x} R0, P0, R2, R3, {sign}R4{carry}",
        **registers(R2=a, R3=b, R4=[v % BASE for v in c], R5=[v // BASE for v in c]),
        P1=one,
    )
    totals = [p * q + seen(r, sign, 64) for p, q, r in zip(a, b, c, strict=True)]
    if carry:
        totals = [t + int(p) for t, p in zip(totals, one, strict=True)]
    words = (0, 32) if "WIDE" in name else (32,)
    for register, place in enumerate(words):
        assert made[f"R{register}"].tolist() == [t >> place & BASE - 1 for t in totals]
    assert made["P0"].tolist() == [t >= BASE**2 for t in totals]


@pytest.mark.parametrize("sign", ["", "-", "~"])
@pytest.mark.parametrize("shift", [1, 16, 31])
def test_the_upper_word_of_a_scaled_sum_has_a_carry(sign: str, shift: int) -> None:
    a, b, c = zip(*itertools.product(EDGES, EDGES[::2], EDGES[::3]), strict=True)
    one = np.arange(len(a)) % 2 == 0
    made = worked_out(
        f"LEA.HI.X R0, P0, R1, {sign}R2, R3, {shift:#x}, P1",
        **registers(R1=a, R2=b, R3=c),
        P1=one,
    )
    highs = [((z << 32 | x) << shift >> 32) % BASE for x, z in zip(a, c, strict=True)]
    totals = [h + seen(y, sign) + int(p) for h, y, p in zip(highs, b, one, strict=True)]
    assert made["R0"].tolist() == [total % BASE for total in totals]
    assert made["P0"].tolist() == [total >= BASE for total in totals]


@pytest.mark.parametrize(
    "text",
    [
        "IADD3 R0, P0, R1, R2, R3",
        "IADD3 R0, P0, -R1, -R2, RZ",
        "IADD3 R0, P0, P1, -R1, -R2, -R3",
        "LEA R0, P0, -R1, -R2, 0x1",
        "IMAD.WIDE R0, P0, R2, R3, R4",
        "IMAD.HI R0, P0, R2, R3, R4",
        "IADD3.X R0, R1, R2, R3",
        "IADD3 R0, R1, R2, R3, P0, P1",
    ],
)
def test_carries_that_a_row_cannot_name_are_refused(text: str) -> None:
    with pytest.raises(UnknownFormError):
        worked_out(text)
