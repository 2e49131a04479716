"""What a call in a kernel means: a cast, a function of math, an intrinsic, a device function."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.compiler.ir import BOOL, FLOAT64, INT32, UINT32, Array, DType, Value
from gpusim.compiler.source import KernelSource
from gpusim.compiler.types import dtype_of, promoted
from gpusim.compiler.words import Intrinsic

if TYPE_CHECKING:
    from gpusim.compiler.build import Builder

FULL_MASK = 0xFFFFFFFF
AXES = "xyz"

# Functions of `math` and NumPy, and the name that the machine computes them under.
MATH_NAMES = [
    "sqrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "floor",
    "ceil",
    "trunc",
    "fabs",
    "fmod",
    "pow",
    "hypot",
    "copysign",
    "isnan",
    "isinf",
    "isfinite",
]
NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}
TWO_ARGUMENTS = {"atan2", "fmod", "pow", "hypot", "copysign"}
PREDICATES = {"isnan", "isinf", "isfinite"}


def _math_functions() -> dict[Any, str]:
    functions: dict[Any, str] = {}
    for name in MATH_NAMES:
        for module, spelling in ((math, name), (np, NUMPY_NAMES.get(name, name))):
            if hasattr(module, spelling):
                functions[getattr(module, spelling)] = name
    return functions


MATH = _math_functions()


def call(builder: Builder, callee: Any, arguments: Sequence[ast.expr], node: ast.Call) -> Any:
    """Build a call and return its result; KernelSourceError where it has no meaning."""
    if isinstance(callee, Intrinsic):
        family, _, detail = callee.name.partition(".")
        handler = INTRINSICS.get(callee.name) or INTRINSICS.get(family)
        if handler is None:
            raise builder.error(f"cuda.{callee.name} has no meaning in a kernel", node)
        return handler(builder, [builder.expression(a) for a in arguments], node, detail or family)
    source = getattr(callee, "source", None)
    if isinstance(source, KernelSource):
        if not callee.device:
            raise builder.error(
                f"{source.name} is a kernel; only device functions are called", node
            )
        return builder.inline(source, [builder.expression(a) for a in arguments], node)
    values = [builder.expression(a) for a in arguments]
    if callee is len:
        return _length(builder, values, node)
    if callee in (min, max):
        return _extreme(builder, values, node, callee.__name__)
    if callee is abs:
        return _absolute(builder, values, node)
    if isinstance(callee, type):
        dtype = dtype_of(callee)
        if dtype is not None:
            return _cast(builder, values, node, dtype)
    try:
        name = MATH.get(callee)
    except TypeError:
        name = None
    if name is not None:
        return _math(builder, values, node, name)
    shown = getattr(callee, "__name__", None) or ast.unparse(node.func)
    if callable(callee) and hasattr(callee, "__code__"):
        raise builder.error(
            f"{shown} is an ordinary function; decorate it with cuda.jit(device=True)", node
        )
    raise builder.error(f"{shown} cannot be called in a kernel", node)


def _need(builder: Builder, values: Sequence[Any], node: ast.Call, *counts: int) -> None:
    if len(values) not in counts:
        wanted = " or ".join(map(str, counts))
        raise builder.error(f"this takes {wanted} argument(s), not {len(values)}", node)


def _value(builder: Builder, item: Any, node: ast.AST, dtype: DType | None = None) -> Value:
    number = builder.number(item, node)
    if dtype is not None:
        return builder.as_type(number, dtype)
    if isinstance(number, Value):
        return number
    return builder.as_type(number, builder._meeting(number))


def _length(builder: Builder, values: list[Any], node: ast.Call) -> Any:
    _need(builder, values, node, 1)
    if isinstance(values[0], tuple):
        return len(values[0])
    if not isinstance(values[0], Array):
        raise builder.error("len takes an array", node)
    return builder.length(values[0], 0)


def _extreme(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Any:
    if len(values) < 2:
        raise builder.error(f"{name} takes two or more numbers", node)
    numbers = [builder.number(v, node) for v in values]
    if not any(isinstance(n, Value) for n in numbers):
        return min(numbers) if name == "min" else max(numbers)
    dtype = builder._meeting(*numbers)
    result = builder.as_type(numbers[0], dtype)
    for number in numbers[1:]:
        result = builder.graph.emit(name, dtype, [result, builder.as_type(number, dtype)])
    return result


def _absolute(builder: Builder, values: list[Any], node: ast.Call) -> Any:
    _need(builder, values, node, 1)
    number = builder.number(values[0], node)
    if not isinstance(number, Value):
        return abs(number)
    assert number.dtype is not None
    return builder.graph.emit("abs", number.dtype, [number])


def _cast(builder: Builder, values: list[Any], node: ast.Call, dtype: DType) -> Value:
    _need(builder, values, node, 1)
    value = builder.as_type(builder.number(values[0], node), dtype)
    narrow = dtype.kind in "iu" and dtype.itemsize < 4
    return builder.cast(value, INT32) if narrow else value


def _math(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Any:
    _need(builder, values, node, 2 if name in TWO_ARGUMENTS else 1)
    numbers = [builder.number(v, node) for v in values]
    dtype = builder._meeting(*numbers)
    dtype = dtype if dtype.kind == "f" else FLOAT64
    args = [builder.as_type(n, dtype) for n in numbers]
    if name == "fabs":
        return builder.graph.emit("abs", dtype, args)
    return builder.graph.emit("math", BOOL if name in PREDICATES else dtype, args, name)


# -- intrinsics: builder, arguments, place, what follows the dot -------------------------


def _grid(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Any:
    _need(builder, values, node, 1)
    if values[0] not in (1, 2, 3):
        raise builder.error(f"cuda.{name} takes 1, 2 or 3", node)
    emit = builder.graph.emit

    def one(axis: str) -> Value:
        size = emit("sreg", INT32, detail=f"ntid.{axis}")
        if name == "gridsize":
            return emit("mul", INT32, [size, emit("sreg", INT32, detail=f"nctaid.{axis}")])
        start = emit("mul", INT32, [emit("sreg", INT32, detail=f"ctaid.{axis}"), size])
        return emit("add", INT32, [start, emit("sreg", INT32, detail=f"tid.{axis}")])

    parts = tuple(one(axis) for axis in AXES[: values[0]])
    return parts[0] if values[0] == 1 else parts


def _declare(space: str) -> Callable[..., Any]:
    def declare(builder: Builder, values: list[Any], node: ast.Call, _: str) -> Array:
        _need(builder, values, node, 2)
        return builder.declare(space, values[0], values[1], node)

    return declare


def _volatile(builder: Builder, values: list[Any], node: ast.Call, _: str) -> Array:
    from gpusim.compiler.build import volatile

    _need(builder, values, node, 1)
    if not isinstance(values[0], Array):
        raise builder.error("cuda.volatile takes an array", node)
    return volatile(values[0])


def _barrier(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Any:
    if name == "syncthreads":
        _need(builder, values, node, 0)
        builder.graph.emit("barrier", None, [], "sync")
        return None
    _need(builder, values, node, 1)
    predicate = builder.truth(values[0], node)
    return builder.graph.emit("barrier", INT32, [predicate], name.removeprefix("syncthreads_"))


def _syncwarp(builder: Builder, values: list[Any], node: ast.Call, _: str) -> None:
    _need(builder, values, node, 0, 1)
    mask = _value(builder, values[0] if values else FULL_MASK, node, UINT32)
    builder.graph.emit("syncwarp", None, [mask])


def _shuffle(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Value:
    _need(builder, values, node, 3, 4)
    mode = {"shfl_sync": "idx", "shfl_xor_sync": "bfly"}.get(name) or name.split("_")[1]
    mask = _value(builder, values[0], node, UINT32)
    value = _value(builder, values[1], node)
    assert value.dtype is not None
    value = builder.as_type(value, promoted(value.dtype))
    lane = _value(builder, values[2], node, INT32)
    width = _value(builder, values[3] if len(values) == 4 else 32, node, INT32)
    return builder.graph.emit("shuffle", value.dtype, [mask, value, lane, width], mode)


def _vote(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Value:
    _need(builder, values, node, 2)
    mode = name.split("_")[0]
    args = [_value(builder, values[0], node, UINT32), builder.truth(values[1], node)]
    return builder.graph.emit("vote", UINT32 if mode == "ballot" else BOOL, args, mode)


def _activemask(builder: Builder, values: list[Any], node: ast.Call, _: str) -> Value:
    _need(builder, values, node, 0)
    return builder.graph.emit("activemask", UINT32)


def _bits(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Value:
    _need(builder, values, node, 1)
    value = _value(builder, values[0], node)
    assert value.dtype is not None
    if value.dtype.kind not in "iu":
        raise builder.error(f"cuda.{name} takes an integer", node)
    return builder.graph.emit(name, value.dtype if name == "brev" else INT32, [value])


def _fma(builder: Builder, values: list[Any], node: ast.Call, _: str) -> Value:
    _need(builder, values, node, 3)
    numbers = [builder.number(v, node) for v in values]
    dtype = builder._meeting(*numbers)
    dtype = dtype if dtype.kind == "f" else FLOAT64
    return builder.graph.emit("math", dtype, [builder.as_type(n, dtype) for n in numbers], "fma")


def _atomic(builder: Builder, values: list[Any], node: ast.Call, operation: str) -> Value:
    _need(builder, values, node, 4 if operation == "cas" else 3)
    array, index, *operands = values
    if not isinstance(array, Array) or array.space == "local":
        raise builder.error("an atomic operation takes a global or shared array", node)
    if array.dtype.itemsize < 4:
        raise builder.error("atomic operations need elements of 4 or 8 bytes", node)
    if operation in ("and", "or", "xor") and array.dtype.kind == "f":
        raise builder.error("bits need integers", node)
    flat = builder.flat_index(array, index, node)
    numbers = [builder.as_type(builder.number(v, node), array.dtype) for v in operands]
    return builder.graph.emit("atomic", array.dtype, [flat, *numbers], (array, operation))


def _fence(builder: Builder, values: list[Any], node: ast.Call, name: str) -> None:
    _need(builder, values, node, 0)
    scope = name.removeprefix("threadfence").lstrip("_") or "gpu"
    builder.graph.emit("fence", None, [], scope)


def _vector(builder: Builder, values: list[Any], node: ast.Call, count: Any) -> Array:
    array = values[0]
    if not isinstance(array, Array):
        raise builder.error("a vector access takes an array, an index and the elements", node)
    if count not in (2, 4) or array.dtype.itemsize * count > 16:
        raise builder.error("a vector access is of 2 or 4 elements, 16 bytes at most", node)
    if array.dtype.itemsize < 4:
        raise builder.error("vector accesses need elements of 4 or 8 bytes", node)
    return array


def _load_vector(builder: Builder, values: list[Any], node: ast.Call, _: str) -> Any:
    _need(builder, values, node, 3)
    array = _vector(builder, values, node, values[2])
    index = builder.flat_index(array, values[1], node)
    loaded = builder.graph.emit("load_vector", array.dtype, [index], (array, values[2]))
    return tuple(
        builder.graph.emit("element", array.dtype, [loaded], position)
        for position in range(values[2])
    )


def _store_vector(builder: Builder, values: list[Any], node: ast.Call, _: str) -> None:
    _need(builder, values, node, 3)
    items = values[2]
    if not isinstance(items, tuple):
        raise builder.error("store_vector takes a tuple of the elements", node)
    array = _vector(builder, values, node, len(items))
    index = builder.flat_index(array, values[1], node)
    numbers = [builder.as_type(builder.number(v, node), array.dtype) for v in items]
    builder.graph.emit("store_vector", None, [index, *numbers], (array, len(items)))


INTRINSICS: dict[str, Callable[..., Any]] = {
    "grid": _grid,
    "gridsize": _grid,
    "shared": _declare("shared"),
    "local": _declare("local"),
    "volatile": _volatile,
    "syncthreads": _barrier,
    "syncthreads_count": _barrier,
    "syncthreads_and": _barrier,
    "syncthreads_or": _barrier,
    "syncwarp": _syncwarp,
    "shfl_sync": _shuffle,
    "shfl_up_sync": _shuffle,
    "shfl_down_sync": _shuffle,
    "shfl_xor_sync": _shuffle,
    "all_sync": _vote,
    "any_sync": _vote,
    "ballot_sync": _vote,
    "activemask": _activemask,
    "popc": _bits,
    "ffs": _bits,
    "clz": _bits,
    "brev": _bits,
    "fma": _fma,
    "atomic": _atomic,
    "threadfence": _fence,
    "threadfence_block": _fence,
    "threadfence_system": _fence,
    "load_vector": _load_vector,
    "store_vector": _store_vector,
}
