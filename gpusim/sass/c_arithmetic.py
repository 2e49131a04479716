"""Arithmetic of the dialect as expressions of CUDA C++, with a meaning for every operand.

C++ compilers assume that undefined behaviour never happens: signed sums are therefore computed
unsigned, floats become integers by intrinsics, and divisors may be zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gpusim.compiler.ir import Value
from gpusim.sass.c_functions import NAMESPACE
from gpusim.sass.c_types import of_dtype, unsigned
from gpusim.sass.intervals import Intervals
from gpusim.typing import DType

# A value, the text of each of its operands, and the launch's intervals of its numbers.
Writer = Callable[[Value, Sequence[str], Intervals], str]

PLAIN: Mapping[str, str] = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "idiv": "/", "rem": "%", "and": "&", "or": "|",
    "xor": "^", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip
BIT_FUNCTIONS: Mapping[str, tuple[str, str]] = {  # for 32 and for 64 bits
    "popc": ("__popc", "__popcll"), "ffs": ("__ffs", "__ffsll"), "clz": ("__clz", "__clzll"),
    "brev": ("__brev", "__brevll"),
}  # fmt: skip
# Conversions toward zero that saturate; with 64 bits on either side a NaN does not become 0.
TO_INTEGER: Mapping[tuple[str, str], str] = {
    ("float32", "int32"): "__float2int_rz", ("float32", "uint32"): "__float2uint_rz",
    ("float32", "int64"): "__float2ll_rz", ("float32", "uint64"): "__float2ull_rz",
    ("float64", "int32"): "__double2int_rz", ("float64", "uint32"): "__double2uint_rz",
    ("float64", "int64"): "__double2ll_rz", ("float64", "uint64"): "__double2ull_rz",
}  # fmt: skip
OF_NO_TYPE = ("isnan", "isinf", "isfinite")
OF_DIALECT = ("floordiv", "floormod")


def dtype_of(value: Value) -> DType:
    """Return the type of a value that has one."""
    assert value.dtype is not None
    return value.dtype


def is_signed(value: Value) -> bool:
    """Return whether a value is an integer with a sign."""
    return value.dtype is not None and value.dtype.kind == "i"


def _plain(value: Value, operands: Sequence[str], known: Intervals) -> str:
    left, right = operands
    return f"{left} {PLAIN[value.op]} {right}"


def _wrapped(value: Value, operands: Sequence[str], known: Intervals) -> str:
    """Write a sum, difference or product with wrap-around."""
    if not is_signed(value):
        return _plain(value, operands, known)
    if known.keeps_to_its_type(value) and not _is_unsigned_in_c(value):
        return _plain(value, operands, known)
    kind = unsigned(dtype_of(value))
    left, right = operands
    return f"({of_dtype(dtype_of(value))})(({kind}){left} {PLAIN[value.op]} ({kind}){right})"


def _is_unsigned_in_c(value: Value) -> bool:
    """Return whether CUDA C++ would work without a sign, as threadIdx and the like have none.

    That is so for `blockIdx.x * blockDim.x` and for sums with such a product, before it
    is kept in an int: compilers unroll loops with a signed step differently.
    """
    if value.dtype != np.int32 or value.op not in ("add", "sub", "mul"):
        return False
    if value.op == "mul":
        return any(operand.op == "sreg" for operand in value.args)
    return any(one.op == "mul" and _is_unsigned_in_c(one) for one in value.args)


def _negated(value: Value, operands: Sequence[str], known: Intervals) -> str:
    if not is_signed(value) or known.keeps_to_its_type(value):
        return f"-{operands[0]}"
    return f"({of_dtype(dtype_of(value))})(0u - ({unsigned(dtype_of(value))}){operands[0]})"


def _absolute(value: Value, operands: Sequence[str], known: Intervals) -> str:
    if dtype_of(value).kind == "f":
        return f"fabs({operands[0]})"
    if not is_signed(value):
        return operands[0]
    return f"{operands[0]} < 0 ? {_negated(value, operands, known)} : {operands[0]}"


def _divided(value: Value, operands: Sequence[str], known: Intervals) -> str:
    """Write a division or remainder of integers, in C's own way where nothing is undefined."""
    if not known.keeps_to_its_type(value):
        name = "quotient" if value.op == "idiv" else "remainder"
        return f"{NAMESPACE}::{name}({', '.join(operands)})"
    return _plain(value, operands, known)


