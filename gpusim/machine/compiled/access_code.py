"""Code of accesses to memory: a call of the access's function, with its counts."""

from __future__ import annotations

from dataclasses import replace

from gpusim.isa.ops import OPS, SPIN, Instruction
from gpusim.launch.events import Touched
from gpusim.machine.compiled import layout
from gpusim.machine.compiled.accesses import ATOMICS, FLOATING, WIDE_ATOMICS, Access, Constants
from gpusim.machine.compiled.kinds import memory_of
from gpusim.machine.compiled.places import Places
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.warps import state


class AccessCode:
    """Writes the code of accesses; `ordered` are the order-dependent atomics."""

    def __init__(self, places: Places, ordered: frozenset[int]) -> None:
        self._places, self._ordered = places, ordered
        self._functions = places.functions
        self._counting = places.counting
        self._in_order = places.in_order
        self._made = places.made
        self._pairs = places.pairs
        self._sums = places.sums

    def access(self, pc: int, row: Instruction, kind: str, slot: int) -> str:
        """Return the code of an access by the lanes that are on."""
        memory = memory_of(row)
        access = self._function(pc, row, kind)
        parts = [self._in_turn(pc)]
        if self._in_order and kind != "load":
            parts.append(state.written("idle", "(i32.const 0)"))
        if row.guard is not None:
            parts.append(self._places.add(pc, "any", "(i32.const 1)"))
        if memory.space == "global":
            self._functions.setdefault(access.name, access)
            sectors = (
                f"(call {access.name} (local.get $on) (i32.const {self._places.entry(memory)})"
                f" (i32.const {int(memory.by_address)}) {self._marks(row, kind)}"
                f" (i32.const {slot}))"
            )
            parts.append(f"(local.set $x {sectors})")
            if kind == "atomic":
                parts.append(self._replays(pc, "(call $most_alike (local.get $on))"))
            else:
                parts.append(self._places.add(pc, "sectors", "(local.get $x)"))
        elif memory.space == "generic":
            access = replace(access, cluster_at=self._made.cluster_at)
            self._functions.setdefault(access.name, access)
            parts.append(
                f"(call {access.name} (local.get $on) (local.get $W) {self._places.windows()})"
            )
        else:
            at, limit = self._places.own_memory(row)
            warp = ""
            if OPS[row.op].asynchronous:
                access, warp = replace(access, kind="begin"), "(local.get $W)"
            self._functions.setdefault(access.name, access)
            parts.append(
                f"(call {access.name} (local.get $on) {at} (i32.const {memory.base}) {limit}"
                f" (i32.const {slot}) {warp})"
            )
            if memory.space == "shared":
                parts.append(self._served(pc, row, kind, slot))
        return f"(if (local.get $on) (then {' '.join(parts)}))"

    def _in_turn(self, pc: int) -> str:
        """Return code that ends the run if an order-dependent atomic is out of order."""
        if pc not in self._ordered:
            return ""
        kept, self._places.cell = self._places.cell, self._places.cell + 8
        self._made.orders.append(kept)
        return (
            f"(if (i32.eqz (call $is_in_order (local.get $h) (i32.const {kept})))"
            " (then (unreachable)))"
        )

    def _function(self, pc: int, row: Instruction, kind: str) -> Access:
        """Return the function of an access; NotDerivedError where it has no code."""
        memory = memory_of(row)
        dtype = memory.dtype
        operation = str(row.detail) if kind == "atomic" else kind
        signed = dtype.kind == "i" and (kind == "atomic" or dtype.itemsize < 4)
        access = Access(
            operation, memory.space, dtype.itemsize, memory.count, signed and kind != "store"
        )
        if kind != "atomic":
            if dtype.itemsize > 8:
                raise NotDerivedError(f"an access of {dtype}")
            return access
        served = WIDE_ATOMICS if dtype.itemsize > 8 else tuple(ATOMICS)
        is_of_words = dtype.itemsize in (4, 8, 16) and memory.count == 1
        is_float = dtype.kind == "f"
        if operation not in served or not is_of_words or (is_float and operation not in FLOATING):
            raise NotDerivedError(f"an atomic {operation} of {dtype}")
        results = max(len(row.dst), pc in self._sums)
        return replace(access, results=results, floating=is_float, tried=row.op == SPIN)

    def indexed(self, row: Instruction) -> str:
        """Return code that loads words of a constant bank, or a part of one, by offset."""
        number, _, size, signed = row.detail[1]
        access = Constants(size if size < 4 else 4, len(row.dst), bool(signed) and size < 4)
        self._functions.setdefault(access.name, access)
        array = row.array_of_constants
        place = (number, 0, None) if array is None else (number, array.first, array.end)
        if place not in self._made.banks:
            self._made.banks[place] = self._places.cell
            self._places.cell += layout.BANK_BYTES
        slot = self._places.slot("global")
        call = (
            f"(call {access.name} (local.get $on) (i32.const {self._made.banks[place]})"
            f" (i32.const {slot}))"
        )
        return f"(if (local.get $on) (then {call}))"

    def _served(self, pc: int, row: Instruction, kind: str, slot: int) -> str:
        """Return the count of wavefronts of an access to shared memory."""
        if not self._counting:
            return ""
        if kind == "atomic":
            if OPS[row.op].by_word:
                call = (
                    "(i32.wrap_i64 (call $wavefronts (local.get $on) (i32.const 1) (i32.const 0)))"
                )
            else:
                call = "(call $most_of_a_bank (local.get $on))"
            return self._replays(pc, call)
        assert row.memory is not None
        words = max(1, row.memory.width_bytes // 4)
        pairs = self._pairs if row.is_load else 0
        upper = "(i32.wrap_i64 (i64.shr_u (local.get $w) (i64.const 32)))"
        return " ".join(
            (
                f"(local.set $w (call $wavefronts_again (local.get $on) (i32.const {words})"
                f" (i32.const {pairs}) (i32.const {slot})))",
                self._places.add(pc, "wavefronts", "(i32.wrap_i64 (local.get $w))"),
                self._places.add(pc, "least", upper),
            )
        )

    def _replays(self, pc: int, services: str) -> str:
        if not self._counting:
            return ""
        more = "(i32.sub (local.get $y) (i32.ne (local.get $y) (i32.const 0)))"
        return f"(local.set $y {services}) {self._places.add(pc, 'replays', more)}"

    def _marks(self, row: Instruction, kind: str) -> str:
        """Return where an access marks its sectors, 0 if it does not."""
        assert row.memory is not None
        if not self._counting or kind == "atomic":
            return "(i32.const 0)"
        key = Touched(int(row.line), kind, row.memory.name)
        if key not in self._made.touched:
            self._made.touched.append(key)
        number = self._made.touched.index(key)
        return (
            f"(i32.add {state.read('marks')}"
            f" (i32.mul (i32.const {number}) {state.read('mark_bytes')}))"
        )

    def decision(self, pc: int, condition: str) -> str:
        """Count a decision of the source."""
        if not self._counting:
            return ""
        taken = f"(local.set $x (i32.and (local.get $on) {condition}))"
        differ = (
            "(i32.and (i32.ne (local.get $x) (i32.const 0))"
            " (i32.ne (local.get $x) (local.get $on)))"
        )
        return " ".join(
            (
                taken,
                self._places.add(pc, "any", "(i32.ne (local.get $on) (i32.const 0))"),
                self._places.add(pc, "divergent", differ),
            )
        )
