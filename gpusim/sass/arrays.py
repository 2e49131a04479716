"""Arrays as kernels read them: plain numbers, one beside the other, in the machine's byte order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.cuda_cpp.signature import Declared
from gpusim.cuda_cpp.structures import TYPES, Member, Structures, members
from gpusim.errors import LaunchError
from gpusim.launch.arguments import ArraySpec
from gpusim.typing import Array

LARGEST_FLOAT_BYTES = 8
# Kinds of NumPy's types that are no numbers to a GPU, and the way to numbers.
_NO_NUMBERS: Mapping[str, str] = {
    "O": "Python objects; give it a type, as in {0}.astype(numpy.float32)",
    "S": "text; pass its bytes, numpy.frombuffer({0}, numpy.uint8)",
    "U": "text; pass its characters as numbers, {0}.view(numpy.uint32)",
    "T": "text; pass its characters as numbers",
    "M": "times; pass them as numbers, {0}.view(numpy.int64)",
    "m": "times; pass them as numbers, {0}.view(numpy.int64)",
}


def plain(declared: Declared, known: Structures, value: Array) -> Array:
    """Return an array for a pointer as a kernel reads it, a view; LaunchError if it cannot be.

    Complex numbers become two floats each, structures their bytes.
    """
    name, pointed = declared.name, declared.ctype.rstrip("*[] ").strip()
    if isinstance(value, np.ma.MaskedArray):
        raise LaunchError(
            f"array {name!r} is masked, and a kernel does not see the mask; pass {name}.filled(...)"
        )
    _check(name, pointed, value.dtype)
    if not value.flags.c_contiguous:
        raise LaunchError(f"array {name!r} is not contiguous; pass numpy.ascontiguousarray({name})")
    held = value.view(np.ndarray)
    if held.dtype.kind == "V":
        _check_structure(declared, pointed, known, held.dtype)
        return held.reshape(-1).view(np.uint8)
    if held.dtype.kind == "c":
        return held.view(_float_of(held.dtype))
    return held


def spec(declared: Declared, value: ArraySpec) -> ArraySpec:
    """Return a stand-in for an array as `plain` returns the array."""
    _check(declared.name, declared.ctype.rstrip("*[] ").strip(), value.dtype)
    return replace(value, dtype=value.dtype.newbyteorder("="))


def _float_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")


def _check(name: str, pointed: str, dtype: np.dtype[Any]) -> None:
    """Raise LaunchError for elements without a type on GPUs, or of another type than pointed to."""
    if dtype.kind in _NO_NUMBERS:
        way = _NO_NUMBERS[dtype.kind].format(name)
        raise LaunchError(f"array {name!r} is of {dtype}, which are {way}")
    parts = 2 if dtype.kind == "c" else 1
    if dtype.kind in "fc" and dtype.itemsize > parts * LARGEST_FLOAT_BYTES:
        raise LaunchError(f"array {name!r} is of {dtype}, which no GPU has; pass float64")
    wanted = np.dtype(TYPES[pointed]) if pointed in TYPES else None
    is_other = wanted is not None and (wanted.itemsize != dtype.itemsize or dtype.kind in "cV")
    if is_other or ("bfloat16" in pointed and dtype.kind == "f"):
        raise LaunchError(
            f"argument {name!r} points to {wanted or pointed}; the array is of {dtype}"
        )


def _check_structure(
    declared: Declared, pointed: str, known: Structures, dtype: np.dtype[Any]
) -> None:
    if dtype.names is None:
        return
    shape = members(Declared("", pointed.removeprefix("const ")), known, dtype.itemsize)
    if shape is None or not lies_as(dtype, shape):
        raise LaunchError(
            f"array {declared.name!r} is of {dtype}, with members at other offsets than in "
            f"{pointed or 'its target type'}; pass their bytes, "
            f"{declared.name}.view(numpy.uint8)"
        )


def lies_as(dtype: np.dtype[Any], shape: Sequence[Member]) -> bool:
    """Return whether a structured type's numbers lie where a structure's members do."""
    given = list(_numbers(dtype, 0))
    return len(given) == len(shape) and all(
        (offset, one.itemsize) == (member.offset, member.size)
        and one.isnative
        and one.kind not in _NO_NUMBERS
        and (one.kind == "f") == (np.dtype(TYPES.get(member.declared.ctype, np.uint64)).kind == "f")
        for (offset, one), member in zip(given, shape, strict=True)
    )


def _numbers(dtype: np.dtype[Any], begin: int) -> Iterator[tuple[int, np.dtype[Any]]]:
    """Yield the numbers of a structured type with their places."""
    if dtype.fields is not None:
        for name in dtype.names or ():
            one, offset, *_ = dtype.fields[name]
            yield from _numbers(one, begin + offset)
    elif dtype.subdtype is not None:
        base, shape = dtype.subdtype
        for number in range(int(np.prod(shape))):
            yield from _numbers(base, begin + number * base.itemsize)
    else:
        yield begin, dtype


def in_native_order(arrays: Mapping[str, Any]) -> dict[str, Array]:
    """Return copies of the arrays in another byte order than the machine's, by their names.

    An array that is given twice has one copy. LaunchError where such an array shares memory with
    another argument: they would not see each other's elements.
    """
    held = {name: value for name, value in arrays.items() if isinstance(value, np.ndarray)}
    copies: dict[str, Array] = {}
    made: dict[Any, Array] = {}
    for name, value in held.items():
        if value.dtype.isnative:
            continue
        same = _place(value)
        for other, another in held.items():
            if _place(another) != same and np.may_share_memory(value, another):
                raise LaunchError(
                    f"arrays {name!r} and {other!r} share memory, and {name!r} is of "
                    f"{value.dtype}, in another byte order; pass "
                    f"{name}.astype({name}.dtype.newbyteorder('='))"
                )
        if same not in made:
            made[same] = value.astype(value.dtype.newbyteorder("="))
            made[same].flags.writeable = value.flags.writeable
        copies[name] = made[same]
    return copies


def _place(value: Array) -> Any:
    return value.__array_interface__["data"][0], value.nbytes, value.dtype.str
