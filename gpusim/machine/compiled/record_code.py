"""Code that records instructions: for a log, for streams and for a check."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Instruction
from gpusim.machine.compiled import layout
from gpusim.machine.compiled.detection import REPORTED, Comparison, Detection, kept_operands
from gpusim.machine.compiled.kinds import ACCESSES, WIDE_SPACES, memory_of, waits
from gpusim.machine.compiled.places import NARROW, Places, converted
from gpusim.machine.compiled.register_types import WORD
from gpusim.machine.compiled.segment import Segment
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.compiled.vectors import is_wide
from gpusim.machine.warps import state

EVERY = f"(i32.load offset={layout.LANES} (local.get $W))"  # the lanes of a warp


class RecordCode:
    """Writes the code that records the steps of a program."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._counting, self._is_checking = places.counting, places.detection is not None
        self._functions = places.functions
        self._in_order = places.in_order
        self._made = places.made
        self._pairs = places.pairs
        self._pacing = places.pacing
        self._products = places.products
        self._recording = places.recording
        self._rows = places.rows
        self._shifts = places.shifts
        self._steps = places.steps
        self._sums = places.sums
        self._swaps = places.swaps
        self._types = places.types

    def noted(self, pc: int, row: Instruction, kind: str, condition: str = "") -> str:
        """Return code that records a step of a watched warp."""
        space = 0
        if row.memory is not None:
            space = 1 if row.memory.space in WIDE_SPACES else 2
        if kind == "shuffle":
            space = 3 + OPS[row.op].checks_mask
        taken = "(local.get $on)"
        if condition:
            taken = f"(i32.and (local.get $on) {condition})"
        return (
            f"(if (i32.load offset={layout.WATCHED} (local.get $W)) (then (call $note"
            f" (local.get $W) (i32.const {pc}) (local.get $M) (local.get $on) {taken}"
            f" (i32.const {space}))))"
        )

    def ran(self, pc: int, on: str) -> str:
        """Return code that notes that an instruction ran for some lane."""
        at = f"offset={self._made.ran_at + len(self._rows) + pc} (i32.const 0)"
        some = f"(i32.or (i32.load8_u {at}) (i32.ne {on} (i32.const 0)))"
        return f"(i32.store8 {at} {some})"

    def checked(self, pc: int, row: Instruction, on: str, able: str = "") -> str:
        """Return code that writes a step down, with all operands if registers follow them."""
        here = f"(local.get $W) (i32.const {pc}) (local.get $M)"
        count = len(self._made.operands[pc]) if self._steps.get(pc) else kept_operands(row)
        return f"(call $check {here} {on} {able or on} (i32.const {count}))"

    def _narrowed(self, pc: int, row: Instruction) -> str:
        """Return code that writes an access down; lanes with a fault skip it."""
        memory, on, able = memory_of(row), "(local.get $on)", "(local.get $x)"
        width = f"(i32.const {memory.width_bytes})"
        stores = f"(i32.const {int(OPS[row.op].writes_memory)})"
        if memory.space == "global":
            entry = f"(i32.const {self._places.entry(memory)}) (i32.const {int(memory.by_address)})"
            found = f"(call $able_in_array {on} {entry} {width} {stores})"
        elif memory.space == "generic":
            found = f"(call $able_anywhere {on} {self._places.windows()} {width} {stores})"
        else:
            _, limit = self._places.own_memory(row)
            found = f"(call $able_in_own {on} (i32.const {memory.base}) {limit} {width})"
        lost, step = state.read("lost"), self.checked(pc, row, on, able)
        if pc not in self._steps:
            step = f"(if {lost} (then {step}))"
        return f"""(if {on} (then (local.set $x {found})
{state.written("lost", f"(i32.xor {on} {able})")} {step} (local.set $on {able})))"""

    def cleared(self, row: Instruction) -> str:
        """Return code that sets the values loaded by lanes with a fault to zero.

        Those of a compare-and-swap are as expected: loops end that swap until they are.
        """
        if not self._steps or not row.dst:
            return ""
        lost, wide = state.read("lost"), int(is_wide(self._types[row.dst[0]]))
        name, size = "clear", wide
        if row.detail == "cas":
            name, size = "as_expected", memory_of(row).dtype.itemsize
        call = f"(call ${name} {lost} (i32.const {len(row.dst)}) (i32.const {size}))"
        return f"(if {lost} (then {call}))"

    def swapped(self, pc: int, row: Instruction) -> str:
        """Return code that keeps the results of a swap with its step."""
        if pc not in self._swaps:
            return ""
        kept = f"(call $keep_results (i32.const {len(row.dst)}))"
        return f"(if (i32.or (local.get $on) {state.read('lost')}) (then {kept}))"

    def detected(self, asked: Detection, pc: int, row: Instruction, condition: str) -> str:
        """Return code that compares an access, or writes it down for a check.

        A comparison traps at a possible finding.

        For masks, $x are the lanes named by any mask, $z the lanes named by every mask.
        """
        on, parts = "(local.get $on)", []
        if self._steps and row.memory is not None:
            parts += [self._narrowed(pc, row), self.ran(pc, on)]
        elif row.guard is not None:
            parts.append(self.ran(pc, on))
        if pc in self._shifts:
            compared = Comparison.of(
                row,
                self._shifts[pc],
                polls=pc in asked.polls,
                lowest_at=self._made.lowest_at.get(pc, 0),
                in_order=self._in_order,
            )
            self._functions.setdefault(compared.name, compared)
            parts.append(f"(if {on} (then (call {compared.name} {on} (local.get $W))))")
        if row.looks_up_constants and pc not in self._steps:
            parts.append(_counted("accesses", 1))
        if pc in asked.of_unknown_arrays:
            each = 1 if row.memory is None else max(row.memory.width_bytes >> self._shifts[pc], 1)
            parts.append(_counted("of_unknown_arrays", each))
        if pc in asked.conditions and condition:
            met = f"(i32.and {on} {condition})"
            step = self.checked(pc, row, on, met) if pc in self._steps else REPORTED
            parts.append(step if self._steps.get(pc) else f"(if {met} (then {step}))")
        elif pc in self._steps and row.memory is None:
            parts.append(self.checked(pc, row, on))
        elif OPS[row.op].kind == "barrier" and row.guard is not None:
            parts.append(f"(if (i32.ne {on} (local.get $M)) (then {REPORTED}))")
        if pc in asked.gathers:
            missing = f"(i32.and {EVERY} (i32.xor {on} (i32.const -1)))"
            parts.append(f"(if (i32.and (local.get $x) {missing}) (then {REPORTED}))")
        if pc in asked.exchanges:
            parts.append(f"(if (i32.ne {on} (i32.const -1)) (then {REPORTED}))")
        if pc in asked.whole:
            parts.append(f"(if (i32.ne {on} {EVERY}) (then {REPORTED}))")
        if pc in asked.meetings:
            meets = f"(call $meets (local.get $W) {on})"
            if waits(row):
                unnamed = f"(i32.and {EVERY} (i32.xor (local.get $z) (i32.const -1)))"
                meets = f"(if (i32.eqz {unnamed}) (then {meets}))"
            parts.append(meets)
        return " ".join(parts)

    def tells(self, row: Instruction) -> bool:
        """Return whether an instruction's lanes are recorded: not for arithmetic.

        Accesses, and loads of constants at offsets in registers, have further records.
        """
        op = OPS[row.op]
        is_more = op.kind in ACCESSES or (op.kind == "bank" and bool(row.src))
        return self._recording and op.issued and op.kind != "compute" and not is_more

    def of_watched(self, code: str) -> str:
        """Return code that records a step: where warps have clocks, of watched ones alone."""
        if self._pacing is None:
            return code
        return f"(if (i32.load offset={layout.WATCHED} (local.get $W)) (then {code}))"

    def begun(self, number: int, pc: int) -> str:
        """Return code that counts and records the begin of a basic block."""
        parts, at = [], 16 * number
        if self._counting:
            parts.append(
                f"(v128.store offset={at} (local.get $C) (i64x2.add"
                f" (v128.load offset={at} (local.get $C)) (i64x2.replace_lane 1"
                " (v128.const i64x2 1 0) (i64.extend_i32_u (i32.popcnt (local.get $M))))))"
            )
        if self._recording:
            begun = f"(call $begun (local.get $W) (i32.const {pc}) (local.get $M))"
            parts.append(self.of_watched(begun))
        if self._is_checking:
            parts.append(
                f"(i32.store8 offset={self._made.ran_at + pc} (i32.const 0) (i32.const 1))"
            )
        return "\n".join(parts)

    def decided(self, pc: int, on: str, taken: str = "(i32.const 0)") -> str:
        """Return code that records the lanes of an instruction, and of a branch."""
        return self.of_watched(f"(call $decided (i32.const {pc}) {on} {taken})")

    def looked_up(self, pc: int) -> str:
        """Return code that records a load of constants at offsets in registers."""
        if not self._recording:
            return ""
        here = f"(i32.const {pc}) (local.get $on)"
        return self.of_watched(f"(call $narrow (i64.const 0)) (call $looked_up {here})")

    def told(self, pc: int, row: Instruction, kind: str, slot: int) -> str:
        """Return code that records an access, after it is done: this overwrites its addresses."""
        if not self._recording or not OPS[row.op].issued:
            return ""
        return self.of_watched(self._told(pc, row, kind, slot))

    def _told(self, pc: int, row: Instruction, kind: str, slot: int) -> str:
        memory = memory_of(row)
        here, width = f"(i32.const {pc}) (local.get $on)", memory.width_bytes
        if memory.space == "global":
            return (
                f"(if (i32.eqz (call $told_again {here} (i32.const {slot}))) (then"
                f" (call $narrow {state.read('shift')}) (call $accessed {here} (i32.const {width})"
                f" (i32.const 1) (i32.const {ACCESSES.index(kind)}) (i32.const 1))"
                f" (call $keep_told (local.get $on) (i32.const {slot}))))"
            )
        if memory.space == "generic":
            passes = "(i32.const 0)"
            if kind == "atomic":
                passes = "(call $most_of_a_bank (local.get $on))"
            return f"(call $narrow (i64.const 0)) {self._detail(here, passes)}"
        words = max(1, width // 4)
        if memory.space == "local":
            return (
                f"(call $side_by_side) (call $accessed {here} (i32.const 4) (i32.const {words})"
                f" (i32.const {ACCESSES.index(kind)}) (i32.const 1))"
            )
        if kind == "atomic" and not OPS[row.op].by_word:
            passes = "(call $most_of_a_bank (local.get $on))"
        elif kind == "atomic":
            passes = "(i32.wrap_i64 (call $wavefronts (local.get $on) (i32.const 1) (i32.const 0)))"
        else:
            pairs = self._pairs if row.is_load else 0
            passes = (
                f"(i32.wrap_i64 (call $wavefronts_again (local.get $on) (i32.const {words})"
                f" (i32.const {pairs}) (i32.const {slot})))"
            )
        return self._detail(here, passes)

    @staticmethod
    def _detail(here: str, passes: str) -> str:
        """Return code that records an access that does not reach the L1."""
        zeros = " ".join(["(i32.const 0)"] * 3)
        return (
            f"(call $detail {here} {passes} {zeros} (i32.const -1) (i32.const 0)"
            f" {state.read('touched')})"
        )

    def added(self, pc: int, row: Instruction) -> str:
        """Return code that records the additions of lanes to a sum."""
        memory = memory_of(row)
        is_swapped = self._sums.get(pc, -1) >= 0
        if pc not in self._sums or not (is_swapped or memory.dtype.kind == "f"):
            return ""
        item, results = memory.dtype.itemsize, f"(i32.const {max(len(row.dst), 1)})"
        on, number = "(local.get $on)", 1
        if is_swapped:
            on, number = f"(call $swapped {on} (i32.const {item}) {results})", 3
        return (
            f"(call $adds (local.get $W) {on} (i32.const {pc})"
            f" (i32.const {int(memory.space == 'shared')}) (i32.const {item}) {results}"
            f" (i32.const {layout.operand(number)}))"
        )

    def watch_product(
        self, segment: Segment, pc: int, row: Instruction, value: Any, guard: Any
    ) -> None:
        """Note that a product, with its addend, does not fit in 32 bits."""
        kind = NARROW if self._products[pc] else WORD
        parts = [converted(one, kind) for one in (*map(segment.read, row.src), value)]
        a, b, c, held = (converted(one, np.dtype(np.float64)) for one in parts)
        far, most = a * b + c - held, np.float64(1 << 31)
        wrong = (far >= most) | (far <= -most)
        if guard is not None:
            wrong = wrong & (~guard if row.negated else guard)
        if not segment.has_code([wrong]):
            raise NotDerivedError("a product that may overflow")
        some = f"(i32.or {state.read('overflows')} {{}})"
        segment.count(wrong, False, state.written("overflows", some))


def _counted(total: str, each: int) -> str:
    """Return code that adds to a total, for each lane that is on."""
    lanes = f"(i32.mul (i32.const {each}) (i32.popcnt (local.get $on)))"
    return state.written(total, f"(i64.add {state.read(total)} (i64.extend_i32_u {lanes}))")
