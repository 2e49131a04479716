"""numba's types and signatures: `float32`, `int64[:]`, `void(int64[:], int64)`, as objects or text.

A signature gives a function's parameters their types. Objects of numba itself will do as well; they
are known by their attributes, so that numba need not be there.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.compiler.ir import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
)  # fmt: skip
from gpusim.errors import GpusimError
from gpusim.typing import DType

MOST_CHARACTERS = 10_000
HOW = 'a signature is written as "void(float32[:], int64)"'


@dataclass(frozen=True)
class ArrayType:
    """An array's type; `layout` is "C" or "F" where its elements must lie close, else "A"."""

    dtype: DType
    ndim: int
    layout: str = "A"

    def __str__(self) -> str:
        parts = [":"] * self.ndim
        if self.layout != "A":
            parts[-1 if self.layout == "C" else 0] = "::1"
        return f"{self.dtype}[{', '.join(parts)}]"


@dataclass(frozen=True)
class ScalarType:
    """A scalar type; calling it converts a number, indexing it gives array types."""

    name: str
    dtype: DType

    def __str__(self) -> str:
        return self.name

    def __getitem__(self, dimensions: Any) -> ArrayType:
        """Return the type of arrays: `float32[:, ::1]` is a C-contiguous one of two dimensions."""
        parts = dimensions if isinstance(dimensions, tuple) else (dimensions,)
        steps = [part.step if part == slice(None, None, part.step) else 0 for part in parts
                 if isinstance(part, slice)]  # fmt: skip
        close = [axis for axis, step in enumerate(steps) if step == 1]
        ends = {len(parts) - 1: "C", 0: "F"} if len(parts) > 1 else {0: "C"}
        is_known = len(steps) == len(parts) and all(step in (None, 1) for step in steps)
        if not is_known or len(close) > 1 or (close and close[0] not in ends):
            raise GpusimError(f"{HOW}; an array's type is {self}[:], {self}[:, :] or {self}[::1]")
        return ArrayType(self.dtype, len(parts), ends[close[0]] if close else "A")

    def __call__(self, *parts: Any) -> Any:
        """Return a number of this type; of types, the signature of a function that gives it."""
        if parts and all(isinstance(part, ScalarType | ArrayType) for part in parts):
            return Signature(parts, self.dtype)
        if len(parts) != 1:
            raise GpusimError(f"{self} converts one number, not {len(parts)}")
        return self.dtype.type(parts[0])


@dataclass(frozen=True)
class Signature:
    """The types of a function's parameters, and of its result if it has one."""

    parameters: tuple[ScalarType | ArrayType, ...]
    result: DType | None = None

    def __str__(self) -> str:
        return f"{self.result or 'void'}({', '.join(map(str, self.parameters))})"


def void(*parameters: ScalarType | ArrayType) -> Signature:
    """Return the signature of a function without a result."""
    return Signature(parameters)


boolean = ScalarType("boolean", BOOL)
int8, uint8 = ScalarType("int8", INT8), ScalarType("uint8", UINT8)
int16, uint16 = ScalarType("int16", INT16), ScalarType("uint16", UINT16)
int32, uint32 = ScalarType("int32", INT32), ScalarType("uint32", UINT32)
int64, uint64 = ScalarType("int64", INT64), ScalarType("uint64", UINT64)
float32, float64 = ScalarType("float32", FLOAT32), ScalarType("float64", FLOAT64)
SCALARS: Mapping[str, ScalarType] = {
    scalar.name: scalar
    for scalar in (
        boolean, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64,
    )
}  # fmt: skip
# Other names that numba has for them.
ALIASES: Mapping[str, str] = {
    "bool": "boolean", "bool_": "boolean", "b1": "boolean",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "char": "int8", "short": "int16",
    "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64", "byte": "uint8",
    "int_": "int64", "intc": "int32", "intp": "int64", "long_": "int64", "longlong": "int64",
    "uint": "uint64", "uintc": "uint32", "uintp": "uint64", "ushort": "uint16",
    "ulong": "uint64", "ulonglong": "uint64",
    "f4": "float32", "f8": "float64", "float_": "float32", "double": "float64",
}  # fmt: skip


