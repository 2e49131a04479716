"""A warp's stream, and a block's: columns with an entry for each instruction that is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Repeat(NamedTuple):
    """The instructions from `first` up to `end`, not included, run `times` more times in a row."""

    first: int
    end: int
    times: int


COLUMNS = ("pc", "is_on", "is_taken", "cost", "lines", "fresh", "joins", "lanes")


@dataclass(frozen=True, eq=False)
class WarpStream:
    """What one warp runs, in order: columns of one length.

    `pc` is the instruction, `is_on` whether a lane takes part (a guarded-off access touches
    nothing; what only computes counts as on), `is_taken` whether a branch is taken. `cost` is
    wavefronts for shared memory, sectors for global memory, and the most lanes with one address
    for atomics; `lines` the 128-byte lines that a global access touches, `fresh` those of its
    sectors that the block has not touched before; `joins` says that another warp touches one of
    its sectors for the first time in the same step, so that it waits for the same fetch. `lanes`
    are the lanes that run the instruction, a bit each. `repeats`, in order, are the loops that
    are kept once.
    """

    pc: Array
    is_on: Array
    is_taken: Array
    cost: Array
    lines: Array
    fresh: Array
    joins: Array
    lanes: Array
    repeats: tuple[Repeat, ...] = ()

    def __len__(self) -> int:
        return len(self.pc)

    @cached_property
    def key(self) -> bytes:
        """Equal for warps that do the same."""
        columns = [np.ascontiguousarray(getattr(self, name)).tobytes() for name in COLUMNS]
        return b"".join([*columns, repr(self.repeats).encode()])

    @cached_property
    def times(self) -> Array:
        """How often the warp runs each instruction that is kept."""
        times = np.ones(len(self), dtype=np.int64)
        for first, end, more in self.repeats:
            times[first:end] += more
        return times

    def written_out(self, rounds: Callable[[int], int]) -> WarpStream:
        """Return the stream with its loops written out, `rounds` of times in place of times."""
        if not self.repeats:
            return self
        places, done = [], 0
        for first, end, times in self.repeats:
            places.append(np.arange(done, first))
            places.append(np.tile(np.arange(first, end), rounds(times)))
            done = first
        return self.at(np.concatenate([*places, np.arange(done, len(self))]))

    def of_longest_lane(self) -> WarpStream:
        """Return what the lane that runs the most does: the warp, if divergence were free.

        For streams without repeats.
        """
        return self.at(self._bits()[:, int(self.by_lane().argmax())])

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
