"""Convergence barriers: BSSY and BSYNC around divergent branches, where lanes reconverge.

As ptxas has it, lanes wait for each other where all paths reconverge, and also where the first
two do, if that is earlier. Lanes on other paths break the inner barrier; then the whole
warp is gathered once more after the outermost one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gpusim.compiler.dominators import Dominators, dominators
from gpusim.compiler.ir import Block
from gpusim.lowering.analysis.loops import Loop, natural_loops, reachable
from gpusim.lowering.analysis.reconvergence import reconvergence
from gpusim.lowering.code import Code, Row


@dataclass(frozen=True)
class _Barrier:
    """A convergence barrier: set at the end of `start`, waited at at the start of `after`."""

    number: int
    start: Block
    after: Block

    @cached_property
    def region(self) -> set[Block]:
        """The blocks between, with a path to its end."""
        between = reachable(self.start.targets, self.after)
        again = self.start if self.start in between else None
        return {b for b in between if self.after in reachable([b], again)}


def convergence_barriers(code: Code, *, gather: bool = False) -> int:
    """Put BSSY, BSYNC and BREAK into the rows; return how many barriers there are.

    One barrier serves all branches that reconverge in one block. It stands before the first of
    them, outside the loops around the branches that are not around the block. `gather` adds
    instructions that gather the warp after barriers that lanes have broken.
    """
    barriers = _barriers(code)
    # Outermost regions first, so that inner barriers are set last and waited at first.
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
    """Return the barriers needed by divergent branches."""
    function = code.function
    found = reconvergence(
        function, lambda b: not b.targets and not any(r.issued for r in code.rows[b])
    )
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
            if any(t is not after and after in reachable([t]) for t in block.targets):
                parting.setdefault(after, []).append(block)
    starts = ((_start(tree, loops, after, blocks), after) for after, blocks in parting.items())
    set_at = [(start, after) for start, after in starts if start is not None]
    return [_Barrier(number, start, after) for number, (start, after) in enumerate(set_at)]


def _gather(code: Code, barriers: list[_Barrier], broken: set[Block]) -> None:
    """Gather the warp after each outermost barrier that contains a broken one."""
    inside: set[Block] = set()
    for barrier in barriers:
        around = {barrier.start, *barrier.region}
        if barrier.start not in inside and not broken.isdisjoint(around):
            rows = code.rows[barrier.after]
            last = max(place for place, row in enumerate(rows) if row.op == "BSYNC")
            rows.insert(last + 1, Row("WARPSYNC.ALL", line=barrier.after.line))
        inside |= around


def _start(tree: Dominators, loops: list[Loop], after: Block, blocks: list[Block]) -> Block | None:
    """Return the block with the barrier for reconvergence in `after` at its end."""
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
    """Break lanes out of the barrier where they leave its region for good; return the places."""
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
