"""Instructions for values: choices, casts, divisions, functions."""

from __future__ import annotations

import numpy as np

from gpusim.compiler.ir import BOOL, FLOAT32, FLOAT64, Block, Value
from gpusim.lowering.choices import CHOICES, SEQUENCES, type_class
from gpusim.lowering.selection.division import Emitter, Reciprocal, divide, reciprocal_before
from gpusim.lowering.selection.selection import REGISTER_BYTES, WIDE, Selection
from gpusim.lowering.selection.wide import widens_for_nothing


def select(selection: Selection, value: Value) -> None:
    """Choose between two values."""
    condition, yes, no = value.args
    assert value.dtype is not None
    choice = CHOICES["select", type_class(value.dtype)]
    selection.emit.blank(choice.before)
    one = selection.register(yes)
    if yes.constant is not None and no.constant is not None and value.dtype != BOOL:
        one = one if not np.any(no.constant) else selection.in_register(yes)
    selection.write(value, choice.op, one, selection.register(no), selection.register(condition))


def cast(selection: Selection, value: Value) -> None:
    """Convert a value, if it takes an instruction."""
    source, target = value.args[0].dtype, value.dtype
    assert source is not None
    assert target is not None
    register = selection.register(value.args[0])
    if value in selection.registers and selection.registers[value] == register:
        return
    if source == target:
        selection.registers[value] = register
    elif source == BOOL:
        op = "FSEL" if target.kind == "f" else "SEL"
        if target.itemsize == 8:
            selection.emit.blank(op)
        one, zero = selection.emit.number(1, target), selection.emit.number(0, target)
        selection.write(value, op, one, zero, register)
    elif target == BOOL:
        choice = CHOICES["ne", type_class(source)]
        selection.emit.blank(choice.before)
        selection.write(
            value, choice.op, register, selection.emit.number(0, source), detail=("ne",)
        )
    elif "f" in (source.kind, target.kind):
        op = "F2F" if source.kind == target.kind else "I2F" if target.kind == "f" else "F2I"
        selection.write(value, op, register)
    elif target.itemsize < REGISTER_BYTES <= source.itemsize and not _only_stored(selection, value):
        selection.write(value, "I2I", register)
    else:
        signs = source.kind == "i" and source.itemsize <= 4 and target.itemsize == 8
        if signs and not (selection.fuse and widens_for_nothing(selection, value)):
            selection.emit.blank("SHF")
        selection.write(value, ".CAST", register)
        if register in selection.code.fixed:
            selection.code.fixed.add(selection.register(value))


def _only_stored(selection: Selection, value: Value) -> bool:
    return all(u.operation.access == "store" for u in selection.users.get(value, ()))


def held(selection: Selection, value: Value) -> None:
    """Put a constant into a register."""
    assert value.dtype is not None
    register = selection.register(value.args[0])
    if value.dtype.itemsize == WIDE and not selection.code.is_zero(register):
        selection.emit.blank("MOV")
    selection.write(value, "MOV", register)


def math(selection: Selection, value: Value) -> None:
    """Write a library function as nvcc's sequence for it."""
    dtype = value.args[0].dtype
    assert dtype is not None
    if value.detail == "fma":
        _fused(selection, value, "FFMA" if dtype == FLOAT32 else "DFMA")
        return
    if value.detail in SEQUENCES:
        selection.emit.blank(SEQUENCES[value.detail]["d" if dtype == FLOAT64 else "f"])
    selection.write(value, "LIBM", *selection.sources(value), detail=value.detail)


def _fused(selection: Selection, value: Value, op: str) -> None:
    """Multiply and add, with absorbed negations as signs of operands."""
    taken = [a.op == "neg" and a in selection.inside for a in value.args]
    args = [a.args[0] if inner else a for a, inner in zip(value.args, taken, strict=True)]
    signs = f"{'-' if taken[0] != taken[1] else '+'}{'-' if taken[2] else '+'}"
    detail = None if signs == "++" else signs
    selection.write(value, op, *map(selection.register, args), detail=detail)


def undefined(selection: Selection, value: Value) -> None:
    """Leave a register as it is: any value will do."""
    selection.code.undefined.add(selection.register(value))


def division(selection: Selection, value: Value) -> None:
    """Divide, with the loop-invariant part computed before the loop."""
    assert value.dtype is not None
    a, b = selection.sources(value)
    known = _before_loop(selection, value)
    divide(selection.emit, value.op, a, b, value.dtype, selection.register(value), known)


def _before_loop(selection: Selection, value: Value) -> Reciprocal | None:
    """Write the loop-invariant part of a division before the loop around it."""
    assert value.dtype is not None
    dividend, divisor = value.args
    wide = value.dtype.itemsize == WIDE
    if not selection.fuse or selection.emit.shadow or wide or divisor.constant is not None:
        return None
    before = _preheader(selection, divisor)
    if before is None:
        first = _preheader(selection, dividend)
        if first is not None and value.dtype.kind == "i" and dividend.constant is None:
            # ptxas takes the absolute value there, and a second time in the loop.
            Emitter(selection.code, selection.code.rows[first], value.line).blank("IABS")
        return None
    key = (before, selection.register(divisor))
    if key not in selection.reciprocals:
        emit = Emitter(selection.code, selection.code.rows[before], value.line)
        selection.reciprocals[key] = reciprocal_before(emit, key[1], value.dtype)
    return selection.reciprocals[key]


def _preheader(selection: Selection, operand: Value) -> Block | None:
    """Return the preheader of the loops with an invariant operand.

    Only loops count that come to the present block in every iteration.
    """
    found = None
    for loop in selection.loops:
        if selection.block in loop.blocks:
            always = all(selection.tree.dominates(selection.block, latch) for latch in loop.latches)
            if selection.home.get(operand) in loop.blocks or not always or loop.preheader is None:
                break
            found = loop.preheader
    return found
