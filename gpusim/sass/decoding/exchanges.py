"""Shuffles, votes, matches and reductions among the lanes of a warp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpusim.isa.lanes import NEGATED
from gpusim.sass.decoding.sources import expect, words_of
from gpusim.sass.decoding.steps import Context, Decode, Micro, Source
from gpusim.sass.listing import Row
from gpusim.sass.table import Mnemonic

_SHUFFLES = {"IDX": "idx", "UP": "up", "DOWN": "down", "BFLY": "bfly"}


def _exchange(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    expect(len(row.operands) == 5 and row.operands[0].kind == "P", row)
    inside, result, value, lane, limits = row.operands
    mode = next(mode for name, mode in _SHUFFLES.items() if name in row.modifiers)
    sources: list[Source] = []
    for operand in (value, lane, limits):
        sources += words_of(operand, "u", row)
    wants_value = not result.is_zero
    wants_inside = not inside.is_true
    results = ((result.name,) if wants_value else ()) + ((inside.name,) if wants_inside else ())
    named = (("value",) if wants_value else ()) + (("inside",) if wants_inside else ())
    detail = (mode, *named)
    yield Micro("SHFL.LANES", place, detail, tuple(sources), results, row.guard)


_VOTES = {"ALL": "all", "ANY": "any", "EQ": "alike"}


def _vote(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    operands = list(row.operands)
    lanes = operands.pop(0) if operands[0].kind == "R" else None
    expect(len(operands) == 2 and all(o.kind == "P" for o in operands), row)
    verdict, asked = operands
    wanted = []
    if lanes is not None and not lanes.is_zero:
        wanted.append(("ballot", lanes.name))
    if not verdict.is_true:
        mode = next((mode for name, mode in _VOTES.items() if name in row.modifiers), "any")
        wanted.append((mode, verdict.name))
    is_negated = asked.negated and not asked.is_true
    detail = tuple(NEGATED[result] if is_negated else result for result, _ in wanted)
    results = tuple(name for _, name in wanted)
    yield Micro("VOTE.LANES", place, detail, words_of(asked, "p", row), results, row.guard)


def _elect(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Compute the number of the first active lane, and a predicate true in that lane."""
    verdict, number, asked = row.operands
    expect(asked.is_true and not asked.negated, row)
    results = (() if number.is_zero else (number.name,)) + (
        () if verdict.is_true else (verdict.name,)
    )
    detail = (not number.is_zero, not verdict.is_true)
    yield Micro("ELECT.LANES", place, detail, (), results, row.guard)


def _match(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    operands = list(row.operands)
    verdict = operands.pop(0) if operands[0].kind == "P" else None
    expect(len(operands) == 2, row)
    lanes, value = operands
    wanted = []
    if not lanes.is_zero:
        wanted.append(("all" if "ALL" in row.modifiers else "any", lanes.name))
    if verdict is not None and not verdict.is_true:
        wanted.append(("agree", verdict.name))
    detail, results = (tuple(one[place] for one in wanted) for place in (0, 1))
    sources = words_of(value, "U" if "U64" in row.modifiers else "u", row)
    yield Micro("MATCH.LANES", place, detail, sources, results, row.guard)


_REDUCED = {"SUM": "add", "MIN": "min", "MAX": "max", "OR": "or", "XOR": "xor"}


def _redux(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    expect(len(row.operands) == 2, row)
    result, value = row.operands
    operation = next((o for name, o in _REDUCED.items() if name in row.modifiers), "and")
    detail = (operation, "S32" in row.modifiers)
    yield Micro("REDUX.LANES", place, detail, words_of(value, "u", row), (result.name,), row.guard)


def _transpose(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    expect("16" in row.modifiers and "MT88" in row.modifiers, row)
    result, value = row.operands
    yield Micro("MOVM.LANES", place, None, words_of(value, "u", row), (result.name,), row.guard)


DECODERS: Mapping[str, Decode] = {
    "transpose": _transpose,
    "elect": _elect,
    "match": _match,
    "redux": _redux,
    "exchange": _exchange,
    "vote": _vote,
}
