"""Asynchronous copies to shared memory in compiled code: a queue of each warp.

As in NumPy (`machine/pending_copies.py`), values lie in their place once the lanes that issued
their copy have waited for its group. A copy is an entry of a pool: the next one of its warp, lanes
that it is still on its way for, their groups and addresses, and up to four words of each. A launch
with more copies on their way than the pool has entries traps: it is NumPy's.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.machine.compiled.layout import operand
from gpusim.machine.warps.state import read, written

ENTRIES = 4096  # of the pool
MOST_WORDS = 4
_NEXT, _LANES, _WORDS, _GROUPS, _TO, _VALUES = 0, 4, 8, 16, 144, 272
_VECTORS = range(0, 128, 16)  # of a word for each lane
ENTRY_BYTES = _VALUES + MOST_WORDS * 128
# Of a warp: its first and last entry, and the number of groups that each lane has made.
_FIRST, _LAST, _COMMITTED = 0, 4, 16
QUEUE_BYTES = _COMMITTED + 128


@dataclass(frozen=True)
class Queues:
    """The functions on queues, `queue` bytes behind the begin of a warp."""

    queue: int
    name = "$queues"

    @property
    def text(self) -> str:
        """The functions."""
        free = read("free_copies")
        first, last = self.queue + _FIRST, self.queue + _LAST
        committed = self.queue + _COMMITTED
        commits = " ".join(
            f"(v128.store offset={committed + k} (local.get $W) (i32x4.sub"
            f" (v128.load offset={committed + k} (local.get $W))"
            f" (call $four (local.get $on) (i32.const {k // 4}))))"
            for k in _VECTORS
        )
        ended = "(i32.const 0)"
        for k in _VECTORS:
            before = (
                f"(i32x4.lt_s (v128.load offset={_GROUPS + k} (local.get $e)) (i32x4.sub"
                f" (v128.load offset={committed + k} (local.get $W))"
                " (i32x4.splat (local.get $allowed))))"
            )
            ended = f"(i32.or {ended} (i32.shl (i32x4.bitmask {before}) (i32.const {k // 4})))"
        return f"""(func $commit_copies (param $W i32) (param $on i32) {commits})
(func $new_copy (result i32) (local $e i32)
(if (local.tee $e {free}) (then
  {written("free_copies", "(i32.load (local.get $e))")} (return (local.get $e))))
(local.set $e {read("copies")})
(if (i32.ge_u (local.get $e) {read("copies_end")}) (then (unreachable)))
{written("copies", f"(i32.add (local.get $e) (i32.const {ENTRY_BYTES}))")}
(local.get $e))
(func $free_copy (param $e i32)
(i32.store (local.get $e) {free}) {written("free_copies", "(local.get $e)")})
(func $forget_copies (param $W i32) (local $e i32) (local $next i32)
(local.set $e (i32.load offset={first} (local.get $W)))
(block $done (loop $each
  (br_if $done (i32.eqz (local.get $e)))
  (local.set $next (i32.load (local.get $e)))
  (call $free_copy (local.get $e))
  (local.set $e (local.get $next))
  (br $each)))
(i32.store offset={first} (local.get $W) (i32.const 0)))
(func $set_lanes (param $e i32) (param $m i32) (local $words i32) (local $at i32) (local $to i32)
(loop $lane
  (local.set $at (i32.add (local.get $e) (i32.shl (i32.ctz (local.get $m)) (i32.const 2))))
  (local.set $to (i32.load offset={_TO} (local.get $at)))
  (local.set $words (i32.load offset={_WORDS} (local.get $e)))
  (loop $word
    (i32.store (local.get $to) (i32.load offset={_VALUES} (local.get $at)))
    (local.set $to (i32.add (local.get $to) (i32.const 4)))
    (local.set $at (i32.add (local.get $at) (i32.const 128)))
    (br_if $word (local.tee $words (i32.sub (local.get $words) (i32.const 1)))))
  (br_if $lane (local.tee $m
    (i32.and (local.get $m) (i32.sub (local.get $m) (i32.const 1)))))))
(func $land_copies (param $W i32) (param $on i32) (param $allowed i32) (local $e i32)
(local $before i32) (local $next i32) (local $m i32) (local $left i32)
(local.set $e (i32.load offset={first} (local.get $W)))
(block $done (loop $each
  (br_if $done (i32.eqz (local.get $e)))
  (local.set $next (i32.load (local.get $e)))
  (local.set $left (i32.load offset={_LANES} (local.get $e)))
  (local.set $m (i32.and (i32.and (local.get $left) (local.get $on)) {ended}))
  (if (local.get $m) (then
    (call $set_lanes (local.get $e) (local.get $m))
    (local.set $left (i32.and (local.get $left) (i32.xor (local.get $m) (i32.const -1))))
    (i32.store offset={_LANES} (local.get $e) (local.get $left))
    (if (i32.eqz (local.get $left)) (then
      (if (local.get $before)
        (then (i32.store (local.get $before) (local.get $next)))
        (else (i32.store offset={first} (local.get $W) (local.get $next))))
      (if (i32.eqz (local.get $next))
        (then (i32.store offset={last} (local.get $W) (local.get $before))))
      (call $free_copy (local.get $e))
      (local.set $e (local.get $before))))))
  (local.set $before (local.get $e))
  (local.set $e (local.get $next))
  (br $each))))"""


@dataclass(frozen=True)
class Begin:
    """The issue of a copy of some words a lane, whose addresses and values are operands."""

    words: int
    queues: Queues

    @property
    def name(self) -> str:
        """The function of this issue."""
        return f"$begin_copy_{self.words}"

    @property
    def text(self) -> str:
        """The function; its parameters are those of an access to shared memory, and the warp."""
        first, last = self.queues.queue + _FIRST, self.queues.queue + _LAST
        groups = self.queues.queue + _COMMITTED
        width = 4 * self.words
        moves = []
        for k in _VECTORS:
            moves.append(
                f"(v128.store offset={_GROUPS + k} (local.get $e)"
                f" (v128.load offset={groups + k} (local.get $W)))"
            )
            moves.append(
                f"(v128.store offset={_TO + k} (local.get $e) (i32x4.add"
                f" (i32x4.splat (local.get $at)) (v128.load (i32.const {operand(0) + k}))))"
            )
            moves += [
                f"(v128.store offset={_VALUES + 128 * word + k} (local.get $e)"
                f" (v128.load (i32.const {operand(1 + word) + k})))"
                for word in range(self.words)
            ]
        return f"""(func {self.name} (param $on i32) (param $at i32) (param $first i32)
(param $bytes i32) (param $slot i32) (param $W i32) (local $e i32)
(if (i32.ne (local.get $on) (i32.const -1)) (then (call $fit (local.get $on))))
(if (i32.lt_u (local.get $bytes) (i32.const {width})) (then (unreachable)))
(call $look (local.get $slot))
(if (call $is_outside (local.get $slot) (local.get $first)
    (i32.sub (local.get $bytes) (i32.const {width})) (i32.const {width - 1}))
  (then (unreachable)))
(local.set $e (call $new_copy))
(i32.store offset={_NEXT} (local.get $e) (i32.const 0))
(i32.store offset={_LANES} (local.get $e) (local.get $on))
(i32.store offset={_WORDS} (local.get $e) (i32.const {self.words}))
{" ".join(moves)}
(if (i32.load offset={first} (local.get $W))
  (then (i32.store (i32.load offset={last} (local.get $W)) (local.get $e)))
  (else (i32.store offset={first} (local.get $W) (local.get $e))))
(i32.store offset={last} (local.get $W) (local.get $e)))"""
