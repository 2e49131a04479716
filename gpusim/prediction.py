"""`gpusim.predict`: how long a launch takes on a named GPU, and why.

One SM is played with its share of the device. A large grid is played in part: once the time
that further blocks take has settled, it is carried on to the grid's size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusim import device as devices
from gpusim import machine
from gpusim.cuda import ConfiguredKernel
from gpusim.device import Device
from gpusim.errors import InputError
from gpusim.isa import Program
from gpusim.launch import ComputeCapability, Launch
from gpusim.programs import bind, program_for
from gpusim.streams import BlockStream, Classes, classify
from gpusim.timing.bounds import Bound, bounds_of
from gpusim.timing.clock import (
    STALLS,
    Outcome,
    Share,
    SpanListener,
    StreamingMultiprocessor,
    WarpPlan,
)
from gpusim.timing.costs import instruction_costs, segments
from gpusim.timing.occupancy import Occupancy, occupancy

L2_STATES = ("cold", "warm")

# Waves of resident blocks that are played before the time per block may count as settled, and
# how well two stretches must agree.
FIRST_WAVES = 3
MOST_WAVES = 12
SETTLED = 0.005


@dataclass(frozen=True)
class Simulated:
    """What was played of the SM's blocks, and what was carried on from it.

    `spread` is how far the last stretch changed the time per block, as a part.
    """

    blocks_on_sm: int
    played: int
    spread: float
    classes: Classes

    @property
    def extrapolated(self) -> int:
        """Blocks of the SM that were not played."""
        return self.blocks_on_sm - self.played


@dataclass(frozen=True)
class Prediction:
    """How long a launch takes. `cycles` are SM cycles of the kernel alone, `time_us` with launch.

    `stalls` are shares of all warp cycles, by Nsight Compute's names, and add up to 1;
    `lines` are shares of warp cycles by source line. `bounds` are what the launch would take
    if only one thing limited it; the largest binds.
    """

    kernel: str
    device: Device
    launch: Launch
    l2: str
    time_us: float
    cycles: float
    occupancy: Occupancy
    stalls: dict[str, float]
    lines: dict[int, float]
    bounds: tuple[Bound, ...]
    waves: float
    simulated: Simulated
    instructions: int

    @property
    def bound(self) -> Bound:
        """What binds: the largest of the bounds."""
        return max(self.bounds, key=lambda b: b.time_us)

    @property
    def classes(self) -> Classes:
        """The classes of blocks that do the same."""
        return self.simulated.classes

    def gbps(self, size_bytes: float) -> float:
        """Return what moving `size_bytes` in this time comes to, in GB/s (10^9 bytes)."""
        return size_bytes / self.time_us / 1000

    def to_dict(self) -> dict[str, Any]:
        """Return what `gpusim predict --json` prints."""
        return {
            "kernel": self.kernel,
            "device": self.device.gpu.name,
            "grid": list(self.launch.grid),
            "block": list(self.launch.block),
            "l2": self.l2,
            "time_us": self.time_us,
            "cycles": self.cycles,
            "waves": self.waves,
            "instructions": self.instructions,
            "occupancy": {
                "blocks": self.occupancy.blocks,
                "warps": self.occupancy.warps,
                "share": self.occupancy.share,
                "limit": self.occupancy.limit,
            },
            "bound": self.bound.name,
            "bounds": {b.name: b.time_us for b in self.bounds},
            "stalls": self.stalls,
            "lines": {str(line): share for line, share in self.lines.items()},
            "classes": [
                {"name": c.name, "blocks": c.blocks, "instructions": c.stream.instructions}
                for c in self.classes.classes
            ],
            "simulated": {
                "blocks_on_sm": self.simulated.blocks_on_sm,
                "played": self.simulated.played,
                "extrapolated": self.simulated.extrapolated,
                "spread": self.simulated.spread,
                "blocks_run": self.classes.probed,
            },
        }


def predict(
    configured: ConfiguredKernel,
    *args: Any,
    device: str | Path | Device = "h200",
    l2: str = "cold",
    level: str = "O3",
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
    listener: SpanListener | None = None,
) -> Prediction:
    """Return how long `kernel[grid, block]` with `args` takes on `device`, and why.

    `device` is a built-in name, a device file or a `Device`; `l2` says whether the arrays lie
    in the L2 cache before ("warm") or not ("cold"). Arrays are not changed; `array_spec` does
    for those whose elements decide nothing. Raises GpusimError for what cannot run.
    """
    if l2 not in L2_STATES:
        raise InputError(f"the L2 cache is {' or '.join(L2_STATES)}, not {l2!r}")
    gpu = devices.load(device)
    cc = ComputeCapability.parse(gpu.gpu.compute_capability)
    launch = configured.launch
    arguments = bind(configured.kernel, args)
    program = program_for(configured.kernel, arguments, cc, level)
    launch.check(cc, program.shared_bytes)
    holds = occupancy(program, launch, gpu)
    classes = classify(program, launch, arguments, cc, step_limit=step_limit)
    share = _share(arguments, classes, launch, gpu, l2, holds)
    plans = _Plans(program, gpu, classes, launch)
    outcome, cycles, simulated = _play(gpu, share, plans, holds.blocks, classes, listener)
    time_us = cycles / gpu.gpu.sm_clock_mhz + _overhead_us(gpu)
    total = sum(outcome.stalls) or 1
    per_pc = outcome.by_pc
    lines: dict[int, float] = {}
    for pc, spent in per_pc.items():
        line = program.instructions[pc].line if pc >= 0 else 0
        lines[line] = lines.get(line, 0.0) + spent / total
    return Prediction(
        kernel=configured.kernel.__name__,
        device=gpu,
        launch=launch,
        l2=l2,
        time_us=time_us,
        cycles=cycles,
        occupancy=holds,
        stalls={name: spent / total for name, spent in zip(STALLS, outcome.stalls, strict=True)},
        lines=dict(sorted(lines.items())),
        bounds=(
            *bounds_of(program, launch, classes, gpu, share),
            _latency(gpu, share, plans, holds),
        ),
        waves=launch.blocks / (holds.blocks * gpu.gpu.sms),
        simulated=simulated,
        instructions=sum(c.blocks * c.stream.instructions for c in classes.classes),
    )


def _latency(gpu: Device, share: Share, plans: _Plans, holds: Occupancy) -> Bound:
    """Return what the launch takes if a block runs as long as it does alone, with all it waits for.

    Of the blocks of an SM, one place gets at least their number over the places, one after
    the other.
    """
    alone = StreamingMultiprocessor(gpu, share, plans.some(1), 1).play().cycles
    rounds = math.ceil(plans.blocks_on_sm / holds.blocks)
    return Bound("latency", rounds * alone / gpu.gpu.sm_clock_mhz)


def _overhead_us(gpu: Device) -> float:
    return 0.0 if "launch-overhead" in gpu.ablations else gpu.host.launch_overhead_us


def _share(
    arguments: Mapping[str, Any],
    classes: Classes,
    launch: Launch,
    gpu: Device,
    l2: str,
    holds: Occupancy,
) -> Share:
    """Return one SM's share of the device, by how many SMs have a block."""
    sms = min(gpu.gpu.sms, launch.blocks)
    together = sms * holds.blocks
    clock = gpu.gpu.sm_clock_mhz
    dram = gpu.bandwidth.dram_gbps * 1000 / clock / sms
    from_l2 = min(
        gpu.bandwidth.l2_gbps * 1000 / clock / sms, gpu.bandwidth.l2_to_sm_bytes_per_cycle
    )
    fetched = 32 * sum(c.blocks * c.stream.fresh_sectors for c in classes.classes)
    footprint = sum(
        value.nbytes
        for value in arguments.values()
        if hasattr(value, "nbytes") and hasattr(value, "ndim") and value.ndim
    )
    part = min(1.0, footprint / fetched) if fetched else 1.0
    late = max(part, min(1.0, together / launch.blocks))
    if l2 == "warm" and footprint:
        missing = max(0.0, 1 - gpu.capacity.l2_bytes / footprint)
        part, late = part * missing, late * missing
    return Share(
        dram_bytes_per_cycle=min(dram, from_l2),
        l2_bytes_per_cycle=from_l2,
        dram_part=part,
        late_part=late,
        sms=sms,
    )


