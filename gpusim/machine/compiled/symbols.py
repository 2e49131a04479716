"""Symbolic arrays: calling the NumPy function of an op with symbols records its graph.

A symbol stands for the 32 lanes of a register. It takes part in NumPy's protocols, so that an
evaluator of `isa` or of a form runs unchanged; a node names the NumPy function, the type of the
result and the operands. NotDerivedError where an evaluator depends on values of lanes.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gpusim.isa.fused import fused_multiply_add
from gpusim.typing import DType

_ROWS = ("gpusim.isa.", "gpusim.sass.")  # packages with evaluators
_LOCK = threading.Lock()
MOST_NODES = 4000  # of a graph: a few hundred are an instruction's, at most


class NotDerivedError(Exception):
    """An operation without a graph, or a node without a vector instruction."""


class Graph:
    """Nodes by operation and operands, each once, in order of their creation."""

    def __init__(self) -> None:
        self.nodes: list[Symbol] = []
        self._known: dict[Any, Symbol] = {}

    def node(self, operation: str, dtype: Any, *operands: Any) -> Symbol:
        """Return the node of an operation; operands are nodes, NumPy scalars or plain values.

        Words that are joined to 64 bits, and parted again, are the words.
        """
        kind = np.dtype(dtype)
        same = _simpler(operation, kind, operands)
        if same is not None:
            return same
        key = (operation, kind, *map(_key, operands))
        found = self._known.get(key)
        if found is None:
            if len(self.nodes) >= MOST_NODES:
                raise NotDerivedError("a loop until lanes have a value")
            found = self._known[key] = Symbol(self, operation, kind, operands)
            self.nodes.append(found)
        return found


def _simpler(operation: str, kind: DType, operands: tuple[Any, ...]) -> Symbol | None:
    """Return a node that has the value of an operation already, None if none is known."""
    if kind.kind not in "iu":
        return None
    first = _of_same_bits(operands[0])
    if operation == "view" and first is not operands[0]:
        return _seen_as(first, kind)
    if operation == "cast" and kind.itemsize == 4 and first.itemsize == 8:
        low_high = _joined(first)
        if low_high is not None:
            return _seen_as(low_high[0], kind)
        upper = _upper(first)
        low_high = None if upper is None else _joined(upper)
        return None if low_high is None else _seen_as(low_high[1], kind)
    if operation == "bitwise_or" and kind.itemsize == 8:
        low_high = _words(operands)
        if low_high is not None:
            whole = _narrowed(low_high[0])
            above = _narrowed(low_high[1])
            if whole is not None and above is not None and _upper(above) is whole:
                return _seen_as(whole, kind)
    return None


def _seen_as(value: Symbol, kind: DType) -> Symbol:
    return value if value.dtype == kind else value.graph.node("view", kind, value)


def _of_same_bits(value: Any) -> Any:
    """Return the integer that a value views as another type."""
    while isinstance(value, Symbol) and value.operation == "view" and value.dtype.kind in "iu":
        inner = value.operands[0]
        if inner.dtype.kind not in "iu":
            break
        value = inner
    return value


def _is_number(value: Any, number: int) -> bool:
    return not isinstance(value, Symbol) and int(value) == number


def _extended(value: Any) -> Symbol | None:
    """Return the word that is extended to 64 bits without a sign, None for any other value."""
    value = _of_same_bits(value)
    if isinstance(value, Symbol) and value.operation == "cast" and value.itemsize == 8:
        inner: Symbol = value.operands[0]
        if inner.dtype == np.uint32:
            return inner
    return None


def _words(operands: tuple[Any, ...]) -> tuple[Symbol, Symbol] | None:
    """Return the words of `low | high << 32`, None for other operands."""
    for low, shifted in (operands, operands[::-1]):
        shifted = _of_same_bits(shifted)
        if not isinstance(shifted, Symbol) or shifted.operation != "left_shift":
            continue
        lower, upper = _extended(low), _extended(shifted.operands[0])
        if lower is not None and upper is not None and _is_number(shifted.operands[1], 32):
            return lower, upper
    return None


def _joined(value: Any) -> tuple[Symbol, Symbol] | None:
    """Return the two words of which a value of 64 bits is made."""
    if isinstance(value, Symbol) and value.operation == "bitwise_or" and value.itemsize == 8:
        return _words(value.operands)
    return None


def _narrowed(value: Any) -> Symbol | None:
    """Return the 64 bits of which a value is the lower word."""
    value = _of_same_bits(value)
    if isinstance(value, Symbol) and value.operation == "cast" and value.itemsize == 4:
        found: Symbol = _of_same_bits(value.operands[0])
        if found.dtype.kind in "iu" and found.itemsize == 8:
            return found
    return None


def _upper(value: Any) -> Symbol | None:
    """Return the 64 bits of which the upper word is shifted to the lower."""
    if not isinstance(value, Symbol) or value.operation != "right_shift" or value.itemsize != 8:
        return None
    found: Symbol = _of_same_bits(value.operands[0])
    return found if _is_number(value.operands[1], 32) else None


def _key(operand: Any) -> Any:
    if isinstance(operand, Symbol):
        return id(operand)
    if isinstance(operand, np.generic):
        return operand.dtype, operand.tobytes()
    return operand


class Symbol(NDArrayOperatorsMixin):
    """The value of a node in each lane; as an array, it is shaped (1, 1, 32)."""

    __array_priority__ = 1000
    shape = (1, 1, 32)
    ndim = 3
    size = 32

    def __init__(
        self, graph: Graph, operation: str, dtype: DType, operands: tuple[Any, ...]
    ) -> None:
        self.graph = graph
        self.operation = operation
        self.dtype = dtype
        self.operands = operands

    @property
    def itemsize(self) -> int:
        """Bytes of a lane's value."""
        return self.dtype.itemsize

    def astype(self, dtype: Any, copy: bool = True) -> Symbol:
        """Return the value converted to a type."""
        kind = np.dtype(dtype)
        if kind == self.dtype:
            return self
        half = np.dtype(np.float16)
        if kind == half:
            return _to_half(self)
        if self.dtype == half:
            return _of_half(self).astype(kind)
        return self.graph.node("cast", kind, self)

    def view(self, dtype: Any) -> Symbol:
        """Return the bits as another type of the same size."""
        kind = np.dtype(dtype)
        if kind == self.dtype:
            return self
        if kind.itemsize != self.itemsize or (self.itemsize > 1 and "b" in (kind.kind, self._kind)):
            raise NotDerivedError(f"{self.dtype} seen as {kind}")
        return self.graph.node("view", kind, self)

    @property
    def _kind(self) -> str:
        return self.dtype.kind

    def copy(self) -> Symbol:
        """Return the value: nothing changes it."""
        return self

    def reshape(self, *_: Any) -> Symbol:
        """Return the value: a lane has no shape."""
        return self

    def any(self, *_: Any, **__: Any) -> bool:
        """Whether a lane may be true: always, as evaluators use it only to skip work."""
        return True

    def all(self, *_: Any, **__: Any) -> bool:
        """Whether all lanes are known to be true."""
        return False

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotDerivedError("an evaluator that depends on values")

    __bool__ = __getitem__ = __setitem__ = __iter__ = __array__ = __index__ = __float__ = _refuse
    __int__ = __len__ = _refuse

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Record a universal function in the types that NumPy resolves for it."""
        wanted = options.pop("dtype", None)
        if method != "__call__" or options.keys() - {"out", "casting"}:
            raise NotDerivedError(f"{ufunc.__name__}.{method} with {sorted(options)}")
        if options.get("out") is not None:
            raise NotDerivedError(f"{ufunc.__name__} into an array")
        composed = _COMPOSED.get(ufunc.__name__)
        if composed is not None:
            return composed(*inputs)
        types = [
            i.dtype if isinstance(i, Symbol | np.generic | np.ndarray) else type(i) for i in inputs
        ]
        resolved = ufunc.resolve_dtypes((*types, *[None] * ufunc.nout))
        if ufunc.nout != 1:
            raise NotDerivedError(f"{ufunc.__name__} has several results")
        operands = [_operand(i, kind) for i, kind in zip(inputs, resolved, strict=False)]
        if np.dtype(np.float16) in resolved:
            return _as_halves(ufunc, inputs, resolved)
        made = self.graph.node(ufunc.__name__, resolved[-1], *operands)
        return made if wanted is None else made.astype(wanted)

    def __array_function__(
        self, function: Any, _: Any, arguments: Any, options: Mapping[str, Any]
    ) -> Any:
        """Record one of the other functions of NumPy."""
        found = _FUNCTIONS.get(function.__name__)
        if found is None:
            raise NotDerivedError(f"numpy.{function.__name__}")
        return found(*arguments, **options)


def _operand(value: Any, dtype: Any) -> Any:
    """Return an operand in a type: a node, or a NumPy scalar."""
    if isinstance(value, Symbol):
        return value.astype(dtype)
    held = np.asarray(value)
    if held.size != 1:
        raise NotDerivedError("an array of constants")
    return held.astype(dtype).reshape(())[()]


def _graph(*values: Any) -> Graph:
    return next(value.graph for value in values if isinstance(value, Symbol))


def _where(condition: Any, value: Any, other: Any) -> Any:
    if not isinstance(condition, Symbol):
        return value if bool(_operand(condition, np.bool_)) else other
    kind = np.result_type(*(x.dtype if isinstance(x, Symbol) else x for x in (value, other)))
    both = _operand(value, kind), _operand(other, kind)
    return condition.graph.node("where", kind, condition.astype(np.bool_), *both)


def _fused(a: Any, b: Any, c: Any) -> Any:
    """Record a fused multiply-add, where a lane's value is unknown."""
    if not any(isinstance(x, Symbol) for x in (a, b, c)):
        return fused_multiply_add(a, b, c)
    kind = next(x.dtype for x in (a, b, c) if isinstance(x, Symbol))
    return _graph(a, b, c).node("fused", kind, *(_operand(x, kind) for x in (a, b, c)))


