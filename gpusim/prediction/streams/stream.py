"""A warp's stream, and a block's: columns with an entry for each instruction that is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Repeat(NamedTuple):
    """The instructions from `first` up to `end`, not included, run `times` more times in a row."""

    first: int
    end: int
    times: int


class Lap(NamedTuple):
    """A loop that is written out: `rounds` of `length` instructions each, from `first` on.

    It is the `number`-th loop of its warp, has `times` rounds, and `left` of them are left out.
    """

    number: int
    first: int
    length: int
    rounds: int
    times: int

    @property
    def left(self) -> int:
        """Rounds that are left out."""
        return self.times - self.rounds


COLUMNS = (
    "pc", "is_on", "is_taken", "cost", "lines", "fresh", "written", "joins", "lanes", "spread",
    "near",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class WarpStream:
    """What one warp runs, in order: columns of one length.

    `pc` is the instruction, `is_on` whether a lane takes part (a guarded-off access touches
    nothing; what only computes counts as on), `is_taken` whether a branch is taken. `cost` is
    wavefronts for shared memory, sectors for global memory, and the most lanes with one address
    for atomics; `lines` the 128-byte lines that a global access touches, or an atomic's sectors,
    `fresh` those of its sectors that the block has not touched before, `written` those that a
    store is the first to write; `joins` says that another warp touches one of its sectors for the
    first time in the same step, so that it waits for the same fetch. `lanes` are the lanes that
    run the instruction, a bit each. `spread` and `near` say how the lines of a global load lie to
    each other and to those of the loads before. `repeats`, in order, are the loops that are kept
    once, `laps` those that have been written out.
    """

    pc: Array
    is_on: Array
    is_taken: Array
    cost: Array
    lines: Array
    fresh: Array
    written: Array
    joins: Array
    lanes: Array
    spread: Array
    near: Array
    repeats: tuple[Repeat, ...] = ()
    laps: tuple[Lap, ...] = ()

    def __len__(self) -> int:
        return len(self.pc)

    @cached_property
    def key(self) -> bytes:
        """Equal for warps that do the same."""
        columns = [np.ascontiguousarray(getattr(self, name)).tobytes() for name in COLUMNS]
        return b"".join([*columns, repr((self.repeats, self.laps)).encode()])

    @cached_property
    def times(self) -> Array:
        """How often the warp runs each instruction that is kept."""
        times = np.ones(len(self), dtype=np.int64)
        for first, end, more in self.repeats:
            times[first:end] += more
        return times

    def written_out(self, rounds: Callable[[int, int], int]) -> WarpStream:
        """Return the stream with its loops written out: of the n-th, `rounds(n, times)` rounds."""
        if not self.repeats:
            return self
        places, laps, done, length = [], [], 0, 0
        for number, (first, end, times) in enumerate(self.repeats):
            played = rounds(number, times)
            places.append(np.arange(done, first))
            places.append(np.tile(np.arange(first, end), played))
            laps.append(Lap(number, length + first - done, end - first, played, times))
            length += first - done + (end - first) * played
            done = first
        made = self.at(np.concatenate([*places, np.arange(done, len(self))]))
        return replace(made, laps=tuple(laps))

    def of_longest_lane(self) -> WarpStream:
        """Return what the lane that runs the most does: the warp, if divergence were free.

        For streams without repeats.
        """
        runs = self._bits()[:, int(self.by_lane().argmax())]
        before = np.concatenate([[0], np.cumsum(runs)]).tolist()
        laps = []
        for lap in self.laps:
            first = before[lap.first]
            end = before[lap.first + lap.length] if lap.rounds else first
            laps.append(lap._replace(first=first, length=end - first))
        return replace(self.at(runs), laps=tuple(laps))

    def by_lane(self) -> Array:
        """Return how many instructions each lane runs."""
        return np.asarray(self.times @ self._bits())

    def _bits(self) -> Array:
        bits = self.lanes[:, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)
        return np.asarray(bits != 0)

    def at(self, places: Array, repeats: tuple[Repeat, ...] = ()) -> WarpStream:
        """Return the stream with the entries at some places alone."""
        columns = {name: getattr(self, name)[places] for name in COLUMNS}
        return WarpStream(**columns, repeats=repeats)


@dataclass(frozen=True, eq=False)
class BlockStream:
    """The streams of a block's warps."""

    warps: tuple[WarpStream, ...]

    @cached_property
    def key(self) -> bytes:
        """Equal for blocks that do the same."""
        return b"|".join(warp.key for warp in self.warps)

    @cached_property
    def instructions(self) -> int:
        """Instructions that the block's warps issue."""
        return sum(int(warp.times.sum()) for warp in self.warps)

    @cached_property
    def fresh_sectors(self) -> int:
        """Sectors that the block touches."""
        return sum(int(warp.times @ warp.fresh) for warp in self.warps)

    @cached_property
    def read_sectors(self) -> int:
        """Sectors that the block touches first by reading them."""
        return sum(int(warp.times @ np.where(warp.written, 0, warp.fresh)) for warp in self.warps)

    @cached_property
    def written_sectors(self) -> int:
        """Sectors that the block stores to."""
        return sum(int(warp.times @ warp.written) for warp in self.warps)

    @property
    def repeats(self) -> list[Repeat]:
        """All loops that are kept once."""
        return [repeat for warp in self.warps for repeat in warp.repeats]

    @property
    def kept(self) -> int:
        """Instructions in the streams, those of a loop that is kept once counted once."""
        return sum(map(len, self.warps))


def rolled(stream: WarpStream) -> WarpStream:
    """Return the stream with all that is like a loop's kept iteration counted among its repeats.

    Streams that do the same become equal, wherever in their loops the leaps began.
    """
    if not stream.repeats:
        return stream
    columns = [getattr(stream, name) for name in COLUMNS]
    kept = np.ones(len(stream), dtype=bool)
    found, low = [], 0
    limits = [*(first for first, _, _ in stream.repeats[1:]), len(stream)]
    for (first, end, times), high in zip(stream.repeats, limits, strict=True):
        period = end - first
        again = np.logical_and.reduce(
            [c[low : high - period] == c[low + period : high] for c in columns]
        )
        back = _run(again[: first - low][::-1])
        first, end = first - back, end - back
        more = _run(again[first - low :]) // period
        low = end + more * period
        kept[end:low] = False
        found.append(Repeat(first, end, times + more))
    new = np.cumsum(kept) - kept
    repeats = (Repeat(int(new[a]), int(new[b - 1]) + 1, times) for a, b, times in found)
    return stream.at(kept, tuple(repeats))


def _run(is_so: Array) -> int:
    """Return how many entries from the first on are true."""
    return len(is_so) if is_so.all() else int(is_so.argmin())
