"""From a syntax tree to SSA form, for one combination of argument types.

A variable has one type: the common type of all its assignments. It is found by building
until no variable's type changes any more (a fixed point), within two or three builds.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from gpusim.compiler import arithmetic, arrays, calls, conditions, loops, names, statements
from gpusim.compiler.builder import Builder, Meanings
from gpusim.compiler.ir import INT32, Array, Function
from gpusim.compiler.source import KernelSource
from gpusim.typing import DType

MEANINGS = Meanings(
    statements={
        ast.AnnAssign: statements.assign_annotated,
        ast.Assign: statements.assign,
        ast.AugAssign: statements.augment,
        ast.Break: loops.leave_loop,
        ast.Continue: loops.go_on,
        ast.Expr: statements.evaluate,
        ast.For: loops.for_loop,
        ast.If: statements.choose,
        ast.Pass: statements.leave_out,
        ast.Return: statements.leave,
        ast.While: loops.while_loop,
    },
    expressions={
        ast.Attribute: names.attribute,
        ast.BinOp: arithmetic.binary_operation,
        ast.BoolOp: conditions.boolean_operation,
        ast.Call: calls.call,
        ast.Compare: conditions.comparisons,
        ast.Constant: names.constant,
        ast.IfExp: conditions.conditional,
        ast.Name: names.name,
        ast.Subscript: arrays.subscript,
        ast.Tuple: names.tuple_of,
        ast.UnaryOp: arithmetic.unary_operation,
    },
)

MOST_BUILDS = 20


def build(source: KernelSource, arguments: Mapping[str, DType | Array]) -> Function:
    """Return the kernel in SSA form for these parameter types.

    Raises KernelSourceError, marking the place, for code without a meaning or a type.
    """
    try:
        return _settled(source, arguments)
    except RecursionError:
        message = "this kernel's statements or expressions are nested too deeply"
        raise source.error(message, source.tree) from None


def _settled(source: KernelSource, arguments: Mapping[str, DType | Array]) -> Function:
    """Build until no variable's type changes any more (fixed point)."""
    types: dict[str, DType] = {}
    static_bytes = 0
    for _ in range(MOST_BUILDS):
        builder = Builder(source, arguments, types, arrays.aligned(static_bytes), MEANINGS)
        function = _built(builder)
        if builder.types == types and builder.static_shared_bytes == static_bytes:
            return function
        types, static_bytes = builder.types, builder.static_shared_bytes
    raise source.error("the types of this kernel's variables cannot be settled", source.tree)


def _built(builder: Builder) -> Function:
    """Build the kernel's body."""
    frame = builder.frame
    builder.mark(frame.source.tree)
    for name, kind in builder.function.params.items():
        if isinstance(kind, Array):
            frame.bindings[name] = kind
        else:
            value = builder.graph.emit("param", kind, detail=name)
            wide = value if kind.itemsize >= 4 else builder.cast(value, INT32)
            names.assign(builder, name, wide, frame.source.tree)
    builder.statements(frame.source.tree.body)
    builder.graph.leave()
    return builder.graph.finish()
