"""Steps, the input of the clock: a warp's instructions with their costs and awaited results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from gpusim.prediction.clock.costs import NO_PIPE
from gpusim.prediction.memory import NO_ACCESS, Access
from gpusim.prediction.streams import SimulatedLoop


class Action(IntEnum):
    """Kinds of instructions with variable latency; those above SPECIAL are visible to others."""

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
    MBARRIER_SET = 14
    MBARRIER_ARRIVE = 15
    MBARRIER_WAIT = 16
    BULK_LOAD = 17
    BULK_STORE = 18
    BOX_LOAD = 19
    BOX_STORE = 20
    MULTICAST = 21
    PEER_COPY = 22
    PEER_ARRIVE = 23


MARKS = 3  # of an extrapolated loop
BULK_STORES = (Action.BULK_STORE, Action.BOX_STORE)
BULK = (Action.BULK_LOAD, Action.BOX_LOAD, Action.MULTICAST, *BULK_STORES)
OF_WORDS = (
    Action.MBARRIER_SET, Action.MBARRIER_ARRIVE, Action.MBARRIER_WAIT, Action.PEER_COPY,
    Action.PEER_ARRIVE, *BULK,
)  # fmt: skip
READS = (Action.SPECIAL_REGISTER, Action.CONSTANT)


@dataclass(slots=True, eq=False)
class Step:
    """An instruction, with those issued after a barrier before the warp is held.

    It issues when `pipe` is free and occupies it for `busy`, the scheduler for `slot`; the next one
    can follow after `gap`, with the results in `needs`: it `waits_long` if one comes from global
    memory. Its own result is `tag`. Times are in ticks; the issue time of a step with a `mark` is
    recorded. An access occupies the memory `port` for some ticks.
    """

    action: Action
    pc: int
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
    is_shared: bool = field(init=False)  # whether its action is visible outside its scheduler
    is_in_order: bool = field(init=False)  # whether later requests begin no sooner

    def __post_init__(self) -> None:
        self.is_shared = self.action > Action.SPECIAL
        self.is_in_order = self.action not in READS


@dataclass(frozen=True)
class LoopMarks:
    """The simulated iterations that represent a loop's extrapolated ones: steps `begin` to `end`.

    They are `iterations` of the loop. If the loop `is_marked`, the times at the first of them, at
    the middle one and after the last are recorded. `charges` are their ticks without contention.
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
        """Extrapolated iterations represented by each of these."""
        return self.loop.extrapolated / self.iterations
