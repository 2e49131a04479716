"""Copies from global to shared memory that are awaited later (`cp.async`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim.isa.ops import AWAIT_BULK, BULK_STORE, Memory
from gpusim.sass.decoding.addresses import Address, summed_address
from gpusim.sass.decoding.memory import accessed_memory
from gpusim.sass.decoding.sources import both_guards, expect, itself, words_of
from gpusim.sass.decoding.steps import ZERO, Context, Decode, Micro, Source, pair, several
from gpusim.sass.form import Form, Signs
from gpusim.sass.listing import Guard, Row
from gpusim.sass.table import Mnemonic


def _commit_copies(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    yield Micro("LDGDEPBAR", place, None, (), (), row.guard)


def _await_copies(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Wait until at most a number of groups of copies, counted on SB0, are pending."""
    names = [one.name for one in row.operands]
    groups = row.operands[1].number if names[:1] == ["SB0"] and len(names) > 1 else None
    yield Micro("DEPBAR", place, groups, (), (), row.guard)
    if groups is not None:
        yield Micro(AWAIT_BULK, place, groups, (), (), row.guard, issued=False)


# Ops and details of bulk copies by the way they go; of "peer" both ends are in shared memory.
_BULK = {"load": "UBLKCP.LOAD", "multicast": "UBLKCP.LOAD", "peer": "UBLKCP.PEER"}


