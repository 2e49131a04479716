"""List scheduling within registers: loads go first only as far as registers reach.

With 32 registers a thread an SM has room for as many warps as it may hold. As ptxas does, a block
that needs more with all of its loads first has as many loads ahead as there are registers
for; then come rows that free registers, in their order, and the next load as soon as it fits.
"""

from __future__ import annotations

from collections import Counter, deque

from gpusim.compiler.ir import Block
from gpusim.isa.ops import OPS
from gpusim.lowering.code import Code, Row
from gpusim.lowering.machine_code.dependences import checks_first, dependences, with_needs
from gpusim.lowering.machine_code.liveness import Liveness, Widths, peak_registers

REGISTERS = 32  # of an SM's 65,536 for each of 2,048 threads
UNIT = 8  # allocation unit of registers
AHEAD = 4  # for loads if the other rows alone need more than that: the registers of a wide one


def within_register_pressure(code: Code) -> None:
    """Move fewer loads ahead in blocks with too high a register pressure."""
    if peak_registers(code) > REGISTERS:
        live, widths = Liveness(code, {}), Widths(code)
        for block in live.order:
            _reorder(code, block, live, widths)


def _reorder(code: Code, block: Block, live: Liveness, widths: Widths) -> None:
    """Give a block an order that fits, from its end on between rows that stay where they are."""
    rows = code.rows[block]
    alive, end = live.at_end(block), len(rows)
    for place in range(len(rows) - 1, -2, -1):
        if place < 0 or not OPS[rows[place].op].is_movable:
            stretch = _Stretch(rows[place + 1 : end], alive, live, widths)
            rows[place + 1 : end] = stretch.within(REGISTERS)
            alive, end = stretch.into, place
            if place >= 0:
                alive = live.before(rows[place], alive)


class _Stretch:
    """Rows that may change places, and the registers live after them."""

    def __init__(self, rows: list[Row], out: int, live: Liveness, widths: Widths) -> None:
        self._rows, self._out, self._widths = rows, out, widths
        self.into = out
        peak = 0
        for row in reversed(rows):
            peak = max(peak, widths.of(self.into | _bits(row.dst)))
            self.into = live.before(row, self.into)
        self._peak = max(peak, widths.of(self.into))

    def within(self, registers: int) -> list[Row]:
        """Return the rows in an order that needs `registers` registers, or as few as it can."""
        if self._peak <= registers:
            return self._rows
        after = dependences(self._rows)
        least, _ = self._ordered(after, 0)
        limit = max(registers, -(-(least + AHEAD) // UNIT) * UNIT)
        peak, order = self._ordered(after, limit)
        if peak >= self._peak:
            return self._rows
        return [self._rows[place] for place in checks_first(self._rows, after, order)]

    def _ordered(self, after: list[set[int]], limit: int) -> tuple[int, list[int]]:
        """Return the registers that rows need with loads ahead up to a limit, and their order."""
        use = _Use(self._rows, self.into, self._out, self._widths)
        ahead: dict[int, None] = {}
        loads = deque(place for place, row in enumerate(self._rows) if OPS[row.op].kind == "load")
        for load in loads:
            with_needs(load, after, ahead)
        rest = deque(place for place in range(len(self._rows)) if place not in ahead)
        done: dict[int, None] = {}
        peak = 0
        while len(done) < len(self._rows):
            for left in (loads, rest):
                while left and left[0] in done:
                    left.popleft()
            wanted = _missing(loads[0], after, done) if loads else []
            if rest and (not wanted or use.peak(wanted) > limit):
                wanted = _missing(rest[0], after, done)
            peak = max(peak, use.issue(wanted))
            done |= dict.fromkeys(wanted)
        return peak, list(done)


def _missing(place: int, after: list[set[int]], done: dict[int, None]) -> list[int]:
    """Return a row after all that has to come before it and is not done."""
    found: dict[int, None] = {}
    with_needs(place, after, found, done)
    return list(found)


class _Use:
    """Registers in use while rows are issued one after the other."""

    def __init__(self, rows: list[Row], into: int, out: int, widths: Widths) -> None:
        self._rows, self._out, self._widths, self._alive = rows, out, widths, into
        self._reads = Counter(register for row in rows for register in row.reads)

    def issue(self, places: list[int]) -> int:
        """Issue some rows; return the register pressure meanwhile."""
        peak, self._alive = self._behind(places)
        for place in places:
            self._reads.subtract(self._rows[place].reads)
        return peak

    def peak(self, places: list[int]) -> int:
        """Return the register pressure that issuing would cause."""
        return self._behind(places)[0]

    def _behind(self, places: list[int]) -> tuple[int, int]:
        """Return the register pressure while some rows are issued, and the live count after."""
        alive, peak, reads = self._alive, 0, Counter[int]()
        for row in (self._rows[place] for place in places):
            reads.update(row.reads)
            last = [r for r in (*row.reads, *row.dst) if reads[r] == self._reads[r]]
            ended = _bits(tuple(last)) & ~self._out
            alive = alive & ~ended | _bits(row.dst)
            peak = max(peak, self._widths.of(alive))
            alive &= ~ended
        return peak, alive


def _bits(registers: tuple[int, ...]) -> int:
    return sum(1 << register for register in dict.fromkeys(registers))
