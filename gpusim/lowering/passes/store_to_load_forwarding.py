"""Store-to-load forwarding: a value last stored or loaded is not loaded again.

A load gives way where on every path to it the same elements were stored or loaded and
nothing since can have changed them. Several such paths join in a phi.
"""

from __future__ import annotations

from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.analysis.alias import array_of, clobbers, is_plain_load, location_of
from gpusim.lowering.passes.ssa_repair import Variable, insert_phis

Key = tuple[object, ...]


class _Memory:
    """The operations that concern memory, block by block, with their locations."""

    def __init__(self, function: Function) -> None:
        self.operations: dict[Block, list[Value]] = {}
        self.keys: dict[Value, Key] = {}
        for block in function.blocks:
            found = [v for v in block.body if v.operation.concerns_memory]
            self.operations[block] = found
            for value in found:
                if value.operation.access and value.operation.access != "atomic":
                    self.keys[value] = location_of(value).key

    def last(self, load: Value, operations: list[Value]) -> Value | bool:
        """Return the value of the elements of `load` after `operations`.

        False where they may have changed, True where nothing touches them.
        """
        key = self.keys[load]
        for value in reversed(operations):
            if self.keys.get(value) == key and not array_of(value).volatile:
                if value.op == "load":
                    return value
                if value.op == "store" and value.args[1].dtype == load.dtype:
                    return value.args[1] if array_of(value).dtype == load.dtype else False
            if clobbers(value, load):
                return False
        return True


def store_to_load_forwarding(function: Function) -> bool:
    """Replace loads with a known value; return whether there were any."""
    memory = _Memory(function)
    variables: list[Variable] = []
    replacements: dict[Value, Value] = {}
    for block in function.blocks:
        operations = memory.operations[block]
        for i, load in enumerate(operations):
            if load.op != "load" or not is_plain_load(load):
                continue
            found = memory.last(load, operations[:i])
            if found is True:
                ends = _reaching(memory, load, block)
                if ends is not None:
                    variable = Variable(function, load.dtype, ends, load.line)
                    found = variable.at_start(block)
                    variables.append(variable)
            if isinstance(found, Value):
                replacements[load] = found
    insert_phis(function, variables, replacements)
    return bool(replacements)


def _reaching(memory: _Memory, load: Value, block: Block) -> dict[Block, Value] | None:
    """Return the definitions of a load's elements that reach the start of `block`.

    None where on some path there is none.
    """
    ends: dict[Block, Value] = {}
    seen: set[Block] = set()
    work = [block]
    while work:
        here = work.pop()
        if not here.preds:
            return None
        for pred in here.preds:
            if pred in seen:
                continue
            seen.add(pred)
            found = memory.last(load, memory.operations[pred])
            if found is False:
                return None
            if isinstance(found, Value):
                ends[pred] = found
            else:
                work.append(pred)
    return ends
