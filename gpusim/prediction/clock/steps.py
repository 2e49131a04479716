"""What the clock simulates: a warp's instructions as steps, each with what it keeps and awaits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.prediction.clock.costs import NO_PIPE
from gpusim.prediction.memory import NO_ACCESS, Access
from gpusim.prediction.streams import SimulatedLoop

Array = np.ndarray[Any, Any]


class Action(IntEnum):
    """What an instruction does that takes no fixed time; above SPECIAL others see it."""

    RUN = 0
    SPECIAL = 1
    SHARED_LOAD = 2
    SHARED_STORE = 3
    GLOBAL_LOAD = 4
    GLOBAL_STORE = 5
    SHUFFLE = 6
    SHARED_ATOMIC = 7
    GLOBAL_ATOMIC = 8
    SPECIAL_REGISTER = 9
    CONSTANT = 10
    BARRIER = 11
    EXIT = 12
    FENCE = 13


MARKS = 3  # of a loop of which iterations are extrapolated
READS = (Action.SPECIAL_REGISTER, Action.CONSTANT)


@dataclass(slots=True, eq=False)
class Step:
    """An instruction, with those that are issued behind a barrier before it holds the warp.

    It can be issued while `pipe` is free, keeps that for `busy` and the scheduler for `slot`;
    the next one can follow it after `gap`, when the results in `needs` are there: `waits_long`
    says that one comes from global memory. Its own result is known as `tag`. Times in ticks.
    `place` says where among its warp's steps it is, and `next` which one follows; `mark` that it
    is noted when warps have issued it. An access keeps the `port` to memory for some ticks.
    """

    action: Action
    pc: int
    place: int
    slot: int
    gap: int
    pipe: int = NO_PIPE
    busy: int = 0
    access: Access = NO_ACCESS
    tag: int = -1
    needs: tuple[int, ...] = ()
    waits_long: bool = False
    issued: int = 1
    mark: int = -1
    port: int = 0
    is_shared: bool = field(init=False)  # whether others than its scheduler see what it does
    is_in_order: bool = field(init=False)  # whether what comes after it begins no sooner
    next: Step = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.is_shared = self.action > Action.SPECIAL
        self.is_in_order = self.action not in READS
        self.next = self

    def again(self, place: int) -> Step:
        """Return one like it at another place among its warp's steps, of which nothing is noted."""
        made = Step.__new__(Step)  # by itself: half the time of making one from arguments
        made.action, made.pc, made.place, made.slot = self.action, self.pc, place, self.slot
        made.gap, made.pipe, made.busy, made.access = self.gap, self.pipe, self.busy, self.access
        made.tag, made.needs, made.waits_long = self.tag, self.needs, self.waits_long
        made.issued, made.mark, made.port = self.issued, -1, self.port
        made.is_shared, made.is_in_order, made.next = self.is_shared, self.is_in_order, made
        return made


@dataclass(frozen=True)
class LoopMarks:
    """The iterations of a loop that stand for those that are extrapolated: steps `begin` to `end`.

    They are `iterations` of the loop. It is noted when warps begin the first of them, the one in
    the middle, and the one after the last, where the loop `is_marked`. `charges` are what they
    take where nothing stands in their way.
    """

    loop: SimulatedLoop
    begin: int
    end: int
    iterations: int
    middle: int
    is_marked: bool
    charges: Mapping[int, int]

    @property
    def weight(self) -> float:
        """How many extrapolated iterations each of these stands for."""
        return self.loop.extrapolated / self.iterations


@dataclass(frozen=True)
class WarpSteps:
    """What a warp does: its steps, how many tags they use, and what of its time is certain.

    `charges` are the ticks that each pc takes where nothing stands in its way.
    """

    steps: tuple[Step, ...]
    tags: int
    charges: Mapping[int, int]
    loops: tuple[LoopMarks, ...]
    instructions: int

    @cached_property
    def weights(self) -> Array:
        """How many iterations each step stands for, with those that are extrapolated."""
        made = np.ones(len(self.steps))
        for marked in self.loops:
            made[marked.begin : marked.end] += marked.weight
        return made

    @cached_property
    def slots(self) -> Array:
        """How long each step keeps the scheduler."""
        return floats([step.slot for step in self.steps])

    @cached_property
    def waits(self) -> Array:
        """How long after that the next step follows, where the warp is not held at a barrier."""
        return floats([0 if s.action is Action.BARRIER else s.gap - s.slot for s in self.steps])


def floats(ticks: Sequence[Any]) -> Array:
    """Return ticks as an array of what they are multiplied with.

    NumPy would make them that itself, and die where there is no memory for it.
    """
    return np.array(ticks, dtype=float)
