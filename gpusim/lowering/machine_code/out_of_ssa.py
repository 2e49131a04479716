"""Out of SSA: a copy on each path into a phi's block, most of them coalesced away.

Registers with disjoint live ranges that are copied to one another become one
register. The remaining copies are the MOVs of the machine code.
"""

from __future__ import annotations

from gpusim.compiler.ir import Block
from gpusim.lowering.code import Code, Phi, Row
from gpusim.lowering.graph import split_edge
from gpusim.lowering.machine_code.coalescing import coalesce
from gpusim.lowering.machine_code.copies import Copy
from gpusim.lowering.machine_code.liveness import Liveness


def out_of_ssa(code: Code, *, coalesced: bool) -> None:
    """Replace phis by copies; registers are `coalesced` where that makes copies unnecessary."""
    copies = _place_copies(code)
    code.phis = {b: [] for b in code.function.blocks}
    if coalesced:
        coalesce(code, copies)
    for block, ones in copies.items():
        code.rows[block] += _in_sequence(code, ones)


def _place_copies(code: Code) -> dict[Block, list[Copy]]:
    """Return the copies at the end of each block: parallel copies.

    If a block has other targets and a copy would overwrite a register live there, the
    copies go into a block of their own on the edge.
    """
    function = code.function
    live = _live_with_phis(code)
    copies: dict[Block, list[Copy]] = {}
    for block in list(function.blocks):
        phis: list[Phi] = code.phis[block]
        if not phis:
            continue
        needed = 0
        for phi in phis:
            needed |= 1 << phi.dst
        for position, pred in enumerate(list(block.preds)):
            here = [
                Copy(phi.dst, phi.src[position], phi.line)
                for phi in phis
                if phi.src[position] != phi.dst and phi.src[position] not in code.undefined
            ]
            if not here:
                continue
            if len(pred.targets) > 1:
                others = [t for t in pred.targets if t is not block]
                overwrites = any(live.into.get(other, 0) & needed for other in others)
                decides = code.condition.get(pred) in {copy.dst for copy in here}
                if not others or overwrites or decides:
                    pred = split_edge(function, pred, block)
                    code.rows[pred] = []
                    code.phis[pred] = []
            copies.setdefault(pred, []).extend(here)
    return copies


def _live_with_phis(code: Code) -> Liveness:
    """Return liveness while phis still exist: each is written at the end of its predecessors."""
    copies: dict[Block, list[Copy]] = {}
    for block in code.function.blocks:
        for phi in code.phis[block]:
            for pred, src in zip(block.preds, phi.src, strict=True):
                copies.setdefault(pred, []).append(Copy(phi.dst, src, 0))
    return Liveness(code, copies)


def _in_sequence(code: Code, copies: list[Copy]) -> list[Row]:
    """Order parallel copies so that none overwrites a register that another still reads."""
    rows: list[Row] = []
    waiting = list(copies)

    def move(dst: int, src: int, line: int) -> None:
        dtype = code.dtypes[dst]
        if dtype.itemsize == 8 and not code.is_zero(src):
            rows.append(Row("MOV", line=line))
        op = "UMOV" if dst in code.uniform else "MOV"
        rows.append(Row(op, (dst,), (src,), dtype, line=line))

    while waiting:
        ready = next(
            (c for c in waiting if not any(o.src == c.dst for o in waiting if o is not c)), None
        )
        if ready is not None:
            waiting.remove(ready)
            move(ready.dst, ready.src, ready.line)
            continue
        blocked = waiting[0]
        spare = code.register(code.dtypes[blocked.dst])
        move(spare, blocked.dst, blocked.line)
        for copy in waiting:
            if copy.src == blocked.dst:
                copy.src = spare
    return rows
