"""Where lanes that part come together again: convergence barriers around divergent branches.

As ptxas has it, lanes wait for each other where all ways meet, and also where the first two ways
meet, if that is earlier. Who does not come by there breaks the inner barrier; then the whole
warp is gathered once more behind the outermost one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.analysis.divergence import reachable
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


@dataclass
class Meetings:
    """Where the ways out of each block meet: all that come to a meeting, and the first two.

    `whole` is the immediate post-dominator within one turn of the innermost loop around, and
    for a branch that leaves loops, where these lead to; None where there is none. Lanes that
    leave otherwise, by a return or out of more loops, do not count: they come to no meeting.
    `first` has the blocks whose ways begin to meet before.
    """

    whole: dict[Block, Block | None] = field(default_factory=dict)
    first: dict[Block, Block] = field(default_factory=dict)


def meetings(function: Function, is_end: Callable[[Block], bool]) -> Meetings:
    """Return where the ways out of each block meet; `is_end` says which only end the thread."""
    loops = natural_loops(function)
    found = Meetings()
    after_loop: dict[Loop, Block | None] = {}
    for region in [*reversed(loops), None]:
        _meet_in_region(function, loops, region, is_end, found, after_loop)
    for block in function.blocks:
        left = [
            loop
            for loop in loops
            if block in loop.blocks and any(t not in loop.blocks for t in block.targets)
        ]
        if left:
            found.whole[block] = after_loop[left[-1]]
            found.first.pop(block, None)
    return found


def _meet_in_region(
    function: Function,
    loops: list[Loop],
    region: Loop | None,
    is_end: Callable[[Block], bool],
    result: Meetings,
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
    kept = _leading_to(order, back or [b for b in order if not b.targets][-1:])
    found = post_dominators(Function(function.name, {}, kept)) if kept else {}
    originals = {copy: block for block, copy in copies.items() if block not in within}
    originals |= {whole[loop]: loop.header for loop in inner}
    for block, copy in copies.items():
        after = found.get(copy)
        meeting = None if after is None else originals[after]
        if block in within:
            after_loop[within[block]] = meeting
            continue
        result.whole[block] = meeting
        first = _first_meeting(copy, kept)
        if after is not None and first in originals and first not in (None, after):
            result.first[block] = originals[first]


def _leading_to(order: list[Block], ends: list[Block]) -> list[Block]:
    """Return those of the blocks that lead to `ends`, cut off from the others."""
    living = set(ends)
    stack = list(ends)
    while stack:
        for block in stack.pop().preds:
            if block not in living:
                living.add(block)
                stack.append(block)
    kept = [b for b in order if b in living]
    present = set(kept)
    for block in kept:
        block.targets = tuple(t for t in block.targets if t in present)
        block.preds = [p for p in block.preds if p in present]
    return kept


def _first_meeting(block: Block, order: list[Block]) -> Block | None:
    """Return the first block in `order` that both ways out of a block lead to."""
    if len(block.targets) != 2:
        return None
    one, other = (reachable([target], None) for target in block.targets)
    return next((b for b in order if b in one and b in other), None)


@dataclass(frozen=True)
class _Barrier:
    """A convergence barrier: set at the end of `start`, met at the start of `after`."""

    number: int
    start: Block
    after: Block

    @cached_property
    def region(self) -> set[Block]:
        """The blocks between, from which lanes still come to the meeting."""
        between = reachable(list(self.start.targets), self.after)
        again = self.start if self.start in between else None
        return {b for b in between if self.after in reachable([b], again)}


def add_convergence_barriers(code: Code, *, gather: bool = False) -> int:
    """Put BSSY, BSYNC and BREAK into the rows; return how many barriers there are.

    One barrier serves all branches that meet in one block. It stands before the first of
    them, outside the loops that they are in and the meeting is not. `gather` adds what gathers
    the warp behind barriers that lanes have broken.
    """
    barriers = _barriers(code)
    # Outermost regions first, so that inner barriers are set last and met first.
    barriers.sort(key=lambda barrier: len(barrier.region), reverse=True)
    broken: set[Block] = set()
    for barrier in barriers:
        start, after = barrier.start, barrier.after
        code.rows[start].append(Row("BSSY", detail=(barrier.number, after), line=start.line))
        code.rows[after].insert(0, Row("BSYNC", detail=barrier.number, line=after.line))
        broken |= _break_out(code, barrier)
    if gather:
        _gather(code, barriers, broken)
    return len(barriers)


def _barriers(code: Code) -> list[_Barrier]:
    """Return the barriers that the branches need on which lanes may disagree."""
    function = code.function
    found = meetings(function, lambda b: not b.targets and not any(r.issued for r in code.rows[b]))
    tree = dominators(function)
    loops = natural_loops(function, tree)
    headers = {loop.header for loop in loops}
    parting: dict[Block, list[Block]] = {}
    for block in tree.order:
        if block not in code.divergent or len(block.targets) < 2:
            continue
        for after in (found.whole.get(block), found.first.get(block)):
            if after is None or (after is found.first.get(block) and after in headers):
                continue
            if any(t is not after and after in reachable([t], None) for t in block.targets):
                parting.setdefault(after, []).append(block)
    starts = ((_start(tree, loops, after, blocks), after) for after, blocks in parting.items())
    set_at = [(start, after) for start, after in starts if start is not None]
    return [_Barrier(number, start, after) for number, (start, after) in enumerate(set_at)]


def _gather(code: Code, barriers: list[_Barrier], broken: set[Block]) -> None:
    """Gather the warp behind each outermost barrier with a broken one within."""
    inside: set[Block] = set()
    for barrier in barriers:
        around = {barrier.start, *barrier.region}
        if barrier.start not in inside and not broken.isdisjoint(around):
            rows = code.rows[barrier.after]
            met = max(place for place, row in enumerate(rows) if row.op == "BSYNC")
            rows.insert(met + 1, Row("WARPSYNC.ALL", line=barrier.after.line))
        inside |= around


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


def _break_out(code: Code, barrier: _Barrier) -> set[Block]:
    """Take lanes out of the barrier where they leave its region for good; return from where."""
    within = {barrier.start, barrier.after, *barrier.region}
    left: set[Block] = set()
    for block in [b for b in code.function.blocks if b in within and b is not barrier.after]:
        for target in block.targets:
            if target in within:
                continue
            if not target.targets and not any(r.issued for r in code.rows[target]):
                continue
            if len(block.targets) == 2:
                condition = code.condition[block]
                negated = target is block.targets[1]
                row = Row("BREAK", detail=barrier.number, guard=condition, negated=negated)
            else:
                row = Row("BREAK", detail=barrier.number)
            row.line = block.line
            code.rows[block].append(row)
            left.add(block)
    return left
