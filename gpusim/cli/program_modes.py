"""The commands' treatment of a program's launches: run, count, time or check them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gpusim import machine
from gpusim.advice.launch import advice_on
from gpusim.checking.check import check_prepared
from gpusim.checking.findings import Finding, Findings
from gpusim.checking.rules import ERROR, WARNING
from gpusim.cli import output
from gpusim.driver.execution import LaunchOf, MemoryWatch, Outcome
from gpusim.driver.timeline import Duration, Timeline
from gpusim.errors import GpusimError, InputError, KernelFault
from gpusim.gpu.device import Device
from gpusim.host.files import shown
from gpusim.isa.ops import OPS
from gpusim.launch.grid import Launch
from gpusim.launch.overlap import Overlap
from gpusim.launch.prepared import Prepared, described
from gpusim.prediction.dependence import overlap_of
from gpusim.prediction.predict import predict_prepared
from gpusim.prediction.records import Prediction, launch_overhead_us
from gpusim.reports.program_records import HostFinding, ProgramLaunch
from gpusim.reports.programs import launch_line
from gpusim.tracing.block_steps import BlockSteps
from gpusim.tracing.records import Trace
from gpusim.tracing.trace import trace_prepared

if TYPE_CHECKING:
    from gpusim.reports.page.sections import Subject

_MOST_LINES = 1000
NO_LINES = (
    "{} has no line table: its reports have no source lines; compile with nvcc -lineinfo, "
    "or @cuda.jit(lineinfo=True) of numba"
)


class Timing(NamedTuple):
    """A launch's predicted time, that of the kernel with its interval, and the limiter."""

    time_us: float
    kernel_us: float
    interval_us: tuple[float, float]
    bound: str

    @classmethod
    def of(cls, found: Prediction) -> Timing:
        """Return the timing of a prediction."""
        overhead, (low, high) = found.overhead_us, found.interval_us
        ends = max(0.0, low - overhead), high - overhead
        bound = max(found.bounds, key=lambda one: one.time_us).name if found.bounds else ""
        return cls(found.time_us, found.time_us - overhead, ends, bound)


