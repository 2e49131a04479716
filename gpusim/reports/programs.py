"""The launches of a whole program: a line each, and sums by kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rich.text import Text

from gpusim.checking.findings import Finding, Findings
from gpusim.reports.checking import MOST_SHOWN, finding_lines
from gpusim.reports.columns import Column, Columns
from gpusim.reports.layout import BAD, DIM, TITLE, integer, plural, size
from gpusim.reports.program_timeline import by_kind, timeline_line

_LONGEST_NAME = 48
_MOST_KERNELS = 40
NUMBERS: Mapping[str, str] = {
    "instructions": "instructions",
    "shared_load_bank_conflicts": "load conflicts",
    "shared_store_bank_conflicts": "store conflicts",
    "global_load_sectors": "load sectors",
    "global_store_sectors": "store sectors",
}


@dataclass(frozen=True)
class ProgramLaunch:
    """A launch of a program: number from 1, size, and the values that a command asks for.

    `seconds` is the time of the simulation, `time_us` the predicted time of the GPU, `is_chosen`
    whether the command looked at it or only had it run; `error` says why it ended early. `equal` is
    the number of an earlier launch with the same code, parameters and memory, whose result it has
    without an execution; 0 for none.
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
    bound: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    findings: Findings | None = None
    error: str = ""
    equal: int = 0

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
        if self.time_us is not None:
            made |= {"time_us": self.time_us, "bound": self.bound}
        if self.counters:
            made["counters"] = dict(self.counters)
        if self.findings is not None:
            made["check"] = self.findings.to_dict()
        return made | ({"error": self.error} if self.error else {})


@dataclass(frozen=True)
class HostFinding:
    """A finding of a program's host side, or of several launches; the file of its lines."""

    finding: Finding
    source_file: str = ""

    @property
    def findings(self) -> Findings:
        """It alone, as the findings of a launch."""
        none = (0, 0, 0)
        return Findings("", self.source_file, none, none, "", found=(self.finding,))


