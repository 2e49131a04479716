"""Branch linking: the blocks one after the other, branches with targets, one flat `Program`."""

from __future__ import annotations

import math

from gpusim.compiler.ir import Array, Block, Function
from gpusim.isa.ops import Program
from gpusim.lowering.analysis.loops import natural_loops, reachable
from gpusim.lowering.code import Code, Row


def link(code: Code, *, barriers: int, registers: int, lowering: str, name: str) -> Program:
    """Return the code as a program: rows numbered, branches resolved."""
    order = layout(code.function)
    rows: list[tuple[Row, Block | None]] = []
    start: dict[Block, int] = {}
    for position, block in enumerate(order):
        start[block] = len(rows)
        following = order[position + 1] if position + 1 < len(order) else None
        for row in code.rows[block]:
            target = row.detail[1] if row.op == "BSSY" else None
            rows.append((row, target))
        rows += _terminator(code, block, following)
    instructions = tuple(
        row.instruction(-1 if target is None else start[target] + _bsync_offset(code, row, target))
        for row, target in rows
    )
    used = {r for i in instructions for r in (*i.dst, *i.src)}
    function = code.function
    return Program(
        name=name,
        instructions=instructions,
        registers=len(code.dtypes),
        immediates={r: v for r, v in code.immediates.items() if r in used},
        barriers=barriers,
        shared_bytes=_bytes(function.shared),
        local_bytes=_bytes(function.local),
        register_estimate=registers,
        lowering=lowering,
    )


def _bytes(arrays: list[Array]) -> int:
    """Return how much memory arrays take that begin at their offsets."""
    return max((a.offset + math.prod(a.shape) * a.dtype.itemsize for a in arrays), default=0)


def _bsync_offset(code: Code, row: Row, target: Block) -> int:
    """Return where in its block the BSYNC of a BSSY stands; 0 for a branch."""
    if row.op != "BSSY":
        return 0
    return next(
        i for i, r in enumerate(code.rows[target]) if r.op == "BSYNC" and r.detail == row.detail[0]
    )


def _terminator(
    code: Code, block: Block, following: Block | None
) -> list[tuple[Row, Block | None]]:
    """Return the branches at a block's end; none where it runs into the next one."""
    if not block.targets:
        return [(Row("EXIT", line=block.line), None)]
    if len(block.targets) == 1:
        (target,) = block.targets
        return [] if target is following else [(Row("BRA", line=block.line), target)]
    condition = code.condition[block]
    first, second = block.targets
    if first is following:
        return [(Row("BRA", guard=condition, negated=True, line=block.line), second)]
    rows: list[tuple[Row, Block | None]] = [(Row("BRA", guard=condition, line=block.line), first)]
    if second is not following:
        rows.append((Row("BRA", line=block.line), second))
    return rows


def layout(function: Function) -> list[Block]:
    """Return the blocks in their order in memory.

    A loop's blocks stand together, before the blocks after it. A body follows its branch; of two
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
