"""Launches that a program repeats: equal code, arguments and memory have an equal result.

Benchmarks launch a kernel hundreds of times on the same data. Digests of device memory before and
after a launch tell what it changed; where a launch finds all memory as an earlier one with the
same parameters did, the changes are made again without an execution.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpusim.driver.arena import DEVICE, OWN, Arena, Region
from gpusim.isa.ops import OPS
from gpusim.launch.prepared import Prepared

BYTES_PER_S = 1e9  # of a digest: it decides what is worth one, not what results
_MOST_DIGESTED, _MOST_KEPT = 1 << 30, 1 << 28  # bytes
_MOST_TRIES = 3
_PLACE = struct.Struct("<QQ")

Run = Callable[[], None]


class _Result(NamedTuple):
    """A launch's number, its memory changes and its printed text."""

    number: int
    changes: tuple[tuple[Region, np.ndarray[Any, Any], bytes], ...]
    printed: tuple[bytes, ...]


@dataclass
class _Known:
    """Launches with the same code and parameters: their count, the last one's time, results.

    `tries` are launches with digests since the last that had a known result.
    """

    launches: int = 0
    seconds: float = 0.0
    tries: int = 0
    results: dict[bytes, _Result] = field(default_factory=dict)


class Repeats:
    """The launches of one process, and digests of allocations that nothing has changed since.

    Memory that the host can write at any time has a new digest at each launch; a process that
    calls the driver from several threads, whose copies may be in flight, has no digests.
    """

    def __init__(self, arena: Arena, bytes_per_s: float = BYTES_PER_S) -> None:
        self._arena, self._bytes_per_s = arena, bytes_per_s
        self._known: dict[bytes, _Known] = {}
        self._digests: dict[int, tuple[Region, bytes]] = {}
        self._kept_bytes = 0
        self._threads: set[int] = set()

    def called_from(self, thread: int) -> None:
        """Take note of a thread of the host that calls the driver."""
        self._threads.add(thread)

    def changed(self, address: int) -> None:
        """Take note of a write to the allocation of an address."""
        region = self._arena.at(address)
        if region is not None:
            self._digests.pop(region.address, None)

    def run(self, key: bytes, number: int, printed: list[bytes], run: Run) -> int:
        """Run a launch, or take the result of an equal one; return that one's number, else 0.

        `key` stands for its code, size and parameters; `printed` takes its output.
        """
        known = self._known.setdefault(key, _Known())
        known.launches += 1
        if not self._is_worth_it(known):
            self._execute(known, run)
            return 0
        before = dict(self._states())
        state = _state(before)
        found = known.results.get(state)
        if found is not None:
            known.tries = 0
            self._repeat(found, printed)
            return found.number
        known.tries += 1
        self._execute(known, run)
        changed = [(r, d) for r, d in self._states() if before.get(r) != d]
        self._keep(known, state, number, changed, printed)
        return 0

    def _is_worth_it(self, known: _Known) -> bool:
        """Return whether digests take less time than another execution would.

        A launch whose memory has always been another is tried again at powers of two alone.
        """
        count = known.launches
        if len(self._threads) > 1 or count < 2:
            return False
        if known.tries >= _MOST_TRIES and count & (count - 1):
            return False
        regions = self._arena.regions
        whole = sum(one.size for one in regions)
        unknown = sum(one.size for one in regions if self._known_digest(one) is None)
        return whole <= _MOST_DIGESTED and whole + unknown < known.seconds * self._bytes_per_s

    def _execute(self, known: _Known, run: Run) -> None:
        self._digests.clear()
        begun = time.perf_counter()
        run()
        known.seconds = time.perf_counter() - begun

    def _repeat(self, found: _Result, printed: list[bytes]) -> None:
        for region, held, digest in found.changes:
            region.bytes[:] = held
            self._digests[region.address] = region, digest
        printed.extend(found.printed)

    def _keep(
        self,
        known: _Known,
        state: bytes,
        number: int,
        changed: list[tuple[Region, bytes]],
        printed: list[bytes],
    ) -> None:
        wanted = sum(region.size for region, _ in changed)
        if wanted > _MOST_KEPT:
            return
        if self._kept_bytes + wanted > _MOST_KEPT:
            for one in self._known.values():
                one.results.clear()
            self._kept_bytes = 0
        self._kept_bytes += wanted
        changes = tuple((region, region.bytes.copy(), digest) for region, digest in changed)
        known.results[state] = _Result(number, changes, tuple(printed))

    def _states(self) -> Iterator[tuple[Region, bytes]]:
        """Yield each allocation with its digest."""
        for region in self._arena.regions:
            digest = self._known_digest(region)
            if digest is None:
                digest = hashlib.sha1(region.bytes.data, usedforsecurity=False).digest()
                self._digests[region.address] = region, digest
            yield region, digest

    def _known_digest(self, region: Region) -> bytes | None:
        found, digest = self._digests.get(region.address, (None, b""))
        return digest if found is region and region.kind in (DEVICE, OWN) else None


def _state(digests: dict[Region, bytes]) -> bytes:
    """Return a digest of all memory: its allocations' places, sizes and digests."""
    whole = hashlib.sha1(usedforsecurity=False)
    for region, digest in digests.items():
        whole.update(_PLACE.pack(region.address, region.size) + digest)
    return whole.digest()


def is_repeatable(prepared: Prepared) -> bool:
    """Return whether a launch depends on its parameters and on memory alone."""
    reads_clock = any(OPS[one.op].kind == "clock" for one in prepared.program.instructions)
    return prepared.heap is None and not reads_clock