@dataclass
class Watched:
    """Runs launches as a command asks, prints a line of each, and keeps the results.

    `looks` are the analyses of chosen launches: "count", "time", "check", and "advise" for findings
    on performance of the first launch of each kernel and size.
    """

    device: Device
    choice: LaunchChoice
    looks: frozenset[str]
    step_limit: int
    l2: str = "cold"
    is_lenient: bool = False
    launches: list[ProgramLaunch] = field(default_factory=list)
    overlaps: dict[str, Overlap] = field(default_factory=dict)  # by the launch's identity
    host_findings: list[HostFinding] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    intervals: list[dict[str, Any]] = field(default_factory=list)
    operations: int = 0  # of PyTorch's own
    is_refused: bool = False
    cannot_run: bool = False
    predictions: dict[tuple[str, str], Timing] = field(default_factory=dict)  # by state of the L2
    most_subjects: int = 0  # kernels that a page has a section of, of their first launch
    subjects: dict[str, Subject] = field(default_factory=dict)
    advised: set[tuple[str, Launch]] = field(default_factory=set)
    source_file: str = ""  # of the launch that runs
    running: str = ""
    has_said_lines: bool = False

    def execute(self, one: LaunchOf, prepared: Prepared) -> Outcome:
        """Run a launch, with the analyses of the command."""
        self.running = f"launch {one.number}, {described(one.kernel, one.launch)}"
        try:
            return self._execute(one, prepared)
        finally:
            self.running = ""

    def _execute(self, one: LaunchOf, prepared: Prepared) -> Outcome:
        is_chosen = bool(self.looks) and self.choice.takes(one.number, one.kernel)
        begun = time.perf_counter()
        self.source_file = prepared.source_file
        made = replace(_record(one, is_chosen), source_file=self.source_file)
        running = replace(prepared, printed=one.printed)
        if is_chosen:
            self._require_lines(prepared)
        is_subject = is_chosen and self._is_subject(one)
        is_advised = is_chosen and self._is_advised(one)
        prediction: Prediction | None = None
        if is_chosen and "time" in self.looks:
            try:
                if is_subject or is_advised:
                    l2 = self._l2_of(one)
                    prediction = self._predict(prepared, l2, timeline=is_subject)
                    self.predictions[one.identity, l2] = Timing.of(prediction)
                made = replace(made, **self._timing(one, prepared)._asdict())
                if is_advised and prediction is not None:
                    made = replace(made, advice=advice_on(prediction))
            except InputError as error:  # it runs all the same
                self.refused(f"no time: {error}")
        if is_chosen and "check" in self.looks:
            made = replace(made, findings=self._checked(running, one.watch))
        elif is_chosen and "count" in self.looks:
            steps = BlockSteps(0, registers=True)
            observers = (steps,) if is_subject else ()
            traced = trace_prepared(running, step_limit=self.step_limit, observers=observers)
            made = replace(made, counters=traced.counters)
            if is_advised:
                made = replace(made, advice=traced.findings)
            if prediction is not None:
                self._keep_subject(one, traced, steps, prediction)
        else:
            equal = one.run(lambda: machine.run(running, step_limit=self.step_limit))
            made = replace(made, equal=equal)
        self._keep(replace(made, seconds=time.perf_counter() - begun))
        # A store to a surface is no access by address, which a watch would see.
        is_seen = all(OPS[row.op].kind != "surface_store" for row in prepared.program.instructions)
        was_watched = made.findings is not None and is_seen
        return Outcome(self._duration(one, made, prepared), was_watched)

    def failed(self, one: LaunchOf, error: GpusimError) -> None:
        """Keep a launch that ended with an error."""
        place = error.place if isinstance(error, KernelFault) else None
        made = replace(
            _record(one, True),
            source_file=self.source_file,
            error=f"{_kind(error)}: {error}",
            error_line=0 if place is None else place.line,
            is_fault=isinstance(error, KernelFault),
        )
        self._keep(made)

    def refused(self, what: str, *, wholly: bool = False) -> None:
        """Print a refusal, once."""
        self.is_refused = True
        self.cannot_run |= wholly
        if what and what not in self.refusals:
            self.refusals.append(what)
            output.complain(what)

    def told(self, text: str) -> None:
        """Print a remark."""
        output.complain(text)

    @property
    def checks_memory(self) -> bool:
        """Whether the program's memory is checked as well."""
        return "check" in self.looks

    def found(self, finding: Finding, source_file: str = "") -> None:
        """Print a finding of the program's host side, or of several launches."""
        self.host_findings.append(HostFinding(finding, source_file))
        output.complain(f"{finding.severity}: {finding.message}  [{finding.rule}]")

    def computed(self, operations: int) -> None:
        """Add operations that the program's own process has computed."""
        self.operations += operations

    def ended(self, process: int, timeline: Timeline) -> None:
        """Keep the work on streams."""
        for one in timeline.intervals:
            self.intervals.append({"process": process, **vars(one)})

    @property
    def has_errors(self) -> bool:
        """Whether a launch ended with an error, or a check found one."""
        found = any(one.findings.errors for one in self.launches if one.findings is not None)
        found |= any(one.finding.severity == ERROR for one in self.host_findings)
        return found or any(
            one.error and (one.is_fault or one.tried is None) for one in self.launches
        )

    @property
    def has_faults(self) -> bool:
        """Whether a launch that the command looks at ended in a fault."""
        return bool(self.looks) and any(one.is_fault for one in self.launches)

    @property
    def has_warnings(self) -> bool:
        """Whether a check found a warning."""
        found = any(one.findings.warnings for one in self.launches if one.findings is not None)
        return found or any(one.finding.severity == WARNING for one in self.host_findings)

    def _timing(self, one: LaunchOf, prepared: Prepared) -> Timing:
        """Return a launch's time, looked up for an identical launch."""
        l2 = self._l2_of(one)
        known = self.predictions.get((one.identity, l2))
        if known is None:
            known = self.predictions[one.identity, l2] = Timing.of(self._predict(prepared, l2))
        return known

    def _l2_of(self, one: LaunchOf) -> str:
        """Return the state of the L2 that a launch finds."""
        return "dirty" if one.behind_zeros and self.l2 == "cold" else self.l2

    def _require_lines(self, prepared: Prepared) -> None:
        """Remark, once, that the code of a launch has no line table."""
        has_lines = any(row.line for row in prepared.program.instructions)
        if not has_lines and not self.has_said_lines:
            self.has_said_lines = True
            self.told(NO_LINES.format(prepared.kernel))

    def _predict(self, prepared: Prepared, l2: str, *, timeline: bool = False) -> Prediction:
        return predict_prepared(
            replace(prepared, heap=None),
            self.device,
            l2=l2,
            step_limit=self.step_limit,
            timeline=timeline,
        )

    def _is_subject(self, one: LaunchOf) -> bool:
        """Return whether a launch is its kernel's on the page: the first, of the first kernels."""
        return one.kernel not in self.subjects and len(self.subjects) < self.most_subjects

    def _is_advised(self, one: LaunchOf) -> bool:
        """Return whether a launch's findings are requested: of its kernel and size the first."""
        key = one.kernel, one.launch
        is_new = "advise" in self.looks and key not in self.advised
        self.advised.add(key)
        return is_new

    def _keep_subject(
        self, one: LaunchOf, traced: Trace, steps: BlockSteps, prediction: Prediction
    ) -> None:
        from gpusim.advice.findings import find
        from gpusim.prediction.sweeps.jobs import Forecast, Job
        from gpusim.reports.page.sections import Subject

        forecast = Forecast(Job(one.kernel, ()), (prediction,))
        named = replace(traced, kernel=one.kernel)
        vars(named)["findings"] = find(traced, prediction)  # in place of those without times
        self.subjects[one.kernel] = Subject(named, steps, forecast)

    def _checked(self, prepared: Prepared, watch: MemoryWatch | None) -> Findings:
        check = partial(
            check_prepared,
            prepared,
            self.device,
            step_limit=self.step_limit,
            lenient=self.is_lenient,
        )
        if watch is None:
            return check()
        found = check(uninitialised=watch.uninitialised, observers=(watch.touched,))
        return replace(found, found=tuple(_with_freed(one, watch) for one in found))

    def _duration(self, one: LaunchOf, made: ProgramLaunch, prepared: Prepared) -> Duration | None:
        if made.time_us is None:
            return None
        overhead, gap = launch_overhead_us(self.device), self.device.host.pass_gap_us
        overlap = partial(self._overlap, one.identity, prepared, made.kernel_us)
        return Duration(made.kernel_us, overhead, gap, overlap)

    def _overlap(self, identity: str, prepared: Prepared, kernel_us: float) -> Overlap:
        """Return what of a launch may overlap its neighbours, once for equal launches."""
        known = self.overlaps.get(identity)
        if known is None:
            found = overlap_of(replace(prepared, heap=None), self.device, kernel_us)
            known = self.overlaps[identity] = found
        return known

    def _keep(self, made: ProgramLaunch) -> None:
        self.launches.append(made)
        if len(self.launches) <= _MOST_LINES:
            output.complain(launch_line(made))
        if len(self.launches) == _MOST_LINES:
            output.complain("further launches are summed up at the end")


