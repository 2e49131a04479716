"""Where lanes that part come together again: convergence barriers around divergent branches."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.code import Code, Row
from gpusim.lowering.graph import (
    Dominators,
    Loop,
    dominators,
    natural_loops,
    new_block,
    post_dominators,
    reverse_postorder,
)
from gpusim.lowering.uniform import reachable


def unify_latches(function: Function) -> None:
    """Let each loop have one way back to its start: there its lanes meet after each turn."""
    for loop in natural_loops(function):
        if len(loop.latches) < 2:
            continue
        header = loop.header
        latch = new_block(function, line=header.line)
        back = [i for i, p in enumerate(header.preds) if p in loop.latches]
        others = [i for i, p in enumerate(header.preds) if p not in loop.latches]
        latch.preds = [header.preds[i] for i in back]
        for block in loop.latches:
            block.targets = tuple(latch if t is header else t for t in block.targets)
        header.preds = [*(header.preds[i] for i in others), latch]
        latch.targets = (header,)
        for phi in header.phis:
            joined = Value("phi", phi.dtype, [phi.args[i] for i in back], line=phi.line)
            latch.phis.append(joined)
            phi.args = [*(phi.args[i] for i in others), joined]


def joins(function: Function, is_end: Callable[[Block], bool]) -> dict[Block, Block | None]:
    """Return where the ways out of each block meet again, None where they do not.

    That is the immediate post-dominator within one turn of the innermost loop around, and
    for a branch that leaves loops, where these lead to. Lanes that leave otherwise, by a
    return or out of more loops, do not count: they come to no meeting. `is_end` says which
    blocks only end the thread.
    """
    loops = natural_loops(function)
    result: dict[Block, Block | None] = {}
    after_loop: dict[Loop, Block | None] = {}
    for region in [*reversed(loops), None]:
        _join_region(function, loops, region, is_end, result, after_loop)
    for block in function.blocks:
        left = [
            loop
            for loop in loops
            if block in loop.blocks and any(t not in loop.blocks for t in block.targets)
        ]
        if left:
            result[block] = after_loop[left[-1]]
    return result


def _join_region(
    function: Function,
    loops: list[Loop],
    region: Loop | None,
    is_end: Callable[[Block], bool],
    result: dict[Block, Block | None],
    after_loop: dict[Loop, Block | None],
) -> None:
    """Find the meetings in a loop's body, or outside all loops, inner loops being one block."""
    members = function.blocks if region is None else region.blocks
    inner = [loop for loop in loops if loop.parent is region]
    within = {b: loop for loop in inner for b in loop.blocks}
    whole = {loop: Block(loop.header.name) for loop in inner}
    copies = {b: whole[within[b]] if b in within else Block(b.name) for b in members}
    back: list[Block] = []
    for block, copy in copies.items():
        targets = [t for t in block.targets if len(block.targets) < 2 or not is_end(t)]
        for target in targets or block.targets:
            if region is not None and target is region.header:
                back.append(copy)
            elif target in copies and copies[target] is not copy:
                copy.targets = (*copy.targets, copies[target])
                copies[target].preds.append(copy)
    start = copies[function.entry if region is None else region.header]
    nodes = [start, *(c for c in dict.fromkeys(copies.values()) if c is not start)]
    order = reverse_postorder(Function(function.name, {}, nodes))
    ends = back or [b for b in order if not b.targets][-1:]
    living = set(ends)
    stack = list(ends)
    while stack:
        for block in stack.pop().preds:
            if block not in living:
                living.add(block)
                stack.append(block)
    kept = [b for b in order if b in living]
    for block in kept:
        block.targets = tuple(t for t in block.targets if t in living and t in kept)
        block.preds = [p for p in block.preds if p in living and p in kept]
    found = post_dominators(Function(function.name, {}, kept)) if kept else {}
    originals = {copy: block for block, copy in copies.items() if block not in within}
    originals |= {whole[loop]: loop.header for loop in inner}
    for block, copy in copies.items():
        after = found.get(copy)
        meeting = None if after is None else originals[after]
        if block in within:
            after_loop[within[block]] = meeting
        else:
            result[block] = meeting


def add_convergence_barriers(code: Code) -> int:
    """Put BSSY, BSYNC and BREAK into the rows; return how many barriers there are.

    One barrier serves all branches that meet in one block. It stands before the first of
    them, outside the loops that they are in and the meeting is not.
    """
    function = code.function
    join = joins(function, lambda b: not b.targets and not any(r.issued for r in code.rows[b]))
    tree = dominators(function)
    loops = natural_loops(function, tree)
    meetings: dict[Block, list[Block]] = {}
    for block in tree.order:
        after = join.get(block)
        if block not in code.divergent or len(block.targets) < 2 or after is None:
            continue
        if any(t is not after and after in reachable([t], None) for t in block.targets):
            meetings.setdefault(after, []).append(block)
    number = 0
    starts: list[tuple[Block, Block, int]] = []
    for after, blocks in meetings.items():
        start = _start(tree, loops, after, blocks)
        if start is not None:
            starts.append((start, after, number))
            number += 1
    # Outermost regions first, so that inner barriers are set last and met first.
    starts.sort(key=lambda s: len(reachable(list(s[0].targets), s[1])), reverse=True)
    for start, after, barrier in starts:
        code.rows[start].append(Row("BSSY", detail=(barrier, after), line=start.line))
        code.rows[after].insert(0, Row("BSYNC", detail=barrier, line=after.line))
        _break_out(code, start, after, barrier)
    return number


def _start(tree: Dominators, loops: list[Loop], after: Block, blocks: list[Block]) -> Block | None:
    """Return the block at whose end the barrier for meeting in `after` is set."""
    start: Block | None = blocks[0]
    while start is not None and not all(tree.dominates(start, b) for b in (*blocks, after)):
        start = tree.parent[start]
    while start is not None:
        around = [p for p in loops if start in p.blocks and after not in p.blocks]
        if not around:
            return start
        start = tree.parent[around[-1].header]
    return start


def _break_out(code: Code, start: Block, after: Block, barrier: int) -> None:
    """Take lanes out of the barrier where they leave its region for good."""
    region = reachable(list(start.targets), after)
    if start in region:
        inside = {b for b in region if after in reachable([b], start)}
    else:
        inside = {b for b in region if after in reachable([b], None)}
    for block in [start, *(b for b in code.function.blocks if b in inside)]:
        for target in block.targets:
            if target is after or target in inside or target is start:
                continue
            if not target.targets and not any(r.issued for r in code.rows[target]):
                continue
            if len(block.targets) == 2:
                condition = code.condition[block]
                negated = target is block.targets[1]
                row = Row("BREAK", detail=barrier, guard=condition, negated=negated)
            else:
                row = Row("BREAK", detail=barrier)
            row.line = block.line
            code.rows[block].append(row)
