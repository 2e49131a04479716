"""Rules of simplification: sums, products, quotients, shifts and bits."""

from __future__ import annotations

import math

from gpusim.compiler.ir import BOOL, UINT32, Value, constant
from gpusim.lowering.analysis.algebra import (
    bits,
    float_constant,
    is_int,
    number,
    power_of_two,
    type_of,
    wrapped,
)
from gpusim.lowering.passes.folder import Folder


def fold_add(folder: Folder, value: Value) -> Value | None:
    """Join constants, drop zeros, cancel (a - b) + b, turn x + x into a shift."""
    a, b = value.args
    if not is_int(value):
        # x + 0.0 is not x where x is -0.0.
        return a if float_constant(b) == 0 and str(b.detail).startswith("-") else None
    dtype, c = type_of(value), number(b)
    if c == 0:
        return a
    if c is not None and a.op == "add" and a.args[1].op == "const":
        return folder.emit("add", dtype, a.args[0], constant(_sum(a.args[1], b), dtype))
    if c is not None and a.op == "sub" and a.args[0].op == "const":
        return folder.emit("sub", dtype, constant(_sum(a.args[0], b), dtype), a.args[1])
    if a is b:
        return folder.emit("shl", dtype, a, constant(1, dtype))
    for x, y in ((a, b), (b, a)):
        if x.op == "sub" and x.args[1] is y:
            return x.args[0]
        if x.op == "neg":
            return folder.emit("sub", dtype, y, x.args[0])
    return None


def _sum(a: Value, b: Value) -> int:
    return wrapped(int(a.detail) + int(b.detail), type_of(a))


def fold_sub(folder: Folder, value: Value) -> Value | None:
    """Add a constant's opposite instead, and drop x - x."""
    a, b = value.args
    if not is_int(value):
        return a if float_constant(b) == 0 and str(b.detail)[0] != "-" else None
    dtype, c = type_of(value), number(b)
    if c is not None:
        return folder.emit("add", dtype, a, constant(wrapped(-c, dtype), dtype))
    if a is b:
        return constant(0, dtype)
    if number(a) == 0:
        return folder.emit("neg", dtype, b)
    if a.op == "add" and b in a.args:
        return a.args[1] if a.args[0] is b else a.args[0]
    if a.op == "const" and b.op == "add" and b.args[1].op == "const":
        rest = wrapped(int(a.detail) - int(b.args[1].detail), dtype)
        return folder.emit("sub", dtype, constant(rest, dtype), b.args[0])
    if b.op == "neg":
        return folder.emit("add", dtype, a, b.args[0])
    return None


def fold_mul(folder: Folder, value: Value) -> Value | None:
    """Shift by a power of two, join constants."""
    a, b = value.args
    dtype = type_of(value)
    if dtype.kind == "f":
        factor = float_constant(b)
        return a if factor == 1 else folder.emit("neg", dtype, a) if factor == -1 else None
    c = number(b)
    if c is None:
        return None
    if c == 0:
        return b
    if c == 1:
        return a
    if c == -1:
        return folder.emit("neg", dtype, a)
    power = power_of_two(c)
    if power is not None:
        return folder.emit("shl", dtype, a, constant(power, dtype))
    if a.op == "mul" and a.args[1].op == "const":
        product = wrapped(int(a.args[1].detail) * c, dtype)
        return folder.emit("mul", dtype, a.args[0], constant(product, dtype))
    if a.op == "shl" and a.args[1].op == "const":
        product = wrapped(c << int(a.args[1].detail), dtype)
        return folder.emit("mul", dtype, a.args[0], constant(product, dtype))
    return None


def fold_div(folder: Folder, value: Value) -> Value | None:
    """Multiply by the reciprocal of a power of two, an exact number."""
    a, b = value.args
    divisor = float_constant(b)
    if divisor == 1:
        return a
    if divisor is None:
        return None
    mantissa, exponent = math.frexp(divisor)
    if abs(mantissa) == 0.5 and abs(exponent) < 100:  # multiplying by 1 / 2**k is exact
        return folder.emit("mul", type_of(value), a, constant(1 / divisor, type_of(value)))
    return None


def fold_idiv(folder: Folder, value: Value) -> Value | None:
    """Shift an unsigned integer right by a power of two."""
    a, b = value.args
    dtype, c = type_of(value), number(b)
    if c == 1:
        return a
    if c == -1 and dtype.kind == "i":
        return folder.emit("neg", dtype, a)
    power = power_of_two(c)
    if power is not None and dtype.kind == "u":
        return folder.emit("shr", dtype, a, constant(power, dtype))
    return None


