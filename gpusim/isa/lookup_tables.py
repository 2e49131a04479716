"""Look-up tables of logic: any function of three bits, as LOP3 computes it for 32 at a time.

Bit `4 * a + 2 * b + c` of a table is the function's value for the bits a, b and c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.typing import Array

# The tables of the inputs themselves: applied to them, a function gives its own table.
INPUTS = 0xF0, 0xCC, 0xAA

# Two-input functions by the four bits that they give for (0,0), (0,1), (1,0), (1,1) of (b, c).
_OF_TWO: Mapping[int, Callable[[Array, Array], Any]] = {
    0b0000: lambda b, c: b ^ b,
    0b0001: lambda b, c: ~(b | c),
    0b0010: lambda b, c: ~b & c,
    0b0011: lambda b, c: ~b,
    0b0100: lambda b, c: b & ~c,
    0b0101: lambda b, c: ~c,
    0b0110: lambda b, c: b ^ c,
    0b0111: lambda b, c: ~(b & c),
    0b1000: lambda b, c: b & c,
    0b1001: lambda b, c: ~(b ^ c),
    0b1010: lambda b, c: c,
    0b1011: lambda b, c: ~b | c,
    0b1100: lambda b, c: b,
    0b1101: lambda b, c: b | ~c,
    0b1110: lambda b, c: b | c,
    0b1111: lambda b, c: b | ~b,
}
_DIRECT: Mapping[int, Callable[[Array, Array, Array], Any]] = {
    0xC0: lambda a, b, c: a & b,
    0x0C: lambda a, b, c: ~a & b,
    0xCF: lambda a, b, c: ~a | b,
    0xF3: lambda a, b, c: a | ~b,
    0xC3: lambda a, b, c: ~(a ^ b),
    0xFC: lambda a, b, c: a | b,
    0x3C: lambda a, b, c: a ^ b,
    0x33: lambda a, b, c: ~b,
    0x0F: lambda a, b, c: ~a,
    0x30: lambda a, b, c: a & ~b,
    0xF8: lambda a, b, c: a | (b & c),
    0xEA: lambda a, b, c: (a & b) | c,
    0x96: lambda a, b, c: a ^ b ^ c,
    0xFE: lambda a, b, c: a | b | c,
    0x80: lambda a, b, c: a & b & c,
    0xCA: lambda a, b, c: (a & b) | (~a & c),
    0xE8: lambda a, b, c: (a & b) | (a & c) | (b & c),
}


# Named functions of the bits a and b.
LOGIC: Mapping[str, int] = {"and": 0xC0, "or": 0xFC, "xor": 0x3C, "not": 0x0F, "andn": 0x30}
# And the comparisons of predicates, false below true.
_TABLES: Mapping[str, int] = {
    **LOGIC, "lt": 0x0C, "le": 0xCF, "gt": 0x30, "ge": 0xF3, "eq": 0xC3, "ne": 0x3C,
}  # fmt: skip


def logic(function: str | int, a: Any, *others: Any) -> Any:
    """Return a function of up to three inputs, integers or predicates, by name or by its table."""
    table = function if isinstance(function, int) else _TABLES[function]
    if len(others) == 2:
        return looked_up(table, a, *others)
    b = others[0] if others else a
    return looked_up(table, a, b, b)


def looked_up(table: int, a: Array, b: Array, c: Array) -> Array:
    """Return the bits that a look-up table of three inputs gives; `a` chooses its upper half."""
    direct = _DIRECT.get(table)
    if direct is not None:
        found: Array = direct(a, b, c)
        return found
    upper, lower = _OF_TWO[table >> 4](b, c), _OF_TWO[table & 15](b, c)
    return np.asarray((a & upper) | (~a & lower))
