"""Addresses in operands, summed by a step of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim.isa.ops import LAND, RANK_SHIFT
from gpusim.sass.decoding.sources import expect
from gpusim.sass.decoding.steps import Context, Micro, Source, pair
from gpusim.sass.form import joined
from gpusim.sass.listing import Row
from gpusim.sass.operands import Operand, Term


@dataclass(frozen=True)
class Address:
    """How an address is added up: the scale of each register or pair, and a number of bytes.

    In a cluster, the bits of an address of shared memory above `RANK_SHIFT` are the rank of a
    block. That of a block's own counts from its `window` on, without the rank.
    """

    terms: tuple[tuple[int, int, bool], ...]  # bits, scale, and whether unsigned
    offset: int
    window: int | None = None

    def __str__(self) -> str:
        return f"{self.offset:+#x}"

    def computed(self, *registers: Any) -> Any:
        """Return addresses, 64-bit, from the registers that they are made of."""
        total = self._sum(*registers)
        if self.window is None:
            return total
        window, inside = np.int64(self.window), np.int64((1 << RANK_SHIFT) - 1)
        return (total + window & inside) - window

    def _sum(self, *registers: Any) -> Any:
        total: Any = None
        place = 0
        for bits, scale, unsigned in self.terms:
            if bits == 64:
                value = joined(*registers[place : place + 2]).view(np.int64)
                place += 2
            else:
                # Within a window of 2^32 bytes offsets may be negative.
                word = registers[place]
                value = (word if unsigned else word.view(np.int32)).astype(np.int64)
                place += 1
            if scale != 1:
                value = value * np.int64(scale)
            total = value if total is None else total + value
        if total is None:
            return np.full((1, 1, 1), self.offset, dtype=np.int64)
        return total + np.int64(self.offset) if self.offset else total


# Accesses of memory beyond 2^32 bytes: a register alone stands for a pair.
WIDE_ADDRESSES = frozenset(
    ("LDG", "STG", "LD", "ST", "ATOMG", "ATOM", "RED", "REDG", "LDGSTS")
)  # fmt: skip


def _whole(terms: tuple[Term, ...], wide: bool) -> tuple[Term, ...]:
    """Return an address's registers with the bits that each has."""
    if not wide:
        return terms
    return tuple(term if term.unsigned else replace(term, bits=64) for term in terms)


def summed_address(
    operand: Operand, row: Row, place: int, less: int = 0, *, wide: bool | None = None
) -> Micro:
    """Return the step that sums an address, into a register of its own."""
    expect(operand.kind == "M", row)
    sources: list[Source] = []
    terms = []
    is_wide = row.mnemonic in WIDE_ADDRESSES if wide is None else wide
    for term in _whole(operand.terms, is_wide):
        if term.register.endswith("Z"):
            continue
        sources += pair(term.register) if term.bits == 64 else (term.register,)
        terms.append((term.bits, term.scale, term.unsigned))
    form = Address(tuple(terms), int(operand.number) - less)
    made = (f"A{place}",)
    return Micro(".ADDRESS", place, form, tuple(sources), made, row.guard, issued=False)


def of_own_memory(micros: Sequence[Micro], window: int) -> list[Micro]:
    """Return the steps of blocks in clusters: of own shared memory the rank is left out."""
    own = {
        micro.sources[0]
        for micro in micros
        if micro.op == LAND or (micro.memory is not None and micro.memory.space == "shared")
    }
    return [
        replace(micro, detail=replace(micro.detail, window=window))
        if micro.op == ".ADDRESS" and micro.results[0] in own
        else micro
        for micro in micros
    ]


def window_of(context: Context, space: str) -> int:
    """Return where the window of a memory begins in addresses that machine code computes."""
    return context.window if space == "shared" else 0
