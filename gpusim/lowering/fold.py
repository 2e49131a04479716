"""Simplify single operations: constants, algebraic identities, compares, casts, branches.

A rule looks at one operation and its operands and returns a value to use instead. What
is left over stays for `dead` to remove. The rules are those of LLVM's InstCombine that
show in the machine code of small kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gpusim.compiler.ir import BOOL, OPERATIONS, Block, DType, Function, Value, constant
from gpusim.lowering.evaluate import constant_result
from gpusim.lowering.graph import (
    remove_unreachable,
    remove_values,
    replace_uses,
    reverse_postorder,
    set_jump,
)

COMMUTATIVE = frozenset({"add", "mul", "and", "or", "xor", "min", "max", "eq", "ne"})
SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
INVERSE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


class Folder:
    """One walk over a function: what is being written, and how often each value is used."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.replacements: dict[Value, Value] = {}
        self.body: list[Value] = []
        self.line = 0
        self.uses: dict[Value, int] = {}
        for value in function.values():
            if value.op != "source_branch":
                for arg in value.args:
                    self.uses[arg] = self.uses.get(arg, 0) + 1

    def once(self, value: Value) -> bool:
        """Whether only one operation uses `value`, as far as is known."""
        return self.uses.get(value, 0) <= 1

    def emit(self, op: str, dtype: DType, *args: Value) -> Value:
        """Return `op` of `args`, simplified, written before the operation at hand."""
        return self.write(Value(op, dtype, list(args), line=self.line))

    def write(self, value: Value) -> Value:
        """Return what `value` simplifies to, writing it if it is new."""
        found = self.simplify(value)
        if found is None:
            self.body.append(value)
            for arg in value.args:
                self.uses[arg] = self.uses.get(arg, 0) + 1
            return value
        return found

    def simplify(self, value: Value) -> Value | None:
        """Return the value to use instead of `value`, None where it stays."""
        if not OPERATIONS[value.op].pure or value.dtype is None:
            return None
        known = constant_result(value)
        if known is not None:
            return constant(known, value.dtype)
        if value.op in COMMUTATIVE and value.args[0].op == "const":
            value.args = [value.args[1], value.args[0]]
        rule = RULES.get(value.op)
        return None if rule is None else rule(self, value)

    def replace(self, value: Value, found: Value) -> None:
        """Let `found` stand for `value` from here on; it is either new or `value` used it."""
        self.replacements[value] = found
        others = max(self.uses.get(found, 0) - 1, 0)
        self.uses[found] = others + self.uses.get(value, 0)

    def now(self, value: Value) -> Value:
        """Return what stands for `value` by now."""
        while value in self.replacements:
            value = self.replacements[value]
        return value


def fold(function: Function) -> bool:
    """Apply every rule once, in an order that sees operands first; return whether any did."""
    folder = Folder(function)
    changed = False
    seen: set[Block] = set()
    for block in reverse_postorder(function):
        if block is not function.entry and seen.isdisjoint(block.preds):
            continue  # the way to it was folded away in this round
        seen.add(block)
        folder.body = []
        for phi in block.phis:
            phi.args = [folder.now(a) for a in phi.args]
            folder.line = phi.line
            found = _phi(folder, phi, block)
            if found is not None:
                folder.replace(phi, found)
        for value in block.body:
            value.args = [folder.now(a) for a in value.args]
            folder.line = value.line
            found = folder.simplify(value)
            if found is None:
                folder.body.append(value)
            else:
                folder.replace(value, found)
        block.body = folder.body
        if block.condition is not None:
            block.condition = folder.now(block.condition)
            changed |= _branch(block)
    replace_uses(function, folder.replacements)
    remove_values(function, {v for v in folder.replacements if v.op == "phi"})
    changed |= bool(folder.replacements)
    return remove_unreachable(function) or changed


def _branch(block: Block) -> bool:
    """Make a branch whose way is known a jump, and one on `not` a branch on its operand."""
    condition = block.condition
    assert condition is not None
    if_true, if_false = block.targets
    if if_true is if_false:
        set_jump(block, if_true)
    elif condition.op == "const":
        set_jump(block, if_true if condition.constant else if_false)
    elif condition.op == "not":
        block.condition, block.targets = condition.args[0], (if_false, if_true)
    else:
        return False
    return True


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


