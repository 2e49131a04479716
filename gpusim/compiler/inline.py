"""Device functions: inlined at their calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusim.compiler import names
from gpusim.compiler.builder import Builder, Frame, type_of
from gpusim.compiler.ir import Array
from gpusim.compiler.signatures import ArrayType, ScalarType, Signature
from gpusim.compiler.source import KernelSource
from gpusim.compiler.types import converted, fits_kind
from gpusim.isa.lines import Call
from gpusim.typing import DType


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
