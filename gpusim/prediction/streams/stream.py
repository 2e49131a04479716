"""The stream of a warp, and of a block: an entry for each stored instruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from gpusim.prediction.streams.instruction_ids import numbered_columns
from gpusim.prediction.streams.instruction_table import InstructionTable
from gpusim.typing import Array


class Loop(NamedTuple):
    """One iteration, the instructions from `first` up to `end`; it runs `times` more times.

    Where accesses advance by whole lines only every few iterations, these are one iteration here.
    """

    first: int
    end: int
    times: int


class SimulatedLoop(NamedTuple):
    """A loop with `simulated` of its `iterations` unrolled, of `length` instructions each.

    They begin at `first`. It is the `number`-th loop of its warp.
    """

    number: int
    first: int
    length: int
    simulated: int
    iterations: int

    @property
    def extrapolated(self) -> int:
        """Iterations that are not simulated."""
        return self.iterations - self.simulated


class _Column:
    """A column of a stream: it is taken from the table when first requested."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, stream: WarpStream, owner: type) -> Array:
        made = stream.__dict__[self._name] = stream.taken(self._name)
        return made


@dataclass(frozen=True, eq=False)
class WarpStream:
    """The instructions of one warp, in order: `numbers` of rows of a `table` of distinct ones.

    As columns, `pc` is the instruction, `is_on` whether a lane takes part (a guarded-off access
    touches nothing; a computation counts as on), `is_taken` whether a branch is taken. `cost` is
    the number of wavefronts for shared memory, sectors for global memory, most lanes on one address
    for atomics, and distinct constants at offsets in a register. `lines` is the number of 128-byte
    lines of a global access, or an atomic's sectors; `wavefronts` the data-stage passes of a global
    access; `fresh` the number of its sectors untouched by the block before; `written` of sectors
    that a store is the first to write. `joins` means that another warp touches one of its sectors
    for the first time in the same step, so that both wait for one fetch; `after` is the number of
    loads since the first touch of its most recent sector, `MOST_BEHIND` at most. `lanes` is the
    mask of active lanes, a bit each. `gaps`, `earlier` and `apart` are distances of a global load's
    lines from each other, from the preceding loads and from the block's next warp (`distances`);
    `constant` is the first line of a load of constants at an offset in a register (`constants`), or
    -1. `loops`, in order, have one iteration stored, `simulated_loops` are unrolled.
    """

    table: InstructionTable
    numbers: Array
    loops: tuple[Loop, ...] = ()
    simulated_loops: tuple[SimulatedLoop, ...] = ()

    pc = _Column()
    is_on = _Column()
    is_taken = _Column()
    cost = _Column()
    lines = _Column()
    wavefronts = _Column()
    fresh = _Column()
    written = _Column()
    joins = _Column()
    behind = _Column()
    lanes = _Column()
    gaps = _Column()
    earlier = _Column()
    apart = _Column()
    constant = _Column()

    @classmethod
    def of(cls, **columns: Array) -> WarpStream:
        """Return the stream with some columns, all of them given."""
        return cls(*numbered_columns(columns))

    def __len__(self) -> int:
        return len(self.numbers)

    def taken(self, name: str) -> Array:
        """Return a column, which is not kept."""
        return self.table.columns[name].take(self.numbers)

    def total(self, values: Array) -> Any:
        """Return the sum of the values of rows over all executions."""
        own = values.take(self.numbers)
        return own.sum() + sum(times * own[first:end].sum() for first, end, times in self.loops)

    @property
    def instructions(self) -> int:
        """Instructions issued by the warp."""
        return len(self) + sum(times * (end - first) for first, end, times in self.loops)

    @cached_property
    def key(self) -> bytes:
        """Equal for warps with equal streams: a digest, because streams may be long."""
        digest = blake2b(repr((len(self), self.loops, self.simulated_loops)).encode())
        digest.update(self.table.contents.take(self.numbers).data)
        return digest.digest()

    @cached_property
    def times(self) -> Array:
        """Execution count of each stored instruction."""
        times = np.ones(len(self), dtype=np.int64)
        for first, end, more in self.loops:
            times[first:end] += more
        return times

    def written_out(self, iterations: Callable[[int, int], int]) -> WarpStream:
        """Return the stream with `iterations(n, times)` of its n-th loop unrolled."""
        if not self.loops:
            return self
        places, loops, done, length = [], [], 0, 0
        for number, (first, end, times) in enumerate(self.loops):
            count = iterations(number, times)
            places.append(np.arange(done, first))
            places.append(np.tile(np.arange(first, end), count))
            begin = length + first - done
            loops.append(SimulatedLoop(number, begin, end - first, count, times))
            length = begin + (end - first) * count
            done = first
        made = self.at(np.concatenate([*places, np.arange(done, len(self))]))
        return replace(made, simulated_loops=tuple(loops))

    def of_longest_lane(self) -> WarpStream:
        """Return the stream of the lane with most instructions: the warp without divergence.

        For streams with unrolled loops.
        """
        runs = self._bits()[:, int(self.by_lane().argmax())]
        before = np.concatenate([[0], np.cumsum(runs)]).tolist()
        loops = []
        for loop in self.simulated_loops:
            first = before[loop.first]
            end = before[loop.first + loop.length] if loop.simulated else first
            loops.append(loop._replace(first=first, length=end - first))
        return replace(self.at(runs), simulated_loops=tuple(loops))

    def by_lane(self) -> Array:
        """Return the number of instructions of each lane."""
        return np.asarray(self.times @ self._bits())

    def _bits(self) -> Array:
        bits = self.lanes[:, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)
        return np.asarray(bits != 0)

    def at(self, places: Array, loops: tuple[Loop, ...] = ()) -> WarpStream:
        """Return the stream with the entries at some indices alone."""
        return WarpStream(self.table, self.numbers[places], loops)


@dataclass(frozen=True, eq=False)
class BlockStream:
    """The streams of a block's warps."""

    warps: tuple[WarpStream, ...]

    @cached_property
    def key(self) -> bytes:
        """Equal for blocks with equal streams."""
        return b"|".join(warp.key for warp in self.warps)

    @cached_property
    def instructions(self) -> int:
        """Instructions issued by the block's warps."""
        return sum(warp.instructions for warp in self.warps)

    @cached_property
    def passes(self) -> int:
        """Wavefronts and sectors of all accesses, and lanes on one address of all atomics."""
        return sum(int(warp.total(warp.table.columns["cost"])) for warp in self.warps)

    @cached_property
    def fresh_sectors(self) -> int:
        """Distinct sectors touched by the block."""
        return sum(int(warp.total(warp.table.columns["fresh"])) for warp in self.warps)

    @cached_property
    def read_sectors(self) -> int:
        """Distinct sectors first touched by a read."""
        return sum(int(warp.total(warp.table.read)) for warp in self.warps)

    @cached_property
    def written_sectors(self) -> int:
        """Distinct sectors stored to."""
        return sum(int(warp.total(warp.table.columns["written"])) for warp in self.warps)

    def steps(self, iterations: int) -> int:
        """Return its instructions with at most `iterations` of each loop."""
        more = sum(min(loop.times, iterations - 1) * (loop.end - loop.first) for loop in self.loops)
        return self.kept + more

    @property
    def loops(self) -> list[Loop]:
        """All loops with one stored iteration."""
        return [loop for warp in self.warps for loop in warp.loops]

    @property
    def kept(self) -> int:
        """Instructions in the streams, those of a loop counted once."""
        return sum(map(len, self.warps))
