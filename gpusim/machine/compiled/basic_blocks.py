"""Code of basic blocks: segments that only compute, and other instructions between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpusim.isa.ops import OPS, Instruction
from gpusim.machine.compiled.access_code import AccessCode
from gpusim.machine.compiled.control_flow import SETTLES, ControlFlow
from gpusim.machine.compiled.detection import REPORTED
from gpusim.machine.compiled.kinds import (
    ACCESSES,
    BRANCHES,
    CALLED,
    CONSTANTS,
    CONTROL,
    DECIDING,
    HANDLED,
    LEFT,
    OF_WORDS,
    TOLD,
    UNNOTED,
    WIDE_SPACES,
    WITHOUT_OPERANDS,
    ends_turn,
    memory_of,
    waits,
)
from gpusim.machine.compiled.lane_operations import operation
from gpusim.machine.compiled.pace_code import PaceCode
from gpusim.machine.compiled.places import NARROW, Places, converted
from gpusim.machine.compiled.record_code import EVERY, RecordCode
from gpusim.machine.compiled.register_types import WORD
from gpusim.machine.compiled.segment import Operand, Place, Segment
from gpusim.machine.compiled.symbols import NotDerivedError, Symbol
from gpusim.machine.warps import state
from gpusim.machine.warps.clusters import Member
from gpusim.machine.warps.state import OPERAND_BYTES
from gpusim.typing import DType
from gpusim.wasm.memory import offset

WIDE = np.dtype(np.int64)
BYTE = np.dtype(np.uint8)
MOST_NODES = 400  # of a segment: compilers take more than twice as long for twice as many
# The calls of bulk copies, by kind.
_BULK = {
    "bulk_copy": "$begin_bulk (local.get $W) (local.get $on) (i32.const {stores})",
    "commit_bulk": "$commit_bulk (local.get $W)",
    "land_bulk": "$land_bulk (local.get $W) (local.get $on)",
    "await_bulk": "$land_groups (local.get $W) (i32.const {groups})",
}


# Where an instruction is noted, in case that it traps.
_TOLD = (
    state.written("told_pc", "(i32.const {pc})")
    + state.written("told_warp", "(local.get $W)")
    + state.written("told_split", "(local.get $i)")
    + state.written("told_on", "(local.get $on)")
    + "(i32.store offset=68 (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4)))"
    " (local.get $M))"
)


class Alone(NamedTuple):
    """An instruction outside of segments, in basic block `number`.

    `bits` is the predicate that it decides by, or the lanes beyond an array's bounds.
    """

    number: int
    pc: int
    row: Instruction
    kind: str
    bits: str


class BasicBlocks:
    """Writes the code of basic blocks; `variables` are the local variables of the function."""

    def __init__(
        self,
        places: Places,
        records: RecordCode,
        accesses: AccessCode,
        control: ControlFlow,
        pace: PaceCode | None,
    ) -> None:
        self._places, self._records = places, records
        self._accesses, self._control, self._pace = accesses, control, pace
        self.variables: dict[str, None] = {}
        self._kept: list[Operand] = []  # of the step that ends a segment
        self._counting = places.counting
        self._detection = places.detection
        self._in_order = places.in_order
        self._live = places.live
        self._made = places.made
        self._products = places.products
        self._rows = places.rows
        self._steps = places.steps
        self._sums = places.sums
        self._types = places.types
        self._uniform = places.uniform
        self._watching = places.watching

    def block(self, number: int, begin: int, end: int) -> str:
        """Return the code of a basic block."""
        code, pace = [], self._pace
        if pace is not None:
            pace.begin()
            code.append(pace.head(number, begin, self._control.yielding(number)))
        code.append(self._records.begun(number, begin))
        if self._in_order:
            unseen = ("source_branch", "bounds")
            steps = sum(OPS[row.op].kind not in unseen for row in self._rows[begin:end])
            more = f"(i32.add {state.read('steps')} (i32.const {steps}))"
            code.append(state.written("steps", more))
        self._places.begin_block()
        segment = self._places.segment()
        for pc in range(begin, end):
            row = self._rows[pc]
            kind = OPS[row.op].kind
            if pace is not None:
                code.append(pace.passes(pc))
            if self._is_computed(segment, pc, row, kind):
                is_long = len(segment.graph.nodes) > MOST_NODES and pc + 1 < end
                if is_long or self._kept:
                    code.append(self._flushed(segment, pc + 1, self._kept)[0])
                    segment, self._kept = self._places.segment(), []
                continue
            text, segment = self._alone(segment, number, pc, row, kind)
            code.append(text)
        last = end - 1
        if OPS[self._rows[last].op].kind not in CONTROL:
            code.append(self._flushed(segment, end)[0])
            if pace is not None:
                code.append(pace.end())
            if end < len(self._rows) and waits(self._rows[end]) and not self._in_order:
                code.append(self._control.yield_before(number + 1))
        if self._in_order and not ends_turn(OPS[self._rows[last].op].kind):
            code.append(self._control.meeting(number + 1, end))
        return "\n".join(code)

    def _flushed(
        self,
        segment: Segment,
        pc: int,
        operands: list[Operand] | None = None,
        bits: list[Any] | None = None,
        also: tuple[int, ...] = (),
    ) -> tuple[str, list[str]]:
        """Return the code of a segment before a pc."""
        outputs = [
            r
            for r in segment.values
            if (r in also or pc >= len(self._rows) or self._live.is_live(r, pc))
            and r not in self._uniform
        ]
        text, found, variables = segment.text(outputs, operands or (), bits or ())
        self.variables.update(dict.fromkeys(variables))
        return text, found

    def _is_computed(self, segment: Segment, pc: int, row: Instruction, kind: str) -> bool:
        """Add an instruction to a segment; return False for one that cannot be in a segment."""
        values: tuple[Any, ...]
        has_no_effect = kind in ("commit_copies", "await_copies") and not self._made.queue_at
        if kind == "fence" or has_no_effect or (kind == "compute" and not row.dst):
            values = ()
        elif kind in CONSTANTS or (kind == "bank" and not row.src):
            places = [self._places.place_of_constant(pc, row, kind, n) for n in range(len(row.dst))]
            values = tuple(segment.leaf(place) for place in places if place is not None)
        elif kind == "compute":
            found = self._derived(segment, row)
            if found is None:
                return False
            values = found
        else:
            return False
        guard = None if row.guard is None else segment.read(row.guard)
        if guard is not None and self._counting:
            segment.count(guard, row.negated, self._places.add(pc, "on", "(i32.popcnt {})"))
        if self._watching and not OPS[row.op].gives_value:
            lanes = np.bool_(True) if guard is None else guard
            note = f"(local.set $on {{}}) {self._records.noted(pc, row, kind)}"
            segment.count(lanes, guard is not None and row.negated, note)
        if guard is not None and self._records.tells(row):
            segment.count(guard, row.negated, self._records.decided(pc, "{}"))
        if guard is not None and self._detection is not None:
            segment.count(guard, row.negated, self._records.ran(pc, "{}"))
        if self._detection is not None and pc in self._detection.meetings:
            lanes = np.bool_(True) if guard is None else guard
            meets = "(call $meets (local.get $W) {0})"
            if pc in self._detection.whole:
                meets = f"(if (i32.ne {{0}} {EVERY}) (then {REPORTED})) {meets}"
            segment.count(lanes, guard is not None and row.negated, meets)
        if pc in self._steps:
            lanes = np.bool_(True) if guard is None else guard
            self._kept = self._placed(segment, pc, [])
            segment.count(
                lanes, guard is not None and row.negated, self._records.checked(pc, row, "{0}")
            )
        if pc in self._products:
            self._records.watch_product(segment, pc, row, values[0], guard)
        for register, value in zip(row.dst, values, strict=True):
            segment.write(register, value, self._types[register], guard, row.negated)
        return True

    def _derived(self, segment: Segment, row: Instruction) -> tuple[Any, ...] | None:
        """Return the results of an evaluator as symbols, None for one that is called."""
        sources = [segment.read(register) for register in row.src]
        results = _evaluated(row, sources)
        return results if results is not None and segment.has_code(results) else None

    def _stored(
        self, segment: Segment, pc: int, row: Instruction, operands: list[Operand], bits: list[Any]
    ) -> tuple[str, list[str]]:
        """Return the code of a segment before control goes elsewhere."""
        wanted = [
            r
            for r in segment.values
            if r not in self._uniform
            and (
                self._live.is_live(r, pc)
                or (pc + 1 < len(self._rows) and self._live.is_live(r, pc + 1))
                or (row.target >= 0 and self._live.is_live(r, row.target))
            )
        ]
        text, found, variables = segment.text(wanted, operands, bits)
        self.variables.update(dict.fromkeys(variables))
        return text, found

    def _operands(self, segment: Segment, pc: int, row: Instruction, kind: str) -> list[Operand]:
        """Return the operands that an instruction reads from memory."""
        if kind in WITHOUT_OPERANDS and not (
            kind == "bounds" and (self._steps or self._places.telling)
        ):
            return self._placed(segment, pc, [])
        values = [segment.read(register) for register in row.src]
        if OPS[row.op].has_number or kind in OF_WORDS:
            values = [converted(value, WORD) for value in values]
        if kind == "bank":
            offset: Any = np.int64(row.detail[1][1])
            for value in values:
                offset = offset + converted(value.view(NARROW), WIDE)
            values = [offset]
        memory = row.memory
        if memory is not None:
            address = values[0] if values else np.int64(0)
            wide = memory.space in WIDE_SPACES
            if memory.space == "generic" and self._made.shared.detecting:
                raise NotDerivedError("race detection by generic addresses")
            address = converted(address, WIDE if wide else NARROW)
            if memory.offset:
                kind_of = np.int64 if wide else np.int32
                address = address + kind_of(memory.offset)
            stored = values[1:] if values else []
            dtype = memory.dtype
            if kind == "atomic":
                stored = _atomic_operands(stored, dtype, by_address=memory.by_address)
                stored += self._addend(segment, pc, row)
            else:
                stored = [_stored_value(value, dtype) for value in stored]
            values = [address, *stored]
        return self._placed(segment, pc, values)

    def _placed(self, segment: Segment, pc: int, values: Sequence[Any]) -> list[Operand]:
        """Return the operands of an instruction, and after them what its step keeps."""
        values = [*values, *map(segment.read, self._steps.get(pc, ()))]
        if pc in self._places.swaps:  # kept after it
            values += [np.zeros((), self._types[one])[()] for one in self._rows[pc].dst]
        self._made.operands[pc] = [v.dtype for v in values]
        begin, _ = self._places.exchanged_at(pc, len(values))
        return [Operand(begin + OPERAND_BYTES * n, value) for n, value in enumerate(values)]

    def _addend(self, segment: Segment, pc: int, row: Instruction) -> list[Any]:
        """Return what a compare-and-swap adds to the number that it expects, if it is a sum."""
        addition = self._sums.get(pc, -1)
        if addition < 0:
            return []
        expected, made = row.src[1 : 1 + len(row.dst)], self._rows[addition]
        zero = np.uint32(0)
        words = _evaluated(made, [zero if r in expected else segment.read(r) for r in made.src])
        if words is None or not segment.has_code(words):
            raise NotDerivedError(f"a sum by {made.op}")
        numbers = [one if isinstance(one, Symbol) else np.reshape(one, -1)[0] for one in words]
        return _atomic_operands(numbers, memory_of(row).dtype, by_address=True)

    def _receive(self, segment: Segment, pc: int, row: Instruction, kind: str, guard: Any) -> None:
        """Read the results of an instruction at the begin of a segment."""
        fresh = None if row.guard is None else segment.read(row.guard)
        _, begin = self._places.exchanged_at(pc, len(self._made.operands[pc]))
        for number, register in enumerate(row.dst):
            dtype = self._types[register]
            loaded = dtype
            if kind == "load":
                assert row.memory is not None
                loaded = row.memory.dtype
            held = BYTE if loaded.kind == "b" and kind == "load" else loaded
            at = begin + OPERAND_BYTES * number
            value: Any = segment.leaf(Place(at, held, "absolute"))
            segment.write(register, value, dtype, fresh, row.negated)

    def _called(self, pc: int, row: Instruction) -> str:
        """Return a call of the machine's handler."""
        # The split's lanes are kept: others may have left it since its turn began.
        call = (
            "(i32.store offset=68 (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4)))"
            " (local.get $M))"
            f"(call $host (i32.const {pc}) (local.get $W) (local.get $i) (local.get $on))"
        )
        return f"(if (local.get $on) (then {call}))" if row.guard is not None else call

    def _alone(
        self, segment: Segment, number: int, pc: int, row: Instruction, kind: str
    ) -> tuple[str, Segment]:
        """Return the code of a segment and of the instruction after it, and a new segment."""
        guard = None if row.guard is None else segment.read(row.guard)
        operands, bits = self._operands(segment, pc, row, kind), []
        if guard is not None:
            bits.append(guard)
        decided = bool(row.src) and kind in DECIDING
        if decided:
            bits.append(segment.read(row.src[0]))
        if kind == "bounds":
            bits.append(_beyond(self._places, segment, pc, row))
        # A branch leads elsewhere: registers that are live there are stored before it.
        if kind in CONTROL:
            code, found = self._stored(segment, pc, row, operands, bits)
        else:
            also = () if row.guard is None else (*row.dst, row.guard)
            code, found = self._flushed(segment, pc + 1, operands, bits, also)
        on = "(local.get $M)"
        if guard is not None:
            lanes = f"(i32.xor {found[0]} (i32.const -1))" if row.negated else found[0]
            on = f"(i32.and (local.get $M) {lanes})"
        if kind not in _CODE:
            raise NotDerivedError(kind)
        alone = Alone(number, pc, row, kind, found[-1] if decided or kind == "bounds" else "")
        before = self._before(alone, found[-1] if decided else "")
        if self._places.telling:
            before = f"{_TOLD.format(pc=pc)} {before}"
        own = _CODE[kind](self, alone)
        following = self._places.segment()
        if kind not in CONTROL:
            self._receive(following, pc, row, kind, guard)
        return "\n".join((code, f"(local.set $on {on})", before, own)), following

    def _before(self, alone: Alone, condition: str) -> str:
        """Return code that counts and records an instruction before it runs."""
        number, pc, row, kind, _ = alone
        parts, has_guard = [], row.guard is not None
        if has_guard:
            parts.append(self._places.add(pc, "on", "(i32.popcnt (local.get $on))"))
        is_told = not OPS[row.op].gives_value and kind not in UNNOTED
        if self._in_order and waits(row):
            parts.append(self._control.asking(number))
        if self._watching and is_told:
            parts.append(self._records.noted(pc, row, kind, condition))
        if waits(row):
            parts.append(self._control.waiting(number, pc, row, kind))
        if has_guard and self._records.tells(row) and kind != "branch_if_apart":
            taken = "(local.get $on)" if kind in BRANCHES else "(i32.const 0)"
            parts.append(self._records.decided(pc, "(local.get $on)", taken))
        if self._detection is not None:
            parts.append(self._records.detected(self._detection, pc, row, condition))
        return "\n".join(parts)

    # -- by kind -----------------------------------------------------------------------

    def _accessed(self, alone: Alone) -> str:
        _, pc, row, kind, _ = alone
        slot = self._places.slot(memory_of(row).space)
        return "\n".join(
            (
                self._accesses.access(pc, row, kind, slot),
                self._records.cleared(row),
                self._records.swapped(pc, row),
                self._records.added(pc, row),
                "" if self._pace is None else self._pace.accessed(pc, row, kind),
                self._records.told(pc, row, kind, slot),
            )
        )

    def _commits_copies(self, alone: Alone) -> str:
        return "(call $commit_copies (local.get $W) (local.get $on))"

    def _awaits_copies(self, alone: Alone) -> str:
        if alone.row.detail is None:
            return ""
        groups = f"(i32.const {int(alone.row.detail)})"
        return f"(call $land_copies (local.get $W) (local.get $on) {groups})"

    def _copies_in_bulk(self, alone: Alone) -> str:
        if self._steps:
            return self._called(alone.pc, alone.row)
        detail = alone.row.detail
        call = f"(call {_BULK[alone.kind].format(stores=int(detail == 'store'), groups=detail)})"
        if alone.kind == "bulk_copy":
            call = (
                f"(local.set $x {call}) {self._places.add(alone.pc, 'sectors', '(local.get $x)')}"
            )
        return f"(if (local.get $on) (then {call}))"

    def _calls(self, alone: Alone) -> str:
        if alone.kind == "call_driver" and self._detection is not None and not self._steps:
            return self._leaves(alone)
        return "" if alone.kind in TOLD else self._called(alone.pc, alone.row)

    def _arrives_in_cluster(self, alone: Alone) -> str:
        at = f"offset={self._made.cluster_at + offset(Member, 'arrived')} (local.get $W)"
        arrived = f"(i32.store {at} (i32.or (i32.load {at}) (local.get $on)))"
        return f"{arrived} {SETTLES if self._in_order else ''}"

    def _decides(self, alone: Alone) -> str:
        return self._accesses.decision(alone.pc, alone.bits) if alone.bits else ""

    def _controls(self, alone: Alone) -> str:
        number, pc, row, kind, bits = alone
        reduced = ""
        if kind == "barrier" and row.dst:
            reduced = self._control.reduced(number, pc, row, bits)
        return f"{reduced} {self._control.code(number, pc, row)}"

    def _gives_token(self, alone: Alone) -> str:
        return f"(call $give (local.get $W) (i32.const {alone.row.detail}) (local.get $on))"

    def _moves_token(self, alone: Alone) -> str:
        barrier = f"(i32.const {int(alone.row.detail)})"
        return f"(call ${alone.kind} (local.get $W) {barrier} (local.get $on))"

    def _collects(self, alone: Alone) -> str:
        if OPS[alone.row.op].checks_mask:
            raise NotDerivedError(alone.kind)
        return ""

    def _joins(self, alone: Alone) -> str:
        if not OPS[alone.row.op].checks_mask:
            return ""
        called = f"(then {self._called(alone.pc, alone.row)})"
        return f"(if (i32.eqz (call $are_all (local.get $on))) {called})"

    def _looks_up(self, alone: Alone) -> str:
        return f"{self._accesses.indexed(alone.row)} {self._records.looked_up(alone.pc)}"

    def _checks_bounds(self, alone: Alone) -> str:
        wrong = f"(i32.and (local.get $on) {alone.bits})"
        able = f"(i32.xor (local.get $on) {wrong})"
        step = "(unreachable)"
        if self._steps:
            step = self._records.checked(alone.pc, alone.row, "(local.get $on)", able)
        return f"(if {wrong} (then {step}))"

    def _traps(self, alone: Alone) -> str:
        number, pc, row, *_ = alone
        if self._steps:
            return self._control.exit(number, pc, row)
        return f"{self._leaves(alone)} {self._control.yield_before(number + 1, settles=True)}"

    def _leaves(self, alone: Alone) -> str:
        return "(if (local.get $on) (then (unreachable)))"

    def _among_lanes(self, alone: Alone) -> str:
        """Return an operation of lanes, or a call where it has no code."""
        _, pc, row, *_ = alone
        called = self._called(pc, row)
        code = operation(row, self._made.operands[pc][: len(row.src)])
        if not code:
            return called
        if not OPS[row.op].checks_mask:
            return code
        return f"(if (call $are_all (local.get $on)) (then {code}) (else {called}))"


