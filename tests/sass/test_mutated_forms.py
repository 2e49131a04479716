"""Every operand form that compilers write, with something added that its row does not know.

It is refused, or means something else: nothing of a row's text is passed over.
"""

from __future__ import annotations

import functools
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sass.forms import LABEL, rows

from gpusim.errors import GpusimError
from gpusim.isa.ops import OPS, Instruction
from gpusim.sass import translate
from gpusim.sass.decoding import BankWord, Context, Micro, decoded
from gpusim.sass.form import Form
from gpusim.sass.listing import Row
from gpusim.sass.operands import Operand, operand
from gpusim.sass.table import find

assert translate
Words = np.ndarray[Any, Any]
SIGNS = "-~!|"
# A suffix that no row knows, and those that some do.
UNKNOWN, SUFFIXES = "FOO", ("H0_NH1", "H1", "F32", "B1", "64", "SIGN")
OPERANDS = tuple(map(operand, ("R9", "P3", "0x1", "!P3")))
LANES = 256
ALL_LANES = "~URZ"  # where no mask is named, all lanes are meant
TIMING = frozenset(("NANOSLEEP",))  # operands that say how long something takes
# Signs that a row takes and that change nothing of what it gives, by its name.
WITHOUT_EFFECT = {"FLO": "~", "FCHK": "-|"}
SPECIAL = [
    0, 1, 2, 3, 7, 31, 32, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x3F800000,
    0xBF800000, 0x3F800001, 0x40490FDB, 0xC2F6E979, 0x00800000, 0x00000123, 0x7F800000, 0xFF800000,
    0x7FC00001, 0x3C00C000, 0x7BFF0400, 0x00018001, 0x40003E00, 0x3FF00000, 0xC0240000, 0x12345678,
    0x89ABCDEF,
]  # fmt: skip


def meaning(row: Row) -> list[Micro] | None:
    """Return what a row becomes, None where it is refused."""
    labels = defaultdict(int, {LABEL: 16})
    try:
        return list(decoded([row], Context(0, labels)))
    except GpusimError:
        return None


@functools.cache
def known() -> list[tuple[Row, list[Micro]]]:
    """Return one row of each form, whatever its guard, and of each choice of modifiers."""
    found = [(row, meaning(replace(row, guard=None))) for row in rows()]
    return [(replace(row, guard=None), micros) for row, micros in found if micros is not None]


@functools.cache
def distinct() -> list[tuple[Row, list[Micro]]]:
    """Return one row of each form of operands of a row of the table."""
    made: dict[Any, tuple[Row, list[Micro]]] = {}
    for row, micros in known():
        made.setdefault((name_of(row), *map(shape, row.operands)), (row, micros))
    return list(made.values())


def name_of(row: Row) -> str:
    found = find(row.mnemonic, row.modifiers)
    assert found is not None
    return found.name


def shape(one: Operand) -> tuple[Any, ...]:
    terms = [(term.bits, term.scale, term.unsigned) for term in one.terms]
    return one.kind, one.suffixes, one.negated, one.inverted, one.absolute, one.is_zero, *terms


def texts_of(row: Row) -> list[str]:
    """Return the texts of a row's operands; a register and a label may share a place."""
    _, _, rest = row.text.partition(" ") if row.text[0] == "@" else ("", "", row.text)
    parts = rest.partition(" ")[2].replace(" `(", ", `(").split(",")
    return [part.strip() for part in parts if part.strip()]


@functools.cache
def parsed(text: str) -> Operand:
    return operand(text)