@dataclass(frozen=True)
class ProgramReport:
    """A program's launches, findings beside those of launches, refusals, and work on streams."""

    command: tuple[str, ...]
    device: str
    exit_code: int
    launches: Sequence[ProgramLaunch]
    host: Sequence[HostFinding] = ()
    refused: Sequence[str] = ()
    intervals: Sequence[Mapping[str, Any]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report, ready for JSON."""
        return {
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


@dataclass(frozen=True)
class KernelSum:
    """All launches of a kernel together."""

    kernel: str
    launches: Sequence[ProgramLaunch]

    @property
    def time_us(self) -> float | None:
        """Their predicted times together, None where none is predicted."""
        times = [one.time_us for one in self.launches if one.time_us is not None]
        return sum(times) if times else None

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
        if self.time_us is not None:
            made["time_us"] = self.time_us
        if self.counters:
            made["counters"] = self.counters
        return made | ({"findings": self.findings} if self.is_checked else {})


def by_kernel(launches: Iterable[ProgramLaunch]) -> list[KernelSum]:
    """Return the launches by kernel, in the order of each kernel's first."""
    held: dict[str, list[ProgramLaunch]] = {}
    for one in launches:
        held.setdefault(one.kernel, []).append(one)
    return [KernelSum(kernel, found) for kernel, found in held.items()]


def short(kernel: str) -> str:
    """Return a kernel's name in the width that a line has for it."""
    if len(kernel) <= _LONGEST_NAME:
        return kernel
    half = (_LONGEST_NAME - 3) // 2
    return f"{kernel[:half]}...{kernel[-half:]}"


def launch_line(one: ProgramLaunch) -> str:
    """Return a launch as a line."""
    blocks = "block" if size(one.grid) == "1" else "blocks"
    parts = [
        f"{one.number:>4}  {short(one.kernel)}  {size(one.grid)} {blocks} of {size(one.block)}"
    ]
    if one.error:
        parts.append(one.error)
    if one.time_us is not None:
        parts.append(f"{one.time_us:,.2f} us, bound by {one.bound}")
    if one.counters:
        parts.append(f"{one.counters.get('instructions', 0):,} instructions")
    if one.findings is not None:
        parts.append(plural(len(one.findings), "finding"))
    parts.append(f"as launch {one.equal}" if one.equal else f"[{one.seconds:.2f} s]")
    return "  ".join(parts)


def program_summary(report: ProgramReport, width: int) -> Iterator[Text]:
    """Yield the summary: a row for each kernel, then errors and refusals."""
    kernels = by_kernel(report.launches)
    total = plural(len(report.launches), "launch").replace("launchs", "launches")
    yield Text(f"{total} of {plural(len(kernels), 'kernel')} on {report.device} (simulated)", TITLE)
    if kernels:
        yield from kernels_table(kernels[:_MOST_KERNELS]).lines(width)
    if any(one.time_us is not None for one in report.launches):
        yield Text(timeline_line(report.intervals))
    left = len(kernels) - _MOST_KERNELS
    if left > 0:
        yield Text(f"and {plural(left, 'more kernel')} (--json --out FILE has all)", DIM)
    shown = list(_findings(report))
    for lines in shown[:MOST_SHOWN]:
        yield Text("")
        yield from lines(width)
    if len(shown) > MOST_SHOWN:
        yield Text(f"\nand {plural(len(shown) - MOST_SHOWN, 'more finding')}", DIM)
    for text in dict.fromkeys(report.refused):
        yield Text(f"not simulated: {text}", BAD)


def _findings(report: ProgramReport) -> Iterator[Callable[[int], Iterator[Text]]]:
    """Yield each finding as its lines by width: of kernels, then of the host; alike ones once."""
    held: dict[tuple[object, ...], tuple[Finding, str, list[ProgramLaunch]]] = {}
    for launch in report.launches:
        for one in launch.findings or ():
            key = launch.kernel, one.rule, one.lines, one.array
            file = launch.findings.source_file if launch.findings is not None else ""
            held.setdefault(key, (one, file, []))[2].append(launch)
    for one, file, launches in held.values():
        yield partial(_finding, one, file, launches)
    for host in report.host:
        yield partial(_finding, host.finding, host.source_file, ())


def _finding(
    one: Finding, file: str, launches: Sequence[ProgramLaunch], width: int
) -> Iterator[Text]:
    lines = finding_lines(one, file, width)
    yield next(lines)
    if launches:
        first, more = launches[0], len(launches) - 1
        others = f" and {more:,} more" if more else ""
        yield Text(f"  launch {first.number}{others} of {short(first.kernel)}", DIM)
    yield from lines


def kernels_table(kernels: Sequence[KernelSum]) -> Columns:
    """Return a row for each kernel: launches, times, findings, and the counters it has."""
    names = [name for name in NUMBERS if any(one.counters.get(name) for one in kernels)]
    is_timed = any(one.time_us is not None for one in kernels)
    is_checked = any(one.is_checked for one in kernels)
    times = [one.time_us or 0.0 for one in kernels]
    whole = sum(times)
    made = Columns(
        Column("kernel", "left", "span", hang=2),
        Column("launches"),
        *([Column("us"), Column("share")] if is_timed else []),
        *([Column("findings")] if is_checked else []),
        Column("simulated s"),
        *(Column(NUMBERS[name]) for name in names),
    )
    for one, time in zip(kernels, times, strict=True):
        share = f"{time / whole:.0%}" if whole else "."
        made.row(
            one.kernel,
            integer(len(one.launches)),
            *([f"{time:,.2f}", share] if is_timed else []),
            *([integer(one.findings)] if is_checked else []),
            f"{one.seconds:.2f}",
            *(integer(one.counters.get(name, 0)) for name in names),
        )
    return made
