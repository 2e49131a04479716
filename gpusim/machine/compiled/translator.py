"""A program as a module of WebAssembly: one function that runs the lanes of a split.

Basic blocks are the targets of one table of branches. Arithmetic is vector code from its
evaluator's graph; accesses and control flow are written here; other instructions call the NumPy
machine's handler. An unsupported instruction ends the run, and NumPy repeats it.
"""

from __future__ import annotations

from itertools import pairwise

from gpusim.isa.ops import OPS
from gpusim.machine.compiled import layout, linking
from gpusim.machine.compiled.access_code import AccessCode
from gpusim.machine.compiled.basic_blocks import BasicBlocks
from gpusim.machine.compiled.control_flow import ControlFlow
from gpusim.machine.compiled.kinds import BULK, BULK_DETAILS, HANDLED, waits
from gpusim.machine.compiled.order import has_several, meetings, ordered
from gpusim.machine.compiled.pace_code import PaceCode
from gpusim.machine.compiled.places import Places, Variant
from gpusim.machine.compiled.record_code import RecordCode
from gpusim.machine.compiled.symbols import NotDerivedError, tracing
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.pace import Pacing
from gpusim.machine.warps import barriers, clocks, state, turns
from gpusim.machine.warps.bulk_copies import BULK_BYTES, GROUPS_BYTES, MOST_BULK
from gpusim.machine.warps.clusters import MEMBER_BYTES
from gpusim.machine.warps.copies import QUEUE_BYTES
from gpusim.program.flow import all_successors, leaders
from gpusim.program.loops import pure, swapping, yielding
from gpusim.program.polling import awaits
from gpusim.wasm.memory import fields_of, packed

_NO_REDUCTION = dict.fromkeys(fields_of(state.Reduction), 0)


def translated(variant: Variant, *, in_order: bool = False) -> Translation:
    """Return a program's module; NotDerivedError for one that NumPy has to run.

    With `in_order` warps take turns as in NumPy's machine.
    """
    with tracing():
        return _Translator(Places(variant, in_order=in_order)).translated()


