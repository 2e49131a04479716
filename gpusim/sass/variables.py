"""Values set for `__device__`, `__constant__` and `__managed__` variables of a file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.cuda_cpp import scalars
from gpusim.cuda_cpp.signature import Declared, type_of
from gpusim.cuda_cpp.source_text import parts, plain_text
from gpusim.cuda_cpp.structures import TYPES
from gpusim.errors import LaunchError, did_you_mean
from gpusim.sass import arrays, symbols
from gpusim.sass.cubin import Variable
from gpusim.typing import Array

_SPACES = r"__(device|constant|managed|shared)__"
_DECLARED = re.compile(rf"\b{_SPACES}([^;(]*)([;(])")
_ALIGNED = re.compile(r"\b(?:alignas|__align__|__builtin_align__)\s*\([^)]*\)")
_BRACKETS = re.compile(r"\[[^][]*\]")
_BRACES = re.compile(r"\{[^{}]*\}")
_QUALIFIER = re.compile(
    rf"\b(?:static|extern|inline|const|constexpr|volatile|__restrict__|{_SPACES})\b"
)
_SIZES = re.compile(r"(?:\s*\[[^\]]*\])*\s*$")
MOST_LISTED = 12


def declared_types(
    text: str, spaces: Collection[str] = ("device", "constant", "managed")
) -> dict[str, Declared]:
    """Return the variables in some memories that a source text declares, by their plain names.

    One that is declared twice with different types is left out.
    """
    found: dict[str, Declared | None] = {}
    plain = _BRACKETS.sub("[]", _ALIGNED.sub(" ", plain_text(text)))
    for match in _DECLARED.finditer(plain):
        if match[1] in spaces and (match[3] == ";" or "=" in match[2]):  # no function
            for one in _variables(_without_braces(match[2])):
                known = found.setdefault(one.name, one)
                found[one.name] = one if known == one else None
    return {name: one for name, one in found.items() if one is not None}


def _without_braces(text: str) -> str:
    count = 1
    while count:
        text, count = _BRACES.subn(" ", text)
    return text.partition("{")[0]


def _variables(text: str) -> Iterator[Declared]:
    """Yield the names declared in one declaration, without initialisers and lengths."""
    first, *others = (
        _SIZES.sub("", one.partition("=")[0]) for one in parts(_QUALIFIER.sub(" ", text))
    )
    declared = type_of(" ".join(first.split()), 0)
    yield declared
    yield from (replace(declared, name=one.strip()) for one in others if one.strip().isidentifier())


def variable(name: str, known: Mapping[str, Variable], file: str) -> Variable:
    """Return the variable that a C++ name means; LaunchError, with near names, where none is."""
    found = symbols.named(name, known)
    if len(found) == 1:
        return known[found[0]]
    if found:
        raise LaunchError(
            f"{file} has {len(found)} variables {name!r}: name one, {' or '.join(sorted(found))}"
        )
    names = sorted({symbols.cpp_name(symbol) for symbol in known})
    listed = ", ".join([*names[:MOST_LISTED], *["..."][: len(names) > MOST_LISTED]]) or "none"
    near = did_you_mean(name, names)
    raise LaunchError(f"{file} has no variable {name!r}{near} (its variables: {listed})")


def held(name: str, one: Variable, ctype: str, value: Any) -> Array:
    """Return a variable's new content: all of its bytes, or the first ones if its type is known.

    Numbers without a type of NumPy's take the variable's own. LaunchError where it does not fit.
    """
    if isinstance(value, bytes | bytearray | np.void):
        whole = value.tobytes() if isinstance(value, np.void) else bytes(value)
        made = np.frombuffer(whole, np.uint8)
    elif isinstance(value, np.ndarray) and value.ndim:
        made = arrays.plain(Declared(name, ""), {}, _in_order(value))
    else:
        made = _numbers(name, one, ctype, value)
    wanted = np.dtype(TYPES[ctype]) if ctype in TYPES else None
    is_typed = wanted is not None and made.dtype.itemsize == wanted.itemsize
    if isinstance(value, np.ndarray) and wanted is not None and not is_typed:
        raise LaunchError(f"{name} is of {wanted}; the array is of {made.dtype}")
    is_part = is_typed and made.ndim and made.nbytes < one.size
    if made.nbytes != one.size and not is_part:
        raise LaunchError(
            f"{name} has {one.size} bytes{f' ({ctype})' if ctype else ''}, not {made.nbytes}, as "
            f"{made.dtype} in the shape {made.shape} has"
        )
    return made if made.dtype.isnative else made.astype(made.dtype.newbyteorder("="))


def _in_order(value: Array) -> Array:
    is_masked = isinstance(value, np.ma.MaskedArray)
    return value if is_masked or value.flags.c_contiguous else np.ascontiguousarray(value)


def _numbers(name: str, one: Variable, ctype: str, value: Any) -> Array:
    """Return numbers of Python, one or nested lists of them, in the variable's type."""
    if scalars.number_of(value) is not None:
        made = _scalar(name, one.size, ctype, value)
        return np.asarray(made)
    try:
        nested = np.asarray(value, dtype=object)
    except ValueError:
        nested = np.empty(0, dtype=object)
    if not isinstance(value, list | tuple) or not nested.size:
        raise LaunchError(f"{name} is set to a {type(value).__name__}; give an array or numbers")
    size = one.size // nested.size or 1
    flat = [_scalar(name, size, ctype, number) for number in nested.reshape(-1)]
    return np.array(flat).reshape(nested.shape)


def _scalar(name: str, size: int, ctype: str, value: Any) -> np.generic:
    if scalars.is_known(ctype):
        return scalars.scalar(name, ctype, value)
    return scalars.of_size(name, ctype, size, value)