@functools.cache
def sample(name: str) -> Words:
    """Return bits for a register, or truths for a predicate, others for each name."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    is_predicate = name[0] in "PQ" or name.startswith("UP")
    pool = [False, True] if is_predicate else np.array(SPECIAL, np.uint32)
    return rng.choice(pool, (1, 1, LANES))


def changed(text: str) -> Iterator[tuple[str, str]]:
    """Yield what is added to an operand, or a sign that it loses, and the text of that."""
    yield from ((suffix, f"{text}.{suffix}") for suffix in (UNKNOWN, *SUFFIXES))
    yield from ((sign, f"{sign}{text}") for sign in "-~!")
    yield "|", f"|{text}|"
    if text[:1] in SIGNS:
        yield text[0], text.lstrip(SIGNS).replace("|", "")


def mutants(row: Row) -> Iterator[tuple[int, str, Row]]:
    """Yield places of operands, what is changed there, and the row with that."""
    for place, text in enumerate(texts_of(row)):
        before, after = row.operands[:place], row.operands[place + 1 :]
        for what, other in changed(text):
            made = parsed(other)
            # A number may be written in several ways, and with more digits than it has.
            if made.kind not in "IF":
                yield place, what, replace(row, operands=(*before, made, *after), text=other)
        if text != ALL_LANES:
            yield place, "nothing", replace(row, operands=before + after, text=f"without {text}")
    for more in OPERANDS:
        yield -1, "more", replace(row, operands=(*row.operands, more))
        yield -1, "more", replace(row, operands=(more, *row.operands))


def plain(micro: Micro) -> Micro:
    """Return a step without the signs of its operands, which are for its row to look at."""
    if not isinstance(micro.detail, Form):
        return micro
    return replace(micro, detail=replace(micro.detail, signs=()))


def worked_out(micro: Micro) -> list[bytes]:
    """Return what a step gives for samples of what it reads."""
    values = [
        sample(str(one)) if isinstance(one, str | BankWord) else np.asarray(one).reshape(1, 1, 1)
        for one in micro.sources
    ]
    evaluate = OPS[micro.op].evaluate
    assert evaluate is not None
    instruction = Instruction(micro.op, dtype=np.dtype(np.uint32), detail=micro.detail)
    with np.errstate(all="ignore"):
        return [np.asarray(one).tobytes() for one in evaluate(instruction, *values)]


def passed_over(forms: list[tuple[Row, list[Micro]]]) -> set[tuple[str, int, str]]:
    """Return changes that make no difference: rows of the table, places of operands, and what.

    A sign or suffix that a row takes has to make a difference in one of its forms at least, for
    that of a comparison with infinity, or of zero, makes none.
    """
    same: set[tuple[str, int, str]] = set()
    other: set[tuple[str, int, str]] = set()
    for row, micros in forms:
        for place, what, mutant in mutants(row):
            key = (name_of(row), place, what)
            found = meaning(mutant) if key not in other else None
            if found is None:
                continue
            assert found != micros, (row.text, mutant.text)
            if list(map(plain, found)) != list(map(plain, micros)):
                continue
            is_other = any(
                worked_out(p) != worked_out(q) for p, q in zip(found, micros, strict=True)
            )
            if is_other:
                other.add(key)
            elif not row.operands[place].is_zero and what not in WITHOUT_EFFECT.get(key[0], ""):
                same.add(key)
    return same - other


def test_a_form_with_something_added_is_refused_or_means_something_else() -> None:
    assert not passed_over([one for one in distinct() if one[0].mnemonic not in TIMING])


@pytest.mark.slow
def test_any_form_with_something_added_is_refused_or_means_something_else() -> None:
    assert not passed_over([one for one in known() if one[0].mnemonic not in TIMING])


def test_a_form_with_an_unknown_modifier_is_refused() -> None:
    for row, _ in distinct():
        for modifiers in ((*row.modifiers, UNKNOWN), (UNKNOWN, *row.modifiers)):
            assert meaning(replace(row, modifiers=modifiers)) is None, row.text


def test_the_texts_of_operands_are_those_of_the_row() -> None:
    """Operands are read one at a time, so that the other tests change one thing."""
    assert len(known()) > 1000
    for row, _ in known():
        assert tuple(map(operand, texts_of(row))) == row.operands, row.text


# Mnemonics of which compilers write forms that have no row.
LACKING = frozenset(("ATOM", "ATOMG", "CCTL", "QSPC", "R2UR", "REDG", "VOTE"))


def test_what_compilers_write_is_known_but_for_a_few_forms() -> None:
    refused = [row for row in rows() if meaning(row) is None]
    assert {row.mnemonic for row in refused} <= LACKING
    assert len(refused) < 40
