"""Register coalescing: registers that are copied to one another and never conflict become one."""

from __future__ import annotations

from gpusim.compiler.ir import Block
from gpusim.lowering.analysis.loops import natural_loops
from gpusim.lowering.code import Code
from gpusim.lowering.machine_code.copies import Copy
from gpusim.lowering.machine_code.liveness import Liveness


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