def _nextafter(value: Any, towards: Any) -> Any:
    """Return the neighbour of a floating-point number: its bits count up with the magnitude."""
    if not isinstance(value, Symbol) or value.itemsize < 4:
        raise NotDerivedError("nextafter of a constant")
    kind, bits = value.dtype, np.dtype(f"i{value.itemsize}")
    zero = kind.type(0)
    goal = towards if isinstance(towards, Symbol) else kind.type(towards)
    outwards = np.equal(np.less(value, goal), np.greater(value, zero))
    step = _where(outwards, bits.type(1), bits.type(-1))
    moved = (value.view(bits) + step).view(kind)
    least = _where(np.less(value, goal), bits.type(1), bits.type(np.iinfo(bits).min + 1)).view(kind)
    moved = _where(np.equal(value, zero), least, moved)
    moved = _where(np.equal(value, goal), goal, moved)
    none = np.logical_or(np.not_equal(value, value), np.not_equal(goal, goal))
    return _where(none, value + goal, moved)


def _sign(value: Symbol) -> Any:
    kind = value.dtype.type
    negative = _where(np.less(value, kind(0)), kind(-1), value)
    return _where(np.greater(value, kind(0)), kind(1), negative)


def _to_half(value: Symbol) -> Symbol:
    """Return numbers rounded to half precision: to 11 bits, or a multiple of 2**-24."""
    made: Symbol
    if value.dtype.kind == "b":
        made = _where(value, np.float16(1), np.float16(0))
        return made
    exact = value.astype(np.float64)
    if value.dtype.kind in "iu" and value.itemsize == 8:
        raise NotDerivedError("half precision of 64-bit integers")
    word = exact.view(np.int64)
    lost = np.int64(42)
    rounded = word + np.int64((1 << 41) - 1) + ((word >> lost) & np.int64(1))
    normal = (rounded & np.int64(-1 << 42)).view(np.float64)
    size = np.abs(normal)
    small = np.abs(exact) < np.float64(2.0**-14)
    bits = (size * np.float64(2.0**-112)).astype(np.float32).view(np.uint32) >> np.uint32(13)
    tiny = np.rint(np.abs(exact) * np.float64(2.0**24)).astype(np.int32).view(np.uint32)
    bits = _where(small, tiny, bits)
    bits = _where(size >= np.float64(65536), np.uint32(0x7C00), bits)
    fraction = ((word >> lost) & np.int64(0x3FF)).astype(np.uint32)
    fraction = _where(fraction == np.uint32(0), np.uint32(1), fraction)
    bits = _where(np.isnan(exact), np.uint32(0x7C00) | fraction, bits)
    sign = (word.view(np.uint64) >> np.uint64(48)).astype(np.uint32) & np.uint32(0x8000)
    made = (bits | sign).astype(np.uint16).view(np.float16)
    return made