def _bulk_copy(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Begin a copy of some units; its barrier is in the register after the destination's."""
    to, origin, size = row.operands
    way = str(found.detail)
    stores = way not in _BULK
    reduces = row.mnemonic == "UBLKRED"
    inside, outside = (origin, to) if stores else (to, origin)
    expect(all(len(one.terms) == 1 and not one.number for one in (inside, outside)), row)
    held, far = (pair(one.terms[0].register) for one in (inside, outside))
    own = [*held[: 1 if stores else 2], *far[: 1 if way == "peer" else 0]]
    places = []
    for name in own:
        places.append(f"A{place}.{name}")
        form = Address(((32, 1, False),), -context.window)
        yield Micro(".ADDRESS", place, form, (name,), (places[-1],), row.guard, issued=False)
    barrier: Source = ZERO if stores else places[1]
    others = (places[2], ZERO) if way == "peer" else far
    sources = (places[0], barrier, *others, *words_of(size, "u", row))
    how = _reduction(row) if reduces else ""
    detail = how if stores and reduces else ".".join(filter(None, (way, how)))
    yield Micro(_BULK.get(way, BULK_STORE), place, detail, sources, (), row.guard)


def _reduction(row: Row) -> str:
    """Return the operation and the type of a reduction of memory, as "add.u32"."""
    operation, *kinds = (one.lower() for one in row.modifiers if one not in ("G", "S", "RN"))
    bitwise = operation in ("and", "or", "xor")
    kind = kinds[0] if kinds else "b32" if bitwise else "u32"
    return f"{operation}.{kind.replace('u', 'b') if bitwise else kind}"


def _tensor_copy(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Begin a copy by a tensor map, at the address of the second operand.

    The first has the place in shared memory, of a load its barrier after it, then coordinates.
    """
    inside, of_map, *mask = row.operands
    expect(all(len(one.terms) == 1 and not one.number for one in (inside, of_map)), row)
    ranks = [int(one[0]) for one in row.modifiers if one[0].isdigit()]
    expect(len(ranks) == 1, row)
    loads = found.detail != "store" and found.detail != "reduction"
    held = several(inside.terms[0].register, ranks[0] + 1 + loads)
    own, coordinates = held[: 1 + loads], held[1 + loads :]
    places = [f"A{place}.{name}" for name in own]
    for name, address in zip(own, places, strict=True):
        form = Address(((32, 1, False),), -context.window)
        yield Micro(".ADDRESS", place, form, (name,), (address,), row.guard, issued=False)
    sources = (places[0], places[1] if loads else ZERO, *pair(of_map.terms[0].register))
    how = next((one.lower() for one in row.modifiers if one.isalpha()), "")
    op = "UBLKCP.LOAD" if loads else BULK_STORE
    masks = [word for one in mask for word in words_of(one, "u", row)]
    yield Micro(op, place, f"tensor.{how}", (*sources, *coordinates, *masks), (), row.guard)


def _commit_bulk(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    yield Micro("UTMACMDFLUSH", place, None, (), (), row.guard)


def _copy_to_shared(context: Context, row: Row, place: int, found: Mnemonic) -> Iterator[Micro]:
    """Copy from global to shared memory without a register between; it is there when awaited.

    Lanes with a false third operand, a predicate, store zeros. With ZFILL the address encodes
    the number of zeros in a copy, by its distance after the source (PTX ISA,
    cp.async with a size of the source; compilers' code).
    """
    expect(len(row.operands) in (2, 3), row)
    to, origin, *wanted = row.operands
    source = summed_address(origin, row, place)
    yield source
    held, words = accessed_memory(row, "global")
    passing = tuple(f"T{place}.{number}" for number in range(words))
    guard, fills = row.guard, "ZFILL" in row.modifiers
    for predicate in wanted:
        expect(predicate.kind == "P", row)
        before, guard = both_guards(row, place, predicate)
        yield from before
    if wanted or fills:
        yield from _zeros(row, place, passing)
    if fills:
        parts = _in_parts(row, place, source.results, guard, 4 * words)
        yield from parts.before
        yield Micro("LDGSTS", place, None, source.results, passing, parts.whole, held)
        yield from parts.behind
    else:
        yield Micro("LDGSTS", place, None, source.results, passing, guard, held)
    target = replace(
        summed_address(to, row, place, context.window, wide=False), results=(f"A{place}.to",)
    )
    yield target
    shared, _ = accessed_memory(row, "shared")
    yield Micro(
        ".STS", place, None, (*target.results, *passing), (), row.guard, shared, issued=False
    )


def _zeros(row: Row, place: int, names: tuple[str, ...]) -> Iterator[Micro]:
    zeros = Form("zero", itself, frozenset(), "u", "u", (Signs(),))
    for name in names:
        yield Micro(".SAME", place, zeros, (ZERO,), (name,), row.guard, issued=False)


@dataclass(frozen=True)
class Parts:
    """A copy of all or the first bytes by lane: steps around it, and the lanes that copy all."""

    before: tuple[Micro, ...]
    whole: Guard
    behind: tuple[Micro, ...]


@dataclass(frozen=True)
class Start:
    """The start of a copy with its number of missing bytes in an address, and a byte of it."""

    width: int
    byte: int

    def computed(self, address: Any) -> Any:
        """Return the address of the byte."""
        return (address & np.int64(-self.width)) + np.int64(self.byte)


def _in_parts(
    row: Row, place: int, address: tuple[Source, ...], guard: Guard | None, width: int
) -> Parts:
    """Return the copies of lanes that want fewer bytes than the whole: byte by byte."""
    first = _covered(place, "whole", address, guard, (width, -1))
    behind: list[Micro] = []
    memory = Memory("global", "", np.dtype(np.uint8), by_address=True)
    for byte in range(width - 1):
        name, where, value = (f"{letter}{place}.{byte}" for letter in "QAB")
        behind.append(_covered(place, str(byte), address, guard, (width, byte)))
        start = Start(width, byte)
        behind.append(Micro(".ADDRESS", place, start, address, (where,), issued=False))
        behind += _zeros(replace(row, guard=None), place, (value,))
        load = Micro(".LDG", place, None, (where,), (value,), Guard(name, False), memory)
        behind.append(replace(load, issued=False))
    for word in range(width // 4):
        held = f"T{place}.{word}"
        count = min(4, width - 1 - 4 * word)
        sources = (held, *(f"B{place}.{4 * word + byte}" for byte in range(count)))
        codes, signs = "u" * len(sources), (Signs(),) * len(sources)
        form = Form("joined", _with_bytes, frozenset(), codes, "u", signs)
        behind.append(Micro(".SAME", place, form, sources, (held,), issued=False))
    return Parts((first,), Guard(f"Q{place}.whole", False), tuple(behind))


def _covered(
    place: int,
    name: str,
    address: tuple[Source, ...],
    guard: Guard | None,
    numbers: tuple[int, int],
) -> Micro:
    """Compute the lanes that copy a single byte, or -1 for all bytes at once."""
    predicates = () if guard is None else (guard,)
    sources = (*address, *(one.register for one in predicates))
    signs = (Signs(), *(Signs(negated=one.negated) for one in predicates))
    codes = "r" + "p" * len(predicates)
    form = Form("covered", _is_covered, frozenset(), codes, "p", signs, numbers=numbers)
    return Micro(".PREDICATE", place, form, sources, (f"Q{place}.{name}",), issued=False)


def _is_covered(form: Form, address: Any, *wanted: Any) -> Any:
    width, byte = form.numbers
    lacking = address & np.int64(width - 1)
    covered = lacking == 0 if byte < 0 else (lacking != 0) & (lacking < width - byte)
    return np.logical_and(covered, wanted[0]) if wanted else covered


def _with_bytes(form: Form, word: Any, *parts: Any) -> Any:
    for place, part in enumerate(parts):
        word = word | part << np.uint32(8 * place)
    return word


DECODERS: Mapping[str, Decode] = {
    "copy_to_shared": _copy_to_shared,
    "commit_copies": _commit_copies,
    "await_copies": _await_copies,
    "bulk_copy": _bulk_copy,
    "commit_bulk": _commit_bulk,
    "tensor_copy": _tensor_copy,
}
