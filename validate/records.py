"""Records of measurements, as stored in the files of `measured/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpusim.catalogue import REDUCTION, Entry, Request, Setup, find
from gpusim.codegen.generators import LOWERING

L2_STATES = ("cold", "warm")

SCOPES = {
    "single": "one launch",
    "all": "the kernel launched again until one value is left",
    "copy and all": "a copy of the input within the GPU, then all launches",
}


@dataclass(frozen=True, order=True)
class Case:
    """One way to launch a kernel: template, sizes, state of the L2, number of launches.

    `grid` is None for that of the kernel's launch rule, `coarse` for a kernel without one.
    """

    n: int
    block: int
    dtype: str
    operation: str = "sum"
    grid: int | None = None
    coarse: int | None = None
    l2: str = "cold"
    scope: str = "single"

    def setups(self, kernel: Entry) -> list[Setup]:
        """Return the launches, in order; InputError or LaunchError for an invalid one."""
        return self.request(kernel).setups()

    def request(self, kernel: Entry) -> Request:
        """Return the case as a request for a kernel; a single launch except for reductions."""
        is_one = self.scope == "single" or kernel.family is not REDUCTION
        return Request(
            kernel.name,
            self.n,
            self.block,
            self.operation,
            self.dtype,
            self.grid,
            self.coarse,
            "one" if is_one else "all",
        )


def in_code(code: str) -> str:
    """Return the suffix of a miss with nvcc's code; empty with the lowering's."""
    return "" if code == LOWERING else f", in {code}'s code"


def launch_name(kernel: str, case: Case) -> str:
    """Return a launch's kernel, with type and grid if they are not the kernel's own."""
    dtype = f" of {case.dtype}" if case.dtype != find(kernel).dtypes[0] else ""
    grid = f", {case.grid} blocks" if case.grid else ""
    return f"{kernel}{dtype}{grid}"


@dataclass(frozen=True)
class Measurement:
    """The time of a case on a real GPU, and the correctness of its results.

    Times are between events: the median of `repetitions`, with the 10th and the 90th percentile.
    `wrong` of `results` differ from the oracle. After a refusal or fault, `fault` names it, and
    there is no time. Published times have a median alone.
    """

    kernel: str
    case: Case
    time_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    repetitions: int | None = None
    results: int | None = None
    wrong: int | None = None
    fault: str | None = None

    @property
    def entry(self) -> Entry:
        """The kernel of the catalogue."""
        return find(self.kernel)

    @property
    def is_right(self) -> bool:
        """Whether there is neither a fault nor a wrong result."""
        return self.fault is None and not self.wrong


@dataclass(frozen=True)
class Counts:
    """The hardware's counts of one launch, by the profiler's names of metrics."""

    kernel: str
    case: Case
    values: Mapping[str, float]

    @property
    def entry(self) -> Entry:
        """The kernel of the catalogue."""
        return find(self.kernel)


@dataclass(frozen=True)
class Machine:
    """Origin and date of a file's numbers; "" and None if unknown.

    `device` is the name of gpusim's device file. The clock is that of the SMs under load.
    """

    gpu: str
    device: str
    source: str
    compute_capability: str = ""
    driver: str = ""
    cuda: str = ""
    compiler: str = ""
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    date: str = ""
    notes: str = ""


@dataclass(frozen=True)
class Measurements:
    """The contents of one file."""

    machine: Machine
    times: tuple[Measurement, ...] = ()
    counters: tuple[Counts, ...] = ()

    def joined_by(self, newer: Measurements) -> Measurements:
        """Return these with others; newer ones replace older ones of the same case."""
        times = {(t.kernel, t.case): t for t in (*self.times, *newer.times)}
        counters = {(c.kernel, c.case): c for c in (*self.counters, *newer.counters)}
        return Measurements(newer.machine, tuple(times.values()), tuple(counters.values()))
