"""Code hoisting and sinking: common code of both sides of a branch moves before or after it.

Computations, and loads that nothing before them can change, move up to the branch. A store
that ends both sides moves down to where they reconverge, if at most one of its operands differs.
"""

from __future__ import annotations

from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.analysis.alias import clobbers, is_plain_load
from gpusim.lowering.graph import remove_values, replace_uses
from gpusim.lowering.passes.gvn import operation_key, value_key


def common_code_motion(function: Function) -> bool:
    """Move common code out of the sides of every branch; return whether there was any."""
    changed = False
    for block in reversed(function.blocks):
        if len(block.targets) == 2:
            one, other = block.targets
            if one.preds == other.preds == [block]:
                changed |= _raise(function, block, one, other)
                changed |= _lower(one, other)
    return changed


def _raise(function: Function, block: Block, one: Block, other: Block) -> bool:
    """Hoist operations at the start of both sides before the branch."""
    replacements: dict[Value, Value] = {}
    moved: list[Value] = []
    available = _movable(other)
    below = {*one.phis, *one.body}
    for value in _movable(one).values():
        value.args = [replacements.get(a, a) for a in value.args]
        if any(a in below for a in value.args):
            continue
        twin = next((v for v in available.values() if _alike(v, value, replacements)), None)
        if twin is not None:
            below.discard(value)
            moved.append(value)
            replacements[twin] = value
    if not moved:
        return False
    gone = set(moved)
    one.body = [v for v in one.body if v not in gone]
    block.body = [*block.body, *moved]
    replace_uses(function, replacements)
    remove_values(function, set(replacements))
    return True


def _movable(block: Block) -> dict[int, Value]:
    """Return the operations that may run before the block's others, by position."""
    found: dict[int, Value] = {}
    before: list[Value] = []
    for i, value in enumerate(block.body):
        if value.operation.pure:
            if not value.operation.immediate:
                found[i] = value
        elif value.operation.describes:
            continue
        elif is_plain_load(value) and not any(clobbers(v, value) for v in before):
            found[i] = value
        else:
            before.append(value)
    return found


def _alike(value: Value, model: Value, replacements: dict[Value, Value]) -> bool:
    if value in replacements or (value.op, value.dtype) != (model.op, model.dtype):
        return False
    twin = Value(value.op, value.dtype, [replacements.get(a, a) for a in value.args], value.detail)
    return bool(operation_key(twin) == operation_key(model))


def _lower(one: Block, other: Block) -> bool:
    """Sink a store at the end of both sides to where they reconverge."""
    if len(one.targets) != 1 or one.targets != other.targets:
        return False
    (join,) = one.targets
    if len(join.preds) != 2 or not one.body or not other.body:
        return False
    first, second = one.body[-1], other.body[-1]
    if first.operation.access != "store" or first.op != second.op or first.detail != second.detail:
        return False
    if len(first.args) != len(second.args):
        return False
    pairs = list(zip(first.args, second.args, strict=True))
    differing = [(a, b) for a, b in pairs if value_key(a) != value_key(b)]
    if len(differing) > 1:
        return False
    args = []
    for a, b in pairs:
        if value_key(a) == value_key(b):
            args.append(a)
            continue
        incoming = [a if pred is one else b for pred in join.preds]
        phi = Value("phi", a.dtype, incoming, line=first.line)
        join.phis.append(phi)
        args.append(phi)
    one.body, other.body = one.body[:-1], other.body[:-1]
    store = Value(first.op, None, args, first.detail, first.line)
    join.body = [store, *join.body]
    return True
