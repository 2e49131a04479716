"""Edits of the control flow graph and of uses; phis are kept consistent with `preds`.

Constants need no place in a body: they dominate everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.analysis.loops import Loop, reachable


def replace_uses(function: Function, replacements: Mapping[Value, Value]) -> None:
    """Use `replacements[v]` for every v, following chains; the old values stay in place."""
    if not replacements:
        return

    def final(value: Value) -> Value:
        while value in replacements:
            value = replacements[value]
        return value

    replaced = replacements.keys()
    for block in function.blocks:
        for value in (*block.phis, *block.body):
            if not replaced.isdisjoint(value.args):
                value.args = [final(a) for a in value.args]
        if block.condition is not None and block.condition in replacements:
            block.condition = final(block.condition)


def remove_values(function: Function, gone: set[Value]) -> None:
    """Take values that nothing uses out of their blocks."""
    if not gone:
        return
    for block in function.blocks:
        block.phis = [v for v in block.phis if v not in gone]
        block.body = [v for v in block.body if v not in gone]


def remove_edge(source: Block, target: Block) -> None:
    """Forget that `source` leads to `target`: one entry of `preds` and of each phi.

    The caller changes `source.targets`.
    """
    position = target.preds.index(source)
    target.preds = target.preds[:position] + target.preds[position + 1 :]
    for phi in target.phis:
        phi.args = phi.args[:position] + phi.args[position + 1 :]


def add_edge(source: Block, target: Block, values: Iterable[Value] = ()) -> None:
    """Record that `source` leads to `target`, with a value for each of its phis.

    The caller changes `source.targets`.
    """
    target.preds = [*target.preds, source]
    for phi, value in zip(target.phis, values, strict=True):
        phi.args = [*phi.args, value]


def set_jump(block: Block, target: Block) -> None:
    """End `block` with a jump to `target`, one of its present targets."""
    for other in block.targets:
        if other is not target:
            remove_edge(block, other)
    if block.targets.count(target) == 2:
        remove_edge(block, target)
    block.condition = None
    block.targets = (target,)


def remove_unreachable(function: Function) -> bool:
    """Drop blocks that no path leads to; return whether there were any."""
    reached = reachable([function.entry])
    if len(reached) == len(function.blocks):
        return False
    for block in function.blocks:
        if block not in reached:
            for target in block.targets:
                if target in reached:
                    remove_edge(block, target)
    function.blocks = [b for b in function.blocks if b in reached]
    return True


def new_block(function: Function, line: int = 0, before: Block | None = None) -> Block:
    """Return a new empty block, placed before `before` in the layout or at its end."""
    block = Block(1 + max(b.name for b in function.blocks), line=line)
    place = len(function.blocks) if before is None else function.blocks.index(before)
    function.blocks.insert(place, block)
    return block


def split_edge(function: Function, source: Block, target: Block) -> Block:
    """Put an empty block on the edge from `source` to `target` and return it.

    Where both sides of a branch lead to `target`, the first is split.
    """
    middle = new_block(function, line=target.line, before=target)
    middle.targets = (target,)
    middle.preds = [source]
    position = source.targets.index(target)
    source.targets = (*source.targets[:position], middle, *source.targets[position + 1 :])
    place = target.preds.index(source)
    target.preds = [*target.preds[:place], middle, *target.preds[place + 1 :]]
    return middle


def make_preheader(function: Function, loop: Loop) -> Block:
    """Return the block that leads into the loop and nowhere else, made where there is none."""
    found = loop.preheader
    if found is not None:
        return found
    header, entering = loop.header, loop.entering
    if len(entering) == 1:
        return split_edge(function, entering[0], header)
    middle = new_block(function, line=header.line, before=header)
    middle.preds = list(entering)
    for block in entering:
        block.targets = tuple(middle if t is header else t for t in block.targets)
    keep = [i for i, p in enumerate(header.preds) if p in loop.latches]
    move = [i for i, p in enumerate(header.preds) if p not in loop.latches]
    header.preds = [middle] + [header.preds[i] for i in keep]
    middle.targets = (header,)
    for phi in header.phis:
        joined = Value("phi", phi.dtype, [phi.args[i] for i in move], line=phi.line)
        middle.phis.append(joined)
        phi.args = [joined] + [phi.args[i] for i in keep]
    return middle


def copy_value(value: Value, values: Mapping[Value, Value]) -> Value:
    """Return a new value like `value` with its operands looked up in `values`."""
    args = [values.get(a, a) for a in value.args]
    return Value(value.op, value.dtype, args, value.detail, value.line)


def clone_region(
    function: Function, blocks: list[Block], values: dict[Value, Value]
) -> dict[Block, Block]:
    """Copy `blocks`, phis and all, and return each one's copy; `values` gains each value's.

    Edges within the region lead to copies. An edge out of it leads to the same block as
    before; this gains a predecessor with the copied value for each phi. The copies'
    `preds` are within the region: the caller links edges into it with `add_edge`.
    """
    copies = {b: new_block(function, line=b.line) for b in blocks}
    for block in blocks:
        for value in (*block.phis, *block.body):
            values[value] = Value(value.op, value.dtype, [], value.detail, value.line)
    for block, copy in copies.items():
        inner = [i for i, p in enumerate(block.preds) if p in copies]
        copy.preds = [copies[block.preds[i]] for i in inner]
        for phi in block.phis:
            values[phi].args = [values.get(phi.args[i], phi.args[i]) for i in inner]
            copy.phis.append(values[phi])
        for value in block.body:
            values[value].args = [values.get(a, a) for a in value.args]
            copy.body.append(values[value])
        if block.condition is not None:
            copy.condition = values.get(block.condition, block.condition)
        copy.targets = tuple(copies.get(t, t) for t in block.targets)
    for block, copy in copies.items():
        for target in block.targets:
            if target not in copies:
                incoming = [phi.args[target.preds.index(block)] for phi in target.phis]
                add_edge(copy, target, [values.get(v, v) for v in incoming])
    return copies
