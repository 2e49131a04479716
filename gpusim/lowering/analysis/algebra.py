"""Questions of passes about constants and types of values."""

from __future__ import annotations

from gpusim.compiler.ir import Value
from gpusim.typing import DType


def same(a: Value, b: Value) -> bool:
    """Whether two values are one, or equal constants."""
    if a is b:
        return True
    if a.op != "const" or b.op != "const" or a.dtype != b.dtype:
        return False
    return bool(a.detail.tobytes() == b.detail.tobytes())


def number(value: Value) -> int | None:
    """Return an integer constant as a Python int, None for anything else."""
    if value.op != "const" or value.dtype is None or value.dtype.kind not in "iu":
        return None
    return int(value.detail)


def power_of_two(count: int | None) -> int | None:
    """Return k where `count` is 2**k for k > 0."""
    if count is None or count < 2 or count & (count - 1):
        return None
    return count.bit_length() - 1


def bits(dtype: DType) -> int:
    """Return how many bits a type has."""
    return dtype.itemsize * 8


def range_of(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest integer of a type."""
    size = bits(dtype)
    return (0, 2**size - 1) if dtype.kind == "u" else (-(2 ** (size - 1)), 2 ** (size - 1) - 1)


def is_int(value: Value) -> bool:
    """Whether a value is an integer."""
    return value.dtype is not None and value.dtype.kind in "iu"


def float_constant(value: Value) -> float | None:
    """Return a constant of floating point, None for anything else."""
    if value.op != "const" or value.dtype is None or value.dtype.kind != "f":
        return None
    return float(value.detail)


def type_of(value: Value) -> DType:
    """Return the type of a value that has one."""
    assert value.dtype is not None
    return value.dtype


def wrapped(total: int, dtype: DType) -> int:
    """Return an integer wrapped around in a type's range."""
    low, high = range_of(dtype)
    return (total - low) % (high - low + 1) + low