def _record(one: LaunchOf, is_chosen: bool) -> ProgramLaunch:
    launch = one.launch
    return ProgramLaunch(
        number=one.number,
        process=one.process,
        kernel=one.kernel,
        grid=launch.grid,
        block=launch.block,
        dynamic_shared_bytes=launch.dynamic_shared_bytes,
        stream=one.stream,
        seconds=0.0,
        is_chosen=is_chosen,
        tried=one.tried,
    )


def _with_freed(one: Finding, watch: MemoryWatch) -> Finding:
    """Return a finding, by its own rule where it is about freed memory."""
    freed = watch.freed_at(one.index) if one.rule == "bounds" and one.index is not None else ""
    if not freed:
        return one
    who = next((str(place.thread) for place in one.places if place.thread is not None), "a thread")
    return replace(one, rule="use-after-free", message=f"{who} accesses {freed}", array="")


def _kind(error: GpusimError) -> str:
    return type(error).__name__.removesuffix("Error")


LOOKS: Mapping[str, frozenset[str]] = {
    "run": frozenset(),
    "trace": frozenset({"count", "advise"}),
    "predict": frozenset({"time"}),
    "check": frozenset({"check"}),
    "report": frozenset({"count", "time"}),
}

_RANGE = re.compile(r"(\d{1,12})(?:\.\.(\d{1,12})?)?", re.ASCII)


@dataclass(frozen=True)
class LaunchChoice:
    """Launches of some kernels and numbers; all where none are given."""

    kernels: tuple[str, ...] = ()
    numbers: tuple[tuple[int, int | None], ...] = ()

    @classmethod
    def of(cls, kernels: Sequence[str], numbers: Sequence[str]) -> LaunchChoice:
        """Return the choice of `--kernel` and `--launch`; InputError for a malformed number."""
        parts = [part for text in numbers for part in text.split(",")]
        return cls(tuple(kernels), tuple(map(_range, parts)))

    def takes(self, number: int, kernel: str) -> bool:
        """Return whether a launch is among those chosen."""
        named = any(name in kernel for name in self.kernels)
        counted = any(
            first <= number and (last is None or number <= last) for first, last in self.numbers
        )
        return (named or not self.kernels) and (counted or not self.numbers)


def _range(text: str) -> tuple[int, int | None]:
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise InputError(
            f"--launch is {shown(text)!r}; write a number from 1, 3..5, or 10.. for all from there"
        )
    first = int(match[1])
    if ".." not in text:
        return first, first
    return first, int(match[2]) if match[2] else None
