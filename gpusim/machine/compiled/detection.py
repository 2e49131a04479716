"""Race detection in compiled code: each access is compared with earlier ones where it is made.

The order is happens-before by block and warp barriers; the last writer and reader of each element
are in linear memory. Floating-point sums are recorded. A launch with any other possible finding, or
with an order by fences and flags, ends here with unchanged arrays and is checked step by step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gpusim.isa.ops import OPS, Instruction
from gpusim.machine.compiled.layout import IN, ROW
from gpusim.machine.warps.state import read, written
from gpusim.typing import Array

CELL_BYTES, STAMP_BYTES = 16, 4  # of an element; of one of local memory
# The bits of an access's block, thread, thread and flags; the flag of accesses by several blocks.
_BLOCK, _THREAD, _WHO = ((1 << 24) - 1) << 14, ((1 << 34) - 1) << 4, (1 << 38) - 1
_OF_BLOCKS = 4
# Ends the run: a rule might report something.
REPORTED = f"{written('reports', '(i32.const 1)')} (unreachable)"


@dataclass(frozen=True)
class Detection:
    """The checked instructions of a program, by pc.

    `accesses` are compared, with the binary logarithm of the bytes of an element of their memory;
    `polls` are loads that atomics may race with, `sums` atomics that add floating-point numbers,
    with the addition (else -1) where they swap it in. `meetings` synchronise lanes of a warp:
    `gathers` need all lanes of their masks, `exchanges` 32 lanes, `whole` all lanes of the warp.
    `conditions` must not be true. Accesses `of_unknown_arrays` are counted. With `steps`, these are
    written down in place of comparisons, each with some operands and the values of some further
    registers before it; lanes with a fault skip their access. `products` may exceed 32 bits:
    whether they are signed. Steps of `swaps` have what these return, too.
    """

    accesses: tuple[tuple[int, int], ...]
    polls: tuple[int, ...]
    sums: tuple[tuple[int, int], ...]
    meetings: tuple[int, ...]
    gathers: tuple[int, ...]
    exchanges: tuple[int, ...]
    whole: tuple[int, ...]
    conditions: tuple[int, ...]
    of_unknown_arrays: tuple[int, ...]
    steps: tuple[tuple[int, tuple[int, ...]], ...] = ()
    products: tuple[tuple[int, bool], ...] = ()
    swaps: tuple[int, ...] = ()


def kept_operands(row: Instruction) -> int:
    """Return the number of operands recorded for a check: address and values, or the mask.

    Of a compare-and-swap the values are the expected and the new one.
    """
    op = OPS[row.op]
    if op.kind == "bounds":
        return len(row.src)
    if row.memory is not None:
        if op.kind == "store":
            return len(row.src)
        return 3 if op.kind == "atomic" and row.detail == "cas" else 1
    return int(op.waits_for_lanes)


@dataclass(frozen=True)
class Cells:
    """The elements of a launch's memories.

    `first_address` is that of the first of `global_elements`; a block has `shared_elements`, the
    first `empty_elements` of them without a value at first, a thread `local_elements`.
    """

    first_address: int
    global_elements: int
    shared_elements: int
    empty_elements: int
    local_elements: int

    def size(self, warps: int, blocks: int = 1) -> int:
        """Return their bytes in linear memory, for some warps of a block and blocks at a time."""
        stamps = 32 * warps * self.local_elements
        own = CELL_BYTES * self.shared_elements + STAMP_BYTES * stamps
        return CELL_BYTES * self.global_elements + own * blocks

    def settings(self, begin: int, blocks: int) -> Mapping[str, int]:
        """Return the module's globals, with the cells from an address on."""
        own = begin + CELL_BYTES * self.global_elements
        return {
            "cells": begin,
            "cells_first": self.first_address,
            "cells_count": self.global_elements,
            "own_cells": own,
            "own_count": self.shared_elements,
            "own_empty": self.empty_elements,
            "stamps": own + CELL_BYTES * self.shared_elements * blocks,
            "stamps_count": self.local_elements,
        }


