"""`gpusim.predict`: the duration of a launch on a named GPU, with its limiters and stalls.

Blocks are classified, the memory hierarchy gives the origin of their sectors, and one SM is
simulated with its share of the device; the result is a `Prediction`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim import machine
from gpusim.codegen.programs import prepare
from gpusim.errors import InputError, LaunchError, shown_at_the_call
from gpusim.gpu import device as devices
from gpusim.gpu.device import Device, for_cluster
from gpusim.gpu.occupancy import occupancy
from gpusim.isa.ops import OPS, Instruction
from gpusim.launch.configured import ConfiguredKernel
from gpusim.launch.events import require_observers
from gpusim.launch.prepared import Prepared, named_in_interrupts
from gpusim.prediction.bounds import SPINNING, Bound
from gpusim.prediction.clock.spans import STALLS, SpanObserver
from gpusim.prediction.memory import MemoryShare, memory_share
from gpusim.prediction.records import Extent, Prediction, launch_overhead_us
from gpusim.prediction.removals import Removal, Setting, removed
from gpusim.prediction.sampling import SmTime, simulate_all, simulate_alone
from gpusim.prediction.streams import Classes, classify, with_fast_paths
from gpusim.prediction.streams.phases import roles
from gpusim.prediction.timeline import TimelineRecorder
from gpusim.prediction.workload import BUDGET, Budget, Workload
from gpusim.program.polling import awaits, spins

if TYPE_CHECKING:
    from gpusim.prediction.spinning import RecordedBlocks

L2_STATES = ("cold", "warm", "dirty")


@shown_at_the_call
def predict(
    configured: ConfiguredKernel,
    *args: Any,
    device: str | Path | Device = "h200",
    l2: str = "cold",
    level: str = "O3",
    code: str | None = None,
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
    observers: Sequence[SpanObserver] = (),
    timeline: bool = False,
) -> Prediction:
    """Return the predicted duration of `kernel[grid, block]` with `args` on `device`.

    `device` is a built-in name, a device file or a `Device`; `l2` is "warm" if the arrays are in
    the L2 cache before the launch, "dirty" if other arrays were stored before, as by a benchmark
    that zeroes a buffer, else "cold". Arrays are not changed; `array_spec` replaces arrays without
    influence on control flow and addresses. `observers` observe the simulated SM, `timeline` keeps
    the spans of its first warps. `code` is the generator of a Python kernel's machine code,
    "lowering", "nvcc" or "auto"; the default is the environment's GPUSIM_CODE, else "auto".

    Raises GpusimError for a launch that cannot run.
    """
    _check_l2(l2)
    gpu = devices.load(device)
    prepared = prepare(configured, args, gpu.cc, level, code=code)
    return predict_prepared(
        prepared, gpu, l2=l2, step_limit=step_limit, observers=observers, timeline=timeline
    )


@named_in_interrupts
def predict_prepared(
    prepared: Prepared,
    gpu: Device,
    *,
    l2: str = "cold",
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
    observers: Sequence[SpanObserver] = (),
    timeline: bool = False,
    budget: Budget = BUDGET,
    removals: Sequence[Removal] = (),
) -> Prediction:
    """Return the predicted duration of a prepared program of any origin on a GPU.

    `budget` is the part of the work that is simulated before the rest is extrapolated. With
    `removals`, it is the duration without mechanisms of some lines.
    """
    _check_l2(l2)
    require_observers(observers, SpanObserver)
    gpu = _with_room_for(prepared.launch.cluster_blocks, gpu)
    usual = with_fast_paths(prepared)  # the executed path; dependencies are the program's own
    held = occupancy(prepared, gpu)
    _check_barriers(prepared, gpu, held.blocks)
    waiting = _spinning(usual, gpu, held.blocks, l2, step_limit)
    classes = classify(usual, step_limit=step_limit) if waiting is None else waiting.classes
    memory = memory_share(usual, classes, gpu, held.blocks, l2)
    setting = Setting(prepared, usual, gpu, l2, held.blocks, classes, memory, budget)
    for removal in removals:
        setting = removed(removal, setting)
    classes, memory = setting.classes, setting.memory
    work = setting.workload()
    recorder = TimelineRecorder(gpu.sm.schedulers, setting.resident) if timeline else None
    heard = observers if recorder is None else (*observers, recorder)
    played = setting.device
    done = simulate_all(played, memory, work, setting.resident, heard, demand=setting.demand)
    least = [*setting.bounds, _latency(played, memory, work, setting.resident)]
    clock = gpu.gpu.sm_clock_mhz
    cycles = max(done.cycles, *(bound.time_us * clock for bound in least))
    cycles, bounds = setting.spread(cycles, least)
    if waiting is not None:
        bounds.append(Bound(SPINNING, waiting.ends.cycles / clock))
        cycles = max(cycles, waiting.ends.cycles)
    return Prediction(
        prepared=prepared,
        device=gpu,
        l2=l2,
        time_us=cycles / clock + launch_overhead_us(gpu),
        cycles=cycles,
        occupancy=held,
        stalls=_stalls(done),
        outcome=done.outcome,
        bounds=tuple(bounds),
        waves=prepared.launch.blocks / (held.blocks * gpu.gpu.sms),
        extent=_extent(work, done, classes),
        instructions=sum(c.blocks * c.stream.instructions for c in classes.classes),
        traffic=setting.traffic,
        timeline=recorder.timeline if recorder is not None else None,
        assumes_ordinary_operands=usual is not prepared,
        setting=setting,
    )


def _extent(work: Workload, done: SmTime, classes: Classes) -> Extent:
    """Return the part of a launch that was simulated."""
    return Extent(
        blocks_on_sm=work.blocks_on_sm,
        simulated=done.blocks,
        iterations=work.longest_loop,
        iterations_simulated=done.iterations,
        spread=done.spread,
        classes=classes,
    )


def _with_room_for(cluster_blocks: int, gpu: Device) -> Device:
    """Return a GPU with the SMs that hold clusters of this size."""
    cluster = gpu.cluster
    fractions = cluster.fraction_2, cluster.fraction_4, cluster.fraction_8, cluster.fraction_16
    sms = max(1, round(gpu.gpu.sms * for_cluster(cluster_blocks, fractions, 1.0)))
    return gpu if sms == gpu.gpu.sms else replace(gpu, gpu=replace(gpu.gpu, sms=sms))


def _spinning(
    prepared: Prepared, gpu: Device, resident: int, l2: str, step_limit: int
) -> RecordedBlocks | None:
    """Return the recorded blocks of a program with spin loops, None for any other program."""
    if not spins(prepared.program):
        return None
    from gpusim.prediction.spinning import recorded_blocks  # imports a second machine: 15 ms

    return recorded_blocks(prepared, gpu, resident, l2, step_limit)


def _check_barriers(prepared: Prepared, gpu: Device, resident: int) -> None:
    """Refuse barriers that cannot open, and barriers that the clock does not model."""
    program = prepared.program
    if any(_is_untimed(instruction) for instruction in program.instructions):
        ops = [OPS[one.op] for one in program.instructions]
        what = "barriers with numbers, for some warps of a block"
        if any(op.unit == "tex" for op in ops):
            what = "fetches from textures or accesses to surfaces"
        raise InputError(
            f"{prepared.kernel} has {what}: they are run and counted, but how long they take is "
            "not simulated"
        )
    if program.clusters and awaits(program) and not roles(program):
        raise InputError(
            f"{prepared.kernel} has loops in which blocks of a cluster wait for each other: they "
            "are run and counted, but how long they take is not simulated"
        )
    most, blocks = resident * gpu.gpu.sms, prepared.launch.blocks
    if program.layout is not None and program.layout.grid_barrier is not None and blocks > most:
        raise LaunchError(
            f"{prepared.kernel} waits for all blocks of the grid, which has {blocks:,}; "
            f"{gpu.gpu.name} holds {most:,} of them at a time ({resident} on each of its "
            f"{gpu.gpu.sms} SMs)"
        )


def _is_untimed(instruction: Instruction) -> bool:
    """Return whether a row has no time; a packed barrier is all of the block's."""
    return OPS[instruction.op].is_untimed and instruction.detail != "packed"


