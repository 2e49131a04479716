"""Launches in compiled code, some blocks at a time.

Arrays are copied back when the blocks have ended; otherwise NumPy runs them from their start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpusim.errors import GpusimError, KernelFault
from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Program
from gpusim.launch.events import Observer, hooks
from gpusim.launch.prepared import Prepared
from gpusim.machine import values
from gpusim.machine.compiled import arrays, memory, modules, parts
from gpusim.machine.compiled.detection import Detection
from gpusim.machine.compiled.instance import Instance, LeftError, StandsStillError, TrappedError
from gpusim.machine.compiled.modules import Compiled
from gpusim.machine.compiled.places import Variant
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.compiled.totals import totals_of
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.context import Context
from gpusim.machine.pace import Pacing
from gpusim.machine.state import Batch
from gpusim.machine.storage import Allocation
from gpusim.program.flow import loop_bodies
from gpusim.program.liveness import Liveness
from gpusim.typing import Array

# Of blocks that run at a time: their sums, and their warps, as progress is reported in between.
MOST_SUMS_BYTES = 64 << 20
MOST_WARPS = 1 << 17
# Blocks that run before others use several threads: they show the instructions of a block.
FIRST_PART, LEAST_FIRST_WARPS = 16, 512
MOST_RECORDED_WARPS = 32  # where all of their steps are kept


class CompiledLaunch:
    """A launch in compiled code: its module, and its arrays in linear memory.

    Without `keeps_results` arrays stay as they were.
    """

    def __init__(
        self,
        context: Context,
        observers: Sequence[Observer],
        variant: Variant,
        step_limit: int,
        file: str,
        *,
        keeps_results: bool,
    ) -> None:
        self._file = file
        self._variant, self._step_limit, self._keeps_results = variant, step_limit, keeps_results
        self.is_closed = False
        self._allocations = context.allocations
        self._context = context
        self._listeners, self._steps = hooks(observers, "ran"), hooks(observers, "compiled_steps")
        self._whole_steps = not all(
            one.omitted_steps for one in observers if hooks([one], "compiled_steps")
        )
        self._watched = watched(observers)
        self._use(modules.compiled(variant))

    def _use(self, compiled: Compiled) -> None:
        """Run further blocks by a module."""
        self._compiled, self._made = compiled, compiled.made
        # Without results, a few blocks run.
        self._most_bytes = arrays.MOST_BYTES if self._keeps_results else arrays.MOST_ADDRESSED
        self._arrays_end = arrays.arrays_end(self._made, self._allocations, self._most_bytes)
        self._instance = compiled.instance()
        self._has_arrays = False
        size = self._arrays_end - arrays.arrays_begin(self._made)
        self._threads = 1
        alone = not (self._made.shared.in_order or self._made.cluster_at or self._made.bulk_at)
        if modules.engine() is None:
            alone = False
        if alone and not (self._steps or compiled.is_dependent):
            self._threads = parts.threads(self.program, self._made, size)

    def most_blocks(self, chunk: int) -> int:
        """Return the number of blocks to run at a time, where NumPy runs a chunk of them."""
        launch = self._context.batch.launch
        warps = launch.warps_per_block
        if self._made.shared.in_order:
            return chunk
        if self._steps:
            return max(1, MOST_RECORDED_WARPS // warps)
        most = most_blocks(self._made, warps)
        if self._threads > 1 and not self._compiled.instructions_each and loop_bodies(self.program):
            most = min(most, max(launch.blocks // FIRST_PART, LEAST_FIRST_WARPS // warps, 1))
        return most

    def has_run(self, blocks: Array, chunk: int, steps: int, *, is_last: bool) -> bool:
        """Run blocks from their start; return False, with arrays as they were, if they do not end.

        The launch is then closed and NumPy runs these blocks, or a module with NumPy's scheduling
        order does: at most `chunk` blocks at a time; further ones join them after `steps`, as in
        NumPy.
        """
        self._is_last, self._steps_alone = is_last, min(steps, self._step_limit)
        try:
            self._run_anew(blocks)
        except KernelFault:
            self._give_results()
            raise
        except LeftError as error:
            if not self._takes_turns():
                if isinstance(error, TrappedError):
                    self._raise_fault(blocks)
                if isinstance(error, StandsStillError):
                    self._instance.raise_deadlock()
                self.close()
                return False
            return len(blocks) <= chunk and self.has_run(blocks, chunk, steps, is_last=is_last)
        return True

    def _raise_fault(self, blocks: Array) -> None:
        """Run blocks again in code that tells its faults, and raise the one that ends the run.

        Arrays are then as the blocks have left them.
        """
        made = modules.reordered if self._made.shared.in_order else modules.compiled
        self._give_back()
        try:
            self._use(made(replace(self._variant, telling=True)))
            self._run_in_turn(blocks)
        except TrappedError:
            try:
                self._instance.raise_fault()
            except KernelFault:
                self._give_results()
                raise
        except (NotDerivedError, LeftError):
            return

    def _give_results(self) -> None:
        if self._keeps_results and self._instance.arrays is not None:
            self._instance.arrays.give(self._instance.memory)

    def _takes_turns(self) -> bool:
        """Switch to a module with NumPy's scheduling order, if the last run needed it."""
        if not self._instance.is_disordered:
            return False
        self._give_back()
        try:
            self._use(modules.reordered(self._variant))
        except (NotDerivedError, GpusimError, LeftError):
            self.is_closed = True
            return False
        return True

    def _run_anew(self, blocks: Array) -> None:
        """Run blocks from their start; LeftError if NumPy has to."""
        count = self._compiled.instructions_each * len(blocks)
        if self._threads > 1 and len(blocks) > 1 and count > parts.LEAST_INSTRUCTIONS:
            if self._has_run_parts(blocks):
                return
            self._threads, self._compiled.is_dependent = 1, True
        self._run_in_turn(blocks)

    def _run_in_turn(self, blocks: Array) -> None:
        """Run blocks one after the other.

        NoProgressError names the loop of a warp with many times more iterations than `step_limit`.
        """
        place = memory.BatchMemory(self._made, self._context, self._arrays_end, blocks)
        self._run(place)
        if self._threads > 1:
            self._compiled.instructions_each = parts.instructions_each(self._instance, place)

    def _run(self, place: memory.BatchMemory) -> None:
        instance, context = self._instance, self._context
        batch = context.batch
        if place.end > self._most_bytes:
            raise LeftError("a batch larger than linear memory")
        place.is_last = self._is_last
        place.most_steps = self._step_limit if self._is_last else self._steps_alone
        has_arrays, watched = self._has_arrays, self._watched.keys()
        try:
            instance.bring(place, context, watched, in_chunks=True, has_arrays=has_arrays)
        except NotDerivedError as error:
            raise LeftError(str(error)) from error
        self._has_arrays = True
        most_notes = max(self._watched.values(), default=0)
        instance.run(place, context, most_notes, self._step_limit, self._file)
        self._give_results()
        self._tell_steps(place, batch.program)
        self._tell_sums(instance, place, batch)

    def _has_run_parts(self, blocks: Array) -> bool:
        """Run blocks in several threads; return False where that may change their results."""
        chosen = np.array_split(blocks, min(self._threads, len(blocks)))
        others = [self._compiled.instance() for _ in chosen[1:]]
        made = [
            parts.Part(one, memory.BatchMemory(self._made, self._context, self._arrays_end, b))
            for one, b in zip([self._instance, *others], chosen, strict=True)
        ]
        self._has_arrays = False
        try:
            if any(one.place.end > self._most_bytes for one in made):
                return False
            if not parts.run_parts(
                made, self._context, self._step_limit, self._watched, self._file
            ):
                return False
            self._give_results()
            for one in made:
                self._tell_sums(one.instance, one.place, self._context.batch)
        finally:
            for other in others:
                other.close()
        return True

    def _tell_sums(self, instance: Instance, place: memory.BatchMemory, batch: Batch) -> None:
        if self._listeners:
            totals = totals_of(instance, place, batch)
            for listener in self._listeners:
                listener(totals)

    @property
    def program(self) -> Program:
        """The program that is launched."""
        return self._context.batch.program

    def _tell_steps(self, place: memory.BatchMemory, program: Program) -> None:
        if place.records is not None:
            shift = self._instance.shift
            made, placement, whole = self._made, place.placement, self._whole_steps
            for steps in place.records.steps(program, made, placement, shift, whole=whole):
                for listener in self._steps:
                    listener(steps)

    def close(self) -> None:
        """End the launch."""
        if not self.is_closed:
            self._give_back()
        self.is_closed = True

    def _give_back(self) -> None:
        """Free the instance for another launch, if the arrays all had elements."""
        if all(one.flat is not None for one in self._allocations.values()):
            self._compiled.give_back(self._instance)


