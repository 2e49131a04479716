"""Rules of simplification: comparisons, choices and casts."""

from __future__ import annotations

import numpy as np

from gpusim.compiler.ir import BOOL, Value, constant
from gpusim.lowering.analysis.algebra import (
    bits,
    is_int,
    number,
    power_of_two,
    range_of,
    same,
    type_of,
    wrapped,
)
from gpusim.lowering.passes.folder import Folder
from gpusim.typing import DType


def fold_extreme(folder: Folder, value: Value) -> Value | None:
    """Join the constants of two minima or maxima."""
    a, b = value.args
    if a is b:
        return a
    if a.op == value.op and a.args[1].op == "const" and b.op == "const":
        limit = folder.emit(value.op, type_of(value), a.args[1], b)
        return folder.emit(value.op, type_of(value), a.args[0], limit)
    return None


def fold_compare(folder: Folder, value: Value) -> Value | None:
    """Compare with the constant that says the same most cheaply."""
    a, b = value.args
    if a.op == "const":
        return folder.emit(value.operation.swapped, BOOL, b, a)
    dtype = type_of(a)
    if dtype == BOOL:
        return _compare_bools(folder, value)
    if dtype.kind == "f":
        return None
    if a is b:
        return constant(value.op in ("le", "ge", "eq"), BOOL)
    narrow = _compare_narrow(folder, value)
    if narrow is not None:
        return narrow
    c = number(b)
    if c is None:
        return None
    if value.op in ("eq", "ne"):
        return _equal_constant(folder, value, c)
    return _order_constant(folder, value, c)


