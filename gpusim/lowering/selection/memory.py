"""Instructions for facts of the launch, for addresses and for memory."""

from __future__ import annotations

import math

from gpusim.compiler.ir import INT32, INT64, UINT32, Array, Value
from gpusim.compiler.operations import SPECIAL_REGISTERS
from gpusim.isa.ops import COUNT_UP, OPS, Memory
from gpusim.lowering.analysis.alias import array_of
from gpusim.lowering.code import Row
from gpusim.lowering.selection.selection import REGISTER_BYTES, WIDE, Selection
from gpusim.typing import DType

LOADS = {"global": "LDG", "shared": "LDS", "local": "LDL"}
STORES = {"global": "STG", "shared": "STS", "local": "STL"}


def fetch(selection: Selection, value: Value) -> None:
    """Read constant memory: an instruction from 9.0 on, an operand before."""
    kind, what = value.op, value.detail
    detail = ("launch", what) if kind == "sreg" else (kind, what)
    op = "LDC" if selection.cc.major >= 9 and not selection.emit.shadow else ".CONST"
    selection.write(value, op, detail=detail)
    selection.code.fixed.add(selection.register(value))


def special_register(selection: Selection, value: Value) -> None:
    """Read a special register of the launch or of the thread."""
    if SPECIAL_REGISTERS[value.detail].is_of_launch:
        fetch(selection, value)
    else:
        _read_special(selection, value)


def _read_special(selection: Selection, value: Value) -> None:
    """Read a special register of a thread, directly in the common type of its uses."""
    users = selection.users.get(value, [])
    casts = {u.dtype for u in users if u.op == "cast"}
    if users and len(casts) == 1 and all(u.op == "cast" for u in users):
        (dtype,) = casts
        if dtype in (INT32, UINT32):
            register = selection.emit.row("S2R", dtype, detail=value.detail)
            for user in users:
                selection.registers[user] = register
            selection.registers[value] = register
            return
    selection.write(value, "S2R", detail=value.detail)


def shared_base(selection: Selection, value: Value) -> None:
    """The window of shared memory within the cluster's, from 9.0 on; 0 in our addresses."""
    if selection.cc.major < 9:
        selection.registers[value] = selection.emit.number(0, UINT32)
        return
    apart = selection.block in selection.apart
    special, move, add = "S2R", "MOV", "LEA"
    if not apart:
        special, move, add = (OPS[op].uniform_twin for op in (special, move, add))
    block = selection.emit.row(special, UINT32, detail="cga")
    window = selection.emit.row(move, UINT32, selection.emit.number(0, UINT32))
    selection.emit.row(add, UINT32, block, window, detail=24, dst=selection.register(value))
    if not apart:
        selection.code.uniform.update((block, window, selection.register(value)))


def address(selection: Selection, value: Value) -> None:
    """Add a scaled index to where an array starts."""
    index, base = value.args
    assert index.dtype is not None
    size = int(value.detail)
    shift = size.bit_length() - 1
    register = selection.register(index)
    if base.dtype == INT64:
        _address_of_64_bits(selection, value)
        return
    origin = selection.register(base)
    scaled = origin in selection.code.immediates
    if (
        scaled
        and _is_shift(size)
        and all(u.operation.access for u in selection.users.get(value, ()))
    ):
        selection.write(value, ".SCALE", register, origin, detail=shift)
    elif scaled and size == 1:
        selection.write(value, ".CAST", register)
    elif not _is_shift(size):
        selection.write(value, "IMAD", register, selection.emit.number(size, INT32), origin)
    else:
        selection.write(value, "LEA", register, origin, detail=shift)


def _is_shift(size: int) -> bool:
    """Whether an index times `size` bytes is a shift."""
    return size & (size - 1) == 0


