"""Known bits: the number of an integer's low bits that are zero in any launch."""

from __future__ import annotations

from gpusim.compiler.ir import Value
from gpusim.compiler.operations import SPECIAL_REGISTERS
from gpusim.lowering.analysis.algebra import number

# Operands further back are not followed: shared ones would be visited again and again.
DEPTH = 8


def zero_bits(value: Value, seen: frozenset[Value] = frozenset(), depth: int = DEPTH) -> int:
    """Return how many of an integer's last bits are known to be zero."""
    if value.op == "const":
        held = number(value)
        if held is None:
            return 0
        return 64 if held == 0 else (held & -held).bit_length() - 1
    if value in seen:
        return 64
    if depth == 0:
        return 0
    depth -= 1
    if value.op in ("held", "neg"):
        return zero_bits(value.args[0], seen, depth)
    if value.op == "phi":
        return min(zero_bits(a, seen | {value}, depth) for a in value.args)
    if value.op in ("add", "sub", "or", "xor"):
        return min(zero_bits(a, seen, depth) for a in value.args)
    if value.op == "and":
        return max(zero_bits(a, seen, depth) for a in value.args)
    if value.op == "shl":
        return zero_bits(value.args[0], seen, depth) + (number(value.args[1]) or 0)
    if value.op == "mul":
        return min(64, sum(zero_bits(a, seen, depth) for a in value.args))
    return 0


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
