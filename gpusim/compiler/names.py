"""Names in a kernel: variables (kept by the graph) and bindings to tuples, arrays and objects."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from gpusim.compiler import arrays
from gpusim.compiler.builder import Builder
from gpusim.compiler.constants import attribute_of
from gpusim.compiler.ir import FLOAT64, Array, Value
from gpusim.compiler.symbols import SpecialRegister
from gpusim.compiler.types import Number, default_type, unify, weak_common
from gpusim.compiler.unsupported import AbsentWordError
from gpusim.typing import DType


@dataclass(frozen=True)
class Parts:
    """A name bound to a tuple: its parts are variables of their own."""

    count: int

    def names(self, name: str) -> list[str]:
        """Return the names of the parts of `name`."""
        return [f"{name}.{position}" for position in range(self.count)]


def assign(builder: Builder, name: str, item: Any, node: ast.AST) -> None:
    """Let `name` be `item`: a number makes it a variable, all else is bound as it is."""
    bindings = builder.frame.bindings
    if isinstance(item, SpecialRegister):
        item = builder.number(item, node)
    if isinstance(item, tuple):
        parts = Parts(len(item))
        for part, value in zip(parts.names(name), item, strict=True):
            assign(builder, part, value, node)
        bindings[name] = parts
    elif isinstance(item, Value | bool | int | float | np.generic):
        if isinstance(bindings.get(name), Array):
            raise builder.error(f"{name!r} is an array and cannot become a number", node)
        bindings.pop(name, None)
        _write(builder, builder.frame.prefix + name, item)
    else:
        bound = bindings.get(name)
        if bound is not None and bound != item:
            message = f"{name!r} already names something else; an array keeps its name"
            raise builder.error(message, node)
        bindings[name] = item


def _write(builder: Builder, variable: str, value: Value | Number | np.generic) -> None:
    known = builder.types.get(variable)
    if isinstance(value, Value | np.generic):
        assert value.dtype is not None
        seen = value.dtype
    else:
        seen = default_type(value) if known is None else _weaker(value, known)
    dtype = seen if known is None else unify(known, seen)
    builder.types[variable] = dtype
    builder.graph.write(variable, builder.as_type(value, dtype))


def _weaker(number: Number, known: DType) -> DType:
    """Return the type of a variable of type `known` after the assignment of a bare number."""
    if isinstance(number, float):
        return known if known.kind == "f" else FLOAT64
    return known if isinstance(number, bool) else weak_common(number, known)


def read(builder: Builder, name: str) -> Any:
    """Return the value of a name of this function; KeyError before its first assignment."""
    frame = builder.frame
    if name in frame.bindings:
        bound = frame.bindings[name]
        if isinstance(bound, Parts):
            return tuple(read(builder, part) for part in bound.names(name))
        return bound
    variable = frame.prefix + name
    return builder.graph.read(variable, builder.types[variable])


def name(builder: Builder, node: ast.Name) -> Any:
    """Return the value of a name: a variable, a binding, or a name free in the source."""
    source = builder.frame.source
    try:
        return read(builder, node.id)
    except KeyError:
        if node.id in source.assigned:
            raise builder.error(f"{node.id!r} is read before it is assigned", node) from None
    try:
        return source.lookup(node.id)
    except KeyError:
        raise builder.error(f"{node.id!r} is not defined", node) from None


def constant(builder: Builder, node: ast.Constant) -> Any:
    """Return the number, string or None that stands in the source."""
    if isinstance(node.value, bool | int | float | str) or node.value is None:
        return node.value
    raise builder.error(f"kernels do not have {type(node.value).__name__} constants", node)


def tuple_of(builder: Builder, node: ast.Tuple) -> tuple[Any, ...]:
    """Return the parts of a tuple."""
    return tuple(builder.expression(part) for part in node.elts)


def attribute(builder: Builder, node: ast.Attribute) -> Any:
    """Return an attribute of an array or of an object of the source."""
    owner = builder.expression(node.value)
    if isinstance(owner, Array):
        attribute = arrays.ATTRIBUTES.get(node.attr)
        if attribute is None:
            raise builder.error(f"arrays in kernels have no {node.attr!r}", node)
        return attribute(builder, owner)
    if isinstance(owner, Value | bool | int | float | tuple):
        raise builder.error(f"numbers in kernels have no {node.attr!r}", node)
    try:
        return attribute_of(owner, node.attr)
    except AbsentWordError as reason:
        raise builder.error(str(reason), node) from None
    except AttributeError:
        where = owner.__name__ if isinstance(owner, type | ModuleType) else type(owner).__name__
        raise builder.error(f"{where} has no {node.attr!r}", node) from None
