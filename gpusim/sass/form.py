"""The form of a row of machine code: types and signs of its operands, and its function.

Registers are untyped: 32 bits, held as uint32. A form reads them in the row's types,
pairs of them as 64 bits, and gives the results back as bits. It is an instruction's `detail`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from gpusim.isa.integers import signed_sum
from gpusim.isa.rounding import DIRECTIONS
from gpusim.typing import Array

WORD = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)

# Codes of operands: the type of the bits, and the number of registers.
REGISTERS: Mapping[str, int] = {
    "u": 1, "i": 1, "f": 1, "h": 1, "p": 1, "n": 1, "r": 1, "D": 1, "U": 2, "I": 2, "d": 2, "R": 2,
}  # fmt: skip


def joined(low: Array, high: Array) -> Array:
    """Return two registers as one of 64 bits."""
    wide = high.astype(np.uint64) << _32
    return np.asarray(wide | low)


def parted(value: Array) -> tuple[Array, Array]:
    """Return 64 bits as two registers."""
    bits = value.view(np.uint64)
    return bits.astype(np.uint32), (bits >> _32).astype(np.uint32)


# Conversions of registers when read; codes without one are taken as they are.
_READ: Mapping[str, Callable[..., Array]] = {
    "i": lambda a: a.view(np.int32),
    "f": lambda a: a.view(np.float32),
    "n": lambda a: a.view(np.int32) < 0,
    "U": joined,
    "R": joined,
    "I": lambda low, high: joined(low, high).view(np.int64),
    "d": lambda low, high: joined(low, high).view(np.float64),
}
_BITS: Mapping[str, np.dtype[Any]] = {
    code: np.dtype(kind) for code, kind in {
        "u": np.uint32, "i": np.int32, "f": np.float32, "h": np.uint32, "p": np.bool_,
        "U": np.uint64, "I": np.int64, "d": np.float64,
    }.items()
}  # fmt: skip


@dataclass(frozen=True)
class Signs:
    """Modifiers of an operand, applied before use."""

    negated: bool = False
    inverted: bool = False
    absolute: bool = False
    suffixes: tuple[str, ...] = ()
    is_zero: bool = False  # the register of zeros, omitted from sums

    def __bool__(self) -> bool:
        return self.negated or self.inverted or self.absolute

    def of(self, value: Array) -> Array:
        """Return numbers with their magnitude or their negative taken, as the signs say."""
        value = np.abs(value) if self.absolute else value
        return np.negative(value) if self.negated else value


Evaluate = Callable[..., Any]
ROUNDINGS = " ".join(("RN", *DIRECTIONS))  # modifiers of rounding


@dataclass(frozen=True)
class Form:
    """A row's modifiers, the codes and signs of its operands, and its function.

    `evaluate(form, *operands)` returns a result, or several; `kept` selects the used ones.
    `numbers` are operands that are part of the instruction itself, such as a look-up table.
    """

    name: str
    evaluate: Evaluate
    modifiers: frozenset[str] = frozenset()
    sources: str = ""
    results: str = ""
    signs: tuple[Signs, ...] = ()
    kept: tuple[int, ...] = (0,)
    numbers: tuple[int, ...] = ()

    @cached_property
    def direction(self) -> str:
        """The direction in which it rounds, empty for the nearest number."""
        return next((name for name in DIRECTIONS if name in self.modifiers), "")

    @cached_property
    def _addends(self) -> tuple[str, tuple[tuple[int, bool], ...]]:
        """The signs of a sum's terms without registers of zeros; their places, and if inverted."""
        held = enumerate(s for code, s in zip(self.sources, self.signs, strict=True) if code != "p")
        wanted = [(place, s) for place, s in held if not s.is_zero or s.inverted]
        signs = "".join("-" if s.negated and not s.inverted else "+" for _, s in wanted)
        return signs, tuple((place, s.inverted) for place, s in wanted)

    def summed(self, *terms: Array) -> Array:
        """Return the sum of 32-bit terms with their signs, without registers of zeros."""
        signs, wanted = self._addends
        if not wanted:
            return terms[0]
        held = (np.bitwise_not(terms[n]) if inverted else terms[n] for n, inverted in wanted)
        return signed_sum(signs, *held)

    @cached_property
    def _places(self) -> tuple[tuple[int, int, Evaluate | None, Evaluate | None], ...]:
        """The registers that each operand begins and ends with, how it is read, and its signs."""
        found, begin = [], 0
        for code, signs in zip(self.sources, self.signs, strict=True):
            end = begin + REGISTERS[code]
            signed = partial(_signed, code, signs) if signs and code not in "rRh" else None
            found.append((begin, end, _READ.get(code), signed))
            begin = end
        return tuple(found)

    @cached_property
    def _is_as_given(self) -> bool:
        """Whether each operand is a register as it is."""
        return all(read is signed is None for _, _, read, signed in self._places)

    def operands(self, registers: Sequence[Array]) -> Sequence[Array]:
        """Return the operands as the row takes them."""
        if self._is_as_given:
            return registers
        values = []
        for begin, end, read, signed in self._places:
            value = registers[begin] if read is None else read(*registers[begin:end])
            values.append(value if signed is None else signed(value))
        return values

    def computed(self, *registers: Array) -> tuple[Array, ...]:
        """Return the registers that the row gives."""
        return self.bits(self.evaluate(self, *self.operands(registers)))

    @cached_property
    def _wanted(self) -> tuple[tuple[int, np.dtype[Any], bool, bool], ...]:
        """Index of each used result, its type, and whether it fills a pair, or is bits."""
        codes = [(number, self.results[number]) for number in self.kept]
        return tuple((n, _BITS[code], REGISTERS[code] == 2, code in "pu") for n, code in codes)

    def bits(self, results: Any) -> tuple[Array, ...]:
        """Return the results that are wanted as registers."""
        if len(self.results) == 1:
            results = (results,)
        made: list[Array] = []
        for number, dtype, is_pair, is_bits in self._wanted:
            value = np.asarray(results[number])
            if value.dtype is not dtype:
                value = _of_type(value, dtype)
            if is_pair:
                made += parted(value)
            else:
                made.append(value if is_bits else value.view(np.uint32))
        return tuple(made)

    def __str__(self) -> str:
        return " ".join(map(str, self.numbers))


def _of_type(value: Array, dtype: np.dtype[Any]) -> Array:
    """Return values in another type; integers of the same size keep their bits."""
    if value.dtype.kind in "iu" and dtype.kind in "iu" and value.itemsize == dtype.itemsize:
        return value.view(dtype)
    return value.astype(dtype, copy=False)


def _signed(code: str, signs: Signs, value: Array) -> Array:
    if code == "p":
        return np.logical_not(value)
    if code == "D":
        return _upper_word_signed(signs, value)
    if code == "d":
        return _double_signed(signs, value)
    if signs.absolute:
        value = np.abs(value)
    if signs.inverted:
        value = np.bitwise_not(value)
    return np.negative(value) if signs.negated else value


def _upper_word_signed(signs: Signs, value: Array) -> Array:
    sign_bit = np.uint32(1 << 31)
    value = value & ~sign_bit if signs.absolute else value
    return value ^ sign_bit if signs.negated else value


def _double_signed(signs: Signs, value: Array) -> Array:
    """Return doubles with their signs applied; a NaN keeps its own sign (measured)."""
    signed, none = signs.of(value), np.isnan(value)
    return np.where(none, value, signed) if np.count_nonzero(none) else signed
