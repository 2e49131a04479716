"""Liveness of registers: the live registers after each block, and register pressure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import or_

from gpusim.compiler.dominators import reverse_postorder
from gpusim.compiler.ir import Block
from gpusim.lowering.code import Code, Row
from gpusim.program.dataflow import solve
from gpusim.program.liveness import under_one_guard


@dataclass(eq=False)
class Copy:
    """One register copied to another; `line` is the source line it belongs to."""

    dst: int
    src: int
    line: int


class Liveness:
    """Live registers after each block, as bits of an integer; immediates are never live."""

    def __init__(self, code: Code, copies: dict[Block, list[Copy]]) -> None:
        self.code = code
        self.guarded = under_one_guard(code.rows.values())
        self.copies = copies
        self.order = reverse_postorder(code.function)
        self.constant = sum(1 << r for r in code.immediates)
        effects = {b: self._effect(b) for b in self.order}

        def upward(block: Block, out: int) -> Iterator[tuple[Block, int]]:
            read, written = effects[block]
            into = read | out & ~written
            return ((before, into) for before in block.preds if before in effects)

        self.out = solve(dict.fromkeys(reversed(self.order), 0), upward, or_)
        self.into = {b: read | self.out[b] & ~written for b, (read, written) in effects.items()}

    def _effect(self, block: Block) -> tuple[int, int]:
        """Return a block's upward-exposed reads, and its writes."""
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
        """Return the registers live after the copies at a block's end, before its branch."""
        condition = self.code.condition.get(block)
        live = self.out[block]
        if condition is not None and condition not in self.code.immediates:
            live |= 1 << condition
        return live

    def before(self, row: Row, alive: int) -> int:
        """Return the registers live before a row, given the ones live after it."""
        for register in row.dst:
            if self.ends(row, register):
                alive &= ~(1 << register)
        for register in row.reads:
            alive |= (1 << register) & ~self.constant
        return alive


class Widths:
    """How many 32-bit registers are in use, of registers given as bits; predicates aside."""

    def __init__(self, code: Code) -> None:
        self._narrow = self._wide = 0
        for register, dtype in enumerate(code.dtypes):
            if register in code.uniform or register in code.immediates or dtype.kind == "b":
                continue
            if dtype.itemsize == 8:
                self._wide |= 1 << register
            else:
                self._narrow |= 1 << register

    def of(self, alive: int) -> int:
        """Return how many 32-bit registers hold these."""
        return (alive & self._narrow).bit_count() + 2 * (alive & self._wide).bit_count()


def peak_registers(code: Code) -> int:
    """Return the register pressure in 32-bit registers, predicates aside."""
    live, widths = Liveness(code, {}), Widths(code)
    peak = 0
    for block in live.order:
        alive = live.at_end(block)
        for row in reversed(code.rows[block]):
            for register in row.dst:
                alive |= 1 << register
            peak = max(peak, widths.of(alive))
            alive = live.before(row, alive)
    return peak
