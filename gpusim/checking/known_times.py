"""Vector clocks of a whole grid as immutable trees: the times up to which accesses are known.

A node has the time for all of its threads, and children with later times: lanes of a warp, warps of
a block, and above them up to 256 blocks or groups of blocks each. Trees share subtrees, and a join
skips shared ones: it costs as much as they differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpusim.checking.element_access import BLOCK_SHIFT

LANE, WARP = (0, 31), (5, 31)
BLOCKS = ((BLOCK_SHIFT, 255), (BLOCK_SHIFT + 8, 255), (BLOCK_SHIFT + 16, 255))
# Of the root's parts, and so on down to lanes: the place of their number in a thread's, and a mask.
LEVELS = (*BLOCKS[::-1], WARP, LANE)
MOST_INCLUDED = 64
EVERY_LANE = (1 << 32) - 1


class KnownTimes:
    """A node: `time` of all its threads, the `latest` of any, and parts known for longer.

    A root may be a `version` of a flag's released times.
    """

    __slots__ = ("latest", "parts", "time", "version")

    def __init__(
        self, time: int, parts: Mapping[int, KnownTimes] | None = None, latest: int | None = None
    ) -> None:
        self.time, self.parts = time, parts or {}
        self.version: Version | None = None
        self.latest = time if latest is None else latest

    def until(self, thread: int) -> int:
        """Return the time up to which accesses of a thread are known."""
        node, until = self, self.time
        for shift, mask in LEVELS:
            part = node.parts.get((thread >> shift) & mask)
            if part is None:
                break
            node, until = part, max(until, part.time)
        return until

    def join(self, other: KnownTimes) -> KnownTimes:
        """Return the maximum of both; the same object if one of them includes the other."""
        if self is other or other.latest <= self.time:
            return self
        if self.latest <= other.time:
            return other
        if self.version is not None and other.version is not None:
            if self.version.includes(other.version):
                return self
            if other.version.includes(self.version):
                return other
        time, made = max(self.time, other.time), dict(self.parts)
        if time > self.time:
            made = {number: part for number, part in made.items() if part.latest > time}
        is_mine, is_others = time == self.time, time == other.time
        for number, part in other.parts.items():
            if part.latest > time:
                mine = made.get(number)
                if mine is not part:
                    joined = made[number] = part if mine is None else mine.join(part)
                    is_mine = is_mine and joined is mine
                    is_others = is_others and joined is part
        if is_mine:
            return self
        if is_others and len(made) == len(other.parts):
            return other
        return KnownTimes(time, made, max(self.latest, other.latest))


class Version(NamedTuple):
    """One of the states of a flag's released knowledge, by number."""

    of: ReleasedTimes
    number: int

    def includes(self, other: Version) -> bool:
        """Return whether another state is known to be a part of this one."""
        if self.of is other.of:
            return self.number >= other.number
        return self.number == self.of.number and self.of.included.get(other.of, 0) >= other.number


class ReleasedTimes:
    """The times released to one memory location, which only grow.

    Later states include earlier ones, and states of other locations joined into them. The last
    `MOST_INCLUDED` of these are remembered, to make joins of threads that alternate on a flag fast.
    """

    def __init__(self) -> None:
        self.known: KnownTimes | None = None
        self.number = 0
        self.included: dict[ReleasedTimes, int] = {}

    def join(self, more: KnownTimes) -> None:
        """Add the knowledge of a thread."""
        known = more if self.known is None else self.known.join(more)
        if known is not self.known:
            self.known, self.number = known, self.number + 1
            if known.version is None:
                known.version = Version(self, self.number)
        if more.version is not None and more.version.of is not self:
            self.included.pop(more.version.of, None)
            self.included[more.version.of] = more.version.number
            if len(self.included) > MOST_INCLUDED:
                del self.included[next(iter(self.included))]


def of_thread(
    thread: int,
    time: int,
    warp_sync: int,
    barrier: int,
    lanes: Mapping[int, int],
    warps: Mapping[int, int],
) -> KnownTimes:
    """Return the times that a thread knows in its block: its own until now, others until barriers.

    It may know later times of some `lanes` of its warp and `warps` of its block.
    """
    mine = (thread >> WARP[0]) & WARP[1]
    met = max(warp_sync, warps.get(mine, 0))
    parts = _leaves(warps, barrier)
    if max(time, met) > barrier:
        lanes = {**lanes, thread & LANE[1]: time}
        parts[mine] = KnownTimes(met, _leaves(lanes, met), max(time, met))
    return _of_block(thread, barrier, parts)


def of_warps(rows: Sequence[tuple[int, int, int]], time: int, barrier: int) -> KnownTimes:
    """Return the common times of threads: a warp's first, its lanes and its last synchronisation.

    They are of one block, without later times of others since its barrier.
    """
    parts = {}
    for thread, lanes, warp_sync in rows:
        met = time if lanes == EVERY_LANE else warp_sync
        leaves = {lane: time for lane in range(32) if lanes >> lane & 1}
        parts[thread >> WARP[0] & WARP[1]] = KnownTimes(met, _leaves(leaves, met), time)
    return _of_block(rows[0][0], barrier, parts)


def _of_block(thread: int, barrier: int, parts: dict[int, KnownTimes]) -> KnownTimes:
    """Return the known times of a thread's block, with later times of some warps."""
    known = KnownTimes(barrier, parts, max([barrier, *(part.latest for part in parts.values())]))
    for shift, mask in BLOCKS:
        known = KnownTimes(0, {(thread >> shift) & mask: known}, known.latest)
    return known


def _leaves(times: Mapping[int, int], beyond: int) -> dict[int, KnownTimes]:
    return {number: KnownTimes(time) for number, time in times.items() if time > beyond}
