"""`gpusim.trace`: run a kernel and return its counters."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpusim import machine
from gpusim.codegen.generators import LOWERING
from gpusim.codegen.programs import prepare
from gpusim.errors import InputError, shown_at_the_call
from gpusim.isa.lines import Call, calls_of
from gpusim.launch.configured import ConfiguredKernel, MachineCode
from gpusim.launch.events import Observer, require_observers
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.prepared import Prepared
from gpusim.machine.storage import allocate
from gpusim.tracing.block_log import BlockLog
from gpusim.tracing.counting import Counters
from gpusim.tracing.execution import Executions, executions_of
from gpusim.tracing.footprint import Footprints
from gpusim.tracing.records import Blocks, CallPath, LineCounters, Trace, WarpCounters
from gpusim.tracing.repeat import Repeat, repeat_of


@shown_at_the_call
def trace(
    configured: ConfiguredKernel,
    *args: Any,
    cc: str | ComputeCapability = "9.0",
    level: str = "O3",
    code: str | None = None,
    block_index: int = 0,
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
    blocks_per_chunk: int | None = None,
    observers: Sequence[Observer] = (),
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """Run `kernel[grid, block]` with `args` and return its trace; arrays hold the results.

    `cc` is the compute capability to compile for, `level` "O3" (an optimising compiler) or "O0" (as
    `nvcc -G`), `code` the code generator of a Python kernel: "lowering", "nvcc", or "auto" (nvcc if
    it is available, else the lowering); by default the environment's GPUSIM_CODE decides, else
    "auto". `block_index` is the block with its warps shown one by one, `step_limit` the
    instructions that a block may run. Raises GpusimError for a launch, argument or kernel that
    cannot run.
    """
    generation = ComputeCapability.parse(cc)
    return trace_prepared(
        prepare(configured, args, generation, level, code=code),
        repeat=repeat_of(configured, args, level, code),
        block_index=block_index,
        step_limit=step_limit,
        blocks_per_chunk=blocks_per_chunk,
        observers=observers,
        progress=progress,
        source=source_of(configured, args, generation, level),
    )


def source_of(
    configured: ConfiguredKernel, args: Sequence[Any], cc: ComputeCapability, level: str = "O3"
) -> Callable[[], Prepared] | None:
    """Return the preparation of a launch in the lowering's code, None for code of a compiler."""
    if isinstance(configured.kernel, MachineCode):
        return None
    return partial(prepare, configured, args, cc, level, code=LOWERING)


def trace_prepared(
    prepared: Prepared,
    *,
    block_index: int = 0,
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
    blocks_per_chunk: int | None = None,
    observers: Sequence[Observer] = (),
    progress: Callable[[int], None] | None = None,
    source: Callable[[], Prepared] | None = None,
    chosen: Sequence[int] | None = None,
    repeat: Repeat | None = None,
) -> Trace:
    """Run a prepared program, of any origin, and return its trace.

    `source` prepares the same launch in the lowering's code, which knows the conditions of the
    source; `repeat` is the launch before it ran. With `chosen` blocks, only these run.
    """
    program, launch, cc = prepared.program, prepared.launch, prepared.cc
    require_observers(observers, Observer)
    if not 0 <= block_index < launch.blocks:
        raise InputError(f"there is no block {block_index} in a grid of {launch.blocks} blocks")
    allocations = allocate(prepared.arguments, places=prepared.places)
    counters, log = Counters(cc), BlockLog(block_index)
    footprints = Footprints(allocations)
    finished = [] if progress is None else [machine.Finished(progress)]
    printed = [] if prepared.printed is None else prepared.printed
    machine.run(
        replace(prepared, printed=printed),
        observers=(counters, footprints, log, *observers, *finished),
        step_limit=step_limit,
        blocks=chosen,
        schedule=machine.Schedule(chunk=blocks_per_chunk),
    )
    bases = {name: place.address for name, place in allocations.items()}
    blocks = Blocks(counters)
    return Trace(
        kernel=prepared.kernel,
        launch=launch,
        lowering=program.lowering,
        cc=str(cc),
        counters=counters.named(counters.by_pc.sum(axis=0)),
        lines=_lines(prepared, counters),
        footprints=list(footprints.found(counters.requested_sectors)),
        blocks=blocks,
        warps=[WarpCounters(block_index, *one) for one in enumerate(blocks.warps(block_index))],
        executions=Executions(lambda: executions_of(log.entries, bases, cc.major, program)),
        block_index=block_index,
        source_file=prepared.source_file,
        is_complete=log.is_complete,
        compiler=program.compiler,
        generator=program.generator,
        fallback=prepared.fallback,
        arrays=_dtypes(prepared.arguments),
        prepared=prepared,
        source=source if program.compiler else None,
        repeat=repeat,
        traced_blocks=launch.blocks if chosen is None else len(chosen),
        printed=b"".join(printed),
    )


def _dtypes(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the types of the elements of arrays, by name."""
    arrays = {k: value for k, value in arguments.items() if isinstance(value, np.ndarray)}
    return {name: str(array.dtype) for name, array in arrays.items() if array.ndim}


def _lines(prepared: Prepared, counters: Counters) -> list[LineCounters]:
    """Return the counters of each source line that has instructions."""
    names = [spec.name for spec in counters.specs]
    issued, lanes = names.index("instructions"), names.index("thread_instructions")
    runs_of = [names.index(name) for name in ("instructions", "source_branches") if name in names]
    pcs: dict[int, dict[tuple[Call, ...], list[int]]] = {}
    for pc, row in enumerate(prepared.program.instructions):
        pcs.setdefault(row.line, {}).setdefault(calls_of(row.line), []).append(pc)
    made = []
    for line in sorted(pcs):
        paths = []
        for calls, of_path in pcs[line].items():
            rows = counters.by_pc[of_path]
            runs = int(rows[:, runs_of].max())
            paths.append(CallPath(calls, runs, counters.named(rows.sum(axis=0))))
        total = counters.by_pc[[pc for of_path in pcs[line].values() for pc in of_path]].sum(axis=0)
        mean = float(total[lanes] / total[issued]) if total[issued] else 0.0
        text = linecache.getline(prepared.source_file, line).rstrip()
        runs = sum(path.executions for path in paths)
        called_from = tuple(path for path in paths if path.calls)
        made.append(LineCounters(int(line), text, runs, mean, counters.named(total), called_from))
    return made
