"""Evidence for the rules of advice: a trace, its machine code and, with a device, a prediction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpusim.advice.decisions import Decision, decisions_of
from gpusim.isa.ops import OPS, Instruction
from gpusim.program.fast_paths import operation_lines
from gpusim.tracing.execution import Execution
from gpusim.tracing.iterations import numbering
from gpusim.tracing.records import LineCounters, Trace
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.prediction.records import Prediction


SCHEDULERS = 4  # of an SM since compute capability 5.0 (CUDA's programming guide)
SECTOR_CYCLES = 1.6  # of an SM's share of DRAM: 32 bytes of an H200's 4.8 TB/s at 1.755 GHz
WORTH_SAYING = 0.02  # of a block's cycles


@dataclass(frozen=True)
class Numbered:
    """An execution, the iteration of its line, and the number of executions represented."""

    execution: Execution
    iteration: int
    times: float = 1.0


@dataclass(frozen=True, eq=False)
class Evidence:
    """A trace with its executions sorted as rules need them, and a prediction if there is one."""

    trace: Trace
    prediction: Prediction | None = None

    @cached_property
    def numbered(self) -> list[Numbered]:
        """Executions with their iterations, in the order of these, whichever warp ran first."""
        times = self._times
        pairs = sorted(
            zip(self.trace.executions, self.trace.iterations, strict=True),
            key=lambda pair: (pair[1], pair[0].pc, pair[0].warp),
        )
        return [Numbered(e, i, 1.0 if times is None else float(times[e.pc])) for e, i in pairs]

    @cached_property
    def by_line(self) -> dict[int, list[Numbered]]:
        """Executions by line, lines in order."""
        table: dict[int, list[Numbered]] = {}
        for numbered in self.numbered:
            table.setdefault(numbered.execution.line, []).append(numbered)
        return dict(sorted(table.items()))

    @cached_property
    def lines(self) -> dict[int, LineCounters]:
        """Line counters by line."""
        return {line.line: line for line in self.trace.lines}

    @cached_property
    def decisions(self) -> dict[int, list[Decision]]:
        """Decisions of warps by source line, lines in order: the source's where they are known."""
        return decisions_of(self.trace)

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """The machine code, empty where a trace has none."""
        prepared = self.trace.prepared
        return () if prepared is None else prepared.program.instructions

    @cached_property
    def runs(self) -> Array:
        """How often the warps of a block issue each instruction, on the mean, by pc."""
        if self.prediction is not None:
            return _predicted_runs(self.prediction)
        return self._of_a_block("instructions")

    @cached_property
    def fraction_on(self) -> Array:
        """The mean fraction of a warp's 32 lanes that take part in each instruction, by pc."""
        issued, on = (
            self._of_a_block("instructions"),
            self._of_a_block("thread_instructions_guard_on"),
        )
        return np.where(issued > 0, on / np.maximum(issued, 1e-9) / 32, 1.0)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the trace has all blocks of the launch and all their iterations."""
        return self.is_whole_block and self.trace.traced_blocks == self.trace.launch.blocks

    @property
    def is_whole_block(self) -> bool:
        """Whether the trace has all iterations of its blocks."""
        return self._times is None

    @cached_property
    def _times(self) -> Array | None:
        """Executions of a block represented by each logged one, by pc; None where all are."""
        if self.trace.is_complete or not self._is_scaled:
            return self._scale
        pcs = [execution.pc for execution in self.trace.executions]
        return self._runs_over(np.bincount(pcs, minlength=len(self.instructions)))

    @property
    def _is_scaled(self) -> bool:
        is_one = self.prediction is not None and self.trace.traced_blocks == 1
        return is_one and bool(self.instructions)

    @cached_property
    def _scale(self) -> Array | None:
        """Executions of the mean block over those of a prediction's traced one, by pc."""
        if not self._is_scaled:
            return None
        return self._runs_over(np.asarray(self.trace.blocks.by_pc("instructions")))

    def _runs_over(self, counts: Array) -> Array | None:
        times = np.where(counts > 0, self.runs / np.maximum(counts, 1), 1.0)
        return None if np.allclose(times, 1.0) else times

    def _of_a_block(self, counter: str) -> Array:
        if not self.instructions:
            return np.zeros(0)
        found = np.asarray(self.trace.blocks.by_pc(counter) / max(1, self.trace.traced_blocks))
        return found if self._scale is None else found * self._scale

    @cached_property
    def cycles(self) -> float:
        """An estimate of an SM's cycles for a block: issue, wavefronts and sectors, one by one."""
        names = ("shared_load_wavefronts", "shared_store_wavefronts")
        sectors = ("global_load_sectors", "global_store_sectors")
        if not self.instructions:
            return 0.0
        wavefronts = sum(float(self._of_a_block(name).sum()) for name in names)
        moved = sum(float(self._of_a_block(name).sum()) for name in sectors)
        return float(self.runs.sum()) / SCHEDULERS + wavefronts + SECTOR_CYCLES * moved

    def is_worth_saying(self, cost: float) -> bool:
        """Return whether a cost, in cycles of an SM for a block, is a part of the block's own."""
        return cost > 0 and cost >= WORTH_SAYING * self.cycles

    def issue_cycles(self, pcs: Iterable[int]) -> float:
        """Return the issue cycles of some instructions of a block's warps on an SM."""
        chosen = list(pcs)
        return float(self.runs[chosen].sum()) / SCHEDULERS if chosen else 0.0

    @cached_property
    def issued_cycles(self) -> float:
        """The issue cycles of a block's warps on an SM."""
        return float(self.runs.sum()) / SCHEDULERS

    def count(self, line: int, *names: str) -> int:
        """Return the sum of a line's counters over the launch."""
        found = self.lines.get(line)
        return sum(found.counters.get(name, 0) for name in names) if found else 0

    def of_a_block(self, line: int, *names: str) -> float:
        """Return the sum of a line's counters over a block, the mean over blocks."""
        pcs = [pc for pc, row in enumerate(self.instructions) if row.line == line]
        return sum(float(self._of_a_block(name)[pcs].sum()) for name in names) if pcs else 0.0

    def pcs_by_line(self) -> Iterator[tuple[int, list[int]]]:
        """Yield each source line with its instructions that are issued."""
        prepared = self.trace.prepared
        lines = () if prepared is None else operation_lines(prepared.program)
        table: dict[int, list[int]] = {}
        for pc, (row, line) in enumerate(zip(self.instructions, lines, strict=True)):
            if OPS[row.op].issued and line:
                table.setdefault(line, []).append(pc)
        yield from sorted(table.items())

    def stalls(self, reason: str) -> dict[int, float]:
        """Return the fraction of warps' time that instructions stall for a reason, by pc."""
        assert self.prediction is not None
        table = self.prediction.stalls_by_pc
        return {pc: row[reason] for pc, row in table.items() if row[reason]}


def _predicted_runs(prediction: Prediction) -> Array:
    """Return how often a block's warps issue each instruction, the mean over all blocks."""
    runs = np.zeros(len(prediction.prepared.program.instructions))
    blocks = 0
    for one in prediction.classes.classes:
        blocks += one.blocks
        for warp in one.stream.warps:
            np.add.at(runs, warp.pc, one.blocks * warp.times)
    return runs / max(1, blocks)


def when(numbered: Numbered, among: Iterable[Numbered]) -> str:
    """Return " (iteration k)" where the line runs in more than one; "execution" where unsure."""
    every = list(among)
    counted, numbers = numbering([(p.execution, p.iteration) for p in every])
    number = next(n for p, n in zip(every, numbers, strict=True) if p is numbered)
    return f" ({counted} {number})" if len(set(numbers)) > 1 else ""
