"""Arguments of a kernel in machine code: the content of its parameters, byte by byte.

A pointer is an array, or None for none; a number has the type that the source declares, else one
of the parameter's size; a structure by value is a tuple or dictionary of its members, or its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpusim.cuda_cpp import scalars
from gpusim.cuda_cpp.signature import Declared
from gpusim.cuda_cpp.structures import POINTER_BYTES, TENSOR_MAP, Member, Structures, members
from gpusim.errors import LaunchError
from gpusim.launch.arguments import ArraySpec, NullPointer
from gpusim.launch.tensor_maps import TensorMap
from gpusim.sass import arrays
from gpusim.sass.cubin import Parameter


class Given(NamedTuple):
    """An argument: a parameter, or a member of one, with its place in bank 0."""

    name: str
    offset: int
    size: int
    value: Any


def given(
    kernel: str,
    parameters: Sequence[Parameter],
    declared: Sequence[Declared],
    known: Structures,
    values: Sequence[Any],
) -> list[Given]:
    """Pair a kernel's parameters with arguments: arrays, numbers and bytes.

    A structure is one argument, or as many as it has members. Raises LaunchError where arguments
    do not match in number, size or kind.
    """
    pairs = list(zip(declared, parameters, strict=True))
    shapes = [members(one, known, parameter.size) for one, parameter in pairs]
    if len(values) != len(pairs):
        values = _by_parameter(kernel, declared, shapes, values)
    made: list[Given] = []
    for (one, parameter), shape, value in zip(pairs, shapes, values, strict=True):
        if isinstance(value, TensorMap):
            shape = members(Declared(one.name, "CUtensorMap"), TENSOR_MAP, parameter.size)
            if shape is None:
                raise LaunchError(f"argument {one.name!r} is not a CUtensorMap")
            value = value.members
        if shape is None or isinstance(value, bytes | np.void):
            whole = argument(one, parameter.size, known, value)
            made.append(Given(one.name, parameter.offset, parameter.size, whole))
            continue
        for member, part in zip(shape, _parts(one, shape, value), strict=True):
            passed = argument(member.declared, member.size, known, part)
            place = parameter.offset + member.offset
            made.append(Given(member.declared.name, place, member.size, passed))
    return made


def _by_parameter(
    kernel: str,
    declared: Sequence[Declared],
    shapes: Sequence[tuple[Member, ...] | None],
    values: Sequence[Any],
) -> list[Any]:
    """Return arguments given member by member with the members of each structure as one."""
    counts = [1 if shape is None else len(shape) for shape in shapes]
    if len(values) != sum(counts):
        names = ", ".join(one.name for one in declared)
        raise LaunchError(f"{kernel} takes {len(declared)} arguments ({names}), not {len(values)}")
    left = iter(values)
    return [next(left) if shape is None else tuple(next(left) for _ in shape) for shape in shapes]


def _parts(declared: Declared, shape: tuple[Member, ...], value: Any) -> list[Any]:
    """Return a structure's members, in order, of a tuple or a dictionary of them."""
    names = [member.declared.name.removeprefix(f"{declared.name}.") for member in shape]
    try:
        found, fits = _members_given(names, value)
    except RecursionError:
        raise LaunchError(
            f"argument {declared.name!r} is nested too deeply, or contains itself"
        ) from None
    if not fits:
        raise LaunchError(
            f"argument {declared.name!r} is a {declared.ctype} with the members "
            f"{', '.join(names)}; pass them as a tuple, by name as a dictionary, or its bytes"
        )
    return found


def _members_given(names: Sequence[str], value: Any) -> tuple[list[Any], bool]:
    """Return the values of members, and whether there are as many or these names."""
    if isinstance(value, Mapping):
        held = dict(_paths(value, ""))
        return [held.get(name) for name in names], set(held) == set(names)
    found = list(_in_order(value))
    return found, len(found) == len(names)


def _paths(value: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for name, held in value.items():
        if isinstance(held, Mapping):
            yield from _paths(held, f"{before}{name}.")
        else:
            yield f"{before}{name}", held


def _in_order(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for held in value:
            yield from _in_order(held)
    else:
        yield value


def argument(declared: Declared, size: int, known: Structures, value: Any) -> Any:
    """Return the value passed for a parameter; LaunchError if it does not fit."""
    if isinstance(value, np.ndarray) and not value.ndim:
        value = _without_dimensions(declared, value)
    if isinstance(value, np.ndarray):
        _expect_pointer(declared, size)
        return arrays.plain(declared, known, value)
    if isinstance(value, ArraySpec):
        _expect_pointer(declared, size)
        return arrays.spec(declared, value)
    if value is None:
        _expect_pointer(declared, size)
        return NullPointer()
    if declared.is_pointer:
        raise LaunchError(
            f"argument {declared.name!r} is a {declared.ctype}; pass a NumPy array or None, on the "
            f"command line --arg '{declared.name}=float32[4096]' or so, or {declared.name}=null, "
            f"not {type(value).__name__}"
        )
    if isinstance(value, bytes | np.void):
        return _bytes(declared, size, known, value)
    return _number(declared, size, value)


def _without_dimensions(declared: Declared, value: np.ndarray[Any, Any]) -> Any:
    """Return an array of no dimensions as one element for a pointer, else as a number."""
    if declared.is_pointer:
        return value.reshape(1)
    if not declared.ctype and value.dtype.itemsize == POINTER_BYTES:
        raise LaunchError(
            f"argument {declared.name!r} may be a pointer or a number; pass "
            f"{declared.name}.reshape(1) or {declared.name}[()]"
        )
    return value[()]


def _bytes(declared: Declared, size: int, known: Structures, value: bytes | np.void) -> np.void:
    shape = members(declared, known, size)
    if isinstance(value, np.void) and value.dtype.names is not None:
        lies = shape is None or arrays.lies_as(value.dtype, shape)
        if not lies or not value.dtype.isnative:
            raise LaunchError(
                f"argument {declared.name!r} is a {declared.ctype or f'value of {size} bytes'}, in "
                f"which members do not lie as in {value.dtype}"
            )
    held = value if isinstance(value, bytes) else value.tobytes()
    return np.void(_of_size(declared, size, np.frombuffer(held, np.uint8)).tobytes())


def _expect_pointer(declared: Declared, size: int) -> None:
    if size != POINTER_BYTES or scalars.is_known(declared.ctype):
        raise LaunchError(
            f"argument {declared.name!r} is a {declared.ctype or f'value of {size} bytes'}, "
            "which takes a number, not an array or a null pointer"
        )


def _number(declared: Declared, size: int, value: Any) -> Any:
    what = f"argument {declared.name!r}"
    if scalars.is_known(declared.ctype):
        made = scalars.scalar(what, declared.ctype, value)
    elif declared.is_class and not isinstance(value, np.generic):
        raise LaunchError(
            f"{what} is a {declared.ctype}; a {type(value).__name__} does not fit: "
            "pass its bytes, or a number of NumPy's with its size"
        )
    else:
        made = scalars.of_size(what, declared.ctype, size, value)
    return _of_size(declared, size, np.asarray(made))[()]


def _of_size(declared: Declared, size: int, made: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if made.nbytes != size:
        raise LaunchError(
            f"argument {declared.name!r} has {size} bytes"
            f"{f' ({declared.ctype})' if declared.ctype else ''}, the value given {made.nbytes}"
        )
    return made
