"""From a warp stream to what the clock plays: its instructions, each with what it keeps and awaits.

How long after one instruction the next may be issued depends on the warp alone, as long as it
waits for nothing of variable latency: compilers write it into the machine code. It is worked out
here, once for each different stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from gpusim.device import Device
from gpusim.isa import OPS, Instruction, Op, Program
from gpusim.memory import WORD_BYTES
from gpusim.prediction.clock.costs import NO_PIPE, PIPES, TICKS, XU, Cost, instruction_costs, ticks
from gpusim.prediction.streams import Lap, WarpStream, spread


class Action(IntEnum):
    """What an instruction does that takes no fixed time; above SPECIAL others see it."""

    RUN = 0
    SPECIAL = 1
    SHARED_LOAD = 2
    SHARED_STORE = 3
    GLOBAL_LOAD = 4
    GLOBAL_STORE = 5
    SHUFFLE = 6
    SHARED_ATOMIC = 7
    GLOBAL_ATOMIC = 8
    SPECIAL_REGISTER = 9
    CONSTANT = 10
    BARRIER = 11
    EXIT = 12


class Touched(NamedTuple):
    """What an access comes to.

    `cost` is its wavefronts, sectors or an atomic's passes, `fresh` its sectors that miss the
    L1, `written` those that it is the first to store to, `lines` its 128-byte lines (an atomic's
    sectors); it `joins` where it waits for what another warp fetches. `draws` is how many
    latencies it has, with those of the loads that are under way, `pc` which instruction it is.
    Atomics on floating-point
    numbers are told from those on integers. A lane gives or gets so many 32-bit `words`. A special
    register or constant has its latency in ticks for `cost`.
    """

    cost: int = 0
    fresh: int = 0
    written: int = 0
    lines: int = 0
    joins: bool = False
    draws: float = 1.0
    pc: int = -1
    is_float: bool = False
    words: int = 1


NOTHING = Touched()


@dataclass(slots=True, eq=False)
class Step:
    """An instruction, with those that are issued behind a barrier before it holds the warp.

    It can be issued while `pipe` is free, keeps that for `busy` and the scheduler for `slot`;
    the next one can follow it after `gap`, when the results in `needs` are there: `waits_long`
    says that one comes from global memory. Its own result is known as `tag`. Times in ticks.
    `place` says where among its plan's steps it is, and `next` which one follows; `mark` that it
    is noted when warps have issued it. An access keeps the `port` to memory for some ticks.
    """

    action: Action
    pc: int
    place: int
    slot: int
    gap: int
    pipe: int = NO_PIPE
    busy: int = 0
    touched: Touched = NOTHING
    tag: int = -1
    needs: tuple[int, ...] = ()
    waits_long: bool = False
    issued: int = 1
    mark: int = -1
    port: int = 0
    is_shared: bool = field(init=False)  # whether others than its scheduler see what it does
    is_in_order: bool = field(init=False)  # whether what comes after it begins no sooner
    next: Step = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.is_shared = self.action > Action.SPECIAL
        self.is_in_order = self.action not in READS
        self.next = self


@dataclass(frozen=True)
class LapPlan:
    """What stands for the rounds of a lap that are left out: the steps from `begin` to `end`.

    They are `rounds` rounds. It is noted when warps begin the first of them, the one in the
    middle, and the one after the last, where the lap `is_marked`. `charges` are what they take
    where nothing stands in their way.
    """

    lap: Lap
    begin: int
    end: int
    rounds: int
    middle: int
    is_marked: bool
    charges: Mapping[int, int]


@dataclass(frozen=True)
class WarpPlan:
    """What a warp does: its steps, how many tags they use, and what of its time is certain.

    `charges` are the ticks that each pc takes where nothing stands in its way.
    """

    steps: tuple[Step, ...]
    tags: int
    charges: Mapping[int, int]
    laps: tuple[LapPlan, ...]
    instructions: int


# A lap's first eighth and last twelfth are not like its other rounds; of fewer rounds than these
# it is not told.
FIRST_PART, LAST_PART = 8, 12
LEAST_MARKED = 12
MARKS = 3

# So many instructions behind a barrier are issued before the warp is held.
DEFERRED = 2

READS = (Action.SPECIAL_REGISTER, Action.CONSTANT)
_FROM_GLOBAL = (Action.GLOBAL_LOAD, Action.GLOBAL_ATOMIC)


class Issue(NamedTuple):
    """An instruction as a plan needs it: what it costs, does and reads.

    It `is_held` where a warp that is behind a barrier does not issue it before it is held there.
    It keeps its scheduler's `port` to memory for some ticks, and has so many `words` for a lane.
    """

    instruction: Instruction
    cost: Cost
    action: Action
    reads: tuple[int, ...]
    is_held: bool
    is_exit: bool
    is_float: bool
    port: int
    words: int


def issues(program: Program, device: Device) -> list[Issue]:
    """Return each instruction of a program as a device issues it."""
    costs = instruction_costs(program, device)
    interval = device.interval_cycles
    ports = ticks(interval.lsu_scheduler), ticks(interval.store_scheduler)
    pairs = zip(program.instructions, costs, strict=True)
    return [_issue(instruction, cost, ports) for instruction, cost in pairs]


def _issue(instruction: Instruction, cost: Cost, ports: tuple[int, int]) -> Issue:
    op, found = OPS[instruction.op], instruction.memory
    action = Action[op.action.upper()] if op.action else Action.RUN
    guard = () if instruction.guard is None else (instruction.guard,)
    is_held = action is not Action.RUN or bool(cost.after) or cost.pipe == "uniform"
    is_float = found is not None and found.dtype.kind == "f"
    reads = (*instruction.src, *guard)
    words = 1 if found is None else max(1, found.width_bytes // WORD_BYTES)
    port = _port(op, instruction, words, ports)
    return Issue(
        instruction, cost, action, reads, is_held, op.kind == "exit", is_float, port, words
    )


def _port(op: Op, instruction: Instruction, words: int, ports: tuple[int, int]) -> int:
    """Return how long an access keeps its scheduler's port to memory: for each register it reads.

    `ports` are those of a load and of a store of a word in shared memory, of one register and two.
    """
    load, store = ports
    if instruction.memory is None:
        return load if op.action == "shuffle" else TICKS
    more = (instruction.memory.space == "global") + (words if op.writes_memory else 0)
    return load + more * (store - load)


@dataclass
class _Planner:
    """Plans a stream: the last step is open until it is known when the next one can follow.

    Times are ticks as a compiler counts them, for which nothing is of unknown length: `at` is when
    the open step is issued, `cursor` when the next one might be. What waits longer than that takes
    the same time after it all the same: stall counts are written into the machine code. A warp
    that was held at a barrier goes on at once.
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
    was_held: bool = False

    def load(self, touched: Touched, apart: int, near: int) -> float:
        """Take note of a load; return how many latencies it has with those under way."""
        if self.under_way:
            self.draws += spread.added(near, self.under_way)
        else:
            self.draws = spread.of_first(touched.cost, touched.lines)
        self.draws += apart
        self.under_way += 1
        return self.draws / spread.WHOLE

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

    def act(
        self,
        action: Action,
        pc: int,
        instruction: Instruction,
        cost: Cost,
        touched: Touched,
        port: int,
    ) -> None:
        """Add an instruction that takes no fixed time."""
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
        slot, after = cost.slot, max(TICKS, cost.slot)
        place = len(self.made)
        step = Step(action, pc, place, slot, after, pipe, touched=touched, tag=tag, port=port)
        self.add(step, at, after)
        self.deferred = DEFERRED if action is Action.BARRIER else 0

    def run(self, pc: int, instruction: Instruction, cost: Cost, *, is_taken: bool) -> None:
        """Add an instruction that takes a fixed time."""
        at = self.earliest(instruction, cost)
        after = cost.slot + (cost.jump if is_taken else cost.after)
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
            self.ready[register] = (at + cost.latency, cost)
            self.pending.pop(register, None)

    def leave(self, pc: int, at: int, issued: int) -> None:
        """End the stream with the warp's exit."""
        step = Step(Action.EXIT, pc, len(self.made), TICKS, TICKS, issued=issued)
        self.add(step, at, TICKS)


