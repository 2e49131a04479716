"""The SIMT machine: runs a `Program` for a launch and reports each step to observers.

Launches begin in compiled code (`compiled/`); NumPy runs unsupported launches, and blocks with
faults. Blocks run in chunks, so memory does not grow with the grid. A chunk that keeps waiting is
joined by the next one, because its blocks may wait for later blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusim.isa.ops import Program
from gpusim.launch.events import Observer, hooks
from gpusim.launch.grid import ComputeCapability, Launch, whole_number
from gpusim.launch.prepared import Prepared, named_in_interrupts
from gpusim.machine.banks import allocated
from gpusim.machine.context import OnFault
from gpusim.machine.host_allocator import keep_freed_memory
from gpusim.machine.interpreter import Interpreter
from gpusim.machine.livelock import Changes
from gpusim.machine.no_progress import livelock, too_long
from gpusim.machine.state import Batch
from gpusim.machine.storage import Allocation, with_copies
from gpusim.machine.turns import Turns
from gpusim.program.liveness import Liveness
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.machine.compiled.evaluator import CompiledLaunch

DEFAULT_CC = ComputeCapability(9, 0)
DEFAULT_STEP_LIMIT = 1_000_000
# Of each instruction half the time goes into calling NumPy where a chunk has 2^17 lanes; with twice
# as many registers are still near. Programs with many registers have fewer lanes, for they fill
# memory.
FEWEST_LANES, MOST_LANES = 1 << 17, 1 << 18  # of a chunk
REGISTERS_PER_CHUNK = 1 << 24
LOCAL_BYTES_PER_CHUNK = 1 << 28
QUANTUM = 5_000
TURNS = 16  # before a block reaches its step limit, others have had theirs

Progress = Callable[[int], None]


def chunk_blocks(program: Program, launch: Launch) -> int:
    """Return the number of blocks to run at a time: enough work for NumPy in each call.

    The local memory of all their threads, allocated at once, limits it.
    """
    lanes_each = launch.warps_per_block * 32
    lanes = REGISTERS_PER_CHUNK // max(program.registers, 1)
    lanes = min(max(lanes, FEWEST_LANES), MOST_LANES)
    blocks = min(2048, lanes // lanes_each)
    most = LOCAL_BYTES_PER_CHUNK // max(program.local_bytes * lanes_each, 1)
    return launch.whole_clusters(max(1, min(blocks, most)))


def quantum(step_limit: int) -> int:
    """Return the number of steps after which the next chunk joins a waiting one."""
    return min(QUANTUM, step_limit // TURNS + 1)


@dataclass(frozen=True)
class Schedule:
    """The blocks that run at a time, and their order.

    Blocks run in chunks of `chunk`, by default of a size that suits NumPy. `turns` is another order
    of warps and blocks.
    """

    chunk: int | None = None
    turns: Turns | None = None


USUAL = Schedule()


class Finished(Observer):
    """Calls `progress` with the number of finished blocks."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._count = progress, 0

    def batch_end(self, blocks: Array) -> None:
        """Count blocks that have ended."""
        self._count += len(blocks)
        self._progress(self._count)


