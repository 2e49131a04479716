"""From a warp stream to steps: how long after one instruction the next may be issued.

That depends on the warp alone, as long as it waits for nothing of variable latency: compilers
write it into the machine code. It is worked out here, once for each different stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from gpusim.isa import OPS, Instruction
from gpusim.memory import SECTOR_BYTES, WORD_BYTES
from gpusim.prediction.clock.costs import NO_PIPE, PIPES, XU, Cost
from gpusim.prediction.clock.issue import Issue
from gpusim.prediction.clock.steps import READS, Action, LoopMarks, Step, WarpSteps
from gpusim.prediction.measured import ISSUED_BEHIND_A_BARRIER, LATENCY
from gpusim.prediction.memory import NO_ACCESS, Access, draws
from gpusim.prediction.streams import SimulatedLoop, WarpStream
from gpusim.prediction.ticks import TICKS, ticks

# A loop's first eighth and last twelfth are not like its other iterations; of a loop of fewer
# iterations than these no rate is noted.
FIRST_PART, LAST_PART = 8, 12
LEAST_MARKED = 12
MARKS = 3
SECTOR_WORDS = SECTOR_BYTES // WORD_BYTES

_CACHED: Mapping[int, int] = MappingProxyType({})  # code and constants are where they are used
_FROM_GLOBAL = (Action.GLOBAL_LOAD, Action.GLOBAL_ATOMIC)
_TO_GLOBAL = (Action.GLOBAL_STORE, Action.GLOBAL_ATOMIC)


class _Row(NamedTuple):
    """An instruction of a stream: whether it jumps, has a lane that is on, and what it asks for.

    `gaps` and `earlier` say how its lines lie, for loads. So many `lanes` run it.
    """

    pc: int
    is_taken: bool
    is_on: bool
    access: Access
    gaps: int
    earlier: int
    lanes: int


@dataclass
class _Builder:
    """Makes steps: the last one is open until it is known when the next one can follow.

    Times are ticks as a compiler counts them, for which nothing is of unknown length: `at` is when
    the open step is issued, `cursor` when the next one might be. What waits longer than that takes
    the same time after it all the same: stall counts are written into the machine code. Where the
    code's own are known they hold as well as what follows from its operands. A warp that was held
    at a barrier goes on at once.
    """

    made: list[Step] = field(default_factory=list)
    charges: dict[int, int] = field(default_factory=dict)
    tags: int = 0
    at: int = 0
    cursor: int = 0
    deferred: int = 0
    pipe_free: dict[str, int] = field(default_factory=dict)
    ready: dict[int, tuple[int, Cost]] = field(default_factory=dict)
    pending: dict[int, int] = field(default_factory=dict)
    from_global: set[int] = field(default_factory=set)
    under_way: int = 0
    draws: int = 0
    line_begun: int = 0
    late: int = 0
    was_held: bool = False

    def load(self, access: Access, gaps: int, earlier: int) -> float:
        """Take note of a load; return how many latencies it has with those under way."""
        if self.under_way:
            self.draws += draws.of_another_access(earlier, self.under_way)
        else:
            self.draws = draws.of_first_access(access.cost, access.lines)
        self.draws += draws.of_further_lines(gaps)
        self.under_way += 1
        return self.draws / LATENCY

    def close(self, needs: tuple[int, ...] = ()) -> None:
        """End the open step where the warp waits, for results or at a barrier."""
        if self.made:
            last = self.made[-1]
            last.gap = max(self.cursor - self.at, last.slot)
            last.needs = needs
            last.waits_long = not self.from_global.isdisjoint(needs)
            self.was_held = last.action is Action.BARRIER
            if last.waits_long:
                self.under_way = self.draws = 0

    def await_results(self, reads: tuple[int, ...]) -> None:
        """Let the warp wait where an instruction reads a result whose latency is not fixed."""
        pending = self.pending
        if pending and any(r in pending for r in reads):
            waits = tuple(sorted({pending[r] for r in reads if r in pending}))
            self.close(waits)
            self.pending = {r: t for r, t in pending.items() if t not in waits}
        elif self.made and self.made[-1].action is Action.BARRIER and not self.deferred:
            self.close()

    def earliest(self, instruction: Instruction, cost: Cost) -> int:
        """Return when an instruction may issue: its pipe is free and what it reads is ready."""
        if self.was_held:
            self.was_held = False
            return self.cursor
        at = max(self.cursor, self.pipe_free.get(cost.pipe, 0))
        for register in instruction.src:
            if register in self.ready:
                there, by = self.ready[register]
                at = max(at, there if by.pipe == cost.pipe else there + by.elsewhere)
        if instruction.guard in self.ready:
            there, by = self.ready[instruction.guard]
            at = max(at, there + by.deciding)
        return at

    def follow(self, at: int, pc: int, after: int) -> None:
        """Let what comes next be issued at a time, and the warp go on some time after that."""
        self.charges[pc] = self.charges.get(pc, 0) + at + after - self.cursor
        self.cursor = at + after

    def add(self, step: Step, at: int, after: int) -> None:
        """Add a step that is issued at a time; the warp may go on so long after that."""
        if self.made:
            last = self.made[-1]
            last.next = step
            if at:
                last.gap = max(at - self.at, last.slot)
        self.follow(at, step.pc, after)
        self.at = at
        self.made.append(step)

    def fetch(self, pc: int, takes: int) -> None:
        """Let a line of code begin that comes so long after the one before, or later."""
        begins = max(self.cursor, self.line_begun + takes)
        if self.made:
            self.follow(begins, pc, 0)
        self.line_begun = self.cursor

    def issue(self, row: _Row, issue: Issue, *, is_last: bool) -> None:
        """Add an instruction of the stream."""
        if issue.is_held:
            self.deferred = 0
        self.await_results(issue.reads)
        if issue.action is not Action.RUN:
            self.act(row, issue)
        elif issue.is_exit and is_last:
            self.leave(row.pc, self.earliest(issue.instruction, issue.cost), 1)
        else:
            self.run(row.pc, issue.instruction, issue.cost, is_taken=row.is_taken)

    def access(self, row: _Row, issue: Issue) -> Access:
        """Return what an instruction asks of the unit that serves it."""
        if issue.action in READS:
            return Access(issue.cost.latency + self.late, lines=max(1, row.access.cost))
        lanes = row.access if row.is_on else NO_ACCESS
        asked = lanes._replace(is_float=issue.is_float, is_swap=issue.is_swap, words=issue.words)
        if issue.action is Action.GLOBAL_LOAD and row.is_on:
            return asked._replace(draws=self.load(asked, row.gaps, row.earlier), pc=row.pc)
        if issue.action is Action.GLOBAL_ATOMIC:
            each_once = asked.cost == asked.lines
            is_whole = each_once and row.lanes * issue.words == asked.lines * SECTOR_WORDS
            return asked._replace(pc=row.pc, is_whole=is_whole)
        return asked._replace(pc=row.pc) if issue.action in _TO_GLOBAL else asked

    def act(self, row: _Row, issue: Issue) -> None:
        """Add an instruction that takes no fixed time."""
        action, instruction, cost = issue.action, issue.instruction, issue.cost
        access = self.access(row, issue)
        port = issue.port if row.is_on or action in READS else TICKS
        tag = -1
        at = self.earliest(instruction, cost)
        if instruction.dst and action is not Action.BARRIER:
            tag = self.tags
            self.tags += 1
            if action in _FROM_GLOBAL:
                self.from_global.add(tag)
            for register in instruction.dst:
                self.pending[register] = tag
                self.ready.pop(register, None)
        pipe = XU if action is Action.SPECIAL else NO_PIPE
        slot, after = cost.slot, max(TICKS, cost.slot, ticks(instruction.stall_cycles))
        place = len(self.made)
        step = Step(action, row.pc, place, slot, after, pipe, access=access, tag=tag, port=port)
        self.add(step, at, after)
        self.deferred = ISSUED_BEHIND_A_BARRIER if action is Action.BARRIER else 0

    def run(self, pc: int, instruction: Instruction, cost: Cost, *, is_taken: bool) -> None:
        """Add an instruction that takes a fixed time, unless a constant is not there."""
        is_load = OPS[instruction.op].kind == "bank"
        at = self.earliest(instruction, cost) + (0 if is_load else self.late)
        latency = cost.latency + (self.late if is_load else 0)
        after = cost.slot + (cost.jump if is_taken else cost.after)
        after = max(after, ticks(instruction.stall_cycles))
        if self.made and self.made[-1].action is Action.BARRIER and self.deferred:
            last = self.made[-1]
            self.deferred -= 1
            last.slot += cost.slot
            last.issued += 1
            self.charges[pc] = self.charges.get(pc, 0) + cost.slot
            self.cursor = at + after
        else:
            is_narrow = cost.pipe in PIPES and cost.interval > cost.slot
            pipe = PIPES.index(cost.pipe) if is_narrow else NO_PIPE
            busy = cost.interval if is_narrow else 0
            step = Step(Action.RUN, pc, len(self.made), cost.slot, after, pipe, busy)
            self.add(step, at, after)
        if cost.pipe in PIPES:
            self.pipe_free[cost.pipe] = at + cost.interval
        for register in instruction.dst:
            self.ready[register] = (at + latency, cost)
            self.pending.pop(register, None)

    def leave(self, pc: int, at: int, issued: int) -> None:
        """End the stream with the warp's exit."""
        step = Step(Action.EXIT, pc, len(self.made), TICKS, TICKS, issued=issued)
        self.add(step, at, TICKS)

    def finish(self, pc: int) -> None:
        """Let the warp leave where its stream has not said so, behind the instruction `pc`."""
        if not self.made or self.made[-1].action is not Action.EXIT:
            self.deferred = 0
            self.await_results(())
            self.leave(pc, self.cursor, 0)
        for step in self.made:
            if step.mark >= 0 and not step.needs:
                step.needs = (self.tags,)  # which is there from the beginning


