"""Whole numbers: sums with carries, products, shifts, comparisons, bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.isa import integers
from gpusim.isa.comparisons import COMPARISONS, least_or_most
from gpusim.isa.lookup_tables import looked_up
from gpusim.isa.ops import OPS, plain
from gpusim.sass.form import Form, Signs
from gpusim.sass.table import add, row
from gpusim.typing import Array

U32, U64 = np.uint32, np.uint64
ONES = U32(0xFFFFFFFF)
LOW = U64(0xFFFFFFFF)
_32 = U64(32)

COMPARES = {name.upper(): compare for name, compare in COMPARISONS.items()}
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
    """Return a term as the adder sees it: a negated one is inverted, and one added."""
    if signs.inverted:
        return np.asarray(np.bitwise_not(value).astype(U64))
    if signs.negated:
        return np.asarray(np.bitwise_not(value).astype(U64) + U64(1))
    return np.asarray(value.astype(U64))


def _has_more_carries(form: Form) -> bool:
    """Return whether a row requests carries of a sum that may have more than it names.

    Registers give up to 2^32 - 1, negated ones one more, also if they are zero.
    """
    asked = len([number for number in form.kept if number])
    terms = [signs for code, signs in zip(form.sources, form.signs, strict=True) if code == "r"]
    most = sum(1 << 32 if one.negated else 0 if one.is_zero else ONES.item() for one in terms)
    return 0 < asked < most + ("p" in form.sources) >> 32


@row(
    "IADD3 UIADD3", OPS["IADD3"], "u|pp", "rrr|pp", "X", signs="-~ -~ -~", refuses=_has_more_carries
)
@row("IADD", OPS["IADD3"], "u|p", "rr|p", "X", signs="-~ -~", refuses=_has_more_carries)
def add_words(form: Form, *operands: Array) -> Any:
    count = form.sources.count("r")
    terms, carries = operands[:count], operands[count:]
    if form.kept == (0,):
        total = form.summed(*terms)
        for carry in carries:
            total = total + carry.astype(U32)
        return total if len(form.results) == 1 else (total,)
    signed = zip(terms, form.signs, strict=False)
    wide = np.asarray(sum(_wide_term(value, signs) for value, signs in signed))
    for carry in carries:
        wide = wide + carry.astype(U64)
    over = np.asarray(wide >> _32)
    return wide.astype(U32), over > 0, over > 1


@row("IADD.64", OPS["IADD3"], "U", "UU", signs="- -", affine="")
def add_wide(form: Form, a: Array, b: Array) -> Array:
    return a + b


def _has_carries(form: Form) -> bool:
    return form.kept != (0,)


@row("UIADD3.64", OPS["IADD3"], "U|pp", "UUU", signs="- - -", refuses=_has_carries, affine="")
def add_three_wide(form: Form, a: Array, b: Array, c: Array) -> Any:
    total = a + b + c
    return total if len(form.results) == 1 else (total,)


@row("VIADD", "fma", "u", "rr", signs="- -", affine="sum")
def add_two(form: Form, a: Array, b: Array) -> Array:
    return form.summed(a, b)


@row("IMAD UIMAD", OPS["IMAD"], "u", "rrr|p", "MOV U32 IADD SHL X", signs="- - -~")
def multiply_add(form: Form, a: Array, b: Array, c: Array, *carry: Array) -> Array:
    first, second, third = form.signs[:3]
    if first.is_zero or second.is_zero:
        total = _term(c, third)
    elif third.is_zero:
        total = _term(a, first) * _term(b, second)
    else:
        total = integers.multiply_add(_term(a, first), _term(b, second), _term(c, third))
    return total + carry[0].astype(U32) if carry else total


def _has_carry_of_signs(form: Form) -> bool:
    """Return whether a row requests the carry of a signed product, as no compiler does."""
    return form.kept != (0,) and "U32" not in form.modifiers


def _wide_sum(product: Array, c: Array, signs: Signs, carry: tuple[Array, ...]) -> Array:
    """Return the sum of a product, an addend of 64 bits and a carry."""
    total = product
    if not signs.is_zero:
        c = np.bitwise_not(c) if signs.inverted else c
        total = product - c if signs.negated else product + c
    return total + carry[0].astype(U64) if carry else total


def _wide_carry(product: Array, c: Array, signs: Signs, carry: tuple[Array, ...]) -> Array:
    """Return the carry of that sum; a negated addend is inverted, and one added."""
    total = product + (np.bitwise_not(c) if signs.inverted or signs.negated else c)
    ones = sum((one.astype(U64) for one in carry), start=U64(signs.negated))
    return np.asarray((total < product) | (total + ones < total))


@row(
    "IMAD.WIDE UIMAD.WIDE",
    OPS["IMAD.WIDE"],
    "U|p",
    "xxR|p",
    "U32 X",
    signs=". . -~",
    refuses=_has_carry_of_signs,
)
def multiply_add_wide(form: Form, a: Array, b: Array, c: Array, *carry: Array) -> Any:
    product = integers.wide_product(a, b).view(U64)
    total = _wide_sum(product, c, form.signs[2], carry)
    if form.kept == (0,):
        return (total,) if len(form.results) > 1 else total
    return total, _wide_carry(product, c, form.signs[2], carry)


@row(
    "IMAD.HI UIMAD.HI",
    OPS["IMAD.HI"],
    "u|p",
    "xxR|p",
    "U32 X",
    signs=". . -~",
    refuses=_has_carry_of_signs,
)
def multiply_add_high(form: Form, a: Array, b: Array, c: Array, *carry: Array) -> Any:
    product = integers.wide_product(a, b).view(U64)
    high = integers.upper_word(_wide_sum(product, c, form.signs[2], carry))
    if form.kept == (0,):
        return (high,) if len(form.results) > 1 else high
    return high, _wide_carry(product, c, form.signs[2], carry)


@row("LEA ULEA", OPS["LEA"], "u|p", "rr#|p", "X", signs="- -~", refuses=_has_more_carries)
def shift_add(form: Form, a: Array, b: Array, *carry: Array) -> Any:
    """Add a shifted register; it is negated after the shift, as its carry shows."""
    shifted = np.left_shift(a, U32(form.numbers[0]))
    if form.kept == (0,) and not carry:
        total = form.summed(shifted, b)
        return (total,) if len(form.results) > 1 else total
    wide = _wide_term(shifted, form.signs[0]) + _wide_term(b, form.signs[1])
    if carry:
        wide = wide + carry[0].astype(U64)
    total = wide.astype(U32)
    return total if len(form.results) == 1 else (total, wide > LOW)


@row("LEA.HI ULEA.HI", OPS["LEA.HI"], "u|p", "uru#|p", "X", signs=". -~", affine="high")
def high_shift_add(form: Form, a: Array, b: Array, c: Array, *carry: Array) -> Any:
    return _with_high_part(form, c, a, b, carry)


@row("LEA.HI.SX32 ULEA.HI.SX32", OPS["LEA.HI"], "u|p", "ir#|p", "X", signs=". -~", affine="high")
def high_shift_add_extended(form: Form, a: Array, b: Array, *carry: Array) -> Any:
    return _with_high_part(form, (a >> 31).view(U32), a.view(U32), b, carry)


def _with_high_part(form: Form, high: Array, low: Array, b: Array, carry: tuple[Array, ...]) -> Any:
    """Return the upper of two words after a shift left of both, plus `b`."""
    high = integers.funnel_left(high, low, U32(form.numbers[0]))
    total = high.astype(U64) + _wide_term(b, form.signs[1])
    if carry:
        total = total + carry[0].astype(U64)
    if len(form.results) == 1:
        return total.astype(U32)
    return total.astype(U32), total > LOW


@row("SHF.L.U32 USHF.L.U32", OPS["SHF"], "u", "uuu", "S32", affine="first")
def shift_left(form: Form, a: Array, count: Array, c: Array) -> Array:
    return integers.shift_left(a, count)


@row("SHF.R.U32.HI USHF.R.U32.HI", OPS["SHF"], "u", "uuu", affine="")
@row("SHF.R.S32.HI USHF.R.S32.HI", OPS["SHF"], "u", "uui", affine="")
def shift_right(form: Form, a: Array, count: Array, c: Array) -> Array:
    return integers.shift_right(c, count)


@row("SHF USHF", OPS["SHF"], "u", "uuu", "L R HI U32 S32 U64 S64 W", affine="")
def funnel_shift(form: Form, a: Array, count: Array, c: Array) -> Array:
    """Shift two registers as one of 64 bits; counts above the width shift all of it out."""
    bits = 64 if form.modifiers & {"U64", "S64"} else 32
    amount = count & U32(bits - 1) if "W" in form.modifiers else np.minimum(count, U32(bits))
    if bits == 32 and {"L", "HI"} <= form.modifiers:
        return integers.funnel_left(c, a, amount)
    value, shift = (c.astype(U64) << _32) | a, amount.astype(U64)
    if "L" in form.modifiers:
        moved = integers.shift_left(value, shift)
    elif form.modifiers & {"S32", "S64"}:
        moved = integers.shift_right(value.view(np.int64), shift).view(U64)
    else:
        moved = integers.shift_right(value, shift)
    return (moved >> _32 if "HI" in form.modifiers else moved).astype(U32)


@row("LOP3 ULOP3", OPS["LOP3"], "|pu", "uuu#p", "LUT PAND")
def logic(form: Form, a: Array, b: Array, c: Array, also: Array) -> Any:
    """Look up each bit; a predicate says whether any is set, or another predicate is true."""
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


WIDE_COMPARES = "ISETP.S64 ISETP.U64 UISETP.S64 UISETP.U64"


@row(WIDE_COMPARES, OPS["ISETP"], "pp", "XXp", f"{' '.join(COMPARES)} AND OR XOR", affine="")
@row("ISETP UISETP", OPS["ISETP"], "pp", "xxp|p", f"{' '.join(COMPARES)} AND OR XOR U32 EX")
def compare(form: Form, a: Array, b: Array, also: Array, *low: Array) -> Any:
    result = one_of(form, COMPARES)(a, b)
    if low:
        result = _extended(result, a, b, low[0], form)
    combine = one_of(form, COMBINATIONS)
    if form.kept == (0,):
        return combine(result, also), None
    return combine(result, also), combine(~result, also)


add("IABS", OPS["IABS"], "i", "i", evaluate=plain(integers.absolute))


def _bounded(form: Form, result: Array) -> Array:
    """Return the bits of numbers, with RELU no less than zero."""
    if "RELU" in form.modifiers:
        result = np.maximum(result, result.dtype.type(0))
    return np.asarray(result.view(U32))


def _has_predicates(form: Form) -> bool:
    """Return whether a row requests predicates beside its number; their meaning is not known."""
    return len(form.kept) > 1 or form.results[form.kept[0]] == "p"


@row(
    "IMNMX VIMNMX UIMNMX UVIMNMX",
    OPS["IMNMX"],
    "u|pp",
    "xxp",
    "S32 U32 RELU",
    refuses=_has_predicates,
)
def minimum_maximum(form: Form, a: Array, b: Array, least: Array) -> Any:
    chosen = _bounded(form, least_or_most(least, a, b))
    return chosen if len(form.results) == 1 else (chosen,)


@row("IMNMX.S64 IMNMX.U64", OPS["IMNMX"], "ppX", "XXp0", refuses=_has_predicates, affine="")
def wide_minimum_maximum(form: Form, a: Array, b: Array, least: Array) -> Any:
    return None, None, least_or_most(least, a, b)


@row("VIMNMX3", OPS["IMNMX"], "u", "xxxp", "U32 RELU")
def minimum_maximum_of_three(form: Form, a: Array, b: Array, c: Array, least: Array) -> Array:
    return _bounded(form, least_or_most(least, a, b, c))


@row("VIADDMNMX", OPS["IMNMX"], "u", "xxxp", "U32 RELU", signs=". -")
def sum_minimum_maximum(form: Form, a: Array, b: Array, c: Array, least: Array) -> Array:
    return _bounded(form, least_or_most(least, a + b, c))


@row("VABSDIFF", "alu", "u", "xxu", "U32")
def absolute_difference(form: Form, a: Array, b: Array, c: Array) -> Array:
    return np.where(a > b, a - b, b - a).view(U32) + c


add("SEL USEL", OPS["SEL"], "u", "uup")
add("SEL.64 USEL.64", OPS["SEL"], "U", "UUp", affine="")
add("MOV.64 UMOV.64", OPS["MOV"], "U", "U", affine="")
add("R2UR", OPS["MOV"], "u", "u", "OR", kind="to_uniform", shape="q?oo")
add("MOV UMOV RPCMOV.32", OPS["MOV"], "u", "u")
add("POPC UPOPC", OPS["POPC"], "u", "u", signs="~")


@row("FLO.U32 UFLO.U32", OPS["FLO"], "u", "u", "SH", signs="~")
def find_leading_one(form: Form, a: Array) -> Array:
    place = integers.highest_bit(a).view(U32)
    return np.where(a == 0, ONES, U32(31) - place) if "SH" in form.modifiers else place


@row("FLO UFLO", OPS["FLO"], "u", "i", "SH", signs="~")
def find_leading_bit(form: Form, a: Array) -> Array:
    """Find the highest bit that differs from the sign."""
    return np.asarray(find_leading_one(form, np.where(a < 0, ~a, a).view(U32)))


add("BREV UBREV", OPS["BREV"], "u", "u")


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
    shifted = integers.shift_left(a, left)
    if "U32" in form.modifiers:
        return integers.shift_right(shifted, left)
    return integers.shift_right(shifted.view(np.int32), left).view(U32)


@row("BMSK UBMSK", "alu", "u", "uu", "W")
def bit_mask(form: Form, begin: Array, count: Array) -> Array:
    if "W" in form.modifiers:
        begin, count = begin & U32(31), count & U32(31)
    many = np.minimum(count, U32(32)).astype(U64)
    bits = ((U64(1) << many) - U64(1)) << np.minimum(begin, U32(32)).astype(U64)
    return bits.astype(U32)


add("NOP", OPS["NOP"], op="NOP")