def _of_half(value: Symbol) -> Symbol:
    """Return half precision as float32: a factor of 2**112 corrects the exponent."""
    bits = value.view(np.uint16).astype(np.uint32)
    shifted = (bits & np.uint32(0x7FFF)) << np.uint32(13)
    number = (shifted.view(np.float32) * np.float32(2.0**112)).view(np.uint32)
    number = _where(shifted >= np.uint32(0x0F800000), shifted | np.uint32(0x7F800000), number)
    made: Symbol = (number | (bits & np.uint32(0x8000)) << np.uint32(16)).view(np.float32)
    return made


def _as_halves(ufunc: np.ufunc, inputs: Any, resolved: Any) -> Any:
    """Return a function of half precision as NumPy computes it: in single precision, rounded."""
    half, single = np.dtype(np.float16), np.dtype(np.float32)
    wide = [
        _operand(_operand(value, kind), single) if kind == half else _operand(value, kind)
        for value, kind in zip(inputs, resolved, strict=False)
    ]
    made = ufunc(*wide)
    return made.astype(half) if resolved[-1] == half else made


_COMPOSED: Mapping[str, Callable[..., Any]] = {"nextafter": _nextafter, "sign": _sign}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "where": _where,
    "count_nonzero": lambda *_, **__: 1,
    "any": lambda *_, **__: True,
    "all": lambda *_, **__: False,
    "zeros_like": lambda like, **_: like.dtype.type(0),
    "ones_like": lambda like, **_: like.dtype.type(1),
    "broadcast_to": lambda value, *_, **__: value,
    "broadcast_arrays": lambda *values, **_: values,
}