@dataclass
class _Marker:
    """Notes where a stream's loops lie among the steps, and what their iterations take."""

    made: list[LoopMarks] = field(default_factory=list)
    at: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    begun: dict[int, tuple[int, dict[int, int]]] = field(default_factory=dict)
    loops: list[tuple[SimulatedLoop, int, int, int]] = field(default_factory=list)

    def add(self, loop: SimulatedLoop) -> None:
        """Take note of a loop of which iterations are extrapolated."""
        begin = loop.simulated // FIRST_PART
        end = loop.simulated - loop.simulated // LAST_PART
        middle = (begin + end) // 2
        for mark, number in enumerate((begin, middle, end)):
            place = loop.first + number * loop.length
            self.at.setdefault(place, []).append((len(self.loops), mark))
        self.loops.append((loop, begin, middle, end))

    def note(self, place: int, builder: _Builder, charges: dict[int, int]) -> None:
        """Note that the instruction at a place of the stream has its step.

        `charges` are what all before it took.
        """
        for number, mark in self.at.get(place, ()):
            loop, begin, middle, end = self.loops[number]
            step = builder.made[-1]
            is_marked = loop.simulated >= LEAST_MARKED
            if is_marked:
                step.mark = MARKS * len(self.made) + mark
            if mark == 0:
                self.begun[number] = step.place, charges
            elif mark == 2:
                first, before = self.begun.pop(number)
                taken = {pc: spent - before.get(pc, 0) for pc, spent in charges.items()}
                self.made.append(
                    LoopMarks(
                        loop, first, step.place, end - begin, middle - begin, is_marked, taken
                    )
                )