@named_in_interrupts
def run(
    prepared: Prepared,
    *,
    observers: Sequence[Observer] = (),
    step_limit: int = DEFAULT_STEP_LIMIT,
    blocks: Sequence[int] | None = None,
    on_fault: OnFault | None = None,
    schedule: Schedule = USUAL,
) -> None:
    """Run every block of a launch, or only `blocks`. Arrays among its arguments hold the results.

    `step_limit` is the most instructions that one block may run; NoProgressError beyond. `on_fault`
    is called with each fault instead of raising it; then lanes skip the access, and blocks in
    deadlock are abandoned.

    The rehearsal of a launch, if any, runs first, with its own faults.
    """
    step_limit = whole_number(step_limit, "the step limit", least=1)
    if blocks is None:
        rehearse(prepared, step_limit)
    program, launch, arguments = prepared.program, prepared.launch, prepared.arguments
    turns = schedule.turns
    allocations = allocated(prepared)
    size = launch.whole_clusters(schedule.chunk or chunk_blocks(program, launch))
    if launch.cluster_blocks > 1:
        blocks = in_clusters(launch, blocks).tolist()
    is_plain = on_fault is None and turns is None
    compiled = _begun(prepared, allocations, observers, step_limit) if is_plain else None
    for begin in hooks(observers, "begin"):
        begin(program, launch)
    batch_ends = hooks(observers, "batch_end")
    count = launch.blocks if blocks is None else len(blocks)
    longest = quantum(step_limit)
    following = 0
    running: list[Interpreter] = []
    changes, liveness = Changes(), Liveness(program)
    keep_freed_memory()

    with np.errstate(all="ignore"):
        while running or following < count:
            if compiled is not None and not running:
                most = launch.whole_clusters(compiled.most_blocks(size))
                chunk = np.arange(following, min(following + most, count))
                chosen = chunk if blocks is None else np.take(blocks, chunk)
                if compiled.has_run(chosen, size, longest, is_last=chunk[-1] == count - 1):
                    following += len(chunk)
                    _tell_end(chosen, batch_ends)
                if compiled.is_closed:
                    compiled = None
                continue
            if following < count:  # another chunk joins one that keeps waiting
                chunk = np.arange(following, min(following + size, count))
                following += len(chunk)
                chosen = chunk if blocks is None else np.take(blocks, chunk)
                batch = Batch(program, launch, chosen, liveness)
                next_one = Interpreter(
                    batch, arguments, allocations, observers, on_fault, changes, prepared.printed,
                    turns,
                )  # fmt: skip
                running.append(next_one)
            can_change = following < count
            can_change |= not all(interpreter.repetition.is_stuck for interpreter in running)
            for interpreter in list(running):
                file = prepared.source_file
                if _is_over(interpreter, longest, step_limit, file, can_change=can_change):
                    running.remove(interpreter)
                    _tell_end(interpreter.batch.placement.blocks, batch_ends)
    if compiled is not None:
        compiled.close()
    prepared.give_back()
    for end in hooks(observers, "end"):
        end()


def rehearse(prepared: Prepared, step_limit: int) -> None:
    """Run the rehearsal of a launch, if there is one, on copies of the arrays."""
    if prepared.rehearsal is not None:
        run(_on_copies(prepared.rehearsal), step_limit=step_limit)


def in_clusters(launch: Launch, blocks: Sequence[int] | None) -> Array:
    """Return the blocks of a launch, or the clusters of some blocks, cluster by cluster."""
    every = np.asarray(launch.in_clusters(np.arange(launch.blocks)))
    if blocks is None:
        return every
    of_clusters = every.reshape(-1, launch.cluster_blocks)
    return of_clusters[np.isin(of_clusters, blocks).any(axis=1)].reshape(-1)


def _begun(
    prepared: Prepared,
    allocations: Mapping[str, Allocation],
    observers: Sequence[Observer],
    step_limit: int,
) -> CompiledLaunch | None:
    """Return a launch in compiled code, None for one that NumPy has to run."""
    from gpusim.machine.compiled import evaluator

    return evaluator.launched(prepared, allocations, observers, step_limit)


def _tell_end(blocks: Array, batch_ends: Sequence[Callable[[Array], None]]) -> None:
    """Report blocks that have ended."""
    for batch_end in batch_ends:
        batch_end(blocks)


def _on_copies(prepared: Prepared) -> Prepared:
    """Return a launch on copies of the arrays."""
    arguments, copies = with_copies(prepared.arguments, prepared.arguments.keys())
    return replace(prepared, arguments=arguments, copies=copies)


def _is_over(
    interpreter: Interpreter,
    quantum: int,
    step_limit: int,
    file: str,
    *,
    can_change: bool,
) -> bool:
    """Run a batch for a while; return whether it has finished, or is abandoned with a fault."""
    if interpreter.run(quantum):
        return True
    if not can_change and interpreter.yields():
        return False
    if not can_change:
        interpreter.context.fault(livelock(*_standing(interpreter)))
        return True
    if interpreter.context.executed >= step_limit:
        ran = f"{step_limit} instructions"
        interpreter.context.fault(too_long(*_standing(interpreter), file, ran))
        return True
    return False


def _standing(interpreter: Interpreter) -> tuple[Program, list[int], Array]:
    """Return a batch's program, the pcs of its splits and its blocks."""
    batch = interpreter.batch
    return batch.program, batch.splits.pc.tolist(), batch.placement.blocks
