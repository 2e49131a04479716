"""Block placement: the order of the blocks in memory."""

from __future__ import annotations

from gpusim.compiler.ir import Block, Function
from gpusim.lowering.analysis.loops import natural_loops
from gpusim.lowering.analysis.paths import reachable


def layout(function: Function) -> list[Block]:
    """Return the blocks in their order in memory.

    A loop's blocks stand together, before the blocks behind it. A body follows its branch; of two
    bodies the one for false comes first, as ptxas has it.
    """
    inside = {loop.header: set(loop.blocks) for loop in natural_loops(function)}
    around: dict[Block, list[set[Block]]] = {b: [] for b in function.blocks}
    for blocks in inside.values():
        for block in blocks:
            around[block].append(blocks)
    order: list[Block] = []
    seen: set[Block] = set()
    stack: list[tuple[Block, list[Block]]] = []

    def visit(block: Block) -> None:
        seen.add(block)
        stack.append((block, _later_first(block, around)))

    visit(function.entry)
    while stack:
        block, targets = stack[-1]
        following = next((t for t in targets if t not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            visit(following)
    order.reverse()
    return order


def _later_first(block: Block, around: dict[Block, list[set[Block]]]) -> list[Block]:
    """Return a block's targets, the later ones in memory first."""
    if len(block.targets) < 2:
        return list(block.targets)
    first, second = block.targets

    def leaves(target: Block) -> int:
        return sum(target not in loop for loop in around[block])

    if leaves(first) != leaves(second):
        return sorted(block.targets, key=leaves, reverse=True)
    if second in reachable([first], without=block):
        return [second, first]
    return [first, second]
