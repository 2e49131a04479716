"""Code of control flow: branches, convergence, barriers, and the turns of a warp's splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gpusim.isa.ops import OPS, Instruction
from gpusim.machine.compiled import layout
from gpusim.machine.compiled.kinds import waits
from gpusim.machine.compiled.pace_code import PaceCode
from gpusim.machine.compiled.places import Places
from gpusim.machine.compiled.record_code import RecordCode
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.gathering import CORRESPONDING, FIRST_EXCHANGE, corresponding
from gpusim.machine.warps import state
from gpusim.machine.warps.steps import RUN_BYTES
from gpusim.program.loops import swapping

_WAITS = {CORRESPONDING["warpsync"]: state.AT_WARP, CORRESPONDING["collect"]: state.AT_COLLECTION}
_NEXT = f"(i32.load (i32.const {state.place('next_block')}))"  # of the warp's other splits
SETTLES = state.written("settles", "(i32.const 1)")  # others may wait for lanes that leave


class ControlFlow:
    """Writes the code of control flow, from one basic block to another.

    All warps of a group reach the `meetings` before any continues. Paths are kept for
    order-dependent atomics. `reductions` are the results of barriers, by basic block.
    """

    def __init__(
        self,
        places: Places,
        records: RecordCode,
        meetings: frozenset[int],
        pace: PaceCode | None,
        *,
        is_ordered: bool,
    ) -> None:
        self._places, self._records, self._pace = places, records, pace
        self._meetings, self._is_ordered = meetings, is_ordered
        self._block_of = {pc: number for number, pc in enumerate(places.made.starts)}
        self.reductions: dict[int, dict[str, int]] = {}
        self._counting = places.counting
        self._detection = places.detection
        self._in_order = places.in_order
        self._live = places.live
        self._made = places.made
        self._program = places.program
        self._recording = places.recording
        self._rows = places.rows
        self._types = places.types
        self._watching = places.watching

    def code(self, number: int, pc: int, row: Instruction) -> str:
        """Return the code of an instruction at the end of a basic block."""
        return _CODE[OPS[row.op].kind](self, number, pc, row)

    def _go(self, block: str, *, backward: bool) -> str:
        if self._in_order:
            return f"(local.set $pc {block}) (br $yield)"
        turn, behind = "", f"(i32.ge_u (local.get $pc) {_NEXT})"
        if backward:
            left = f"(i32.load offset={layout.TURNS} (local.get $W))"
            turn = (
                f"(local.set $y (i32.sub {left} (i32.const 1)))"
                f" (i32.store offset={layout.TURNS} (local.get $W) (local.get $y))"
            )
            behind = f"(i32.or {behind} (i32.lt_s (local.get $y) (i32.const 0)))"
        if backward and self._pace is not None:
            turn = f"{turn} {self._pace.parks(block)}"
            behind = f"(i32.or {behind} {self._pace.is_ahead})"
        return (
            f"(local.set $pc {block}) {turn} {self._turned(block)} (br_if $yield {behind}) (br $L)"
        )

    @staticmethod
    def yielding(block: int) -> str:
        """Return code before a basic block that ends the turn."""
        return f"(local.set $pc (i32.const {block})) (br $yield)"

    def yield_before(self, block: int, *, settles: bool = False) -> str:
        """Return code before a basic block that ends the turn if another split is at a lower pc.

        In NumPy's order it always ends; it `settles` if other lanes may wait for exiting ones.
        """
        if self._in_order:
            note = SETTLES if settles else ""
            return f"{note} {self.yielding(block)}"
        return f"(if (i32.ge_u (i32.const {block}) {_NEXT}) (then {self.yielding(block)}))"

    def meeting(self, block: int, pc: int) -> str:
        """Return code before a basic block that all warps of a group reach before any continues."""
        if pc >= len(self._rows) or not (pc in self._meetings or waits(self._rows[pc])):
            return ""
        if pc in swapping(self._program):  # others load before it
            return self.yielding(block)
        return f"{state.written('goes_on', '(i32.const 1)')} {self.yielding(block)}"

    def asking(self, number: int) -> str:
        """Return code that tests for missing lanes, if the group requests it."""
        return f"""(if {state.read("asks")} (then {self._named()}
(if (i32.eqz {self._missing("(local.get $M)")}) (then {self._undone(number)}
(local.set $pc (i32.const {number})) (br $yield)))))"""

    def _undone(self, number: int) -> str:
        """Return code that undoes the counts of a basic block."""
        undone = ""
        if self._counting:
            at = 16 * number
            undone = (
                f"(v128.store offset={at} (local.get $C) (i64x2.sub"
                f" (v128.load offset={at} (local.get $C)) (i64x2.replace_lane 1"
                " (v128.const i64x2 1 0) (i64.extend_i32_u (i32.popcnt (local.get $M))))))"
            )
        if self._recording:
            undone += self._records.of_watched(
                state.written("runs", f"(i32.sub {state.read('runs')} (i32.const {RUN_BYTES}))")
            )
        return undone

    def _turned(self, block: str) -> str:
        """Return code that adds a branch to the path, if paths are kept."""
        if not self._is_ordered:
            return ""
        return f"(local.set $h {self._path(block)})"

    def hold(
        self, block: int | str, state: int, barrier: int = 0, lanes: str = "(local.get $M)"
    ) -> str:
        """Return code that stops a split before a basic block, in a state."""
        at = block if isinstance(block, str) else f"(i32.const {block})"
        return (
            f"(call $hold (local.get $W) (local.get $i) {at} {lanes}"
            f" (i32.const {state}) (i32.or (local.get $h) (i32.const {barrier})))"
        )

    def _path(self, block: str) -> str:
        """Return the path of lanes that branch to a block."""
        if not self._is_ordered:
            return "(i32.const 0)"
        mixed = f"(i32.mul (i32.const 0x01000193) (i32.xor (local.get $h) {block}))"
        return f"(i32.shl {mixed} (i32.const 8))"

    def _rest(self, lanes: str) -> str:
        """Take lanes out of the running ones."""
        return f"(local.set $M (i32.and (local.get $M) (i32.xor {lanes} (i32.const -1))))"

    def _branch(self, number: int, pc: int, row: Instruction) -> str:
        target = self._block_of[row.target]
        go = self._go(f"(i32.const {target})", backward=row.target <= pc)
        if row.guard is None:
            return go
        divergent = self._places.add(pc, "divergent", "(i32.const 1)") if row.op == "BRA" else ""
        parting = self._parting(divergent, go, f"(i32.const {target})")
        return f"{parting} {self.yield_before(number + 1)}"

    def _parting(self, divergent: str, go: str, target: str) -> str:
        return f"""(if (local.get $on) (then
  (if (i32.eq (local.get $on) (local.get $M)) (then {go}))
  {divergent}
  (call $append (local.get $W) {target} (local.get $on) {self._path(target)})
  {self._rest("(local.get $on)")}))
  {self._turned("(i32.const -1)")}"""

    def _branch_if_apart(self, number: int, pc: int, row: Instruction) -> str:
        here = "(local.get $on)" if row.guard is not None else "(local.get $M)"
        apart = f"(i32.ne {self._missing(here)} (i32.const 0))"
        if row.detail == "together":
            apart = f"(i32.eqz {apart})"
        target = self._block_of[row.target]
        taken = self._go(f"(i32.const {target})", backward=row.target <= pc)
        parts = [self._named(), f"(local.set $z {apart})"]
        if self._watching:
            chosen = "(i32.sub (i32.const 0) (local.get $z))"
            parts.append(self._records.noted(pc, row, "branch_if_apart", chosen))
        if self._recording:
            chosen = "(i32.and (local.get $on) (i32.sub (i32.const 0) (local.get $z)))"
            parts.append(self._records.decided(pc, "(local.get $on)", chosen))
        return " ".join(
            (*parts, f"(if (local.get $z) (then {taken}))", self.yield_before(number + 1))
        )

    def _named(self, *, with_own: bool = False) -> str:
        """Set $x to the lanes named by any lane's first operand, $z to the lanes named by all.

        `with_own`, each lane must name itself.
        """
        at = f"(i32.load offset={layout.IN} (i32.shl (i32.ctz (local.get $y)) (i32.const 2)))"
        own = "(i32.and (local.get $y) (i32.sub (i32.const 0) (local.get $y)))"
        trap = f"(if (i32.eqz (i32.and {own} {at})) (then (unreachable)))" if with_own else ""
        return f"""(local.set $x (i32.const 0)) (local.set $z (i32.const -1))
