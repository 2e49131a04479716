"""The consumer of a program's launches: its protocol and its records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from gpusim.checking.accessed_elements import Uninitialised
from gpusim.checking.findings import Finding
from gpusim.checking.touched_memory import TouchedMemory
from gpusim.driver.repeats import Repeats, Run
from gpusim.driver.timeline import Duration, Timeline
from gpusim.errors import GpusimError
from gpusim.launch.grid import Launch
from gpusim.launch.prepared import Prepared
from gpusim.reports.program_records import Tried


@dataclass(frozen=True)
class MemoryWatch:
    """Device memory as a check of a launch sees it: without values, freed, and as it is touched.

    `freed_at` names the freed memory at an address, "" for none.
    """

    uninitialised: Uninitialised
    touched: TouchedMemory
    freed_at: Callable[[int], str]


@dataclass(frozen=True)
class LaunchOf:
    """A launch of a program: its number in the program from 1, its kernel, and its size.

    `printed` takes the kernel's output. `identity` is equal for launches of the same code, size and
    arguments, with pointers compared as places in their allocations, `exact` with pointers as they
    are. A launch has a `watch` where the memory of the program is checked, `repeats` where its
    result depends on memory alone, and `tried` where it tries a configuration of a search;
    `behind_zeros` if a benchmark would have zeroed a buffer of the L2's size before.
    """

    number: int
    process: int
    kernel: str
    launch: Launch
    stream: int
    identity: str = ""
    watch: MemoryWatch | None = None
    printed: list[bytes] = field(default_factory=list)
    exact: bytes = b""
    repeats: Repeats | None = None
    tried: Tried | None = None
    behind_zeros: bool = False

    def run(self, run: Run) -> int:
        """Run it, or take the result of an equal launch; return that one's number, else 0."""
        if self.repeats is None:
            run()
            return 0
        return self.repeats.run(self.exact, self.number, self.printed, run)


class Outcome(NamedTuple):
    """The result of a launch: its duration, if it is known.

    It `was_watched` if the watch of the launch has seen all that it touched.
    """

    duration: Duration | None = None
    was_watched: bool = False


class Execution(Protocol):
    """Runs launches, and hears of all else; called from one thread at a time."""

    @property
    def checks_memory(self) -> bool:
        """Whether the memory of the program is checked, beside its launches."""

    @property
    def running(self) -> str:
        """The launch that runs, in words; "" between two launches."""

    def execute(self, one: LaunchOf, prepared: Prepared) -> Outcome:
        """Run a launch on its arguments; GpusimError for faults and unsimulated instructions."""

    def failed(self, one: LaunchOf, error: GpusimError) -> None:
        """Take note of a launch that ended with an error."""

    def refused(self, what: str, *, wholly: bool = False) -> None:
        """Take note of a request that is not served; `wholly`: the program cannot run."""

    def told(self, text: str) -> None:
        """Take note of a remark."""

    def found(self, finding: Finding, source_file: str = "") -> None:
        """Take note of a finding beside the kernels', as of a copy out of bounds."""

    def computed(self, operations: int) -> None:
        """Take note of operations on device memory that the program's own process has computed."""

    def ended(self, process: int, timeline: Timeline) -> None:
        """Take note of the end of a process."""
