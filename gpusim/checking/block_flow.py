"""Propagation of acquired accesses within a block, at block and warp barriers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from gpusim.checking.clock_rows import BARRIER, HEARD, KEY, MET, PAIRS, THREAD, TIME, WARP_SYNC

Row = list[int]  # of `clock_rows`


class Joined(Protocol):
    """Knowledge that only grows; the union of two is of the same type."""

    def join(self, other: Self) -> Self:
        """Return the union of both."""


K = TypeVar("K", bound=Joined)


class Together(NamedTuple, Generic[K]):
    """Accesses known to many threads of a block at one time: to each, and to all."""

    time: int
    each: Callable[[], Iterator[tuple[Row, K]]]
    all: K


@dataclass
class _Block(Generic[K]):
    """A block's knowledge: of all threads until a barrier, and of each warp since.

    If no warp has its own, it may be the common knowledge of many threads, `together`.
    """

    barrier: int = 0
    known: K | None = None
    warps: dict[int, _Warp[K]] = field(default_factory=dict)
    together: Together[K] | None = None


@dataclass
class _Warp(Generic[K]):
    """A warp's knowledge: of all lanes until they `met`, and of each lane since, by time.

    The knowledge of a warp includes that of its block, and the last one of a lane that of its warp.
    """

    met: int = 0
    known: K | None = None
    lanes: dict[int, list[tuple[int, K]]] = field(default_factory=dict)

    def settle(self, met: int) -> None:
        """Give all lanes the knowledge of each before they synchronised."""
        self.met = met
        for lane, entries in list(self.lanes.items()):
            count = sum(time <= met for time, _ in entries)
            if count:
                self.known = joined(self.known, entries[count - 1][1])
                del entries[:count]
            if not entries:
                del self.lanes[lane]

    def before(self, lane: int, time: int) -> K | None:
        """Return the last that a lane knew until a time."""
        entries = [known for then, known in self.lanes.get(lane, ()) if then <= time]
        return entries[-1] if entries else None


class BlockFlow(Generic[K]):
    """Accesses known to threads, and since when; known to others after a barrier between them."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block[K]] = {}

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def add(self, row: Row, news: K) -> K:
        """Record that a thread knows more from its time on, and return all that it knows."""
        block = self._blocks.setdefault(row[KEY], _Block())
        before = self._of(block, row)
        if before is not None:
            news = before.join(news)
            if news is before:
                return before
        warp = block.warps.setdefault(row[THREAD] >> 5, _Warp(known=block.known))
        entries = warp.lanes.setdefault(row[THREAD] & 31, [])
        if entries and len(row) <= HEARD and entries[-1][0] > row[MET]:
            entries.pop()  # no other thread knows it
        entries.append((row[TIME], news))
        return news

    def is_common(self, row: Row) -> bool:
        """Return whether all threads of a thread's block know the same."""
        self.of(row)
        block = self._blocks.get(row[KEY])
        return block is None or not (block.warps or block.together)

    def add_together(self, row: Row, together: Together[K]) -> None:
        """Record that threads of a block know more, where all have known the same."""
        self._blocks.setdefault(row[KEY], _Block()).together = together

    def of(self, row: Row) -> K | None:
        """Return the knowledge of a thread."""
        block = self._blocks.get(row[KEY])
        return None if block is None else self._of(block, row)

    def take(self, row: Row) -> K | None:
        """Return the knowledge of a thread, and drop the rest of its own."""
        known = self.of(row)
        if known is not None:
            block = self._blocks[row[KEY]]
            warp = block.warps.get(row[THREAD] >> 5)
            if warp is not None:
                warp.lanes.pop(row[THREAD] & 31, None)
        return known

    def forget(self, block: int) -> None:
        """Forget a block that has ended."""
        self._blocks.pop(block, None)

    def _of(self, block: _Block[K], row: Row) -> K | None:
        together, block.together = block.together, None
        if together is not None and together.time <= row[BARRIER]:
            block.known = joined(block.known, together.all)
        elif together is not None:
            for one, news in together.each():
                self.add(one, news)
        if row[BARRIER] > block.barrier:
            _settle(block, row[BARRIER])
        known, warp = block.known, block.warps.get(row[THREAD] >> 5)
        if warp is not None:
            if row[WARP_SYNC] > warp.met and len(row) <= HEARD:
                warp.settle(row[WARP_SYNC])
            mine = warp.lanes.get(row[THREAD] & 31)
            known = mine[-1][1] if mine else warp.known
        if len(row) > HEARD or (len(row) > PAIRS and warp is not None and len(warp.lanes) > 1):
            for more in _met(block, row):
                known = joined(known, more)
        return known


def _settle(block: _Block[K], barrier: int) -> None:
    """Give all threads the knowledge of each before a barrier."""
    block.barrier = barrier
    for number, warp in list(block.warps.items()):
        warp.settle(barrier)
        block.known = joined(block.known, warp.known)
        if not warp.lanes:
            del block.warps[number]
    for warp in block.warps.values():
        warp.known = block.known


def _met(block: _Block[K], row: Row) -> Iterator[K | None]:
    """Yield the knowledge of other lanes that a thread met, and of warps that it heard of."""
    mine, heard = row[THREAD] >> 5, row[HEARD:]
    for number, warp in block.warps.items() if heard else ((mine, block.warps.get(mine)),):
        if warp is None:
            continue
        until = heard[number & 31] if heard else 0
        if until and warp.met <= until:
            yield warp.known
        for lane in warp.lanes:
            met = max(row[PAIRS + lane], row[WARP_SYNC]) if number == mine else 0
            yield warp.before(lane, max(met, until))


def joined(known: K | None, more: K | None) -> K | None:
    """Return the union of two states of knowledge, if there are any."""
    if known is None or more is None:
        return more if known is None else known
    return known.join(more)