def _shifted(value: Value, operands: Sequence[str], known: Intervals) -> str:
    """Write a shift; a count beyond the type's bits, or below zero, shifts all out."""
    dtype, count = dtype_of(value), value.args[1]
    kind, bits = of_dtype(dtype), 8 * dtype.itemsize
    if known.keeps_to_its_type(value):
        return f"{operands[0]} {'<<' if value.op == 'shl' else '>>'} {operands[1]}"
    moved = f"({unsigned(dtype)}){operands[0]}" if value.op == "shl" else operands[0]
    if count.constant is not None and not 0 <= int(count.constant) < bits:
        return f"{operands[0]} >> {bits - 1}" if value.op == "shr" and is_signed(value) else "0"
    if known.counts_within(value):
        return f"({kind})({moved} {'<<' if value.op == 'shl' else '>>'} {operands[1]})"
    name = "left" if value.op == "shl" else "right"
    by = operands[1] if bits == 32 else f"(unsigned)min((unsigned long long){operands[1]}, 64ull)"
    return f"({kind}){NAMESPACE}::{name}({moved}, {by})"


def _converted(value: Value, operands: Sequence[str], known: Intervals) -> str:
    """Write a conversion: of floats to integers it saturates, and NaN becomes 0."""
    source, target = dtype_of(value.args[0]), dtype_of(value)
    if source.kind != "f" or target.kind not in "iu":
        return f"({of_dtype(target)}){operands[0]}"
    wide = target if target.itemsize >= 4 else np.dtype(np.int32)
    made = f"{TO_INTEGER[source.name, wide.name]}({operands[0]})"
    if source.itemsize == 8 or wide.itemsize == 8:
        made = f"({operands[0]} == {operands[0]} ? {made} : 0)"
    if wide is target:
        return made
    limits = np.iinfo(target)
    return f"({of_dtype(target)})min(max({made}, {limits.min}), {limits.max})"


def _function(value: Value, operands: Sequence[str], known: Intervals) -> str:
    of, inside = value.args[0], ", ".join(operands)
    if value.detail == "ipow":
        kinds = f"{of_dtype(dtype_of(of))}, {unsigned(dtype_of(of))}"
        return f"{NAMESPACE}::power<{kinds}>({inside})"
    if value.detail in OF_DIALECT:
        return f"{NAMESPACE}::{value.detail}({inside})"
    single = of.dtype == np.float32 and value.detail not in OF_NO_TYPE
    return f"{value.detail}{'f' if single else ''}({inside})"


def _bits(value: Value, operands: Sequence[str], known: Intervals) -> str:
    return f"{BIT_FUNCTIONS[value.op][dtype_of(value.args[0]).itemsize == 8]}({operands[0]})"


def _called(value: Value, operands: Sequence[str], known: Intervals) -> str:
    return f"{value.op}({', '.join(operands)})"


ARITHMETIC: Mapping[str, Writer] = {
    **dict.fromkeys(PLAIN, _plain),
    **dict.fromkeys(("add", "sub", "mul"), _wrapped),
    **dict.fromkeys(("idiv", "rem"), _divided),
    **dict.fromkeys(("shl", "shr"), _shifted),
    **dict.fromkeys(("min", "max"), _called),
    **dict.fromkeys(BIT_FUNCTIONS, _bits),
    "neg": _negated,
    "abs": _absolute,
    "not": lambda value, operands, known: f"{'!' if value.dtype == np.bool_ else '~'}{operands[0]}",
    "select": lambda value, operands, known: "{} ? {} : {}".format(*operands),
    "cast": _converted,
    "held": lambda value, operands, known: operands[0],
    "math": _function,
}
