"""The memory instructions of a program with their traits for the rules, and a timeline of steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.isa.ops import OPS, Instruction
from gpusim.isa.warpgroups import WarpgroupProduct
from gpusim.typing import Array

DOES = {"load": "reads", "store": "writes", "atomic": "updates"}
COPIES = {"load": "copies from", "store": "copies to"}


@dataclass(frozen=True)
class Access:
    """A memory instruction of the program, with its traits for the rules.

    It `polls` if a loop repeats it until its value changes; it `is_optimistic` if a
    compare-and-swap validates its value. It `must_be_volatile` if it polls shared memory in a
    compiler's code, which drops the qualifier. It `is_tested` where a branch depends on its value
    and a fence follows; a poll `is_signal` if its value is used by the loop's condition alone. It
    `swaps_sum` where it is a compare-and-swap of a floating-point sum.
    """

    pc: int
    instruction: Instruction
    polls: bool
    is_optimistic: bool
    must_be_volatile: bool = False
    is_tested: bool = False
    is_signal: bool = False
    swaps_sum: bool = False

    @cached_property
    def kind(self) -> str:
        """Whether it is a load, a store or an atomic."""
        return OPS[self.instruction.op].kind

    @cached_property
    def space(self) -> str:
        """The memory that it touches."""
        assert self.instruction.memory is not None
        return self.instruction.memory.space

    @cached_property
    def line(self) -> int:
        """Its source line."""
        return self.instruction.line

    @cached_property
    def is_volatile(self) -> bool:
        """Whether it is volatile: executed as written, in order."""
        memory = self.instruction.memory
        return self.must_be_volatile or (memory is not None and memory.volatile)

    @cached_property
    def is_relaxed(self) -> bool:
        """Whether it is atomic, or strong by its order in PTX: never torn, never in a data race."""
        memory = self.instruction.memory
        return self.kind == "atomic" or (memory is not None and memory.relaxed)

    @cached_property
    def is_asynchronous(self) -> bool:
        """Whether it belongs to an asynchronous copy: unordered until its thread waits for it."""
        return OPS[self.instruction.op].asynchronous

    @property
    def is_product(self) -> bool:
        """Whether it is the access of a warpgroup's matrix product to its factors."""
        return isinstance(self.instruction.detail, WarpgroupProduct)

    @property
    def does(self) -> str:
        """The verb in messages, such as "reads", "updates" or "copies from"."""
        copies = self.is_asynchronous and not self.is_product
        return (COPIES if copies else DOES)[self.kind]

    @cached_property
    def is_narrow(self) -> bool:
        """Whether it is strong, or atomic, in block scope only."""
        memory = self.instruction.memory
        return memory is not None and memory.of_block and memory.space != "shared"

    @cached_property
    def manner(self) -> tuple[bool, ...]:
        """All attributes, beside kind and thread, that decide whether it races with another one."""
        return (
            self.kind == "atomic",
            self.is_volatile,
            self.polls,
            self.is_optimistic,
            self.is_narrow,
            self.is_relaxed,
            self.is_tested,
            self.is_signal,
        )

    @cached_property
    def is_strong(self) -> bool:
        """Whether others may access the same element at the same time: a flag's accesses."""
        return self.kind == "atomic" or self.is_volatile


class Timeline:
    """The steps by time: the pc of each, and the bits that all its lanes stored, if they agree.

    Of copies that have been awaited, `waits` has the line of the wait.
    """

    def __init__(self) -> None:
        self._pcs = np.full(1024, -1, dtype=np.int32)
        self._now = 0
        self.stored: dict[int, int] = {}
        self.waits: dict[int, int] = {}

    def pcs_at(self, times: Array) -> Array:
        """Return the pc executed at each of some times."""
        return np.asarray(self._pcs[times])

    def pc_at(self, time: int) -> int:
        """Return the pc executed at a time."""
        return int(self._pcs[time])

    def next(self, pc: int) -> int:
        """Return a new time for the execution of a pc."""
        self._now += 1
        if self._now == len(self._pcs):
            self._pcs = np.concatenate([self._pcs, np.full_like(self._pcs, -1)])
        self._pcs[self._now] = pc
        return self._now