def _address_of_64_bits(selection: Selection, value: Value) -> None:
    """Multiply and add a 32-bit index at once; shift and add one that has 64 bits, by halves."""
    index, base = value.args
    assert index.dtype is not None
    size = int(value.detail)
    register, origin = selection.register(index), selection.register(base)
    again = value in selection.addresses.again and _is_shift(size)
    if index.dtype.itemsize < WIDE and not again:
        if selection.cc.major < 9:
            selection.emit.blank("MOV")
        width = selection.emit.number(size, INT32)
        selection.write(value, "IMAD.WIDE", register, width, origin)
        return
    if index.dtype.itemsize < WIDE:
        selection.emit.blank("SHF" if index.dtype.kind == "i" else "")
        register = selection.emit.row(".CAST", INT64, register)
    selection.emit.blank("LEA.HI")
    selection.write(value, "LEA", register, origin, detail=size.bit_length() - 1)


def load(selection: Selection, value: Value) -> None:
    """Load an element, at once in the type that all its uses request."""
    array: Array = value.detail
    users = selection.users.get(value, [])
    types: set[DType | None] = {u.dtype for u in users if u.op == "cast"}
    narrow = array.dtype.kind in "iu" and array.dtype.itemsize < REGISTER_BYTES
    dtype = array.dtype
    if narrow and len(types) == 1 and all(u.op == "cast" for u in users):
        (wide,) = types
        if wide in (INT32, UINT32):
            dtype = wide
    register = selection.register(value)
    if dtype != array.dtype:
        register = selection.code.register(dtype)
        selection.registers[value] = register
        for user in users:
            selection.registers[user] = register
    _access(selection, LOADS[array.space], value, (register,), ())
    selection.emit.rows[-1].dtype = dtype


def load_vector(selection: Selection, value: Value) -> None:
    """Load several elements into registers of their own."""
    array, count = value.detail
    selection.vectors[value] = [selection.code.register(array.dtype) for _ in range(count)]
    _access(selection, LOADS[array.space], value, tuple(selection.vectors[value]), ())


def element(selection: Selection, value: Value) -> None:
    """Take one element out of a vector load."""
    selection.registers[value] = selection.vectors[value.args[0]][int(value.detail)]


def store(selection: Selection, value: Value) -> None:
    """Store one element or several."""
    stored = tuple(selection.in_register(a) for a in value.args[1:])
    _access(selection, STORES[array_of(value).space], value, (), stored)


def atomic(selection: Selection, value: Value) -> None:
    """Update an element; without uses of its result nothing is returned (RED)."""
    space = array_of(value).space
    used = bool(selection.users.get(value))
    operands = tuple(selection.in_register(a) for a in value.args[1:])
    op = "ATOMS" if space == "shared" else "ATOMG" if used else "RED"
    if op == "ATOMS" and not used and _counts_up(value):
        op = COUNT_UP
    _access(selection, op, value, (selection.register(value),) if used else (), operands)


def _counts_up(atomic: Value) -> bool:
    """Whether an atomic adds one to a 32-bit integer."""
    is_one = atomic.detail[1] == "add" and atomic.args[1].constant == 1
    return is_one and array_of(atomic).dtype in (INT32, UINT32)


def _memory(selection: Selection, value: Value, count: int = 1) -> Memory:
    array = array_of(value)
    own = array.space != "global"
    elements = math.prod(array.shape) if own and array.shape else 0
    return Memory(
        array.space,
        array.name,
        array.dtype,
        count,
        selection.addresses.displacement[value],
        array.offset if own else 0,
        elements or None,
        array.volatile,
    )


def _access(
    selection: Selection, op: str, value: Value, dst: tuple[int, ...], src: tuple[int, ...]
) -> None:
    detail = value.detail
    count = max(len(dst), len(src)) if value.op.endswith("_vector") else 1
    row = Row(op, dst, (selection.register(value.args[0]), *src), array_of(value).dtype)
    row.detail = detail[1] if value.op == "atomic" else None
    row.memory = _memory(selection, value, count)
    row.line = value.line
    selection.emit.rows.append(row)


def bounds(selection: Selection, value: Value) -> None:
    """Keep each index of an array of several axes, to be checked and never issued."""
    array: Array = value.detail
    row = Row(".BOUNDS", (), selection.sources(value), line=value.line)
    row.detail = (array.name, array.space, array.shape)
    selection.emit.rows.append(row)
