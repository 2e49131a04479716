"""Types and numbers of the dialect as CUDA C++ writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.compiler.ir import Value
from gpusim.typing import DType

C_TYPES: Mapping[str, str] = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short",
    "uint16": "unsigned short", "int32": "int", "uint32": "unsigned", "int64": "long long",
    "uint64": "unsigned long long", "float32": "float", "float64": "double",
}  # fmt: skip
VECTORS: Mapping[str, str] = {
    "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
    "uint32": "uint", "int64": "longlong", "uint64": "ulonglong", "float32": "float",
    "float64": "double",
}  # fmt: skip
SUFFIXES: Mapping[str, str] = {"uint32": "u", "int64": "ll", "uint64": "ull", "float32": "f"}


def of_dtype(dtype: DType) -> str:
    """Return the type of a number."""
    return C_TYPES[dtype.name]


def unsigned(dtype: DType) -> str:
    """Return the unsigned type of an integer's size."""
    return C_TYPES[f"uint{8 * dtype.itemsize}"]


def of_value(value: Value) -> str:
    """Return the type of a value's result."""
    if value.op == "load_vector":
        array, count = value.detail
        return f"{VECTORS[array.dtype.name]}{count}"
    assert value.dtype is not None
    return of_dtype(value.dtype)


def literal(number: Any) -> str:
    """Return a NumPy scalar as C++ writes it, exactly; a negative one in parentheses."""
    kind = number.dtype
    if kind.kind == "b":
        return "true" if number else "false"
    text = _real(number) if kind.kind == "f" else _whole(int(number), kind)
    return f"({text})" if text.startswith("-") else text


def _real(number: Any) -> str:
    if np.isfinite(number):
        return f"{float(number).hex()}{SUFFIXES.get(number.dtype.name, '')}"
    view, function = (
        ("uint32", "__int_as_float") if number.dtype.itemsize == 4 else
        ("uint64", "__longlong_as_double")
    )  # fmt: skip
    return f"{function}({int(number.view(view)):#x})"


def _whole(value: int, dtype: DType) -> str:
    suffix = SUFFIXES.get(dtype.name, "")
    if dtype.kind == "i" and value == np.iinfo(dtype).min and dtype.itemsize >= 4:
        return f"-{-(value + 1)}{suffix} - 1"
    return f"{value}{suffix}"
