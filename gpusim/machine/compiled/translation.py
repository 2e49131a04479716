"""A program as a module of WebAssembly: one function that runs the lanes of a split.

Basic blocks are the targets of one table of branches. Arithmetic is vector code from its
evaluator's graph; accesses and control flow are written here; other instructions call the NumPy
machine's handler. An unsupported instruction ends the run, and NumPy repeats it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, SPIN, Instruction, Memory, Program
from gpusim.launch.events import Sums, Touched
from gpusim.machine.compiled import layout, linking
from gpusim.machine.compiled.accesses import (
    ATOMICS,
    COMMUTATIVE,
    FLOATING,
    WIDE_ATOMICS,
    Access,
    Constants,
)
from gpusim.machine.compiled.detection import REPORTED, Comparison, Detection, kept_operands
from gpusim.machine.compiled.lane_operations import operation
from gpusim.machine.compiled.linking import Shared
from gpusim.machine.compiled.register_types import WORD, register_types
from gpusim.machine.compiled.segment import Operand, Place, Segment
from gpusim.machine.compiled.symbols import NotDerivedError, Symbol, tracing
from gpusim.machine.compiled.vectors import constant, is_wide
from gpusim.machine.warps import barriers, state, turns
from gpusim.machine.warps.accesses import ARRAY_BYTES, ARRAYS
from gpusim.machine.warps.bulk_copies import BULK_BYTES, GROUPS_BYTES, MOST_BULK
from gpusim.machine.warps.clusters import MEMBER_BYTES, Member
from gpusim.machine.warps.copies import QUEUE_BYTES
from gpusim.machine.warps.steps import RUN_BYTES
from gpusim.program.flow import all_successors, leaders
from gpusim.program.liveness import Liveness
from gpusim.program.loops import pure, swapping
from gpusim.program.polling import awaits
from gpusim.typing import Array, DType
from gpusim.wasm.memory import fields_of, offset, packed

WIDE = np.dtype(np.int64)
NARROW = np.dtype(np.int32)
AXES = "xyz"
WIDE_SPACES = ("global", "generic")  # with addresses of 64 bits
MOST_NODES = 400  # of a segment: compilers take more than twice as long for twice as many
BYTE = np.dtype(np.uint8)
_NEXT = f"(i32.load (i32.const {state.place('next_block')}))"  # of the warp's other splits
_SETTLES = state.written("settles", "(i32.const 1)")  # others may wait for lanes that leave
_EVERY = f"(i32.load offset={layout.LANES} (local.get $W))"  # the lanes that a warp has
# Kinds whose handler of the machine is called for one warp at a time.
CALLED = frozenset((
    "shuffle", "vote", "match", "elect", "reduce_lanes", "differs", "first_lane", "warpsync",
))  # fmt: skip
# Kinds that end the run where they are reached.
LEFT = frozenset(("trap", "call_driver"))
CONTROL = frozenset((
    "branch", "branch_if_apart", "jump", "exit", "bsync", "break", "barrier", "named_barrier",
    "arrive", "part", "cluster_wait",
))  # fmt: skip
WITHOUT_OPERANDS = frozenset((
    "branch", "exit", "bsync", "break", "barrier", "bssy", "source_branch", "bounds", "trap",
    "call_driver", "commit_copies", "await_copies", "cluster_arrive", "cluster_wait",
    "commit_bulk", "await_bulk",
))  # fmt: skip
REFUSED = frozenset((
    "clock", "texture", "surface_load", "surface_store", "matrix_product", "rows_to_fragments",
    "fragments_to_rows", "warpgroup_product", "warpgroup_commit",
    "warpgroup_wait",
))  # fmt: skip
# The calls of bulk copies, by kind.
_BULK = {
    "bulk_copy": "$begin_bulk (local.get $W) (local.get $on) (i32.const {stores})",
    "commit_bulk": "$commit_bulk (local.get $W)",
    "land_bulk": "$land_bulk (local.get $W) (local.get $on)",
    "await_bulk": "$land_groups (local.get $W) (i32.const {groups})",
}
_NO_REDUCTION = dict.fromkeys(fields_of(state.Reduction), 0)


@dataclass
class Translation:
    """A module's text, and the places of registers, constants and sums in its memory.

    `starts` are the pcs of basic blocks. `registers` lie in a warp's memory, and so do `specials`,
    special registers by the pc that reads them first; `cells` are constants of the launch, by
    place: a pc, or a bank and an offset. `arrays` are named in the program. `sums` are those of a
    warp, by pc and name, as indices of 64-bit words (`rows_of_sums` by pc, once they are asked
    for); block k has executions and lanes at words 2 k and 2 k + 1. `jumps` are places of tables
    of jump targets, with the pcs, `banks` those of entries of constant banks that are indexed, from
    a first byte to an end (None for all), `orders` those of paths to atomics that show their order.
    A warp's queue of asynchronous copies lies at `queue_at`, 0 if there are none. Where warps take
    turns as in NumPy's machine (`shared.in_order`), the keys of a warp's splits lie at `keys_at`,
    flags of basic blocks at `flags_at`; `awaits` tells that warps wait for others. Results of
    barriers are listed at `reductions_at`, a warp counts arrivals at named barriers at
    `arrivals_at`, and has its part of a cluster at `cluster_at`; bulk copies are kept at
    `bulk_at`, the number of a warp's groups of them at `groups_at`; they are 0 without any.
    `touched` are the accesses with marks of their sectors. With race detection, `ran_at` is where a
    byte for each instruction tells that its basic block ran (of the block's first), and after these
    one that it ran for some lane (if it has a guard or may have a fault); `lowest_at` are the
    places of the lowest element to which several threads add, counted from 1, by the pc of a sum.
    `constants` are the cells as `memory.py` sets them, and `begun` the warps at their start in the
    last launch, with what of it they depend on, once it has.
    """

    text: str = ""
    starts: list[int] = field(default_factory=list)
    registers: dict[int, Place] = field(default_factory=dict)
    specials: dict[int, Place] = field(default_factory=dict)
    cells: dict[Any, Place] = field(default_factory=dict)
    arrays: list[str] = field(default_factory=list)
    sums: dict[tuple[int, str], int] = field(default_factory=dict)
    jumps: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    banks: dict[tuple[int, int, int | None], int] = field(default_factory=dict)
    orders: list[int] = field(default_factory=list)
    operands: dict[int, list[DType]] = field(default_factory=dict)
    touched: list[Touched] = field(default_factory=list)
    constants: Any = None
    begun: Any = None
    rows_of_sums: dict[int, Sums] = field(default_factory=dict)
    length: int = 0
    warp_bytes: int = 0
    sum_count: int = 0
    ran_at: int = 0
    lowest_at: dict[int, int] = field(default_factory=dict)
    queue_at: int = 0
    shared: Shared = linking.PLAIN
    keys_at: int = 0
    flags_at: int = 0
    awaits: bool = False
    reductions_at: int = 0
    arrivals_at: int = 0
    cluster_at: int = 0
    bulk_at: int = 0
    groups_at: int = 0
    widest: int = 1  # words of a lane's access to local memory
    end: int = 0

    @cached_property
    def jump_tables(self) -> list[tuple[int, Array]]:
        """The place and the bytes of each table of jump targets: numbers of basic blocks, or -1."""
        starts = {pc: number for number, pc in enumerate(self.starts)}
        blocks = ((at, [starts.get(pc, -1) for pc in to]) for at, to in self.jumps.values())
        return [(at, np.array(to, np.int32).view(np.uint8)) for at, to in blocks]


def translated(
    program: Program,
    constants: dict[int, DType],
    *,
    pairs: bool,
    counting: bool,
    watching: bool,
    recording: bool = False,
    detection: Detection | None = None,
    in_order: bool = False,
) -> Translation:
    """Return a program's module; NotDerivedError for one that NumPy has to run.

    `constants` are the types of the launch's constants by pc. With `pairs`, a load's wavefronts may
    serve twice the lanes (compute capability 7.0). With `counting`, sums are stored and sectors
    marked; with `watching`, steps of some warps are written down, with `recording` those of all, as
    columns. With `detection` accesses are compared, to find races, or the steps of a check written
    down. With `in_order` warps take turns as in NumPy's machine.
    """
    with tracing():
        return _Translator(
            program, constants, pairs, counting, watching, recording, detection, in_order
        ).translated()


def needs_order(program: Program) -> bool:
    """Return whether the order of warps shows for sure.

    Warps wait for others elsewhere than at barriers, or swap until they get through, or an element
    is changed by several atomics of which one shows its order.
    """
    rows = program.instructions
    return awaits(program) or bool(swapping(program)) or _has_several(rows, _ordered(rows))


class _Translator:
    def __init__(
        self,
        program: Program,
        constants: dict[int, DType],
        pairs: bool,
        counting: bool,
        watching: bool,
        recording: bool,
        detection: Detection | None,
        in_order: bool,
    ) -> None:
        self._in_order = in_order
        self._watching, self._recording = watching, recording
        self._detection = detection
        self._shifts = {} if detection is None else dict(detection.accesses)
        self._sums = {} if detection is None else dict(detection.sums)
        self._steps = {} if detection is None else dict(detection.steps)
        self._products = {} if detection is None else dict(detection.products)
        self._program = program
        self._rows = program.instructions
        self._constants = constants
        self._pairs = int(pairs)
        self._counting = counting
        self._types = register_types(program, constants)
        self._live = Liveness(program)
        self._made = Translation(
            shared=Shared(
                recording, detection is not None and not self._steps, bool(self._steps), in_order
            )
        )
        self._at = state.TOKENS + state.MOST_TOKENS_BYTES * program.barriers
        self._cell = layout.CELLS
        self._accesses: dict[str, Access | Comparison | Constants] = {}
        self._variables: dict[str, None] = {}
        self._specials: dict[Any, Place] = {}
        self._uniform: dict[int, Place] = {}
        self._between: dict[int, Place] = {}
        self._ordered: frozenset[int] = frozenset()
        self._meetings: frozenset[int] = frozenset()
        self._reductions: dict[int, dict[str, int]] = {}  # by basic block

    # -- places ------------------------------------------------------------------------

    def _place(self, register: int) -> Place:
        """Return a register's place: in the warp, or one shared by all warps within a block.

        Splits stop only between basic blocks. A register that is not live there needs no place in
        each warp.
        """
        known = self._made.registers if register in self._crossing else self._between
        found = known.get(register)
        if found is None:
            dtype = self._types[register]
            reserved = self._reserved if known is self._made.registers else self._reserved_between
            found = known[register] = reserved(dtype)
        return found

    def _reserved_between(self, dtype: DType) -> Place:
        """Return a place within a basic block, to be reused by others."""
        _fitting(dtype)
        place = Place(self._between_at, dtype, "absolute")
        self._between_at += place.bytes
        return place

    def _between_bytes(self, rows: Sequence[Instruction]) -> int:
        """Return the bytes of the registers that are of no warp, in a basic block."""
        named = {r for row in rows for r in (*row.dst, *row.src, row.guard) if r is not None}
        mine = named & self._types.keys() - self._crossing
        return sum(Place(0, self._types[register]).bytes for register in mine)

    def _reserved(self, dtype: DType) -> Place:
        _fitting(dtype)
        place = Place(self._at, dtype)
        self._at += place.bytes
        return place

    def _fixed(self, register: int) -> Any:
        """Return the value of a register that is never written, None for all others."""
        if register in self._program.immediates:
            return self._program.immediates[register]
        if register in self._program.constants:
            return self._cell_of(("bank", *self._program.constants[register]), WORD)
        if register not in self._types:
            return np.int32(0)
        return self._uniform.get(register)

    def _find_uniform(self) -> None:
        """Find the registers that hold a constant of the launch or a special register, always.

        Nothing but one instruction writes them, for all lanes, before any reads them.
        """
        written = Counter(r for row in self._rows for r in row.dst)
        for pc, row in enumerate(self._rows):
            kind = OPS[row.op].kind
            if row.guard is not None or (kind == "bank" and row.src):
                continue
            for number, register in enumerate(row.dst):
                if written[register] > 1 or self._live.is_live(register, 0):
                    continue
                place = self._place_of_constant(pc, row, kind, number)
                if place is not None and place.dtype == self._types[register]:
                    self._uniform[register] = place

    def _place_of_constant(self, pc: int, row: Instruction, kind: str, number: int) -> Place | None:
        """Return the place of an instruction's value that is equal in every warp or launch."""
        if kind == "special":
            return self._special(pc, row)
        if kind == "constant":
            return self._cell_of(("constant", pc, 0), self._constants[pc])
        return self._cell_of(("words", pc, number), WORD) if kind == "bank" else None

    def _cell_of(self, key: Any, dtype: DType) -> Place:
        found = self._made.cells.get(key)
        if found is None:
            if dtype.itemsize > 8:
                raise NotDerivedError(f"a constant of {dtype}")
            found = self._made.cells[key] = Place(self._cell, dtype, "cell")
            self._cell += 8
        return found

    def _segment(self) -> Segment:
        return Segment(self._place, self._fixed)

    def _sum(self, pc: int, name: str) -> int:
        """Return the offset of a sum among a warp's."""
        index = self._made.sums.setdefault((pc, name), self._made.sum_count)
        if index == self._made.sum_count:
            self._made.sum_count += 1
        return 8 * index

    def _add(self, pc: int, name: str, value: str) -> str:
        """Return code that adds 32 bits to a sum."""
        if not self._counting:
            return ""
        at = self._sum(pc, name)
        return (
            f"(i64.store offset={at} (local.get $C) (i64.add (i64.load offset={at}"
            f" (local.get $C)) (i64.extend_i32_u {value})))"
        )

    # -- the whole ---------------------------------------------------------------------

    def translated(self) -> Translation:
        """Return the module."""
        made, rows = self._made, self._rows
        kinds = [OPS[row.op].kind for row in rows]
        for kind in kinds:
            if kind in REFUSED:
                raise NotDerivedError(kind)
        if any(OPS[row.op].copies == "begins" for row in rows):
            self._reserve_queue()
        if "get_token" in kinds:
            self._at += state.TOKEN_BYTES * state.MOST_ASIDE
        if any(OPS[row.op].has_number for row in rows):
            self._reserve_arrivals()
        if self._program.clusters:
            self._reserve_cluster()
        if "bulk_copy" in kinds:
            self._reserve_bulk()
        if self._in_order:
            self._keep_order()
        else:
            self._ordered = _ordered(rows)
            if _has_several(rows, self._ordered):
                raise NotDerivedError("atomics in the order of several instructions")
        self._is_ordered = bool(self._ordered)
        starts = {0, *leaders(all_successors(self._program)), *self._meetings}
        for pc, row in enumerate(rows):
            if not OPS[row.op].keeps_to_itself:
                starts.add(pc + 1)
            if _waits(row):
                starts |= {pc, pc + 1}
        made.length = len(rows)
        made.starts = sorted(pc for pc in starts if pc < len(rows))
        self._find_uniform()
        self._crossing = {
            r for r in self._types if any(self._live.is_live(r, pc) for pc in made.starts)
        }
        self._between_begin = -(-self._cell // 64) * 64
        self._cell = self._between_begin + max(
            self._between_bytes(rows[begin:end])
            for begin, end in pairwise([*made.starts, len(rows)])
        )
        self._block_of = {pc: number for number, pc in enumerate(made.starts)}
        names = sorted({r.memory.name for r in rows if r.memory is not None} - {""})
        made.arrays = names
        made.sum_count = 2 * len(made.starts)
        if self._detection is not None:
            made.ran_at, self._cell = self._cell, self._cell + -(-len(rows) // 8) * 16
            made.lowest_at = {pc: self._cell + 8 * n for n, pc in enumerate(self._sums)}
            self._cell += 8 * len(self._sums)
        local = (r.memory for r in rows if r.memory is not None and r.memory.space == "local")
        made.widest = max((one.width_bytes // 4 for one in local), default=1)
        ends = [*made.starts[1:], len(rows)]
        blocks = [
            self._block(n, a, b) for n, (a, b) in enumerate(zip(made.starts, ends, strict=True))
        ]
        made.warp_bytes = -(-self._at // 64) * 64
        if self._in_order:
            made.flags_at, self._cell = self._cell, self._cell + -(-len(blocks) // 16) * 16
        if self._reductions:
            made.reductions_at = self._cell
            self._cell += state.REDUCTION_BYTES * len(blocks)
        made.end = self._cell
        made.text = self._module(blocks)
        return made

    def _keep_order(self) -> None:
        """Make places for the turns of warps; NotDerivedError where they do not suffice."""
        if self._made.queue_at:
            raise NotDerivedError("asynchronous copies in order")
        self._made.keys_at = self._at
        self._at += turns.KEYS_BYTES
        self._meetings = _meetings(self._rows) | swapping(self._program).keys()

    def _flags(self) -> str:
        """Return the flags of basic blocks as data, for turns in order."""
        if not self._in_order:
            return ""
        program, starts = self._program, self._made.starts
        lone, swaps = pure(program), swapping(program)
        # With faults that do not end a launch, NumPy's machine is always fair.
        self._made.awaits = awaits(program) or bool(swaps) or self._detection is not None
        flags = (
            turns.PURE * bool(lone[pc])
            | turns.SWAPPING * (pc in swaps.values())
            | turns.SWAP * (pc in swaps)
            | turns.WAITING * _waits(self._rows[pc])
            for pc in starts
        )
        held = "".join(f"\\{flag:02x}" for flag in flags)
        return f'(data (i32.const {self._made.flags_at}) "{held}")'

    def _reserve_arrivals(self) -> None:
        """Make a place for arrivals at named barriers; NotDerivedError if it does not suffice."""
        if self._in_order or self._recording or self._detection is not None:
            raise NotDerivedError("named barriers")
        self._made.arrivals_at, self._at = self._at, self._at + barriers.ARRIVALS_BYTES

    def _reserve_cluster(self) -> None:
        """Make a place for a warp's part of a cluster; NotDerivedError if it does not suffice."""
        if self._detection is not None:
            raise NotDerivedError("clusters")
        self._made.cluster_at, self._at = self._at, self._at + MEMBER_BYTES

    def _reserve_bulk(self) -> None:
        """Make places for bulk copies; NotDerivedError where they do not suffice."""
        copies = [row for row in self._rows if OPS[row.op].kind == "bulk_copy"]
        is_plain = all(row.detail in ("load", "store") for row in copies)
        if not is_plain or self._detection is not None:
            raise NotDerivedError("bulk copies")
        self._cell = -(-self._cell // 64) * 64
        self._made.bulk_at, self._cell = self._cell, self._cell + BULK_BYTES * MOST_BULK
        self._made.groups_at, self._at = self._at, self._at + GROUPS_BYTES

    def _table_of_reductions(self) -> str:
        """Return the results of barriers as data."""
        if not self._reductions:
            return ""
        held = b"".join(
            packed(state.Reduction, **self._reductions.get(number, _NO_REDUCTION))
            for number in range(len(self._made.starts))
        )
        text = "".join(f"\\{byte:02x}" for byte in held)
        return f'(data (i32.const {self._made.reductions_at}) "{text}")'

    def _reserve_queue(self) -> None:
        """Make a place for asynchronous copies; NotDerivedError where it does not suffice."""
        if self._detection is not None:
            raise NotDerivedError("asynchronous copies")
        self._made.queue_at, self._at = self._at, self._at + QUEUE_BYTES

    def _module(self, blocks: list[str]) -> str:
        opens = "".join(f"(block $b{k} " for k in reversed(range(len(blocks))))
        table = " ".join(f"$b{k}" for k in range(len(blocks)))
        body = "\n)".join(blocks)
        accesses = "\n".join(access.text for access in self._accesses.values())
        code = f"""{accesses}
{self._start()}
(func $warp (param $W i32) (param $i i32)
(local $C i32) (local $M i32) (local $pc i32) (local $on i32) (local $x i32) (local $y i32)
(local $z i32) (local $g i32) (local $o i32) (local $r i32) (local $d i32) (local $mask v128)
(local $w i64) (local $h i32) {" ".join(self._variables)}
(local.set $C (i32.load offset={layout.SUMS} (local.get $W)))
(local.set $x (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4))))
(local.set $pc (i32.load offset=64 (local.get $x)))
(local.set $M (i32.load offset=68 (local.get $x)))
(local.set $h (i32.load offset=76 (local.get $x)))
(block $yield (loop $L {opens}(br_table {table} (local.get $pc)))
{body})
(unreachable))
{self._hold("(local.get $pc)", state.READY)})"""
        data = f"{self._flags()} {self._table_of_reductions()}"
        return linking.text(code, data, self._cell, self._made.shared)

    def _start(self) -> str:
        """Return the function that sets the registers that are read before they are written."""
        code = []
        for register, place in self._made.registers.items():
            if not self._live.is_live(register, 0):
                continue
            value = self._program.initial.get(register, place.dtype.type(0))
            if place.dtype.kind == "b":
                bits = -1 if value else 0
                code.append(f"(i32.store offset={place.offset} (local.get $W) (i32.const {bits}))")
                continue
            scalar: Any = np.asarray(value).astype(place.dtype)[()]
            parts = constant(scalar)
            code += [
                f"(v128.store offset={place.offset + 16 * k} (local.get $W) {parts[0]})"
                for k in range(8 * len(parts))
            ]
        return f"(func $start (param $W i32) {' '.join(code)})"

    def _block(self, number: int, begin: int, end: int) -> str:
        """Return the code of a basic block."""
        code = []
        if self._counting:
            at = 16 * number
            code.append(
                f"(v128.store offset={at} (local.get $C) (i64x2.add"
                f" (v128.load offset={at} (local.get $C)) (i64x2.replace_lane 1"
                " (v128.const i64x2 1 0) (i64.extend_i32_u (i32.popcnt (local.get $M))))))"
            )
        if self._recording:
            code.append(f"(call $begun (local.get $W) (i32.const {begin}) (local.get $M))")
        if self._in_order:
            unseen = ("source_branch", "bounds")
            steps = sum(OPS[row.op].kind not in unseen for row in self._rows[begin:end])
            more = f"(i32.add {state.read('steps')} (i32.const {steps}))"
            code.append(state.written("steps", more))
        if self._detection is not None:
            place = f"offset={self._made.ran_at + begin} (i32.const 0)"
            code.append(f"(i32.store8 {place} (i32.const 1))")
        self._between, self._between_at = {}, self._between_begin
        segment = self._segment()
        for pc in range(begin, end):
            row = self._rows[pc]
            kind = OPS[row.op].kind
            if self._is_computed(segment, pc, row, kind):
                if len(segment.graph.nodes) > MOST_NODES and pc + 1 < end:
                    code.append(self._flushed(segment, pc + 1)[0])
                    segment = self._segment()
                continue
            text, segment = self._alone(segment, number, pc, row, kind)
            code.append(text)
        last = end - 1
        if OPS[self._rows[last].op].kind not in CONTROL:
            code.append(self._flushed(segment, end)[0])
            if end < len(self._rows) and _waits(self._rows[end]) and not self._in_order:
                code.append(self._yield(number + 1))
        if self._in_order and not _ends_turn(OPS[self._rows[last].op].kind):
            code.append(self._meeting(number + 1, end))
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
        self._variables.update(dict.fromkeys(variables))
        return text, found

    # -- instructions that only compute ------------------------------------------------

    def _is_computed(self, segment: Segment, pc: int, row: Instruction, kind: str) -> bool:
        """Add an instruction to a segment; return False for one that cannot be in a segment."""
        values: tuple[Any, ...]
        has_no_effect = kind in ("commit_copies", "await_copies") and not self._made.queue_at
        if kind == "fence" or has_no_effect or (kind == "compute" and not row.dst):
            values = ()
        elif kind in ("special", "constant") or (kind == "bank" and not row.src):
            places = [self._place_of_constant(pc, row, kind, n) for n in range(len(row.dst))]
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
            segment.count(guard, row.negated, self._add(pc, "on", "(i32.popcnt {})"))
        if self._watching and not OPS[row.op].gives_value:
            lanes = np.bool_(True) if guard is None else guard
            note = f"(local.set $on {{}}) {self._noted(pc, row, kind)}"
            segment.count(lanes, guard is not None and row.negated, note)
        if guard is not None and self._tells(row):
            segment.count(guard, row.negated, self._decided(pc, "{}"))
        if guard is not None and self._detection is not None:
            segment.count(guard, row.negated, self._ran(pc, "{}"))
        if self._detection is not None and pc in self._detection.meetings:
            lanes = np.bool_(True) if guard is None else guard
            meets = "(call $meets (local.get $W) {0})"
            if pc in self._detection.whole:
                meets = f"(if (i32.ne {{0}} {_EVERY}) (then {REPORTED})) {meets}"
            segment.count(lanes, guard is not None and row.negated, meets)
        if pc in self._steps:
            lanes = np.bool_(True) if guard is None else guard
            segment.count(lanes, guard is not None and row.negated, self._checked(pc, row, "{0}"))
        if pc in self._products:
            self._watch_product(segment, pc, row, values[0], guard)
        for register, value in zip(row.dst, values, strict=True):
            segment.write(register, value, self._types[register], guard, row.negated)
        return True

    def _watch_product(
        self, segment: Segment, pc: int, row: Instruction, value: Any, guard: Any
    ) -> None:
        """Note that a product, with its addend, does not fit in 32 bits."""
        kind = NARROW if self._products[pc] else WORD
        parts = [_converted(one, kind) for one in (*map(segment.read, row.src), value)]
        a, b, c, held = (_converted(one, np.dtype(np.float64)) for one in parts)
        far, most = a * b + c - held, np.float64(1 << 31)
        wrong = (far >= most) | (far <= -most)
        if guard is not None:
            wrong = wrong & (~guard if row.negated else guard)
        if not segment.has_code([wrong]):
            raise NotDerivedError("a product that may overflow")
        some = f"(i32.or {state.read('overflows')} {{}})"
        segment.count(wrong, False, state.written("overflows", some))

    def _derived(self, segment: Segment, row: Instruction) -> tuple[Any, ...] | None:
        """Return the results of an evaluator as symbols, None for one that is called."""
        sources = [segment.read(register) for register in row.src]
        results = self._evaluated(row, sources)
        return results if results is not None and segment.has_code(results) else None

    @staticmethod
    def _evaluated(row: Instruction, sources: Sequence[Any]) -> tuple[Any, ...] | None:
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

    def _special(self, pc: int, row: Instruction) -> Place:
        name, _, axis = str(row.detail).partition(".")
        if name == "ctaid":
            return Place(layout.BLOCK + 4 * AXES.index(axis), NARROW, "of warp")
        if name == "cluster_ctarank":
            return Place(self._made.cluster_at, NARROW, "of warp")
        dtype = self._types[row.dst[0]] if row.dst else NARROW
        key = row.detail, dtype
        if key not in self._specials:
            self._specials[key] = self._made.specials[pc] = self._reserved(dtype)
        return self._specials[key]

    # -- instructions by themselves ----------------------------------------------------

    def _alone(
        self, segment: Segment, number: int, pc: int, row: Instruction, kind: str
    ) -> tuple[str, Segment]:
        """Return the code of a segment and of the instruction after it, and a new segment."""
        guard = None if row.guard is None else segment.read(row.guard)
        operands, bits = self._operands(segment, pc, row, kind), []
        if guard is not None:
            bits.append(guard)
        decided = bool(row.src) and kind in ("source_branch", "barrier")
        if decided:
            bits.append(segment.read(row.src[0]))
        if kind == "bounds":
            bits.append(self._beyond(segment, pc, row))
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
        parts = [code, f"(local.set $on {on})"]
        if guard is not None:
            parts.append(self._add(pc, "on", "(i32.popcnt (local.get $on))"))
        following = self._segment()
        is_told = not OPS[row.op].gives_value and kind not in ("bounds", "branch_if_apart")
        if self._in_order and _waits(row):
            parts.append(self._asking(number))
        if self._watching and is_told:
            parts.append(self._noted(pc, row, kind, found[-1] if decided else ""))
        if _waits(row):
            parts.append(self._waiting(number, row, kind))
        if guard is not None and self._tells(row) and kind != "branch_if_apart":
            taken = "(local.get $on)" if kind in ("branch", "jump") else "(i32.const 0)"
            parts.append(self._decided(pc, "(local.get $on)", taken))
        if self._detection is not None:
            parts.append(self._detected(self._detection, pc, row, found[-1] if decided else ""))
        if kind in ("load", "store", "atomic"):
            slot = self._slot(_memory(row).space)
            parts.append(self._access(pc, row, kind, slot))
            parts.append(self._cleared(row))
            parts.append(self._added(pc, row))
            parts.append(self._told(pc, row, kind, slot))
        elif kind == "commit_copies":
            parts.append("(call $commit_copies (local.get $W) (local.get $on))")
        elif kind == "await_copies":
            if row.detail is not None:
                groups = f"(i32.const {int(row.detail)})"
                parts.append(f"(call $land_copies (local.get $W) (local.get $on) {groups})")
        elif kind in _BULK:
            call = _BULK[kind].format(stores=int(row.detail == "store"), groups=row.detail)
            parts.append(f"(if (local.get $on) (then (call {call})))")
        elif kind == "cluster_arrive":
            at = f"offset={self._made.cluster_at + offset(Member, 'arrived')} (local.get $W)"
            parts.append(f"(i32.store {at} (i32.or (i32.load {at}) (local.get $on)))")
            parts.append(_SETTLES if self._in_order else "")
        elif kind == "source_branch":
            parts.append(self._decision(pc, found[-1]) if decided else "")
        elif kind in CONTROL:
            if kind == "barrier" and row.dst:
                parts.append(self._reduced(number, pc, row, found[-1]))
            parts.append(getattr(self, f"_{kind}")(number, pc, row))
        elif kind == "bssy":
            parts.append(f"(call $give (local.get $W) (i32.const {row.detail}) (local.get $on))")
        elif kind in ("get_token", "set_token"):
            barrier = f"(i32.const {int(row.detail)})"
            parts.append(f"(call ${kind} (local.get $W) {barrier} (local.get $on))")
        elif kind in ("collect", "warpsync") and not OPS[row.op].checks_mask:
            pass
        elif kind == "warpsync":
            parts.append(
                f"(if (i32.eqz (call $are_all (local.get $on))) (then {self._called(pc, row)}))"
            )
        elif kind == "bank":
            parts.append(self._indexed(row))
            if self._recording:
                here = f"(i32.const {pc}) (local.get $on)"
                parts.append(f"(call $narrow (i64.const 0)) (call $looked_up {here})")
        elif kind == "bounds":
            wrong = f"(i32.and (local.get $on) {found[-1]})"
            able = f"(i32.xor (local.get $on) {wrong})"
            step = self._checked(pc, row, "(local.get $on)", able)
            parts.append(f"(if {wrong} (then {step if self._steps else '(unreachable)'}))")
        elif kind == "trap" and self._steps:
            parts.append(self._exit(number, pc, row))
        elif kind in LEFT:
            parts.append("(if (local.get $on) (then (unreachable)))")
            if kind == "trap":
                parts.append(self._yield(number + 1, settles=True))
        elif kind in CALLED or kind == "compute":
            parts.append(self._among_lanes(pc, row))
        else:
            raise NotDerivedError(kind)
        if kind not in CONTROL:
            self._receive(following, row, kind, guard)
        return "\n".join(parts), following

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
        self._variables.update(dict.fromkeys(variables))
        return text, found

    def _operands(self, segment: Segment, pc: int, row: Instruction, kind: str) -> list[Operand]:
        """Return the operands that an instruction reads from memory."""
        if kind in WITHOUT_OPERANDS and not (kind == "bounds" and self._steps):
            return []
        values = [segment.read(register) for register in row.src]
        if OPS[row.op].has_number or kind in ("set_token", "jump", "bulk_copy", "land_bulk"):
            values = [_converted(value, WORD) for value in values]
        if kind == "bank":
            offset: Any = np.int64(row.detail[1][1])
            for value in values:
                offset = offset + _converted(value.view(NARROW), WIDE)
            values = [offset]
        memory = row.memory
        if memory is not None:
            address = values[0] if values else np.int64(0)
            wide = memory.space in WIDE_SPACES
            if memory.space == "generic" and self._made.shared.detecting:
                raise NotDerivedError("race detection by generic addresses")
            address = _converted(address, WIDE if wide else NARROW)
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
        self._made.operands[pc] = [v.dtype for v in values]
        if len(values) >= layout.OPERANDS or len(row.dst) >= layout.OPERANDS:
            raise NotDerivedError("an instruction of many operands")
        return [Operand(layout.operand(n), value) for n, value in enumerate(values)]

    def _addend(self, segment: Segment, pc: int, row: Instruction) -> list[Any]:
        """Return what a compare-and-swap adds to the number that it expects, if it is a sum."""
        addition = self._sums.get(pc, -1)
        if addition < 0:
            return []
        expected, made = row.src[1 : 1 + len(row.dst)], self._rows[addition]
        zero = np.uint32(0)
        words = self._evaluated(
            made, [zero if r in expected else segment.read(r) for r in made.src]
        )
        if words is None or not segment.has_code(words):
            raise NotDerivedError(f"a sum by {made.op}")
        numbers = [one if isinstance(one, Symbol) else np.reshape(one, -1)[0] for one in words]
        return _atomic_operands(numbers, _memory(row).dtype, by_address=True)

    def _added(self, pc: int, row: Instruction) -> str:
        """Return code that records the additions of lanes to a sum."""
        memory = _memory(row)
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

    def _beyond(self, segment: Segment, pc: int, row: Instruction) -> Any:
        """Return whether an index is outside its axis."""
        _, space, shape = row.detail
        beyond: Any = np.bool_(False)
        for axis, register in enumerate(row.src):
            index = segment.read(register)
            size = (
                shape[axis]
                if space != "global"
                else segment.leaf(self._cell_of(("axis", pc, axis), NARROW))
            )
            if not isinstance(index, Symbol) and not isinstance(size, Symbol):
                wrong: Any = np.bool_(not 0 <= int(index) < int(size))
            else:
                wrong = (index < 0) | (index >= size)
            beyond = wrong | beyond
        return beyond

    def _noted(self, pc: int, row: Instruction, kind: str, condition: str = "") -> str:
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

    def _ran(self, pc: int, on: str) -> str:
        """Return code that notes that an instruction ran for some lane."""
        at = f"offset={self._made.ran_at + len(self._rows) + pc} (i32.const 0)"
        some = f"(i32.or (i32.load8_u {at}) (i32.ne {on} (i32.const 0)))"
        return f"(i32.store8 {at} {some})"

    @staticmethod
    def _checked(pc: int, row: Instruction, on: str, able: str = "") -> str:
        """Return code that writes a step down."""
        here = f"(local.get $W) (i32.const {pc}) (local.get $M)"
        return f"(call $check {here} {on} {able or on} (i32.const {kept_operands(row)}))"

    def _narrowed(self, pc: int, row: Instruction) -> str:
        """Return code that writes an access down; lanes with a fault skip it."""
        memory, on, able = _memory(row), "(local.get $on)", "(local.get $x)"
        width = f"(i32.const {memory.width_bytes})"
        stores = f"(i32.const {int(OPS[row.op].writes_memory)})"
        if memory.space == "global":
            entry = f"(i32.const {self._entry(memory)}) (i32.const {int(memory.by_address)})"
            found = f"(call $able_in_array {on} {entry} {width} {stores})"
        elif memory.space == "generic":
            found = f"(call $able_anywhere {on} {self._windows()} {width} {stores})"
        else:
            _, limit = self._own_memory(row)
            found = f"(call $able_in_own {on} (i32.const {memory.base}) {limit} {width})"
        lost, step = state.read("lost"), self._checked(pc, row, on, able)
        if pc not in self._steps:
            step = f"(if {lost} (then {step}))"
        left = f"(if {lost} (then (unreachable)))" if row.detail == "cas" else ""
        return f"""(if {on} (then (local.set $x {found})
{state.written("lost", f"(i32.xor {on} {able})")} {step} {left} (local.set $on {able})))"""

    def _cleared(self, row: Instruction) -> str:
        """Return code that lets lanes with a fault have loaded zeros."""
        if not self._steps or not row.dst:
            return ""
        lost, wide = state.read("lost"), int(is_wide(self._types[row.dst[0]]))
        call = f"(call $clear {lost} (i32.const {len(row.dst)}) (i32.const {wide}))"
        return f"(if {lost} (then {call}))"

    def _detected(self, asked: Detection, pc: int, row: Instruction, condition: str) -> str:
        """Return code that compares an access, or writes it down for a check.

        A comparison traps at a possible finding.

        For masks, $x are the lanes named by any mask, $z the lanes named by every mask.
        """
        on, parts = "(local.get $on)", []
        if self._steps and row.memory is not None:
            parts += [self._narrowed(pc, row), self._ran(pc, on)]
        elif row.guard is not None:
            parts.append(self._ran(pc, on))
        if pc in self._shifts:
            compared = Comparison.of(
                row,
                self._shifts[pc],
                polls=pc in asked.polls,
                lowest_at=self._made.lowest_at.get(pc, 0),
                in_order=self._in_order,
            )
            self._accesses.setdefault(compared.name, compared)
            parts.append(f"(if {on} (then (call {compared.name} {on} (local.get $W))))")
        if row.looks_up_constants:
            parts.append(_counted("accesses", 1))
        if pc in asked.of_unknown_arrays:
            each = 1 if row.memory is None else max(row.memory.width_bytes >> self._shifts[pc], 1)
            parts.append(_counted("of_unknown_arrays", each))
        if pc in asked.conditions and condition:
            parts.append(f"(if (i32.and {on} {condition}) (then (unreachable)))")
        if pc in self._steps and row.memory is None:
            parts.append(self._checked(pc, row, on))
        elif OPS[row.op].kind == "barrier" and row.guard is not None:
            parts.append(f"(if (i32.ne {on} (local.get $M)) (then {REPORTED}))")
        if pc in asked.gathers:
            missing = f"(i32.and {_EVERY} (i32.xor {on} (i32.const -1)))"
            parts.append(f"(if (i32.and (local.get $x) {missing}) (then {REPORTED}))")
        if pc in asked.exchanges:
            parts.append(f"(if (i32.ne {on} (i32.const -1)) (then {REPORTED}))")
        if pc in asked.whole:
            parts.append(f"(if (i32.ne {on} {_EVERY}) (then {REPORTED}))")
        if pc in asked.meetings:
            meets = f"(call $meets (local.get $W) {on})"
            if _waits(row):
                unnamed = f"(i32.and {_EVERY} (i32.xor (local.get $z) (i32.const -1)))"
                meets = f"(if (i32.eqz {unnamed}) (then {meets}))"
            parts.append(meets)
        return " ".join(parts)

    def _tells(self, row: Instruction) -> bool:
        """Return whether an instruction's lanes are recorded: not for arithmetic.

        Accesses, and loads of constants at offsets in registers, have further records.
        """
        op = OPS[row.op]
        is_more = op.kind in ("load", "store", "atomic") or (op.kind == "bank" and bool(row.src))
        return self._recording and op.issued and op.kind != "compute" and not is_more

    @staticmethod
    def _decided(pc: int, on: str, taken: str = "(i32.const 0)") -> str:
        return f"(call $decided (i32.const {pc}) {on} {taken})"

    def _told(self, pc: int, row: Instruction, kind: str, slot: int) -> str:
        """Return code that records an access after it is done and its addresses are free."""
        memory = row.memory
        assert memory is not None
        if not self._recording or not OPS[row.op].issued:
            return ""
        here, width = f"(i32.const {pc}) (local.get $on)", memory.width_bytes
        kinds = {"load": 0, "store": 1, "atomic": 2}
        if memory.space == "global":
            return (
                f"(if (i32.eqz (call $told_again {here} (i32.const {slot}))) (then"
                f" (call $narrow {state.read('shift')}) (call $accessed {here} (i32.const {width})"
                f" (i32.const 1) (i32.const {kinds[kind]}) (i32.const 1))"
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
                f" (i32.const {kinds[kind]}) (i32.const 1))"
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

    def _receive(self, segment: Segment, row: Instruction, kind: str, guard: Any) -> None:
        """Read the results of an instruction at the begin of a segment."""
        fresh = None if row.guard is None else segment.read(row.guard)
        for number, register in enumerate(row.dst):
            dtype = self._types[register]
            loaded = dtype
            if kind == "load":
                assert row.memory is not None
                loaded = row.memory.dtype
            held = BYTE if loaded.kind == "b" and kind == "load" else loaded
            value: Any = segment.leaf(Place(layout.result(number), held, "absolute"))
            segment.write(register, value, dtype, fresh, row.negated)

    def _among_lanes(self, pc: int, row: Instruction) -> str:
        """Return an operation of lanes, or a call where it has no code."""
        called, code = self._called(pc, row), operation(row, self._made.operands[pc])
        if not code:
            return called
        if not OPS[row.op].checks_mask:
            return code
        return f"(if (call $are_all (local.get $on)) (then {code}) (else {called}))"

    def _called(self, pc: int, row: Instruction) -> str:
        """Return a call of the machine's handler."""
        # The split's lanes are kept: others may have left it since its turn began.
        call = (
            "(i32.store offset=68 (i32.add (local.get $W) (i32.shl (local.get $i) (i32.const 4)))"
            " (local.get $M))"
            f"(call $host (i32.const {pc}) (local.get $W) (local.get $i) (local.get $on))"
        )
        return f"(if (local.get $on) (then {call}))" if row.guard is not None else call

    def _access(self, pc: int, row: Instruction, kind: str, slot: int) -> str:
        memory = row.memory
        assert memory is not None
        operation = kind
        ordered = ""
        if kind == "atomic":
            operation = str(row.detail)
            served = WIDE_ATOMICS if memory.dtype.itemsize > 8 else tuple(ATOMICS)
            is_of_words = memory.dtype.itemsize in (4, 8, 16) and memory.count == 1
            if operation not in served or not is_of_words:
                raise NotDerivedError(f"an atomic {operation} of {memory.dtype}")
            if pc in self._ordered:
                kept, self._cell = self._cell, self._cell + 8
                self._made.orders.append(kept)
                ordered = (
                    f"(if (i32.eqz (call $is_in_order (local.get $h) (i32.const {kept})))"
                    " (then (unreachable)))"
                )
        elif memory.dtype.itemsize > 8:
            raise NotDerivedError(f"an access of {memory.dtype}")
        if kind == "atomic" and memory.dtype.kind == "f" and operation not in FLOATING:
            raise NotDerivedError(f"an atomic {operation} of {memory.dtype}")
        signed = memory.dtype.kind == "i" and (kind == "atomic" or memory.dtype.itemsize < 4)
        signed = signed and kind != "store"
        access = Access(operation, memory.space, memory.dtype.itemsize, memory.count, signed)
        if kind == "atomic":
            is_tried = row.op == SPIN
            access = replace(
                access,
                results=max(len(row.dst), pc in self._sums),
                floating=memory.dtype.kind == "f",
                tried=is_tried,
            )
        parts = [ordered]
        if self._in_order and kind != "load":
            parts.append(state.written("idle", "(i32.const 0)"))
        if row.guard is not None:
            parts.append(self._add(pc, "any", "(i32.const 1)"))
        if memory.space == "global":
            self._accesses.setdefault(access.name, access)
            sectors = (
                f"(call {access.name} (local.get $on) (i32.const {self._entry(memory)})"
                f" (i32.const {int(memory.by_address)}) {self._marks(row, kind)}"
                f" (i32.const {slot}))"
            )
            parts.append(f"(local.set $x {sectors})")
            if kind == "atomic":
                parts.append(self._replays(pc, "(call $most_alike (local.get $on))"))
            else:
                parts.append(self._add(pc, "sectors", "(local.get $x)"))
        elif memory.space == "generic":
            access = replace(access, cluster_at=self._made.cluster_at)
            self._accesses.setdefault(access.name, access)
            parts.append(f"(call {access.name} (local.get $on) (local.get $W) {self._windows()})")
        else:
            at, limit = self._own_memory(row)
            warp = ""
            if OPS[row.op].asynchronous:
                access, warp = replace(access, kind="begin"), "(local.get $W)"
            self._accesses.setdefault(access.name, access)
            parts.append(
                f"(call {access.name} (local.get $on) {at} (i32.const {memory.base}) {limit}"
                f" (i32.const {slot}) {warp})"
            )
            if memory.space == "shared":
                parts.append(self._served(pc, row, kind, slot))
        return f"(if (local.get $on) (then {' '.join(parts)}))"

    def _indexed(self, row: Instruction) -> str:
        """Return code that loads words of a constant bank, or a part of one, by offset."""
        number, _, size, signed = row.detail[1]
        access = Constants(size if size < 4 else 4, len(row.dst), bool(signed) and size < 4)
        self._accesses.setdefault(access.name, access)
        array = row.array_of_constants
        place = (number, 0, None) if array is None else (number, array.first, array.end)
        if place not in self._made.banks:
            self._made.banks[place] = self._cell
            self._cell += layout.BANK_BYTES
        slot = self._slot("global")
        call = (
            f"(call {access.name} (local.get $on) (i32.const {self._made.banks[place]})"
            f" (i32.const {slot}))"
        )
        return f"(if (local.get $on) (then {call}))"

    def _slot(self, space: str) -> int:
        """Return the place of the distances between an access's addresses."""
        slot = self._cell = -(-self._cell // 16) * 16
        self._cell += layout.WIDE_SLOT_BYTES if space == "global" else layout.SLOT_BYTES
        return slot

    def _entry(self, memory: Memory) -> int:
        """Return the entry of an access's array, or the first of all."""
        number = self._made.arrays.index(memory.name) if memory.name else 0
        return ARRAYS + ARRAY_BYTES * number

    def _windows(self) -> str:
        """Return where shared memory begins among generic addresses, and a lane's local bytes."""
        known = self._program.layout
        first = 0 if known is None else known.shared_start
        return f"(i32.const {first}) (i32.const {self._program.local_bytes})"

    def _own_memory(self, row: Instruction) -> tuple[str, str]:
        """Return where memory of a block or warp begins, and the bytes of an access's array."""
        memory = _memory(row)
        at, limit = self._bytes_of(memory)
        if row.may_overhang:
            limit = f"(i32.add {limit} (i32.const {memory.width_bytes - 1}))"
        return at, limit

    def _bytes_of(self, memory: Memory) -> tuple[str, str]:
        if memory.space == "shared":
            at = f"(i32.load offset={layout.SHARED} (local.get $W))"
        else:
            at = f"(i32.load offset={layout.LOCAL} (local.get $W))"
        if memory.size is not None:
            return at, f"(i32.const {memory.size * memory.dtype.itemsize})"
        if not memory.by_address:
            return at, f"(i32.load (i32.const {layout.DYNAMIC_LIMIT}))"
        if memory.space == "shared":
            return at, f"(i32.load (i32.const {layout.SHARED_LIMIT}))"
        return at, f"(i32.const {self._program.local_bytes})"

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
                self._add(pc, "wavefronts", "(i32.wrap_i64 (local.get $w))"),
                self._add(pc, "least", upper),
            )
        )

    def _replays(self, pc: int, services: str) -> str:
        if not self._counting:
            return ""
        more = "(i32.sub (local.get $y) (i32.ne (local.get $y) (i32.const 0)))"
        return f"(local.set $y {services}) {self._add(pc, 'replays', more)}"

    def _decision(self, pc: int, condition: str) -> str:
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
                self._add(pc, "any", "(i32.ne (local.get $on) (i32.const 0))"),
                self._add(pc, "divergent", differ),
            )
        )

    # -- control -----------------------------------------------------------------------

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
        return (
            f"(local.set $pc {block}) {turn} {self._turned(block)} (br_if $yield {behind}) (br $L)"
        )

    def _yield(self, block: int, *, settles: bool = False) -> str:
        """Return code before a basic block that ends the turn if another split is at a lower pc.

        In NumPy's order it always ends; it `settles` if other lanes may wait for exiting ones.
        """
        if self._in_order:
            note = _SETTLES if settles else ""
            return f"{note} (local.set $pc (i32.const {block})) (br $yield)"
        return (
            f"(if (i32.ge_u (i32.const {block}) {_NEXT}) (then"
            f" (local.set $pc (i32.const {block})) (br $yield)))"
        )

    def _meeting(self, block: int, pc: int) -> str:
        """Return code before a basic block that all warps of a group reach before any continues."""
        if pc >= len(self._rows) or not (pc in self._meetings or _waits(self._rows[pc])):
            return ""
        if pc in swapping(self._program):  # others load before it
            return f"(local.set $pc (i32.const {block})) (br $yield)"
        return (
            f"{state.written('goes_on', '(i32.const 1)')} (local.set $pc (i32.const {block}))"
            " (br $yield)"
        )

    def _asking(self, number: int) -> str:
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
            undone += state.written(
                "runs", f"(i32.sub {state.read('runs')} (i32.const {RUN_BYTES}))"
            )
        return undone

    def _turned(self, block: str) -> str:
        """Return code that adds a branch to the path, if paths are kept."""
        if not self._is_ordered:
            return ""
        return f"(local.set $h {self._path(block)})"

    def _hold(
        self, block: int | str, state: int, barrier: int = 0, lanes: str = "(local.get $M)"
    ) -> str:
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
        divergent = self._add(pc, "divergent", "(i32.const 1)") if row.op == "BRA" else ""
        parting = self._parting(divergent, go, f"(i32.const {target})")
        return f"{parting} {self._yield(number + 1)}"

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
            parts.append(self._noted(pc, row, "branch_if_apart", chosen))
        if self._recording:
            chosen = "(i32.and (local.get $on) (i32.sub (i32.const 0) (local.get $z)))"
            parts.append(self._decided(pc, "(local.get $on)", chosen))
        return " ".join((*parts, f"(if (local.get $z) (then {taken}))", self._yield(number + 1)))

    def _named(self, *, with_own: bool = False) -> str:
        """Set $x to the lanes that the first operand of a lane names, $z to those of all lanes.

        Each lane must name itself `with_own`.
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

    def _waiting(self, number: int, row: Instruction, kind: str) -> str:
        """Return code that blocks a split until all live lanes of its mask arrive."""
        waits = state.AT_WARP if kind == "warpsync" else state.AT_MASK
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
        named = self._named(with_own=self._detection is not None)
        return f"""{named} {differ} (if {self._missing("(local.get $M)")} (then
{undone} {misses} {hold} (call $gather (local.get $W)) (return)))"""

    def _parted(self, block: int) -> str:
        """Return code that ends a turn with a split for each set of lanes with equal operands."""
        if self._in_order:
            return "(unreachable)"
        split = f"(local.get $W) (local.get $i) (i32.const {block}) (local.get $M)"
        return f"(call $part {split}) (return)"

    def _part(self, number: int, pc: int, row: Instruction) -> str:
        return self._parted(number + 1)

    def _jump(self, number: int, pc: int, row: Instruction) -> str:
        if pc not in self._made.jumps:
            self._made.jumps[pc] = (self._cell, tuple(row.detail))
            self._cell += -(-4 * len(row.detail) // 8) * 8
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
(br $target{pc}))) {self._yield(number + 1)}"""

    def _exit(self, number: int, pc: int, row: Instruction) -> str:
        live = f"(i32.load offset={layout.LIVE} (local.get $W))"
        forgets = ""
        if self._made.queue_at:
            forgets = f"(if (i32.eqz {live}) (then (call $forget_copies (local.get $W))))"
        settles = _SETTLES if self._in_order else ""
        opens = "(call $open_named (local.get $W))" if self._made.arrivals_at else ""
        return f"""(if (local.get $on) (then {settles}
(i32.store offset={layout.LIVE} (local.get $W)
(i32.and {live} (i32.xor (local.get $on) (i32.const -1))))
{forgets}
{self._rest("(local.get $on)")}
(if (local.get $M) (then {self._hold(number + 1, state.READY)})
(else (call $remove (local.get $W) (local.get $i))))
(call $release (local.get $W)) (call $gather (local.get $W)) {opens} (return)))
{self._yield(number + 1)}"""

    def _bsync(self, number: int, pc: int, row: Instruction) -> str:
        hold = self._hold(number, state.AT_CONVERGENCE, int(row.detail))
        is_diverged = "(i32.gt_u (i32.load (local.get $W)) (i32.const 1))"
        if self._in_order:
            is_diverged = state.read("is_diverged")
        return f"(if {is_diverged} (then {hold} (call $release (local.get $W)) (return)))"

    def _break(self, number: int, pc: int, row: Instruction) -> str:
        take = f"(call $take (local.get $W) (i32.const {row.detail}) (local.get $on))"
        hold = self._hold(number + 1, state.READY)
        if self._in_order:
            return f"{take} {hold} (call $release (local.get $W)) (return)"
        return (
            f"{take} (if (i32.gt_u (i32.load (local.get $W)) (i32.const 1)) (then"
            f" {hold} (call $release (local.get $W)) (return)))"
        )

    def _reduced(self, number: int, pc: int, row: Instruction, predicate: str) -> str:
        """Return code that stores the predicates for a barrier's result."""
        register, kept = row.dst[0], self._reserved(np.dtype(np.bool_))
        dtype, is_read = self._types[register], self._live.is_live(register, pc + 1)
        if self._types.get(row.src[0], kept.dtype).kind != "b" or dtype.itemsize not in (1, 4):
            raise NotDerivedError("a barrier's result")
        self._reductions[number] = {
            "predicate": kept.offset,
            "result": self._place(register).offset if is_read else 0,
            "how": ("count", "and", "or").index(str(row.detail)),
            "is_mask": dtype.kind == "b",
        }
        before = f"(i32.load offset={kept.offset} (local.get $W))"
        off = "(i32.xor (local.get $on) (i32.const -1))"
        mine = f"(i32.and {predicate} (local.get $on))"
        value = f"(i32.or (i32.and {before} {off}) {mine})"
        return f"(i32.store offset={kept.offset} (local.get $W) {value})"

    def _barrier(self, number: int, pc: int, row: Instruction) -> str:
        return self._held_at_barrier(number, row, self._hold(number, state.AT_BARRIER))

    def _cluster_wait(self, number: int, pc: int, row: Instruction) -> str:
        return self._held_at_barrier(number, row, self._hold(number, state.AT_CLUSTER))

    def _held_at_barrier(self, number: int, row: Instruction, hold: str) -> str:
        """Return code that blocks the active lanes by `hold`; all others continue."""
        wait = f"{hold} (return)"
        if self._in_order:
            wait = f"{_SETTLES} {wait}"
        if row.guard is None:
            return wait
        part = hold.replace("(local.get $M)", "(local.get $on)")
        rest = "(i32.and (local.get $M) (i32.xor (local.get $on) (i32.const -1)))"
        if self._in_order:
            part = f"{_SETTLES} {part}"
        going = f"(call $append (local.get $W) (i32.const {number + 1}) {rest} (call $new_path))"
        end = self._yield(number + 1) if self._in_order else ""
        return f"""(if (local.get $on) (then
(if (i32.eq (local.get $on) (local.get $M)) (then {wait}))
{going} {part} (return))) {end}"""

    def _named_barrier(self, number: int, pc: int, row: Instruction) -> str:
        plain = self._held_at_barrier(number, row, self._hold(number, state.AT_BARRIER))
        named = (
            f"(call $sync (local.get $W) (local.get $i) (i32.const {number}) (local.get $M)"
            " (local.get $x))"
        )
        return (
            f"{self._asked(row)} (if (local.get $x) (then"
            f" {self._held_at_barrier(number, row, named)}) (else {plain}))"
            f" {self._yield(number + 1)}"
        )

    def _arrive(self, number: int, pc: int, row: Instruction) -> str:
        arrive = "(call $arrive (local.get $W) (local.get $M) (local.get $x))"
        return (
            f"{self._asked(row)} {self._hold(number + 1, state.READY)}"
            f" (if (local.get $on) (then {arrive})) (return)"
        )

    @staticmethod
    def _asked(row: Instruction) -> str:
        """Set $x to the barrier that the lanes name, and how many threads it waits for."""
        form = int(row.detail == "packed")
        return f"(local.set $x (call $asked (local.get $M) (i32.const {form})))"


def _ordered(rows: Sequence[Instruction]) -> frozenset[int]:
    """Return the atomics that show their order: they give the old value, or rounded sums."""
    return frozenset(
        pc for pc, row in enumerate(rows) if OPS[row.op].kind == "atomic" and _shows_order(row)
    )


def _shows_order(row: Instruction) -> bool:
    is_rounded = _memory(row).dtype.kind == "f"
    return bool(row.dst) or row.detail not in COMMUTATIVE or is_rounded


def _has_several(rows: Sequence[Instruction], ordered: frozenset[int]) -> bool:
    """Return whether several atomics may access an element, and one shows their order."""
    atomics = [(pc, row) for pc, row in enumerate(rows) if OPS[row.op].kind == "atomic"]
    return any(
        other != pc and _memory(row).may_touch(_memory(rows[pc]).places)
        for pc in ordered
        for other, row in atomics
    )


def _meetings(rows: Sequence[Instruction]) -> frozenset[int]:
    """Return the accesses that all warps of a group come to before any of them makes its own.

    Warps run a turn one after the other, and NumPy's machine an instruction for all of them: that
    shows between two accesses of a turn to the same memory, if one of them writes.
    """
    found, since = set(), list[Instruction]()
    for pc, row in enumerate(rows):
        kind = OPS[row.op].kind
        if _ends_turn(kind):
            since = []
        elif row.memory is not None and row.memory.space != "local":
            if any(_meets(one, row) for one in since):
                found.add(pc)
                since = []
            since.append(row)
    return frozenset(found)


def _ends_turn(kind: str) -> bool:
    """Return whether a turn of NumPy's machine always ends after an instruction."""
    return kind in CONTROL | LEFT and kind not in ("bsync", "call_driver")


def _meets(one: Instruction, other: Instruction) -> bool:
    """Return whether the order of two accesses may show."""
    rows = one, other
    if not any(OPS[row.op].writes_memory for row in rows):
        return False
    if one.detail == other.detail and all(
        OPS[row.op].kind == "atomic" and not _shows_order(row) for row in rows
    ):
        return False
    return _memory(one).may_touch(_memory(other).places)


def _fitting(dtype: DType) -> None:
    """Refuse a register of more than 64 bits a lane."""
    if dtype.itemsize > 8:
        raise NotDerivedError(f"a register of {dtype}")


def _memory(row: Instruction) -> Memory:
    assert row.memory is not None
    return row.memory


def _waits(row: Instruction) -> bool:
    """Return whether an instruction waits for the lanes of a mask, its first operand."""
    op = OPS[row.op]
    return op.kind in ("warpsync", "collect") or op.checks_mask


def _counted(total: str, each: int) -> str:
    """Return code that adds to a total, for each lane that is on."""
    lanes = f"(i32.mul (i32.const {each}) (i32.popcnt (local.get $on)))"
    return state.written(total, f"(i64.add {state.read(total)} (i64.extend_i32_u {lanes}))")


def _converted(value: Any, dtype: DType) -> Any:
    if isinstance(value, Symbol):
        return value.astype(dtype)
    return np.asarray(value).astype(dtype)[()]


def _stored_value(value: Any, dtype: DType) -> Any:
    """Return a value as the elements that it is stored to: a byte for a predicate."""
    converted = _converted(value, dtype)
    return _converted(converted, BYTE) if dtype.kind == "b" else converted


def _atomic_operands(values: list[Any], dtype: DType, *, by_address: bool) -> list[Any]:
    """Return an atomic's operands: numbers, or registers of their bits."""
    if not by_address:
        return [_converted(value, dtype) for value in values]
    if dtype.itemsize == 4:
        return [value.view(dtype) for value in values]
    if dtype.itemsize > 8:
        return [_converted(value, WORD) for value in values]
    pairs: Iterator[tuple[Any, Any]] = zip(values[::2], values[1::2], strict=True)
    made = []
    for low, high in pairs:
        upper = _converted(high, np.dtype(np.uint64)) << np.uint64(32)
        made.append((upper | _converted(low, np.dtype(np.uint64))).view(dtype))
    return made
