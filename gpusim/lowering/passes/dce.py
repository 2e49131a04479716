"""Dead code elimination (DCE): operations without effect whose result is not used go.

Roots are what other threads or the source can see. A load that is not volatile goes when
its value is unused. Constants leave the blocks they stand in: they need no place.
"""

from __future__ import annotations

from gpusim.compiler.ir import Function, Value
from gpusim.lowering.analysis.alias import array_of
from gpusim.lowering.analysis.live_values import live_values
from gpusim.lowering.graph import remove_values


def has_effect(value: Value) -> bool:
    """Whether `value` must stay even if nothing uses it."""
    if value.operation.access == "load":
        return array_of(value).volatile
    return not value.operation.pure


def dce(function: Function) -> bool:
    """Remove operations and phis that no effect and no branch depends on."""
    work = [v for v in function.values() if has_effect(v)]
    work += [b.condition for b in function.blocks if b.condition is not None]
    needed: set[Value] = set()
    while work:
        value = work.pop()
        if value not in needed:
            needed.add(value)
            work += value.args
    gone = {v for v in function.values() if v not in needed or v.op == "const"}
    remove_values(function, gone)
    return any(v.op != "const" for v in gone)


def remove_dead_values(function: Function) -> None:
    """Drop what neither the machine nor the source's conditionals need."""
    needed = live_values(function, with_source=True)
    for block in function.blocks:
        block.phis = [v for v in block.phis if v in needed]
        block.body = [v for v in block.body if v in needed]
