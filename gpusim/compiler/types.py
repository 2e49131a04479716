"""Types of the dialect: promotion, the common type of two operands, types of constants.

The rules are CUDA C's. A Python number that stands in the source is weak: it takes the
type of the other operand.
"""

from __future__ import annotations

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
)
from gpusim.compiler.signatures import ScalarType, foreign_type
from gpusim.isa.conversions import convert
from gpusim.typing import DType

DTYPES: tuple[DType, ...] = (
    BOOL, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64,
)  # fmt: skip
Number = bool | int | float
WHOLE_NUMBERS = (INT32, INT64, UINT64)  # types of a bare integer, in order of preference


def promoted(dtype: DType) -> DType:
    """Return the type after integer promotion: int32 for bool and narrower integers."""
    return INT32 if dtype.kind in "biu" and dtype.itemsize < 4 else dtype


def common(a: DType, b: DType) -> DType:
    """Return the common type of two operands by C's usual arithmetic conversions."""
    a, b = promoted(a), promoted(b)
    if a == b:
        return a
    if "f" in (a.kind, b.kind):
        floats = [t for t in (a, b) if t.kind == "f"]
        return max(floats, key=lambda t: t.itemsize)
    if a.itemsize != b.itemsize:
        return a if a.itemsize > b.itemsize else b
    return a if a.kind == "u" else b


def default_type(number: Number) -> DType:
    """Return the default type of a number: bool, an integer that holds it, float64."""
    if isinstance(number, bool | np.bool_):
        return BOOL
    if isinstance(number, int):
        return next((t for t in WHOLE_NUMBERS if holds(t, number)), INT64)
    return FLOAT64


def holds(dtype: DType, number: int) -> bool:
    """Return whether an integer type has a number."""
    info = np.iinfo(dtype)
    return int(info.min) <= number <= int(info.max)


def weak_common(number: Number, dtype: DType) -> DType:
    """Return the common type of a weak number and a value of `dtype`.

    It is `dtype` where that holds the number (a negative one wraps in an unsigned type, as in C).
    """
    dtype = promoted(dtype)
    if isinstance(number, float):
        return dtype if dtype.kind == "f" else FLOAT64
    if isinstance(number, bool) or dtype.kind == "f":
        return dtype
    signed: DType = np.dtype(f"i{dtype.itemsize}")
    if holds(dtype, number) or (dtype.kind == "u" and number < 0 and holds(signed, number)):
        return dtype
    return common(dtype, default_type(number))


def converted(number: Number, dtype: DType) -> np.generic:
    """Return a Python number as CUDA converts it: integers wrap, floats truncate and saturate.

    Raises OverflowError for an integer that no type of the dialect holds.
    """
    with np.errstate(all="ignore"):
        result: np.generic = dtype.type(convert(_exact(number, dtype), dtype))
    return result


def _exact(number: Number, dtype: DType) -> np.ndarray[Any, Any]:
    """Return a number without rounding, as an array of float64, int64 or uint64."""
    if isinstance(number, float) or (dtype.kind == "f" and not _has_64_bits(number)):
        return np.asarray(float(number))
    if not _has_64_bits(number):
        raise OverflowError("this integer needs more than 64 bits")
    return np.asarray(number, dtype=INT64 if number < 2**63 else UINT64)


def _has_64_bits(number: int) -> bool:
    return -(2**63) <= number < 2**64


def fits_kind(given: DType, wanted: DType) -> bool:
    """Return whether a signature's type takes a number: a truth value, an integer, a float."""
    kinds = {"b": 0, "i": 1, "u": 1, "f": 2}
    return kinds[given.kind] <= kinds[wanted.kind]


def unify(a: DType, b: DType) -> DType:
    """Return the one type of a variable that is assigned both."""
    return a if a == b else common(a, b)


def dtype_of(value: Any) -> DType | None:
    """Return the dtype that an object of the source names, None where it names none."""
    if isinstance(value, ScalarType):
        return value.dtype
    foreign = foreign_type(value)
    if foreign is not None:
        return foreign.dtype if isinstance(foreign, ScalarType) else None
    if value is bool:
        return BOOL
    if value is int:
        return INT32
    if value is float:
        return FLOAT64
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        dtype: DType = np.dtype(value)
        return dtype if dtype in DTYPES else None
    if isinstance(value, str):
        try:
            named: DType = np.dtype(value)
        except TypeError:
            return None
        return named if named in DTYPES else None
    return None


def argument_type(value: Any) -> DType | None:
    """Return the dtype of a scalar argument, None where it is no number.

    A NumPy scalar keeps its own; a Python int is int32 if it fits, else int64; a Python
    float is float64.
    """
    if isinstance(value, np.generic):
        return value.dtype if value.dtype in DTYPES else None
    if isinstance(value, bool | int | float):
        return default_type(value)
    return None