def scalar_type(name: str) -> ScalarType | None:
    """Return the scalar type that numba calls so, None where there is none."""
    return SCALARS.get(ALIASES.get(name, name))


def foreign_type(given: Any) -> ScalarType | ArrayType | None:
    """Return a type that is given as an object of numba's own, None for anything else."""
    if not type(given).__module__.startswith("numba."):
        return None
    if hasattr(given, "layout") and hasattr(given, "ndim"):
        element = foreign_type(given.dtype)
        if isinstance(element, ScalarType):
            return ArrayType(element.dtype, given.ndim, given.layout)
        return None
    return scalar_type(str(given))


def signatures(given: Any) -> tuple[Signature, ...]:
    """Return the signatures that `jit` is given: one as text, object or tuple of types, or a list.

    Raises GpusimError for anything else.
    """
    each = given if isinstance(given, list) else [given]
    return tuple(_signature(one) for one in each)


def _signature(given: Any) -> Signature:
    if isinstance(given, Signature):
        return given
    if isinstance(given, str):
        return _parsed(given)
    if isinstance(given, Sequence):
        return Signature(tuple(_type(part) for part in given))
    if hasattr(given, "args") and hasattr(given, "return_type"):
        result = foreign_type(given.return_type)
        return Signature(
            tuple(_type(part) for part in given.args),
            result.dtype if isinstance(result, ScalarType) else None,
        )
    raise GpusimError(f"{HOW}, not {given!r}")


def _type(given: Any) -> ScalarType | ArrayType:
    found = given if isinstance(given, ScalarType | ArrayType) else foreign_type(given)
    if found is None and isinstance(given, str):
        return _type(_read(_tree(given), given))
    if found is None and isinstance(given, type) and issubclass(given, np.generic):
        found = scalar_type(np.dtype(given).name)
    if found is None:
        raise GpusimError(f"{HOW}; {given!r} is not a type of kernels")
    return found


def _parsed(text: str) -> Signature:
    found = _read(_tree(text), text)
    if isinstance(found, tuple):
        return Signature(found)
    if not isinstance(found, Signature):
        raise GpusimError(f"{HOW}, not {text!r}")
    return found


def _tree(text: str) -> ast.expr:
    if len(text) > MOST_CHARACTERS:
        raise GpusimError(f"{HOW}, not {len(text)} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise GpusimError(f"{HOW}, not {text!r}") from None


def _read(node: ast.expr, text: str) -> Any:
    """Return the type or signature that a part of a signature's text denotes."""
    if isinstance(node, ast.Name):
        found = scalar_type(node.id)
        if found is None:
            known = ", ".join(SCALARS)
            raise GpusimError(f"{node.id!r} in {text!r} is not a type of kernels: {known}")
        return found
    if isinstance(node, ast.Tuple):
        return tuple(_type(_read(part, text)) for part in node.elts)
    if isinstance(node, ast.Subscript):
        element = _read(node.value, text)
        if isinstance(element, ScalarType):
            return element[_slices(node.slice)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        parameters = tuple(_type(_read(part, text)) for part in node.args)
        is_void = node.func.id in ("void", "none")
        return Signature(parameters, None if is_void else _read(node.func, text).dtype)
    raise GpusimError(f"{HOW}, not {text!r}")


def _slices(node: ast.expr) -> Any:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return tuple(_slice(part) for part in parts)


def _slice(node: ast.expr) -> Any:
    if not isinstance(node, ast.Slice) or node.lower is not None or node.upper is not None:
        return None
    return slice(None, None, node.step.value if isinstance(node.step, ast.Constant) else node.step)
