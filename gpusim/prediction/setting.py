"""All that a launch's time is simulated from, so that it can be simulated again with a change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from gpusim.gpu.device import Device
from gpusim.launch.prepared import Prepared
from gpusim.launch.removal import Removal
from gpusim.prediction.bounds import Bound, bounds_of
from gpusim.prediction.clock.issue import Issue, issues
from gpusim.prediction.memory import MemoryShare
from gpusim.prediction.streams import BlockStream, Classes
from gpusim.prediction.traffic import Traffic, traffic_of
from gpusim.prediction.workload import BUDGET, Budget, Workload

ON_SM = ("issue", "shared memory", "constants", "latency")  # bounds that more SMs would lower

QUEUED = ("atomics", "DRAM")  # units with queues of what a block sends before it ends


@dataclass(frozen=True, eq=False)
class Setting:
    """A launch on a device: its classes, its share of memory, the blocks `resident` on an SM.

    `usual` is the program without the unusual paths of quotients and roots. `issued` are its
    instructions as the clock has them, None for the device's own. `fraction` is the fraction of the
    simulated cycles that is left where work is spread more evenly over the SMs. `removals` are the
    mechanisms that it goes without.
    """

    prepared: Prepared
    usual: Prepared
    device: Device
    l2: str
    resident: int
    classes: Classes
    memory: MemoryShare
    budget: Budget = BUDGET
    issued: tuple[Issue, ...] | None = None
    code_is_cached: bool = False
    fraction: float = 1.0
    removals: tuple[Removal, ...] = ()

    @cached_property
    def issues(self) -> tuple[Issue, ...]:
        """Each instruction of the program as the clock has it."""
        if self.issued is not None:
            return self.issued
        return tuple(issues(self.prepared.program, self.device))

    def workload(self) -> Workload:
        """Return the steps that the clock simulates."""
        return Workload(
            self.prepared,
            self.device,
            self.classes,
            self.l2,
            self.resident,
            self.budget,
            self.issued,
            code_is_cached=self.code_is_cached,
        )

    @cached_property
    def traffic(self) -> Traffic:
        """The traffic of its loads and stores."""
        return traffic_of(self.prepared, self.classes, self.memory, self.l2)

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """The lower bound of its duration by each limiter but latency."""
        return bounds_of(self.prepared, self.classes, self.device, self.memory, self.traffic)

    @property
    def demand(self) -> float:
        """The service demand of a block at the busiest unit behind queues, in cycles."""
        clock = self.device.gpu.sm_clock_mhz
        most = max(bound.time_us for bound in self.bounds if bound.name in QUEUED) * clock
        return most * self.memory.sms / self.prepared.launch.blocks

    def spread(self, cycles: float, bounds: Sequence[Bound]) -> tuple[float, list[Bound]]:
        """Return the cycles and bounds that are left where work is spread more evenly.

        The memory system of all SMs takes as long as before.
        """
        if self.fraction == 1.0:
            return cycles, list(bounds)
        clock = self.device.gpu.sm_clock_mhz
        left = [
            replace(b, time_us=b.time_us * self.fraction) if b.name in ON_SM else b for b in bounds
        ]
        shared = max((b.time_us * clock for b in left if b.name not in ON_SM), default=0.0)
        return max(cycles * self.fraction, min(cycles, shared)), left

    def with_blocks(self, edit: Callable[[BlockStream], BlockStream]) -> Setting:
        """Return the same launch with the streams of its blocks edited."""
        edited: dict[int, BlockStream] = {}
        made = []
        for one in self.classes.classes:
            if id(one.stream) not in edited:
                edited[id(one.stream)] = edit(one.stream)
            made.append(replace(one, stream=edited[id(one.stream)]))
        return replace(self, classes=replace(self.classes, classes=tuple(made)))

    def is_simulated_as(self, other: Setting) -> bool:
        """Return whether the clock plays the same for another setting."""
        mine, others = vars(self), vars(other)
        names = ("device", "resident", "classes", "memory", "issued", "code_is_cached")
        return all(mine[name] is others[name] for name in names)

    def with_issues(self, changed: dict[int, Issue]) -> Setting:
        """Return the same launch with some instructions' costs changed, by pc."""
        table = tuple(changed.get(pc, issue) for pc, issue in enumerate(self.issues))
        return replace(self, issued=table)
