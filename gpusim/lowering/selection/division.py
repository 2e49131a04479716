"""Division and remainder as sequences: the machine has no instruction for either.

By a constant it is a multiplication by the reciprocal (Hacker's Delight, chapter 10; Granlund
and Montgomery), by a 32-bit variable a reciprocal in float32 and corrections. The part that
depends on the divisor alone is computed before a loop with an invariant divisor. The rows compute
exact results, as the real sequence does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpusim.compiler.ir import BOOL, FLOAT32, INT32, UINT32
from gpusim.isa.ops import OPS
from gpusim.lowering.code import Code, Row
from gpusim.typing import DType

SHARED = frozenset(("SHF", "LEA.HI", "IABS"))


@dataclass
class Emitter:
    """Appends rows to a block of code, all of one source line.

    While `shadow` is set they are for the source's conditionals alone and never issued.
    """

    code: Code
    rows: list[Row]
    line: int = 0
    shadow: bool = False
    _made: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def row(
        self,
        op: str,
        dtype: DType | None,
        *src: int,
        detail: Any = None,
        dst: int | None = None,
        guard: int | None = None,
        negated: bool = False,
    ) -> int:
        """Write a row and return its result's register, a new one unless `dst` names it.

        The first steps that a division and a remainder have in common are written once.
        """
        if self.shadow and f".{op}" in OPS:
            op = f".{op}"
        if dst is None and dtype is not None:
            key = (op, dtype, src, detail)
            if op in SHARED and guard is None and key in self._made:
                return self._made[key]
            dst = self._made[key] = self.code.register(dtype)
        left = () if dst is None else (dst,)
        self.rows.append(Row(op, left, src, dtype, detail, guard, negated, line=self.line))
        return -1 if dst is None else dst

    def blank(self, names: str) -> None:
        """Write rows for their cost only: another row gives the value."""
        if self.shadow:
            return
        for name in names.split():
            self.rows.append(Row(name, line=self.line))

    def number(self, value: int | float, dtype: DType) -> int:
        """Return the register of a constant, wrapped to `dtype`."""
        return self.code.immediate(np.asarray(value).astype(dtype).reshape(1)[0])


@dataclass(frozen=True)
class Reciprocal:
    """The part of a division that depends on its divisor alone.

    `size` is its absolute value, `better` close to 2**32 / size, `nonzero` a predicate. The
    divisor's `complement` is present if all this was computed before a loop.
    """

    size: int
    better: int
    nonzero: int
    complement: int | None = None


def divide(
    emit: Emitter,
    op: str,
    a: int,
    b: int,
    dtype: DType,
    dst: int,
    reciprocal: Reciprocal | None = None,
) -> None:
    """Write rows that leave `a / b` (op "idiv") or `a % b` ("rem") in `dst`.

    `reciprocal` is given where it was computed before.
    """
    known = emit.code.immediates.get(b)
    if dtype.itemsize == 8:
        # The short path that both operands below 2**32 take.
        emit.blank("LOP3 ISETP I2F IADD3 ISETP MUFU IADD3 F2I MOV IMAD IMAD.HI IMAD.HI")
        emit.blank("IADD3 IMAD ISETP IADD3 ISETP IADD3 LOP3 MOV")
        emit.row("LIBM", dtype, a, b, detail=op, dst=dst)
    elif known is not None and int(known) != 0:
        _by_constant(emit, op, a, int(known), dtype, dst)
    elif dtype.kind == "u":
        _unsigned(emit, op, a, b, dst, reciprocal or _reciprocal(emit, b, dtype))
    else:
        _signed(emit, op, a, b, dst, reciprocal or _reciprocal(emit, b, dtype))


def reciprocal_before(emit: Emitter, b: int, dtype: DType) -> Reciprocal:
    """Write, before a loop, the common part of divisions by `b` in the loop."""
    found = _reciprocal(emit, b, dtype)
    return replace(found, complement=emit.row("LOP3", dtype, b, detail="not"))


def _reciprocal(emit: Emitter, b: int, dtype: DType) -> Reciprocal:
    """Write an underestimate of 2**32 / b in float32, and better it once."""
    size = b
    if dtype.kind == "i":
        size = emit.row("IABS", UINT32, b)
        emit.blank("IABS")
    nonzero = emit.row("ISETP", BOOL, b, emit.number(0, dtype), detail=("ne",))
    near = emit.row("I2F.RP", FLOAT32, size)
    bits = emit.row("MUFU.RCP", UINT32, near)
    below = emit.row("IADD3", UINT32, bits, emit.number(0xFFFFFFE, UINT32), detail="++")
    first = emit.row("F2I.U32", UINT32, below)
    minus_first = emit.row("IADD3", UINT32, first, detail="-")
    emit.blank("MOV")
    error = emit.row("IMAD", UINT32, minus_first, size, emit.number(0, UINT32))
    return Reciprocal(size, emit.row("IMAD.HI", UINT32, first, error, first), nonzero)


def _quotient_and_rest(
    emit: Emitter, a: int, by: Reciprocal, quotient: int | None, rest: int | None
) -> tuple[int, int]:
    """Write the estimated quotient of `a`, and the remainder for it."""
    found = emit.row("IMAD.HI", UINT32, by.better, a, emit.number(0, UINT32), dst=quotient)
    minus = emit.row("IADD3", UINT32, found, detail="-")
    return found, emit.row("IMAD", UINT32, by.size, minus, a, dst=rest)


def _where_zero(emit: Emitter, b: int, by: Reciprocal, dtype: DType, dst: int) -> None:
    """Give a division by zero the machine's result: all bits of `b` inverted."""
    if by.complement is None:
        emit.row("LOP3", dtype, b, detail="not", dst=dst, guard=by.nonzero, negated=True)
    else:
        emit.row("SEL", dtype, dst, by.complement, by.nonzero, dst=dst)


