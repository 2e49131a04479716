"""Branches, calls, returns, exits and convergence barriers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from gpusim.isa.lanes import NEGATED
from gpusim.sass import operands as written
from gpusim.sass.decoding.addresses import Address
from gpusim.sass.decoding.sources import both_guards, expect, itself, words_of
from gpusim.sass.decoding.steps import ZERO, Context, Decode, Micro, Source, several
from gpusim.sass.form import Form, Signs
from gpusim.sass.listing import BYTES_PER_ROW, Guard, Row
from gpusim.sass.operands import Operand
from gpusim.sass.table import Mnemonic

_REGISTER_AND_OFFSET = re.compile(r"(R\d+)(?: (-?0x[0-9a-f]+))?$")


SECOND_ARGUMENT = ("R6", "R7")


FIRST_ARGUMENT = ("R4", "R5")  # of a call: its lower and upper half; the result comes there


def _branch(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    *predicates, target = row.operands
    expect(target.kind == "L" and len(predicates) <= 1, row)
    guard = row.guard
    if predicates:
        expect(predicates[0].kind == "P", row)
        before, guard = both_guards(row, place, predicates[0])
        yield from before
    if "ANY" in row.modifiers and guard is not None:  # all lanes branch where one would
        vote = (NEGATED["any"] if guard.negated else "any",)
        yield Micro(".VOTE", place, vote, (guard.register,), (f"A{place}",), issued=False)
        guard = Guard(f"A{place}", False)
    yield Micro("BRA", place, guard=guard, label=target.name)


def _branch_if_apart(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    *operands, label = row.operands
    masks = [operand for operand in operands if not operand.is_true]
    expect(all(one.kind != "P" and (one.is_zero or not one.inverted) for one in masks), row)
    # Before compute capability 8.0 it asks about all lanes.
    every: tuple[Source, ...] = (np.uint32(0xFFFFFFFF),)
    named = bool(masks) and not masks[0].inverted
    sources = words_of(masks[0], "u", row) if named else every
    whom = "together" if "CONV" in row.modifiers else "apart"
    yield Micro("BRA.APART", place, whom, sources, (), row.guard, label=label.name)


def _call(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    *pointer, target = row.operands
    expect(target.kind == "L" and len(pointer) <= 1, row)
    if pointer:
        added = context.labels[target.name] if target.name else 0
        yield from _jump(context, row, place, "CALL.REG", pointer[0], added)
    else:
        yield Micro("CALL.REL", place, guard=row.guard, label=target.name)


def _jump(
    context: Context, row: Row, place: int, op: str, register: Operand, added: int
) -> Iterator[Micro]:
    """Jump to the address in a register plus an offset in bytes."""
    expect(register.kind == "R" and not register.is_zero, row)
    made = (f"A{place}",)
    form = Address(((32, 1, True),), added)
    yield Micro(".ADDRESS", place, form, (register.name,), made, row.guard, issued=False)
    yield Micro(op, place, None, made, (), row.guard, targets=row.targets)


def _indexed_branch(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Continue at an address after this row, such as a table in constant memory holds."""
    expect(len(row.operands) == 1 and row.operands[0].kind == "X" and bool(row.targets), row)
    match = _REGISTER_AND_OFFSET.match(row.operands[0].name)
    expect(match is not None, row)
    assert match is not None
    added = row.address + BYTES_PER_ROW + int(match[2] or "0", 16)
    yield from _jump(context, row, place, "BRX", written.operand(match[1]), added)


def _call_driver(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Call a function of the driver, with two arguments and its result."""
    expect(len(row.operands) == 1 and row.operands[0].kind in "RC", row)
    sources = (*words_of(row.operands[0], "u", row), *FIRST_ARGUMENT, *SECOND_ARGUMENT)
    yield Micro("CALL.ABS", place, None, sources, FIRST_ARGUMENT, row.guard)


def _trap(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    yield Micro("BPT.TRAP", place, None, (), (), row.guard)


def _address_of_code(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Give the address of a label, or of this row."""
    result, *label = row.operands
    expect(result.kind == "R" and all(one.kind == "L" for one in label), row)
    form = Form(row.name, itself, frozenset(), "U", "U", (Signs(),))
    address = context.labels[label[0].name] if label else row.address
    sources = (np.uint32(address), ZERO)
    yield Micro("bits.LEPC", place, form, sources, several(result.name, 2), row.guard)


def _return(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    register, label = row.operands
    expect(context.labels.get(label.name, 0) == 0, row)  # the register counts from the code's begin
    yield Micro("RET.REL", place, None, (register.name,), (), row.guard)


def _exit(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    guard = row.guard
    if row.operands:
        expect(len(row.operands) == 1 and row.operands[0].kind == "P", row)
        before, guard = both_guards(row, place, row.operands[0])
        yield from before
    yield Micro("EXIT", place, guard=guard)


def _token(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    guard = row.guard
    named = [operand for operand in row.operands if operand.kind == "B"]
    expect(len(named) == 1, row)
    for operand in row.operands:
        if operand.kind == "P":
            before, guard = both_guards(row, place, operand)
            yield from before
    label = next((operand.name for operand in row.operands if operand.kind == "L"), "")
    yield Micro(row.mnemonic, place, int(named[0].name[1:]), (), (), guard, label=label)


def _move_token(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Keep a convergence barrier in a register, or take it back, around a function's own use."""
    expect(len(row.operands) == 2, row)
    to, origin = row.operands
    if to.kind == "B":
        sources = words_of(origin, "u", row)
        yield Micro("BMOV.SET", place, int(to.name[1:]), sources, (), row.guard)
    elif to.is_zero:  # no lane takes it back
        yield Micro("bits.BMOV.32.CLEAR", place, guard=row.guard)
    else:
        expect(origin.kind == "B" and "CLEAR" in row.modifiers, row)
        number = int(origin.name[1:])
        yield Micro("BMOV.GET", place, number, (), (to.name,), row.guard)


DECODERS: Mapping[str, Decode] = {
    "branch": _branch,
    "branch_if_apart": _branch_if_apart,
    "call": _call,
    "return": _return,
    "exit": _exit,
    "bssy": _token,
    "bsync": _token,
    "break": _token,
    "move_token": _move_token,
    "call_driver": _call_driver,
    "trap": _trap,
    "address_of_code": _address_of_code,
    "indexed_branch": _indexed_branch,
}
