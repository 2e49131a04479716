"""Vector code of a graph: each node as WebAssembly SIMD for four lanes.

A value of up to 32 bits is one v128 of four lanes, a value of 64 bits two of two lanes. Narrow
integers are kept extended to 32 bits, half precision as its bits, a predicate as a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpusim.machine.compiled.symbols import NotDerivedError, Symbol
from gpusim.typing import DType

Parts = list[str]

_EVEN = "i8x16.shuffle 0 1 2 3 8 9 10 11 16 17 18 19 24 25 26 27"
_HIGH = "i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15"
_SIGN_BITS = "(v128.const i64x2 -9223372036854775808 -9223372036854775808)"


def is_wide(dtype: DType) -> bool:
    """Return whether a type takes 64 bits a lane."""
    return dtype.itemsize == 8


def shape_of(dtype: DType) -> str:
    """Return the interpretation of a vector that holds values of a type."""
    letter = "f" if dtype.kind == "f" and dtype.itemsize >= 4 else "i"
    return f"{letter}64x2" if is_wide(dtype) else f"{letter}32x4"


def constant(value: np.generic) -> Parts:
    """Return a constant in all lanes."""
    dtype = value.dtype
    if dtype.kind == "b":
        return [f"(v128.const i32x4 {' '.join(['-1' if value else '0'] * 4)})"]
    if is_wide(dtype):
        word = int(value.view(np.int64))
        return [f"(v128.const i64x2 {word} {word})"] * 2
    if dtype.kind == "f" and dtype.itemsize == 2:
        word = int(value.view(np.uint16))
    elif dtype.itemsize == 4:
        word = int(value.view(np.int32))
    else:
        word = int(value)
    return [f"(v128.const i32x4 {word} {word} {word} {word})"]


def packed(low: str, high: str) -> str:
    """Return the lower words of two vectors of 64-bit lanes as one vector."""
    return f"({_EVEN} {low} {high})"


def masks(part: str, dtype: DType) -> Parts:
    """Return a mask of 32-bit lanes as masks for the parts of a type."""
    if not is_wide(dtype):
        return [part]
    return [f"(i64x2.extend_{half}_i32x4_s {part})" for half in ("low", "high")]


def _extended(part: str, dtype: DType) -> str:
    """Return lanes wrapped to a narrow type, and extended to 32 bits again."""
    if dtype.kind not in "iu" or dtype.itemsize >= 4:
        return part
    bits, sign = 32 - 8 * dtype.itemsize, "s" if dtype.kind == "i" else "u"
    return f"(i32x4.shr_{sign} (i32x4.shl {part} (i32.const {bits})) (i32.const {bits}))"


class Vectors:
    """Code for the nodes of a graph, in order: each part of a value is a local variable."""

    def __init__(self, prefix: str) -> None:
        self.locals: list[str] = []
        self.code: list[str] = []
        self._prefix = prefix
        self._parts: dict[int, Parts] = {}
        self._wide_masks: dict[int, Parts] = {}

    def parts(self, value: Any) -> Parts:
        """Return the expressions of a value: a node already defined, or a constant."""
        if isinstance(value, Symbol):
            return [f"(local.get {name})" for name in self._parts[id(value)]]
        return constant(value)

    def is_defined(self, symbol: Symbol) -> bool:
        """Return whether a node has its code."""
        return id(symbol) in self._parts

    def define(self, symbol: Symbol, expressions: Sequence[str]) -> None:
        """Compute a node's parts."""
        self._parts[id(symbol)] = [self.kept(expression) for expression in expressions]

    @contextmanager
    def writing_to(self, code: list[str]) -> Iterator[None]:
        """Write the code of nodes elsewhere for a while."""
        mine, self.code = self.code, code
        yield
        self.code = mine

    def kept(self, expression: str) -> str:
        """Return a local variable that keeps a vector."""
        name = f"{self._prefix}{len(self.locals)}"
        self.locals.append(name)
        self.code.append(f"(local.set {name} {expression})")
        return name

    def packed_mask(self, symbol: Symbol, masks_of_64: Parts) -> Parts:
        """Return a predicate of 64-bit values as one mask; the two wide ones are kept as well."""
        names = [self.kept(mask) for mask in masks_of_64]
        self._wide_masks[id(symbol)] = [f"(local.get {name})" for name in names]
        return [packed(*self._wide_masks[id(symbol)])]

    def masks(self, predicate: Any, dtype: DType) -> Parts:
        """Return a predicate as masks for the parts of a type."""
        if is_wide(dtype) and id(predicate) in self._wide_masks:
            return self._wide_masks[id(predicate)]
        return masks(self.parts(predicate)[0], dtype)

    def wide_masks(self, predicate: Any) -> Parts | None:
        """Return the wide masks of a predicate of 64-bit values, None for any other."""
        return self._wide_masks.get(id(predicate))

    def add(self, symbol: Symbol) -> None:
        """Write a node's code; NotDerivedError if WebAssembly has none for it."""
        if self.is_defined(symbol):
            return
        emit = _EMIT.get(symbol.operation)
        if emit is None:
            raise NotDerivedError(f"{symbol.operation} of {symbol.dtype}")
        self.define(symbol, emit(self, symbol))


