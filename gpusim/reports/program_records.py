"""The launches of a whole program as records: values by launch, findings, and sums by kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpusim.advice.records import Advice
from gpusim.checking.findings import Finding, Findings
from gpusim.reports.program_timeline import by_kind


class Tried(NamedTuple):
    """A configuration that a search of the program tries, and the search's number from 1."""

    search: int
    configuration: str


@dataclass(frozen=True)
class ProgramLaunch:
    """A launch of a program: number from 1, size, and the values of a command.

    `seconds` is the time of the simulation, `time_us` the predicted time between two events around
    the launch alone, `kernel_us` that of the kernel without launch overhead, with its 90 %
    `interval_us`. `is_chosen` says whether the command looked at it or only had it run. `advice`
    are its findings on performance, where it is the first of its kernel and size; `error` says why
    it ended early, at `error_line`, which is a fault of the kernel or something not simulated.
    `equal` is the number of an earlier launch with the same code, parameters and memory, whose
    result it has without an execution; 0 for none. `tried` is the configuration of an autotuner's
    launch.
    """

    number: int
    process: int
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int
    stream: int
    seconds: float
    is_chosen: bool = True
    time_us: float | None = None
    kernel_us: float = 0.0
    interval_us: tuple[float, float] = (0.0, 0.0)
    bound: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    findings: Findings | None = None
    advice: Sequence[Advice] = ()
    source_file: str = ""
    error: str = ""
    error_line: int = 0
    is_fault: bool = False
    equal: int = 0
    tried: Tried | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the launch, ready for JSON."""
        made: dict[str, Any] = {
            "number": self.number,
            "process": self.process,
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "dynamic_shared_bytes": self.dynamic_shared_bytes,
            "stream": self.stream,
            "simulation_s": round(self.seconds, 6),
        }
        if self.equal:
            made["equal_to"] = self.equal
        if self.tried is not None:
            made |= self.tried._asdict()
        if self.time_us is not None:
            made |= {
                "time_us": self.time_us,
                "kernel_us": self.kernel_us,
                "interval_us": list(self.interval_us),
                "bound": self.bound,
            }
        if self.counters:
            made["counters"] = dict(self.counters)
        if self.findings is not None:
            made["check"] = self.findings.to_dict()
        if self.advice:
            made["findings"] = [one.to_dict() for one in self.advice]
        return made | ({"error": self.error} if self.error else {})


@dataclass(frozen=True)
class HostFinding:
    """A finding of a program's host side, or of several launches; the file of its lines."""

    finding: Finding
    source_file: str = ""


@dataclass(frozen=True)
class ProgramReport:
    """A program's launches, findings beside those of launches, refusals, and work on streams.

    `operations` are those of PyTorch's own on device memory, which have no time.
    """

    command: tuple[str, ...]
    device: str
    exit_code: int
    launches: Sequence[ProgramLaunch]
    host: Sequence[HostFinding] = ()
    refused: Sequence[str] = ()
    intervals: Sequence[Mapping[str, Any]] = ()
    operations: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the report, ready for JSON."""
        made: dict[str, Any] = {
            "program": list(self.command),
            "device": self.device,
            "exit_code": self.exit_code,
            "launches": [one.to_dict() for one in self.launches],
            "kernels": [one.to_dict() for one in by_kernel(self.launches)],
            "findings": [one.finding.to_dict() for one in self.host],
            "refused": list(self.refused),
            "work": [one.to_dict() for one in by_kind(self.intervals)],
            "timeline": [dict(one) for one in self.intervals],
        }
        return made | ({"torch_operations": self.operations} if self.operations else {})


@dataclass(frozen=True)
class KernelSum:
    """All launches of a kernel together."""

    kernel: str
    launches: Sequence[ProgramLaunch]

    @property
    def kernel_us(self) -> float | None:
        """Their times without launch overhead together, None where none is predicted."""
        times = [one.kernel_us for one in self.launches if one.time_us is not None]
        return sum(times) if times else None

    @property
    def interval_us(self) -> tuple[float, float]:
        """The 90 % interval of `kernel_us`: errors of one kernel's launches go together."""
        ends = [one.interval_us for one in self.launches if one.time_us is not None]
        return sum(low for low, _ in ends), sum(high for _, high in ends)

    @property
    def seconds(self) -> float:
        """The time of their simulation."""
        return sum(one.seconds for one in self.launches)

    @property
    def counters(self) -> dict[str, int]:
        """Their counters, each summed up."""
        made: dict[str, int] = {}
        for one in self.launches:
            for name, value in one.counters.items():
                made[name] = made.get(name, 0) + value
        return made

    @property
    def findings(self) -> int:
        """The findings of its launches."""
        return sum(len(one.findings) for one in self.launches if one.findings is not None)

    @property
    def is_checked(self) -> bool:
        """Whether a launch of it was checked."""
        return any(one.findings is not None for one in self.launches)

    def to_dict(self) -> dict[str, Any]:
        """Return the sums, ready for JSON."""
        made: dict[str, Any] = {"kernel": self.kernel, "launches": len(self.launches)}
        if self.kernel_us is not None:
            made |= {"kernel_us": self.kernel_us, "interval_us": list(self.interval_us)}
        if self.counters:
            made["counters"] = self.counters
        return made | ({"findings": self.findings} if self.is_checked else {})


def by_kernel(launches: Iterable[ProgramLaunch]) -> list[KernelSum]:
    """Return the launches by kernel, in the order of each kernel's first."""
    held: dict[str, list[ProgramLaunch]] = {}
    for one in launches:
        held.setdefault(one.kernel, []).append(one)
    return [KernelSum(kernel, found) for kernel, found in held.items()]
