"""Code that keeps the clock of a warp: times of instructions, results that come late, accesses.

Gaps between instructions are added up where nothing looks at the clock; the sums are cells of the
launch, so that a module serves all devices.
"""

from __future__ import annotations

from gpusim.isa.ops import OPS, Instruction
from gpusim.machine.compiled.kinds import ACCESSES, CONTROL, WIDE_SPACES, memory_of
from gpusim.machine.compiled.places import Places
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.pace import Pacing
from gpusim.machine.warps import clocks
from gpusim.wasm.memory import fields_of


def read(name: str) -> str:
    """Return code that reads a field of `PACE`."""
    at, kind, _ = fields_of(clocks.Paced)[name]
    return f"({kind.wasm}.load (i32.const {clocks.PACED + at}))"


class PaceCode:
    """Writes the code of a warp's clock, instruction by instruction within a basic block."""

    def __init__(self, places: Places, pacing: Pacing) -> None:
        self._places, self._pacing, self._rows = places, pacing, places.rows
        registers = {r for pc in pacing.late for r in places.rows[pc].dst}
        at = places.made.timed_at + clocks.TIMED_BYTES
        self._there = {register: at + 8 * n for n, register in enumerate(sorted(registers))}
        self._clock = f"offset={places.made.timed_at} (local.get $W)"
        self.is_ahead = f"(i64.gt_s (i64.load {self._clock}) {read('next')})"
        self.begin()

    def begin(self) -> None:
        """Begin a basic block."""
        self._gaps: list[int] = []  # pcs whose gaps are not added yet
        self._before: list[int] = []  # those before the current instruction's
        self._met: set[int] = set()  # registers that the clock has waited for

    def head(self, number: int, pc: int, yields: str) -> str:
        """Return the begin of a basic block: the turn `yields` before what blocks see."""
        if pc not in self._pacing.seen:
            return ""
        parks = self.parks(f"(i32.const {number})") if pc in self._pacing.spin else ""
        return f"{parks} {self._waits(pc)} (if {self.is_ahead} (then {yields}))"

    @staticmethod
    def parks(block: str) -> str:
        """Return code that holds a split before a block of code if it polled in vain."""
        split = f"(local.get $W) (local.get $i) {block} (local.get $M) (local.get $h)"
        return f"(if {read('is_vain')} (then (call $park {split}) (return)))"

    def passes(self, pc: int) -> str:
        """Return code before an instruction; that of an access gives its results later."""
        row, pacing = self._rows[pc], self._pacing
        kind = OPS[row.op].kind
        code = self._waits(pc)
        if pc in pacing.seen or kind in CONTROL:
            code += self._flushed(*([pc] if kind in CONTROL and kind != "barrier" else []))
        self._before = [*self._gaps]
        if OPS[row.op].issued and kind not in CONTROL:
            self._gaps.append(pc)
        if kind not in ACCESSES:
            code += self._results(pc, f"(i64.load {self._clock})")
        return code

    def end(self) -> str:
        """Return code at the end of a basic block that goes on with the next one."""
        return self._flushed()

    def _waits(self, pc: int) -> str:
        """Return code that waits for the operands of an instruction."""
        late = [r for r in self._pacing.reads[pc] if r not in self._met]
        self._met.update(late)
        if not late:
            return ""
        waits = " ".join(
            f"(local.set $w (i64.load offset={self._there[r]} (local.get $W)))"
            f" (if (i64.gt_s (local.get $w) (i64.load {self._clock})) (then"
            f" (i64.store {self._clock} (local.get $w))))"
            for r in late
        )
        return f"{self._flushed()} {waits}"

    def _flushed(self, *also: int) -> str:
        """Return code that adds the gaps so far to the clock."""
        gaps = *self._gaps, *also
        self._gaps = []
        if not gaps:
            return ""
        return f"(i64.store {self._clock} (i64.add (i64.load {self._clock}) {self._cell(gaps)}))"

    def _cell(self, gaps: tuple[int, ...], late: int = -1) -> str:
        times, key = self._places.made.times, (gaps, late)
        if key not in times:
            times[key], self._places.cell = self._places.cell, self._places.cell + 8
        return f"(i64.load (i32.const {times[key]}))"

    def _results(self, pc: int, since: str) -> str:
        """Return code that notes when the results of an instruction are there."""
        if pc not in self._pacing.late:
            return ""
        there = f"(i64.add {since} {self._cell(tuple(self._before), pc)})"
        self._met.difference_update(self._rows[pc].dst)
        return " ".join(
            f"(i64.store offset={self._there[register]} (local.get $W) {there})"
            for register in self._rows[pc].dst
        )

    def accessed(self, pc: int, row: Instruction, kind: str) -> str:
        """Return code after an access, with its addresses and results at their places."""
        pacing, on, code = self._pacing, "(local.get $W) (local.get $on)", ""
        is_wide_space = memory_of(row).space in WIDE_SPACES
        since = f"(i64.load {self._clock})"
        if pc in pacing.fetch and is_wide_space:
            code += f"(call $fetch_lines {on} (i32.const {pacing.fetch.index(pc)}))"
            since = f"(i64.add {since} {read('late')})"
        elif pc in pacing.keep and is_wide_space:
            code += "(drop (call $keep_lines (local.get $on)))"
        if pc in pacing.seen and is_wide_space:
            text, since = self._communicates(pc, row, kind, since)
            code += text
        return code + self._results(pc, since)

    def _communicates(self, pc: int, row: Instruction, kind: str, since: str) -> tuple[str, str]:
        """Return the code of an access that other blocks see, and when it is served."""
        on, code, served = "(local.get $W) (local.get $on)", "", read("served")
        if kind == "atomic":
            code, since = f"(call $serve {on})", served
        if pc in self._pacing.spin:
            if len(row.dst) > clocks.MOST_RESULTS:
                raise NotDerivedError("a poll with its number of results")
            if kind != "atomic":
                code, since = f"(call $poll_served {on})", served
            wide = int(memory_of(row).dtype.itemsize == 8 and (kind == "load" or len(row.dst) == 1))
            here = f"(local.get $W) (i32.const {pc}) (local.get $on)"
            code += f"(call $poll {here} (i32.const {len(row.dst)}) (i32.const {wide}))"
        elif OPS[row.op].writes_memory:
            code += f"(call $write_words (local.get $on) {since})"
        return code, since
