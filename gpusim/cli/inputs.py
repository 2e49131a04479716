"""Numbers, lists and names as a user writes them, turned into values.

Every function raises InputError for invalid text, and says the expected form. Texts are
validated before conversion: Python's own conversions have no bounds, or raise errors that no
user should see.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from pathlib import Path

import numpy as np

from gpusim.errors import InputError, did_you_mean
from gpusim.host.files import shown
from gpusim.launch.arguments import MAX_ELEMENTS
from gpusim.typing import DType

DTYPES: dict[str, DType] = {
    name: np.dtype(name)
    for name in (
        "int32", "uint32", "int64", "uint64", "float32", "float64", "float16",
        "bool", "int8", "uint8", "int16", "uint16",
    )
}  # fmt: skip

MAX_LETTERS = 1100  # of a number: the longest float64, written out in full, has 1,077

_POWER = re.compile(r"(\d+)(?:\^|\*\*)(\d+)([+-]\d+)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_EXPONENT = re.compile(r"\d+(\.\d+)?[eE]\+?\d{1,2}", re.ASCII)
_INFINITE = re.compile(r"[+-]?(inf|infinity)", re.IGNORECASE)


def whole_number(text: str) -> int | None:
    """Return the value of 4096, 4_096, 1e6, 2^20, 2**20 or 2^20+1, None for anything else."""
    plain = text.strip().replace("_", "")
    if len(plain) > MAX_LETTERS:
        return None
    power = _POWER.fullmatch(plain)
    if power:
        base, exponent, rest = int(power[1]), int(power[2]), int(power[3] or 0)
        return base**exponent + rest if exponent <= 64 and base <= 2**32 else None
    if _WHOLE.fullmatch(plain):
        return int(plain)
    if _EXPONENT.fullmatch(plain):
        value = float(plain)
        return int(value) if value.is_integer() else None
    return None


def number(text: str) -> int | float | None:
    """Return the value of a number in a file or an argument.

    None for anything else, and for numbers beyond the range of float64.
    """
    word = text.strip()
    if len(word) > MAX_LETTERS:
        return None
    try:
        return int(word)
    except ValueError:
        pass
    try:
        value = float(word)
    except ValueError:
        return None
    return None if math.isinf(value) and not _INFINITE.fullmatch(word) else value


def fits(value: int | float, kind: DType) -> bool:
    """Whether a number is one of a type's.

    A type of floats has NaN and infinity, and rounds, but has no number beyond its largest.
    """
    if kind.kind == "f":
        largest = float(np.finfo(kind).max)
        is_special = isinstance(value, float) and not math.isfinite(value)
        return is_special or -largest <= value <= largest
    if isinstance(value, float):
        return False
    if kind.kind == "b":
        return value in (0, 1)
    limits = np.iinfo(kind)
    return bool(limits.min <= value <= limits.max)


def count(text: str, what: str = "n", *, least: int = 1, most: int = MAX_ELEMENTS) -> int:
    """Return a number of things between `least` and `most`."""
    value = whole_number(text)
    if value is None:
        raise InputError(f"{what} is {shown(text)!r}, not a whole number; write 4096, 2^20 or 1e6")
    if value < least:
        raise InputError(f"{what} must be at least {least}, not {shown(text)}")
    if value > most:
        raise InputError(f"{what} must be at most {most:,}, not {shown(text)}")
    return value


def sizes(text: str, what: str) -> tuple[int, ...]:
    """Return a grid or block written as 256, 16x16 or 8x8x4; limits are the launch's business."""
    if "," in text:
        raise InputError(
            f"{what} is {shown(text)!r}; write dimensions as 16x16 or 8x8x4; lists with "
            "commas are for gpusim sweep and tune"
        )
    parts = text.strip().strip("()").split("x")
    values = [whole_number(part) for part in parts]
    if len(values) > 3 or any(value is None or value >= 2**64 for value in values):
        raise InputError(
            f"{what} is {shown(text)!r}; write one to three sizes, such as 256 or 16x16"
        )
    return tuple(value for value in values if value is not None)


def some_blocks(text: str, count: int) -> range:
    """Return some of a grid's `count` blocks: last:64, first:64, or 100:200 (the last is left out).

    InputError where there are none.
    """
    begin, colon, end = text.strip().partition(":")
    number = whole_number(end)
    if begin in ("first", "last") and number is not None and number > 0:
        number = min(number, count)
        return range(number) if begin == "first" else range(count - number, count)
    first = whole_number(begin)
    found = range(first or 0, min(number or 0, count))
    if not colon or first is None or number is None or not found or first < 0:
        raise InputError(
            f"--blocks is {shown(text)!r}; write last:64, first:64, or 100:200, within the grid's "
            f"{count:,} blocks"
        )
    return found


def listed(text: str, what: str) -> list[str]:
    """Return the parts of a list with commas; InputError where there is none."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"{what} is empty; give one or more, with commas between them")
    return parts


def counts(text: str, what: str, each: str, *, most: int = MAX_ELEMENTS) -> list[int]:
    """Return the counts of a list with commas; 2^20..2^24 is 2^20 and twice that, up to 2^24."""
    found = []
    for part in listed(text, what):
        first, dots, last = part.partition("..")
        value = count(first, each, most=most)
        end = count(last, each, least=value, most=most) if dots else value
        while value <= end:
            found.append(value)
            value *= 2
    return found


def blocks(text: str, what: str) -> list[int | str]:
    """Return the alternatives for a block: counts, or texts of several sizes such as 16x16."""
    found: list[int | str] = []
    for part in listed(text, what):
        is_count = ".." in part or len(sizes(part, "a block")) == 1
        found += counts(part, what, "a block") if is_count else [part]
    return found


def dtype(text: str) -> DType:
    """Return a data type by its NumPy name."""
    if text not in DTYPES:
        raise InputError(
            f"unknown data type {shown(text)!r}{did_you_mean(text, DTYPES)} "
            f"(known: {', '.join(DTYPES)})"
        )
    return DTYPES[text]


def lowering_level(text: str) -> str:
    """Return "O0" or "O3" for the value of -O."""
    level = text.upper().removeprefix("O")
    if level not in ("0", "3"):
        raise InputError(f"-O is 0 (as nvcc -G) or 3 (as nvcc -O3), not {text!r}")
    return f"O{level}"


def only(names: Collection[str], path: Path) -> str:
    """Return the name of a file's only kernel; InputError where it has none or several."""
    if len(names) == 1:
        return next(iter(names))
    listed = f": {', '.join(names)}" if names else ""
    raise InputError(f"{path} has {len(names)} kernels{listed}; name one, {path}:NAME")
