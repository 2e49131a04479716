"""Branch linking: the blocks one after the other, branches with targets, one flat `Program`."""

from __future__ import annotations

import math

from gpusim.compiler.ir import Array, Block
from gpusim.isa.ops import Program
from gpusim.lowering.code import Code, Row
from gpusim.lowering.machine_code.block_layout import layout


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