def _unsigned(emit: Emitter, op: str, a: int, b: int, dst: int, by: Reciprocal) -> None:
    own = (dst, None) if op == "idiv" else (None, dst)
    _, rest = _quotient_and_rest(emit, a, by, *own)
    one = emit.number(1, UINT32)
    over = emit.row("ISETP", BOOL, rest, b, detail=("ge",))
    emit.row("IADD3", UINT32, rest, b, detail="+-", dst=rest, guard=over)
    if op == "idiv":
        emit.row("IADD3", UINT32, dst, one, detail="++", dst=dst, guard=over)
    again = emit.row("ISETP", BOOL, rest, b, detail=("ge",))
    if op == "idiv":
        emit.row("IADD3", UINT32, dst, one, detail="++", dst=dst, guard=again)
    else:
        emit.row("IADD3", UINT32, rest, b, detail="+-", dst=rest, guard=again)
    _where_zero(emit, b, by, UINT32, dst)


def _signed(emit: Emitter, op: str, a: int, b: int, dst: int, by: Reciprocal) -> None:
    size_a = emit.row("IABS", UINT32, a)
    signed = a if op == "rem" else emit.row("LOP3", INT32, a, b, detail="xor")
    sign = emit.row("ISETP", BOOL, signed, emit.number(0, INT32), detail=("ge",))
    quotient, rest = _quotient_and_rest(emit, size_a, by, None, None)
    over = emit.row("ISETP", BOOL, by.size, rest, detail=("gt",))
    emit.row("IADD3", UINT32, rest, by.size, detail="+-", dst=rest, guard=over, negated=True)
    if op == "idiv":
        one = emit.number(1, UINT32)
        emit.row(
            "IADD3", UINT32, quotient, one, detail="++", dst=quotient, guard=over, negated=True
        )
        over = emit.row("ISETP", BOOL, rest, by.size, detail=("ge",))
        emit.row("IADD3", UINT32, quotient, one, detail="++", dst=quotient, guard=over)
    else:
        over = emit.row("ISETP", BOOL, by.size, rest, detail=("gt",))
        emit.row("IADD3", UINT32, rest, by.size, detail="+-", dst=rest, guard=over, negated=True)
    emit.row(".CAST", INT32, quotient if op == "idiv" else rest, dst=dst)
    emit.row("IADD3", INT32, dst, detail="-", dst=dst, guard=sign, negated=True)
    _where_zero(emit, b, by, INT32, dst)


