"""Disjoint or: within an unrolled body of four iterations, set bits instead of adding.

An unsigned induction variable with its last two bits zero cannot wrap on its way to the next
multiple of four: `i | 3` is `i + 3`, and one address with a constant offset will do for both.
"""

from __future__ import annotations

from gpusim.compiler.ir import Function, Value, constant
from gpusim.lowering.analysis.algebra import number
from gpusim.lowering.analysis.known_bits import zero_bits

# NVVM unrolls by four and knows two bits; ptxas unrolls later, invisibly to it.
FACTOR = 4


def disjoint_or(function: Function) -> bool:
    """Rewrite unsigned sums with disjoint bits; return whether there were any."""
    changed = False
    for block in function.blocks:
        body: list[Value] = []
        for value in block.body:
            rest = _within_body(value)
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


def _within_body(value: Value) -> int:
    """Return the part of a sum's constant that cannot carry, 0 where there is none."""
    if value.op != "add" or value.dtype is None or value.dtype.kind != "u":
        return 0
    rest = (number(value.args[1]) or 0) % FACTOR
    counts = value.args[0].op == "phi" and zero_bits(value.args[0]) >= FACTOR.bit_length() - 1
    return rest if rest and counts else 0
