"""Leave SSA form: a copy on each way into a phi's block, most of them merged away.

Registers that are never needed at the same time and are copied to one another become one
register. What is left are the MOVs that the machine code shows.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.compiler.ir import Block
from gpusim.lowering.code import Code, Phi, Row
from gpusim.lowering.graph import natural_loops, reverse_postorder, split_edge


@dataclass(eq=False)
class _Copy:
    dst: int
    src: int
    line: int


class Liveness:
    """Registers needed after each block, as bits of an integer; immediates never are."""

    def __init__(self, code: Code, copies: dict[Block, list[_Copy]]) -> None:
        self.code = code
        self.guarded = _within_one_guard(code)
        self.copies = copies
        self.order = reverse_postorder(code.function)
        self.constant = sum(1 << r for r in code.immediates)
        self.out: dict[Block, int] = dict.fromkeys(self.order, 0)
        self.into: dict[Block, int] = dict.fromkeys(self.order, 0)
        effects = {b: self._effect(b) for b in self.order}
        changed = True
        while changed:
            changed = False
            for block in reversed(self.order):
                out = 0
                for target in block.targets:
                    out |= self.into[target]
                read, written = effects[block]
                into = read | (out & ~written)
                if out != self.out[block] or into != self.into[block]:
                    self.out[block], self.into[block] = out, into
                    changed = True

    def _effect(self, block: Block) -> tuple[int, int]:
        """Return what a block reads before it writes, and what it writes."""
        read = written = 0
        for row in self.code.rows[block]:
            for register in row.reads:
                read |= (1 << register) & ~written
            for register in row.dst:
                if self.ends(row, register):
                    written |= 1 << register
        for copy in self.copies.get(block, ()):
            read |= (1 << copy.src) & ~written
        for copy in self.copies.get(block, ()):
            written |= 1 << copy.dst
        condition = self.code.condition.get(block)
        if condition is not None:
            read |= (1 << condition) & ~written
        return read & ~self.constant, written

    def ends(self, row: Row, register: int) -> bool:
        """Whether nothing that a register held before is needed once `row` has written it."""
        return row.guard is None or register in self.guarded

    def at_end(self, block: Block) -> int:
        """Return what is live after the copies at a block's end, before its branch."""
        condition = self.code.condition.get(block)
        live = self.out[block]
        if condition is not None and condition not in self.code.immediates:
            live |= 1 << condition
        return live


def _within_one_guard(code: Code) -> set[int]:
    """Return registers that only rows with one and the same guard, of one block, touch."""
    guards: dict[int, tuple[Block, int, bool] | None] = {}
    for block, rows in code.rows.items():
        for row in rows:
            key = None if row.guard is None else (block, row.guard, row.negated)
            for register in (*row.dst, *row.src):
                guards[register] = key if guards.get(register, key) == key else None
    return {register for register, key in guards.items() if key is not None}


def leave_ssa(code: Code, *, merge: bool) -> None:
    """Replace phis by copies; `merge` registers where that makes copies unnecessary."""
    copies = _place_copies(code)
    code.phis = {b: [] for b in code.function.blocks}
    if merge:
        _merge(code, copies)
    for block, ones in copies.items():
        code.rows[block] += _in_sequence(code, ones)


def _place_copies(code: Code) -> dict[Block, list[_Copy]]:
    """Return the copies at the end of each block, which happen all at once.

    Where a block leads elsewhere too and a copy would overwrite what is needed there, the
    copies go into a block of their own on the way.
    """
    function = code.function
    live = _live_with_phis(code)
    copies: dict[Block, list[_Copy]] = {}
    for block in list(function.blocks):
        phis: list[Phi] = code.phis[block]
        if not phis:
            continue
        needed = 0
        for phi in phis:
            needed |= 1 << phi.dst
        for position, pred in enumerate(list(block.preds)):
            here = [
                _Copy(phi.dst, phi.src[position], phi.line)
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
    """Return what is live while phis still stand: each is written where its value comes from."""
    copies: dict[Block, list[_Copy]] = {}
    for block in code.function.blocks:
        for phi in code.phis[block]:
            for pred, src in zip(block.preds, phi.src, strict=True):
                copies.setdefault(pred, []).append(_Copy(phi.dst, src, 0))
    return Liveness(code, copies)


def _merge(code: Code, copies: dict[Block, list[_Copy]]) -> None:
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
        ones = [_Copy(final[c.dst], final[c.src], c.line) for c in copies.get(block, ())]
        copies[block] = [c for c in ones if c.dst != c.src]


def _conflicts(code: Code, copies: dict[Block, list[_Copy]]) -> dict[int, int]:
    """Return, for each register, those that hold something else while it is written."""
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


def _in_sequence(code: Code, copies: list[_Copy]) -> list[Row]:
    """Order copies that happen at once so that none overwrites what another still reads."""
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


def peak_registers(code: Code) -> int:
    """Return the most 32-bit registers that are needed at once, predicates aside."""
    live = Liveness(code, {})
    narrow = wide = 0
    for register, dtype in enumerate(code.dtypes):
        if register in code.uniform or register in code.immediates or dtype.kind == "b":
            continue
        if dtype.itemsize == 8:
            wide |= 1 << register
        else:
            narrow |= 1 << register
    peak = 0
    for block in live.order:
        alive = live.at_end(block)
        for row in reversed(code.rows[block]):
            for register in row.dst:
                alive |= 1 << register
            peak = max(peak, (alive & narrow).bit_count() + 2 * (alive & wide).bit_count())
            for register in row.dst:
                if live.ends(row, register):
                    alive &= ~(1 << register)
            for register in row.reads:
                alive |= (1 << register) & ~live.constant
    return peak
