"""Execution of some of a launch's blocks for their streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpusim import machine
from gpusim.isa.ops import ANY_ARRAY, BULK_STORE, OPS
from gpusim.launch.prepared import Prepared
from gpusim.machine.storage import with_copies
from gpusim.prediction.streams.folding import UnsteadyError
from gpusim.prediction.streams.phases import recorder_of, touch_recorder_of
from gpusim.prediction.streams.recorder import Recorder
from gpusim.prediction.streams.stream import BlockStream
from gpusim.prediction.streams.stretches import Stretches, TouchRecorder
from gpusim.typing import Array

# Blocks executed together after their predecessors: fewer calls of the machine.
TOGETHER = 8


class Probe:
    """Executes blocks of a launch, each once, and keeps their distinct streams in order.

    With `folds`, iterations of a loop with equal columns are stored once. With `in_order`, the
    predecessors of a block are executed before it, and the blocks' stretches are kept in `touched`.
    """

    def __init__(
        self, prepared: Prepared, step_limit: int, *, folds: bool, in_order: bool = False
    ) -> None:
        self.prepared = prepared
        self.streams: list[BlockStream] = []
        self.touched: dict[int, Stretches] = {}
        self._numbers: dict[bytes, int] = {}
        self._kinds: dict[int, int] = {}
        self._step_limit, self._folds, self._in_order = step_limit, folds, in_order

    def __len__(self) -> int:
        """Return the number of executed blocks."""
        return len(self._kinds)

    @property
    def kept(self) -> int:
        """Instructions of all executed blocks, those of a loop counted once."""
        return sum(self.streams[kind].kept for kind in self._kinds.values())

    @property
    def recorded(self) -> int:
        """Instructions of all executed blocks."""
        return sum(self.streams[kind].instructions for kind in self._kinds.values())

    def kinds(self, blocks: Array) -> Array:
        """Return the indices into `streams` of executed blocks."""
        return np.array([self._kinds[b] for b in blocks.ravel().tolist()]).reshape(blocks.shape)

    def missing(self, *blocks: Array) -> list[int]:
        """Return the blocks not yet executed, in order."""
        return sorted({b for some in blocks for b in some.ravel().tolist()} - set(self._kinds))

    def run(self, *blocks: Array) -> None:
        """Execute the blocks not yet executed."""
        missing = self.missing(*blocks)
        if not missing:
            return
        try:
            streams = self._streams(missing, whole=self._in_order)
        except UnsteadyError:
            streams = self._streams(missing, whole=True)
        for number, stream in sorted(streams.items()):
            kind = self._numbers.setdefault(stream.key, len(self.streams))
            if kind == len(self.streams):
                self.streams.append(stream)
            self._kinds[number] = kind

    def _streams(self, blocks: Sequence[int], *, whole: bool) -> dict[int, BlockStream]:
        recorder = recorder_of(self.prepared, folds=self._folds, whole=whole)
        if self._in_order:
            self._run_in_order(blocks, recorder)
        else:
            _run(without_results(self.prepared), blocks, self._step_limit, recorder)
        return recorder.streams

    def _run_in_order(self, blocks: Sequence[int], recorder: Recorder) -> None:
        """Execute blocks in small groups, each after most of its predecessors.

        The last block is executed alone, after all others.
        """
        prepared, limit = with_own_results(self.prepared), self._step_limit
        begin, touches, last = 0, touch_recorder_of(prepared), len(blocks) - 1
        for first in (*range(0, last, TOGETHER), last):
            few = blocks[first : min(first + TOGETHER, max(first + 1, last))]
            middle = few[len(few) // 2]
            _run(prepared, np.setdiff1d(np.arange(begin, middle), blocks).tolist(), limit)
            _run(prepared, few, limit, recorder, touches)
            begin = middle
        self.touched |= touches.stretches


def touched_by(prepared: Prepared, blocks: Sequence[int]) -> dict[int, Stretches]:
    """Execute blocks; return the stretches of each."""
    recorder = touch_recorder_of(prepared)
    _run(without_results(prepared), blocks, machine.DEFAULT_STEP_LIMIT, recorder)
    return recorder.stretches


def _run(
    prepared: Prepared, blocks: Sequence[int], step_limit: int, *recorders: Recorder | TouchRecorder
) -> None:
    machine.run(prepared, observers=recorders, step_limit=step_limit, blocks=blocks)


def with_own_results(prepared: Prepared) -> Prepared:
    """Return the launch with copies of the arrays that the kernel writes."""
    written = {
        instruction.memory.name
        for instruction in prepared.program.instructions
        if instruction.memory is not None
        and instruction.memory.space == "global"
        and OPS[instruction.op].writes_memory
    }
    stores_in_bulk = any(row.op == BULK_STORE for row in prepared.program.instructions)
    if ANY_ARRAY in written or stores_in_bulk:
        written = set(prepared.arguments)
    arguments, copies = with_copies(prepared.arguments, written)
    return replace(prepared, arguments=arguments, copies=copies)


def without_results(prepared: Prepared) -> Prepared:
    """Return the launch for a run without results; its arrays are unchanged."""
    return replace(with_own_results(prepared), keeps_results=False)
