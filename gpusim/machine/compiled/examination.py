"""Checks of launches in compiled code.

Compiled code compares each access with the last ones to its element, and reports only
floating-point sums. A launch with any other possible finding runs a second time, and the steps that
rules need are written down, with faults of memory accesses. Deadlocks, and instructions without
compiled form, are left to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np

from gpusim.errors import GpusimError, KernelFault, NoProgressError
from gpusim.host.kept import Recent
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.prepared import Prepared
from gpusim.machine.banks import allocated
from gpusim.machine.compiled import arrays, evaluator, memory, modules
from gpusim.machine.compiled.checked_steps import Listener
from gpusim.machine.compiled.detection import Cells, Detection, Examined
from gpusim.machine.compiled.instance import (
    LeftError,
    OthersJoinError,
    StandsStillError,
    TakesAdditions,
)
from gpusim.machine.compiled.kinds import BULK, HANDLED
from gpusim.machine.compiled.modules import Compiled
from gpusim.machine.compiled.one_warp import Effects
from gpusim.machine.compiled.places import Variant
from gpusim.machine.compiled.standing import standing
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.context import Context, OnFault
from gpusim.machine.state import Batch
from gpusim.machine.storage import Allocation
from gpusim.program.liveness import Liveness
from gpusim.typing import Array

MOST_PROGRAMS = 256
FIRST_LOOK = 1 << 10  # steps of a listener, at 10 to 20,000 a second, before progress is sampled
_CALLED = HANDLED | BULK  # kinds of instructions that are called with all arrays
NO_CELLS = Cells(0, 0, 0, 0, 0)

_refused: Recent[Program, None] = Recent(MOST_PROGRAMS)


def forget() -> None:
    """Forget the programs with possible findings."""
    _refused.clear()


class Limits(NamedTuple):
    """The most `steps` of a block; where warps take turns, the blocks that do so at a time.

    Others join these after `quantum` steps. `file` is that of the program's lines, if any. `blocks`
    are those to run, cluster by cluster.
    """

    steps: int
    chunk: int
    quantum: int
    file: str
    blocks: Array


def examined(
    prepared: Prepared, detection: Detection, cells: Cells, limits: Limits, added: TakesAdditions
) -> Examined | None:
    """Run a launch; None, with arrays as they were, where a rule might have a finding.

    `added` takes the additions to floating-point sums.
    """
    program, allocations = prepared.program, allocated(prepared)
    if program in _refused:
        return None
    if not _is_possible(prepared, allocations.values(), cells):
        return None
    context = _context(prepared, allocations)
    with np.errstate(all="ignore"):
        variant = evaluator.variant_of(context, prepared.cc.major, (), detection)
        found = _attempted(context, variant, cells, limits, added)
    if found is None:
        _refused[program] = None
        return None
    prepared.give_back()
    return found


def written_down(
    prepared: Prepared,
    asked: Detection,
    limits: Limits,
    added: TakesAdditions,
    listener: Listener,
    takes: Callable[[Examined], bool],
) -> bool:
    """Run a launch and report its steps to a listener; False, with arrays unchanged, on failure.

    `added` takes the additions to floating-point sums, `takes` the counts at the end, and returns
    whether the findings are complete. OthersJoinError where blocks wait for others than the ones
    that run at a time.
    """
    allocations = allocated(prepared)
    if not _is_possible(prepared, allocations.values(), NO_CELLS):
        return False
    context = _context(prepared, allocations, listener.on_fault)
    context.printed = prepared.printed
    before = Effects(context)
    try:
        with np.errstate(all="ignore"):
            compiled = modules.compiled(evaluator.variant_of(context, prepared.cc.major, (), asked))
            with closing(_Examination(context, compiled, NO_CELLS, limits)) as run:
                has_ended = run.result(added, listener, takes) is not None
    except OthersJoinError:
        before.undo()
        raise
    except (GpusimError, NotDerivedError, LeftError):
        has_ended = False
    if has_ended and listener.keeps_results:
        prepared.give_back()
    else:
        before.undo()
    return has_ended


def _end(fault: KernelFault) -> None:
    raise fault


def _context(
    prepared: Prepared, allocations: Mapping[str, Allocation], on_fault: OnFault = _end
) -> Context:
    """Return a launch's context; a fault that only checks report ends the attempt."""
    liveness = Liveness(prepared.program)
    one = Batch(prepared.program, prepared.launch, np.zeros(1, np.int64), liveness)
    return Context(one, prepared.arguments, allocations, on_fault=on_fault)


def _is_possible(prepared: Prepared, every: Iterable[Allocation], cells: Cells) -> bool:
    """Return whether compiled code may run a launch: its memory is not too large."""
    if any(one.flat is None for one in every):
        return False
    size = sum(one.stop - one.start for one in every)
    if size + cells.size(prepared.launch.warps_per_block) > arrays.MOST_BYTES:
        return False
    return evaluator.serves((), prepared.cc.major)


