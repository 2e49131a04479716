"""Numbers as a type of CUDA C++ holds them: each is one of the type's values, or is refused.

A number without a fraction may be given to an integer as a float; floats round as a cast does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.cuda_cpp.structures import TYPES
from gpusim.errors import LaunchError

Number = bool | int | float

_INTEGERS: Mapping[int, type[np.generic]] = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_FLOATS: Mapping[int, type[np.generic]] = {2: np.float16, 4: np.float32, 8: np.float64}
_INT128 = ("__int128", "signed __int128", "__int128_t")
_UINT128 = ("unsigned __int128", "__uint128_t")
_BFLOAT16 = ("__nv_bfloat16", "nv_bfloat16")
_LARGEST_BFLOAT16 = 255.0 * 2.0**120
_MOST_SHOWN = 40


def is_known(ctype: str) -> bool:
    """Return whether a number becomes a value of this type by the type alone."""
    return ctype in TYPES or ctype in (*_INT128, *_UINT128, *_BFLOAT16)


def number_of(value: Any) -> Number | None:
    """Return a number of Python for one of Python or NumPy, None for anything else."""
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    for kinds, made in (((bool, np.bool_), bool), ((int, np.integer), int)):
        if isinstance(value, kinds) and not isinstance(value, np.timedelta64):
            return made(value)
    return float(value) if isinstance(value, float | np.floating) else None


def scalar(what: str, ctype: str, value: Any) -> np.generic:
    """Return a value of a known type; LaunchError, about `what`, if it is none."""
    number = number_of(value)
    if number is None:
        raise LaunchError(f"{what} is a {ctype}; a {type(value).__name__} does not fit")
    if ctype in _BFLOAT16:
        return _bfloat16(what, ctype, number)
    if ctype in (*_INT128, *_UINT128):
        is_signed = ctype in _INT128
        whole = _whole(what, ctype, number, *_limits(128, is_signed))
        return np.void(whole.to_bytes(16, "little", signed=is_signed))
    dtype = np.dtype(TYPES[ctype])
    if isinstance(value, np.generic) and value.dtype == dtype:
        return value  # a signalling NaN stays one
    return _as(what, ctype, dtype, number)


def of_size(what: str, ctype: str, size: int, value: Any) -> np.generic:
    """Return a value of a type with only its size known: NumPy's own, else Python's.

    Signed and unsigned integers are both accepted.
    """
    described = ctype or f"value of {size} bytes"
    number = number_of(value)
    if isinstance(value, np.generic) and number is not None:
        return value
    kind = (_FLOATS if isinstance(number, float) else _INTEGERS).get(size)
    if isinstance(number, bool):
        kind = np.bool_
    if number is None or kind is None:
        raise LaunchError(
            f"{what} is a {described}; a {type(value).__name__} does not fit: pass its bytes"
        )
    is_large = not isinstance(number, float) and number > _limits(8 * size - 1, False)[1]
    return _as(what, described, np.dtype(f"u{size}" if is_large else kind), number)


def _as(what: str, ctype: str, dtype: np.dtype[Any], number: Number) -> np.generic:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        number = _whole(what, ctype, number, int(limits.min), int(limits.max))
    elif dtype.kind == "b" and number not in (0, 1):
        raise _misfit(what, ctype, number)
    return _rounded(what, ctype, dtype, number)


def _rounded(what: str, ctype: str, dtype: np.dtype[Any], number: Number) -> np.generic:
    try:
        with np.errstate(all="ignore"):
            made: np.generic = dtype.type(number)
    except OverflowError:
        raise _misfit(what, ctype, number) from None
    if dtype.kind == "f" and np.isinf(made) and not _is_infinite(number):
        raise _misfit(what, ctype, number)
    return made


def _whole(what: str, ctype: str, number: Number, least: int, most: int) -> int:
    is_whole = not isinstance(number, float) or number.is_integer()
    if not is_whole or not least <= number <= most:
        raise _misfit(what, ctype, number)
    return int(number)


def _bfloat16(what: str, ctype: str, number: Number) -> np.uint16:
    """Return the bits of the nearest bfloat16, of two the even one."""
    if isinstance(number, float) and math.isnan(number):
        return np.uint16(0x7FFF)
    single = _rounded(what, ctype, np.dtype(np.float64), number)
    # 2^(e-7) apart lie bfloat16 of 2^e; below 2^-126 they are 2^-133 apart.
    _, exponent = math.frexp(float(single))
    step = max(exponent - 8, -133)
    if not _is_infinite(number):
        single = np.float64(math.ldexp(round(math.ldexp(float(single), -step)), step))
        if abs(single) > _LARGEST_BFLOAT16:
            raise _misfit(what, ctype, number)
    signed = np.copysign(np.float32(single), np.float32(math.copysign(1, number)))
    return np.uint16(signed.view(np.uint32) >> 16)


def _limits(bits: int, is_signed: bool) -> tuple[int, int]:
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)


def _is_infinite(number: Number) -> bool:
    return isinstance(number, float) and math.isinf(number)


def _misfit(what: str, ctype: str, number: Number) -> LaunchError:
    bits = 0 if isinstance(number, float) else number.bit_length()
    shown = f"a whole number of {bits} bits" if bits > 4 * _MOST_SHOWN else repr(number)
    return LaunchError(f"{what} is a {ctype}, which {shown} is not")