@dataclass
class _Laps:
    """Notes where a stream's laps lie among the steps, and what their rounds take."""

    made: list[LapPlan] = field(default_factory=list)
    at: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    begun: dict[int, tuple[int, dict[int, int]]] = field(default_factory=dict)
    laps: list[tuple[Lap, int, int, int]] = field(default_factory=list)

    def add(self, lap: Lap) -> None:
        """Take note of a lap of which rounds are left out."""
        begin = lap.rounds // FIRST_PART
        end = lap.rounds - lap.rounds // LAST_PART
        middle = (begin + end) // 2
        for mark, number in enumerate((begin, middle, end)):
            place = lap.first + number * lap.length
            self.at.setdefault(place, []).append((len(self.laps), mark))
        self.laps.append((lap, begin, middle, end))

    def note(self, place: int, planner: _Planner, charges: dict[int, int]) -> None:
        """Note that the instruction at a place of the stream has been planned.

        `charges` are what all before it took.
        """
        for number, mark in self.at.get(place, ()):
            lap, begin, middle, end = self.laps[number]
            step = planner.made[-1]
            is_marked = lap.rounds >= LEAST_MARKED
            if is_marked:
                step.mark = MARKS * len(self.made) + mark
            if mark == 0:
                self.begun[number] = step.place, charges
            elif mark == 2:
                first, before = self.begun.pop(number)
                taken = {pc: spent - before.get(pc, 0) for pc, spent in charges.items()}
                self.made.append(
                    LapPlan(lap, first, step.place, end - begin, middle - begin, is_marked, taken)
                )


