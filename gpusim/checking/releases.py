"""Order between threads by fences and flags: who released what, and who has acquired it.

A thread that runs a fence and then an atomic operation (or stores to a flag that others wait for)
releases what it wrote before the fence, and what it knew of others by then; a thread whose atomic
or whose waiting load comes to that place later acquires it. What barriers order is added on both
sides.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from gpusim.checking.fences import Fences, Knowledge
from gpusim.checking.shadow import BLOCK_SHIFT, Touch

Location = tuple[int, int]  # which memory, and the element in its shadow


@dataclass(frozen=True)
class Release:
    """What a thread published: how things stood at the atomic, and at its last fences before.

    `fences` are the last one of any scope, and the last one that reaches other blocks.
    """

    at: Knowledge
    fences: tuple[Knowledge | None, Knowledge | None]
    turn: int


@dataclass(frozen=True)
class Acquisition:
    """Who has seen what was released at a location before its turn."""

    at: Knowledge
    location: Location
    turn: int


class Releases:
    """All releases and acquisitions of a launch, by location and by block."""

    def __init__(self) -> None:
        # Those of any scope, and those that reach other blocks.
        self._fences = (Fences(), Fences())
        self._released: dict[Location, dict[int, list[Release]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._acquired: dict[int, list[Acquisition]] = defaultdict(list)
        self._last: dict[tuple[int, Location], int] = {}
        self._reach: dict[tuple[int, ...], dict[int, list[Release]]] = {}
        self._turn = 0  # atomics of one step take turns too

    def fence(self, touch: Touch, scope: str) -> None:
        """Take note of a fence; one of scope "block" does not reach other blocks."""
        for fences in self._fences[: 1 if scope == "block" else 2]:
            fences.add(touch)

    @property
    def has_fences(self) -> bool:
        """Whether a thread has run a fence."""
        return bool(self._fences[0])

    def release(self, who: Knowledge, location: Location) -> None:
        """Take note of an atomic operation or a store to a flag."""
        self._turn += 1
        near, far = ([None, *fences.of(who.thread)][-1] for fences in self._fences)
        made = Release(who, (near, far), self._turn)
        self._released[location][who.block].append(made)

    def acquire(self, who: Knowledge, location: Location) -> None:
        """Take note of a load that sees what was released."""
        if location not in self._released:
            return
        made = Acquisition(who, location, self._turn)
        known = self._acquired[who.block]
        position = self._last.get((who.thread, location))
        if position is not None and known[position].at.barrier == who.barrier:
            known[position] = made
        else:
            self._last[who.thread, location] = len(known)
            known.append(made)

    def orders(self, thread: int, time: int, who: Knowledge) -> bool:
        """Return whether an access by a thread is known to another one."""
        block = thread >> BLOCK_SHIFT
        far = block != who.block
        for seen in self._acquired.get(who.block, ()):
            if not who.learns_from(seen.at.thread, seen.at.time):
                continue
            for release in self._released[seen.location].get(block, ()):
                if release.turn <= seen.turn and self._covers(release, thread, time, far):
                    return True
        reached = self._reached(who)
        return any(self._covers(release, thread, time, far) for release in reached.get(block, ()))

    def _covers(self, release: Release, thread: int, time: int, far: bool) -> bool:
        """Return whether a release published an access; `far`, to other blocks."""
        fence = release.fences[far]
        if fence is not None and time <= fence.time and fence.learns_from(thread, time):
            return True
        if not release.at.learns_from(thread, time):
            return False
        own = self._fences[far].of(thread)
        return any(time <= fence.time <= release.at.time for fence in own)

    def _reached(self, who: Knowledge) -> dict[int, list[Release]]:
        """Return, by block, the releases that a thread knows of through others."""
        key = (who.thread, who.barrier, who.warp_sync, self._turn)
        if key in self._reach:
            return self._reach[key]
        found: dict[int, list[Release]] = defaultdict(list)
        seen: set[int] = set()
        work = [who]
        while work:
            reader = work.pop()
            for acquired in self._acquired.get(reader.block, ()):
                at = acquired.at
                if at.time > reader.time or not reader.learns_from(at.thread, at.time):
                    continue
                for block, releases in self._released[acquired.location].items():
                    for release in releases:
                        if release.turn <= acquired.turn and release.turn not in seen:
                            seen.add(release.turn)
                            found[block].append(release)
                            work.append(release.at)
        self._reach[key] = found
        return found
