"""Results of a prediction: plain records, the source of reports and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gpusim.gpu.device import Device
from gpusim.gpu.occupancy import Occupancy
from gpusim.launch.grid import Launch
from gpusim.launch.prepared import Prepared
from gpusim.launch.views import Shown, View
from gpusim.prediction.bounds import LAUNCH_OVERHEAD, Bound
from gpusim.prediction.clock.simulation import Outcome
from gpusim.prediction.clock.spans import STALLS
from gpusim.prediction.setting import Setting
from gpusim.prediction.streams import Classes
from gpusim.prediction.timeline import Timeline
from gpusim.prediction.traffic import Traffic
from gpusim.prediction.uncertainty import UNKNOWNS, Interval, interval_of

MOSTLY = 0.5  # of the time: launch overhead of this part is the limiter


@dataclass(frozen=True)
class Extent:
    """Simulated and extrapolated parts of the SM's blocks and of the longest loop.

    `iterations` are those of the longest uniform loop; a few iterations count as one where
    alignment repeats with that period. `spread` is the relative change of the rate in the last
    simulated section.
    """

    blocks_on_sm: int
    simulated: int
    iterations: int
    iterations_simulated: int
    spread: float
    classes: Classes

    @property
    def extrapolated(self) -> int:
        """Number of the SM's blocks that were not simulated."""
        return self.blocks_on_sm - self.simulated

    def to_dict(self) -> dict[str, Any]:
        """Return the extent as plain data."""
        return {
            "blocks_on_sm": self.blocks_on_sm,
            "simulated": self.simulated,
            "extrapolated": self.extrapolated,
            "iterations": self.iterations,
            "iterations_simulated": self.iterations_simulated,
            "spread": self.spread,
            "blocks_run": self.classes.probed,
            "sampling_error": self.classes.sampling_error,
        }


