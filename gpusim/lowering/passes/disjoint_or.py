"""Count within a row of four by setting bits instead of adding.

An unsigned counter whose last two bits are zero cannot wrap on its way to the next multiple
of four: `i | 3` is `i + 3`, and one address with a constant offset will do for both.
"""

from __future__ import annotations

from gpusim.compiler.ir import Function, Value, constant
from gpusim.lowering.analysis.algebra import number

# NVVM unrolls by four and knows of two bits; what ptxas unrolls again it does not see.
ROW = 4


# Operands further back than this are not asked: shared ones would be asked again and again.
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


def disjoint(function: Function) -> bool:
    """Rewrite unsigned sums whose bits do not meet; return whether there were any."""
    changed = False
    for block in function.blocks:
        body: list[Value] = []
        for value in block.body:
            rest = _within_row(value)
            if rest:
                whole, dtype = value.args[0], value.dtype
                assert dtype is not None
                more = (number(value.args[1]) or 0) - rest
                if more:
                    args = [whole, constant(more, dtype)]
                    whole = Value("add", dtype, args, line=value.line)
                    body.append(whole)
                value.op, value.args = "or", [whole, constant(rest, dtype)]
                changed = True
            body.append(value)
        block.body = body
    return changed


def _within_row(value: Value) -> int:
    """Return the part of a sum's constant that cannot carry, 0 where there is none."""
    if value.op != "add" or value.dtype is None or value.dtype.kind != "u":
        return 0
    rest = (number(value.args[1]) or 0) % ROW
    counts = value.args[0].op == "phi" and zero_bits(value.args[0]) >= ROW.bit_length() - 1
    return rest if rest and counts else 0
