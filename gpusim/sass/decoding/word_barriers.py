"""Barriers that are words of shared memory (`mbarrier`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.isa.ops import LAND, Memory
from gpusim.sass.decoding.addresses import summed_address
from gpusim.sass.decoding.sources import both_guards, expect, words_of
from gpusim.sass.decoding.steps import ZERO, Context, Decode, Micro, Source, several
from gpusim.sass.form import Form, Signs
from gpusim.sass.listing import Row
from gpusim.sass.operands import Operand
from gpusim.sass.table import Mnemonic


def _barrier_memory(kind: Any, words: int = 1) -> Memory:
    return Memory(
        "shared", "shared", np.dtype(kind), words, volatile=True, by_address=True, of_block=True
    )


def _fenced(row: Row, place: int) -> Micro:
    """Return the fence of an arrival (release) or a wait (acquire)."""
    return Micro("MEMBAR", place, "block", (), (), row.guard, issued=False)


def _set_barrier(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Set a barrier, once for a warp on the uniform datapath."""
    result, where, value = row.operands
    expect(result.is_zero, row)
    address = summed_address(where, row, place, context.window)
    yield address
    first = Operand("P", name=f"E{place}")
    yield Micro("ELECT.LANES", place, (False, True), (), (first.name,), row.guard, issued=False)
    before, guard = both_guards(row, place, first)
    yield from before
    sources = (*address.results, *words_of(value, "U", row))
    yield Micro("STS", place, None, sources, (), guard, _barrier_memory(np.uint32, 2))


# What an arrival does to the transactions; the last operand counts these, or the arrivals.
_TRANSACTIONS = {
    "A0T1": "expect_transactions", "A0TR": "expect_transactions", "A0TX": "complete_transactions",
}  # fmt: skip
_COUNTED = {"ART0", "A0TR", "A0TX"}


def _arrive_at_word(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    result, where, *rest = row.operands
    plain = set(row.modifiers) == {"ARRIVE", "TRANS64"}
    many = plain or not _COUNTED.isdisjoint(row.modifiers)
    expect(many or all(operand.is_zero for operand in rest), row)
    count = words_of(rest[0], "u", row) if many else (np.uint32(1),)
    address = summed_address(where, row, place, context.window)
    yield address
    yield _fenced(row, place)
    in_halves, drops = row.mnemonic == "ATOMS", "OPTOUT" in row.modifiers
    how = "arrive_in_halves" if in_halves else "arrive_and_drop" if drops else "arrive"
    how = next((_TRANSACTIONS[one] for one in row.modifiers if one in _TRANSACTIONS), how)
    how = "arrive_expecting" if plain and row.mnemonic == "SYNCS" else how
    results = () if result.is_zero else several(result.name, 2)
    sources: tuple[Source, ...] = (*address.results, *count, ZERO)
    yield Micro("ATOMS", place, how, sources, results, row.guard, _barrier_memory(np.uint64))


# What copies count in a barrier since compute capability 9.0; before, there are arrivals alone.
_COUNTS = {"TRANSCNT": "complete_transactions", "ARVCNT": "arrive"}


def _arrive_behind_copies(
    context: Context, row: Row, place: int, found: Mnemonic
) -> Iterator[Micro]:
    """Arrive at a barrier, or end a transaction of it, once the lanes' copies so far have landed.

    They land where the instruction is issued.
    """
    (where,) = row.operands
    address = summed_address(where, row, place, context.window)
    yield address
    for op, detail in (("LDGDEPBAR", None), ("DEPBAR", 0)):
        yield Micro(op, place, detail, (), (), row.guard, issued=False)
    yield _fenced(row, place)
    how = next((_COUNTS[one] for one in row.modifiers if one in _COUNTS), "arrive_in_halves")
    sources: tuple[Source, ...] = (*address.results, np.uint32(1), ZERO)
    memory = _barrier_memory(np.uint64)
    yield Micro("ATOMS", place, how, sources, (), row.guard, memory)


def _ask_for_phase(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Say whether a barrier is in another phase than the highest bit of a register says."""
    verdict, where, phase = row.operands
    word = replace(summed_address(where, row, place, context.window), results=(f"B{place}",))
    yield word
    yield Micro(LAND, place, None, word.results, (), row.guard, issued=False)
    address = summed_address(where, row, place, context.window - _UPPER_HALF)
    yield address
    held = (f"T{place}.0",)
    yield Micro("LDS", place, None, address.results, held, row.guard, _barrier_memory(np.uint32))
    yield _fenced(row, place)
    form = Form(row.name, _phases_differ, frozenset(), "uu", "p", (Signs(), Signs()))
    sources = (*held, *words_of(phase, "u", row))
    results = () if verdict.is_true else (verdict.name,)
    yield Micro(".PREDICATE", place, form, sources, results, row.guard, issued=False)


_UPPER_HALF = 4  # bytes from a word of 64 bits to its phase


def _phases_differ(form: Form, word: Any, phase: Any) -> Any:
    return np.asarray((word ^ phase) >> np.uint32(31), bool)


DECODERS: Mapping[str, Decode] = {
    "set_barrier": _set_barrier,
    "arrive_at_word": _arrive_at_word,
    "arrive_behind_copies": _arrive_behind_copies,
    "ask_for_phase": _ask_for_phase,
}
