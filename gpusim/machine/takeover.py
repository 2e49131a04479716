"""The choice of an evaluator: launches go over to compiled code where that is faster.

A step costs NumPy about as much for one warp as for hundreds; compiled code costs the same for
each warp, but takes some tenths of a second to make, and copies the arrays. So NumPy begins the
launches of a program, and its time is estimated by what it computes, until a module is worth
loading, or making; those after that begin in compiled code, if that saves more than their arrays
take to be copied.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.host import fast
from gpusim.isa.ops import Program
from gpusim.launch.events import Observer, hooks
from gpusim.launch.grid import WARP_SIZE
from gpusim.machine.interpreter import Interpreter
from gpusim.program.flow import loop_bodies
from gpusim.program.memoisation import Same, once
from gpusim.program.repetition import may_repeat

if TYPE_CHECKING:
    from gpusim.machine.compiled.evaluator import CompiledLaunch
    from gpusim.machine.context import Context

Array = np.ndarray[Any, Any]

# Times of a Xeon of 2.1 GHz, in nanoseconds: a step of NumPy's, and of a warp's 32 values, integers
# and floats, with the accesses around them (fewer are computed where blocks, or lanes, have the
# same); a step of a warp in compiled code (20 to 40); a byte of an array, brought to it and half of
# the time back.
STEP_NS, WARP_NS, COMPILED_NS, BYTE_NS = 57_000, (60, 130), 30, 0.5
CALL_NS = 80_000  # a call of an evaluator without vector code, such as a logarithm, for one warp
# Making a module takes 15 ms and 0.35 ms an instruction, looking for it and loading it 10 ms and
# 25 us an instruction, the first of a process 60 ms more: it is done after ten times as long in
# NumPy, so that no launch takes 1.1 times as long.
STEPS, STEPS_EACH, LOAD_STEPS, LOAD_STEPS_EACH, FIRST_STEPS = 2_500, 60, 2_000, 4, 10_000
MOST_PROGRAMS = 256  # with a count of steps
QUANTUM = 500  # steps between two decisions: of a full chunk, half a second
# Steps in NumPy where equal iterations of loops are left out: of launches that go over, none. It
# does not depend on what is kept of a program, as streams do on whether iterations are left out.
# Where no loop can have any, or none was found in those that were examined, about as many as a
# module takes to be made: of 95 slow launches of `validate/others`, each loop with equal iterations
# shows that within 200 steps.
STEPS_WITHOUT_SKIP, STEPS_FOR_A_MODULE, STEPS_FOR_AN_INSTRUCTION = 5_000, 250, 1
LEFT_OUT_A_STEP = 64  # warp instructions: compiled code records them in a third of a step's time
MOST_WARPS = 1_500  # that run a step of these, above which NumPy is as fast
MOST_TURNS = 64  # until the blocks of a batch that part stand where compiled code goes on
_MODULES = "gpusim.machine.compiled.modules"


class NoSkipsError(Exception):
    """Nothing was left out of blocks that compiled code can run anew."""


@dataclass
class _Past:
    """What NumPy has run of a program in this process, and whether its module was looked for.

    `steps` are the time that compiled code would have saved, in steps of a single warp, and
    `warp_ns` that of a step of a warp among many, in the last launch with many; `compiled_ns` is
    its time in compiled code. A program that `has_module` has been in compiled code.
    """

    steps: int = 0
    warp_ns: float = max(WARP_NS)
    compiled_ns: float = COMPILED_NS
    was_looked_for: bool = False
    has_module: bool = False
    is_refused: bool = False


_past: dict[Same[Program], _Past] = {}


def forget() -> None:
    """Forget what programs NumPy has run."""
    _past.clear()


def _past_of(program: Program) -> _Past:
    """Return a program's past; the programs used longest ago are forgotten."""
    same = Same(program)
    _past[same] = found = _past.pop(same, None) or _Past()
    while len(_past) > MOST_PROGRAMS:
        del _past[next(iter(_past))]
    return found


def _fewest_steps() -> int:
    """Return the steps in NumPy before a module is looked for."""
    return LOAD_STEPS if _MODULES in sys.modules else FIRST_STEPS


def steps_for_a_module(program: Program) -> int:
    """Return the steps in NumPy above which a module is made for blocks that are recorded."""
    return STEPS_FOR_A_MODULE + STEPS_FOR_AN_INSTRUCTION * len(program.instructions)


def _fewest_unskipped(interpreter: Interpreter) -> int:
    """Return the steps in NumPy before a launch whose steps are recorded goes over."""
    program = interpreter.batch.program
    if interpreter.left_out:  # how much that is shows later
        return 2 * steps_for_a_module(program)
    is_known = interpreter.seems_not_to_repeat or not may_repeat(program)
    return steps_for_a_module(program) if is_known else STEPS_WITHOUT_SKIP