def _power(count: int | None) -> int | None:
    """Return k where `count` is 2**k for k > 0."""
    if count is None or count < 2 or count & (count - 1):
        return None
    return count.bit_length() - 1


def _bits(dtype: DType) -> int:
    return dtype.itemsize * 8


def _range(dtype: DType) -> tuple[int, int]:
    bits = _bits(dtype)
    return (0, 2**bits - 1) if dtype.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _is_int(value: Value) -> bool:
    return value.dtype is not None and value.dtype.kind in "iu"


def _float_constant(value: Value) -> float | None:
    if value.op != "const" or value.dtype is None or value.dtype.kind != "f":
        return None
    return float(value.detail)


def _type(value: Value) -> DType:
    assert value.dtype is not None
    return value.dtype


def _phi(folder: Folder, phi: Value, block: Block) -> Value | None:
    """A phi of one value is that value; one of like operations is the operation of a phi."""
    others = [a for a in phi.args if a is not phi]
    if not others:
        return None
    first = others[0]
    if all(same(first, a) for a in others[1:]):
        return first
    if first.op not in MOVES_THROUGH_PHI or len(others) != len(phi.args):
        return None
    for other in others:
        alike = other.op == first.op and other.dtype == first.dtype and folder.once(other)
        if not alike or _type(other.args[0]) != _type(first.args[0]):
            return None
        if any(a.op != "const" or not same(a, b) for a, b in _tails(other, first)):
            return None
    if any(a.args[0].op == "const" for a in others):
        return None
    inner = Value("phi", first.args[0].dtype, [a.args[0] for a in others], line=phi.line)
    block.phis = [*block.phis, inner]
    moved = Value(first.op, first.dtype, [inner, *first.args[1:]], first.detail, phi.line)
    folder.body.append(moved)
    return moved


def _tails(a: Value, b: Value) -> list[tuple[Value, Value]]:
    return list(zip(a.args[1:], b.args[1:], strict=True))


