"""Dead code elimination (DCE): removes operations without effect and without uses.

Roots are effects visible to other threads or to the source. A load that is not volatile goes if
its value is unused. Constants are removed from blocks: they need no place.
"""

from __future__ import annotations

from gpusim.compiler.ir import Function, Value
from gpusim.lowering.analysis.alias import array_of
from gpusim.lowering.analysis.live_values import depended_on, live_values
from gpusim.lowering.graph import remove_values


def _has_effect(value: Value) -> bool:
    """Whether `value` must stay even if nothing uses it."""
    if value.operation.access == "load":
        return array_of(value).volatile
    return not value.operation.pure


def dce(function: Function) -> bool:
    """Remove operations and phis that no effect and no branch depends on."""
    roots = [v for v in function.values() if _has_effect(v)]
    roots += [b.condition for b in function.blocks if b.condition is not None]
    live = depended_on(roots)
    gone = {v for v in function.values() if v not in live or v.op == "const"}
    remove_values(function, gone)
    return any(v.op != "const" for v in gone)


def remove_dead_values(function: Function) -> None:
    """Drop values needed by neither the machine nor the source's conditionals."""
    live = live_values(function, with_source=True)
    remove_values(function, {v for v in function.values() if v not in live})
