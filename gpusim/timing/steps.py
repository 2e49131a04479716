"""From a warp stream to what the clock plays: its instructions, each with what it keeps and awaits.

How long after one instruction the next may be issued depends on the warp alone, as long as it
waits for nothing of variable latency: compilers write it into the machine code. It is worked out
here, once for each different stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from gpusim.isa import OPS, Instruction, Program
from gpusim.streams import WarpStream
from gpusim.timing.costs import NO_PIPE, PIPES, TICKS, XU, Cost


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
    ADDRESS = 9
    BARRIER = 10
    EXIT = 11


class Touched(NamedTuple):
    """What an access comes to.

    `cost` is its wavefronts, sectors or lanes with one address, `fresh` its sectors that miss
    the L1, `lines` its 128-byte lines; it `joins` where it waits for what another warp fetches.
    Atomics on floating-point numbers are told from those on integers. What the address unit
    reads has its latency in ticks for `cost`.
    """

    cost: int = 0
    fresh: int = 0
    lines: int = 0
    joins: bool = False
    is_float: bool = False


NOTHING = Touched()


@dataclass(slots=True, eq=False)
class Step:
    """An instruction, with those that are issued behind a barrier before it holds the warp.

    It can be issued while `pipe` is free, keeps that for `busy` and the scheduler for `slot`;
    the next one can follow it after `gap`, when the results in `needs` are there: `waits_long`
    says that one comes from global memory. Its own result is known as `tag`. Times in ticks.
    `place` says where among its plan's steps it is, and `next` which one follows.
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
    is_shared: bool = field(init=False)  # whether others than its scheduler see what it does
    next: Step = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.is_shared = self.action > Action.SPECIAL
        self.next = self


@dataclass(frozen=True)
class WarpPlan:
    """What a warp does: its steps, how many tags they use, and what of its time is certain.

    `charges` are the ticks that each pc takes where nothing stands in its way; `selected` of
    them go to issue, `waits` to fixed latencies.
    """

    steps: tuple[Step, ...]
    tags: int
    charges: tuple[tuple[int, int], ...]
    selected: int
    waits: int
    instructions: int


# So many instructions behind a barrier are issued before the warp is held.
DEFERRED = 2

_BY_OP = {
    ("LDS", "load"): Action.SHARED_LOAD,
    ("STS", "store"): Action.SHARED_STORE,
    ("LDG", "load"): Action.GLOBAL_LOAD,
    ("STG", "store"): Action.GLOBAL_STORE,
    ("LDL", "load"): Action.GLOBAL_LOAD,
    ("STL", "store"): Action.GLOBAL_STORE,
    ("ATOMS", "atomic"): Action.SHARED_ATOMIC,
    ("ATOMG", "atomic"): Action.GLOBAL_ATOMIC,
    ("RED", "atomic"): Action.GLOBAL_ATOMIC,
    ("SHFL", "shuffle"): Action.SHUFFLE,
    ("BAR", "barrier"): Action.BARRIER,
}
_BY_PIPE = {"xu": Action.SPECIAL, "address": Action.ADDRESS}
_FROM_GLOBAL = (Action.GLOBAL_LOAD, Action.GLOBAL_ATOMIC)


def _action(instruction: Instruction, cost: Cost) -> Action:
    by_op = _BY_OP.get((instruction.op, OPS[instruction.op].kind))
    return by_op if by_op is not None else _BY_PIPE.get(cost.pipe, Action.RUN)


@dataclass
class _Planner:
    """Plans a stream: the last step is open until it is known when the next one can follow.

    Times are ticks since the warp last waited for something of unknown length: `at` is when the
    open step is issued, `cursor` when the next one might be.
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

    def close(self, needs: tuple[int, ...] = ()) -> None:
        """End the open step where the warp waits, for results or at a barrier."""
        if self.made:
            last = self.made[-1]
            last.gap = max(self.cursor - self.at, last.slot)
            last.needs = needs
            last.waits_long = not self.from_global.isdisjoint(needs)
        self.at = self.cursor = 0
        self.ready.clear()
        self.pipe_free.clear()

    def await_results(self, reads: tuple[int, ...]) -> None:
        """Let the warp wait where an instruction reads a result whose latency is not fixed."""
        waits = tuple(sorted({self.pending[r] for r in reads if r in self.pending}))
        if waits:
            self.close(waits)
            self.pending = {r: t for r, t in self.pending.items() if t not in waits}
        elif self.made and self.made[-1].action is Action.BARRIER and not self.deferred:
            self.close()

    def earliest(self, instruction: Instruction, cost: Cost) -> int:
        """Return when an instruction may issue: its pipe is free and what it reads is ready."""
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
        self, action: Action, pc: int, instruction: Instruction, cost: Cost, touched: Touched
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
        step = Step(action, pc, len(self.made), slot, after, pipe, touched=touched, tag=tag)
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


def plan(stream: WarpStream, program: Program, costs: list[Cost]) -> WarpPlan:
    """Return what a warp does on a device whose instructions have these costs."""
    planner = _Planner()
    last = len(stream.pc) - 1
    for place, (pc, is_taken, is_on, touched) in enumerate(_rows(stream)):
        instruction, cost = program.instructions[pc], costs[pc]
        action = _action(instruction, cost)
        is_held = action is not Action.RUN or cost.after or cost.pipe == "uniform"
        if is_held:
            planner.deferred = 0
        guard = () if instruction.guard is None else (instruction.guard,)
        planner.await_results((*instruction.src, *guard))
        if action is Action.ADDRESS:
            planner.act(action, pc, instruction, cost, Touched(cost.latency))
        elif action is not Action.RUN:
            found = instruction.memory
            is_float = found is not None and found.dtype.kind == "f"
            what = touched._replace(is_float=is_float) if is_on else NOTHING
            planner.act(action, pc, instruction, cost, what)
        elif OPS[instruction.op].kind == "exit" and place == last:
            planner.leave(pc, planner.earliest(instruction, cost), 1)
        else:
            planner.run(pc, instruction, cost, is_taken=is_taken)
    if not planner.made or planner.made[-1].action is not Action.EXIT:
        planner.deferred = 0
        planner.await_results(())
        planner.leave(int(stream.pc[-1]) if len(stream.pc) else 0, planner.cursor, 0)
    steps = tuple(planner.made)
    certain = [step for step in steps if step.action is not Action.BARRIER]
    return WarpPlan(
        steps,
        planner.tags,
        tuple(planner.charges.items()),
        sum(step.slot for step in steps),
        sum(step.gap - step.slot for step in certain),
        sum(step.issued for step in steps),
    )


def _rows(stream: WarpStream) -> Iterator[tuple[int, bool, bool, Touched]]:
    """Return, for each instruction of a stream, its pc, whether it jumps, is on, and touches."""
    columns = (stream.pc, stream.is_taken, stream.is_on, stream.cost, stream.fresh, stream.lines)
    rows = zip(*(column.tolist() for column in (*columns, stream.joins)), strict=True)
    for pc, is_taken, is_on, cost, fresh, lines, joins in rows:
        yield pc, is_taken, is_on, Touched(cost, fresh, lines, joins)
