"""Reconvergence points: where the paths that part at a branch come together again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpusim.compiler.dominators import post_dominators, reverse_postorder
from gpusim.compiler.ir import Block, Function
from gpusim.lowering.analysis.loops import Loop, leading_to, natural_loops, reachable


@dataclass
class Reconvergence:
    """Where the paths out of each block reconverge: all of them, and the first two of them.

    `whole` is the immediate post-dominator within one iteration of the innermost loop around,
    and for a branch that leaves loops, their common exit; None if there is none. Lanes that
    leave otherwise, by a return or out of more loops, do not count: they never reconverge.
    `first` has the blocks where two paths reconverge before all do.
    """

    whole: dict[Block, Block | None] = field(default_factory=dict)
    first: dict[Block, Block] = field(default_factory=dict)


def reconvergence(function: Function, is_end: Callable[[Block], bool]) -> Reconvergence:
    """Return where the paths out of each block reconverge.

    `is_end` tells blocks that only end the thread.
    """
    loops = natural_loops(function)
    found = Reconvergence()
    after_loop: dict[Loop, Block | None] = {}
    for region in [*reversed(loops), None]:
        _in_region(function, loops, region, is_end, found, after_loop)
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


def _in_region(
    function: Function,
    loops: list[Loop],
    region: Loop | None,
    is_end: Callable[[Block], bool],
    result: Reconvergence,
    after_loop: dict[Loop, Block | None],
) -> None:
    """Find the points in a loop's body, or outside all loops; an inner loop counts as one block."""
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
    position = {block: number for number, block in enumerate(kept)}
    originals = {copy: block for block, copy in copies.items() if block not in within}
    originals |= {whole[loop]: loop.header for loop in inner}
    for block, copy in copies.items():
        after = found.get(copy)
        point = None if after is None else originals[after]
        if block in within:
            after_loop[within[block]] = point
            continue
        result.whole[block] = point
        first = None if after is None else _first_reconvergence(copy, after, position)
        if first in originals:
            result.first[block] = originals[first]


def _leading_to(order: list[Block], ends: list[Block]) -> list[Block]:
    """Return the blocks with a path to `ends`, cut off from the others."""
    living = leading_to(ends)
    kept = [b for b in order if b in living]
    present = set(kept)
    for block in kept:
        block.targets = tuple(t for t in block.targets if t in present)
        block.preds = [p for p in block.preds if p in present]
    return kept


def _first_reconvergence(block: Block, after: Block, position: Mapping[Block, int]) -> Block | None:
    """Return the first block, before `after`, that both paths out of a block lead to."""
    if len(block.targets) != 2:
        return None
    one, other = (reachable([target], after) for target in block.targets)
    return min(one & other, key=position.__getitem__, default=None)