def _each(vectors: Vectors, symbol: Symbol, form: Callable[..., str]) -> Parts:
    """Return an expression for each part of the operands."""
    operands = [vectors.parts(x) for x in symbol.operands]
    return [form(*parts) for parts in zip(*operands, strict=True)]


def _type_of(value: Any) -> DType:
    found: DType = value.dtype
    return found


def _arithmetic(name: str) -> Callable[[Vectors, Symbol], Parts]:
    def emit(vectors: Vectors, symbol: Symbol) -> Parts:
        dtype = symbol.dtype
        if dtype.kind == "b" or (name in ("div", "sqrt") and dtype.kind != "f"):
            raise NotDerivedError(f"{name} of {dtype}")
        if name == "mul" and dtype.kind in "iu" and is_wide(dtype):
            product = _extended_product(vectors, symbol)
            if product is not None:
                return product
        shape = shape_of(dtype)
        made = _each(vectors, symbol, lambda *parts: f"({shape}.{name} {' '.join(parts)})")
        return [_extended(made[0], dtype)] if len(made) == 1 else made

    return emit


def _extended_product(vectors: Vectors, symbol: Symbol) -> Parts | None:
    """Return a product of 64 bits of two operands of 32, None for others."""
    found, signs = [], set()
    for operand in symbol.operands:
        if not isinstance(operand, Symbol):
            value = int(operand)
            if not -(2**31) <= value < 2**31:
                return None
            found.append(constant(np.int32(value))[0])
            signs |= {"s"} if value < 0 else set()
            continue
        inner = operand
        while inner.operation == "view":
            inner = inner.operands[0]
        narrow = inner.operands[0] if inner.operation == "cast" else None
        if not isinstance(narrow, Symbol) or narrow.dtype.kind not in "iu" or narrow.itemsize > 4:
            return None
        found.append(vectors.parts(narrow)[0])
        signs.add("s" if narrow.dtype.kind == "i" else "u")
    if len(signs) != 1:
        return None
    sign = signs.pop()
    return [f"(i64x2.extmul_{half}_i32x4_{sign} {' '.join(found)})" for half in ("low", "high")]


def _of_floats(name: str) -> Callable[[Vectors, Symbol], Parts]:
    def emit(vectors: Vectors, symbol: Symbol) -> Parts:
        if symbol.dtype.kind != "f":
            raise NotDerivedError(f"{name} of {symbol.dtype}")
        shape = shape_of(symbol.dtype)
        return _each(vectors, symbol, lambda *parts: f"({shape}.{name} {' '.join(parts)})")

    return emit


