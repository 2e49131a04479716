"""The consumer of a program's launches: its protocol and its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gpusim.driver.timeline import Duration, Timeline
from gpusim.errors import GpusimError
from gpusim.launch.grid import Launch
from gpusim.launch.prepared import Prepared


@dataclass(frozen=True)
class LaunchOf:
    """A launch of a program: its number in the program from 1, its kernel, and its size.

    `identity` is equal for launches of the same code, size and arguments, with pointers compared as
    places in their allocations.
    """

    number: int
    process: int
    kernel: str
    launch: Launch
    stream: int
    identity: str


class Outcome(NamedTuple):
    """The result of a launch: its duration, if it is known, and the kernel's output."""

    duration: Duration | None = None
    printed: bytes = b""


class Execution(Protocol):
    """Runs launches, and hears of all else; called from one thread at a time."""

    def execute(self, one: LaunchOf, prepared: Prepared) -> Outcome:
        """Run a launch on its arguments; GpusimError for faults and unsimulated instructions."""

    def failed(self, one: LaunchOf, error: GpusimError) -> None:
        """Take note of a launch that ended with an error."""

    def refused(self, what: str) -> None:
        """Take note of a request that is not served."""

    def told(self, text: str) -> None:
        """Take note of a remark."""

    def wrong(self, text: str) -> None:
        """Take note of an error of the program's beside its kernels, as a copy out of bounds."""

    def ended(self, process: int, timeline: Timeline, unfreed_bytes: int, unfreed: int) -> None:
        """Take note of the end of a process, with its memory leaks."""
