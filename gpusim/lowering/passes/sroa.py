"""Scalar replacement of aggregates (SROA): elements of local arrays get registers of their own.

Every index has to be constant; arrays with an index unknown at compile time
remain in local memory.
"""

from __future__ import annotations

from gpusim.compiler.ir import Array, Block, Function, Value
from gpusim.lowering.graph import remove_values
from gpusim.lowering.passes.ssa_repair import Variable, insert_phis


def sroa(function: Function) -> bool:
    """Replace local arrays by values; return whether there were any."""
    changed = False
    for array in list(function.local):
        accesses = [v for v in function.values() if _touches(v, array)]
        if array.dtype.itemsize >= 4 and all(_constant_access(v) for v in accesses):
            _scatter(function, set(accesses))
            function.local.remove(array)
            changed = True
    return changed


def _touches(value: Value, array: Array) -> bool:
    detail = value.detail[0] if isinstance(value.detail, tuple) else value.detail
    return isinstance(detail, Array) and _place(detail) == _place(array)


def _place(array: Array) -> tuple[str, str, int]:
    """Return a key that identifies an array: one name may be declared at several calls."""
    return array.space, array.name, array.offset


def _constant_access(value: Value) -> bool:
    return (
        value.operation.is_of_one_element
        and value.args[0].op == "const"
        and not value.detail.volatile
        and (value.op == "load" or value.args[1].dtype == value.detail.dtype)
    )


def _scatter(function: Function, accesses: set[Value]) -> None:
    """Replace loads among `accesses` by the value last stored at their index."""
    ends: dict[int, dict[Block, Value]] = {}
    model: dict[int, Value] = {}
    for block in function.blocks:
        for value in block.body:
            if value in accesses:
                index = int(value.args[0].detail)
                model.setdefault(index, value)
                if value.op == "store":
                    ends.setdefault(index, {})[block] = value.args[1]
    variables = {
        index: Variable(function, value.detail.dtype, ends.get(index, {}), value.line)
        for index, value in model.items()
    }
    replacements: dict[Value, Value] = {}
    for block in function.blocks:
        now: dict[int, Value] = {}
        for value in list(block.body):
            if value in accesses:
                index = int(value.args[0].detail)
                if value.op == "store":
                    now[index] = value.args[1]
                else:
                    if index not in now:
                        now[index] = variables[index].at_start(block)
                    replacements[value] = now[index]
    insert_phis(function, variables.values(), replacements)
    remove_values(function, accesses)