class _Translator:
    """Translates a program: reserves its memory, then writes its basic blocks."""

    def __init__(self, places: Places) -> None:
        self._places, self._made = places, places.made
        self._program, self._rows = places.program, places.rows
        self._in_order, self._detection = places.in_order, places.detection

    def translated(self) -> Translation:
        """Return the module."""
        made, places = self._made, self._places
        self._reserve()
        shown, met = self._orders()
        made.length = len(self._rows)
        made.starts = self._starts(met)
        places.lay_out()
        self._reserve_totals()
        records, pacing = RecordCode(places), places.pacing
        pace = None if pacing is None else PaceCode(places, pacing)
        self._control = ControlFlow(places, records, met, pace, is_ordered=bool(shown))
        self._blocks = BasicBlocks(places, records, AccessCode(places, shown), self._control, pace)
        bounds = enumerate(pairwise([*made.starts, len(self._rows)]))
        blocks = [self._blocks.block(number, begin, end) for number, (begin, end) in bounds]
        made.warp_bytes = -(-places.at // 64) * 64
        if self._in_order:
            made.flags_at, places.cell = places.cell, places.cell + -(-len(blocks) // 16) * 16
        if self._control.reductions:
            made.reductions_at = places.cell
            places.cell += state.REDUCTION_BYTES * len(blocks)
        made.end = places.cell
        made.text = self._module(blocks)
        return made

    def _orders(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the order-dependent atomics, and the accesses that all warps meet before."""
        pacing = self._places.pacing
        if pacing is not None:
            return frozenset(), pacing.seen
        if self._in_order:
            self._keep_order()
            met = meetings(self._rows) | swapping(self._program).keys()
            return frozenset(), met | self._called_together()
        shown = ordered(self._rows)
        if has_several(self._rows, shown):
            raise NotDerivedError("atomics in the order of several instructions")
        return shown, frozenset()

    def _called_together(self) -> frozenset[int]:
        """Return, in checks, the instructions that read or write others' memory, and those after.

        All warps of a group reach them, and pass them, before any goes on.
        """
        if not self._places.steps:
            return frozenset()
        kinds = HANDLED | BULK
        called = {pc for pc, row in enumerate(self._rows) if OPS[row.op].kind in kinds}
        return frozenset(called | {pc + 1 for pc in called})

    def _starts(self, met: frozenset[int]) -> list[int]:
        """Return the pcs of basic blocks."""
        starts = {0, *leaders(all_successors(self._program)), *met}
        for pc, row in enumerate(self._rows):
            if not OPS[row.op].keeps_to_itself:
                starts.add(pc + 1)
            if waits(row):
                starts |= {pc, pc + 1}
        return sorted(pc for pc in starts if pc < len(self._rows))

    # -- places ------------------------------------------------------------------------

    def _reserve(self) -> None:
        """Reserve memory for the values that instructions keep in a warp or launch."""
        kinds = [OPS[row.op].kind for row in self._rows]
        if any(OPS[row.op].copies == "begins" for row in self._rows):
            self._reserve_queue()
        if "get_token" in kinds:
            self._places.at += state.TOKEN_BYTES * state.MOST_ASIDE
        if any(OPS[row.op].has_number for row in self._rows):
            self._reserve_arrivals()
        if self._program.clusters:
            self._reserve_cluster()
        if "bulk_copy" in kinds and not self._places.steps:
            self._reserve_bulk()
        if self._places.pacing is not None:
            self._reserve_clock(self._places.pacing)

    def _reserve_totals(self) -> None:
        """Reserve memory for sums and for race detection; name the arrays."""
        made, places, rows = self._made, self._places, self._rows
        memories = [row.memory for row in rows if row.memory is not None]
        made.arrays = sorted({one.name for one in memories} - {""})
        made.sum_count = 2 * len(made.starts)
        if self._detection is not None:
            made.ran_at, places.cell = places.cell, places.cell + -(-len(rows) // 8) * 16
            made.lowest_at = {pc: places.cell + 8 * n for n, pc in enumerate(places.sums)}
            places.cell += 8 * len(places.sums)
        local = (one.width_bytes // 4 for one in memories if one.space == "local")
        made.widest = max(local, default=1)

    def _keep_order(self) -> None:
        """Make places for the turns of warps."""
        self._made.keys_at = self._places.at
        self._places.at += turns.KEYS_BYTES

    def _reserve_queue(self) -> None:
        """Make a place for asynchronous copies."""
        self._made.queue_at, self._places.at = self._places.at, self._places.at + QUEUE_BYTES

    def _reserve_arrivals(self) -> None:
        """Make a place for arrivals at named barriers; NotDerivedError if it does not suffice."""
        if self._places.recording:
            raise NotDerivedError("named barriers")
        self._made.arrivals_at, self._places.at = (
            self._places.at,
            self._places.at + barriers.ARRIVALS_BYTES,
        )

    def _reserve_cluster(self) -> None:
        """Make a place for a warp's part of a cluster."""
        self._made.cluster_at, self._places.at = self._places.at, self._places.at + MEMBER_BYTES

    def _reserve_bulk(self) -> None:
        """Make places for bulk copies; NotDerivedError where they do not suffice."""
        copies = [row for row in self._rows if OPS[row.op].kind == "bulk_copy"]
        is_plain = all(row.detail in BULK_DETAILS for row in copies)
        if not is_plain:
            raise NotDerivedError("bulk copies")
        self._places.cell = -(-self._places.cell // 64) * 64
        self._made.bulk_at, self._places.cell = (
            self._places.cell,
            self._places.cell + BULK_BYTES * MOST_BULK,
        )
        self._made.groups_at, self._places.at = self._places.at, self._places.at + GROUPS_BYTES

    def _reserve_clock(self, pacing: Pacing) -> None:
        """Make a place for a warp's clock; NotDerivedError for blocks in clusters."""
        if self._made.cluster_at:
            raise NotDerivedError("clusters by clock")
        late = {register for pc in pacing.late for register in self._rows[pc].dst}
        self._made.timed_at = self._places.at = -(-self._places.at // 16) * 16
        self._made.timed_bytes = clocks.TIMED_BYTES + 8 * len(late)
        self._places.at += self._made.timed_bytes

    # -- text --------------------------------------------------------------------------

    def _module(self, blocks: list[str]) -> str:
        opens = "".join(f"(block $b{k} " for k in reversed(range(len(blocks))))
        table = " ".join(f"$b{k}" for k in range(len(blocks)))
        body = "\n)".join(blocks)
        accesses = "\n".join(access.text for access in self._places.functions.values())
        code = f"""{accesses}
{self._places.start()}
(func $warp (param $W i32) (param $i i32)
(local $C i32) (local $M i32) (local $pc i32) (local $on i32) (local $x i32) (local $y i32)
(local $z i32) (local $g i32) (local $o i32) (local $r i32) (local $d i32) (local $mask v128)
(local $w i64) (local $h i32) {" ".join(self._blocks.variables)}
(local.set $C (i32.load offset={layout.SUMS} (local.get $W)))
(local.set $x (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4))))
(local.set $pc (i32.load offset=64 (local.get $x)))
(local.set $M (i32.load offset=68 (local.get $x)))
(local.set $h (i32.load offset=76 (local.get $x)))
(block $yield (loop $L {opens}(br_table {table} (local.get $pc)))
{body})
(unreachable))
{self._control.hold("(local.get $pc)", state.READY)})"""
        data = f"{self._flags()} {self._table_of_reductions()}"
        return linking.text(code, data, self._places.cell, self._made.shared)

    def _flags(self) -> str:
        """Return the flags of basic blocks as data, for turns in order."""
        if not self._in_order:
            return ""
        program, starts = self._program, self._made.starts
        lone, swaps, yields = pure(program), swapping(program), yielding(program)
        # With faults that do not end a launch, NumPy's machine is always fair.
        self._made.awaits = awaits(program) or bool(swaps) or self._detection is not None
        flags = (
            turns.PURE * bool(lone[pc])
            | turns.SWAPPING * (pc in swaps.values())
            | turns.SWAP * (pc in swaps)
            | turns.WAITING * waits(self._rows[pc])
            | turns.YIELDING * bool(yields[pc])
            | turns.OF_WHOLE_WARPS * self._waits_for_all(pc)
            for pc in starts
        )
        held = "".join(f"\\{flag:02x}" for flag in flags)
        return f'(data (i32.const {self._made.flags_at}) "{held}")'

    def _waits_for_all(self, pc: int) -> bool:
        """Return whether a row is a warp barrier of the source, for all lanes of a warp.

        One that the compiler adds before a block barrier is left to the barrier rules.
        """
        barriers = {row.line for row in self._rows if OPS[row.op].kind == "barrier"}
        return self._rows[pc].detail == "all" and self._rows[pc].line not in barriers

    def _table_of_reductions(self) -> str:
        """Return the results of barriers as data."""
        if not self._control.reductions:
            return ""
        held = b"".join(
            packed(state.Reduction, **self._control.reductions.get(number, _NO_REDUCTION))
            for number in range(len(self._made.starts))
        )
        text = "".join(f"\\{byte:02x}" for byte in held)
        return f'(data (i32.const {self._made.reductions_at}) "{text}")'
