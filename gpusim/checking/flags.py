"""Fences, atomics and flags: the release and acquire operations of a program."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.checking.access import Access
from gpusim.checking.element_access import ElementAccess
from gpusim.checking.missing_order import FlagLog
from gpusim.checking.releases import FlagAccess, Releases
from gpusim.isa.ops import OPS, Instruction, Memory
from gpusim.typing import Array


class Flags:
    """Reports each step's accesses to flags to `releases`, and keeps a `log` of them."""

    def __init__(
        self, releases: Releases, accesses: Mapping[int, Access], *, has_fences: bool
    ) -> None:
        self._releases, self.log = releases, FlagLog()
        self._has_fences = has_fences
        every = accesses.values()
        self._updated = {_memory(access).place for access in every if access.kind == "atomic"}
        self._polled = {_memory(access).place for access in every if access.polls}
        seen = [access for access in every if _acquires(access) and self._sees(access)]
        # Whether flags, or fences after others, may order accesses to shared memory.
        self.reach_shared = has_fences or any(access.space != "global" for access in seen)
        self._acquired = self._polled | {_memory(access).place for access in seen}

    def forget(self, blocks: Array) -> None:
        """Forget the threads of blocks that have ended."""
        self._releases.forget(blocks)

    def fence(self, touch: ElementAccess, scope: str) -> None:
        """Record threads that run a fence."""
        rows = self._releases.fence(touch, scope)
        self.log.fence(rows, is_narrow=scope == "block")

    def touch(self, touch: ElementAccess, access: Access) -> None:
        """Record an access to a possible flag."""
        acquires, releases = _acquires(access), self._publishes(access)
        if (acquires or releases) and _memory(access).may_touch(self._acquired):
            is_atomic = access.kind == "atomic"
            flag = FlagAccess(
                acquires,
                releases,
                is_narrow=access.is_narrow,
                locks=takes_lock(access.instruction),
                awaits=is_atomic or access.polls,
                fenced=_memory(access).acquires,
                sees=self._sees(access),
                with_itself=_memory(access).releases,
            )
            self.log.visit(self._releases.visit(touch, flag), flag)

    def _sees(self, access: Access) -> bool:
        """Return whether an access is ordered: without fences, after atomics of its element."""
        return self._has_fences or _memory(access).may_touch(self._updated)

    def _publishes(self, access: Access) -> bool:
        if access.kind == "store":
            return access.is_volatile or _memory(access).may_touch(self._polled)
        return access.kind == "atomic"


def takes_lock(row: Instruction) -> bool:
    """Return whether an instruction may take a lock: a compare-and-swap."""
    return OPS[row.op].kind == "atomic" and row.detail == "cas"


def _acquires(access: Access) -> bool:
    if access.kind == "atomic":
        return bool(access.instruction.dst)
    return access.kind == "load" and (access.is_volatile or access.polls)


def _memory(access: Access) -> Memory:
    assert access.instruction.memory is not None
    return access.instruction.memory
