"""Arguments of a kernel in machine code: what lies in its parameters, byte by byte.

A pointer is an array; a number has the type that the source declares, else one of the
parameter's size; a structure by value is a sequence of its members, or its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpusim.arguments import ArraySpec
from gpusim.errors import LaunchError
from gpusim.sass.cubin import Parameter
from gpusim.sass.signature import Declared

POINTER_BYTES = 8
TYPES: Mapping[str, type[np.generic]] = {
    "bool": np.bool_,
    "char": np.int8, "signed char": np.int8, "unsigned char": np.uint8,
    "short": np.int16, "unsigned short": np.uint16,
    "int": np.int32, "signed": np.int32, "unsigned": np.uint32, "unsigned int": np.uint32,
    "long": np.int64, "unsigned long": np.uint64, "size_t": np.uint64,
    "long long": np.int64, "unsigned long long": np.uint64,
    "long int": np.int64, "unsigned long int": np.uint64, "long long int": np.int64,
    "int8_t": np.int8, "uint8_t": np.uint8, "int16_t": np.int16, "uint16_t": np.uint16,
    "int32_t": np.int32, "uint32_t": np.uint32, "int64_t": np.int64, "uint64_t": np.uint64,
    "float": np.float32, "double": np.float64, "half": np.float16, "__half": np.float16,
}  # fmt: skip
_INTEGERS: Mapping[int, type[np.generic]] = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_FLOATS: Mapping[int, type[np.generic]] = {2: np.float16, 4: np.float32, 8: np.float64}


def bound(
    kernel: str,
    parameters: Sequence[Parameter],
    declared: Sequence[Declared],
    values: Sequence[Any],
) -> dict[str, Any]:
    """Pair a kernel's parameters with arguments: arrays, numbers and bytes.

    Raises LaunchError where they do not match in number, size or kind.
    """
    names = [one.name for one in declared]
    if len(values) != len(parameters):
        raise LaunchError(
            f"{kernel} takes {len(parameters)} arguments ({', '.join(names)}), not {len(values)}"
        )
    pairs = zip(declared, parameters, values, strict=True)
    return {one.name: argument(one, parameter.size, value) for one, parameter, value in pairs}


def argument(declared: Declared, size: int, value: Any) -> Any:
    """Return what is passed for a parameter; LaunchError where it does not fit."""
    if isinstance(value, np.ndarray) and value.dtype.fields is None and value.ndim:
        return _array(declared, size, value)
    if isinstance(value, ArraySpec):
        _expect_pointer(declared, size)
        return value
    if declared.is_pointer:
        raise LaunchError(
            f"argument {declared.name!r} is a {declared.ctype}; pass a NumPy array, not "
            f"{type(value).__name__}"
        )
    if isinstance(value, bytes | np.void):
        held = value if isinstance(value, bytes) else value.tobytes()
        return _of_size(declared, size, np.frombuffer(held, np.uint8))
    return _number(declared, size, value)


def _array(declared: Declared, size: int, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    _expect_pointer(declared, size)
    if not value.flags.c_contiguous:
        raise LaunchError(
            f"array {declared.name!r} is not contiguous; pass "
            f"numpy.ascontiguousarray({declared.name})"
        )
    pointed = TYPES.get(declared.ctype.rstrip("*[] ").strip())
    if pointed is not None and np.dtype(pointed).itemsize != value.dtype.itemsize:
        raise LaunchError(
            f"argument {declared.name!r} points to {np.dtype(pointed)}; the array is of "
            f"{value.dtype}"
        )
    return value


def _expect_pointer(declared: Declared, size: int) -> None:
    if size != POINTER_BYTES or (TYPES.get(declared.ctype) is not None):
        raise LaunchError(
            f"argument {declared.name!r} is a {declared.ctype or f'value of {size} bytes'}, "
            "which takes a number, not an array"
        )


def _number(declared: Declared, size: int, value: Any) -> Any:
    kind = TYPES.get(declared.ctype)
    if kind is None:
        if isinstance(value, np.generic):
            kind = type(value)
        elif isinstance(value, bool):
            kind = np.bool_
        elif isinstance(value, float):
            kind = _FLOATS.get(size)
        elif isinstance(value, int):
            kind = _INTEGERS.get(size)
    if kind is None or not isinstance(value, int | float | np.generic):
        raise LaunchError(
            f"argument {declared.name!r} is a {declared.ctype or f'value of {size} bytes'}; "
            f"a {type(value).__name__} does not fit: pass its bytes"
        )
    made = np.asarray(_converted(declared, kind, value))
    return _of_size(declared, size, made)[()]


def _converted(declared: Declared, kind: type[np.generic], value: Any) -> Any:
    dtype = np.dtype(kind)
    if dtype.kind in "iu":
        whole = int(value)
        if (
            whole != value
            or not -(1 << (8 * dtype.itemsize - 1)) <= whole < 1 << 8 * dtype.itemsize
        ):
            raise LaunchError(
                f"argument {declared.name!r} is a {declared.ctype or dtype}, which {value!r} is not"
            )
        return np.array(whole & ((1 << 8 * dtype.itemsize) - 1), f"u{dtype.itemsize}").view(dtype)
    return dtype.type(value)


def _of_size(declared: Declared, size: int, made: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if made.nbytes != size:
        raise LaunchError(
            f"argument {declared.name!r} has {size} bytes"
            f"{f' ({declared.ctype})' if declared.ctype else ''}, what was given {made.nbytes}"
        )
    return made
