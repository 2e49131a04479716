"""Fences, atomics and flags: which steps release, and which acquire."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.checking.fences import everyone
from gpusim.checking.races import Access
from gpusim.checking.releases import Releases
from gpusim.checking.shadow import Touch
from gpusim.isa import Instruction


class Flags:
    """Tells `releases` what steps do to flags."""

    def __init__(self, releases: Releases | None, accesses: Mapping[int, Access]) -> None:
        self._releases = releases
        self._polled = {
            (access.space, _name(access.instruction))
            for access in accesses.values()
            if access.polls
        }

    def fence(self, touch: Touch, scope: str) -> None:
        """Take note of threads that run a fence."""
        assert self._releases is not None
        self._releases.fence(touch, scope)

    def touch(self, touch: Touch, access: Access, memory: int) -> None:
        """Take note of an access to what may be a flag."""
        acquires, publishes = self._acquires(access), self._publishes(access)
        if self._releases is None or not (acquires or publishes) or not self._releases.has_fences:
            return
        for who, element in zip(everyone(touch), touch.element.tolist(), strict=True):
            location = (memory, element)
            if acquires:
                self._releases.acquire(who, location)
            if publishes:
                self._releases.release(who, location)

    def _acquires(self, access: Access) -> bool:
        if access.kind == "atomic":
            return bool(access.instruction.dst)
        return access.kind == "load" and (access.is_volatile or access.polls)

    def _publishes(self, access: Access) -> bool:
        polled = (access.space, _name(access.instruction)) in self._polled
        return access.kind == "atomic" or (
            access.kind == "store" and (access.is_volatile or polled)
        )


def _name(row: Instruction) -> str:
    assert row.memory is not None
    return row.memory.name
