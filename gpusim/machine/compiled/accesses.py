"""Functions of a module that access memory: one for each kind, size and number of elements.

Operands are the addresses, 64-bit for global memory and 32-bit for a block's or thread's own, and
the values to store. An address in no array, outside its memory or misaligned traps: the launch
is then NumPy's, with its messages. Accesses to global memory return the number of their sectors.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.machine.compiled.layout import IN, OPERAND_BYTES, OUT

_LANES = """(local.set $m (local.get $on))
(block $done (loop $next
  (br_if $done (i32.eqz (local.get $m)))
  (local.set $l (i32.ctz (local.get $m)))
  (local.set $m (i32.and (local.get $m) (i32.sub (local.get $m) (i32.const 1))))
  {body}
  (br $next)))"""

_ATOMICS = {
    "add": "({t}.add {old} {new})",
    "sub": "({t}.sub {old} {new})",
    "and": "({t}.and {old} {new})",
    "or": "({t}.or {old} {new})",
    "xor": "({t}.xor {old} {new})",
    "min": "(select {old} {new} ({t}.lt_{s} {old} {new}))",
    "max": "(select {old} {new} ({t}.gt_{s} {old} {new}))",
}
COMMUTATIVE = frozenset(_ATOMICS)


def _outside(width: int) -> str:
    """Return whether so many bytes from $x on do not lie in the array."""
    return (
        "(i32.or (i64.lt_s (local.get $x) (local.get $low)) (i64.gt_s (local.get $x)"
        f" (i64.sub (i64.add (local.get $low) (local.get $size)) (i64.const {width}))))"
    )


@dataclass(frozen=True)
class Access:
    """A kind of access: to a space, of `count` elements of `item` bytes each."""

    kind: str  # load, store, or the name of an atomic operation
    space: str
    item: int
    count: int = 1
    signed: bool = False

    @property
    def name(self) -> str:
        """The function of this access."""
        sign = "s" if self.signed else "u"
        return f"${self.kind}_{self.space}_{sign}{self.item}x{self.count}"

    @property
    def width(self) -> int:
        """Bytes of a lane's access."""
        return self.item * self.count

    @property
    def text(self) -> str:
        """The function.

        Parameters are the lanes and, of global memory, an entry of the table of arrays and whether
        others may be meant; else where the memory begins, its first address, and its bytes.
        """
        return {"global": self._global, "shared": self._shared, "local": self._local}[self.space]()

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

    def _update(self) -> str:
        """Return an atomic update by a lane, which gives nothing back."""
        scalar, shift = ("i64", 3) if self.item == 8 else ("i32", 2)
        lane = f"(i32.shl (local.get $l) (i32.const {shift}))"
        old = f"({scalar}.load (local.get $q))"
        new = f"({scalar}.load offset={IN + OPERAND_BYTES} {lane})"
        sign = "s" if self.signed else "u"
        value = _ATOMICS[self.kind].format(t=scalar, old=old, new=new, s=sign)
        return f"({scalar}.store (local.get $q) {value})"

    @property
    def _work(self) -> str:
        return self._move() if self.kind in ("load", "store") else self._update()

    # -- by space ----------------------------------------------------------------------

    def _global(self) -> str:
        bytes_at = 8 if self.kind == "load" else 16
        entry = (
            "(local.set $low (i64.load (local.get $e)))\n"
            f"(local.set $size (i64.load offset={bytes_at} (local.get $e)))"
        )
        if self.kind != "load":
            entry += "(i32.store offset=24 (local.get $e) (i32.const 1))"
        outside = _outside(self.width)
        body = f"""(local.set $x (i64.load offset={IN} (i32.shl (local.get $l) (i32.const 3))))
  (if {outside}
    (then
      (if (i32.eqz (local.get $any)) (then (unreachable)))
      (local.set $e (call $find (local.get $x) (i64.const {self.width})))
      {entry}
      (if {outside} (then (unreachable)))))
  (if (i32.and (i32.wrap_i64 (local.get $x)) (i32.const {self.width - 1})) (then (unreachable)))
  (local.set $q (i32.wrap_i64 (i64.sub (local.get $x) (global.get $shift))))
  {self._work}
  (local.set $sector (i64.shr_u (local.get $x) (i64.const 5)))
  (if (i64.ne (local.get $sector) (local.get $last)) (then
    (if (i64.gt_s (local.get $sector) (local.get $last))
      (then (local.set $n (i32.add (local.get $n) (i32.const 1))))
      (else (local.set $falls (i32.const 1))))
    (local.set $last (local.get $sector))))"""
        return f"""(func {self.name} (param $on i32) (param $e i32) (param $any i32) (result i32)
(local $m i32) (local $l i32) (local $q i32) (local $n i32) (local $falls i32) (local $x i64)
(local $low i64) (local $size i64) (local $sector i64) (local $last i64) (local $v v128)
{entry}
(local.set $last (i64.const -1))
{self._quick()}
{_LANES.format(body=body)}
(if (local.get $falls) (then (return (call $distinct (local.get $on) (i64.const 5)))))
(local.get $n))"""

    def _quick(self) -> str:
        """Return the way of a whole warp with neighbouring words, or with a single one."""
        if self.width != 4 or self.item != 4 or self.kind not in ("load", "store"):
            return ""
        aligned = "(i32.eqz (i32.and (i32.wrap_i64 (local.get $x)) (i32.const 3)))"
        place = "(local.set $q (i32.wrap_i64 (i64.sub (local.get $x) (global.get $shift))))"
        if self.kind == "load":
            rows = "\n".join(
                f"(v128.store offset={OUT + 16 * k} (i32.const 0)"
                f" (v128.load offset={16 * k} align=4 (local.get $q)))"
                for k in range(8)
            )
            alike = "\n".join(
                f"(v128.store offset={OUT + 16 * k} (i32.const 0) (local.get $v))" for k in range(8)
            )
            one = f"""(if (i32.and (call $rising_wide (i64.const 0))
      (i32.and {aligned} (i32.eqz {_outside(4)})))
    (then {place} (local.set $v (v128.load32_splat (local.get $q))) {alike}
      (return (i32.const 1))))"""
        else:
            rows = "\n".join(
                f"(v128.store offset={16 * k} align=4 (local.get $q)"
                f" (v128.load offset={IN + OPERAND_BYTES + 16 * k} (i32.const 0)))"
                for k in range(8)
            )
            one = ""
        return f"""(if (i32.eq (local.get $on) (i32.const -1)) (then
  (local.set $x (i64.load (i32.const {IN})))
  (if (i32.and (call $rising_wide (i64.const 4))
      (i32.and {aligned} (i32.eqz {_outside(128)})))
    (then {place} {rows}
      (return (i32.wrap_i64 (i64.add (i64.const 1) (i64.sub
        (i64.shr_u (i64.add (local.get $x) (i64.const 124)) (i64.const 5))
        (i64.shr_u (local.get $x) (i64.const 5))))))))
  {one}))"""

    def _shared(self) -> str:
        body = self._own("(i32.add (local.get $at) (local.get $x))") + self._work
        return f"""(func {self.name} (param $on i32) (param $at i32) (param $first i32)
(param $bytes i32) (local $m i32) (local $l i32) (local $q i32) (local $x i32)
{_LANES.format(body=body)})"""

    def _own(self, place: str) -> str:
        """Return the checks of an address in memory of a block or thread, and its place."""
        return f"""(local.set $x
    (i32.load offset={IN} (i32.shl (local.get $l) (i32.const 2))))
  (if (i64.gt_u (i64.add (i64.const {self.width}) (i64.extend_i32_u
      (i32.sub (local.get $x) (local.get $first)))) (i64.extend_i32_u (local.get $bytes)))
    (then (unreachable)))
  (if (i32.and (local.get $x) (i32.const {self.width - 1})) (then (unreachable)))
  (local.set $q {place})
  """

    def _local(self) -> str:
        place = (
            "(i32.add (i32.add (local.get $at) (i32.shl (local.get $l) (i32.const 2)))"
            " (i32.add (i32.shl (i32.and (local.get $x) (i32.const -4)) (i32.const 5))"
            " (i32.and (local.get $x) (i32.const 3))))"
        )
        body = self._own(place) + self._move(32)
        return f"""(func {self.name} (param $on i32) (param $at i32) (param $first i32)
(param $bytes i32) (local $m i32) (local $l i32) (local $q i32) (local $x i32)
{_LANES.format(body=body)})"""
