"""One instruction, run once by one warp."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from gpusim.gpu import memory
from gpusim.host.garbage import uncollected
from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.tracing.block_log import Entry
from gpusim.typing import Array


@dataclass(frozen=True)
class Execution:
    """One instruction run once by one warp (or by a converged part of its lanes).

    `occurrence` counts, from 0, how often this warp ran this pc before: the iteration of a loop.
    Sequences of 32 are by lane. `addresses` are byte addresses from the start of the array `array`
    (`element_bytes` an element, `width_bytes` a lane's access), -1 for lanes that are off and None
    for instructions that access no memory; `banks` likewise, for shared memory. `taken` are the
    lanes that take a branch, or for which a condition of the source (op ".IF") is true; `sources`
    are the source lanes of a shuffle. `wavefronts` and `least_wavefronts` are for shared memory,
    `sectors` for global memory.
    """

    pc: int
    line: int
    op: str
    warp: int
    occurrence: int
    active: tuple[bool, ...]
    on: tuple[bool, ...]
    space: str | None = None
    array: str | None = None
    element_bytes: int = 0
    width_bytes: int = 0
    addresses: tuple[int, ...] | None = None
    banks: tuple[int, ...] | None = None
    wavefronts: int = 0
    least_wavefronts: int = 0
    sectors: int = 0
    taken: tuple[bool, ...] | None = None
    sources: tuple[int, ...] | None = None


class Executions(Sequence[Execution]):
    """Executions in order, made for their first reader."""

    def __init__(self, make: Callable[[], list[Execution]]) -> None:
        self._make: Callable[[], list[Execution]] | None = make

    @cached_property
    def _made(self) -> list[Execution]:
        assert self._make is not None
        made, self._make = self._make(), None
        return made

    @overload
    def __getitem__(self, place: int) -> Execution: ...
    @overload
    def __getitem__(self, place: slice) -> list[Execution]: ...
    def __getitem__(self, place: int | slice) -> Execution | list[Execution]:
        return self._made[place]

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[Execution]:
        return iter(self._made)

    def __eq__(self, other: object) -> bool:
        return self._made == (other._made if isinstance(other, Executions) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._made)


@uncollected()
def executions_of(
    entries: Sequence[Entry], bases: Mapping[str, int], cc_major: int, program: Program
) -> list[Execution]:
    """Return the entries of a log in order, their addresses counted from the array's start.

    `bases` are the addresses of the arrays in global memory, in bytes. The entries of one
    instruction are computed together.
    """
    masks = _Masks()
    places: dict[int, list[int]] = {}
    for place, entry in enumerate(entries):
        if entry.addresses is not None and entry.instruction.memory is not None:
            places.setdefault(entry.pc, []).append(place)
    of_access: dict[int, dict[str, Any]] = {}
    for pc, these in places.items():
        row = program.instructions[pc]
        found = _accesses(row, [entries[place] for place in these], bases, cc_major, program)
        of_access.update(zip(these, found, strict=True))
    return [
        Execution(
            pc=entry.pc,
            line=entry.instruction.line,
            op=entry.instruction.op,
            warp=entry.warp,
            occurrence=entry.occurrence,
            active=masks.of(entry.active),
            on=masks.of(entry.on),
            taken=None if entry.taken is None else masks.of(entry.taken),
            sources=None if entry.sources is None else tuple(entry.sources.tolist()),
            **of_access.get(place, {}),
        )
        for place, entry in enumerate(entries)
    ]


def _accesses(
    row: Instruction,
    entries: Sequence[Entry],
    bases: Mapping[str, int],
    cc_major: int,
    program: Program,
) -> Iterable[dict[str, Any]]:
    """Yield the fields of an Execution for each access of one instruction to memory."""
    found = row.memory
    assert found is not None
    addresses = np.array([entry.addresses for entry in entries])
    on = np.array([entry.on for entry in entries])
    names, first = _arrays(found, addresses, on, bases, program)
    none = np.zeros(len(entries), np.int64)
    wavefronts, least, sectors = none, none, none
    banks: list[Any] = [None] * len(entries)
    if found.space == "shared":
        wavefronts, least = memory.wavefronts(
            addresses, on, found.width_bytes, cc_major, is_load=row.is_load
        )
        banks = _where_on(memory.banks(addresses, cc_major), on)
    elif found.space == "global":
        sectors = memory.sectors(addresses, on)
    columns = zip(
        names,
        _where_on(addresses - first[:, None], on),
        banks,
        wavefronts.tolist(),
        least.tolist(),
        sectors.tolist(),
        strict=True,
    )
    for name, offsets, bank, taken, fewest, touched in columns:
        yield {
            "space": found.space,
            "array": name,
            "element_bytes": found.dtype.itemsize,
            "width_bytes": found.width_bytes,
            "addresses": offsets,
            "banks": bank,
            "wavefronts": taken,
            "least_wavefronts": fewest,
            "sectors": touched,
        }


def _arrays(
    found: Memory, addresses: Array, on: Array, bases: Mapping[str, int], program: Program
) -> tuple[list[str], Array]:
    """Return the array of each access and the address of its first byte."""
    if found.space == "shared":
        pairs = [
            program.shared_array(found, of_warp[lanes].tolist())
            for of_warp, lanes in zip(addresses, on, strict=True)
        ]
        return [name for name, _ in pairs], np.array([first for _, first in pairs])
    base = bases.get(found.name, 0) if found.space == "global" else found.base
    return [found.name] * len(addresses), np.full(len(addresses), base)


def _where_on(values: Array, on: Array) -> list[tuple[int, ...]]:
    return list(map(tuple, np.where(on, values, -1).tolist()))


class _Masks:
    """Masks as tuples of lanes: equal ones are one object."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[bool, ...]] = {}

    def of(self, mask: Array) -> tuple[bool, ...]:
        """Return a mask, shaped (32,), as a tuple."""
        key = mask.tobytes()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(mask.tolist())
        return found
