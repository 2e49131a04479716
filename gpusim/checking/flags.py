"""Fences, atomics and flags: which steps release and acquire, and which blocks wait for which."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.checking.races import Access
from gpusim.checking.releases import Releases, everyone
from gpusim.checking.shadow import Touch
from gpusim.isa import Instruction, Program

# Atomics that leave their element as it is when their last operand is 0.
NEUTRAL_ZERO = ("add", "sub", "or", "xor")


class Flags:
    """Tells `releases` what steps do to flags; `waits_for` is, by block, the last it waited for.

    `waits_at` is a line where blocks wait.
    """

    def __init__(
        self, releases: Releases | None, program: Program, accesses: Mapping[int, Access]
    ) -> None:
        self._releases = releases
        self._program = program
        self._polled = {
            (access.space, _name(access.instruction))
            for access in accesses.values()
            if access.polls
        }
        self.waits_for: dict[int, int] = {}
        self.waits_at = 0

    def fence(self, touch: Touch) -> None:
        """Take note of threads that run a fence."""
        assert self._releases is not None
        for who in everyone(touch.time, touch.thread, touch.barrier, touch.meeting):
            self._releases.fence(who)

    def touch(self, touch: Touch, access: Access, memory: int) -> None:
        """Take note of an access to what may be a flag."""
        acquires, publishes = self._acquires(access), self._publishes(access)
        if self._releases is None or not (acquires or publishes) or not self._releases.has_fences:
            return
        waits = access.polls and self._leaves_alone(access.instruction)
        known = everyone(touch.time, touch.thread, touch.barrier, touch.meeting)
        for who, element in zip(known, touch.element.tolist(), strict=True):
            location = (memory, element)
            if acquires:
                last = self._releases.acquire(who, location)
                if waits:
                    self.waits_at = access.line
                    self.waits_for[who.block] = max(self.waits_for.get(who.block, -1), last)
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

    def _leaves_alone(self, row: Instruction) -> bool:
        """Return whether an access only looks: a lock that is taken need not be waited for."""
        operands = [self._program.immediates.get(register) for register in row.src[1:]]
        if not operands:
            return True
        if row.detail == "cas":
            return operands[0] is not None and operands[0] == operands[1]
        return row.detail in NEUTRAL_ZERO and operands[0] == 0


def _name(row: Instruction) -> str:
    assert row.memory is not None
    return row.memory.name