class _TracedNumPy:
    """NumPy as an evaluator sees it: functions without a protocol take symbols as well."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def asarray(value: Any, dtype: Any = None, **options: Any) -> Any:
        """Return a symbol as it is, anything else as an array."""
        if isinstance(value, Symbol):
            return value if dtype is None else value.astype(dtype)
        return np.asarray(value, dtype, **options)

    ascontiguousarray = array = asarray

    @staticmethod
    def where(condition: Any, *values: Any) -> Any:
        """Return `numpy.where`, also for a condition that is known."""
        if values and any(isinstance(x, Symbol) for x in (condition, *values)):
            return _where(condition, *values)
        return np.where(condition, *values)

    class logical_or:  # noqa: N801 - NumPy's name
        """`numpy.logical_or` with a `reduce` for symbols."""

        def __new__(cls, *values: Any) -> Any:
            """Return the function's value."""
            return np.logical_or(*values)

        @staticmethod
        def reduce(values: Any, **options: Any) -> Any:
            """Return whether any of some values is true."""
            if any(isinstance(value, Symbol) for value in values):
                return functools.reduce(np.logical_or, values)
            return np.logical_or.reduce(values, **options)

    @staticmethod
    def broadcast_arrays(*values: Any) -> Any:
        """Return values of one shape: a symbol has that of all."""
        if any(isinstance(value, Symbol) for value in values):
            return values
        return np.broadcast_arrays(*values)


_TRACED_NUMPY = _TracedNumPy()


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Let the modules of evaluators take symbols; arrays are computed as usual."""
    with _LOCK, np.errstate(all="ignore"):
        changed: list[tuple[dict[str, Any], str, Any]] = []
        for name, module in list(sys.modules.items()):
            if not name.startswith(_ROWS) or module is None:
                continue
            names = vars(module)
            mine: dict[str, Any] = {"np": _TRACED_NUMPY}
            if not name.endswith("isa.fused"):
                mine["fused_multiply_add"] = _fused
            for one in mine.keys() & names.keys():
                changed.append((names, one, names[one]))
                names[one] = mine[one]
        try:
            yield
        finally:
            for names, one, value in changed:
                names[one] = value
