"""How a row of machine code computes: the types of its operands, their signs, and the function.

Registers are untyped: 32 bits, held as uint32. A form reads them as what the row takes them for,
pairs of them as 64 bits, and gives the results back as bits. It is an instruction's `detail`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.isa import Array, Instruction

WORD = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)

# Codes of operands: what the bits are taken for, and how many registers they fill.
REGISTERS: Mapping[str, int] = {
    "u": 1, "i": 1, "f": 1, "h": 1, "p": 1, "r": 1, "U": 2, "I": 2, "d": 2, "R": 2,
}  # fmt: skip


def joined(low: Array, high: Array) -> Array:
    """Return two registers as one of 64 bits."""
    wide = high.astype(np.uint64) << _32
    return np.asarray(wide | low)


def parted(value: Array) -> tuple[Array, Array]:
    """Return 64 bits as two registers."""
    bits = value.view(np.uint64)
    return bits.astype(np.uint32), (bits >> _32).astype(np.uint32)


_READ: Mapping[str, Callable[..., Array]] = {
    "u": lambda a: a,
    "r": lambda a: a,
    "i": lambda a: a.view(np.int32),
    "f": lambda a: a.view(np.float32),
    "h": lambda a: a,
    "p": lambda a: a,
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
    """What is done to an operand before it is used."""

    negated: bool = False
    inverted: bool = False
    absolute: bool = False
    suffixes: tuple[str, ...] = ()
    is_zero: bool = False  # the register of zeros, which need not be added

    def __bool__(self) -> bool:
        return self.negated or self.inverted or self.absolute


PLAIN = Signs()
Evaluate = Callable[..., Any]


@dataclass(frozen=True)
class Form:
    """A row's modifiers, the codes and signs of its operands, and what it computes.

    `evaluate(form, *operands)` returns a result, or several; those in `kept` are wanted.
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
    def _places(self) -> tuple[tuple[str, int, int, Signs], ...]:
        """Each operand's code, the registers that it begins and ends with, and its signs."""
        found, begin = [], 0
        for code, signs in zip(self.sources, self.signs, strict=True):
            end = begin + REGISTERS[code]
            found.append((code, begin, end, signs if signs and code not in "rRh" else PLAIN))
            begin = end
        return tuple(found)

    def operands(self, registers: Sequence[Array]) -> list[Array]:
        """Return the operands as the row takes them."""
        values = []
        for code, begin, end, signs in self._places:
            value = _READ[code](*registers[begin:end])
            values.append(_signed(value, code, signs) if signs is not PLAIN else value)
        return values

    def computed(self, *registers: Array) -> tuple[Array, ...]:
        """Return the registers that the row gives."""
        return self.bits(self.evaluate(self, *self.operands(registers)))

    def bits(self, results: Any) -> tuple[Array, ...]:
        """Return the results that are wanted as registers."""
        if len(self.results) == 1:
            results = (results,)
        made: list[Array] = []
        for number in self.kept:
            code, value = self.results[number], np.asarray(results[number])
            if value.dtype is not _BITS[code]:
                value = value.astype(_BITS[code], copy=False)
            if REGISTERS[code] == 2:
                made += parted(value)
            else:
                made.append(value if code in "pu" else value.view(np.uint32))
        return tuple(made)

    def __str__(self) -> str:
        return " ".join(map(str, self.numbers))


def _signed(value: Array, code: str, signs: Signs) -> Array:
    if code == "p":
        return np.logical_not(value)
    if signs.absolute:
        value = np.abs(value)
    if signs.inverted:
        value = np.bitwise_not(value)
    return np.negative(value) if signs.negated else value


def typed(instruction: Instruction, *registers: Array) -> list[Array]:
    """Return an instruction's operands as its form takes them."""
    form: Form = instruction.detail
    return form.operands(registers)
