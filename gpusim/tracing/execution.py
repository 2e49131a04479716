"""One instruction, run once by one warp."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload


@dataclass(frozen=True)
class Execution:
    """One instruction run once by one warp (or by a converged part of its lanes).

    `occurrence` counts, from 0, how often this warp ran this pc before: the iteration of a
    loop. Sequences of 32 are by lane. `addresses` are byte addresses from the start of the
    array `array` (`element_bytes` an element, `width_bytes` a lane's access), -1 for lanes that
    are off and None for instructions that access no memory; `banks` likewise, for shared memory.
    `taken` are the lanes that take a branch, or have a true condition of the source (op
    ".IF") is true; `sources` are the source lanes of a shuffle. `wavefronts` and `least_wavefronts`
    are for shared memory, `sectors` for global memory.
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
