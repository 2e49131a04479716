"""The SIMT machine: runs a `Program` for a launch and reports each step to observers.

Launches begin in compiled code (`compiled/`); NumPy runs those that it does not serve, and blocks
that do not end there. Blocks run in chunks, so memory does not grow with the grid. A chunk that
keeps waiting is joined by the next one: blocks may wait for others, as they do on a GPU that holds
many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gpusim.host import fast
from gpusim.isa.ops import Program
from gpusim.launch.events import Observer, hooks
from gpusim.launch.grid import ComputeCapability, Launch, whole_number
from gpusim.launch.prepared import Prepared, named_in_interrupts
from gpusim.machine.banks import allocated
from gpusim.machine.context import OnFault
from gpusim.machine.host_allocator import keep_freed_memory
from gpusim.machine.interpreter import Interpreter
from gpusim.machine.livelock import Changes
from gpusim.machine.loops import MaySkip, OnSkip
from gpusim.machine.no_progress import livelock, too_long
from gpusim.machine.state import Batch
from gpusim.machine.storage import Allocation, with_copies
from gpusim.machine.takeover import STEPS_FOR_A_MODULE, Takeover
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

    Local memory is there for all their threads at once.
    """
    lanes_each = launch.warps_per_block * 32
    lanes = REGISTERS_PER_CHUNK // max(program.registers, 1)
    lanes = min(max(lanes, FEWEST_LANES), MOST_LANES)
    blocks = min(2048, lanes // lanes_each)
    return max(1, min(blocks, LOCAL_BYTES_PER_CHUNK // max(program.local_bytes * lanes_each, 1)))


@named_in_interrupts
def run(
    prepared: Prepared,
    *,
    observers: Sequence[Observer] = (),
    step_limit: int = DEFAULT_STEP_LIMIT,
    blocks_per_chunk: int | None = None,
    progress: Progress | None = None,
    blocks: Sequence[int] | None = None,
    on_skip: OnSkip | None = None,
    may_skip: MaySkip | None = None,
    on_fault: OnFault | None = None,
    resident: int | None = None,
    turns: Turns | None = None,
    has_no_skips: bool = False,
    gives_up: bool = False,
) -> None:
    """Run every block of a launch, or only `blocks`. Arrays among its arguments hold the results.

    `step_limit` is the most instructions that one block may run; NoProgressError beyond.
    `progress` is called with the number of finished blocks. With `on_skip`, repeated iterations of
    a loop are left out and it is called with them; the arrays then hold no
    results; `has_no_skips` says that nothing was left out of other blocks of this launch, so that
    these may begin in compiled code, which leaves out nothing; with `gives_up` NoSkipsError is
    raised as soon as that is known of these, in the midst of them. With `may_skip` only iterations
    are left out if it accepts their steps. `on_fault` is called with each fault instead of raising
    it, and the rest goes on: lanes skip the access, blocks in deadlock are abandoned. At most
    `resident` blocks are run at a time: others start where some end. With `turns` warps and blocks
    take turns in another order.

    A launch that has a rehearsal has it before it runs as a whole: faults there are its own.
    """
    step_limit = whole_number(step_limit, "the step limit", least=1)
    if prepared.rehearsal is not None and blocks is None and on_skip is None:
        run(_on_copies(prepared.rehearsal), step_limit=step_limit)
    program, launch, arguments = prepared.program, prepared.launch, prepared.arguments
    allocations = allocated(prepared)
    size = blocks_per_chunk or chunk_blocks(program, launch)
    begin_compiled = partial(
        _begun, prepared, allocations, observers, step_limit, keeps_results=on_skip is None
    )
    is_plain = on_fault is None and resident is None and turns is None
    compiled = begin_compiled() if is_plain and (on_skip is None or has_no_skips) else None
    takeover = Takeover(begin_compiled, is_open=gives_up)
    for begin in hooks(observers, "begin"):
        begin(program, launch)
    batch_ends = hooks(observers, "batch_end")
    count = launch.blocks if blocks is None else len(blocks)
    longest = min(QUANTUM, step_limit // TURNS + 1)
    following, finished = 0, 0
    running: list[Interpreter] = []
    changes, liveness = Changes(), Liveness(program)
    keep_freed_memory()

    with np.errstate(all="ignore"):
        while running or following < count:
            if compiled is not None and not running:
                chunk = np.arange(following, min(following + compiled.most_blocks(size), count))
                chosen = chunk if blocks is None else np.take(blocks, chunk)
                if compiled.has_run(chosen, size, longest, is_last=chunk[-1] == count - 1):
                    following += len(chunk)
                    finished += len(chunk)
                    _tell_end(chosen, finished, batch_ends, progress)
                if compiled.is_closed:
                    compiled = None
                continue
            while following < count and _has_room(running, size, resident):
                chunk = np.arange(following, min(following + size, count))
                following += len(chunk)
                chosen = chunk if blocks is None else np.take(blocks, chunk)
                batch = Batch(program, launch, chosen, liveness)
                next_one = Interpreter(
                    batch, arguments, allocations, observers, on_skip, on_fault, changes, may_skip,
                    prepared.printed, turns,
                )  # fmt: skip
                running.append(next_one)
                if resident is None:
                    break  # another chunk joins only where this one keeps waiting
            can_change = following < count and _has_room(running, size, resident)
            can_change |= not all(interpreter.repetition.is_stuck for interpreter in running)
            for interpreter in list(running):
                if _is_over(
                    interpreter,
                    longest,
                    step_limit,
                    takeover,
                    prepared.source_file,
                    can_change=can_change,
                ):
                    running.remove(interpreter)
                    finished += len(interpreter.batch.placement.blocks)
                    _tell_end(interpreter.batch.placement.blocks, finished, batch_ends, progress)
    if compiled is not None:
        compiled.close()
    prepared.give_back()
    for end in hooks(observers, "end"):
        end()


def _begun(
    prepared: Prepared,
    allocations: Mapping[str, Allocation],
    observers: Sequence[Observer],
    step_limit: int,
    *,
    keeps_results: bool,
) -> CompiledLaunch | None:
    """Return a launch in compiled code, None for one that is left to NumPy."""
    if not fast.is_wanted():
        return None
    from gpusim.machine.compiled import evaluator

    return evaluator.launched(
        prepared, allocations, observers, step_limit, keeps_results=keeps_results
    )


def _tell_end(
    blocks: Array,
    finished: int,
    batch_ends: Sequence[Callable[[Array], None]],
    progress: Progress | None,
) -> None:
    """Report blocks that have ended."""
    for batch_end in batch_ends:
        batch_end(blocks)
    if progress is not None:
        progress(finished)


def _on_copies(prepared: Prepared) -> Prepared:
    """Return a launch on copies of the arrays."""
    arguments, copies = with_copies(prepared.arguments, prepared.arguments.keys())
    return replace(prepared, arguments=arguments, copies=copies)


def _is_over(
    interpreter: Interpreter,
    quantum: int,
    step_limit: int,
    takeover: Takeover,
    file: str,
    *,
    can_change: bool,
) -> bool:
    """Run a batch for a while; return whether it has finished, or is abandoned with a fault."""
    begin, stop = interpreter.context.executed, interpreter.context.executed + quantum
    part = min(quantum, STEPS_FOR_A_MODULE) if takeover.is_open else quantum
    while interpreter.context.executed < stop and not interpreter.repetition.is_stuck:
        if interpreter.run(part, begins_turn=interpreter.context.executed == begin):
            return True
        takeover.look(interpreter)
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


def _has_room(running: Sequence[Interpreter], blocks: int, resident: int | None) -> bool:
    """Return whether `blocks` more blocks may run at a time."""
    if resident is None:
        return True
    held = sum(len(interpreter.batch.placement.blocks) for interpreter in running)
    return not running or held + blocks <= resident


def _standing(interpreter: Interpreter) -> tuple[Program, list[int], Array]:
    """Return a batch's program, the pcs of its splits and its blocks."""
    batch = interpreter.batch
    return batch.program, batch.splits.pc.tolist(), batch.placement.blocks
