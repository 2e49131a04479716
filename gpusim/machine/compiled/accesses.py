"""Functions of a module that access memory: one for each kind, size and number of elements.

Operands are the addresses, 64-bit for global memory and 32-bit for a block's or thread's own, and
the values to store. An address in no array, outside its memory or misaligned traps: the launch
is then NumPy's, with its messages. Accesses to global memory return the number of their sectors.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.isa.ops import LOCAL_HIGH, RANK_SHIFT, SHARED_HIGH
from gpusim.machine.compiled.layout import (
    CHUNKED,
    IN,
    LOCAL,
    OPERAND_BYTES,
    OUT,
    SHARED,
    SHARED_LIMIT,
)
from gpusim.machine.warps.state import read

_SHIFT = read("shift")  # of global memory to linear memory
_LANES = """(local.set $m (local.get $on))
(block $done (loop $next
  (br_if $done (i32.eqz (local.get $m)))
  (local.set $l (i32.ctz (local.get $m)))
  (local.set $m (i32.and (local.get $m) (i32.sub (local.get $m) (i32.const 1))))
  {body}
  (br $next)))"""

COMMUTATIVE = {
    "add": "({t}.add {old} {new})",
    "sub": "({t}.sub {old} {new})",
    "and": "({t}.and {old} {new})",
    "or": "({t}.or {old} {new})",
    "xor": "({t}.xor {old} {new})",
    "min": "(select {old} {new} ({t}.lt_{s} {old} {new}))",
    "max": "(select {old} {new} ({t}.gt_{s} {old} {new}))",
}
_ONE_MORE = "({t}.add {old} ({t}.const 1))"
_ONE_LESS = "({t}.sub {old} ({t}.const 1))"
FLOATING = {
    "add": (
        "({t}.reinterpret_{f} ({f}.add ({f}.reinterpret_{t} {old}) ({f}.reinterpret_{t} {new})))"
    ),
    "add_flushed": "(call $add_flushed {old} {new})",
    "add_doubles": "(call $add_doubles {old} {new})",
    "exch": "{new}",
}
_TWO_SUMS = """(i64.or
  (i64.extend_i32_u (call $add_flushed (i32.wrap_i64 {old}) (i32.wrap_i64 {new})))
  (i64.shl (i64.extend_i32_u (call $add_flushed (i32.wrap_i64 (i64.shr_u {old} (i64.const 32)))
    (i32.wrap_i64 (i64.shr_u {new} (i64.const 32))))) (i64.const 32)))"""
WIDE_ATOMICS = ("exch", "cas", "add_floats")  # also of 16 bytes
# Updates of words that are barriers.
BARRIER_WORDS = {
    "arrive": "(call $arrived {old} {new})",
    "arrive_and_drop": "(call $dropped {old} {new})",
    "arrive_expecting": "(call $arrived_expecting {old} {new})",
    "arrive_in_halves": "(call $arrived_in_halves {old} {new})",
    "expect_transactions": "(call $expecting {old} {new})",
    "complete_transactions": "(call $completed {old} {new})",
}
# Updates of bits in memory by operations of integers, and of floating-point numbers.
ATOMICS = {
    **COMMUTATIVE,
    **FLOATING,
    **BARRIER_WORDS,
    "add_floats": _TWO_SUMS,
    "add": COMMUTATIVE["add"],
    "cas": "(select {other} {old} ({t}.eq {old} {new}))",
    "inc": f"(select ({{t}}.const 0) {_ONE_MORE} ({{t}}.ge_{{s}} {{old}} {{new}}))",
    "dec": (
        f"(select {{new}} {_ONE_LESS}"
        " (i32.or ({t}.eqz {old}) ({t}.gt_{s} {old} {new})))"
    ),
}


def _outside(width: int) -> str:
    """Return whether bytes from $x on lie outside the array."""
    return (
        "(i32.or (i64.lt_s (local.get $x) (local.get $low)) (i64.gt_s (local.get $x)"
        f" (i64.sub (i64.add (local.get $low) (local.get $size)) (i64.const {width}))))"
    )


def _is_kind(number: int) -> str:
    """Return whether distances of a thread's or block's addresses are of a kind."""
    return f"(i32.eq (i32.load offset=132 (local.get $slot)) (i32.const {number}))"


@dataclass(frozen=True)
class Access:
    """A kind of access: to a space, of `count` elements of `item` bytes each."""

    kind: str  # load, store, the begin of an asynchronous copy, or an atomic operation's name
    space: str
    item: int
    count: int = 1
    signed: bool = False
    results: int = 0  # registers that take an atomic's old value
    floating: bool = False
    tried: bool = False  # by one lane of each word; others have failed
    cluster_at: int = 0  # of a warp: its part of a cluster, 0 for none

    @property
    def name(self) -> str:
        """The function of this access."""
        sign = "f" if self.floating else "s" if self.signed else "u"
        tried = "_tried" if self.tried else ""
        return f"${self.kind}{tried}_{self.space}_{sign}{self.item}x{self.count}_{self.results}"

    @property
    def width(self) -> int:
        """Bytes of a lane's access."""
        return self.item * self.count

    @property
    def text(self) -> str:
        """The function.

        The first parameter is the lanes. For global memory an entry of the table of arrays, a flag
        for any other array, and a table of marks follow; for other memory its place, first address
        and bytes; then the place of the distances between the addresses and, for a copy, the warp.
        For generic addresses the warp, the begin of shared memory and the bytes of local memory
        follow.
        """
        return {
            "global": self._global,
            "shared": self._shared,
            "local": self._local,
            "generic": self._generic,
        }[self.space]()

    # -- what lanes do, at $q ----------------------------------------------------------

    def _move(self, stride: int = 1) -> str:
        """Return the moves of a lane; words of one access are `stride` words apart in memory."""
        made = []
        scalar = "i64" if self.item == 8 and stride == 1 else "i32"
        shift = 3 if self.item == 8 else 2
        lane = f"(i32.shl (local.get $l) (i32.const {shift}))"
        for number in range(self.count):
            for word in range(2 if self.item == 8 and stride > 1 else 1):
                there = (number * self.item + 4 * word) * stride
                if self.kind == "load":
                    at = OUT + OPERAND_BYTES * number + 4 * word
                    made.append(f"({scalar}.store offset={at} {lane} {self._read(scalar, there)})")
                else:
                    at = IN + OPERAND_BYTES * (number + 1) + 4 * word
                    size = {1: "8", 2: "16"}.get(self.item, "")
                    made.append(
                        f"({scalar}.store{size} offset={there} (local.get $q)"
                        f" ({scalar}.load offset={at} {lane}))"
                    )
        return "\n  ".join(made)

    def _read(self, scalar: str, offset: int) -> str:
        size = {1: "8", 2: "16"}.get(self.item, "")
        sign = f"_{'s' if self.signed else 'u'}" if size else ""
        return f"({scalar}.load{size}{sign} offset={offset} (local.get $q))"

    def _update_wide(self) -> str:
        """Return an atomic update by a lane of four words."""
        lane = "(i32.shl (local.get $l) (i32.const 2))"
        given = [f"(i32.load offset={IN + OPERAND_BYTES * n} {lane})" for n in range(1, 9)]
        old = [f"(i32.load offset={4 * n} (local.get $q))" for n in range(4)]
        kept = "".join(
            f"(i32.store offset={OUT + OPERAND_BYTES * n} {lane} {old[n]})"
            for n in range(self.results)
        )
        new = {
            "exch": given[:4],
            "cas": given[4:],
            "add_floats": [
                f"(call $add_flushed {a} {b})" for a, b in zip(old, given, strict=False)
            ],
        }[self.kind]
        stored = "".join(f"(i32.store offset={4 * n} (local.get $q) {new[n]})" for n in range(4))
        if self.kind == "cas":
            differ = "(i32.const 0)"
            for word, expected in zip(old, given, strict=False):
                differ = f"(i32.or {differ} (i32.ne {word} {expected}))"
            stored = f"(if (i32.eqz {differ}) (then {stored}))"
        return kept + stored

    def _update(self) -> str:
        """Return an atomic update by a lane."""
        if self.item == 16:
            return self._update_wide()
        scalar, shift = ("i64", 3) if self.item == 8 else ("i32", 2)
        lane = f"(i32.shl (local.get $l) (i32.const {shift}))"
        held = "(local.get $o)" if scalar == "i32" else "(local.get $O)"
        given = [f"({scalar}.load offset={IN + OPERAND_BYTES * n} {lane})" for n in (1, 2)]
        form = (FLOATING if self.floating else ATOMICS)[self.kind]
        made = form.format(
            t=scalar,
            f=scalar.replace("i", "f"),
            s="s" if self.signed else "u",
            old=held,
            new=given[0],
            other=given[1],
        )
        parts = [f"(local.set {held[11:-1]} ({scalar}.load (local.get $q)))"]
        if self.tried:
            # A lane that is not the first one never finds its expected value.
            count = "(call $counted (i64.extend_i32_u (local.get $q)))"
            other = f"({scalar}.xor {given[0]} ({scalar}.const -1))"
            parts.append(f"(local.set $x (i32.gt_s {count} (i32.const 1)))")
            parts.append(f"(if (local.get $x) (then (local.set {held[11:-1]} {other})))")
        word = "(i32.shl (local.get $l) (i32.const 2))"
        if self.results == 1:
            at = lane if scalar == "i64" else word
            parts.append(f"({scalar}.store offset={OUT} {at} {held})")
        for n in range(self.results if self.results > 1 else 0):
            half = f"(i32.wrap_i64 (i64.shr_u {held} (i64.const {32 * n})))"
            parts.append(f"(i32.store offset={OUT + OPERAND_BYTES * n} {word} {half})")
        stored = f"({scalar}.store (local.get $q) {made})"
        parts.append(f"(if (i32.eqz (local.get $x)) (then {stored}))" if self.tried else stored)
        return " ".join(parts)

    # -- by space ----------------------------------------------------------------------

    @property
    def _each(self) -> str:
        """Return the work of the lanes, with checked addresses; lanes that are off may load too."""
        step = "(local.set $l (i32.ctz (local.get $m)))"
        more = "(local.tee $m (i32.and (local.get $m) (i32.sub (local.get $m) (i32.const 1))))"
        if self.kind == "load":
            step = ""
            more = "(i32.lt_u (local.tee $l (i32.add (local.get $l) (i32.const 1))) (i32.const 32))"
        return f"""(local.set $m (local.get $on)) (local.set $l (i32.const 0))
(loop $each {step} {{place}}
  {self._moved}
  (br_if $each {more}))"""

    @property
    def _moved(self) -> str:
        if self.kind in ("load", "store"):
            return self._move(32 if self.space == "local" else 1)
        return self._update()

    def _rows(self, *, alike: bool = False) -> str:
        """Return the moves of neighbouring words from $q on, in vectors; or of one for all."""
        code = []
        for k in range(0, 128, 16):
            if self.kind == "store":
                held = f"(v128.load offset={IN + OPERAND_BYTES + k} (i32.const 0))"
                code.append(f"(v128.store offset={k} align=4 (local.get $q) {held})")
            else:
                held = f"(v128.load offset={k} align=4 (local.get $q))"
                held = "(local.get $v)" if alike else held
                code.append(f"(v128.store offset={OUT + k} (i32.const 0) {held})")
        first = "(local.set $v (v128.load32_splat (local.get $q)))" if alike else ""
        return "\n".join([first, *code])

    @property
    def _is_of_words(self) -> bool:
        return self.item == self.width == 4 and self.kind in ("load", "store")

    def _global(self) -> str:
        """Return an access to an array: to that of entry $e, or (if $any) those at the addresses.

        $t is a table of marks of sectors, or 0.
        """
        bytes_at = 8 if self.kind == "load" else 16
        stored = "" if self.kind == "load" else "(i32.store offset=24 (local.get $e) (i32.const 1))"
        entry = (
            "(local.set $low (i64.load (local.get $e)))\n"
            f"(local.set $size (i64.load offset={bytes_at} (local.get $e))) {stored}"
        )
        outside = _outside(self.width)
        slow = f"""(local.set $x (i64.load offset={IN} (i32.shl (local.get $l) (i32.const 3))))
  (if {outside} (then
    (local.set $e (call $find (local.get $x) (i64.const {self.width})))
    {entry}
    (if {outside} (then (unreachable)))))
  (if (i32.and (i32.wrap_i64 (local.get $x)) (i32.const {self.width - 1})) (then (unreachable)))"""
        place = (
            f"(local.set $q (i32.sub (i32.load offset={IN} (i32.shl (local.get $l) (i32.const 3)))"
            " (local.get $s)))"
        )
        is_outside = f"""(i32.or
    (i64.ne (i64.const 0) (i64.and (i64.const {self.width - 1})
      (i64.or (local.get $x) (i64.load offset=288 (local.get $slot)))))
    (i32.or
      (i64.lt_s (i64.add (local.get $x) (i64.load offset=272 (local.get $slot)))
        (local.get $low))
      (i64.gt_s (i64.add (local.get $x) (i64.load offset=280 (local.get $slot)))
        (i64.add (local.get $low) (i64.sub (local.get $size) (i64.const {self.width}))))))"""
        there = (
            f"(call $is_there (local.get $e) (local.get $x) (local.get $slot)"
            f" (i64.const {self.width}) (i32.const {bytes_at - 8}))"
        )
        return f"""(func {self.name} (param $on i32) (param $e i32) (param $any i32) (param $t i32)
(param $slot i32) (result i32) (local $m i32) (local $l i32) (local $q i32) (local $o i32)
(local $O i64) (local $n i32) (local $s i32) (local $x i64) (local $low i64) (local $size i64)
(local $v v128)
{entry}
(local.set $s (i32.wrap_i64 {_SHIFT}))
(if (i32.ne (local.get $on) (i32.const -1)) (then (call $fit_wide (local.get $on))))
(call $look_wide (local.get $slot))
(local.set $x (i64.load (i32.const {IN})))
(if {is_outside} (then (if (i32.eqz {there}) (then
  (if (i32.eqz (local.get $any)) (then (unreachable)))
  (local.set $e (call $find (local.get $x) (i64.const {self.width})))
  {entry}
  (if {is_outside} (then (if (i32.eqz {there}) (then
    (if (i32.load (i32.const {CHUNKED})) (then
      (call $bring (i32.const 0) (i32.const 0))
      {entry}))
    {_LANES.format(body=slow)}))))))))
{self._quick()}
{self._each.format(place=place)}
{self._sectors}
(local.get $n))"""

    @property
    def _sectors(self) -> str:
        """Return the count of sectors, and their marks; an atomic's are not requested."""
        if self.kind not in ("load", "store"):
            return ""
        return """(local.set $m (call $firsts (local.get $on) (local.get $slot)))
(local.set $n (i32.popcnt (local.get $m)))
(if (local.get $t) (then (call $mark (local.get $m) (local.get $t))))"""

    def _quick(self) -> str:
        """Return the fast path of neighbouring words, or of a single one."""
        if not self._is_of_words:
            return ""
        place = f"(local.set $q (i32.sub (i32.load (i32.const {IN})) (local.get $s)))"
        row = """(if (local.get $t) (then
    (call $mark_row (local.get $t) (local.get $q) (local.get $n))))
  (return (local.get $n))"""
        one = ""
        if self.kind == "load":
            one = f"""(if (i32.eqz (local.get $m))
  (then {place} {self._rows(alike=True)} (local.set $n (i32.const 1)) {row}))"""
        return f"""(local.set $m (i32.load offset=268 (local.get $slot)))
(if (i32.and (i32.eq (local.get $on) (i32.const -1)) (i32.eq (local.get $m) (i32.const 1)))
  (then {place} {self._rows()}
    (local.set $n (i32.wrap_i64 (i64.add (i64.const 1) (i64.sub
      (i64.shr_u (i64.add (local.get $x) (i64.const 124)) (i64.const 5))
      (i64.shr_u (local.get $x) (i64.const 5))))))
    {row}))
{one}"""

    # -- memory of a block or thread ---------------------------------------------------

    def _shared(self) -> str:
        if self.kind == "begin":
            where = f"(local.get $on) (local.get $at) (i32.const {self.count})"
            return self._own(f"(call $begin_copy (local.get $W) {where})", "(param $W i32)")
        quick = ""
        place = f"(local.set $q (i32.add (local.get $at) (i32.load (i32.const {IN}))))"
        if self._is_of_words:
            quick = f"""(if (i32.and (i32.eq (local.get $on) (i32.const -1))
    {_is_kind(1)}) (then {place} {self._rows()} (return)))"""
        if self._is_of_words and self.kind == "load":
            rows = self._rows(alike=True)
            quick += f"(if {_is_kind(0)} (then {place} {rows} (return)))"
        each = (
            "(local.set $q (i32.add (local.get $at)"
            f" (i32.load offset={IN} (i32.shl (local.get $l) (i32.const 2)))))"
        )
        begins = "(call $new_set)" if self.tried else ""
        return self._own(f"{quick}\n{begins} {self._each.format(place=each)}")

    def _own(self, work: str, warp: str = "") -> str:
        """Return an access to memory at $at, with `bytes` from its `first` address on."""
        return f"""(func {self.name} (param $on i32) (param $at i32) (param $first i32)
(param $bytes i32) (param $slot i32) {warp} (local $m i32) (local $l i32) (local $q i32)
(local $o i32) (local $O i64) (local $x i32) (local $v v128)
(if (i32.ne (local.get $on) (i32.const -1)) (then (call $fit (local.get $on))))
(if (i32.lt_u (local.get $bytes) (i32.const {self.width})) (then (unreachable)))
(call $look (local.get $slot))
(if (call $is_outside (local.get $slot) (local.get $first)
    (i32.sub (local.get $bytes) (i32.const {self.width})) (i32.const {self.width - 1}))
  (then (unreachable)))
{work})"""

    def _local(self) -> str:
        """Return an access to a thread's memory: word by word, the lanes lie side by side."""
        place = "(local.set $q (i32.add (local.get $at) (i32.shl (local.get $x) (i32.const 5))))"
        quick = ""
        if self._is_of_words:
            mine = "" if self.kind == "load" else "(i32.eq (local.get $on) (i32.const -1))"
            alike = _is_kind(0)
            alike = f"(i32.and {mine} {alike})" if mine else alike
            quick = f"""(if {alike} (then (local.set $x (i32.load (i32.const {IN}))) {place}
    {self._rows()} (return)))"""
        each = f"""(local.set $x (i32.load offset={IN} (i32.shl (local.get $l) (i32.const 2))))
  (local.set $q (i32.add (i32.add (local.get $at) (i32.shl (local.get $l) (i32.const 2)))
    (i32.add (i32.shl (i32.and (local.get $x) (i32.const -4)) (i32.const 5))
      (i32.and (local.get $x) (i32.const 3)))))"""
        return self._own(f"{quick}\n{self._each.format(place=each)}")

    def _generic(self) -> str:
        """Return an access lane by lane: the upper half of an address names the memory."""
        word = "(i32.wrap_i64 (local.get $a))"
        odd = f"(i32.and (local.get $q) (i32.const {self.width - 1}))"

        def own(first: str, bytes_there: str, word: str = word) -> str:
            """Return code that sets $q to a place in own memory."""
            last = f"(i32.sub {bytes_there} (i32.const {self.width}))"
            return f"""(local.set $q (i32.sub {word} {first}))
    (if (i32.or {odd} (i32.or (i32.lt_s {last} (i32.const 0)) (i32.gt_u (local.get $q) {last})))
      (then (unreachable)))"""

        begin = f"(i32.load offset={SHARED} (local.get $W))"
        ranked = ""
        if self.cluster_at:
            rank = f"(i32.load offset={self.cluster_at} (local.get $W))"
            ranked = f"""(local.set $r (i32.shr_u {word} (i32.const {RANK_SHIFT})))
    (if (i32.ge_u (local.get $r) {read("cluster")}) (then (unreachable)))"""
            begin = f"""(i32.add {begin}
        (i32.mul (i32.sub (local.get $r) {rank}) {read("shared_bytes")}))"""
        inside = f"(i32.and {word} (i32.const {(1 << RANK_SHIFT) - 1}))" if ranked else word
        limit = f"(i32.load (i32.const {SHARED_LIMIT}))"
        shared = ranked + own("(local.get $first)", limit, inside)
        local = own("(i32.const 0)", "(local.get $bytes)")
        moved = self._move(32) if self.kind in ("load", "store") else "(unreachable)"
        stores = int(self.kind != "load")
        each = f"""(local.set $a (i64.load offset={IN} (i32.shl (local.get $l) (i32.const 3))))
  (local.set $n (i32.wrap_i64 (i64.shr_u (local.get $a) (i64.const 32))))
  (if (i32.eq (local.get $n) (i32.const {LOCAL_HIGH})) (then {local}
    (local.set $q (i32.add (i32.load offset={LOCAL} (local.get $W))
      (i32.add (i32.shl (local.get $l) (i32.const 2))
        (i32.add (i32.shl (i32.and (local.get $q) (i32.const -4)) (i32.const 5))
          (i32.and (local.get $q) (i32.const 3))))))
    {moved})
  (else
    (if (i32.eq (local.get $n) (i32.const {SHARED_HIGH})) (then {shared}
      (local.set $q (i32.add (local.get $q) {begin})))
    (else
      (local.set $e (call $reached (local.get $e) (local.get $a) (i64.const {self.width})
        (i32.const {stores})))
      (local.set $q (i32.wrap_i64 (i64.sub (local.get $a) {_SHIFT})))))
    {self._moved}))"""
        return f"""(func {self.name} (param $on i32) (param $W i32) (param $first i32)
(param $bytes i32) (local $m i32) (local $l i32) (local $q i32) (local $o i32) (local $O i64)
(local $n i32) (local $e i32) (local $a i64) (local $r i32)
{_LANES.format(body=each)})"""


