"""Atomic operations of the dialect in CUDA C++, also operations without a function there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpusim.compiler.ir import DType
from gpusim.sass.c_functions import NAMESPACE
from gpusim.sass.c_types import of_dtype, unsigned

FUNCTIONS: Mapping[str, str] = {
    "add": "atomicAdd", "sub": "atomicSub", "min": "atomicMin", "max": "atomicMax",
    "exch": "atomicExch", "cas": "atomicCAS", "and": "atomicAnd", "or": "atomicOr",
    "xor": "atomicXor",
}  # fmt: skip
AS_UNSIGNED = ("add", "exch", "cas")  # 64-bit integers have these unsigned only
# The new value for atomics of floats, done by compare-and-swap of bits.
NEXT: Mapping[str, str] = {
    "min": "fmin(now, {0})", "max": "fmax(now, {0})", "exch": "{0}", "cas": "now == {0} ? {1} : now"
}  # fmt: skip


def written(operation: str, dtype: DType, place: str, operands: Sequence[str]) -> str:
    """Return the call that changes the element at an address and returns its old value."""
    given = list(operands)
    if operation == "sub" and (dtype.kind == "f" or dtype.itemsize == 8):
        zero = f"({unsigned(dtype)})0 - " if dtype.kind != "f" else "-"
        operation, given = "add", [f"({zero}{given[0]})"]
    if dtype.kind == "f" and operation in NEXT:
        then = NEXT[operation].format(*given)
        kind = of_dtype(dtype)
        return f"{NAMESPACE}::swapped({place}, [=]({kind} now) {{ return ({kind})({then}); }})"
    if dtype.name == "int64" and operation in AS_UNSIGNED:
        kind = unsigned(dtype)
        place, given = f"({kind} *){place}", [f"({kind}){one}" for one in given]
    return f"{FUNCTIONS[operation]}({', '.join([place, *given])})"
