"""`gpusim.predict`: how long a launch takes on a named GPU, and why.

Blocks are classified by what they do, the memory hierarchy says where their sectors come from,
one SM is simulated with its share of the device, and what it took is put into a `Prediction`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim import machine
from gpusim.codegen.programs import prepare
from gpusim.cuda import ConfiguredKernel
from gpusim.errors import InputError, LaunchError, shown_at_the_call
from gpusim.gpu import device as devices
from gpusim.gpu.device import Device
from gpusim.gpu.occupancy import occupancy
from gpusim.isa.ops import OPS, Instruction
from gpusim.launch.events import require_observers
from gpusim.launch.prepared import Prepared
from gpusim.prediction.bounds import WAITING, Bound, bounds_of
from gpusim.prediction.clock.spans import SpanObserver
from gpusim.prediction.clock.stalls import STALLS
from gpusim.prediction.memory import MemoryShare, memory_share
from gpusim.prediction.records import Extent, Prediction, launch_overhead_us
from gpusim.prediction.sampling import SmTime, simulate_all, simulate_alone
from gpusim.prediction.streams import classify
from gpusim.prediction.timeline import TimelineRecorder
from gpusim.prediction.traffic import traffic_of
from gpusim.prediction.workload import Workload
from gpusim.program.fast_paths import with_fast_paths
from gpusim.program.polling import spins

if TYPE_CHECKING:
    from gpusim.prediction.spinning import RecordedBlocks

L2_STATES = ("cold", "warm")


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
    """Return how long `kernel[grid, block]` with `args` takes on `device`, and why.

    `device` is a built-in name, a device file or a `Device`; `l2` says whether the arrays lie
    in the L2 cache before ("warm") or not ("cold"). Arrays are not changed; `array_spec` does
    for those whose elements decide nothing. `observers` see the SM that is simulated,
    `timeline` keeps the lives of its first warps. `code` is whose machine code a Python kernel has,
    "lowering", "nvcc" or "auto"; without it the environment's GPUSIM_CODE decides, else "auto".
    Raises GpusimError for what cannot run.
    """
    _check_l2(l2)
    gpu = devices.load(device)
    prepared = prepare(configured, args, gpu.cc, level, code=code)
    return predict_prepared(
        prepared, gpu, l2=l2, step_limit=step_limit, observers=observers, timeline=timeline
    )


def predict_prepared(
    prepared: Prepared,
    gpu: Device,
    *,
    l2: str = "cold",
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
    observers: Sequence[SpanObserver] = (),
    timeline: bool = False,
) -> Prediction:
    """Return how long a program that is ready takes on a GPU, wherever it came from, and why."""
    _check_l2(l2)
    require_observers(observers, SpanObserver)
    usual = with_fast_paths(prepared)  # what is run; what waits for what is the program's own
    held = occupancy(prepared, gpu)
    _check_barriers(prepared, gpu, held.blocks)
    waiting = _spinning(usual, gpu, held.blocks, l2, step_limit)
    classes = classify(usual, step_limit=step_limit) if waiting is None else waiting.classes
    memory = memory_share(usual, classes, gpu, held.blocks, l2)
    traffic = traffic_of(prepared, classes, memory, l2)
    work = Workload(prepared, gpu, classes, l2, held.blocks)
    recorder = TimelineRecorder(gpu.sm.schedulers, held.blocks) if timeline else None
    heard = observers if recorder is None else (*observers, recorder)
    done = simulate_all(gpu, memory, work, held.blocks, heard)
    bounds = [
        *bounds_of(prepared, classes, gpu, memory, traffic),
        _latency(gpu, memory, work, held.blocks),
    ]
    cycles = done.cycles
    if waiting is not None:
        bounds.append(Bound(WAITING, waiting.ends.cycles / gpu.gpu.sm_clock_mhz))
        cycles = max(cycles, waiting.ends.cycles)
    return Prediction(
        prepared=prepared,
        device=gpu,
        l2=l2,
        time_us=cycles / gpu.gpu.sm_clock_mhz + launch_overhead_us(gpu),
        cycles=cycles,
        occupancy=held,
        stalls=_stalls(done),
        lines=_lines(prepared, done),
        bounds=tuple(bounds),
        waves=prepared.launch.blocks / (held.blocks * gpu.gpu.sms),
        extent=Extent(
            blocks_on_sm=work.blocks_on_sm,
            simulated=done.blocks,
            iterations=work.longest_loop,
            iterations_simulated=done.iterations,
            spread=done.spread,
            classes=classes,
        ),
        instructions=sum(c.blocks * c.stream.instructions for c in classes.classes),
        traffic=traffic,
        timeline=recorder.timeline if recorder is not None else None,
        assumes_ordinary_operands=usual is not prepared,
    )


def _spinning(
    prepared: Prepared, gpu: Device, resident: int, l2: str, step_limit: int
) -> RecordedBlocks | None:
    """Return what blocks do that wait for others; None where the program has no such loop."""
    if not spins(prepared.program):
        return None
    from gpusim.prediction.spinning import recorded_blocks  # with a machine of its own: 15 ms

    return recorded_blocks(prepared, gpu, resident, l2, step_limit)


def _check_barriers(prepared: Prepared, gpu: Device, resident: int) -> None:
    """Refuse barriers that cannot open, and those that the clock does not have."""
    program = prepared.program
    if any(_is_untimed(instruction) for instruction in program.instructions):
        raise InputError(
            f"{prepared.kernel} has barriers with numbers, for some warps of a block: they are run "
            "and counted, but how long they take is not simulated"
        )
    most, blocks = resident * gpu.gpu.sms, prepared.launch.blocks
    if program.layout is not None and program.layout.grid_barrier is not None and blocks > most:
        raise LaunchError(
            f"{prepared.kernel} waits for all blocks of the grid, which has {blocks:,}; "
            f"{gpu.gpu.name} holds {most:,} of them at a time ({resident} on each of its "
            f"{gpu.gpu.sms} SMs)"
        )


def _is_untimed(instruction: Instruction) -> bool:
    """Return whether a row is a barrier for some warps; a packed one is all of the block's."""
    return OPS[instruction.op].is_untimed and instruction.detail != "packed"


def _check_l2(state: str) -> None:
    if state not in L2_STATES:
        raise InputError(f"the L2 cache is {' or '.join(L2_STATES)}, not {state!r}")


def _stalls(done: SmTime) -> dict[str, float]:
    """Return what fraction of the warps' time went to each reason."""
    total = sum(done.stalls) or 1
    return {name: spent / total for name, spent in zip(STALLS, done.stalls, strict=True)}


def _lines(prepared: Prepared, done: SmTime) -> dict[int, float]:
    """Return what fraction of the warps' time went to each source line, 0 where there is none."""
    total = sum(done.stalls) or 1
    lines: dict[int, float] = {}
    for pc, spent in done.by_pc.items():
        line = prepared.program.instructions[pc].line if pc >= 0 else 0
        lines[line] = lines.get(line, 0.0) + spent / total
    return dict(sorted(lines.items()))


def _latency(gpu: Device, memory: MemoryShare, work: Workload, resident: int) -> Bound:
    """Return what the launch takes if a block runs as long as it does alone, with all it waits for.

    Of the blocks of an SM, one place gets at least their number over the places, one after
    the other.
    """
    in_turn = math.ceil(work.blocks_on_sm / resident)
    alone = simulate_alone(gpu, memory, work, is_first=in_turn == 1)
    return Bound("latency", in_turn * alone / gpu.gpu.sm_clock_mhz)