(local.set $y (local.get $M))
(loop $named {trap} (local.set $x (i32.or (local.get $x) {at}))
(local.set $z (i32.and (local.get $z) {at}))
(br_if $named (local.tee $y (i32.and (local.get $y) (i32.sub (local.get $y) (i32.const 1))))))"""

    @staticmethod
    def _missing(here: str) -> str:
        live = f"(i32.load offset={layout.LIVE} (local.get $W))"
        return f"(i32.and (i32.and (local.get $x) {live}) (i32.xor {here} (i32.const -1)))"

    def waiting(self, number: int, pc: int, row: Instruction, kind: str) -> str:
        """Return code that blocks a split until all live lanes of its mask arrive."""
        alike = int(corresponding(self._program)[pc])
        waits = state.AT_MASK if alike <= FIRST_EXCHANGE else _WAITS.get(alike, state.AT_COLLECT)
        undone = "" if OPS[row.op].is_replayed else self._undone(number)
        misses = state.written("misses", "(i32.const 1)") if self._in_order else ""
        hold = (
            f"(call $hold (local.get $W) (local.get $i) (i32.const {number}) (local.get $M)"
            f" (i32.const {waits}) (local.get $x))"
        )
        differ = ""
        if kind == "collect":
            apart = f"{self._undone(number)} {self._parted(number)}"
            differ = f"(if (i32.ne (local.get $x) (local.get $z)) (then {apart}))"
        named = self._named(with_own=self._detection is not None and not self._places.steps)
        return f"""{named} {differ} (if {self._missing("(local.get $M)")} (then
(if {state.read("goes_without")} (then {state.written("goes_without", "(i32.const 0)")})
(else {undone} {misses} {hold} (call $gather (local.get $W)) (return)))))"""

    def _parted(self, block: int) -> str:
        """Return code that ends a turn with a split for each set of lanes with equal operands."""
        split = f"(local.get $W) (local.get $i) (i32.const {block}) (local.get $M)"
        return f"(call $part {split}) (return)"

    def _part(self, number: int, pc: int, row: Instruction) -> str:
        return self._parted(number + 1)

    def _jump(self, number: int, pc: int, row: Instruction) -> str:
        if pc not in self._made.jumps:
            self._made.jumps[pc] = (self._places.cell, tuple(row.detail))
            self._places.cell += -(-4 * len(row.detail) // 8) * 8
        at, count = self._made.jumps[pc][0], len(row.detail)
        behind = f"(i32.const {number + 1})"
        jumped = state.written("jumped", behind) if self._in_order else ""
        word = f"(i32.load offset={layout.IN} (i32.shl (i32.ctz (local.get $x)) (i32.const 2)))"
        block = f"(i32.load offset={at} (i32.shl (local.get $z) (i32.const 2)))"
        same = f"(i32.eq (i32.shr_u {word} (i32.const 4)) (local.get $z))"
        # $on: lanes without a target yet; $y: those with the target of the first of them.
        return f"""{jumped} (block $jumped{pc} (loop $target{pc}
(br_if $jumped{pc} (i32.eqz (local.get $on)))
(local.set $x (local.get $on)) (local.set $y (i32.const 0))
(local.set $z (i32.shr_u {word} (i32.const 4)))
(if (i32.ge_u (local.get $z) (i32.const {count})) (then (unreachable)))
(loop $lane{pc}
(if {same} (then (local.set $y (i32.or (local.get $y)
(i32.and (local.get $x) (i32.sub (i32.const 0) (local.get $x)))))))
(br_if $lane{pc} (local.tee $x
(i32.and (local.get $x) (i32.sub (local.get $x) (i32.const 1))))))
(if (i32.lt_s {block} (i32.const 0)) (then (unreachable)))
(if (i32.eq (local.get $y) (local.get $M)) (then
(local.set $x {block}) {self._go("(local.get $x)", backward=True)}))
(call $append (local.get $W) {block} (local.get $y) {self._path(block)})
{self._rest("(local.get $y)")}
(local.set $on (i32.and (local.get $on) (i32.xor (local.get $y) (i32.const -1))))
(br $target{pc}))) {self.yield_before(number + 1)}"""

    def exit(self, number: int, pc: int, row: Instruction) -> str:
        """Return code by which lanes leave."""
        live = f"(i32.load offset={layout.LIVE} (local.get $W))"
        forgets = ""
        if self._made.queue_at:
            forgets = f"(if (i32.eqz {live}) (then (call $forget_copies (local.get $W))))"
        settles = SETTLES if self._in_order else ""
        opens = ""
        if self._made.arrivals_at and not self._in_order:
            opens = "(call $open_named (local.get $W))"
        return f"""(if (local.get $on) (then {settles}
(i32.store offset={layout.LIVE} (local.get $W)
(i32.and {live} (i32.xor (local.get $on) (i32.const -1))))
{forgets}
{self._rest("(local.get $on)")}
(if (local.get $M) (then {self.hold(number + 1, state.READY)})
(else (call $remove (local.get $W) (local.get $i))))
(call $release (local.get $W)) (call $gather (local.get $W)) {opens} (return)))
{self.yield_before(number + 1)}"""

    def _bsync(self, number: int, pc: int, row: Instruction) -> str:
        hold = self.hold(number, state.AT_CONVERGENCE, int(row.detail))
        is_diverged = "(i32.gt_u (i32.load (local.get $W)) (i32.const 1))"
        if self._in_order:
            is_diverged = state.read("is_diverged")
        return f"(if {is_diverged} (then {hold} (call $release (local.get $W)) (return)))"

    def _break(self, number: int, pc: int, row: Instruction) -> str:
        take = f"(call $take (local.get $W) (i32.const {row.detail}) (local.get $on))"
        hold = self.hold(number + 1, state.READY)
        if self._in_order:
            return f"{take} {hold} (call $release (local.get $W)) (return)"
        return (
            f"{take} (if (i32.gt_u (i32.load (local.get $W)) (i32.const 1)) (then"
            f" {hold} (call $release (local.get $W)) (return)))"
        )

    def reduced(self, number: int, pc: int, row: Instruction, predicate: str) -> str:
        """Return code that stores the predicates for a barrier's result."""
        register, kept = row.dst[0], self._places.reserved(np.dtype(np.bool_))
        dtype, is_read = self._types[register], self._live.is_live(register, pc + 1)
        if self._types.get(row.src[0], kept.dtype).kind != "b" or dtype.itemsize not in (1, 4):
            raise NotDerivedError("a barrier's result")
        self.reductions[number] = {
            "predicate": kept.offset,
            "result": self._places.place(register).offset if is_read else 0,
            "how": ("count", "and", "or").index(str(row.detail)),
            "is_mask": dtype.kind == "b",
        }
        before = f"(i32.load offset={kept.offset} (local.get $W))"
        off = "(i32.xor (local.get $on) (i32.const -1))"
        mine = f"(i32.and {predicate} (local.get $on))"
        value = f"(i32.or (i32.and {before} {off}) {mine})"
        return f"(i32.store offset={kept.offset} (local.get $W) {value})"

    def _barrier(self, number: int, pc: int, row: Instruction) -> str:
        return self._held_at_barrier(number, row, self.hold(number, state.AT_BARRIER))

    def _cluster_wait(self, number: int, pc: int, row: Instruction) -> str:
        return self._held_at_barrier(number, row, self.hold(number, state.AT_CLUSTER))

    def _held_at_barrier(self, number: int, row: Instruction, hold: str) -> str:
        """Return code that blocks the active lanes by `hold`; all others continue."""
        wait = f"{hold} (return)"
        if self._in_order:
            wait = f"{SETTLES} {wait}"
        if row.guard is None:
            return wait
        part = hold.replace("(local.get $M)", "(local.get $on)")
        rest = "(i32.and (local.get $M) (i32.xor (local.get $on) (i32.const -1)))"
        if self._in_order:
            part = f"{SETTLES} {part}"
        going = f"(call $append (local.get $W) (i32.const {number + 1}) {rest} (call $new_path))"
        end = self.yield_before(number + 1) if self._in_order else ""
        return f"""(if (local.get $on) (then
(if (i32.eq (local.get $on) (local.get $M)) (then {wait}))
{going} {part} (return))) {end}"""

    def _named_barrier(self, number: int, pc: int, row: Instruction) -> str:
        plain = self._held_at_barrier(number, row, self.hold(number, state.AT_BARRIER))
        here = f"(local.get $W) (local.get $i) (i32.const {number}) (local.get $M)"
        named = f"(call $sync {here} (local.get $x))"
        if self._in_order:  # it opens after the group's turn
            named = f"(call $hold {here} (i32.const {state.AT_NAMED_BARRIER}) (local.get $x))"
        return (
            f"{self._asked(row)} (if (local.get $x) (then"
            f" {self._held_at_barrier(number, row, named)}) (else {plain}))"
            f" {self.yield_before(number + 1)}"
        )

    def _arrive(self, number: int, pc: int, row: Instruction) -> str:
        if self._in_order:
            counted = "(call $count_arrival (local.get $W) (local.get $M) (local.get $x))"
            going = f"(local.set $pc (i32.const {number + 1})) (br $yield)"
            return (
                f"{self._asked(row)} (if (local.get $on) (then {counted}))"
                f" {state.written('arrives', '(i32.const 1)')}"
                f" {state.written('goes_on', '(i32.const 1)')} {going}"
            )
        arrive = "(call $arrive (local.get $W) (local.get $M) (local.get $x))"
        return (
            f"{self._asked(row)} {self.hold(number + 1, state.READY)}"
            f" (if (local.get $on) (then {arrive})) (return)"
        )

    @staticmethod
    def _asked(row: Instruction) -> str:
        """Set $x to the barrier that the lanes name, and how many threads it waits for."""
        form = int(row.detail == "packed")
        return f"(local.set $x (call $asked (local.get $M) (i32.const {form})))"


_CODE: Mapping[str, Callable[[ControlFlow, int, int, Instruction], str]] = {
    "branch": ControlFlow._branch,
    "branch_if_apart": ControlFlow._branch_if_apart,
    "jump": ControlFlow._jump,
    "exit": ControlFlow.exit,
    "bsync": ControlFlow._bsync,
    "break": ControlFlow._break,
    "barrier": ControlFlow._barrier,
    "named_barrier": ControlFlow._named_barrier,
    "arrive": ControlFlow._arrive,
    "part": ControlFlow._part,
    "cluster_wait": ControlFlow._cluster_wait,
}