class _Plans:
    """The plans of the blocks that one SM gets, made once for each different warp.

    It is the SM with the most work, for the launch ends with it.
    """

    def __init__(self, program: Program, gpu: Device, classes: Classes, launch: Launch) -> None:
        self._program, self._gpu = program, gpu
        self._costs = instruction_costs(program, gpu)
        self._by_key: dict[bytes, WarpPlan] = {}
        self._by_stream: dict[int, list[WarpPlan]] = {}
        self._ranges = sorted(
            (first, last, c.stream) for c in classes.classes for first, last in c.ranges
        )
        self._sms = gpu.gpu.sms
        self._blocks = launch.blocks
        self._first = max(self._candidates(), key=self._work)
        self.blocks_on_sm = self._count(self._first)

    def _candidates(self) -> list[int]:
        """Return SMs that may have the most work: the first, and those of the longest blocks."""
        longest = max(stream.instructions for _, _, stream in self._ranges)
        blocks = [last for _, last, stream in self._ranges if stream.instructions == longest]
        return sorted({0, *(block % self._sms for block in blocks[:8])})

    def _count(self, sm: int) -> int:
        return math.ceil((self._blocks - sm) / self._sms)

    def _work(self, sm: int) -> int:
        """Return the instructions of an SM's blocks; of a large grid, of some of them."""
        count = self._count(sm)
        places = range(0, count, max(1, count // 64))
        return sum(self._stream(sm + k * self._sms).instructions for k in places)

    def _stream(self, number: int) -> BlockStream:
        """Return the stream of a block of the grid."""
        low, high = 0, len(self._ranges) - 1
        while low < high:
            middle = (low + high) // 2
            if self._ranges[middle][1] < number:
                low = middle + 1
            else:
                high = middle
        return self._ranges[low][2]

    def of_block(self, number: int) -> list[WarpPlan]:
        """Return the plans of the warps of a block of the grid."""
        stream = self._stream(number)
        if id(stream) not in self._by_stream:
            self._by_stream[id(stream)] = self._of_stream(stream)
        return self._by_stream[id(stream)]

    def _of_stream(self, stream: BlockStream) -> list[WarpPlan]:
        plans = []
        for warp in stream.warps:
            warp = warp.of_part(1)
            if "divergence" in self._gpu.ablations:
                warp = warp.of_longest_lane()
            if warp.key not in self._by_key:
                made, tags = segments(warp, self._program, self._costs, self._gpu)
                self._by_key[warp.key] = WarpPlan(made, tags)
            plans.append(self._by_key[warp.key])
        return plans

    def some(self, count: int) -> list[list[WarpPlan]]:
        """Return plans of `count` of the SM's blocks, spread evenly over them."""
        whole = self.blocks_on_sm
        return [self.of_block(self._first + k * whole // count * self._sms) for k in range(count)]


def _play(
    gpu: Device,
    share: Share,
    plans: _Plans,
    resident: int,
    classes: Classes,
    listener: SpanListener | None,
) -> tuple[Outcome, float, Simulated]:
    """Play the SM's blocks, all or until the time per block has settled."""

    def play(count: int) -> Outcome:
        return StreamingMultiprocessor(gpu, share, plans.some(count), resident, listener).play()

    whole = plans.blocks_on_sm
    if whole <= FIRST_WAVES * 2 * resident:
        outcome = play(whole)
        return outcome, outcome.cycles, Simulated(whole, whole, 0.0, classes)
    step = FIRST_WAVES * resident
    counts, outcomes = [step, 2 * step], [play(step), play(2 * step)]
    slope = (outcomes[1].cycles - outcomes[0].cycles) / step
    spread = math.inf
    while spread > SETTLED and counts[-1] + step <= min(whole, MOST_WAVES * resident):
        counts.append(counts[-1] + step)
        outcomes.append(play(counts[-1]))
        before = slope
        slope = (outcomes[-1].cycles - outcomes[0].cycles) / (counts[-1] - step)
        spread = abs(slope / before - 1) if before else 0.0
    cycles = outcomes[-1].cycles + (whole - counts[-1]) * slope
    found = 0.0 if math.isinf(spread) else spread
    return outcomes[-1], cycles, Simulated(whole, counts[-1], found, classes)


def total_time_us(passes: Sequence[Prediction]) -> float:
    """Return the time of launches one after the other on a stream, in microseconds."""
    if not passes:
        return 0.0
    gap = passes[0].device.host.pass_gap_us
    overhead = _overhead_us(passes[0].device)
    kernels = sum(p.time_us - overhead for p in passes)
    return kernels + overhead + gap * (len(passes) - 1)
