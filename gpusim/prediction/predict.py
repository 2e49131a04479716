"""`gpusim.predict`: how long a launch takes on a named GPU, and why.

One SM is played with its share of the device; `sampling` says how much of its work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpusim import device as devices
from gpusim import machine
from gpusim.cuda import ConfiguredKernel
from gpusim.device import Device
from gpusim.errors import InputError, told_to_the_caller
from gpusim.isa import OPS, Program
from gpusim.launch import Launch
from gpusim.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.occupancy import Occupancy, occupancy
from gpusim.prediction.bounds import Bound, bounds_of
from gpusim.prediction.clock.clock import SpanListener
from gpusim.prediction.clock.stalls import STALLS
from gpusim.prediction.clock.units import Share, Source
from gpusim.prediction.sampling import Plans, play_all, play_alone
from gpusim.prediction.streams import Classes, classify
from gpusim.prepared import Prepared
from gpusim.programs import prepare

L2_STATES = ("cold", "warm")
# Arrays that are read again from 8 to 128 MB on an H200: up to 0.73 of the L2 all of it is still
# there, from 0.87 on nothing.
L2_HOLDS, L2_LOSES = 0.75, 0.85
# Atomics at random places of arrays of 1 to 65,536 lines on an H200: so many go on at a time, or
# one for so many lines.
MOST_PLACES, LINES_A_PLACE = 70, 4
L2_KEPT = 0.5  # of its capacity: what was last touched, so that what was written is still there


@dataclass(frozen=True)
class Simulated:
    """What was played of the SM's blocks and of the longest loop, and carried on from that.

    `rounds` are those of the longest loop in which all warps do the same in each, or in each
    few. `spread` is how far the last stretch that was played changed the rate, as a part.
    """

    blocks_on_sm: int
    played: int
    rounds: int
    rounds_played: int
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

    prepared: Prepared
    device: Device
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
    def kernel(self) -> str:
        """The kernel's name."""
        return self.prepared.kernel

    @property
    def launch(self) -> Launch:
        """Grid, block and dynamic shared memory."""
        return self.prepared.launch

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
                "rounds": self.simulated.rounds,
                "rounds_played": self.simulated.rounds_played,
                "spread": self.simulated.spread,
                "blocks_run": self.classes.probed,
            },
        }


def check_l2(state: str) -> None:
    """Raise InputError for what is no state of the L2 cache."""
    if state not in L2_STATES:
        raise InputError(f"the L2 cache is {' or '.join(L2_STATES)}, not {state!r}")


@told_to_the_caller
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
    check_l2(l2)
    gpu = devices.load(device)
    prepared = prepare(configured, args, gpu.cc, level)
    return predict_prepared(prepared, gpu, l2=l2, step_limit=step_limit, listener=listener)


def predict_prepared(
    prepared: Prepared,
    gpu: Device,
    *,
    l2: str = "cold",
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
    listener: SpanListener | None = None,
) -> Prediction:
    """Return how long a program that is ready takes on a GPU, wherever it came from, and why."""
    check_l2(l2)
    program, launch = prepared.program, prepared.launch
    holds = occupancy(prepared, gpu)
    classes = classify(prepared, step_limit=step_limit)
    share = _share(prepared, classes, gpu, l2, holds)
    plans = Plans(prepared, gpu, classes)
    done = play_all(gpu, share, plans, holds.blocks, listener)
    time_us = done.cycles / gpu.gpu.sm_clock_mhz + _overhead_us(gpu)
    total = sum(done.stalls) or 1
    lines: dict[int, float] = {}
    for pc, spent in done.by_pc.items():
        line = program.instructions[pc].line if pc >= 0 else 0
        lines[line] = lines.get(line, 0.0) + spent / total
    return Prediction(
        prepared=prepared,
        device=gpu,
        l2=l2,
        time_us=time_us,
        cycles=done.cycles,
        occupancy=holds,
        stalls={name: spent / total for name, spent in zip(STALLS, done.stalls, strict=True)},
        lines=dict(sorted(lines.items())),
        bounds=(
            *bounds_of(prepared, classes, gpu, share),
            _latency(gpu, share, plans, holds),
        ),
        waves=launch.blocks / (holds.blocks * gpu.gpu.sms),
        simulated=Simulated(
            blocks_on_sm=plans.blocks_on_sm,
            played=done.blocks,
            rounds=plans.longest_loop,
            rounds_played=done.rounds,
            spread=done.spread,
            classes=classes,
        ),
        instructions=sum(c.blocks * c.stream.instructions for c in classes.classes),
    )


def _latency(gpu: Device, share: Share, plans: Plans, holds: Occupancy) -> Bound:
    """Return what the launch takes if a block runs as long as it does alone, with all it waits for.

    Of the blocks of an SM, one place gets at least their number over the places, one after
    the other.
    """
    alone = play_alone(gpu, share, plans)
    rounds = math.ceil(plans.blocks_on_sm / holds.blocks)
    return Bound("latency", rounds * alone / gpu.gpu.sm_clock_mhz)


def _overhead_us(gpu: Device) -> float:
    return 0.0 if "launch-overhead" in gpu.ablations else gpu.host.launch_overhead_us