def _compare_bools(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    if b.op != "const" or value.op not in ("eq", "ne"):
        return None
    return a if bool(b.detail) == (value.op == "eq") else folder.emit("not", BOOL, a)


def _compare_narrow(folder: Folder, value: Value) -> Value | None:
    """Compare before a widening cast that keeps the order, not after it."""
    a, b = value.args
    if a.op != "cast":
        return None
    inner, wide = type_of(a.args[0]), type_of(a)
    if inner == BOOL and b.op == "const" and value.op in ("eq", "ne") and int(b.detail) in (0, 1):
        wanted = constant(bool(b.detail), BOOL)
        return folder.emit(value.op, BOOL, a.args[0], wanted)
    if inner.kind not in "iu" or wide.kind not in "iu":
        return None
    low, high = range_of(inner)
    keeps_order = range_of(wide)[0] <= low and high <= range_of(wide)[1]
    c = number(b)
    if c is not None and keeps_order and low <= c <= high and inner.itemsize >= 4:
        return folder.emit(value.op, BOOL, a.args[0], constant(c, inner))
    alike = b.op == "cast" and type_of(b.args[0]) == inner and wide.itemsize >= inner.itemsize
    if alike and (keeps_order or value.op in ("eq", "ne")):
        return folder.emit(value.op, BOOL, a.args[0], b.args[0])
    return None


def _equal_constant(folder: Folder, value: Value, c: int) -> Value | None:
    a = value.args[0]
    dtype = type_of(a)
    if a.op == "add" and a.args[1].op == "const" and folder.once(a):
        rest = wrapped(c - int(a.args[1].detail), dtype)
        return folder.emit(value.op, BOOL, a.args[0], constant(rest, dtype))
    if a.op == "xor" and a.args[1].op == "const":
        return folder.emit(value.op, BOOL, a.args[0], constant(c ^ int(a.args[1].detail), dtype))
    if c == 0 and a.op in ("sub", "xor"):
        return folder.emit(value.op, BOOL, *a.args)
    if c == 0 and a.op == "neg":
        return folder.emit(value.op, BOOL, a.args[0], constant(0, dtype))
    below = "lt" if value.op == "eq" else "ge"
    if c == 0 and a.op == "shr" and dtype.kind == "u" and folder.once(a):
        count = number(a.args[1])
        if count is not None:
            return folder.emit(below, BOOL, a.args[0], constant(1 << count, dtype))
    divisor = number(a.args[1]) if a.op in ("idiv", "rem") else None
    if c == 0 and divisor is not None and divisor > 1:
        if a.op == "rem" and power_of_two(divisor) is not None and folder.once(a):
            mask = folder.emit("and", dtype, a.args[0], constant(divisor - 1, dtype))
            return folder.emit(value.op, BOOL, mask, constant(0, dtype))
        if a.op == "idiv" and dtype.kind == "i":
            # -divisor < x < divisor, as one unsigned compare.
            unsigned: DType = np.dtype(f"u{dtype.itemsize}")
            shifted = folder.emit("add", dtype, a.args[0], constant(divisor - 1, dtype))
            bits = folder.emit("cast", unsigned, shifted)
            return folder.emit(below, BOOL, bits, constant(2 * divisor - 1, unsigned))
    return None


def _order_constant(folder: Folder, value: Value, c: int) -> Value | None:
    """Bring a compare with a constant to `lt` or `gt`, and take shifts off its operand."""
    a, b = value.args
    dtype = type_of(a)
    low, high = range_of(dtype)
    op = value.op
    if op == "ge":
        return constant(True, BOOL) if c == low else folder.emit("gt", BOOL, a, _like(c - 1, b))
    if op == "le":
        return constant(True, BOOL) if c == high else folder.emit("lt", BOOL, a, _like(c + 1, b))
    if (op == "lt" and c == low) or (op == "gt" and c == high):
        return constant(False, BOOL)
    if dtype.kind == "u" and (op, c) in (("gt", 0), ("lt", 1)):
        return folder.emit("ne" if op == "gt" else "eq", BOOL, a, _like(0, b))
    if a.op == "shr" and a.args[1].op == "const":
        count = int(a.args[1].detail)
        limit = c << count if op == "lt" else ((c + 1) << count) - 1
        if low <= limit <= high:
            return folder.emit(op, BOOL, a.args[0], _like(limit, b))
        return constant((limit > high) == (op == "lt"), BOOL)
    return None


def _like(c: int, b: Value) -> Value:
    return constant(c, type_of(b))


def fold_select(folder: Folder, value: Value) -> Value | None:
    """Choose at compile time; a choice by order is a minimum or maximum."""
    condition, a, b = value.args
    if condition.op == "const":
        return a if condition.constant else b
    if same(a, b):
        return a
    if condition.op == "not":
        return folder.emit("select", type_of(value), condition.args[0], b, a)
    if type_of(value) == BOOL and a.op == "const" and b.op == "const":
        return condition if bool(a.detail) else folder.emit("not", BOOL, condition)
    if condition.op in ("lt", "le", "gt", "ge") and is_int(value):
        less = condition.op in ("lt", "le")
        if same(condition.args[0], a) and same(condition.args[1], b):
            return folder.emit("min" if less else "max", type_of(value), a, b)
        if same(condition.args[0], b) and same(condition.args[1], a):
            return folder.emit("max" if less else "min", type_of(value), a, b)
    return None


def fold_cast(folder: Folder, value: Value) -> Value | None:
    """Drop casts there and back, and join lossless ones."""
    (a,) = value.args
    target, source = type_of(value), type_of(a)
    if target == source:
        return a
    if target == BOOL:
        return folder.emit("ne", BOOL, a, constant(0, source))
    if a.op != "cast":
        return None
    inner = type_of(a.args[0])
    if _saturates(inner, source, target):
        return None
    if _exact(inner, source) or (_whole(inner, source, target) and _narrows(source, target)):
        return folder.emit("cast", target, a.args[0])
    return None


def _saturates(inner: DType, source: DType, target: DType) -> bool:
    """Whether an integer that became a float may be cut off on its way to another integer."""
    if inner.kind not in "iu" or source.kind != "f" or target.kind not in "iu":
        return False
    low, high = range_of(inner)
    return low < range_of(target)[0] or range_of(target)[1] < high


def _exact(source: DType, target: DType) -> bool:
    """Whether a cast keeps every number, so that casting on is casting from the source."""
    if source == BOOL:
        return True
    if source.kind in "iu" and target.kind in "iu":
        low, high = range_of(source)
        return range_of(target)[0] <= low and high <= range_of(target)[1]
    if source.kind == "f":
        return target.kind == "f" and target.itemsize >= source.itemsize
    return target.kind == "f" and bits(source) < bits(target)


def _whole(*dtypes: DType) -> bool:
    return all(t.kind in "iu" for t in dtypes)


def _narrows(source: DType, target: DType) -> bool:
    return target.itemsize <= source.itemsize