def _attempted(
    context: Context, variant: Variant, cells: Cells, limits: Limits, added: TakesAdditions
) -> Examined | None:
    try:
        with closing(_Examination(context, modules.compiled(variant), cells, limits)) as one:
            found = one.result(added)
            if found is not None or not one.is_disordered:
                return found
        with closing(_Examination(context, modules.reordered(variant), cells, limits)) as one:
            return one.result(added)
    except (GpusimError, NotDerivedError, OthersJoinError):
        return None


class _Examination:
    def __init__(self, context: Context, compiled: Compiled, cells: Cells, limits: Limits) -> None:
        self._context, self._cells, self._made = context, cells, compiled.made
        launch, self._limits, self._steps = context.batch.launch, limits, 0
        self._at_once = min(limits.chunk, launch.blocks) if self._made.shared.in_order else 1
        self._allocations = context.allocations
        self._begin = -(-arrays.arrays_end(self._made, self._allocations) // 64) * 64
        self._end = self._begin + cells.size(launch.warps_per_block, self._at_once)
        if self._end > arrays.MOST_BYTES:
            raise NotDerivedError("elements beyond linear memory")
        # Its own instance: the memory of a new one is zero.
        self._instance = compiled.new_instance()

    @property
    def is_disordered(self) -> bool:
        """Whether warps came to an order-dependent atomic out of NumPy's order."""
        return self._instance.is_disordered

    def result(
        self,
        added: TakesAdditions,
        listener: Listener | None = None,
        takes: Callable[[Examined], bool] = bool,
    ) -> Examined | None:
        """Run the launch; None if it does not come to its end."""
        launch, instance = self._context.batch.launch, self._instance
        instance.turns = None if listener is None else listener.turns
        most = self._at_once
        if not self._made.shared.in_order:
            most = evaluator.most_blocks(self._made, launch.warps_per_block)
        try:
            every = self._limits.blocks
            for first in range(0, len(every), most):
                self._run(every[first : first + most], first, added, listener)
                self._steps += instance.value("steps")
        except OthersJoinError:
            raise
        except LeftError:
            return None
        rows = self._context.batch.program.instructions
        lowest = {
            pc: int(instance.memory[at : at + 8].view(np.int64)[0]) - 1
            for pc, at in self._made.lowest_at.items()
        }
        found = Examined(
            instance.value("accesses"),
            instance.value("ordered"),
            instance.value("free"),
            instance.value("local_accesses"),
            instance.value("of_unknown_arrays"),
            _ran(instance.memory, self._made, rows),
            {pc: element for pc, element in lowest.items() if element >= 0},
            bool(instance.value("overflows")),
            self._steps,
        )
        if not takes(found):
            return None
        if instance.arrays is not None and (listener is None or listener.keeps_results):
            instance.arrays.give(instance.memory)
        return found

    def close(self) -> None:
        """Free the memory."""
        self._instance.close()

    def _run(
        self, blocks: Array, first: int, added: TakesAdditions, listener: Listener | None
    ) -> None:
        """Run blocks, before which a number of others have run."""
        context, made, instance = self._context, self._made, self._instance
        place = memory.BatchMemory(made, context, self._end, blocks)
        if listener is not None:
            place.check(context, listener)
            place.first_look = FIRST_LOOK
        if place.end > arrays.MOST_BYTES:
            raise LeftError("a batch larger than linear memory")
        calls = any(OPS[row.op].kind in _CALLED for row in context.instructions)
        instance.bring(place, context, in_chunks=not calls, has_arrays=bool(first))
        if not first:
            instance.set(self._cells.settings(self._begin, self._at_once))
            instance.set({"block_warps": place.warps})
        instance.set({"first_block": 1 + int(blocks[0])})
        place.is_last = first + len(blocks) == len(self._limits.blocks)
        steps = self._limits.steps
        place.most_steps = steps if place.is_last else min(self._limits.quantum, steps)
        if place.checked is None:
            instance.run(place, context, 0, steps, added=added)
            return
        try:
            instance.run(place, context, 0, steps, self._limits.file, added=added)
        except StandsStillError as error:
            if not place.is_last:
                raise OthersJoinError(str(error)) from error
            place.checked.finish()
            known = self._limits.file, f"{steps} instructions"
            program = context.batch.program
            place.checked.on_fault(standing(instance.memory, place, program, *known))
        except NoProgressError as fault:
            place.checked.finish()
            place.checked.on_fault(fault)
        else:
            place.checked.finish()


def _ran(held: Array, made: Translation, rows: Sequence[Instruction]) -> Array:
    """Return the instructions that ran for some lane, as a mask."""
    count = made.length
    blocks, guarded = held[made.ran_at : made.ran_at + 2 * count].view(np.bool_).reshape(2, count)
    lengths = np.diff([*made.starts, count])
    may_fault = made.shared.checking
    is_guarded = np.array([
        row.guard is not None or (may_fault and row.memory is not None) for row in rows
    ])  # fmt: skip
    return np.where(is_guarded, guarded, np.repeat(blocks[made.starts], lengths))
