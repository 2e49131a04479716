"""Barriers that are words of shared memory (`mbarrier`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.isa.ops import LAND, SHARED_HIGH, Memory
from gpusim.sass.decoding.addresses import Address, summed_address
from gpusim.sass.decoding.memory import atomic_memory
from gpusim.sass.decoding.sources import both_guards, expect, words_of
from gpusim.sass.decoding.steps import ZERO, Context, Decode, Micro, Source, pair, several
from gpusim.sass.form import Form, Signs
from gpusim.sass.listing import Row
from gpusim.sass.operands import Operand
from gpusim.sass.table import Mnemonic


def _barrier_memory(kind: Any, words: int = 1, space: str = "shared") -> Memory:
    return Memory(
        space, space, np.dtype(kind), words, volatile=True, by_address=True, of_block=True
    )


def _in_cluster(registers: Sequence[Source], place: int, row: Row, result: str, less: int) -> Micro:
    """Return the step that makes a generic address of one in the cluster's shared memory."""
    form = Address(((32, 1, True),) * len(registers), (SHARED_HIGH << 32) + less)
    return Micro(".ADDRESS", place, form, tuple(registers), (result,), row.guard, issued=False)


def _barrier_of_cluster(
    context: Context, where: Operand, row: Row, place: int
) -> tuple[Micro, str]:
    """Return the address of a barrier of any block of the cluster, and the space that it is in."""
    if not context.clusters or "RED" not in row.modifiers:
        return summed_address(where, row, place, context.window), "shared"
    registers = [term.register for term in where.terms if not term.register.endswith("Z")]
    return _in_cluster(registers, place, row, f"A{place}", int(where.number)), "generic"


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
    address, space = _barrier_of_cluster(context, where, row, place)
    yield address
    yield _fenced(row, place)
    in_halves, drops = row.mnemonic == "ATOMS", "OPTOUT" in row.modifiers
    how = "arrive_in_halves" if in_halves else "arrive_and_drop" if drops else "arrive"
    how = next((_TRANSACTIONS[one] for one in row.modifiers if one in _TRANSACTIONS), how)
    how = "arrive_expecting" if plain and row.mnemonic == "SYNCS" else how
    results = () if result.is_zero else several(result.name, 2)
    sources: tuple[Source, ...] = (*address.results, *count, ZERO)
    memory = _barrier_memory(np.uint64, space=space)
    yield Micro("ATOMS", place, how, sources, results, row.guard, memory)


def _store_and_count(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Store to shared memory of the cluster, or add there, and end a transaction of its barrier.

    The barrier's address is in the register after that of the destination. All of it happens
    where the instruction is issued.
    """
    where, value = row.operands
    expect(len(where.terms) == 1 and not where.number, row)
    names = [f"A{place}.{number}" for number in range(2)]
    for register, name in zip(pair(where.terms[0].register), names, strict=True):
        yield _in_cluster([register], place, row, name, 0)
    how: str | None = None
    if row.mnemonic == "REDAS":
        memory, words, how = atomic_memory(row, "generic")
    else:
        words = 4 if "128" in row.modifiers else 2 if "64" in row.modifiers else 1
        memory = Memory("generic", "generic", np.dtype(np.uint32), words, by_address=True)
    taken = tuple(several(value.name, words)) if value.name != "RZ" else (ZERO,) * words
    op = "ST" if how is None else "ATOM"
    yield Micro(op, place, how, (names[0], *taken), (), row.guard, memory)
    yield _fenced(row, place)
    sources: tuple[Source, ...] = (names[1], np.uint32(4 * words), ZERO)
    counted = _barrier_memory(np.uint64, space="generic")
    yield Micro(
        "ATOMS", place, "complete_transactions", sources, (), row.guard, counted, issued=False
    )


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
    """Return whether a barrier is in another phase than the highest bit of a register says."""
    verdict, where, phase = row.operands
    word = replace(summed_address(where, row, place, context.window), results=(f"B{place}",))
    yield word
    asked = (*word.results, *words_of(phase, "u", row))
    yield Micro(LAND, place, None, asked, (), row.guard, issued=False)
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
    "store_and_count": _store_and_count,
    "ask_for_phase": _ask_for_phase,
}
