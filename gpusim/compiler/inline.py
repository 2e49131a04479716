"""Device functions: their bodies are built where they are called."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from gpusim.compiler import names
from gpusim.compiler.builder import Builder, Frame
from gpusim.compiler.source import KernelSource


def inline(builder: Builder, source: KernelSource, arguments: Sequence[Any], node: ast.Call) -> Any:
    """Build a device function's body here and return its result."""
    if any(frame.source is source for frame in builder.frames):
        raise builder.error(f"{source.name} calls itself; device functions are inlined", node)
    if len(arguments) != len(source.parameters):
        count = len(source.parameters)
        raise builder.error(f"{source.name} takes {count} arguments, not {len(arguments)}", node)
    graph = builder.graph
    frame = _frame(builder, source)
    frame.exit = graph.new_block()
    loops, builder.loops = builder.loops, []
    builder.frames.append(frame)
    for name, item in zip(source.parameters, arguments, strict=True):
        if isinstance(item, bool | int | float) and name not in source.assigned:
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
    return result


def _frame(builder: Builder, source: KernelSource) -> Frame:
    """Return a frame for a call here; what stands in another file belongs to the call's line."""
    call_line = builder.frame.call_line
    if call_line is None and source.file != builder.frames[0].source.file:
        call_line = builder.graph.line
    return Frame(source, f"{source.name}.{builder.new_number()}.", call_line=call_line)


def _result(builder: Builder, node: ast.Call) -> Any:
    frame = builder.frame
    given = [item is not None for item in frame.returned]
    if not any(given):
        return None
    if not all(given):
        raise builder.error(f"{frame.source.name} returns a value only on some of its paths", node)
    return None if builder.graph.block is None else names.read(builder, "return")
