"""Barriers of blocks, warps and lanes of a mask, and fences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.sass.decoding.sources import both_guards, conjunction, expect, words_of
from gpusim.sass.decoding.steps import ZERO, Context, Decode, Micro, Source
from gpusim.sass.form import Form, Signs
from gpusim.sass.listing import Row
from gpusim.sass.table import Mnemonic


def _warpsync(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    if "ALL" in row.modifiers:
        mask: tuple[Source, ...] = (np.uint32(0xFFFFFFFF),)
    else:
        expect(len(row.operands) == 1, row)
        mask = words_of(row.operands[0], "u", row)
    whom = "all" if "ALL" in row.modifiers else None
    op = "WARPSYNC.EXCLUSIVE" if "EXCLUSIVE" in row.modifiers else "WARPSYNC.MASK"
    yield Micro(op, place, whom, mask, (), row.guard)


def _collective(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Gather the lanes that a mask names; they continue at the label after ENDCOLLECTIVE.

    Compilers put the label right after that, so that nothing has to jump.
    """
    *lanes, label = row.operands
    expect(label.kind == "L" and len(lanes) == ("ALL" not in row.modifiers), row)
    every: tuple[Source, ...] = (np.uint32(0xFFFFFFFF),)
    mask = words_of(lanes[0], "u", row) if lanes else every
    yield Micro("WARPSYNC.COLLECTIVE", place, None, mask, (), row.guard)


_REDUCTIONS = {"POPC": "count", "AND": "and", "OR": "or"}


RESULT_OF_BARRIER = "BR"


def _barrier_reduction(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Wait at the barrier; its result is read by B2R.RESULT."""
    expect(len(row.operands) == 2 and row.operands[0].number == 0, row)
    before, condition = both_guards(replace(row, guard=None), place, row.operands[1])
    yield from before
    source: Source = np.bool_(True) if condition is None else condition.register
    if condition is not None and condition.negated:
        form = Form("not", conjunction, frozenset(), "p", "p", (Signs(negated=True),))
        yield Micro(".PREDICATE", place, form, (source,), (f"Q{place}",), issued=False)
        source = f"Q{place}"
    detail = next(name for word, name in _REDUCTIONS.items() if word in row.modifiers)
    yield Micro("BAR", place, detail, (source,), (RESULT_OF_BARRIER,), row.guard)


def _barrier_result(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    count, *predicate = row.operands
    results = [] if count.is_zero else [count.name]
    results += [operand.name for operand in predicate if not operand.is_true]
    kept = tuple(k for k, wanted in enumerate((not count.is_zero, bool(predicate))) if wanted)
    form = Form("B2R.RESULT", _of_barrier, frozenset(), "u", "up", (Signs(),), kept)
    sources = (RESULT_OF_BARRIER,)
    yield Micro("bits.B2R.RESULT", place, form, sources, tuple(results), row.guard)


def _of_barrier(form: Form, value: Any) -> Any:
    return value, value != 0


def _barrier(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    number, *_ = row.operands
    if len(row.operands) == 1 and number.kind == "I" and number.number == 0:
        yield Micro("BAR", place, "sync", (), (), row.guard)
    else:
        yield Micro("BAR.SYNC", place, _form_of_barrier(row), _named_barrier(row), (), row.guard)


def _barrier_of_cluster(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Arrive at the barrier of a cluster, or wait there; a cluster of one block has its own."""
    expect(not row.operands, row)
    if context.clusters:
        yield Micro(row.mnemonic, place, None, (), (), row.guard)
    elif row.mnemonic == "UCGABAR_WAIT":
        yield Micro("BAR", place, "sync", (), (), row.guard)
    else:
        yield Micro("ERRBAR", place, "gpu", (), (), row.guard)


def _form_of_barrier(row: Row) -> str:
    """Return "packed" where one register holds the number, and the threads in its upper half."""
    return "packed" if len({one.name for one in row.operands}) < len(row.operands) else "apart"


def _arrive(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    expect(len(row.operands) == 2, row)
    yield Micro("BAR.ARV", place, _form_of_barrier(row), _named_barrier(row), (), row.guard)


def _named_barrier(row: Row) -> tuple[Source, ...]:
    """Return a barrier's number, and how many threads it waits for: 0 for all of the block."""
    expect(len(row.operands) in (1, 2), row)
    sources = tuple(source for one in row.operands for source in words_of(one, "u", row))
    return sources if len(sources) == 2 else (*sources, ZERO)


def _fence(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    scope = "block" if "CTA" in row.modifiers else "gpu"
    op = "MEMBAR" if found.name == "MEMBAR" else "ERRBAR"
    yield Micro(op, place, scope, (), (), row.guard)


DECODERS: Mapping[str, Decode] = {
    "arrive": _arrive,
    "warpsync": _warpsync,
    "collective": _collective,
    "barrier": _barrier,
    "barrier_of_cluster": _barrier_of_cluster,
    "barrier_reduction": _barrier_reduction,
    "barrier_result": _barrier_result,
    "fence": _fence,
}
