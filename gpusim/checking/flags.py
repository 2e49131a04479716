"""Fences, atomics and flags: the release and acquire operations of a program."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.checking.access import Access
from gpusim.checking.element_access import ElementAccess
from gpusim.checking.releases import Releases
from gpusim.isa.ops import Memory


class Flags:
    """Reports each step's accesses to flags to `releases`."""

    def __init__(
        self, releases: Releases, accesses: Mapping[int, Access], *, has_fences: bool
    ) -> None:
        self._releases = releases
        every = accesses.values()
        self._polled = {_memory(access).place for access in every if access.polls}
        # Without fences only atomics' own elements are ordered by them.
        self._acquired = {
            _memory(access).place
            for access in every
            if _acquires(access) and (has_fences or access.kind == "atomic")
        }

    def fence(self, touch: ElementAccess, scope: str) -> None:
        """Record threads that run a fence."""
        self._releases.fence(touch, scope)

    def touch(self, touch: ElementAccess, access: Access) -> None:
        """Record an access to a possible flag."""
        acquires, releases = _acquires(access), self._publishes(access)
        if (acquires or releases) and _memory(access).may_touch(self._acquired):
            self._releases.visit(
                touch, acquires=acquires, releases=releases, is_narrow=access.is_narrow
            )

    def _publishes(self, access: Access) -> bool:
        if access.kind == "store":
            return access.is_volatile or _memory(access).may_touch(self._polled)
        return access.kind == "atomic"


def _acquires(access: Access) -> bool:
    if access.kind == "atomic":
        return bool(access.instruction.dst)
    return access.kind == "load" and (access.is_volatile or access.polls)


def _memory(access: Access) -> Memory:
    assert access.instruction.memory is not None
    return access.instruction.memory