def plan(stream: WarpStream, program: Sequence[Issue]) -> WarpPlan:
    """Return what a warp does that runs a stream of a program's instructions."""
    planner, laps = _Planner(), _Laps()
    for lap in stream.laps:
        if lap.left and lap.rounds and lap.length:
            laps.add(lap)
    last = len(stream.pc) - 1
    for place, (pc, is_taken, is_on, touched, apart, near) in enumerate(_rows(stream)):
        instruction, cost, action, reads, is_held, is_exit, is_float, port, words = program[pc]
        before = dict(planner.charges) if place in laps.at else {}
        if is_held:
            planner.deferred = 0
        planner.await_results(reads)
        if action in READS:
            planner.act(action, pc, instruction, cost, Touched(cost.latency), port)
        elif action is not Action.RUN:
            what = (touched if is_on else NOTHING)._replace(is_float=is_float, words=words)
            if action is Action.GLOBAL_LOAD and is_on:
                what = what._replace(draws=planner.load(what, apart, near), pc=pc)
            elif action is Action.GLOBAL_ATOMIC:
                what = what._replace(pc=pc)
            planner.act(action, pc, instruction, cost, what, port if is_on else TICKS)
        elif is_exit and place == last:
            planner.leave(pc, planner.earliest(instruction, cost), 1)
        else:
            planner.run(pc, instruction, cost, is_taken=is_taken)
        laps.note(place, planner, before)
    if not planner.made or planner.made[-1].action is not Action.EXIT:
        planner.deferred = 0
        planner.await_results(())
        planner.leave(int(stream.pc[-1]) if len(stream.pc) else 0, planner.cursor, 0)
    for step in planner.made:
        if step.mark >= 0 and not step.needs:
            step.needs = (planner.tags,)  # which is there from the beginning
    steps = tuple(planner.made)
    issued = sum(step.issued for step in steps)
    return WarpPlan(steps, planner.tags + 1, planner.charges, tuple(laps.made), issued)


def _rows(stream: WarpStream) -> Iterator[tuple[int, bool, bool, Touched, int, int]]:
    """Return, for each instruction of a stream, its pc, whether it jumps, is on, and touches.

    The last two say how its lines lie, for loads.
    """
    columns = (stream.pc, stream.is_taken, stream.is_on, stream.spread, stream.near)
    touched = (stream.cost, stream.fresh, stream.written, stream.lines, stream.joins)
    rows = zip(*(column.tolist() for column in (*columns, *touched)), strict=True)
    for pc, is_taken, is_on, apart, near, *what in rows:
        yield pc, is_taken, is_on, Touched(*what), apart, near
