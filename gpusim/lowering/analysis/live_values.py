"""Live values: needed by the machine code, or only by descriptions of the source.

Conditionals are counted at every place of the source, also if no code is left to
execute for them, and indices are checked along each axis of an array, also if they share one
address. Computations for that alone are never issued and must not change a decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from gpusim.compiler.ir import Function, Value
from gpusim.program.dataflow import reachable


def live_values(function: Function, *, with_source: bool = False) -> set[Value]:
    """Return the values that effects and branches depend on.

    `with_source` adds operands of descriptions of the source.
    """
    stack = [b.condition for b in function.blocks if b.condition is not None]
    for value in function.values():
        if value.operation.describes and not with_source:
            continue
        if value.dtype is None or not value.operation.pure:
            stack.append(value)
    return depended_on(stack)


def depended_on(roots: Iterable[Value]) -> set[Value]:
    """Return values with all that they are computed from."""
    return reachable(roots, attrgetter("args"))
