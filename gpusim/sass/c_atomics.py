"""Atomic operations of the dialect in CUDA C++, also operations without a function there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpusim.sass.c_functions import NAMESPACE
from gpusim.sass.c_types import of_dtype, unsigned
from gpusim.typing import DType

FUNCTIONS: Mapping[str, str] = {
    "add": "atomicAdd", "min": "atomicMin", "max": "atomicMax", "exch": "atomicExch",
    "cas": "atomicCAS", "and": "atomicAnd", "or": "atomicOr", "xor": "atomicXor",
}  # fmt: skip
AS_UNSIGNED = ("add", "exch", "cas")  # 64-bit integers have these unsigned only
# The new value for atomics of floats, done by compare-and-swap of bits.
NEXT: Mapping[str, str] = {
    "min": "fmin(now, {0})", "max": "fmax(now, {0})", "exch": "{0}", "cas": "now == {0} ? {1} : now"
}  # fmt: skip


def written(operation: str, dtype: DType, place: str, operands: Sequence[str]) -> str:
    """Return the call that changes the element at an address and returns its old value.

    A difference is a sum: CUDA's own `atomicSub` negates an int, which is undefined for the least
    one, so that nvcc takes its operand for 0 where it can be nothing else.
    """
    given = list(operands)
    if operation == "sub":
        operation, given = "add", [_negated(dtype, given[0])]
    if dtype.kind == "f" and operation in NEXT:
        then = NEXT[operation].format(*given)
        kind = of_dtype(dtype)
        return f"{NAMESPACE}::swapped({place}, [=]({kind} now) {{ return ({kind})({then}); }})"
    if dtype.name == "int64" and operation in AS_UNSIGNED:
        kind = unsigned(dtype)
        place, given = f"({kind} *){place}", [f"({kind}){one}" for one in given]
    return f"{FUNCTIONS[operation]}({', '.join([place, *given])})"


def _negated(dtype: DType, operand: str) -> str:
    if dtype.kind == "f":
        return f"(-{operand})"
    return f"({of_dtype(dtype)})(({unsigned(dtype)})0 - ({unsigned(dtype)}){operand})"
