"""Calls in a kernel: casts, functions of math, intrinsics, device functions."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from gpusim.compiler import arrays, names
from gpusim.compiler.arguments import floats_of, need, value_of
from gpusim.compiler.builder import Builder, Frame, Operand, common_type, type_of
from gpusim.compiler.intrinsics import INTRINSICS
from gpusim.compiler.ir import BOOL, FLOAT64, Array, Value
from gpusim.compiler.signatures import ArrayType, ScalarType, Signature
from gpusim.compiler.source import KernelSource
from gpusim.compiler.symbols import Intrinsic
from gpusim.compiler.types import Number, converted, dtype_of, fits_kind, promoted
from gpusim.isa import floats
from gpusim.isa.lines import Call
from gpusim.typing import DType

# Arguments that may be passed by keyword, in positional order.
KEYWORDS = ("shape", "dtype", "mask")

Meaning = Callable[[Builder, list[Any], ast.Call], Any]

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


def call(builder: Builder, node: ast.Call) -> Any:
    """Return the result of a call."""
    meaning = _meaning(builder, builder.expression(node.func), node)
    named = sorted(node.keywords, key=lambda keyword: KEYWORDS.index(str(keyword.arg)))
    arguments = [*node.args, *(keyword.value for keyword in named)]
    return meaning(builder, [builder.expression(argument) for argument in arguments], node)


def _meaning(builder: Builder, callee: Any, node: ast.Call) -> Meaning:
    """Return the function that builds calls of `callee`; KernelSourceError if there is none."""
    if isinstance(callee, Intrinsic):
        return _intrinsic(builder, callee.name, node)
    source = getattr(callee, "source", None)
    if isinstance(source, KernelSource):
        if callee.device:
            given = callee.signatures
            return lambda builder, values, node: inline(builder, source, given, values, node)
        message = f"{source.name} is a kernel; only device functions are called"
        raise builder.error(message, node)
    dtype = None if isinstance(callee, str | np.dtype) else dtype_of(callee)
    if dtype is not None:
        return lambda builder, values, node: _cast(builder, values, node, dtype)
    try:
        meaning = FUNCTIONS.get(callee)
    except TypeError:
        meaning = None
    if meaning is not None:
        return meaning
    shown = getattr(callee, "__name__", None) or ast.unparse(node.func)
    if callable(callee) and hasattr(callee, "__code__"):
        message = f"{shown} is an ordinary function; decorate it with cuda.jit(device=True)"
        raise builder.error(message, node)
    raise builder.error(f"{shown} cannot be called in a kernel", node)


def _intrinsic(builder: Builder, name: str, node: ast.Call) -> Meaning:
    family, _, detail = name.partition(".")
    found = INTRINSICS.get(family)
    if found is None:
        raise builder.error(f"cuda.{name} has no meaning in a kernel", node)
    return lambda builder, values, node: found(builder, values, node, detail or family)


def _length(builder: Builder, values: list[Any], node: ast.Call) -> Operand:
    need(builder, values, node, 1)
    if isinstance(values[0], tuple):
        return len(values[0])
    if not isinstance(values[0], Array):
        raise builder.error("len takes an array", node)
    return arrays.length(builder, values[0], 0)


def _absolute(builder: Builder, values: list[Any], node: ast.Call) -> Operand:
    need(builder, values, node, 1)
    number = builder.number(values[0], node)
    if not isinstance(number, Value):
        return abs(number)
    dtype = promoted(type_of(number))
    return builder.graph.emit("abs", dtype, [builder.as_type(number, dtype)])


def _cast(builder: Builder, values: list[Any], node: ast.Call, dtype: DType) -> Value:
    need(builder, values, node, 1)
    return builder.widened(value_of(builder, values[0], node, dtype), dtype)


def _extreme_constant(name: str, numbers: list[Any]) -> Number:
    """Return the least or greatest constant: integers are compared at any size."""
    if not any(isinstance(number, float) for number in numbers):
        whole: Number = {"min": min, "max": max}[name](numbers)
        return whole
    choose = {"min": floats.minimum, "max": floats.maximum}[name]
    return float(reduce(choose, [np.asarray(number, dtype=FLOAT64) for number in numbers]))


def _extreme(name: str) -> Meaning:
    def extreme(builder: Builder, values: list[Any], node: ast.Call) -> Operand:
        if len(values) < 2:
            raise builder.error(f"{name} takes two or more numbers", node)
        numbers = [builder.number(item, node) for item in values]
        if not any(isinstance(number, Value) for number in numbers):
            return _extreme_constant(name, numbers)
        dtype = common_type(*numbers)
        result = builder.as_type(numbers[0], dtype)
        for number in numbers[1:]:
            result = builder.graph.emit(name, dtype, [result, builder.as_type(number, dtype)])
        return result

    return extreme


def _math(name: str) -> Meaning:
    def function(builder: Builder, values: list[Any], node: ast.Call) -> Value:
        need(builder, values, node, 2 if name in TWO_ARGUMENTS else 1)
        args = floats_of(builder, values, node)
        if name == "fabs":
            return builder.graph.emit("abs", type_of(args[0]), args)
        dtype = BOOL if name in PREDICATES else type_of(args[0])
        return builder.graph.emit("math", dtype, args, name)

    return function


FUNCTIONS: dict[Any, Meaning] = {
    len: _length,
    abs: _absolute,
    min: _extreme("min"),
    max: _extreme("max"),
}
for _name in MATH_NAMES:
    for _module, _spelling in ((math, _name), (np, NUMPY_NAMES.get(_name, _name))):
        if hasattr(_module, _spelling):
            FUNCTIONS[getattr(_module, _spelling)] = _math(_name)


def inline(
    builder: Builder,
    source: KernelSource,
    signatures: Sequence[Signature],
    arguments: Sequence[Any],
    node: ast.Call,
) -> Any:
    """Build a device function's body here and return its result.

    Of its signatures, if it has any, the first that fits gives its parameters and result types.
    """
    if any(frame.source is source for frame in builder.frames):
        raise builder.error(f"{source.name} calls itself; device functions are inlined", node)
    if len(arguments) != len(source.parameters):
        count = len(source.parameters)
        raise builder.error(f"{source.name} takes {count} arguments, not {len(arguments)}", node)
    signature = _fitting(builder, source, signatures, arguments, node)
    if signature is not None:
        arguments = [
            _converted(builder, item, kind)
            for item, kind in zip(arguments, signature.parameters, strict=True)
        ]
    graph = builder.graph
    frame = _frame(builder, source)
    frame.exit = graph.new_block()
    loops, builder.loops = builder.loops, []
    builder.frames.append(frame)
    for name, item in zip(source.parameters, arguments, strict=True):
        if isinstance(item, bool | int | float | np.generic) and name not in source.assigned:
            frame.bindings[name] = item
        else:
            names.assign(builder, name, item, node)
    builder.statements(source.tree.body)
    if graph.block is not None:
        frame.returned.append(None)
    graph.jump(frame.exit)
    graph.enter(frame.exit)
    result = _result(builder, node)
    builder.frames.pop()
    builder.loops = loops
    builder.mark(node)
    if graph.block is None:
        raise builder.error(f"{source.name} never returns", node)
    if signature is None or signature.result is None or result is None:
        return result
    number = builder.as_type(builder.number(result, node), signature.result)
    return builder.widened(number, signature.result)


def _fitting(
    builder: Builder,
    source: KernelSource,
    signatures: Sequence[Signature],
    arguments: Sequence[Any],
    node: ast.Call,
) -> Signature | None:
    if not signatures:
        return None
    given = [item if isinstance(item, Array) else _type(builder, item, node) for item in arguments]
    for signature in signatures:
        if all(map(_fits, given, signature.parameters)):
            return signature
    listed = ", ".join(map(str, signatures))
    raise builder.error(f"these arguments do not fit {source.name}'s signature {listed}", node)


def _type(builder: Builder, item: Any, node: ast.Call) -> DType:
    return type_of(builder.number(item, node))


def _fits(given: DType | Array, wanted: ScalarType | ArrayType) -> bool:
    if isinstance(given, Array) or isinstance(wanted, ArrayType):
        return (
            isinstance(given, Array)
            and isinstance(wanted, ArrayType)
            and (given.dtype, len(given.shape) or 1) == (wanted.dtype, wanted.ndim)
        )
    return fits_kind(given, wanted.dtype)


def _converted(builder: Builder, item: Any, kind: ScalarType | ArrayType) -> Any:
    if isinstance(item, Array):
        return item
    if isinstance(item, bool | int | float):
        return converted(item, kind.dtype)
    number = builder.number(item, builder.frame.source.tree)
    return builder.widened(builder.as_type(number, kind.dtype), kind.dtype)


def _frame(builder: Builder, source: KernelSource) -> Frame:
    """Return a frame for a call here; code of another file is attributed to the call's line."""
    call_line, calls = builder.frame.call_line, builder.frame.calls
    if call_line is None and source.file != builder.frames[0].source.file:
        call_line = builder.graph.line
    elif call_line is None:
        calls = (Call(source.name, int(builder.graph.line)), *calls)
    return Frame(source, f"{source.name}.{builder.new_number()}.", call_line=call_line, calls=calls)


def _result(builder: Builder, node: ast.Call) -> Any:
    frame = builder.frame
    given = [item is not None for item in frame.returned]
    if not any(given):
        return None
    if not all(given):
        raise builder.error(f"{frame.source.name} returns a value only on some of its paths", node)
    return None if builder.graph.block is None else names.read(builder, "return")
