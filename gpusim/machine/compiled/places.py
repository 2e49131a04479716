"""Where a program's registers, constants and sums lie in linear memory, while it is translated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Instruction, Memory, Program
from gpusim.machine.compiled import layout
from gpusim.machine.compiled.accesses import Access, Constants
from gpusim.machine.compiled.detection import Comparison, Detection
from gpusim.machine.compiled.kinds import memory_of
from gpusim.machine.compiled.linking import Shared
from gpusim.machine.compiled.register_types import WORD, register_types
from gpusim.machine.compiled.segment import Place, Segment
from gpusim.machine.compiled.symbols import NotDerivedError, Symbol
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.compiled.vectors import constant
from gpusim.machine.pace import Pacing
from gpusim.machine.warps import state
from gpusim.machine.warps.accesses import ARRAY_BYTES, ARRAYS
from gpusim.program.liveness import Liveness
from gpusim.typing import DType

NARROW = np.dtype(np.int32)
AXES = "xyz"


@dataclass(frozen=True)
class Variant:
    """A program, and the properties of a launch that change its code.

    `constants` are the types of the launch's constants by pc. With `pairs`, a load's wavefronts may
    serve twice the lanes (compute capability 7.0). With `counting`, sums are stored and sectors
    marked; with `watching`, steps of some warps are written down, with `recording` those of all, as
    columns. With `detection` accesses are compared, to find races, or the steps of a check written
    down. With `pacing` warps have clocks, and run in their order. With `telling`, instructions are
    noted, for the words of a fault.
    """

    program: Program
    constants: tuple[tuple[int, DType], ...]
    pairs: bool
    counting: bool
    watching: bool
    recording: bool = False
    detection: Detection | None = None
    pacing: Pacing | None = None
    telling: bool = False


class Places:
    """The registers, constants and sums of a program, and the inputs of its translation.

    `at` is the end of a warp's memory so far, `cell` that of the launch's; `functions` are those
    that accesses call, by name.
    """

    def __init__(self, variant: Variant, *, in_order: bool) -> None:
        self.in_order = in_order
        self.watching, self.recording = variant.watching, variant.recording
        self.detection = detection = variant.detection
        self.pacing = variant.pacing
        self.telling = variant.telling
        self.shifts = {} if detection is None else dict(detection.accesses)
        self.sums = {} if detection is None else dict(detection.sums)
        self.steps = {} if detection is None else dict(detection.steps)
        self.swaps = () if detection is None else detection.swaps
        self.products = {} if detection is None else dict(detection.products)
        self.program = program = variant.program
        self.rows = program.instructions
        self.constants = dict(variant.constants)
        self.pairs = int(variant.pairs)
        self.counting = variant.counting
        self.types = register_types(program, self.constants)
        self.live = Liveness(program)
        is_detecting = detection is not None and not self.steps
        self.made = Translation(
            shared=Shared(
                self.recording, is_detecting, bool(self.steps), self.in_order, bool(self.pacing)
            )
        )
        self.at = state.TOKENS + state.MOST_TOKENS_BYTES * program.barriers
        self.cell = layout.CELLS
        self.functions: dict[str, Access | Comparison | Constants] = {}
        self.uniform: dict[int, Place] = {}
        self.crossing: set[int] = set()
        self._specials: dict[Any, Place] = {}
        self._between: dict[int, Place] = {}
        self._between_begin = self._between_at = 0

    def lay_out(self) -> None:
        """Find the registers that are live between basic blocks, and make room for the others."""
        starts, rows = self.made.starts, self.rows
        self._find_uniform()
        self.crossing = {r for r in self.types if any(self.live.is_live(r, pc) for pc in starts)}
        self._between_begin = -(-self.cell // 64) * 64
        self.cell = self._between_begin + max(
            self._between_bytes(rows[begin:end]) for begin, end in pairwise([*starts, len(rows)])
        )

    def begin_block(self) -> None:
        """Forget the registers of the basic block before."""
        self._between, self._between_at = {}, self._between_begin

    def place(self, register: int) -> Place:
        """Return a register's place: in the warp, or one shared by all warps within a block.

        Splits stop only between basic blocks. A register that is not live there needs no place in
        each warp.
        """
        known = self.made.registers if register in self.crossing else self._between
        found = known.get(register)
        if found is None:
            dtype = self.types[register]
            reserved = self.reserved if known is self.made.registers else self._reserved_between
            found = known[register] = reserved(dtype)
        return found

    def _reserved_between(self, dtype: DType) -> Place:
        """Return a place within a basic block, to be reused by others."""
        _require_fitting(dtype)
        place = Place(self._between_at, dtype, "absolute")
        self._between_at += place.bytes
        return place

    def _between_bytes(self, rows: Sequence[Instruction]) -> int:
        """Return the bytes of the registers that are of no warp, in a basic block."""
        named = {r for row in rows for r in (*row.dst, *row.src, row.guard) if r is not None}
        mine = named & self.types.keys() - self.crossing
        return sum(Place(0, self.types[register]).bytes for register in mine)

    def reserved(self, dtype: DType) -> Place:
        """Return a new place in each warp."""
        _require_fitting(dtype)
        place = Place(self.at, dtype)
        self.at += place.bytes
        return place

    def _fixed(self, register: int) -> Any:
        """Return the value of a register that is never written, None for all others."""
        if register in self.program.immediates:
            return self.program.immediates[register]
        if register in self.program.constants:
            return self.cell_of(("bank", *self.program.constants[register]), WORD)
        if register not in self.types:
            return np.int32(0)
        return self.uniform.get(register)

    def _find_uniform(self) -> None:
        """Find the registers that hold a constant of the launch or a special register, always.

        Nothing but one instruction writes them, for all lanes, before any reads them.
        """
        written = Counter(r for row in self.rows for r in row.dst)
        for pc, row in enumerate(self.rows):
            kind = OPS[row.op].kind
            if row.guard is not None or (kind == "bank" and row.src):
                continue
            for number, register in enumerate(row.dst):
                if written[register] > 1 or self.live.is_live(register, 0):
                    continue
                place = self.place_of_constant(pc, row, kind, number)
                if place is not None and place.dtype == self.types[register]:
                    self.uniform[register] = place

    def place_of_constant(self, pc: int, row: Instruction, kind: str, number: int) -> Place | None:
        """Return the place of an instruction's value that is equal in every warp or launch."""
        if kind == "special":
            return self._special(pc, row)
        if kind == "constant":
            return self.cell_of(("constant", pc, 0), self.constants[pc])
        return self.cell_of(("words", pc, number), WORD) if kind == "bank" else None

    def cell_of(self, key: Any, dtype: DType) -> Place:
        """Return the place of a constant of the launch."""
        found = self.made.cells.get(key)
        if found is None:
            if dtype.itemsize > 8:
                raise NotDerivedError(f"a constant of {dtype}")
            found = self.made.cells[key] = Place(self.cell, dtype, "cell")
            self.cell += 8
        return found

    def segment(self) -> Segment:
        """Return an empty segment between registers."""
        return Segment(self.place, self._fixed)

    def _sum(self, pc: int, name: str) -> int:
        """Return the offset of a sum among a warp's."""
        index = self.made.sums.setdefault((pc, name), self.made.sum_count)
        if index == self.made.sum_count:
            self.made.sum_count += 1
        return 8 * index

    def add(self, pc: int, name: str, value: str) -> str:
        """Return code that adds 32 bits to a sum."""
        if not self.counting:
            return ""
        at = self._sum(pc, name)
        return (
            f"(i64.store offset={at} (local.get $C) (i64.add (i64.load offset={at}"
            f" (local.get $C)) (i64.extend_i32_u {value})))"
        )

    def _special(self, pc: int, row: Instruction) -> Place:
        name, _, axis = str(row.detail).partition(".")
        if name == "ctaid":
            return Place(layout.BLOCK + 4 * AXES.index(axis), NARROW, "of warp")
        if name == "cluster_ctarank":
            return Place(self.made.cluster_at, NARROW, "of warp")
        dtype = self.types[row.dst[0]] if row.dst else NARROW
        key = row.detail, dtype
        if key not in self._specials:
            self._specials[key] = self.made.specials[pc] = self.reserved(dtype)
        return self._specials[key]

    def slot(self, space: str) -> int:
        """Return the place of the distances between an access's addresses."""
        slot = self.cell = -(-self.cell // 16) * 16
        self.cell += layout.WIDE_SLOT_BYTES if space == "global" else layout.SLOT_BYTES
        return slot

    def exchanged_at(self, pc: int, operands: int) -> tuple[int, int]:
        """Return where the operands of an instruction lie, and its results.

        Many have a place of their own; NotDerivedError if such a step keeps registers.
        """
        results = len(self.rows[pc].dst)
        if max(operands, results) < layout.OPERANDS:
            return layout.operand(0), layout.result(0)
        if self.steps.get(pc):
            raise NotDerivedError("a step with many operands")
        if pc not in self.made.many:
            self.cell = -(-self.cell // 16) * 16
            self.made.many[pc] = self.cell, self.cell + layout.OPERAND_BYTES * operands
            self.cell += layout.OPERAND_BYTES * (operands + results)
        return self.made.many[pc]

    def entry(self, memory: Memory) -> int:
        """Return the entry of an access's array, or the first of all."""
        number = self.made.arrays.index(memory.name) if memory.name else 0
        return ARRAYS + ARRAY_BYTES * number

    def windows(self) -> str:
        """Return where shared memory begins among generic addresses, and a lane's local bytes."""
        known = self.program.layout
        first = 0 if known is None else known.shared_start
        return f"(i32.const {first}) (i32.const {self.program.local_bytes})"

    def own_memory(self, row: Instruction) -> tuple[str, str]:
        """Return where memory of a block or warp begins, and the bytes of an access's array."""
        memory = memory_of(row)
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
        return at, f"(i32.const {self.program.local_bytes})"

    def start(self) -> str:
        """Return the function that sets the registers that are read before they are written."""
        code = []
        for register, place in self.made.registers.items():
            if not self.live.is_live(register, 0):
                continue
            value = self.program.initial.get(register, place.dtype.type(0))
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


def _require_fitting(dtype: DType) -> None:
    """Refuse a register of more than 64 bits a lane."""
    if dtype.itemsize > 8:
        raise NotDerivedError(f"a register of {dtype}")


def converted(value: Any, dtype: DType) -> Any:
    """Return a value or symbol of another type."""
    if isinstance(value, Symbol):
        return value.astype(dtype)
    return np.asarray(value).astype(dtype)[()]
