"""Dominator trees and post-dominator trees of a function's blocks.

Answers hold for the present state of a function and are not kept up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpusim.compiler.ir import Block, Function


def reverse_postorder(function: Function) -> list[Block]:
    """Return the reachable blocks, each before its successors but for back edges."""
    order: list[Block] = []
    seen: set[Block] = set()
    stack: list[Block | None] = [function.entry]
    path: list[Block] = []
    while stack:
        block = stack.pop()
        if block is None:  # all successors of the last one on the path are done
            order.append(path.pop())
        elif block not in seen:
            seen.add(block)
            path.append(block)
            stack.append(None)
            stack += block.targets
    order.reverse()
    return order


def _immediate(
    order: list[Block], before: Mapping[Block, Iterable[Block]], roots: Iterable[Block]
) -> dict[Block, Block | None]:
    """Immediate dominators along `before` edges; roots hang below a virtual None.

    Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm".
    """
    number = {block: i + 1 for i, block in enumerate(order)}
    above = [0] + [-1] * len(order)
    starts = set(roots)
    changed = True
    while changed:
        changed = False
        for block in order:
            here = number[block]
            best = 0 if block in starts else -1
            for other in before[block]:
                there = number.get(other, -1)
                if there < 0 or above[there] < 0:
                    continue
                if best < 0:
                    best = there
                    continue
                while there != best:
                    if there > best:
                        there = above[there]
                    else:
                        best = above[best]
            if best != above[here]:
                above[here] = best
                changed = True
    return {b: order[above[number[b]] - 1] if above[number[b]] else None for b in order}


@dataclass
class Dominators:
    """The dominator tree: `parent` (None for the entry), `children`, blocks in `order`."""

    parent: dict[Block, Block | None]
    children: dict[Block, list[Block]]
    order: list[Block]
    _first: dict[Block, int]
    _last: dict[Block, int]

    def dominates(self, above: Block, below: Block) -> bool:
        """Whether every path to `below` leads through `above`; a block dominates itself."""
        return self._first[above] <= self._first[below] <= self._last[above]

    def preorder(self) -> list[Block]:
        """Return the blocks, each after the one that dominates it."""
        return sorted(self.order, key=self._first.__getitem__)


def dominators(function: Function) -> Dominators:
    """Return the dominator tree of the reachable blocks."""
    order = reverse_postorder(function)
    parent = _immediate(order, {b: b.preds for b in order}, [function.entry])
    children: dict[Block, list[Block]] = {b: [] for b in order}
    for block in order:
        above = parent[block]
        if above is not None:
            children[above].append(block)
    first: dict[Block, int] = {}
    last: dict[Block, int] = {}
    stack = [(function.entry, False)]
    while stack:
        block, done = stack.pop()
        if done:
            last[block] = len(first) - 1
            continue
        first[block] = len(first)
        stack.append((block, True))
        stack += [(child, False) for child in reversed(children[block])]
    return Dominators(parent, children, order, first, last)


def post_dominators(function: Function) -> dict[Block, Block | None]:
    """Return each reachable block's immediate post-dominator.

    None where that is the thread's end, or where no path leads out (an endless loop).
    """
    forward = reverse_postorder(function)
    exits = [b for b in forward if not b.targets]
    seen = set(exits)
    order: list[Block] = []
    stack = [(b, iter(b.preds)) for b in exits]
    while stack:
        block, preds = stack[-1]
        for pred in preds:
            if pred not in seen:
                seen.add(pred)
                stack.append((pred, iter(pred.preds)))
                break
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    found = _immediate(order, {b: b.targets for b in order}, exits)
    return {b: found.get(b) for b in forward}