def _bitwise(name: str, *, logical: bool = False) -> Callable[[Vectors, Symbol], Parts]:
    def emit(vectors: Vectors, symbol: Symbol) -> Parts:
        if logical and any(_type_of(x).kind != "b" for x in symbol.operands):
            raise NotDerivedError(f"logical {name} of numbers")
        wide = [vectors.wide_masks(operand) for operand in symbol.operands]
        if symbol.dtype.kind == "b" and all(wide):
            both = zip(*(one for one in wide if one is not None), strict=True)
            return vectors.packed_mask(symbol, [f"(v128.{name} {' '.join(x)})" for x in both])
        made = _each(vectors, symbol, lambda *parts: f"(v128.{name} {' '.join(parts)})")
        return [_extended(made[0], symbol.dtype)] if len(made) == 1 else made

    return emit


def _comparison(name: str) -> Callable[[Vectors, Symbol], Parts]:
    def emit(vectors: Vectors, symbol: Symbol) -> Parts:
        dtype = _type_of(symbol.operands[0])
        if dtype.kind == "b":
            if name not in ("eq", "ne"):
                raise NotDerivedError("order of predicates")
            (differ,) = _each(vectors, symbol, lambda a, b: f"(v128.xor {a} {b})")
            return [differ if name == "ne" else f"(v128.not {differ})"]
        sign = "" if dtype.kind == "f" or name in ("eq", "ne") else f"_{_sign_of(dtype)}"
        shape = shape_of(dtype)
        if not is_wide(dtype):
            return _each(vectors, symbol, lambda a, b: f"({shape}.{name}{sign} {a} {b})")

        def compared(a: str, b: str) -> str:
            if sign == "_u":
                a, b = (f"(v128.xor {x} {_SIGN_BITS})" for x in (a, b))
            return f"({shape}.{name}{'_s' if sign else ''} {a} {b})"

        return vectors.packed_mask(symbol, _each(vectors, symbol, compared))

    return emit


def _sign_of(dtype: DType) -> str:
    return "s" if dtype.kind == "i" else "u"


def _test(form: Callable[[str, DType], str]) -> Callable[[Vectors, Symbol], Parts]:
    """Return the code of a predicate of one number."""

    def emit(vectors: Vectors, symbol: Symbol) -> Parts:
        dtype = _type_of(symbol.operands[0])
        if dtype.kind != "f":
            raise NotDerivedError(f"{symbol.operation} of {dtype}")
        made = [form(part, dtype) for part in vectors.parts(symbol.operands[0])]
        return made if len(made) == 1 else vectors.packed_mask(symbol, made)

    return emit


def _against_infinity(name: str) -> Callable[[str, DType], str]:
    def form(part: str, dtype: DType) -> str:
        shape, infinity = shape_of(dtype), constant(dtype.type(np.inf))[0]
        return f"({shape}.{name} ({shape}.abs {part}) {infinity})"

    return form


def _is_negative(part: str, dtype: DType) -> str:
    shape = "i64x2" if is_wide(dtype) else "i32x4"
    return f"({shape}.lt_s {part} (v128.const i64x2 0 0))"


def _logical_not(vectors: Vectors, symbol: Symbol) -> Parts:
    if _type_of(symbol.operands[0]).kind != "b":
        raise NotDerivedError("logical not of numbers")
    wide = vectors.wide_masks(symbol.operands[0])
    if wide is not None:
        return vectors.packed_mask(symbol, [f"(v128.not {mask})" for mask in wide])
    return [f"(v128.not {part})" for part in vectors.parts(symbol.operands[0])]


def _select(vectors: Vectors, symbol: Symbol) -> Parts:
    condition, value, other = symbol.operands
    lanes = vectors.masks(condition, symbol.dtype)
    both = zip(vectors.parts(value), vectors.parts(other), lanes, strict=True)
    return [f"(v128.bitselect {a} {b} {mask})" for a, b, mask in both]


def _fused(vectors: Vectors, symbol: Symbol) -> Parts:
    shape = shape_of(symbol.dtype)
    return _each(vectors, symbol, lambda a, b, c: f"({shape}.relaxed_madd {a} {b} {c})")