def _by_constant(emit: Emitter, op: str, a: int, b: int, dtype: DType, dst: int) -> None:
    """Divide by a constant other than 0."""
    size = abs(b)
    power = size & (size - 1) == 0
    if op == "rem" and dtype.kind == "u" and power:
        emit.row("LOP3", dtype, a, emit.number(size - 1, dtype), detail="and", dst=dst)
        return
    if size == 1:
        if op == "rem":
            emit.row("MOV", dtype, emit.number(0, dtype), dst=dst)
        else:
            _signed_result(emit, a, b, dtype, dst)
        return
    if dtype.kind == "u":
        quotient = _unsigned_quotient(emit, a, size, dst if op == "idiv" else None)
        if op == "rem":
            emit.row("IMAD", dtype, quotient, emit.number(-size, dtype), a, dst=dst)
        return
    if power and size < 1 << 31:
        shift = size.bit_length() - 1
        sign = (
            a if shift == 1 else emit.row("SHF", INT32, a, emit.number(31, INT32), detail="right")
        )
        biased = emit.row("LEA.HI", INT32, sign, a, detail=shift)
        if op == "rem":
            mask = emit.number(-size, INT32)
            whole = emit.row("LOP3", INT32, biased, mask, detail="and")
            emit.row("IADD3", INT32, a, whole, detail="+-", dst=dst)
            return
        count = emit.number(shift, INT32)
        whole = emit.row("SHF", INT32, biased, count, detail="right", dst=dst if b > 0 else None)
        if b < 0:
            emit.row("IADD3", INT32, whole, detail="-", dst=dst)
        return
    if op == "rem":
        quotient = _signed_quotient(emit, a, size, None)
        emit.row("IMAD", INT32, quotient, emit.number(-size, INT32), a, dst=dst)
    elif b < 0:
        emit.row("IADD3", INT32, _signed_quotient(emit, a, size, None), detail="-", dst=dst)
    else:
        _signed_quotient(emit, a, size, dst)


def _signed_result(emit: Emitter, a: int, b: int, dtype: DType, dst: int) -> None:
    if b < 0:
        emit.row("IADD3", dtype, a, detail="-", dst=dst)
    else:
        emit.row("MOV", dtype, a, dst=dst)


def _unsigned_quotient(emit: Emitter, a: int, b: int, dst: int | None) -> int:
    """Write a // b for 32-bit a: the high half of a times ceil(2**(32 + s) / b), over 2**s."""
    zero = emit.number(0, UINT32)
    if b & (b - 1) == 0:
        count = emit.number(b.bit_length() - 1, UINT32)
        return emit.row("SHF", UINT32, a, count, detail="right", dst=dst)
    shift = (b - 1).bit_length()
    for less in range(shift + 1):
        magic = -(-(1 << (32 + less)) // b)
        if magic < 1 << 32 and magic * b - (1 << (32 + less)) <= 1 << less:
            high = emit.row("IMAD.HI", UINT32, a, emit.number(magic, UINT32), zero)
            return emit.row("SHF", UINT32, high, emit.number(less, UINT32), detail="right", dst=dst)
    magic = -(-(1 << (32 + shift)) // b) - (1 << 32)
    high = emit.row("IMAD.HI", UINT32, a, emit.number(magic, UINT32), zero)
    rest = emit.row("IADD3", UINT32, a, high, detail="+-")
    half = emit.row("SHF", UINT32, rest, emit.number(1, UINT32), detail="right")
    total = emit.row("IADD3", UINT32, half, high, detail="++")
    count = emit.number(shift - 1, UINT32)
    return emit.row("SHF", UINT32, total, count, detail="right", dst=dst)


def _signed_quotient(emit: Emitter, a: int, b: int, dst: int | None) -> int:
    """Write a / b toward zero for int32 a and positive b (Hacker's Delight, section 10-1)."""
    shift = 0
    magic = (1 << 32) // b + 1
    while magic * b - (1 << (32 + shift)) > 1 << (shift + 1):
        shift += 1
        magic = (1 << (32 + shift)) // b + 1
    addend = a if magic >= 1 << 31 else emit.number(0, INT32)
    factor = emit.number(magic - (1 << 32) if magic >= 1 << 31 else magic, INT32)
    high = emit.row("IMAD.HI", INT32, a, factor, addend)
    whole = emit.row("SHF", INT32, high, emit.number(shift, INT32), detail="right")
    return emit.row("LEA.HI", INT32, high, whole, detail=1, dst=dst)