class Examined(NamedTuple):
    """A launch without races: its accesses, and the pairs with an earlier one.

    Pairs are `ordered`, or need no order (`free`). Accesses `of_unknown_arrays` have other bounds
    than their array's. `ran` has the instructions that ran for some lane, `shared_sums` the lowest
    element with additions of several threads, by the pc of the addition. A product `overflows`.
    Groups of warps ran that many `steps`.
    """

    accesses: int
    ordered: int
    free: int
    local_accesses: int
    of_unknown_arrays: int
    ran: Array
    shared_sums: Mapping[int, int]
    overflows: bool
    steps: int


@dataclass(frozen=True)
class Comparison:
    """The function that compares accesses of a kind, to elements of `1 << shift` bytes.

    The lowest element of a shared sum is kept at `lowest_at`. With `in_order` blocks have cells of
    their own each.
    """

    kind: str  # load, poll, store, atomic
    space: str
    shift: int
    count: int
    lowest_at: int
    in_order: bool

    @classmethod
    def of(
        cls, row: Instruction, shift: int, *, polls: bool, lowest_at: int, in_order: bool
    ) -> Comparison:
        """Return that of an instruction."""
        memory = row.memory
        assert memory is not None
        kind = "poll" if polls else OPS[row.op].kind
        count = max(memory.width_bytes >> shift, 1)
        return cls(kind, memory.space, shift, count, lowest_at, in_order)

    @property
    def name(self) -> str:
        """The function's name."""
        return f"$compare_{self.kind}_{self.space}_{self.shift}x{self.count}_{self.lowest_at}"

    @property
    def text(self) -> str:
        """The function: its parameters are the lanes, one at least, and the warp."""
        made = {"global": self._of_global, "shared": self._of_shared, "local": self._of_local}
        total = "local_accesses" if self.space == "local" else "accesses"
        lanes = f"(i32.mul (i32.const {self.count}) (i32.popcnt (local.get $on)))"
        added = f"(i64.extend_i32_u {lanes})"
        ordered = f"(i64.add {read('ordered')} (i64.extend_i32_u (local.get $total)))"
        return f"""(func {self.name} (param $on i32) (param $W i32) (local $l i32) (local $x i64)
(local $p i32) (local $e i32) (local $met i32) (local $base i64) (local $mine i64)
(local $stamp i32) (local $c v128) (local $h v128) (local $block v128) (local $limit v128)
(local $last i32) (local $n i32) (local $k i32) (local $total i32) (local $is_slow i32)
(local $q i32) (local $r i64) (local $unmet i64) (local $own i32)
{self._owned()}
(local.set $met (i32.load offset=52 (local.get $W)))
(local.set $unmet (i64.shl (i64.extend_i32_u (i32.add (i32.const 1) (local.get $met)))
  (i64.const 38)))
(local.set $stamp (i32.load offset=56 (local.get $W)))
(local.set $base (i64.shl (i64.extend_i32_u (local.get $stamp)) (i64.const 9)))
(local.set $block (i64x2.splat (i64.and (local.get $base) (i64.const {_BLOCK}))))
(local.set $limit (i64x2.splat (i64.shl (i64.extend_i32_u (i32.add (i32.const 1)
  (i32.load offset=60 (local.get $W)))) (i64.const 38))))
{written(total, f"(i64.add {read(total)} {added})")}
(local.set $base (i64.or (local.get $base)
  (i64.shl (i64.extend_i32_u {read("time")}) (i64.const 38))))
(loop $next
  (local.set $l (i32.ctz (local.get $on)))
  (local.set $mine (i64.or (local.get $base)
    (i64.extend_i32_u (i32.shl (local.get $l) (i32.const 4)))))
  {made[self.space]()}
  (br_if $next (local.tee $on
    (i32.and (local.get $on) (i32.sub (local.get $on) (i32.const 1))))))
{written("ordered", ordered)})"""

    def _owned(self) -> str:
        """Return code that sets $own to the number of the block in its batch."""
        if not self.in_order or self.space == "global":
            return ""
        row = f"(i32.load offset={ROW} (local.get $W))"
        return f"(local.set $own (i32.div_u {row} {read('block_warps')}))"

    def _of_global(self) -> str:
        at = f"(i64.load offset={IN} (i32.shl (local.get $l) (i32.const 3)))"
        begin = f"(i64.sub {at} {read('cells_first')})"
        return f"""(local.set $x (i64.shr_u {begin} (i64.const {self.shift})))
  (if (i64.gt_u (i64.add (local.get $x) (i64.const {self.count})) {read("cells_count")})
    (then (unreachable)))
  (local.set $p (i32.add {read("cells")}
    (i32.shl (i32.wrap_i64 (local.get $x)) (i32.const 4))))
  {self._lane()}"""

    def _element(self, count: str) -> str:
        """Return code that sets $e to the first element of a lane in memory of its own."""
        at = f"(i32.load offset={IN} (i32.shl (local.get $l) (i32.const 2)))"
        return f"""(local.set $e (i32.shr_u {at} (i32.const {self.shift})))
  (if (i64.gt_u (i64.add (i64.extend_i32_u (local.get $e)) (i64.const {self.count}))
      (i64.extend_i32_u {read(count)}))
    (then (unreachable)))"""

    def _of_shared(self) -> str:
        return f"""{self._element("own_count")}
  (local.set $p (i32.add {read("own_cells")} (i32.shl (i32.add (local.get $e)
    (i32.mul (local.get $own) {read("own_count")})) (i32.const 4))))
  {self._lane()}"""

    def _lane(self) -> str:
        """Return the work of a lane with its first cell at $p.

        A barrier orders most accesses after all earlier ones: no flags are needed then. Lanes
        that load one element, one after the other, differ in the reader alone.
        """
        if self.kind in ("poll", "atomic"):
            return " ".join(map(self._slowly, range(self.count)))
        work = " ".join(map(self._quickly, range(self.count)))
        if self.kind == "store":
            return work
        again = " ".join(
            f"(i64.store offset={at} (local.get $p) (i64.or (i64.or (local.get $mine)"
            f" (i64.const 1)) (i64.and (i64.const 7) (i64.load offset={at} (local.get $p)))))"
            for at in range(8, CELL_BYTES * self.count, CELL_BYTES)
        )
        return f"""(if (i32.eq (local.get $p) (local.get $last))
  (then {again} (local.set $total (i32.add (local.get $total) (local.get $n))))
  (else
    (local.set $n (i32.const 0)) (local.set $is_slow (i32.const 0))
    {work}
    (local.set $total (i32.add (local.get $total) (local.get $n)))
    (local.set $last (select (i32.const 0) (local.get $p) (local.get $is_slow)))))"""

    def _quickly(self, number: int) -> str:
        """Return the comparison with a cell, with a fast path for accesses ordered by barriers.

        It is taken if the cell has none, has only the thread's own, or all precede its last
        barrier.
        """
        at, mask = CELL_BYTES * number, _BLOCK
        if self.space == "global":
            mask |= _OF_BLOCKS
        ours = (
            "(i64x2.eq (local.get $block) (v128.and (local.get $c)"
            f" (v128.const i64x2 {mask} {mask})))"
        )
        none = "(i64x2.eq (local.get $c) (v128.const i64x2 0 0))"
        if self.space == "shared":
            none = f"(v128.not {ours})"
        mine = (
            f"(i64x2.eq (v128.and (local.get $c) (v128.const i64x2 {_WHO} {_WHO}))"
            " (i64x2.splat (i64.and (local.get $mine) (i64.const 0x3FFFFFFFFF))))"
        )
        before = f"(v128.and {ours} (i64x2.gt_s (local.get $limit) (local.get $c)))"
        code = f"""(local.set $c (v128.load offset={at} (local.get $p)))
  (local.set $h {none})
  (local.set $k (i32.xor (i32.const 3) (i64x2.bitmask (local.get $h))))
  (local.set $h (v128.or (local.get $h) {before}))
  (local.set $q (i64x2.bitmask (v128.or (local.get $h) {mine})))"""
        if self.kind == "store":
            return f"""{code}
  (if (i32.eq (i32.const 3) (local.get $q))
    (then
      (local.set $total (i32.add (local.get $total) (i32.popcnt (local.get $k))))
      (i64.store offset={at} (local.get $p) (local.get $mine)))
    (else {self._slowly(number)}))"""
        is_quick = "(i32.and (i32.const 1) (local.get $q))"
        if self.space == "shared":
            is_quick = f"(i32.and (local.get $k) {is_quick})"
        # A store of the lane's own is in order for no other lane.
        return f"""{code}
  (local.set $is_slow (i32.or (local.get $is_slow) (i32.and (i32.const 1)
    (i32.xor (i32.const 1) (i64x2.bitmask (local.get $h))))))
  (if {is_quick}
    (then
      (local.set $n (i32.add (local.get $n) (i32.and (local.get $k) (i32.const 1))))
      {self._read(at + 8)})
    (else (local.set $is_slow (i32.const 1)) {self._slowly(number)}))"""

    def _read(self, at: int) -> str:
        """Return code that enters a reader beside the one before it, as `$others` does."""
        store = f"i64.store offset={at} (local.get $p) (i64.or (local.get $mine)"
        return f"""(local.set $r (i64x2.extract_lane 1 (local.get $c)))
      (local.set $x (i64.and (i64.const {_THREAD}) (i64.xor (local.get $r) (local.get $mine))))
      (if (i32.and (i32.const 2) (local.get $q))
        (then (i64.store offset={at} (local.get $p) (local.get $mine)))
        (else (if (i64.lt_u (local.get $x) (i64.const 0x200))
          (then ({store} (select
            (i64.or (i64.and (local.get $r) (i64.const 7))
              (i64.extend_i32_u (i64.ne (local.get $x) (i64.const 0))))
            (i64.and (local.get $r) (i64.const 6))
            (i64.ge_u (local.get $r) (local.get $unmet))))))
          (else ({store} (select
            (i64.or (i64.const 2) (i64.and (local.get $r) (i64.const 4)))
            (i64.const 4)
            (i64.lt_u (local.get $x) (i64.const 0x4000)))))))))"""

    def _slowly(self, number: int) -> str:
        """Return the comparison with a cell."""
        at = CELL_BYTES * number
        writer, reader = (f"(i64.load offset={at + more} (local.get $p))" for more in (0, 8))
        parts = []
        if self.space == "shared":
            writer, reader = (
                f"(call $of_block {one} (local.get $mine))" for one in (writer, reader)
            )
            if self.kind == "poll":
                reader = f"(call $of_phase {reader} (local.get $W))"
            if self.kind != "store":
                parts.append(
                    f"(if (i64.eqz {writer}) (then (if (i32.lt_u (i32.add (local.get $e)"
                    f" (i32.const {number})) {read('own_empty')}) (then {REPORTED}))))"
                )
        cell = f"(i32.add (local.get $p) (i32.const {at}))"
        if self.lowest_at:
            first = (
                "(local.get $x)" if self.space == "global" else "(i64.extend_i32_u (local.get $e))"
            )
            element = f"(i64.add {first} (i64.const {number + 1}))"
            parts.append(
                f"(call $shares {writer} (local.get $mine) {element} (i32.const {self.lowest_at}))"
            )
        parts.append(
            f"(call $cell_{self.kind} {cell} (local.get $mine) (local.get $W) {writer} {reader})"
        )
        return " ".join(parts)

    def _of_local(self) -> str:
        warps = f"(i32.mul (local.get $own) {read('block_warps')})"
        warp = f"(i32.add {warps} (i32.and (i32.const 31) (local.get $stamp)))"
        lane = f"(i32.or (local.get $l) (i32.shl {warp} (i32.const 5)))"
        place = f"(i32.add (i32.mul {lane} {read('stamps_count')}) (local.get $e))"
        marks = []
        for k in range(self.count):
            at = f"offset={STAMP_BYTES * k} (local.get $p)"
            marks.append(
                f"(i32.store {at} (local.get $stamp))"
                if self.kind == "store"
                else f"(if (i32.ne (i32.load {at}) (local.get $stamp)) (then (unreachable)))"
            )
        return f"""{self._element("stamps_count")}
  (local.set $p (i32.add {read("stamps")} (i32.shl {place} (i32.const 2))))
  {" ".join(marks)}"""