def _absolute(vectors: Vectors, symbol: Symbol) -> Parts:
    if symbol.dtype.kind in "ub":
        return vectors.parts(symbol.operands[0])
    shape = shape_of(symbol.dtype)
    return [
        _extended(f"({shape}.abs {part})", symbol.dtype)
        for part in vectors.parts(symbol.operands[0])
    ]


def _same(vectors: Vectors, symbol: Symbol) -> Parts:
    return vectors.parts(symbol.operands[0])


def _copysign(vectors: Vectors, symbol: Symbol) -> Parts:
    bit = constant(np.uint64(1 << 63) if is_wide(symbol.dtype) else np.uint32(1 << 31))[0]
    return _each(vectors, symbol, lambda a, b: f"(v128.bitselect {b} {a} {bit})")


def _population(vectors: Vectors, symbol: Symbol) -> Parts:
    dtype = _type_of(symbol.operands[0])

    def counted(part: str) -> str:
        return (
            f"(i32x4.extadd_pairwise_i16x8_u (i16x8.extadd_pairwise_i8x16_u (i8x16.popcnt {part})))"
        )

    if not is_wide(dtype):
        part = vectors.parts(symbol.operands[0])[0]
        if dtype.itemsize < 4:  # without the copies of a sign
            part = _extended(part, np.dtype(f"u{dtype.itemsize}"))
        return [counted(part)]
    low, high = (vectors.kept(counted(part)) for part in vectors.parts(symbol.operands[0]))
    halves = (
        f"(i64x2.add (local.get {x}) (i64x2.shr_u (local.get {x}) (i32.const 32)))"
        for x in (low, high)
    )
    return [packed(*halves)]


def _shift(way: str) -> Callable[[Vectors, Symbol], Parts]:
    def emit(vectors: Vectors, symbol: Symbol) -> Parts:
        value, count = symbol.operands
        dtype = symbol.dtype
        name = "shl" if way == "left" else f"shr_{_sign_of(dtype)}"
        bits = 8 * dtype.itemsize
        if isinstance(count, Symbol):
            return _shift_by_lane(vectors, symbol, name, bits)
        steps = int(count)
        if not 0 <= steps < bits:
            if name != "shr_s":
                return constant(dtype.type(0))
            steps = bits - 1
        shape = shape_of(dtype)
        made = [f"({shape}.{name} {part} (i32.const {steps}))" for part in vectors.parts(value)]
        return [_extended(made[0], dtype)] if len(made) == 1 else made

    return emit


def _shift_by_lane(vectors: Vectors, symbol: Symbol, name: str, bits: int) -> Parts:
    """Shift each lane by its own count: vectors of WebAssembly shift all lanes alike."""
    dtype = symbol.dtype
    scalar, shape = ("i64", "i64x2") if is_wide(dtype) else ("i32", "i32x4")
    shifted = by_lanes(vectors, symbol, lambda a, b: f"({scalar}.{name} {a} {b})")
    limit = constant(np.int64(bits) if is_wide(dtype) else np.int32(bits))[0]
    made = []
    value, count = (vectors.parts(x) for x in symbol.operands)
    for part, amount, result in zip(value, count, shifted, strict=True):
        if is_wide(dtype):
            inside = (
                f"(i64x2.lt_s (v128.xor {amount} {_SIGN_BITS}) (v128.xor {limit} {_SIGN_BITS}))"
            )
        else:
            inside = f"(i32x4.lt_u {amount} {limit})"
        beyond = "(v128.const i64x2 0 0)"
        if name == "shr_s":
            last = 63 if is_wide(dtype) else 31
            beyond = f"({shape}.shr_s {part} (i32.const {last}))"
        made.append(f"(v128.bitselect {result} {beyond} {inside})")
    return [_extended(made[0], dtype)] if len(made) == 1 else made


