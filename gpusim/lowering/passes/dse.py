"""Dead store elimination (DSE): removes stores that the same block overwrites before any read.

Only within a block: machine code keeps a store that another block overwrites.
"""

from __future__ import annotations

from gpusim.compiler.ir import Function, Value
from gpusim.lowering.analysis.alias import array_of, location_of, reads
from gpusim.lowering.graph import remove_values


def dse(function: Function) -> bool:
    """Remove stores that cannot be seen; return whether there were any."""
    gone: set[Value] = set()
    for block in function.blocks:
        later: dict[tuple[object, ...], Value] = {}
        for value in reversed(block.body):
            if value.operation.access == "store" and not array_of(value).volatile:
                key = location_of(value).key
                if key in later:
                    gone.add(value)
                later[key] = value
            elif later:
                later = {k: store for k, store in later.items() if not reads(value, store)}
    remove_values(function, gone)
    return bool(gone)
