"""Operands of rows as sources of steps: registers, numbers, words of constant banks, guards."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.sass import immediates
from gpusim.sass.decoding.steps import ZERO, BankWord, Micro, Source, UnknownFormError, several
from gpusim.sass.form import REGISTERS, Form, Signs
from gpusim.sass.listing import Guard, Row
from gpusim.sass.operands import Operand
from gpusim.sass.table import Mnemonic


def number_of(operand: Operand) -> int:
    """Return a whole number with its sign."""
    value = int(operand.number)
    return -value if operand.negated else value


def expect(condition: bool, row: Row) -> None:
    """Raise UnknownFormError for a row that does not meet a condition."""
    if not condition:
        raise UnknownFormError(row.text)


def expect_shape(found: Mnemonic, row: Row) -> None:
    """Refuse operands, signs and suffixes that a row does not name."""
    operands = list(row.operands)
    for slot, may_be_missing in found.shaped:
        if operands and slot.fits(operands[0]):
            expect(slot.takes(operands.pop(0)), row)
        else:
            expect(may_be_missing, row)
    expect(not operands, row)


def words_of(operand: Operand, code: str, row: Row) -> tuple[Source, ...]:
    """Return the registers, numbers or constants that an operand of a code stands for."""
    count = REGISTERS[code]
    if operand.kind == "R":
        if operand.is_zero:
            return (ZERO,) * count
        return several(operand.name, count)
    if operand.kind == "C":
        expect(not operand.terms, row)
        return tuple(BankWord(operand.bank, int(operand.number) + 4 * k) for k in range(count))
    if operand.kind == "P":
        return (np.bool_(not operand.negated),) if operand.is_true else (operand.name,)
    expect(operand.kind == "I", row)
    value = np.uint32(number_of(operand) & 0xFFFFFFFF)
    return (value,) if count == 1 else (value, ZERO)


def computed_words(operand: Operand, code: str, row: Row) -> tuple[Source, ...]:
    """Return the sources of an operand of a computing row: immediates come from its bits."""
    if operand.kind not in "IF":
        return words_of(operand, code, row)
    if code in "UI" and (wide := immediates.wide(operand, row)) is not None:
        return np.uint32(wide & immediates.LOW), np.uint32(wide >> 32)
    value = np.uint32(_immediate(operand, code, row))
    if code == "d" or (row.mnemonic == "I2F" and REGISTERS[code] == 2):
        return ZERO, value  # an instruction holds the upper word alone
    # Whether the upper word of a negative number is all ones is not known.
    expect(REGISTERS[code] == 1 or not operand.negated, row)
    return (value,) if REGISTERS[code] == 1 else (value, ZERO)


def _immediate(operand: Operand, code: str, row: Row) -> int:
    """Return the bits of a number that the instruction holds."""
    if operand.kind == "I":
        return immediates.whole(operand, row)
    return immediates.floating(operand, row, is_double=code in "dD")


def signs_of(operand: Operand) -> Signs:
    """Return what is done to an operand before it is used."""
    if operand.kind in "IF" or operand.is_true:
        return Signs()  # the number itself has them
    return Signs(
        negated=operand.negated,
        inverted=operand.inverted,
        absolute=operand.absolute,
        suffixes=operand.suffixes,
        is_zero=operand.is_zero and not operand.inverted,
    )


def code_of_predicate(operand: Operand, row: Row) -> str:
    """Return the code of a predicate, or of a register with its sign taken as a predicate."""
    if operand.kind == "P":
        return "p"
    expect(operand.suffixes == ("SIGN",), row)
    return "n"


def typed_code(code: str, row: Row) -> str:
    """Return the code of an integer whose sign the row's modifiers tell."""
    if code in "xX":
        unsigned = bool({"U32", "U64"} & set(row.modifiers))
        return {"x": "ui", "X": "UI"}[code][not unsigned]
    return code


def both_guards(row: Row, place: int, extra: Operand) -> tuple[list[Micro], Guard | None]:
    """Return a guard that combines the row's own with one more predicate, and the steps for it."""
    if extra.is_true and not extra.negated:
        return [], row.guard
    if row.guard is None and not extra.is_true:
        return [], Guard(extra.name, extra.negated)
    sources: list[Source] = [] if row.guard is None else [row.guard.register]
    signs = [] if row.guard is None else [Signs(negated=row.guard.negated)]
    sources += words_of(extra, "p", row)
    signs.append(signs_of(extra))
    form = Form("and", conjunction, frozenset(), "p" * len(sources), "p", tuple(signs))
    both = Micro(".PREDICATE", place, form, tuple(sources), (f"Q{place}",), issued=False)
    return [both], Guard(f"Q{place}", False)


def conjunction(form: Form, *predicates: Any) -> Any:
    """Return where all predicates are true."""
    result = predicates[0]
    for predicate in predicates[1:]:
        result = result & predicate
    return result


def itself(form: Form, value: Any) -> Any:
    """Return a value as it is."""
    return value


def registers_of(operand: Operand, count: int) -> tuple[Source, ...]:
    """Return the consecutive registers that begin at an operand, or zeros."""
    return (ZERO,) * count if operand.is_zero else several(operand.name, count)