_CODE: Mapping[str, Callable[[BasicBlocks, Alone], str]] = {
    **dict.fromkeys(ACCESSES, BasicBlocks._accessed),
    "commit_copies": BasicBlocks._commits_copies,
    "await_copies": BasicBlocks._awaits_copies,
    **dict.fromkeys(_BULK, BasicBlocks._copies_in_bulk),
    "cluster_arrive": BasicBlocks._arrives_in_cluster,
    "source_branch": BasicBlocks._decides,
    **dict.fromkeys(CONTROL, BasicBlocks._controls),
    "bssy": BasicBlocks._gives_token,
    **dict.fromkeys(("get_token", "set_token"), BasicBlocks._moves_token),
    **dict.fromkeys((*CALLED, "compute"), BasicBlocks._among_lanes),
    "collect": BasicBlocks._collects,
    "warpsync": BasicBlocks._joins,
    "bank": BasicBlocks._looks_up,
    "bounds": BasicBlocks._checks_bounds,
    **dict.fromkeys(LEFT, BasicBlocks._leaves),
    **dict.fromkeys((*HANDLED, *TOLD), BasicBlocks._calls),
    "trap": BasicBlocks._traps,
}


def _beyond(places: Places, segment: Segment, pc: int, row: Instruction) -> Any:
    """Return whether an index is outside its axis."""
    _, space, shape = row.detail
    beyond: Any = np.bool_(False)
    for axis, register in enumerate(row.src):
        index = segment.read(register)
        size = (
            shape[axis]
            if space != "global"
            else segment.leaf(places.cell_of(("axis", pc, axis), NARROW))
        )
        if not isinstance(index, Symbol) and not isinstance(size, Symbol):
            wrong: Any = np.bool_(not 0 <= int(index) < int(size))
        else:
            wrong = (index < 0) | (index >= size)
        beyond = wrong | beyond
    return beyond