def _steps_saved(interpreter: Interpreter) -> int:
    """Return the time that compiled code would have saved of a batch, in steps of a single warp."""
    compiled = interpreter.warps_run * _past_of(interpreter.batch.program).compiled_ns
    more = _values_ns(interpreter) - compiled
    return max(0, interpreter.context.executed + int(more // STEP_NS))


def _values_ns(interpreter: Interpreter) -> int:
    """Return the time in which NumPy has computed a batch's values, beside that of its steps."""
    written = zip(interpreter.batch.values_written, WARP_NS, strict=True)
    return sum(count * each for count, each in written) // WARP_SIZE


@once
def _named(program: Program) -> frozenset[str]:
    """Return the arrays that a program names; compiled code copies others where it touches them."""
    return frozenset(row.memory.name for row in program.instructions if row.memory is not None)


def _copies_ns(context: Context) -> float:
    """Return the time in which a launch's arrays are copied."""
    named, held = _named(context.batch.program), context.allocations
    return BYTE_NS * sum(held[name].array.nbytes for name in named if name in held)


def _outlasts_copies(context: Context, past: _Past) -> bool:
    """Return whether a launch may save more than the time in which its arrays are copied."""
    batch = context.batch
    warps = batch.launch.blocks * batch.launch.warps_per_block
    saved = STEP_NS + warps * (past.warp_ns - past.compiled_ns)
    has_loops = bool(loop_bodies(batch.program))
    return saved > 0 if has_loops else len(batch.program.instructions) * saved > _copies_ns(context)


@dataclass
class Takeover:
    """Whether, and with which module, a launch goes over to compiled code.

    A launch whose steps are recorded goes over after a fixed number of them: whether iterations
    of loops are left out does not depend on what the process ran before. If it `gives_up`, it
    raises NoSkipsError instead: the blocks are run anew with nothing left out.
    """

    cc_major: int
    observers: Sequence[Observer]
    step_limit: int
    skips: bool = False
    begins_compiled: bool = False
    gives_up: bool = False
    is_open: bool = field(default_factory=fast.is_wanted)
    _launch: CompiledLaunch | None = None
    _chunk: tuple[int, int, bool] = (1, 0, True)
    _is_reordered: bool = False

    @cached_property
    def _is_recorded(self) -> bool:
        return self.skips or bool(hooks(self.observers, "compiled_steps"))

    def has_chunk(self, blocks: int, steps: int, left: int) -> int:
        """Return how many of the blocks that are left run next in compiled code.

        NumPy runs so many blocks at a time, which others join after `steps`.
        """
        most = blocks if self._launch is None else self._launch.most_blocks(blocks)
        self._chunk = blocks, steps, left <= most
        return min(most, left)

    @property
    def launch(self) -> CompiledLaunch | None:
        """The launch in compiled code, once it went over."""
        return self._launch if self.is_open else None

    def begins(self, context: Callable[[], Context], program: Program) -> None:
        """Let blocks begin in compiled code if their program has a module, or is worth one.

        A launch whose steps are recorded decides it for its first blocks, for all.
        """
        if self._launch is not None:
            return
        if self._is_recorded:
            if self.is_open and self.begins_compiled:
                self.begins_compiled = False
                self._go_over_whole(context())
            return
        past = _past_of(program)
        is_worth_it = past.steps >= _fewest_steps() or past.has_module
        if self.is_open and is_worth_it and not past.is_refused:
            first = context()
            if _outlasts_copies(first, past):
                self._go_over(first, past, past.steps)

    def quantum(self, steps: int) -> int:
        """Return the number of steps until the next decision, of at most `steps`."""
        least = STEPS_FOR_A_MODULE if self._is_recorded else min(QUANTUM, _fewest_steps())
        return min(steps, max(1, least)) if self.is_open else steps

    def runs(self, interpreter: Interpreter) -> bool:
        """Run the rest of a batch in compiled code; return False where NumPy goes on."""
        context = interpreter.context
        if self._is_recorded:
            return self._runs_whole(interpreter)
        past = _past_of(context.batch.program)
        steps = past.steps + _steps_saved(interpreter)
        if not self.is_open or steps < _fewest_steps() + _copies_ns(context) / STEP_NS:
            return False
        self._go_over(context, past, steps)
        self._keep_if_faster(interpreter)
        return self._launch is not None and self._arrives(interpreter) and self.goes_on(interpreter)

    def _runs_whole(self, interpreter: Interpreter) -> bool:
        """Run the rest of a batch with nothing left out; return False where NumPy goes on."""
        context = interpreter.context
        least = _fewest_unskipped(interpreter) if self.skips else STEPS_WITHOUT_SKIP
        if not self.is_open or context.executed < least:
            return False
        self.is_open = self._saves_little(interpreter)
        if not self.is_open or interpreter.warps_run > MOST_WARPS * context.executed:
            return False
        self._go_over_whole(context)
        self._keep_if_faster(interpreter)
        self.is_open = self._launch is not None
        if self.is_open and self.gives_up:
            self.close()
            raise NoSkipsError
        return self.is_open and self._arrives(interpreter) and self.goes_on(interpreter)

    def _keep_if_faster(self, interpreter: Interpreter) -> None:
        """Leave a launch to NumPy where evaluators would be called too often, warp by warp."""
        launch = self._launch
        if launch is None:
            return
        past = _past_of(interpreter.batch.program)
        past.compiled_ns = COMPILED_NS + CALL_NS * launch.called_share
        numpys = interpreter.context.executed * STEP_NS + _values_ns(interpreter)
        if interpreter.warps_run * past.compiled_ns > numpys:
            launch.close()
            self._launch, self.is_open = None, False

    def _saves_little(self, interpreter: Interpreter) -> bool:
        """Return whether compiled code takes less time for all than NumPy for what is not left out.

        Blocks of which some iterations were left out can only be run anew.
        """
        steps = interpreter.context.executed if self.gives_up else 0
        return interpreter.left_out <= LEFT_OUT_A_STEP * steps

    def _go_over_whole(self, context: Context) -> None:
        from gpusim.machine.compiled import evaluator, modules

        if evaluator.serves(self.observers, self.cc_major):
            with suppress(evaluator.RefusedError):
                self._launch = evaluator.launched(
                    context, self.cc_major, self.observers, modules.compiled
                )

    def _arrives(self, interpreter: Interpreter) -> bool:
        """Run on until all splits stand where compiled code goes on; return whether they do."""
        assert self._launch is not None
        for _ in range(MOST_TURNS):
            if self._launch.takes(interpreter.batch) or interpreter.run(1, begins_turn=False):
                return True
        return False

    def has_run(self, interpreter: Interpreter) -> None:
        """Count the steps of a batch that NumPy has run."""
        past = _past_of(interpreter.batch.program)
        past.steps += _steps_saved(interpreter)
        steps, warps = interpreter.context.executed, interpreter.warps_run
        if warps > MOST_WARPS * steps:
            past.warp_ns = _values_ns(interpreter) / warps

    def _go_over(self, context: Context, past: _Past, steps: int) -> None:
        """Make, load or find the module of a program that NumPy has run for so many steps."""
        from gpusim.machine.compiled import evaluator, modules

        find, count = modules.known, len(context.batch.program.instructions)
        if steps >= STEPS + STEPS_EACH * count:
            find = modules.compiled
        elif steps >= LOAD_STEPS + LOAD_STEPS_EACH * count and not past.was_looked_for:
            find, past.was_looked_for = modules.loaded, True
        self.is_open = not past.is_refused and evaluator.serves(self.observers, self.cc_major)
        if not self.is_open:
            return
        try:
            self._launch = evaluator.launched(context, self.cc_major, self.observers, find)
        except evaluator.RefusedError:
            past.is_refused = True
        past.has_module |= self._launch is not None
        self.is_open = self._launch is not None or find is not modules.compiled

    def goes_on(self, interpreter: Interpreter) -> bool:
        """Run a batch of a launch that went over; return False where NumPy has to run it."""
        if not len(interpreter.batch.splits):
            return True
        keeps = not self.skips
        return self._is_done(
            lambda launch: launch.run(interpreter.context, self.step_limit, keeps_results=keeps)
        )

    def runs_anew(self, blocks: Array) -> bool:
        """Run blocks from their start; return False where NumPy has to run them."""
        keeps = not self.skips
        return self._is_done(
            lambda launch: launch.run_anew(blocks, self.step_limit, keeps_results=keeps),
            len(blocks),
        )

    def _is_done(self, run: Callable[[CompiledLaunch], None], blocks: int = 0) -> bool:
        """Run some blocks; return False where NumPy has to.

        Warps take turns where that shows, of as many blocks as NumPy runs at a time.
        """
        from gpusim.machine.compiled.evaluator import Chunk
        from gpusim.machine.compiled.instance import LeftError

        assert self._launch is not None
        self._launch.chunk = Chunk(*self._chunk)
        try:
            run(self._launch)
        except LeftError:
            ordered = self._launch.in_order()
            self._is_reordered = ordered is not None
            if ordered is not None and blocks <= self._chunk[0]:
                self._launch.close()
                self._launch = ordered
                return self._is_done(run, blocks)
            self.is_open = False
        return self.is_open

    def close(self) -> None:
        """End the launch."""
        if self._launch is not None:
            self._launch.close()
            if not self.is_open and not self.skips and not self._is_reordered:
                _past_of(self._launch.program).is_refused = True