def by_lanes(vectors: Vectors, symbol: Symbol, form: Callable[..., str]) -> Parts:
    """Return the parts of a scalar function of each lane."""
    operands = []
    for operand in symbol.operands:
        dtype = _type_of(operand)
        shape, lanes = shape_of(dtype), 2 if is_wide(dtype) else 4
        parts = vectors.parts(operand)
        operands.append(
            [f"({shape}.extract_lane {k % lanes} {parts[k // lanes]})" for k in range(4)]
        )
    values = [form(*lane) for lane in zip(*operands, strict=True)]
    shape, lanes = shape_of(symbol.dtype), 2 if is_wide(symbol.dtype) else 4
    made = []
    for first in range(0, 4, lanes):
        vector = f"({shape}.splat {values[first]})"
        for k in range(1, lanes):
            vector = f"({shape}.replace_lane {k} {vector} {values[first + k]})"
        made.append(vectors.kept(vector))
    return [f"(local.get {name})" for name in made]


def _division(name: str) -> Callable[[Vectors, Symbol], Parts]:
    def emit(vectors: Vectors, symbol: Symbol) -> Parts:
        dtype = symbol.dtype
        if dtype.kind not in "iu":
            raise NotDerivedError(f"{name} of {dtype}")
        function = f"${name}_{_sign_of(dtype)}{64 if is_wide(dtype) else 32}"
        made = by_lanes(vectors, symbol, lambda a, b: f"(call {function} {a} {b})")
        return [_extended(made[0], dtype)] if len(made) == 1 else made

    return emit


def _better(name: str) -> Callable[[Vectors, Symbol], Parts]:
    """Return the code of fmin or fmax: a NaN loses."""

    def emit(vectors: Vectors, symbol: Symbol) -> Parts:
        if symbol.dtype.kind != "f":
            raise NotDerivedError(f"{symbol.operation} of {symbol.dtype}")
        shape = shape_of(symbol.dtype)

        def chosen(a: str, b: str) -> str:
            wins = f"(v128.or ({shape}.{name} {a} {b}) ({shape}.ne {b} {b}))"
            return f"(v128.bitselect {a} {b} {wins})"

        return _each(vectors, symbol, chosen)

    return emit


def _extreme(name: str) -> Callable[[Vectors, Symbol], Parts]:
    def emit(vectors: Vectors, symbol: Symbol) -> Parts:
        dtype = symbol.dtype
        shape, sign = shape_of(dtype), _sign_of(dtype)
        if dtype.kind == "b":
            bits = "and" if name == "min" else "or"
            return _each(vectors, symbol, lambda a, b: f"(v128.{bits} {a} {b})")
        if dtype.kind == "f":
            return _each(vectors, symbol, lambda a, b: f"({shape}.{name} {a} {b})")
        if not is_wide(dtype):
            return _each(vectors, symbol, lambda a, b: f"({shape}.{name}_{sign} {a} {b})")
        better = "lt_s" if name == "min" else "gt_s"

        def chosen(a: str, b: str) -> str:
            x, y = (a, b) if sign == "s" else (f"(v128.xor {v} {_SIGN_BITS})" for v in (a, b))
            return f"(v128.bitselect {a} {b} (i64x2.{better} {x} {y}))"

        return _each(vectors, symbol, chosen)

    return emit


def _view(vectors: Vectors, symbol: Symbol) -> Parts:
    value = symbol.operands[0]
    parts = vectors.parts(value)
    if symbol.dtype.kind == "b":
        return [f"(i32x4.ne {parts[0]} (v128.const i64x2 0 0))"]
    if value.dtype.kind == "b":
        return [f"(v128.and {parts[0]} {constant(np.int32(1))[0]})"]
    return [_extended(parts[0], symbol.dtype)] if len(parts) == 1 else parts