def most_blocks(made: Translation, warps: int) -> int:
    """Return the number of blocks to run at a time, without recording, by their warps."""
    most = min(MOST_WARPS, MOST_SUMS_BYTES // (8 * made.sum_count + 16))
    return max(1, most // warps)


def watched(observers: Sequence[Observer]) -> dict[int, int]:
    """Return the blocks with steps of interest, and the most steps of each."""
    found: dict[int, int] = {}
    for observer in observers:
        found |= observer.watched()
    return found


def variant_of(
    context: Context,
    cc_major: int,
    observers: Sequence[Observer],
    detection: Detection | None = None,
    pacing: Pacing | None = None,
) -> Variant:
    """Return the variant of its program's code that a launch needs."""
    program = context.batch.program
    constants = (
        (pc, values.constant_value(context, program.instructions[pc]).dtype)
        for pc in _constants(program)
    )
    return Variant(
        program,
        tuple(constants),
        pairs=cc_major >= 7,
        counting=bool(hooks(observers, "ran")),
        watching=bool(watched(observers)),
        recording=bool(hooks(observers, "compiled_steps")),
        detection=detection,
        pacing=pacing,
    )


@once
def _constants(program: Program) -> tuple[int, ...]:
    """Return the pcs of a program that read constants of the launch."""
    rows = enumerate(program.instructions)
    return tuple(pc for pc, row in rows if OPS[row.op].kind == "constant" and row.dst)


def serves(observers: Sequence[Observer], cc_major: int) -> bool:
    """Return whether compiled code supports this machine, and such launches."""
    return cc_major >= 2 and is_observable(observers)


def launched(
    prepared: Prepared,
    allocations: Mapping[str, Allocation],
    observers: Sequence[Observer],
    step_limit: int,
) -> CompiledLaunch | None:
    """Return a launch in compiled code, None for one that NumPy has to run."""
    if not serves(observers, prepared.cc.major):
        return None
    program, launch = prepared.program, prepared.launch
    one = Batch(program, launch, np.zeros(1, np.int64), Liveness(program))
    context = Context(one, prepared.arguments, allocations)
    context.printed = prepared.printed
    try:
        variant = variant_of(context, prepared.cc.major, observers)
        file, keeps_results = prepared.source_file, prepared.keeps_results
        return CompiledLaunch(
            context, observers, variant, step_limit, file, keeps_results=keeps_results
        )
    except (NotDerivedError, GpusimError, LeftError):
        return None


def is_observable(observers: Sequence[Observer]) -> bool:
    """Return whether all observers take sums, or columns, in place of steps."""
    events = ("step", "barrier_opened", "barrier_arrived")
    mine = {o.__self__ for name in events for o in hooks(observers, name)}  # type: ignore[attr-defined]
    served = (*hooks(observers, "ran"), *hooks(observers, "compiled_steps"))
    return mine <= {o.__self__ for o in served}  # type: ignore[attr-defined]
