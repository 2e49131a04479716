"""Value range analysis: the largest that an unsigned integer can be."""

from __future__ import annotations

from gpusim.compiler.ir import Value
from gpusim.compiler.operations import SPECIAL_REGISTERS

UNBOUNDED = 1 << 64


def largest(value: Value, depth: int = 8) -> int:
    """Return a bound of an unsigned value, UNBOUNDED where none is known.

    Operands are followed `depth` times at most.
    """
    if depth == 0:
        return UNBOUNDED
    if value.constant is not None:
        return int(value.constant) if value.constant >= 0 else UNBOUNDED
    if value.op == "sreg":
        return SPECIAL_REGISTERS[value.detail].largest
    if value.op == "cast" and value.args[0].dtype is not None and value.args[0].dtype.kind in "iu":
        return largest(value.args[0], depth - 1)
    if value.op in ("add", "mul"):
        a, b = (largest(arg, depth - 1) for arg in value.args)
        bound = a + b if value.op == "add" else a * b
        limit = 1 << (8 * value.dtype.itemsize) if value.dtype is not None else 0
        return bound if bound < limit else UNBOUNDED
    if value.op == "and":
        return min(largest(arg, depth - 1) for arg in value.args)
    return UNBOUNDED