def _cast(vectors: Vectors, symbol: Symbol) -> Parts:
    value, to = symbol.operands[0], symbol.dtype
    of, parts = value.dtype, vectors.parts(value)
    if np.dtype(np.float16) in (of, to):
        raise NotDerivedError("half precision")
    if to.kind == "b":
        made = [f"({shape_of(of)}.ne {part} (v128.const i64x2 0 0))" for part in parts]
        return made if len(made) == 1 else [packed(*made)]
    if of.kind == "b":
        ones = vectors.kept(f"(v128.and {parts[0]} {constant(np.int32(1))[0]})")
        return _from_word(f"(local.get {ones})", np.dtype(np.int32), to)
    if of.kind in "iu" and not is_wide(of):
        return _from_word(parts[0], of, to)
    if of.kind in "iu":
        return _from_wide(vectors, symbol, of, to, parts)
    if to.kind == "f":
        if is_wide(to):
            upper = f"({_HIGH} {parts[0]} {parts[0]})"
            return [f"(f64x2.promote_low_f32x4 {part})" for part in (parts[0], upper)]
        low, high = (f"(f32x4.demote_f64x2_zero {part})" for part in parts)
        return [f"(i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 {low} {high})"]
    scalar, sign = ("i64" if is_wide(to) else "i32"), _sign_of(to) if to.itemsize >= 4 else "s"
    real = "f64" if is_wide(of) else "f32"
    whole = by_lanes(vectors, symbol, lambda lane: f"({scalar}.trunc_sat_{real}_{sign} {lane})")
    return [_extended(whole[0], to)] if len(whole) == 1 else whole


def _from_word(part: str, of: DType, to: DType) -> Parts:
    """Convert integers of up to 32 bits."""
    sign, upper = _sign_of(of), f"({_HIGH} {part} {part})"
    if to.kind == "f":
        if is_wide(to):
            return [f"(f64x2.convert_low_i32x4_{sign} {half})" for half in (part, upper)]
        return [f"(f32x4.convert_i32x4_{sign} {part})"]
    if is_wide(to):
        return [f"(i64x2.extend_{half}_i32x4_{sign} {part})" for half in ("low", "high")]
    return [_extended(part, to)]


def _from_wide(vectors: Vectors, symbol: Symbol, of: DType, to: DType, parts: Parts) -> Parts:
    """Convert integers of 64 bits."""
    if to.kind == "f":
        real, sign = ("f64" if is_wide(to) else "f32"), _sign_of(of)
        return by_lanes(vectors, symbol, lambda lane: f"({real}.convert_i64_{sign} {lane})")
    return parts if is_wide(to) else [_extended(packed(*parts), to)]


_EMIT: dict[str, Callable[[Vectors, Symbol], Parts]] = {
    "cast": _cast,
    "view": _view,
    "where": _select,
    "fused": _fused,
    "positive": _same,
    "add": _arithmetic("add"),
    "subtract": _arithmetic("sub"),
    "multiply": _arithmetic("mul"),
    "negative": _arithmetic("neg"),
    "divide": _arithmetic("div"),
    "sqrt": _arithmetic("sqrt"),
    "floor": _of_floats("floor"),
    "ceil": _of_floats("ceil"),
    "trunc": _of_floats("trunc"),
    "rint": _of_floats("nearest"),
    "bitwise_and": _bitwise("and"),
    "bitwise_or": _bitwise("or"),
    "bitwise_xor": _bitwise("xor"),
    "invert": _bitwise("not"),
    "logical_and": _bitwise("and", logical=True),
    "logical_or": _bitwise("or", logical=True),
    "logical_xor": _bitwise("xor", logical=True),
    "logical_not": _logical_not,
    "less": _comparison("lt"),
    "less_equal": _comparison("le"),
    "greater": _comparison("gt"),
    "greater_equal": _comparison("ge"),
    "equal": _comparison("eq"),
    "not_equal": _comparison("ne"),
    "isnan": _test(lambda part, dtype: f"({shape_of(dtype)}.ne {part} {part})"),
    "isinf": _test(_against_infinity("eq")),
    "isfinite": _test(_against_infinity("lt")),
    "signbit": _test(_is_negative),
    "absolute": _absolute,
    "fabs": _absolute,
    "copysign": _copysign,
    "bitwise_count": _population,
    "left_shift": _shift("left"),
    "right_shift": _shift("right"),
    "floor_divide": _division("floor_divide"),
    "remainder": _division("remainder"),
    "fmin": _better("le"),
    "fmax": _better("ge"),
    "minimum": _extreme("min"),
    "maximum": _extreme("max"),
}
