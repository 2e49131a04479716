"""Whole numbers: sums with carries, products, shifts, comparisons, bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.isa.lookup_tables import looked_up
from gpusim.isa.ops import Array
from gpusim.sass.form import Form, Signs
from gpusim.sass.table import add, row

U32, U64 = np.uint32, np.uint64
ONES = U32(0xFFFFFFFF)
LOW = U64(0xFFFFFFFF)
_32 = U64(32)

COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
}
COMBINATIONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "AND": np.logical_and,
    "OR": np.logical_or,
    "XOR": np.logical_xor,
}


def one_of(form: Form, table: Mapping[str, Any]) -> Any:
    """Return the entry of a table that one of the modifiers names."""
    return next(entry for name, entry in table.items() if name in form.modifiers)


def _term(value: Array, signs: Signs) -> Array:
    if signs.inverted:
        return np.bitwise_not(value)
    return np.negative(value) if signs.negated else value


def _wide_term(value: Array, signs: Signs) -> Array:
    """Return a term as the adder sees it: what is negated is inverted, and one added."""
    if signs.inverted:
        return np.asarray(np.bitwise_not(value).astype(U64))
    if signs.negated:
        return np.asarray(np.bitwise_not(value).astype(U64) + U64(1))
    return np.asarray(value.astype(U64))


def _has_more_carries(form: Form) -> bool:
    """Say whether a row asks for carries of a sum that may have more than it names.

    Registers give up to 2^32 - 1, those that are negated one more, also if they are zero.
    """
    asked = len([number for number in form.kept if number])
    terms = [signs for code, signs in zip(form.sources, form.signs, strict=True) if code == "r"]
    most = sum(1 << 32 if one.negated else 0 if one.is_zero else ONES.item() for one in terms)
    return 0 < asked < most + ("p" in form.sources) >> 32


def _sum(terms: list[tuple[Array, Signs]]) -> Array:
    """Return the sum of 32-bit terms, leaving out those that are the register of zeros."""
    wanted = [(value, signs) for value, signs in terms if not signs.is_zero or signs.inverted]
    if not wanted:
        return terms[0][0]
    total = _term(*wanted[0])
    for value, signs in wanted[1:]:
        total = total - value if signs.negated else total + _term(value, signs)
    return total


@row(
    "IADD3 UIADD3",
    "alu",
    "u|pp",
    "rrr|pp",
    "X",
    signs="-~ -~ -~",
    affine="sum",
    refuses=_has_more_carries,
)
def add_three(form: Form, a: Array, b: Array, c: Array, *carries: Array) -> Any:
    terms = list(zip((a, b, c), form.signs, strict=False))
    if form.kept == (0,):
        total = _sum(terms)
        for carry in carries:
            total = total + carry.astype(U32)
        return total if len(form.results) == 1 else (total,)
    wide = np.asarray(sum(_wide_term(value, signs) for value, signs in terms))
    for carry in carries:
        wide = wide + carry.astype(U64)
    over = np.asarray(wide >> _32)
    return wide.astype(U32), over > 0, over > 1


@row("VIADD", "fma", "u", "rr", signs="- -", affine="sum")
def add_two(form: Form, a: Array, b: Array) -> Array:
    return _sum([(a, form.signs[0]), (b, form.signs[1])])


@row("IMAD UIMAD", "imad", "u", "rrr|p", "MOV U32 IADD SHL X", signs="- - -~", affine="product")
def multiply_add(form: Form, a: Array, b: Array, c: Array, *carry: Array) -> Array:
    first, second, third = form.signs[:3]
    if first.is_zero or second.is_zero:
        total = _term(c, third)
    else:
        total = _term(a, first) * _term(b, second)
        if not third.is_zero:
            total = total + _term(c, third)
    return total + carry[0].astype(U32) if carry else total


def _has_carry_of_signs(form: Form) -> bool:
    """Say whether a row asks for the carry of a signed product, which no compiler does."""
    return form.kept != (0,) and "U32" not in form.modifiers


def _wide_sum(product: Array, c: Array, signs: Signs, carry: tuple[Array, ...]) -> Array:
    """Return the sum of a product, an addend of 64 bits and a carry."""
    total = product
    if not signs.is_zero:
        c = np.bitwise_not(c) if signs.inverted else c
        total = product - c if signs.negated else product + c
    return total + carry[0].astype(U64) if carry else total


def _wide_carry(product: Array, c: Array, signs: Signs, carry: tuple[Array, ...]) -> Array:
    """Return the carry of that sum, in which what is negated is inverted, and one added."""
    total = product + (np.bitwise_not(c) if signs.inverted or signs.negated else c)
    ones = sum((one.astype(U64) for one in carry), start=U64(signs.negated))
    return np.asarray((total < product) | (total + ones < total))


@row(
    "IMAD.WIDE UIMAD.WIDE",
    "imad_wide",
    "U|p",
    "xxR|p",
    "U32 X",
    signs=". . -~",
    affine="product",
    refuses=_has_carry_of_signs,
)
def multiply_add_wide(form: Form, a: Array, b: Array, c: Array, *carry: Array) -> Any:
    product = a.astype(np.int64).view(U64) * b.astype(np.int64).view(U64)
    total = _wide_sum(product, c, form.signs[2], carry)
    if form.kept == (0,):
        return (total,) if len(form.results) > 1 else total
    return total, _wide_carry(product, c, form.signs[2], carry)


@row(
    "IMAD.HI UIMAD.HI",
    "imad_wide",
    "u|p",
    "xxR|p",
    "U32 X",
    signs=". . -~",
    refuses=_has_carry_of_signs,
)
def multiply_add_high(form: Form, a: Array, b: Array, c: Array, *carry: Array) -> Any:
    product = a.astype(np.int64).view(U64) * b.astype(np.int64).view(U64)
    high = (_wide_sum(product, c, form.signs[2], carry) >> _32).astype(U32)
    if form.kept == (0,):
        return (high,) if len(form.results) > 1 else high
    return high, _wide_carry(product, c, form.signs[2], carry)


@row("LEA ULEA", "alu", "u|p", "rr#|p", "X", signs="- -~", affine="sum", refuses=_has_more_carries)
def shift_add(form: Form, a: Array, b: Array, *carry: Array) -> Any:
    """Add a shifted register; it is negated behind the shift, which its carry shows."""
    shifted = np.left_shift(a, U32(form.numbers[0]))
    if form.kept == (0,) and not carry:
        total = _sum([(shifted, form.signs[0]), (b, form.signs[1])])
        return (total,) if len(form.results) > 1 else total
    wide = _wide_term(shifted, form.signs[0]) + _wide_term(b, form.signs[1])
    if carry:
        wide = wide + carry[0].astype(U64)
    total = wide.astype(U32)
    return total if len(form.results) == 1 else (total, wide > LOW)


@row("LEA.HI ULEA.HI", "alu", "u|p", "uru#|p", "X", signs=". -~", affine="high")
def high_shift_add(form: Form, a: Array, b: Array, c: Array, *carry: Array) -> Any:
    wide = (c.astype(U64) << _32) | a
    return _high_part(form, wide, b, carry)


@row("LEA.HI.SX32 ULEA.HI.SX32", "alu", "u|p", "ir#|p", "X", signs=". -~", affine="high")
def high_shift_add_extended(form: Form, a: Array, b: Array, *carry: Array) -> Any:
    wide = a.astype(np.int64).view(U64)
    return _high_part(form, wide, b, carry)


def _high_part(form: Form, wide: Array, b: Array, carry: tuple[Array, ...]) -> Any:
    """Return the bits that a shift moves above the low 32, added to `b`."""
    high = (np.left_shift(wide, U64(form.numbers[0])) >> _32).astype(U32)
    total = high.astype(U64) + _wide_term(b, form.signs[1])
    if carry:
        total = total + carry[0].astype(U64)
    if len(form.results) == 1:
        return total.astype(U32)
    return total.astype(U32), total > LOW


@row("SHF.L.U32 USHF.L.U32", "alu", "u", "uuu", "S32", affine="first")
def shift_left(form: Form, a: Array, count: Array, c: Array) -> Array:
    over = count > 31
    if not np.count_nonzero(over):
        return np.left_shift(a, count)
    return np.where(over, U32(0), np.left_shift(a, np.where(over, U32(0), count)))


@row("SHF.R.U32.HI USHF.R.U32.HI", "alu", "u", "uuu")
def shift_right(form: Form, a: Array, count: Array, c: Array) -> Array:
    over = count > 31
    if not np.count_nonzero(over):
        return np.right_shift(c, count)
    return np.where(over, U32(0), np.right_shift(c, np.where(over, U32(0), count)))


@row("SHF.R.S32.HI USHF.R.S32.HI", "alu", "u", "uui")
def shift_right_signed(form: Form, a: Array, count: Array, c: Array) -> Array:
    return np.right_shift(c, np.minimum(count, U32(31)).astype(np.int32)).view(U32)


@row("SHF USHF", "alu", "u", "uuu", "L R HI U32 S32 U64 S64 W")
def funnel_shift(form: Form, a: Array, count: Array, c: Array) -> Array:
    """Shift two registers as one of 64 bits; counts above the width shift all of it out."""
    bits = 64 if form.modifiers & {"U64", "S64"} else 32
    value = (c.astype(U64) << _32) | a
    amount = count & U32(bits - 1) if "W" in form.modifiers else np.minimum(count, U32(bits))
    shift = amount.astype(U64)
    if "L" in form.modifiers:
        moved = np.where(shift > U64(63), U64(0), np.left_shift(value, np.minimum(shift, U64(63))))
    elif form.modifiers & {"S32", "S64"}:
        moved = np.right_shift(value.view(np.int64), np.minimum(shift, U64(63)).view(np.int64))
        moved = moved.view(U64)
    else:
        moved = np.where(shift > U64(63), U64(0), np.right_shift(value, np.minimum(shift, U64(63))))
    return (moved >> _32 if "HI" in form.modifiers else moved).astype(U32)


@row("LOP3 ULOP3", "alu", "|pu", "uuu#p", "LUT PAND")
def logic(form: Form, a: Array, b: Array, c: Array, also: Array) -> Any:
    """Look up each bit; a predicate says whether any is set, or else what it is given."""
    bits = looked_up(form.numbers[0], a, b, c)
    if len(form.results) == 1:
        return bits
    combine = np.logical_and if "PAND" in form.modifiers else np.logical_or
    return combine(bits != 0, also), bits


def _extended(result: Array, a: Array, b: Array, low: Array, form: Form) -> Array:
    """Return the comparison of 64 bits from that of the high words and that of the low ones."""
    if "EQ" in form.modifiers:
        return np.asarray(result & low)
    if "NE" in form.modifiers:
        return np.asarray(result | low)
    return np.where(a == b, low, result)


@row(
    "ISETP UISETP", "alu", "pp", "xxp|p", "LT LE GT GE EQ NE AND OR XOR U32 EX", affine="comparison"
)
def compare(form: Form, a: Array, b: Array, also: Array, *low: Array) -> Any:
    result = one_of(form, COMPARISONS)(a, b)
    if low:
        result = _extended(result, a, b, low[0], form)
    combine = one_of(form, COMBINATIONS)
    if form.kept == (0,):
        return combine(result, also), None
    return combine(result, also), combine(~result, also)


@row("IABS", "alu", "i", "i")
def absolute(form: Form, a: Array) -> Array:
    return np.abs(a)


def _of_both(form: Form, low: Array, high: Array, least: Array) -> Array:
    """Return the lower or the higher number, with RELU no less than zero."""
    result = np.where(least, low, high)
    if "RELU" in form.modifiers:
        result = np.maximum(result, result.dtype.type(0))
    return np.asarray(result.view(U32))


@row("IMNMX VIMNMX UIMNMX UVIMNMX", "alu", "u", "xxp", "U32 RELU")
def minimum_maximum(form: Form, a: Array, b: Array, least: Array) -> Array:
    return _of_both(form, np.minimum(a, b), np.maximum(a, b), least)


@row("VIMNMX3", "alu", "u", "xxxp", "U32 RELU")
def minimum_maximum_of_three(form: Form, a: Array, b: Array, c: Array, least: Array) -> Array:
    low, high = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
    return _of_both(form, low, high, least)


@row("VIADDMNMX", "alu", "u", "xxxp", "U32 RELU", signs=". -")
def sum_minimum_maximum(form: Form, a: Array, b: Array, c: Array, least: Array) -> Array:
    total = a + b
    return _of_both(form, np.minimum(total, c), np.maximum(total, c), least)


@row("VABSDIFF", "alu", "u", "xxu", "U32")
def absolute_difference(form: Form, a: Array, b: Array, c: Array) -> Array:
    return np.where(a > b, a - b, b - a).view(U32) + c


@row("SEL USEL", "alu", "u", "uup", affine="select")
def select(form: Form, a: Array, b: Array, condition: Array) -> Array:
    return np.where(condition, a, b)


@row("R2UR", "alu", "u", "u", affine="sum", kind="to_uniform", shape="q?oo")
@row("MOV UMOV", "alu", "u", "u", affine="sum")
def move(form: Form, a: Array) -> Array:
    return a


@row("POPC UPOPC", "xu", "u", "u", signs="~")
def population_count(form: Form, a: Array) -> Array:
    return np.asarray(np.bitwise_count(a), dtype=U32)


def _highest(a: Array) -> Array:
    """Return the position of the highest bit that is set, all ones where none is."""
    bits = a.copy()
    for step in (1, 2, 4, 8, 16):
        bits |= bits >> U32(step)
    return np.asarray(np.bitwise_count(bits), dtype=U32) - U32(1)


@row("FLO.U32 UFLO.U32", "xu", "u", "u", "SH", signs="~")
def find_leading_one(form: Form, a: Array) -> Array:
    place = _highest(a)
    return np.where(a == 0, ONES, U32(31) - place) if "SH" in form.modifiers else place


@row("FLO UFLO", "xu", "u", "i", "SH", signs="~")
def find_leading_bit(form: Form, a: Array) -> Array:
    """Find the highest bit that differs from the sign."""
    return np.asarray(find_leading_one(form, np.where(a < 0, ~a, a).view(U32)))


@row("BREV UBREV", "xu", "u", "u")
def reverse_bits(form: Form, a: Array) -> Array:
    out = np.zeros_like(a)
    for _ in range(32):
        out = (out << U32(1)) | (a & U32(1))
        a = a >> U32(1)
    return out


@row("PRMT UPRMT", "alu", "u", "uuu")
def permute_bytes(form: Form, a: Array, selector: Array, c: Array) -> Array:
    """Choose four of eight bytes; a selector's fourth bit spreads a byte's sign instead."""
    value = (c.astype(U64) << _32) | a
    out = np.zeros((1, 1, 1), dtype=U32)
    for place in range(4):
        chosen = (selector >> U32(4 * place)) & U32(15)
        byte = ((value >> (U64(8) * (chosen & U32(7)).astype(U64))) & U64(255)).astype(U32)
        sign = np.where(byte > 127, U32(255), U32(0))
        out = out | (np.where(chosen > 7, sign, byte) << U32(8 * place))
    return out


@row("I2I.S8.S32.SAT I2I.U8.S32.SAT I2I.S16.S32.SAT I2I.U16.S32.SAT", "xu", "i", "i")
def saturate(form: Form, a: Array) -> Array:
    """Return the nearest number of a narrower type, with its sign in the upper bits."""
    name = form.name.split(".")[1]
    limits = np.iinfo(np.dtype(f"{'i' if name[0] == 'S' else 'u'}{int(name[1:]) // 8}"))
    return np.clip(a, np.int32(limits.min), np.int32(limits.max))


# Selectors of the modes of PRMT, by the two lowest bits of its second operand (PTX ISA, prmt).
BYTE_ORDERS: Mapping[str, tuple[int, int, int, int]] = {
    "F4E": (0x3210, 0x4321, 0x5432, 0x6543),
    "B4E": (0x5670, 0x6701, 0x7012, 0x0123),
    "RC8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ECL": (0x3210, 0x3211, 0x3222, 0x3333),
    "ECR": (0x0000, 0x1110, 0x2210, 0x3210),
    "RC16": (0x1010, 0x3232, 0x1010, 0x3232),
}


@row(" ".join(f"PRMT.{mode}" for mode in BYTE_ORDERS), "alu", "u", "uuu")
def permute_bytes_by_mode(form: Form, a: Array, place: Array, c: Array) -> Array:
    selectors = np.array(one_of(form, BYTE_ORDERS), dtype=U32)
    return np.asarray(permute_bytes(form, a, selectors[place & U32(3)], c))


@row("SGXT USGXT", "alu", "u", "uu", "U32 W")
def sign_extend(form: Form, a: Array, count: Array) -> Array:
    if "W" in form.modifiers:
        count = count & U32(31)
    left = U32(32) - np.minimum(count, U32(32))
    shifted = np.where(left > 31, U32(0), a << np.minimum(left, U32(31)))
    if "U32" in form.modifiers:
        return np.where(left > 31, U32(0), shifted >> np.minimum(left, U32(31)))
    signed = shifted.view(np.int32) >> np.minimum(left, U32(31)).astype(np.int32)
    return np.where(left > 31, np.int32(0), signed).view(U32)


@row("BMSK UBMSK", "alu", "u", "uu", "W")
def bit_mask(form: Form, begin: Array, count: Array) -> Array:
    if "W" in form.modifiers:
        begin, count = begin & U32(31), count & U32(31)
    many = np.minimum(count, U32(32)).astype(U64)
    bits = ((U64(1) << many) - U64(1)) << np.minimum(begin, U32(32)).astype(U64)
    return bits.astype(U32)


add("NOP", "none", kind="compute", op="NOP")