def _check_l2(state: str) -> None:
    if state not in L2_STATES:
        raise InputError(f"the L2 cache is cold, warm or dirty, not {state!r}")


def _stalls(done: SmTime) -> dict[str, float]:
    """Return the fraction of warp time of each stall reason."""
    stalls = done.outcome.stalls
    total = sum(stalls) or 1
    return {name: spent / total for name, spent in zip(STALLS, stalls, strict=True)}


def _latency(gpu: Device, memory: MemoryShare, work: Workload, resident: int) -> Bound:
    """Return the latency bound: blocks in turn on one SM, each with the duration of a lone block.

    The number of turns is the SM's number of blocks over its places, rounded up. Blocks that
    differ take the shortest one's duration each, and the longest one's in all, at unlimited
    bandwidth: a block may use what idle ones left.
    """
    in_turn = math.ceil(work.blocks_on_sm / resident)
    lone = partial(simulate_alone, share=memory, work=work, is_first=in_turn == 1)
    if work.are_alike(0):
        cycles = in_turn * lone(gpu, number=work.shortest)
    else:
        quick = gpu.without("bandwidth")
        cycles = max(in_turn * lone(quick, number=work.shortest), lone(quick, number=work.longest))
    return Bound("latency", cycles / gpu.gpu.sm_clock_mhz)
