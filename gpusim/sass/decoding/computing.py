"""Rows that compute results from their operands alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gpusim.sass import immediates
from gpusim.sass.decoding.sources import (
    code_of_predicate,
    computed_words,
    expect,
    expect_shape,
    number_of,
    signs_of,
    typed_code,
    words_of,
)
from gpusim.sass.decoding.steps import Context, Decode, Micro, Source, several
from gpusim.sass.form import REGISTERS, Form, Signs
from gpusim.sass.listing import Row
from gpusim.sass.mnemonics.predicate import PREDICATES
from gpusim.sass.operands import TRUES, Operand
from gpusim.sass.slots import SLOTS
from gpusim.sass.table import Mnemonic

ALL_PREDICATES = "PR"


def _results(found: Mnemonic, operands: list[Operand], row: Row) -> tuple[str, list[list[str]]]:
    """Take the results off the operands: their codes, and the registers that each fills."""
    codes, names = "", []
    must, _, may = found.results.partition("|")
    optional = set(range(len(must), len(must) + len(may)))
    if found.results.startswith("|"):  # a predicate that may stand before the rest
        must, optional = may, {0}
    else:
        must += may
    for number, code in enumerate(must):
        slot = SLOTS["q" if code == "p" else "o"]
        if not operands or not slot.fits(operands[0]):
            expect(number in optional, row)
            continue
        operand = operands.pop(0)
        expect(slot.takes(operand), row)
        code = typed_code(code, row)
        codes += code
        names.append(list(several(operand.name, REGISTERS[code])))
    return codes, names


def _compute(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    if found.evaluate is None:
        expect_shape(found, row)
        yield Micro(_op(found), place, guard=row.guard)
        return
    operands = list(row.operands)
    kept: list[int] = []
    results: list[str] = []
    if found.results == "?":
        expect(operands.pop(0).name == ALL_PREDICATES, row)
        result_codes, names = "p" * 7, [[name] for name in PREDICATES]
    else:
        result_codes, names = _results(found, operands, row)
    codes, sources, signs, numbers = _operands(found, operands, row)
    for number, registers in enumerate(names):
        masked = found.results == "?" and not numbers[0] >> number & 1
        if registers[0][-1] not in "ZT" and not masked:
            kept.append(number)
            results += registers
    # The result that a register keeps of two is not known.
    expect(len(set(results)) == len(results), row)
    form = Form(
        found.name,
        found.evaluate,
        frozenset(row.modifiers),
        codes,
        result_codes,
        tuple(signs),
        tuple(kept),
        tuple(numbers),
    )
    expect(found.refuses is None or not found.refuses(form), row)
    yield Micro(_op(found), place, form, tuple(sources), tuple(results), row.guard)


def _operands(
    found: Mnemonic, operands: list[Operand], row: Row
) -> tuple[str, list[Source], list[Signs], list[int]]:
    must, _, may = found.sources.partition("|")
    codes = ""
    sources: list[Source] = []
    signs: list[Signs] = []
    numbers: list[int] = []
    # The optional operand is a carry, or the comparison of the lower words.
    is_extended = bool({"X", "EX"} & set(row.modifiers))
    if "EX" in row.modifiers and len(operands) == len(must):
        operands.append(Operand("P", TRUES[0]))  # nvdisasm leaves out a comparison that is PT
    expect(not may or is_extended == (len(operands) > len(must)), row)
    for number, (code, slot) in enumerate(zip(must + may, found.slots, strict=True)):
        if not operands:
            expect(number >= len(must), row)
            break
        operand = operands.pop(0)
        expect(slot.takes(operand), row)
        if code == "#":
            numbers.append(number_of(operand))
        elif code == "0":
            continue
        elif code == "?":
            expect(operand.name in (ALL_PREDICATES, f"U{ALL_PREDICATES}"), row)
            codes += "p" * len(PREDICATES)
            uniform = operand.name.removesuffix(ALL_PREDICATES)
            sources += [f"{uniform}{name}" for name in PREDICATES]
            signs += [Signs()] * len(PREDICATES)
        elif code == "h" and operand.kind == "F":
            codes += code
            expect(bool(operands) and operands[0].kind == "F", row)
            sources.append(np.uint32(immediates.halves(operand, operands.pop(0), row)))
            signs.append(Signs())
        else:
            code = code_of_predicate(operand, row) if code == "v" else typed_code(code, row)
            codes += code
            sources += computed_words(operand, code, row)
            signs.append(signs_of(operand))
    expect(not operands, row)
    return codes, sources, signs, numbers


def _op(found: Mnemonic) -> str:
    return found.op or f"bits.{found.name}"


def _to_uniform(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Move to a uniform register, or find the lanes with another value than the first one's.

    Compilers do so for the masks of a vote: where they differ, each mask's lanes are gathered. With
    a uniform register they go around until the first lane's value has been every lane's. With a
    guard all lanes get the value of the first for which it is true.
    """
    *verdicts, result, value = row.operands
    sources = words_of(value, "u", row)
    asked = (np.bool_(True),) if row.guard is None else (row.guard.register,)
    is_negated = row.guard is not None and row.guard.negated
    if not verdicts:
        if row.guard is None or result.is_zero:
            yield from _compute(context, row, place, found)
        else:
            yield Micro("R2UR.FIRST", place, is_negated, (*sources, *asked), (result.name,))
        return
    (verdict,) = verdicts
    expect(not verdict.is_true, row)
    if not result.is_zero:
        first, results = ".FIRST", (result.name,)
        yield Micro(first, place, is_negated, (*sources, *asked), results, issued=False)
    others = (verdict.name,) if "OR" in row.modifiers else ()
    yield Micro("R2UR.DIFFERS", place, None, (*sources, *others), (verdict.name,), row.guard)


DECODERS: Mapping[str, Decode] = {"compute": _compute, "to_uniform": _to_uniform}