def _stored_value(value: Any, dtype: DType) -> Any:
    """Return a value as the elements that it is stored to: a byte for a predicate."""
    stored = converted(value, dtype)
    return converted(stored, BYTE) if dtype.kind == "b" else stored


def _atomic_operands(values: list[Any], dtype: DType, *, by_address: bool) -> list[Any]:
    """Return an atomic's operands: numbers, or registers of their bits."""
    if not by_address:
        return [converted(value, dtype) for value in values]
    if dtype.itemsize == 4:
        return [value.view(dtype) for value in values]
    if dtype.itemsize > 8:
        return [converted(value, WORD) for value in values]
    pairs: Iterator[tuple[Any, Any]] = zip(values[::2], values[1::2], strict=True)
    made = []
    for low, high in pairs:
        upper = converted(high, np.dtype(np.uint64)) << np.uint64(32)
        made.append((upper | converted(low, np.dtype(np.uint64))).view(dtype))
    return made


def _evaluated(row: Instruction, sources: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return the results of an evaluator, None without any."""
    evaluate = OPS[row.op].evaluate
    if evaluate is None:
        return None
    try:
        if any(isinstance(source, Symbol) for source in sources):
            made = evaluate(row, *sources)
        else:
            made = evaluate(row, *(np.asarray(s).reshape(1, 1, 1) for s in sources))
    except (NotDerivedError, TypeError, ValueError, AttributeError, IndexError):
        return None
    return made if isinstance(made, tuple) else (made,)
