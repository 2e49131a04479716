"""Arrays: indexing of elements, attributes, declarations of shared and local arrays."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpusim.compiler.arithmetic import binary
from gpusim.compiler.builder import Builder, Operand, type_of
from gpusim.compiler.constants import static_number
from gpusim.compiler.ir import INT32, Array, Value
from gpusim.compiler.types import DTYPES, default_type, dtype_of

ALIGNMENT = 16
MOST_LOCAL_BYTES = 512 * 1024  # CUDA C++ Programming Guide, "Technical Specifications"


def aligned(size_bytes: int) -> int:
    """Return the next aligned offset at or after `size_bytes`."""
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT


def subscript(builder: Builder, node: ast.Subscript) -> Any:
    """Return a tuple's part or an array's element."""
    owner = builder.expression(node.value)
    if isinstance(owner, tuple):
        position = static_number(builder, node.slice)
        if not isinstance(position, int) or not -len(owner) <= position < len(owner):
            raise builder.error("a tuple's position is a constant within it", node)
        return owner[position]
    return load(builder, *element(builder, node))


def element(builder: Builder, node: ast.Subscript) -> tuple[Array, Value]:
    """Return the array and the flat index that a subscript names."""
    array = builder.expression(node.value)
    if not isinstance(array, Array):
        raise builder.error("only arrays have elements", node.value)
    return array, flat_index(builder, array, builder.expression(node.slice), node)


def flat_index(builder: Builder, array: Array, index: Any, node: ast.AST) -> Value:
    """Return an index of one or more parts as a count of elements from the start."""
    parts = index if isinstance(index, tuple) else (index,)
    rank = _rank(array)
    if len(parts) != rank:
        raise builder.error(f"{array.name} has {rank} dimension(s), not {len(parts)}", node)
    numbers = [builder.number(part, node) for part in parts]
    if any(type_of(number).kind not in "iu" for number in numbers):
        raise builder.error("an index is an integer", node)
    if rank > 1 or array.strided:
        # An index may leave its axis and still be within the array.
        indices = [_index(builder, number) for number in numbers]
        builder.graph.emit("bounds", None, indices, array)
    if array.strided:
        return _index(builder, _strided(builder, array, numbers, node))
    flat = numbers[0]
    for axis, number in enumerate(numbers[1:], 1):
        before = binary(builder, "mul", flat, length(builder, array, axis), node)
        flat = binary(builder, "add", before, number, node)
    return _index(builder, flat)


def _index(builder: Builder, number: Operand) -> Value:
    return number if isinstance(number, Value) else builder.as_type(number, default_type(number))


def _strided(builder: Builder, array: Array, numbers: Sequence[Operand], node: ast.AST) -> Operand:
    """Return how many elements lie between the first one and that of these indices."""
    flat: Operand = 0
    for axis, number in enumerate(numbers):
        stride = builder.graph.emit("stride", INT32, detail=(array.name, axis))
        far = binary(builder, "mul", number, stride, node)
        flat = binary(builder, "add", flat, far, node) if axis else far
    return flat


def _rank(array: Array) -> int:
    return len(array.shape) or 1


def length(builder: Builder, array: Array, axis: int | None) -> Operand:
    """Return an array's size along an axis, or in all: a number, or known at launch."""
    if array.space != "global" and array.shape != (0,):
        return math.prod(array.shape) if axis is None else array.shape[axis]
    if array.space != "global":
        return builder.graph.emit("length", INT32, detail=("", array.dtype.itemsize))
    along = None if _rank(array) == 1 else axis
    return builder.graph.emit("length", INT32, detail=(array.name, along))


# The values of `array.name` in a kernel.
ATTRIBUTES: Mapping[str, Callable[[Builder, Array], Any]] = {
    "dtype": lambda _, array: array.dtype,
    "size": lambda builder, array: length(builder, array, None),
    "shape": lambda builder, array: tuple(
        length(builder, array, axis) for axis in range(_rank(array))
    ),
    "ndim": lambda _, array: _rank(array),
}


def load(builder: Builder, array: Array, index: Value) -> Value:
    """Return an element; narrow integers are promoted to int32."""
    value = builder.graph.emit("load", array.dtype, [index], array)
    return builder.widened(value, array.dtype)


def store(builder: Builder, array: Array, index: Value, item: Any, node: ast.AST) -> None:
    """Store a number, converted to the array's type."""
    value = builder.as_type(builder.number(item, node), array.dtype)
    builder.graph.emit("store", None, [index, value], array)


def declare(builder: Builder, space: str, shape: Any, dtype: Any, node: ast.Call) -> Array:
    """Return the shared or local array that a call declares; a shared one once for each place."""
    source = builder.frame.source
    place = (source.file, source.line(node), node.col_offset)
    if place in builder.declared and space == "shared":
        return builder.declared[place]
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(size, int | np.integer) and size >= 0 for size in sizes):
        raise builder.error("an array's shape is made of compile-time constants", node)
    kind = dtype_of(dtype)
    if kind is None:
        known = ", ".join(map(str, DTYPES))
        raise builder.error(f"{shown_type(dtype)} is not a dtype of kernels: {known}", node)
    sizes = tuple(int(size) for size in sizes)
    elements = math.prod(sizes)
    if elements == 0 and (space == "local" or len(sizes) > 1):
        raise builder.error("an array of no elements", node)
    offset = _placed(builder, space, elements * kind.itemsize)
    if builder.local_bytes > MOST_LOCAL_BYTES:
        raise builder.error(
            f"the local arrays of a thread take {builder.local_bytes} bytes; a GPU has at most "
            f"{MOST_LOCAL_BYTES} for a thread: use a global array",
            node,
        )
    array = Array(_declared_name(builder, node, space), space, kind, sizes, offset)
    builder.declared[place] = array
    (builder.function.local if space == "local" else builder.function.shared).append(array)
    return array


def shown_type(dtype: Any) -> str:
    """Return a type given by a user as text, in at most 60 characters."""
    return str(getattr(dtype, "__name__", None) or dtype)[:60]


def _placed(builder: Builder, space: str, size_bytes: int) -> int:
    """Take memory for an array and return where it begins; dynamic arrays begin after all."""
    if space == "local":
        offset = aligned(builder.local_bytes)
        builder.local_bytes = offset + size_bytes
    elif size_bytes:
        offset = aligned(builder.static_shared_bytes)
        builder.static_shared_bytes = offset + size_bytes
    else:
        offset = builder.dynamic_offset
    return offset


def _declared_name(builder: Builder, node: ast.Call, space: str) -> str:
    """Return the name of the variable that a declaration is assigned to."""
    for statement in ast.walk(builder.frame.source.tree):
        if isinstance(statement, ast.Assign) and statement.value is node:
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                return target.id
    return space
