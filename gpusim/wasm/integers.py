"""Integers of some width, and their bits: each function is one instruction of WebAssembly.

An `int` of translated code has 64 bits: where a value may be larger, `as_i64` cuts it.
"""

from __future__ import annotations

_ALL = (1 << 64) - 1


def as_u8(value: int) -> int:
    """Return the low 8 bits."""
    return value & 0xFF


def as_u16(value: int) -> int:
    """Return the low 16 bits."""
    return value & 0xFFFF


def as_u32(value: int) -> int:
    """Return the low 32 bits."""
    return value & 0xFFFFFFFF


def as_i8(value: int) -> int:
    """Return the low 8 bits, with a sign."""
    return (value + 0x80 & 0xFF) - 0x80


def as_i16(value: int) -> int:
    """Return the low 16 bits, with a sign."""
    return (value + 0x8000 & 0xFFFF) - 0x8000


def as_i32(value: int) -> int:
    """Return the low 32 bits, with a sign."""
    return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def as_i64(value: int) -> int:
    """Return the low 64 bits, with a sign."""
    return (value + (1 << 63) & _ALL) - (1 << 63)


def popcount(value: int) -> int:
    """Return the number of bits of 64 that are 1."""
    return (value & _ALL).bit_count()


def trailing_zeros(value: int) -> int:
    """Return the number of the lowest bit that is 1, 64 if none is."""
    return (value & -value).bit_length() - 1 if value else 64


def leading_zeros(value: int) -> int:
    """Return how many of 64 bits are above the highest that is 1."""
    return 64 - (value & _ALL).bit_length()