def _add(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    if not _is_int(value):
        # x + 0.0 is not x where x is -0.0.
        return a if _float_constant(b) == 0 and str(b.detail).startswith("-") else None
    dtype, c = _type(value), number(b)
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
    return _wrap(int(a.detail) + int(b.detail), _type(a))


def _wrap(total: int, dtype: DType) -> int:
    low, high = _range(dtype)
    return (total - low) % (high - low + 1) + low


def _sub(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    if not _is_int(value):
        return a if _float_constant(b) == 0 and str(b.detail)[0] != "-" else None
    dtype, c = _type(value), number(b)
    if c is not None:
        return folder.emit("add", dtype, a, constant(_wrap(-c, dtype), dtype))
    if a is b:
        return constant(0, dtype)
    if number(a) == 0:
        return folder.emit("neg", dtype, b)
    if a.op == "add" and b in a.args:
        return a.args[1] if a.args[0] is b else a.args[0]
    if a.op == "const" and b.op == "add" and b.args[1].op == "const":
        rest = _wrap(int(a.detail) - int(b.args[1].detail), dtype)
        return folder.emit("sub", dtype, constant(rest, dtype), b.args[0])
    if b.op == "neg":
        return folder.emit("add", dtype, a, b.args[0])
    return None


def _mul(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    dtype = _type(value)
    if dtype.kind == "f":
        factor = _float_constant(b)
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
    power = _power(c)
    if power is not None:
        return folder.emit("shl", dtype, a, constant(power, dtype))
    if a.op == "mul" and a.args[1].op == "const":
        product = _wrap(int(a.args[1].detail) * c, dtype)
        return folder.emit("mul", dtype, a.args[0], constant(product, dtype))
    if a.op == "shl" and a.args[1].op == "const":
        product = _wrap(c << int(a.args[1].detail), dtype)
        return folder.emit("mul", dtype, a.args[0], constant(product, dtype))
    return None


def _div(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    divisor = _float_constant(b)
    if divisor == 1:
        return a
    if divisor is None:
        return None
    mantissa, exponent = math.frexp(divisor)
    if abs(mantissa) == 0.5 and abs(exponent) < 100:  # multiplying by 1 / 2**k is exact
        return folder.emit("mul", _type(value), a, constant(1 / divisor, _type(value)))
    return None


def _idiv(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    dtype, c = _type(value), number(b)
    if c == 1:
        return a
    if c == -1 and dtype.kind == "i":
        return folder.emit("neg", dtype, a)
    power = _power(c)
    if power is not None and dtype.kind == "u":
        return folder.emit("shr", dtype, a, constant(power, dtype))
    return None


def _rem(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    dtype, c = _type(value), number(b)
    if c == 1 or (c == -1 and dtype.kind == "i"):
        return constant(0, dtype)
    if _power(c) is not None and dtype.kind == "u":
        assert c is not None
        return folder.emit("and", dtype, a, constant(c - 1, dtype))
    return None


def _shl(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    dtype, c = _type(value), number(b)
    if c is None:
        return None
    if c == 0:
        return a
    if c >= _bits(dtype) or c < 0:
        return constant(0, dtype)
    inner = number(a.args[1]) if a.op in ("shl", "shr") else None
    if inner is None:
        return None
    if a.op == "shl":
        return folder.emit("shl", dtype, a.args[0], constant(c + inner, dtype))
    if inner == c:
        return folder.emit("and", dtype, a.args[0], constant(_wrap(-1 << c, dtype), dtype))
    return None


def _shr(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    dtype, c = _type(value), number(b)
    if c is None:
        return None
    if c == 0:
        return a
    bits = _bits(dtype)
    if c >= bits or c < 0:
        if dtype.kind == "u":
            return constant(0, dtype)
        return folder.emit("shr", dtype, a, constant(bits - 1, dtype))
    inner = number(a.args[1]) if a.op in ("shl", "shr") else None
    if inner is None:
        return None
    if a.op == "shr":
        return folder.emit("shr", dtype, a.args[0], constant(min(c + inner, 2 * bits), dtype))
    if inner == c and dtype.kind == "u":
        return folder.emit("and", dtype, a.args[0], constant(2 ** (bits - c) - 1, dtype))
    return None


def _and(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    dtype = _type(value)
    if a is b:
        return a
    if b.op != "const":
        return None
    c = int(b.detail)
    if c == 0:
        return b
    if c == (1 if dtype == BOOL else _wrap(-1, dtype)):
        return a
    if a.op == "and" and a.args[1].op == "const":
        both = int(a.args[1].detail) & c
        return folder.emit("and", dtype, a.args[0], constant(both, dtype))
    return None


def _or(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    dtype = _type(value)
    if a is b:
        return a
    if b.op != "const":
        return None
    c = int(b.detail)
    if c == 0:
        return a
    if c == (1 if dtype == BOOL else _wrap(-1, dtype)):
        return b
    if a.op == "or" and a.args[1].op == "const":
        both = int(a.args[1].detail) | c
        return folder.emit("or", dtype, a.args[0], constant(both, dtype))
    return None


def _xor(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    dtype = _type(value)
    if a is b:
        return constant(0, dtype)
    if b.op != "const":
        return None
    if int(b.detail) == 0:
        return a
    if dtype == BOOL or int(b.detail) == _wrap(-1, dtype):
        return folder.emit("not", dtype, a)
    return None


def _neg(folder: Folder, value: Value) -> Value | None:
    (a,) = value.args
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub" and _is_int(value):
        return folder.emit("sub", _type(value), a.args[1], a.args[0])
    return None


def _not(folder: Folder, value: Value) -> Value | None:
    (a,) = value.args
    if a.op == "not":
        return a.args[0]
    if a.op in INVERSE and (_type(a.args[0]).kind != "f" or a.op in ("eq", "ne")):
        return folder.emit(INVERSE[a.op], BOOL, *a.args)
    return None


def _extreme(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    if a is b:
        return a
    if a.op == value.op and a.args[1].op == "const" and b.op == "const":
        limit = folder.emit(value.op, _type(value), a.args[1], b)
        return folder.emit(value.op, _type(value), a.args[0], limit)
    return None


def _compare(folder: Folder, value: Value) -> Value | None:
    a, b = value.args
    if a.op == "const":
        return folder.emit(SWAPPED[value.op], BOOL, b, a)
    dtype = _type(a)
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
    inner, wide = _type(a.args[0]), _type(a)
    if inner == BOOL and b.op == "const" and value.op in ("eq", "ne") and int(b.detail) in (0, 1):
        wanted = constant(bool(b.detail), BOOL)
        return folder.emit(value.op, BOOL, a.args[0], wanted)
    if inner.kind not in "iu" or wide.kind not in "iu":
        return None
    low, high = _range(inner)
    keeps_order = _range(wide)[0] <= low and high <= _range(wide)[1]
    c = number(b)
    if c is not None and keeps_order and low <= c <= high and inner.itemsize >= 4:
        return folder.emit(value.op, BOOL, a.args[0], constant(c, inner))
    alike = b.op == "cast" and _type(b.args[0]) == inner and wide.itemsize >= inner.itemsize
    if alike and (keeps_order or value.op in ("eq", "ne")):
        return folder.emit(value.op, BOOL, a.args[0], b.args[0])
    return None


def _equal_constant(folder: Folder, value: Value, c: int) -> Value | None:
    a = value.args[0]
    dtype = _type(a)
    if a.op == "add" and a.args[1].op == "const" and folder.once(a):
        rest = _wrap(c - int(a.args[1].detail), dtype)
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
        if a.op == "rem" and _power(divisor) is not None and folder.once(a):
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
    dtype = _type(a)
    low, high = _range(dtype)
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
    return constant(c, _type(b))


def _select(folder: Folder, value: Value) -> Value | None:
    condition, a, b = value.args
    if condition.op == "const":
        return a if condition.constant else b
    if same(a, b):
        return a
    if condition.op == "not":
        return folder.emit("select", _type(value), condition.args[0], b, a)
    if _type(value) == BOOL and a.op == "const" and b.op == "const":
        return condition if bool(a.detail) else folder.emit("not", BOOL, condition)
    if condition.op in ("lt", "le", "gt", "ge") and _is_int(value):
        less = condition.op in ("lt", "le")
        if same(condition.args[0], a) and same(condition.args[1], b):
            return folder.emit("min" if less else "max", _type(value), a, b)
        if same(condition.args[0], b) and same(condition.args[1], a):
            return folder.emit("max" if less else "min", _type(value), a, b)
    return None


def _cast(folder: Folder, value: Value) -> Value | None:
    (a,) = value.args
    target, source = _type(value), _type(a)
    if target == source:
        return a
    if target == BOOL:
        return folder.emit("ne", BOOL, a, constant(0, source))
    if a.op != "cast":
        return None
    inner = _type(a.args[0])
    if _exact(inner, source) or (_whole(inner, source, target) and _narrows(source, target)):
        return folder.emit("cast", target, a.args[0])
    return None


def _exact(source: DType, target: DType) -> bool:
    """Whether a cast keeps every number, so that casting on is casting from the source."""
    if source == BOOL:
        return True
    if source.kind in "iu" and target.kind in "iu":
        low, high = _range(source)
        return _range(target)[0] <= low and high <= _range(target)[1]
    if source.kind == "f":
        return target.kind == "f" and target.itemsize >= source.itemsize
    return target.kind == "f" and _bits(source) < _bits(target)


def _whole(*dtypes: DType) -> bool:
    return all(t.kind in "iu" for t in dtypes)


def _narrows(source: DType, target: DType) -> bool:
    return target.itemsize <= source.itemsize


Rule = Callable[[Folder, Value], Value | None]
RULES: dict[str, Rule] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "idiv": _idiv,
    "rem": _rem,
    "shl": _shl,
    "shr": _shr,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "neg": _neg,
    "not": _not,
    "min": _extreme,
    "max": _extreme,
    "select": _select,
    "cast": _cast,
    **dict.fromkeys(INVERSE, _compare),
}
MOVES_THROUGH_PHI = frozenset(
    {"add", "mul", "and", "or", "xor", "shl", "shr", "neg", "not", "abs", "cast"}
)
