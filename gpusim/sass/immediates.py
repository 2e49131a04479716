"""Immediates of instructions: bits 32 to 63, checked against the listing's text.

The text alone is not enough: every NaN reads as QNAN or SNAN, and digits may be too few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gpusim.sass.listing import Row
from gpusim.sass.operands import Operand

LOW = 0xFFFFFFFF
BRAIN = "BF16_V2"
_HALF = 16
_WIDE, _ALL = 24, (1 << 64) - 1  # where a number of 64 bits begins

# Formats by name: the bits of a number of that text, and of the least infinity.
_Bits = Callable[[str], int]
_FORMATS: Mapping[str, tuple[_Bits, int]] = {
    "single": (lambda text: int(np.float32(text).view(np.uint32)), 0x7F800000),
    "half": (lambda text: int(np.float16(text).view(np.uint16)), 0x7C00),
    "brain": (lambda text: int(np.float32(text).view(np.uint32)) >> _HALF, 0x7F80),
    # The upper word, for the lower one is zero; the text may be off in its last digit.
    "double": (lambda text: int(np.float64(text).view(np.uint64)) + (1 << 31) >> 32, 0x7FF00000),
}


class Disagreement(ValueError):
    """Text and bits of an instruction that say different numbers."""


def whole(operand: Operand, row: Row) -> int:
    """Return the bits of a whole number."""
    number = int(operand.number)
    return _agreed(row, (-number if operand.negated else number) & LOW)


def wide(operand: Operand, row: Row) -> int | None:
    """Return the 64 bits of a whole number, None in a row whose numbers have 32 bits.

    A conversion's number is its upper word. MOV.64 has 64 bits in the instruction, all others 32
    with a sign.
    """
    if row.mnemonic == "I2F" or not {"64", "S64", "U64"} & set(row.modifiers):
        return None
    number = int(operand.number)
    number = -number if operand.negated else number
    if row.mnemonic in ("MOV", "UMOV"):
        if row.bits is not None and row.bits >> _WIDE & _ALL != number:
            raise Disagreement(f"{number:#x}, but {row.bits >> _WIDE & _ALL:#x}")
        return number
    if not -(1 << 31) <= number < 1 << 31:
        raise Disagreement(f"{number:#x} has more than 31 bits")
    _agreed(row, number & LOW)
    return number & _ALL


def floating(operand: Operand, row: Row, *, is_double: bool) -> int:
    """Return the bits of a floating-point number, of a double its upper word."""
    name = "double" if is_double else "single"
    return _of_texts([operand.name], name, row, 2 * _HALF)


def halves(high: Operand, low: Operand, row: Row) -> int:
    """Return the bits of two half-precision numbers."""
    name = "brain" if BRAIN in row.modifiers else "half"
    return _of_texts([high.name, low.name], name, row, _HALF)


def _of_texts(texts: Sequence[str], name: str, row: Row, width: int) -> int:
    bits, infinity = _FORMATS[name]
    said = 0
    for place, text in enumerate(reversed(texts)):
        part = bits(text.upper().replace("QNAN", "NAN").replace("SNAN", "NAN"))
        if "NAN" in text.upper():
            part = _payload(text.upper(), row, place * width, infinity)
        said |= part << place * width
    return _agreed(row, said)


def _payload(text: str, row: Row, begin: int, infinity: int) -> int:
    """Return the bits of a NaN; the text gives only its sign and kind."""
    if row.immediate is None:
        raise Disagreement("a NaN has bits without a text")
    width = infinity.bit_length() + 1
    bits = row.immediate >> begin & (1 << width) - 1
    magnitude = bits & ~(1 << width - 1)
    # The highest bit of the fraction: the lowest of the exponent stands before it.
    is_quiet = bool(magnitude & (infinity & -infinity) >> 1)
    agrees = text.startswith("-") == (bits != magnitude) and is_quiet == ("QNAN" in text)
    if magnitude <= infinity or not agrees:
        raise Disagreement(text)
    return bits


def _agreed(row: Row, said: int) -> int:
    if row.immediate not in (None, said):
        raise Disagreement(f"{said:#x}, but {row.immediate:#x}")
    return said