def fold_rem(folder: Folder, value: Value) -> Value | None:
    """Mask an unsigned integer for a power of two."""
    a, b = value.args
    dtype, c = type_of(value), number(b)
    if c == 1 or (c == -1 and dtype.kind == "i"):
        return constant(0, dtype)
    if power_of_two(c) is not None and dtype.kind == "u":
        assert c is not None
        return folder.emit("and", dtype, a, constant(c - 1, dtype))
    return None


def fold_shl(folder: Folder, value: Value) -> Value | None:
    """Join shifts; one to the right and back is a mask."""
    a, b = value.args
    dtype, c = type_of(value), number(b)
    if c is None:
        return None
    if c == 0:
        return a
    if c >= bits(dtype) or c < 0:
        return constant(0, dtype)
    inner = number(a.args[1]) if a.op in ("shl", "shr") else None
    if inner is None:
        return None
    if a.op == "shl":
        return folder.emit("shl", dtype, a.args[0], constant(c + inner, dtype))
    if inner == c:
        return folder.emit("and", dtype, a.args[0], constant(wrapped(-1 << c, dtype), dtype))
    return None


def fold_shr(folder: Folder, value: Value) -> Value | None:
    """Join shifts; one to the left and back is a mask where it is unsigned."""
    a, b = value.args
    dtype, c = type_of(value), number(b)
    if c is None:
        return None
    if c == 0:
        return a
    size = bits(dtype)
    if c >= size or c < 0:
        if dtype.kind == "u":
            return constant(0, dtype)
        return folder.emit("shr", dtype, a, constant(size - 1, dtype))
    inner = number(a.args[1]) if a.op in ("shl", "shr") else None
    if inner is None:
        return None
    if a.op == "shr":
        return folder.emit("shr", dtype, a.args[0], constant(min(c + inner, 2 * size), dtype))
    if inner == c and dtype.kind == "u":
        return folder.emit("and", dtype, a.args[0], constant(2 ** (size - c) - 1, dtype))
    return None


def fold_and(folder: Folder, value: Value) -> Value | None:
    """Join masks; all ones and zeros change nothing or everything."""
    a, b = value.args
    dtype = type_of(value)
    if a is b:
        return a
    if b.op != "const":
        return None
    c = int(b.detail)
    if c == 0:
        return b
    if c == (1 if dtype == BOOL else wrapped(-1, dtype)):
        return a
    if a.op == "and" and a.args[1].op == "const":
        both = int(a.args[1].detail) & c
        return folder.emit("and", dtype, a.args[0], constant(both, dtype))
    return None


def fold_or(folder: Folder, value: Value) -> Value | None:
    """Join masks; all ones and zeros change everything or nothing; parts of words are one shift."""
    a, b = value.args
    dtype = type_of(value)
    if a is b:
        return a
    if dtype == UINT32 and {a.op, b.op} == {"shl", "shr"}:
        return _funnel_shift(folder, *((a, b) if a.op == "shl" else (b, a)))
    if b.op != "const":
        return None
    c = int(b.detail)
    if c == 0:
        return a
    if c == (1 if dtype == BOOL else wrapped(-1, dtype)):
        return b
    if a.op == "or" and a.args[1].op == "const":
        both = int(a.args[1].detail) | c
        return folder.emit("or", dtype, a.args[0], constant(both, dtype))
    return None


def _funnel_shift(folder: Folder, left: Value, right: Value) -> Value | None:
    """Shift two words together where the one takes the bits that the other leaves free."""
    count, rest = number(left.args[1]), number(right.args[1])
    if count is None or rest is None or count + rest != bits(UINT32):
        return None
    return folder.emit("funnel", UINT32, left.args[0], right.args[0], left.args[1])


def fold_xor(folder: Folder, value: Value) -> Value | None:
    """A value with itself is zero, with all ones its complement."""
    a, b = value.args
    dtype = type_of(value)
    if a is b:
        return constant(0, dtype)
    if b.op != "const":
        return None
    if int(b.detail) == 0:
        return a
    if dtype == BOOL or int(b.detail) == wrapped(-1, dtype):
        return folder.emit("not", dtype, a)
    return None


def fold_neg(folder: Folder, value: Value) -> Value | None:
    """Drop a double sign; the opposite of a difference is the other difference."""
    (a,) = value.args
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub" and is_int(value):
        return folder.emit("sub", type_of(value), a.args[1], a.args[0])
    return None


def fold_not(folder: Folder, value: Value) -> Value | None:
    """Drop a double complement; the complement of a comparison is the inverse one."""
    (a,) = value.args
    if a.op == "not":
        return a.args[0]
    if a.operation.is_comparison and (type_of(a.args[0]).kind != "f" or a.operation.commutative):
        return folder.emit(a.operation.inverse, BOOL, *a.args)
    return None
