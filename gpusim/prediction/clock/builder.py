"""Construction of steps in issue order, with fixed latencies resolved.

The delay between two instructions of a warp depends on the warp alone, except for results of
variable latency: compilers write it into the machine code. `step_builder` walks the stream.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from gpusim.isa.ops import OPS, Instruction
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.clock.costs import NO_PIPE, PIPE_NUMBERS, XU, Cost
from gpusim.prediction.clock.issue import Issue
from gpusim.prediction.clock.step_table import Draft
from gpusim.prediction.clock.steps import BULK_STORES, READS, Action
from gpusim.prediction.memory.measured import ISSUED_BEHIND_A_BARRIER


@dataclass
class Copies:
    """A warp's copies, as results under negative numbers, distinct from registers.

    `begun` are the copies since the last committed group, `groups` the groups not yet awaited, the
    oldest first.
    """

    begun: tuple[int, ...] = ()
    groups: list[tuple[int, ...]] = field(default_factory=list)

    def begin(self, pending: Container[int]) -> int:
        """Begin a copy; return the first number without a `pending` result."""
        number = -1
        while number in pending:
            number -= 1
        self.begun += (number,)
        return number

    def commit_group(self) -> None:
        """Commit the begun copies as a group."""
        self.groups.append(self.begun)
        self.begun = ()

    def awaited(self, allowed: int) -> tuple[int, ...]:
        """Return the copies of all groups but the last `allowed` ones."""
        count = max(0, len(self.groups) - allowed)
        here = tuple(copy for group in self.groups[:count] for copy in group)
        del self.groups[:count]
        return here

    def again(self) -> Copies:
        """Return an independent copy of this state."""
        return Copies(self.begun, list(self.groups))

    def state(self) -> tuple[object, ...]:
        """Return the state that determines further waits."""
        return self.begun, tuple(self.groups)


_FROM_GLOBAL = (
    Action.GLOBAL_LOAD, Action.GLOBAL_ATOMIC, Action.FENCE, Action.MBARRIER_WAIT,
    *BULK_STORES,
)  # fmt: skip


class Told(NamedTuple):
    """An instruction of a stream, its position there, and whether it jumps and a lane is on."""

    pc: int
    place: int
    is_taken: bool
    is_on: bool


class Asked(NamedTuple):
    """A request of a step: its position in the stream, the loads in flight before it, the step."""

    place: int
    under_way: int
    step: int


State = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Left:
    """The state of a builder after a piece of a stream, with relative times.

    All further additions follow from it. Equal states have an equal `state`. Of the open step it
    holds what the next instructions depend on.
    """

    state: State
    open: Draft
    at: int
    pipe_free: Mapping[str, int]
    ready: Mapping[int, tuple[int, Cost]]
    pending: Mapping[int, int]
    from_global: frozenset[int]
    copies: Copies
    under_way: int
    deferred: int
    was_held: bool


@dataclass
class Builder:
    """Appends steps; the last one is open until the delay to the next one is known.

    Times are ticks as a compiler counts them, without variable latencies: `at` is the issue of the
    open step, `cursor` the earliest issue of the next one. The delays hold after a longer wait as
    well, as stall counts of machine code do. The code's own stall counts, if known, are lower
    bounds beside the operands. A warp held at a barrier continues at once. `copies` to shared
    memory are `pending` as registers are. `asked` are the requests of the steps.
    """

    made: list[Draft] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    charges: dict[int, int] = field(default_factory=dict)
    tags: int = 0
    at: int = 0
    cursor: int = 0
    deferred: int = 0
    pipe_free: dict[str, int] = field(default_factory=dict)
    ready: dict[int, tuple[int, Cost]] = field(default_factory=dict)
    pending: dict[int, int] = field(default_factory=dict)
    from_global: set[int] = field(default_factory=set)
    copies: Copies = field(default_factory=Copies)
    under_way: int = 0
    line_begun: int = 0
    late: int = 0
    was_held: bool = False

    @classmethod
    def after(cls, left: Left, line: int) -> Builder:
        """Return a builder in a state at time 0, `line` ticks after a line of code began."""
        return cls(
            made=[replace(left.open)],
            at=left.at,
            deferred=left.deferred,
            pipe_free=dict(left.pipe_free),
            ready=dict(left.ready),
            pending=dict(left.pending),
            from_global=set(left.from_global),
            copies=left.copies.again(),
            under_way=left.under_way,
            line_begun=-line,
            was_held=left.was_held,
        )

    def close(self, needs: tuple[int, ...] = ()) -> None:
        """Close the open step: the warp waits for results or at a barrier."""
        if self.made:
            last = self.made[-1]
            last.gap = max(self.cursor - self.at, last.slot)
            # A fence waits for itself already, a barrier for what instructions after it read.
            last.needs = tuple(sorted({*last.needs, *needs}))
            last.waits_long = not self.from_global.isdisjoint(last.needs)
            self.was_held = last.action is Action.BARRIER
            if last.waits_long:
                self.under_way = 0

    def await_results(self, reads: tuple[int, ...]) -> None:
        """Close the open step if an instruction reads a result of variable latency."""
        pending = self.pending
        if pending and not pending.keys().isdisjoint(reads):
            waits = tuple(sorted({pending[r] for r in reads if r in pending}))
            self.close(waits)
            self.pending = {r: t for r, t in pending.items() if t not in waits}
        elif self.made and self.made[-1].action is Action.BARRIER and not self.deferred:
            self.close()

    def earliest(self, instruction: Instruction, cost: Cost) -> int:
        """Return an instruction's earliest issue: pipe free, fixed-latency operands ready."""
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
        """Charge a pc for an instruction issued at a time, and advance the cursor past it."""
        self.charges[pc] = self.charges.get(pc, 0) + at + after - self.cursor
        self.cursor = at + after

    def add(self, step: Draft, at: int, after: int) -> None:
        """Append a step issued at a time; the warp may continue `after` ticks later."""
        if self.made:
            last = self.made[-1]
            last.gap = max(at - self.at, last.slot)
        self.follow(at, step.pc, after)
        if step.action is Action.BARRIER:  # the wait is charged to the next instruction
            self.charges[step.pc] -= after - step.slot
        self.at = at
        self.made.append(step)

    def fetch(self, pc: int, takes: int) -> None:
        """Begin a line of code, at the earliest `takes` ticks after the line before."""
        begins = max(self.cursor, self.line_begun + takes)
        if self.made:
            self.follow(begins, pc, 0)
        self.line_begun = self.cursor

    def issue(self, row: Told, issue: Issue, *, is_last: bool) -> None:
        """Add an instruction of the stream."""
        if issue.is_held:
            self.deferred = 0
        self.await_results(self.awaited(issue) if issue.copies else issue.reads)
        waits = OPS[issue.instruction.op].waits_for_memory or issue.action is Action.FENCE
        if waits and not row.is_on:
            self.run(row.pc, issue.instruction, replace(issue.cost, after=0), is_taken=False)
        elif issue.action is not Action.RUN:
            self.act(row, issue)
        elif issue.is_exit and is_last:
            self.leave(row.pc, self.earliest(issue.instruction, issue.cost), 1)
        else:
            self.run(row.pc, issue.instruction, issue.cost, is_taken=row.is_taken)

    def awaited(self, issue: Issue) -> tuple[int, ...]:
        """Return the results awaited by an instruction of asynchronous copies; commit groups."""
        allowed = issue.instruction.detail
        if issue.copies == "commits":
            self.copies.commit_group()
        elif issue.copies == "awaits" and allowed is not None:
            return (*issue.reads, *self.copies.awaited(allowed))
        return issue.reads

    def act(self, row: Told, issue: Issue) -> None:
        """Add an instruction of variable latency."""
        action, instruction, cost = issue.action, issue.instruction, issue.cost
        port = issue.port if row.is_on or action in READS else TICKS
        tag = -1
        at = self.earliest(instruction, cost)
        is_fence = action is Action.FENCE
        begins = issue.copies == "begins"
        if is_fence or begins or (instruction.dst and action is not Action.BARRIER):
            tag = self.free_tag(is_global=action in _FROM_GLOBAL)
            results = (self.copies.begin(self.pending),) if begins else instruction.dst
            for register in results:
                self.pending[register] = tag
                self.ready.pop(register, None)
        pipe = XU if action is Action.SPECIAL else NO_PIPE
        slot, after = cost.slot, max(TICKS, cost.slot, ticks(instruction.stall_cycles))
        step = Draft(action, row.pc, slot, after, pipe, tag=tag, port=port)
        self.asked.append(Asked(row.place, self.under_way, len(self.made)))
        if action is Action.GLOBAL_LOAD and row.is_on:
            self.under_way += 1
        self.add(step, at, after)
        if is_fence or action is Action.MBARRIER_WAIT:
            self.close((tag,))
        self.deferred = ISSUED_BEHIND_A_BARRIER if action is Action.BARRIER else 0

    def free_tag(self, *, is_global: bool) -> int:
        """Return the first tag without a pending result."""
        used, tag = self.pending.values(), 0
        while tag in used:
            tag += 1
        self.tags = max(self.tags, tag + 1)
        if is_global:
            self.from_global.add(tag)
        else:
            self.from_global.discard(tag)
        return tag

    def run(self, pc: int, instruction: Instruction, cost: Cost, *, is_taken: bool) -> None:
        """Add an instruction of fixed latency, plus the delay of a missing constant."""
        is_load = OPS[instruction.op].kind == "bank"
        at = self.earliest(instruction, cost) + (0 if is_load else self.late)
        latency = cost.latency + (self.late if is_load else 0)
        after = cost.slot + (cost.jump if is_taken else cost.after)
        after = max(after, ticks(instruction.stall_cycles))
        pipe = PIPE_NUMBERS.get(cost.pipe, NO_PIPE)
        if self.deferred and self.made and self.made[-1].action is Action.BARRIER:
            last = self.made[-1]
            self.deferred -= 1
            last.slot += cost.slot
            last.issued += 1
            self.charges[pc] = self.charges.get(pc, 0) + cost.slot
            self.cursor = at + after
        else:
            step = Draft(Action.RUN, pc, cost.slot, after, pipe, cost.busy)
            self.add(step, at, after)
        if pipe != NO_PIPE:
            self.pipe_free[cost.pipe] = at + cost.interval
        for register in instruction.dst:
            self.ready[register] = (at + latency, cost)
            self.pending.pop(register, None)

    def leave(self, pc: int, at: int, issued: int) -> None:
        """End the stream with the warp's exit."""
        step = Draft(Action.EXIT, pc, TICKS, TICKS, issued=issued)
        self.add(step, at, TICKS)

    def left(self) -> Left:
        """Return the present state. Times already past are left out."""
        now, last = self.cursor, self.made[-1]
        at = self.at - now
        pipes = {pipe: free - now for pipe, free in self.pipe_free.items() if free > now}
        ready = {
            register: (there - now, by)
            for register, (there, by) in self.ready.items()
            if there + max(0, by.elsewhere, by.deciding) > now
        }
        pending = dict(self.pending)
        from_global = frozenset(self.from_global.intersection(pending.values()))
        state = (
            at,
            tuple(sorted(pipes.items())),
            tuple(sorted((register, there, id(by)) for register, (there, by) in ready.items())),
            tuple(sorted((*one, one[1] in from_global) for one in pending.items())),
            self.under_way,
            (self.deferred, self.was_held, self.copies.state()),
            (last.action, last.slot, last.needs, last.waits_long),
        )
        step = Draft(
            last.action, -1, last.slot, 0, needs=last.needs, waits_long=last.waits_long, issued=0
        )
        rest = self.copies.again(), self.under_way, self.deferred, self.was_held
        return Left(state, step, at, pipes, ready, pending, from_global, *rest)

    def finish(self, pc: int) -> None:
        """Add an exit after the instruction `pc` if the stream has none."""
        if not self.made or self.made[-1].action is not Action.EXIT:
            self.deferred = 0
            self.await_results(())
            self.leave(pc, self.cursor, 0)