def steps_of(
    stream: WarpStream,
    program: Sequence[Issue],
    fetched: Mapping[int, int] = _CACHED,
    late: Mapping[int, int] = _CACHED,
) -> WarpSteps:
    """Return what a warp does that runs a stream of a program's instructions.

    Code that no cache holds is `fetched`: the ticks of each line, by its place in the stream.
    Constants of which the same is true are so many ticks `late`.
    """
    builder, marker = _Builder(), _Marker()
    for loop in stream.simulated_loops:
        if loop.extrapolated and loop.simulated and loop.length:
            marker.add(loop)
    last = len(stream) - 1
    for place, row in enumerate(_rows(stream)):
        before = dict(builder.charges) if place in marker.at else {}
        if place in fetched:
            builder.fetch(row.pc, fetched[place])
        builder.late = late.get(place, 0)
        builder.issue(row, program[row.pc], is_last=place == last)
        marker.note(place, builder, before)
    builder.finish(int(stream.pc[-1]) if len(stream) else 0)
    issued = sum(step.issued for step in builder.made)
    return WarpSteps(
        tuple(builder.made), builder.tags + 1, builder.charges, tuple(marker.made), issued
    )


def _rows(stream: WarpStream) -> Iterator[_Row]:
    """Yield each instruction of a stream."""
    lanes = np.bitwise_count(stream.lanes)
    columns = (stream.pc, stream.is_taken, stream.is_on, stream.gaps, stream.earlier, lanes)
    asked = (stream.cost, stream.fresh, stream.written, stream.lines, stream.joins)
    rows = zip(*(column.tolist() for column in (*columns, *asked)), strict=True)
    for pc, is_taken, is_on, gaps, earlier, running, *what in rows:
        yield _Row(pc, is_taken, is_on, Access(*what), gaps, earlier, running)