@dataclass(frozen=True)
class Prediction(Shown, shown_as="prediction"):
    """The predicted duration of a launch: `cycles` of the kernel, `time_us` with launch overhead.

    `stalls` are fractions of all warp cycles, by Nsight Compute's names, and add up to 1.
    `bounds` are lower bounds by limiter; the largest is the binding one. `outcome` is that of the
    simulated SM. `timeline` is kept on request. `assumes_ordinary_operands` says whether elements
    without given values are assumed to be ordinary: no quotient or root has special operands.
    `depends_on_data` says whether elements were assumed that decide its course.
    `setting` is the input of the simulation, for replays without a mechanism.
    """

    prepared: Prepared
    device: Device
    l2: str
    time_us: float
    cycles: float
    occupancy: Occupancy
    stalls: dict[str, float]
    outcome: Outcome = field(repr=False)
    bounds: tuple[Bound, ...]
    waves: float
    extent: Extent
    instructions: int
    traffic: Traffic
    timeline: Timeline | None = None
    assumes_ordinary_operands: bool = False
    depends_on_data: bool = False
    setting: Setting | None = field(default=None, repr=False, compare=False)

    plot_timeline = View("gpusim.reports.plots.timeline", "plot_timeline")
    plot_roofline = View("gpusim.reports.plots.roofline", "plot_roofline")
    plot_gains = View("gpusim.reports.plots.gains", "plot_gains")
    plot_accuracy = View("gpusim.reports.plots.accuracy", "plot_accuracy")
    plot_traffic = View("gpusim.reports.plots.traffic", "plot_traffic")

    def __repr__(self) -> str:
        return f"<Prediction of {self.kernel} on {self.device.name}: {self.time_us:.4g} us>"

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self.prepared.kernel

    @property
    def launch(self) -> Launch:
        """Grid, block and dynamic shared memory."""
        return self.prepared.launch

    @property
    def overhead_us(self) -> float:
        """The launch overhead within `time_us`, in microseconds."""
        return max(0.0, self.time_us - self.cycles / self.device.gpu.sm_clock_mhz)

    @property
    def lower_bounds(self) -> tuple[Bound, ...]:
        """All lower bounds, the largest first: those of the kernel, and the launch overhead."""
        every = (*self.bounds, Bound(LAUNCH_OVERHEAD, self.overhead_us))
        return tuple(sorted(every, key=lambda b: -b.time_us))

    @property
    def limiter(self) -> Bound:
        """The limiter: launch overhead from half of the time on, else the largest bound."""
        if self.overhead_us >= MOSTLY * self.time_us > 0:
            return Bound(LAUNCH_OVERHEAD, self.overhead_us)
        return max(self.bounds, key=lambda b: b.time_us)

    @cached_property
    def interval(self) -> Interval:
        """The prediction interval of 90 %, with its kind."""
        return interval_of(self.prepared, self.device, self.time_us, self.unknown)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Sampled, extrapolated or assumed parts: rows of `uncertainty.UNKNOWNS`."""
        extent = self.extent
        in_part = extent.iterations_simulated < extent.iterations or extent.extrapolated > 0
        found = extent.classes.is_sampled, in_part, self.assumes_ordinary_operands
        return tuple(name for name, is_so in zip(UNKNOWNS, found, strict=True) if is_so)

    @property
    def interval_us(self) -> tuple[float, float]:
        """The prediction interval of 90 %, (low, high), in microseconds."""
        return self.interval.bounds_us

    @cached_property
    def lines(self) -> dict[int, float]:
        """Fractions of warp cycles by source line; line 0 has the rest."""
        total = sum(self.outcome.stalls) or 1
        lines: dict[int, float] = {}
        for pc, spent in self.outcome.by_pc.items():
            line = self.prepared.program.instructions[pc].line if pc >= 0 else 0
            lines[line] = lines.get(line, 0.0) + spent / total
        return dict(sorted(lines.items()))

    @cached_property
    def stalls_by_pc(self) -> dict[int, dict[str, float]]:
        """Fractions of warp cycles by instruction and stall reason."""
        total = sum(self.outcome.stalls) or 1
        return {
            pc: dict(zip(STALLS, (row / total).tolist(), strict=True))
            for pc, row in sorted(self.outcome.reasons.items())
        }

    @property
    def stalls_by_line(self) -> dict[int, dict[str, float]]:
        """Fractions of warp cycles by source line and stall reason; line 0 is of no line."""
        lines: dict[int, dict[str, float]] = {}
        for pc, stalls in self.stalls_by_pc.items():
            line = self.prepared.program.instructions[pc].line if pc >= 0 else 0
            mine = lines.setdefault(line, dict.fromkeys(stalls, 0.0))
            for name, fraction in stalls.items():
                mine[name] += fraction
        return dict(sorted(lines.items()))

    @property
    def classes(self) -> Classes:
        """The classes of blocks with equal streams."""
        return self.extent.classes

    def gbps(self, size_bytes: float) -> float:
        """Return the bandwidth of moving `size_bytes` in this time, in GB/s (10^9 bytes)."""
        return size_bytes / self.time_us / 1000

    def to_dict(self) -> dict[str, Any]:
        """Return the output of `gpusim predict --json` as plain data."""
        return {
            "kernel": self.kernel,
            "generator": self.prepared.program.generator,
            "fallback": self.prepared.fallback or None,
            "device": self.device.gpu.name,
            "grid": list(self.launch.grid),
            "block": list(self.launch.block),
            "l2": self.l2,
            "time_us": self.time_us,
            "interval_us": list(self.interval_us),
            "interval": self.interval.to_dict(),
            "cycles": self.cycles,
            "waves": self.waves,
            "instructions": self.instructions,
            "occupancy": {
                "blocks": self.occupancy.blocks,
                "warps": self.occupancy.warps,
                "fraction": self.occupancy.fraction,
                "limit": self.occupancy.limit,
            },
            "limiter": self.limiter.name,
            "lower_bounds_us": {b.name: b.time_us for b in self.lower_bounds},
            "stalls": self.stalls,
            "traffic": self.traffic.to_dict(),
            "stalls_by_line": {
                str(line): {name: spent for name, spent in stalls.items() if spent}
                for line, stalls in self.stalls_by_line.items()
            },
            "lines": {str(line): fraction for line, fraction in self.lines.items()},
            "classes": [
                {"name": c.name, "blocks": c.blocks, "instructions": c.stream.instructions}
                for c in self.classes.classes
            ],
            "simulated": self.extent.to_dict(),
            **({"assumes_ordinary_operands": True} if self.assumes_ordinary_operands else {}),
            **({"depends_on_data": True} if self.depends_on_data else {}),
            **({"timeline": self.timeline.to_dict()} if self.timeline is not None else {}),
        }


def launch_overhead_us(device: Device) -> float:
    """Return the launch overhead of host and device, in microseconds."""
    return 0.0 if "launch-overhead" in device.ablations else device.host.launch_overhead_us


def total_time_us(passes: Sequence[Prediction]) -> float:
    """Return the time of launches one after the other on a stream, in microseconds."""
    if not passes:
        return 0.0
    gap = passes[0].device.host.pass_gap_us
    overhead = launch_overhead_us(passes[0].device)
    kernels = sum(p.time_us - overhead for p in passes)
    return kernels + overhead + gap * (len(passes) - 1)
