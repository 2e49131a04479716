"""All that a launch's time is simulated from, so that it can be simulated again with a change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from gpusim.gpu.device import Device
from gpusim.launch.prepared import Prepared
from gpusim.prediction.bounds import Bound
from gpusim.prediction.clock.issue import Issue, issues
from gpusim.prediction.memory import MemoryShare
from gpusim.prediction.removal import Removal
from gpusim.prediction.streams import BlockStream, Classes
from gpusim.prediction.workload import BUDGET, Budget, Workload

ON_SM = ("issue", "shared memory", "constants", "latency")  # bounds that more SMs would lower


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

    def spread(self, cycles: float, bounds: Sequence[Bound]) -> float:
        """Return the cycles that are left, no less than the memory system of all SMs takes."""
        if self.fraction == 1.0:
            return cycles
        clock = self.device.gpu.sm_clock_mhz
        shared = max((b.time_us * clock for b in bounds if b.name not in ON_SM), default=0.0)
        return max(cycles * self.fraction, min(cycles, shared))

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
