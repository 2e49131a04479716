"""Out of SSA: a copy on each path into a phi's block, most of them coalesced away.

Registers with disjoint live ranges that are copied to one another become one
register. The remaining copies are the MOVs of the machine code.
"""

from __future__ import annotations

from gpusim.compiler.ir import Block
from gpusim.lowering.analysis.loops import natural_loops
from gpusim.lowering.code import Code, Phi, Row
from gpusim.lowering.graph import split_edge
from gpusim.lowering.machine_code.liveness import Copy, Liveness


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


def coalesce(code: Code, copies: dict[Block, list[Copy]]) -> None:
    """Merge the two registers of each copy where they never conflict, inner loops first."""
    conflicts = _conflicts(code, copies)
    parent: dict[int, int] = {}
    members: dict[int, int] = {}

    def root(register: int) -> int:
        while parent.get(register, register) != register:
            register = parent[register]
        return register

    depth = {b: o.depth for o in reversed(natural_loops(code.function)) for b in o.blocks}
    ordered = sorted(copies, key=lambda b: -depth.get(b, 0))
    for block in ordered:
        for copy in copies[block]:
            a, b = root(copy.dst), root(copy.src)
            if a == b or copy.src in code.immediates or copy.src in code.fixed:
                continue
            if code.dtypes[a] != code.dtypes[b] or (a in code.uniform) != (b in code.uniform):
                continue
            in_a, in_b = members.get(a, 1 << a), members.get(b, 1 << b)
            if conflicts.get(a, 0) & in_b or conflicts.get(b, 0) & in_a:
                continue
            parent[b] = a
            members[a] = in_a | in_b
            conflicts[a] = conflicts.get(a, 0) | conflicts.get(b, 0)
    if not parent:
        return
    final = [root(r) for r in range(len(code.dtypes))]
    for block in code.function.blocks:
        for row in code.rows[block]:
            row.dst = tuple(final[r] for r in row.dst)
            row.src = tuple(final[r] for r in row.src)
            if row.guard is not None:
                row.guard = final[row.guard]
        if block in code.condition:
            code.condition[block] = final[code.condition[block]]
        ones = [Copy(final[c.dst], final[c.src], c.line) for c in copies.get(block, ())]
        copies[block] = [c for c in ones if c.dst != c.src]


def _conflicts(code: Code, copies: dict[Block, list[Copy]]) -> dict[int, int]:
    """Return, for each register, the registers that are live with another value at its writes."""
    live = Liveness(code, copies)
    found: dict[int, int] = {}

    def write(register: int, alive: int) -> None:
        others = alive & ~(1 << register)
        found[register] = found.get(register, 0) | others

    for block in live.order:
        alive = live.at_end(block)
        here = copies.get(block, [])
        for copy in here:
            same = sum(1 << other.dst for other in here if other.src == copy.src)
            write(copy.dst, alive & ~same & ~(1 << copy.src))
        for copy in here:
            alive &= ~(1 << copy.dst)
        for copy in here:
            alive |= (1 << copy.src) & ~live.constant
        for row in reversed(code.rows[block]):
            for register in row.dst:
                write(register, alive)
            if len(row.dst) > 1:
                together = sum(1 << r for r in row.dst)
                for register in row.dst:
                    write(register, together)
            for register in row.dst:
                if live.ends(row, register):
                    alive &= ~(1 << register)
            for register in row.reads:
                alive |= (1 << register) & ~live.constant
    for register, others in list(found.items()):
        other = 0
        while others:
            low = others & -others
            other = low.bit_length() - 1
            found[other] = found.get(other, 0) | (1 << register)
            others ^= low
    return found