def _share(
    prepared: Prepared,
    classes: Classes,
    gpu: Device,
    l2: str,
    holds: Occupancy,
) -> Share:
    """Return one SM's share of the device, by how many SMs have a block."""
    program, launch, arguments = prepared.program, prepared.launch, prepared.arguments
    sms = min(gpu.gpu.sms, launch.blocks)
    clock = gpu.gpu.sm_clock_mhz
    dram = gpu.bandwidth.dram_gbps * 1000 / clock / sms
    from_l2 = min(
        gpu.bandwidth.l2_gbps * 1000 / clock / sms, gpu.bandwidth.l2_to_sm_bytes_per_cycle
    )
    fetched = _fetched_bytes(program, classes)
    sizes = {name: getattr(arguments[name], "nbytes", math.inf) for name in fetched}
    totals = {name: sum(by_pc.values()) for name, by_pc in fetched.items()}
    distinct = sum(min(totals[name], sizes[name]) for name in fetched)
    missing = _missing(distinct, gpu.capacity.l2_bytes) if l2 == "warm" else 1.0
    cached = gpu.capacity.l1_bytes if gpu.capacity.l1_caches_global else 0
    room = cached - holds.blocks * program.shared_bytes
    near = {
        name: max(0.0, 1 - size * sms / totals[name]) if size <= room else 0.0
        for name, size in sizes.items()
    }
    sources = _sources(fetched, sizes, near, missing)
    writes = classes.written_sectors
    turns = min(1.0, classes.read_sectors / writes) if writes else 1.0
    kept = gpu.capacity.l2_bytes * L2_KEPT / distinct if distinct else 1.0
    return Share(
        dram_bytes_per_cycle=min(dram, from_l2),
        l2_bytes_per_cycle=from_l2,
        whole=sources[-1],
        written_back=sources[-1].dram_part * max(0.0, 1 - kept),
        write_factor=1 + (gpu.bandwidth.dram_write_factor - 1) * turns,
        sms=sms,
        busiest=launch.blocks - sms * (-(-launch.blocks // sms) - 1),
        first_wave=min(1.0, sms * holds.blocks / launch.blocks),
        by_pc=sources,
        side_by_side=_side_by_side(program, arguments),
    )


def _sources(
    fetched: Mapping[str, Mapping[int, float]],
    sizes: Mapping[str, float],
    near: Mapping[str, float],
    missing: float,
) -> dict[int, Source]:
    """Return where what each pc fetches comes from, and as that of pc -1 all of it together.

    `fetched` are bytes of each array by pc, `sizes` the arrays' own, `near` the parts that the
    SMs have in their L1s; the part `missing` is not in the L2. What blocks have in common is
    new to the instruction that comes to it first.
    """
    sources: dict[int, Source] = {}
    total = from_dram = at_hand = 0.0
    for name, by_pc in fetched.items():
        left = sizes[name]
        for pc, size in by_pc.items():
            new = min(left, size)
            left -= new
            sources[pc] = Source(new / size * missing, missing, near[name])
            total, from_dram, at_hand = total + size, from_dram + new, at_hand + near[name] * size
    part, near_part = (from_dram / total, at_hand / total) if total else (1.0, 0.0)
    sources[-1] = Source(part * missing, missing, near_part)
    return sources


def _side_by_side(program: Program, arguments: Mapping[str, Any]) -> dict[int, float]:
    """Return how many global atomics the L2 does at a time, by pc: more in a larger array."""
    found: dict[int, float] = {}
    for pc, instruction in enumerate(program.instructions):
        memory = instruction.memory
        is_atomic = OPS[instruction.op].kind == "atomic"
        if is_atomic and memory is not None and memory.space == "global":
            lines = getattr(arguments[memory.name], "nbytes", LINE_BYTES) / LINE_BYTES
            found[pc] = max(1.0, 1 / (1 / MOST_PLACES + LINES_A_PLACE / lines))
    return found


def _missing(size_bytes: float, l2_bytes: int) -> float:
    """Return what part of arrays of a size is gone from a warm L2.

    Read again in the order in which it came, what does not fit is gone when its turn comes.
    """
    filled = size_bytes / l2_bytes if l2_bytes else math.inf
    return min(1.0, max(0.0, (filled - L2_HOLDS) / (L2_LOSES - L2_HOLDS)))


def _fetched_bytes(program: Program, classes: Classes) -> dict[str, dict[int, float]]:
    """Return by array and pc the bytes that blocks touch first, each block's own counted."""
    by_pc = np.zeros(len(program.instructions))
    for one in classes.classes:
        for warp in one.stream.warps:
            by_pc += one.blocks * np.bincount(
                warp.pc, weights=warp.times * warp.fresh, minlength=len(by_pc)
            )
    found: dict[str, dict[int, float]] = {}
    for pc, sectors in enumerate(by_pc.tolist()):
        memory = program.instructions[pc].memory
        if sectors and memory is not None:
            found.setdefault(memory.name, {})[pc] = SECTOR_BYTES * sectors
    return found


def total_time_us(passes: Sequence[Prediction]) -> float:
    """Return the time of launches one after the other on a stream, in microseconds."""
    if not passes:
        return 0.0
    gap = passes[0].device.host.pass_gap_us
    overhead = _overhead_us(passes[0].device)
    kernels = sum(p.time_us - overhead for p in passes)
    return kernels + overhead + gap * (len(passes) - 1)
