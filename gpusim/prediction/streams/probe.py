"""Execution of some of a launch's blocks for their streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from gpusim import machine
from gpusim.isa.ops import ANY_ARRAY, OPS
from gpusim.launch.events import Observer
from gpusim.launch.prepared import Prepared
from gpusim.machine.storage import with_copies
from gpusim.machine.takeover import NoSkipsError, steps_for_a_module
from gpusim.prediction.streams.parametric import Parameters, runs_of
from gpusim.prediction.streams.recorder import Recorder
from gpusim.prediction.streams.stream import BlockStream
from gpusim.prediction.streams.stretches import Stretches, TouchRecorder
from gpusim.typing import Array

AnyRecorder = TypeVar("AnyRecorder", Recorder, TouchRecorder)

# Blocks executed together after their predecessors: the machine takes about as long for them as
# for one.
TOGETHER = 8
MOST_FOLLOWED = 4  # blocks of a launch that are run alone, to see which others are like them


class UnsoundError(Exception):
    """Skipped iterations differ from the executed ones that represent them."""


class Probe:
    """Executes blocks of a launch, each once, and keeps their distinct streams in order.

    With `skips`, loops of equal iterations are executed in part and stored once. With `in_order`,
    the predecessors of a block are executed before it, and the blocks' stretches are kept in
    `touched`. It `is_compiled` once compiled code ran blocks, with nothing left out of them.
    """

    def __init__(
        self, prepared: Prepared, step_limit: int, *, skips: bool, in_order: bool = False
    ) -> None:
        self.prepared = prepared
        self.streams: list[BlockStream] = []
        self.touched: dict[int, Stretches] = {}
        self.is_compiled = False
        self._steps, self._has_skipped = 0, False
        self._numbers: dict[bytes, int] = {}
        self._kinds: dict[int, int] = {}
        self._step_limit, self._skips, self._in_order = step_limit, skips, in_order
        self._follows = True  # until a block cannot be followed, or is like none that was

    def __len__(self) -> int:
        """Return the number of executed blocks."""
        return len(self._kinds)

    @property
    def kept(self) -> int:
        """Instructions of all executed blocks, those of a loop counted once."""
        return sum(self.streams[kind].kept for kind in self._kinds.values())

    @property
    def recorded(self) -> int:
        """Instructions of all executed blocks; where iterations are left out, without these."""
        streams = self.streams
        counts = [s.instructions if self.is_compiled else s.kept for s in streams]
        return sum(counts[kind] for kind in self._kinds.values())

    @property
    def has_no_skips(self) -> bool:
        """Whether no iterations of loops were left out, of blocks that are worth compiled code."""
        is_long = self._skips and self._steps >= steps_for_a_module(self.prepared.program)
        return self.is_compiled or (is_long and not self._has_skipped)

    def kinds(self, blocks: Array) -> Array:
        """Return the indices into `streams` of executed blocks."""
        return np.array([self._kinds[b] for b in blocks.ravel().tolist()]).reshape(blocks.shape)

    def missing(self, *blocks: Array) -> list[int]:
        """Return the blocks not yet executed, in order."""
        return sorted({b for some in blocks for b in some.ravel().tolist()} - set(self._kinds))

    def run(self, *blocks: Array) -> None:
        """Execute the blocks not yet executed.

        Raises UnsoundError if skipped iterations differ from the executed ones.
        """
        missing = self.missing(*blocks)
        if not missing:
            return
        recorder = self._recorder()
        streams = recorder.streams
        if self._in_order:
            self._run_in_order(without_results(self.prepared), missing, recorder)
        elif alike := self._alike(missing):
            streams = alike
        elif self._skips:
            recorder = _recorded(
                self.prepared, self._recorder, missing, self._step_limit, self.is_compiled
            )
            streams = recorder.streams
        else:
            self._run(without_results(self.prepared), missing, recorder)
        self.is_compiled |= recorder.is_compiled
        self._steps += recorder.steps
        self._has_skipped |= recorder.has_skipped
        if recorder.unsound:
            raise UnsoundError
        for number, stream in sorted(streams.items()):
            kind = self._numbers.setdefault(stream.key, len(self.streams))
            if kind == len(self.streams):
                self.streams.append(stream)
            self._kinds[number] = kind

    def _alike(self, blocks: Sequence[int]) -> dict[int, BlockStream]:
        """Return the streams of blocks like single ones that are followed, or were.

        None are returned where a block is like no other: blocks that are run together share the
        steps at which loops are left out.
        """
        runs = runs_of(self.prepared)
        if runs is None or not self._follows:
            return {}
        parameters = Parameters(self.prepared)
        found = runs.find(parameters, blocks)
        for _ in range(MOST_FOLLOWED):
            left = [block for block in blocks if block not in found]
            if not left:
                break
            prepared = without_results(self.prepared)
            self._follows = runs.follow(prepared, parameters, left[0], self._step_limit)
            if not self._follows:
                break
            found |= runs.find(parameters, left)
        is_whole = len(found) == len(blocks)
        self._follows &= is_whole
        return {block: run.stream for block, (run, _) in found.items()} if is_whole else {}

    def _recorder(self) -> Recorder:
        return Recorder(self.prepared, folds=self._skips)

    def _run(
        self,
        prepared: Prepared,
        blocks: Sequence[int],
        recorder: Recorder,
        *others: Observer,
    ) -> None:
        machine.run(
            prepared,
            observers=(recorder, *others),
            step_limit=self._step_limit,
            blocks=blocks,
            has_no_skips=self.is_compiled,
        )

    def _run_in_order(self, prepared: Prepared, blocks: Sequence[int], recorder: Recorder) -> None:
        """Execute blocks in small groups, each after most of its predecessors.

        The last block is executed alone, after all others.
        """
        begin, touches, last = 0, TouchRecorder(prepared), len(blocks) - 1
        for first in (*range(0, last, TOGETHER), last):
            few = blocks[first : min(first + TOGETHER, max(first + 1, last))]
            middle = few[len(few) // 2]
            others = np.setdiff1d(np.arange(begin, middle), blocks).tolist()
            machine.run(prepared, step_limit=self._step_limit, blocks=others)
            self._run(prepared, few, recorder, touches)
            begin = middle
        self.touched |= touches.stretches


def touched_by(
    prepared: Prepared, blocks: Sequence[int], *, has_no_skips: bool = False
) -> dict[int, Stretches]:
    """Execute blocks, loops of equal iterations in part; return the stretches of each.

    With `has_no_skips` it is known of other blocks that there are no such loops.
    """
    runs = runs_of(prepared)
    found = {} if runs is None else runs.find(Parameters(prepared), blocks)
    if found and len(found) == len(blocks):
        longest = max(run.stretches.steps for run, _ in found.values())
        alike = {block: run.stretches_moved(far) for block, (run, far) in found.items()}
        return {block: replace(one, steps=longest) for block, one in alike.items()}
    limit = machine.DEFAULT_STEP_LIMIT
    return _recorded(
        prepared, lambda: TouchRecorder(prepared), blocks, limit, has_no_skips
    ).stretches


def _recorded(
    prepared: Prepared,
    made: Callable[[], AnyRecorder],
    blocks: Sequence[int],
    step_limit: int,
    has_no_skips: bool,
) -> AnyRecorder:
    """Run blocks with equal iterations left out; return the recorder that was made for them.

    Blocks of which none are left out are run anew, in compiled code, some at a time.
    """

    def run(recorder: AnyRecorder, *, is_whole: bool) -> AnyRecorder:
        machine.run(
            without_results(prepared),
            observers=(recorder,),
            step_limit=step_limit,
            blocks=blocks,
            on_skip=recorder.skip,
            has_no_skips=is_whole,
            gives_up=not is_whole,
        )
        return recorder

    try:
        return run(made(), is_whole=has_no_skips)
    except NoSkipsError:
        return run(made(), is_whole=True)


def without_results(prepared: Prepared) -> Prepared:
    """Return the launch with copies of the arrays that the kernel writes."""
    written = {
        instruction.memory.name
        for instruction in prepared.program.instructions
        if instruction.memory is not None
        and instruction.memory.space == "global"
        and OPS[instruction.op].writes_memory
    }
    if ANY_ARRAY in written:
        written = set(prepared.arguments)
    arguments, copies = with_copies(prepared.arguments, written)
    return replace(prepared, arguments=arguments, copies=copies)
