"""If-conversion (predication): short bodies of conditionals become guarded instructions.

The limits come from experiments with nvcc 13.0 (sm_90). A body of up to 8
instructions is guarded; with a load from global memory up to 20, as waiting for it costs more
than the skipped rows, but none inside a loop. A body with a conditional of its own is not
guarded, nor one with synchronisation of lanes. A branch that only leads to the end becomes a
guarded EXIT.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.compiler.dominators import reverse_postorder
from gpusim.compiler.ir import Block, Function
from gpusim.isa.ops import OPS, VECTOR_TWINS
from gpusim.lowering.analysis.loops import natural_loops
from gpusim.lowering.code import Code, Row
from gpusim.lowering.graph import remove_edge, set_jump

LIMIT = 8
LIMIT_WITH_GLOBAL_LOAD = 20


def if_conversion(code: Code) -> None:
    """Guard short bodies, and leave the thread by a guarded EXIT."""
    loops = natural_loops(code.function)
    looping = {b for loop in loops for b in loop.blocks}
    headers = {loop.header for loop in loops}
    changed = True
    while changed:
        changed = False
        for block in reverse_postorder(code.function):
            if len(block.targets) == 2:
                changed |= _guarded_exit(code, block, headers) or _convert(code, block, looping)
        changed |= _join_blocks(code)


def is_end(code: Code, block: Block) -> bool:
    """Whether a block does nothing but end the thread."""
    return not block.targets and not code.rows[block]


def _guarded_exit(code: Code, block: Block, headers: set[Block]) -> bool:
    """Leave by a guard where a branch leads to the end; a loop's branch back stays one."""
    first, second = block.targets
    if is_end(code, first) == is_end(code, second) or not headers.isdisjoint(block.targets):
        return False
    negated = is_end(code, second)
    guard = code.condition[block]
    code.rows[block].append(Row("EXIT", guard=guard, negated=negated, line=block.line))
    _go_on(code, block, first if negated else second)
    return True


def _go_on(code: Code, block: Block, target: Block) -> None:
    """End a block with a jump, and forget blocks that nothing leads to any more."""
    left = [other for other in block.targets if other is not target]
    set_jump(block, target)
    code.condition.pop(block, None)
    code.divergent.discard(block)
    gone = _unreachable(code.function, target, left)
    for other in gone:
        for after in other.targets:
            if after not in gone:
                remove_edge(other, after)
        code.rows.pop(other)
    if gone:
        code.function.blocks = [b for b in code.function.blocks if b not in gone]


def _unreachable(function: Function, target: Block, left: Sequence[Block]) -> set[Block]:
    """Return the blocks that become unreachable when a branch goes to `target` alone.

    Blocks are looked at from the branch on; the whole function only where a loop may keep itself.
    """
    gone: set[Block] = set()
    waiting = list(left)
    while waiting:
        block = waiting.pop()
        if block in gone or block is target or block is function.entry:
            continue
        if all(before in gone for before in block.preds):
            gone.add(block)
            waiting += block.targets
        elif block.targets and target.targets != (block,):
            reached = set(reverse_postorder(function))
            return {one for one in function.blocks if one not in reached}
    return gone


def _convert(code: Code, block: Block, looping: set[Block]) -> bool:
    """Guard the one or two bodies that a branch chooses between, if they are short."""
    first, second = block.targets
    guard = code.condition[block]
    bodies: list[tuple[Block, bool]]
    if _is_body(first, block, second):
        bodies, after = [(first, False)], second
    elif _is_body(second, block, first):
        bodies, after = [(second, True)], first
    else:
        after = first.targets[0] if len(first.targets) == 1 else first
        if not (_is_body(first, block, after) and _is_body(second, block, after)):
            return False
        bodies = [(first, False), (second, True)]
    if not all(_is_short(code, body, guard, body in looping) for body, _ in bodies):
        return False
    for body, negated in bodies:
        for row in code.rows[body]:
            row.guard, row.negated = guard, negated
            row.op = VECTOR_TWINS.get(row.op, row.op)
            code.rows[block].append(row)
        code.rows[body] = []
    if len(bodies) == 2:
        set_jump(bodies[0][0], after)
    _go_on(code, block, bodies[0][0])
    _go_on_past(code, block, after)
    return True


def _go_on_past(code: Code, block: Block, after: Block) -> None:
    """Lead from `block` straight to `after`, dropping the emptied body between."""
    (body,) = block.targets
    if body is after:
        return
    place = after.preds.index(body)
    after.preds = [*after.preds[:place], block, *after.preds[place + 1 :]]
    block.targets = (after,)
    code.function.blocks.remove(body)
    code.rows.pop(body)


def _is_body(body: Block, before: Block, after: Block) -> bool:
    return body.preds == [before] and body.targets == (after,) and body is not after


def _is_short(code: Code, body: Block, guard: int, loops: bool) -> bool:
    rows = code.rows[body]
    if body.late:
        return False
    if any(row.guard is not None or not OPS[row.op].is_guardable for row in rows):
        return False
    if any(guard in row.dst for row in rows):
        return False
    limit = LIMIT
    if any(row.op == "LDG" for row in rows):
        limit = 0 if loops else LIMIT_WITH_GLOBAL_LOAD
    return sum(row.issued for row in rows) <= limit


def _join_blocks(code: Code) -> bool:
    """Append to each block the only block that it leads to, if nothing else leads there."""
    changed = False
    for block in list(code.function.blocks):
        if block not in code.rows:
            continue
        while len(block.targets) == 1:
            (after,) = block.targets
            if after.preds != [block] or after is block or after is code.function.entry:
                break
            code.rows[block] += code.rows.pop(after)
            block.targets = after.targets
            block.condition = after.condition
            for target in after.targets:
                target.preds = [block if p is after else p for p in target.preds]
            if after in code.condition:
                code.condition[block] = code.condition.pop(after)
            if after in code.divergent:
                code.divergent.discard(after)
                code.divergent.add(block)
            code.function.blocks.remove(after)
            changed = True
    return changed
