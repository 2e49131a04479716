"""Files of numbers: `.npy`, or text with a number a word.

`numbers` raises InputError for a file that cannot be used, and says where it is wrong.
"""

from __future__ import annotations

import math
import os
import stat
import tokenize
import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from gpusim.cli.inputs import DTYPES, MAX_LETTERS, fits, number
from gpusim.errors import InputError
from gpusim.host import files
from gpusim.host.files import shown
from gpusim.launch.arguments import MAX_ELEMENTS
from gpusim.typing import Array, DType

Row = tuple[int, list[str]]  # the number of a line, and its words

MAX_TEXT_BYTES = 2**27  # some 20 s; words of one line take up to 16 times its length
LINES_AT_ONCE = 2**16
NARROW = [DTYPES[name] for name in ("int32", "int64", "float64")]

_NPY_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_NOT_NPY = (
    ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError, tokenize.TokenError,
)  # fmt: skip


def numbers(path: str | Path, expected: DType | None = None) -> Array:
    """Return the numbers of a `.npy` file, or of text separated by commas or spaces.

    `expected` is the type requested. A `.npy` file must hold it; text is read as it, and
    without it is int32, int64 or float64, whichever holds all of its numbers. A first line
    of text that has no number is assumed to be a heading; `#` starts a comment.
    """
    file = Path(path)
    array = _binary(file, expected) if file.suffix == ".npy" else _text(file, expected)
    if array.size == 0:
        raise InputError(f"{shown(file)}: holds no numbers")
    return array


def _binary(path: Path, expected: DType | None) -> Array:
    with files.opened(path) as file:
        shape, is_fortran, stored = _header(path, file)
        held = stored.newbyteorder("=")
        if held not in DTYPES.values():
            raise InputError(
                f"{shown(path)}: holds {shown(str(stored))}; kernels take {', '.join(DTYPES)}"
            )
        if expected is not None and held != expected:
            raise InputError(f"{shown(path)}: holds {held}, but {expected} is expected")
        content = _elements(path, file, math.prod(shape), stored)
    array = content.reshape(shape, order="F" if is_fortran else "C")
    return np.ascontiguousarray(array, dtype=held)


def _header(path: Path, file: BinaryIO) -> tuple[tuple[int, ...], bool, DType]:
    """Return shape, order and type. NumPy reads them as Python, and raises and warns as it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            shape, is_fortran, stored = _NPY_HEADERS[npy.read_magic(file)](file)
    except _NOT_NPY:
        raise _foreign(path) from None
    if math.prod(shape) > MAX_ELEMENTS or not all(length >= 0 for length in shape):
        raise InputError(f"{shown(path)}: an array has at most {MAX_ELEMENTS:,} elements")
    return shape, is_fortran, stored


def _elements(path: Path, file: BinaryIO, count: int, stored: DType) -> Array:
    """Return the elements after the header; a truncated file is refused before allocation."""
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_size - file.tell() < count * stored.itemsize:
        raise _foreign(path)
    array: Array = np.empty(count, dtype=stored)
    if file.readinto(array.view(np.uint8)) < array.nbytes:  # type: ignore[attr-defined]
        raise _foreign(path)
    return array


def _foreign(path: Path) -> InputError:
    return InputError(f"{shown(path)}: is not a NumPy file of numbers, or is cut short")


def _text(path: Path, expected: DType | None) -> Array:
    lines = files.text(path, MAX_TEXT_BYTES).splitlines()
    rows = ((at, words) for at, line in enumerate(lines, 1) if (words := _words(line)))
    first = list(islice(rows, 1))
    if all(number(word) is None for _, words in first for word in words):
        first = []  # a heading
    left = chain(first, rows)
    parts = []
    while part := list(islice(left, LINES_AT_ONCE)):
        parts.append(_array(path, part, expected))
    return np.concatenate(parts) if parts else np.empty(0)


def _words(line: str) -> list[str]:
    return line.partition("#")[0].replace(",", " ").replace(";", " ").split()


def _array(path: Path, rows: list[Row], expected: DType | None) -> Array:
    """Return the numbers of some lines in the type requested, or the narrowest that holds them."""
    values = _values([word for _, words in rows for word in words])
    if values is None:
        raise _misfit(path, rows, lambda word: number(word) is not None, "is not a number")
    extremes = _extremes(values)
    kinds = NARROW if expected is None else [expected]
    kind = next((kind for kind in kinds if all(fits(value, kind) for value in extremes)), None)
    if kind is None:
        last = kinds[-1]
        raise _misfit(path, rows, lambda word: _fits(word, last), f"does not fit in {last}")
    return np.array(values, dtype=kind)


def _fits(word: str, kind: DType) -> bool:
    value = number(word)
    return value is not None and fits(value, kind)


def _values(words: list[str]) -> Sequence[int | float] | None:
    """Return words as numbers, all whole or all floats; None where one of them is none."""
    if max(map(len, words)) > MAX_LETTERS:
        return None
    try:
        return list(map(int, words))
    except ValueError:
        pass
    try:
        values = list(map(float, words))
    except ValueError:
        return None
    has_infinity = any(map(math.isinf, values))
    return None if has_infinity and any(number(word) is None for word in words) else values


def _extremes(values: Sequence[int | float]) -> tuple[int | float, ...]:
    """Return the least and the largest finite number: a type that holds both holds all."""
    finite = [v for v in values if math.isfinite(v)] if isinstance(values[0], float) else values
    return (min(finite), max(finite)) if finite else tuple(values[:1])


def _misfit(path: Path, rows: Iterable[Row], good: Callable[[str], bool], what: str) -> InputError:
    """Return the InputError for the first word that is not good."""
    words = ((at, word) for at, words in rows for word in words)
    at, word = next((at, word) for at, word in words if not good(word))
    return InputError(f"{shown(path)}, line {at}: {shown(word)!r} {what}")
