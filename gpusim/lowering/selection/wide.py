"""64-bit work on 32-bit integers: products of two that are 64 bits wide, widening for nothing.

IMAD.WIDE multiplies 32-bit integers and adds 64 bits. The addition's upper half extends a sign
on its way (LEA.HI.X.SX32), and the upper half of a register pair is there without a shift.
"""

from __future__ import annotations

from gpusim.compiler.ir import INT32, UINT32, Value
from gpusim.lowering.analysis.algebra import number, range_of
from gpusim.lowering.selection.selection import WIDE, Selection
from gpusim.typing import DType

HALF_BITS = 32


def is_product(selection: Selection, value: Value) -> bool:
    """Whether IMAD.WIDE computes a 64-bit product or shift: of 32-bit integers, widened."""
    wide = value.dtype is not None and value.dtype.kind in "iu" and value.dtype.itemsize == WIDE
    if not selection.fuse or not wide:
        return False
    if value.op == "shl":
        shift = number(value.args[1])
        fits = shift is not None and 0 <= shift < HALF_BITS - 1
        return fits and narrow_type(value.args[0]) is not None
    types = {narrow_type(a) for a in value.args if a.constant is None}
    dtype = types.pop() if value.op == "mul" and len(types) == 1 else None
    return dtype is not None and all(_is_of(a, dtype) for a in value.args)


def narrow_type(value: Value) -> DType | None:
    """Return the 32-bit type that a value is widened from, None where it is not."""
    if value.op != "cast":
        return None
    source = value.args[0].dtype
    return source if source in (INT32, UINT32) else None


def _is_of(value: Value, dtype: DType) -> bool:
    """Whether a 64-bit value is one of a 32-bit type, widened, or a constant that it has."""
    held = number(value)
    if held is None:
        return narrow_type(value) == dtype
    low, high = range_of(dtype)
    return low <= held <= high


def narrow_sources(selection: Selection, product: Value) -> tuple[int, int]:
    """Return the 32-bit registers that IMAD.WIDE multiplies for a product or shift."""
    one, other = product.args
    dtype = narrow_type(one) or narrow_type(other)
    assert dtype is not None

    def register(value: Value) -> int:
        held = number(value)
        if held is None:
            return selection.register(value.args[0])
        return selection.emit.number(held, dtype)

    if product.op == "shl":
        shift = number(other)
        assert shift is not None
        return register(one), selection.emit.number(1 << shift, dtype)
    return register(one), register(other)


def write_product(selection: Selection, value: Value) -> bool:
    """Write a 64-bit product of 32-bit integers; return whether it is one."""
    if not is_product(selection, value):
        return False
    assert value.dtype is not None
    zero = selection.emit.number(0, value.dtype)
    selection.write(value, "IMAD.WIDE", *narrow_sources(selection, value), zero)
    return True


def write_upper_half(selection: Selection, value: Value) -> bool:
    """Take the upper half of a register pair as it is; return whether that is all."""
    if not selection.fuse or value.op != "shr" or number(value.args[1]) != HALF_BITS:
        return False
    assert value.dtype is not None
    halved = all(
        u.op == "cast" and u.dtype in (INT32, UINT32) for u in selection.users.get(value, ())
    )
    if value.dtype.itemsize != WIDE or not (halved or value.dtype.kind == "u"):
        return False
    selection.write(value, ".SHF", *selection.sources(value), detail="right")
    return True


def widens_for_nothing(selection: Selection, cast: Value) -> bool:
    """Whether all that need a widened integer take it as it was, or extend its sign themselves."""
    users = selection.users.get(cast, [])
    return bool(users) and all(
        is_product(selection, user) or _extends(selection, user, cast) for user in users
    )


def _extends(selection: Selection, user: Value, cast: Value) -> bool:
    """Whether a 64-bit sum extends the sign of an operand; it does so for one of the two."""
    if user.op != "add" or user.dtype is None or user.dtype.itemsize != WIDE:
        return False
    other = user.args[1]
    if any(is_product(selection, a) for a in user.args):
        return False
    return other is cast or narrow_type(other) is None