@dataclass(frozen=True)
class Constants:
    """A load of words from a constant bank, or parts of words, at offsets in registers."""

    item: int
    count: int
    signed: bool

    @property
    def name(self) -> str:
        """The function of this load."""
        return f"$constants_{'s' if self.signed else 'u'}{self.item}x{self.count}"

    @property
    def text(self) -> str:
        """The function: its parameters are the lanes, a bank's entry, and a place of distances."""
        size = {1: "8", 2: "16", 4: ""}[self.item]
        sign = f"_{'s' if self.signed else 'u'}" if size else ""
        moves, alike = [], []
        for number in range(self.count):
            load = f"(i32.load{size}{sign} offset={self.item * number} (local.get $q))"
            out = OUT + OPERAND_BYTES * number
            lane = "(i32.shl (local.get $l) (i32.const 2))"
            moves.append(f"(i32.store offset={out} {lane} {load})")
            alike.append(f"(call $splat (i32.const {out}) {load})")
        last = "(i64.sub (i64.load32_u offset=8 (local.get $e)) (i64.const 1))"
        whole = f"(i32.const {-self.item})"
        return f"""(func {self.name} (param $on i32) (param $e i32) (param $slot i32)
(local $l i32) (local $q i32) (local $at i32) (local $x i64)
(if (i32.ne (local.get $on) (i32.const -1)) (then (call $fit_wide (local.get $on))))
(call $look_wide (local.get $slot))
(local.set $x (i64.load (i32.const {IN})))
(if (i32.or
    (i64.lt_s (i64.add (local.get $x) (i64.load offset=272 (local.get $slot)))
      (i64.load32_u offset=4 (local.get $e)))
    (i64.gt_s (i64.add (local.get $x) (i64.load offset=280 (local.get $slot))) {last}))
  (then (unreachable)))
(local.set $at (i32.load (local.get $e)))
(if (i32.eqz (i32.load offset=268 (local.get $slot))) (then
  (local.set $q (i32.add (local.get $at) (i32.and (i32.wrap_i64 (local.get $x)) {whole})))
  {" ".join(alike)} (return)))
(loop $each
  (local.set $q (i32.add (local.get $at) (i32.and {whole}
    (i32.load offset={IN} (i32.shl (local.get $l) (i32.const 3))))))
  {" ".join(moves)}
  (br_if $each (i32.lt_u (local.tee $l (i32.add (local.get $l) (i32.const 1))) (i32.const 32)))))"""
