"""From a warp stream to what the clock plays: segments that end where a warp may wait.

Within a segment nothing depends on other warps: its instructions and the bubbles that their
fixed latencies leave are added up here, once for each different stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from gpusim.isa import OPS, Instruction, Program
from gpusim.streams import WarpStream
from gpusim.timing.costs import PIPES, TICKS, Cost


class Action(IntEnum):
    """What a segment begins with."""

    RUN = 0
    SHARED_LOAD = 1
    SHARED_STORE = 2
    GLOBAL_LOAD = 3
    GLOBAL_STORE = 4
    SHUFFLE = 5
    SHARED_ATOMIC = 6
    GLOBAL_ATOMIC = 7
    SPECIAL = 8
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


class Segment(NamedTuple):
    """One action and the instructions after it, up to the next action or wait.

    The action's result, if any, is known as `tag`; the warp goes on when the results in `needs`
    are there. `slots` is how long the instructions keep the scheduler, `pipes` how long each
    pipe that is slower than the scheduler, `chain` how long they take one warp; all in ticks.
    `waits_long` says that a needed result comes from global memory; `charges` are the pcs
    that `chain` is made of, with their ticks.
    """

    action: Action
    pc: int
    touched: Touched
    tag: int
    slots: int
    chain: int
    needs: tuple[int, ...]
    waits_pc: int
    waits_long: bool
    issued: int
    charges: tuple[tuple[int, int], ...] = ()
    pipes: tuple[tuple[int, int], ...] = ()


# A longer bubble ends a segment, and the scheduler looks for another warp meanwhile. Ending one
# at every bubble is more than twice as slow and changes times by a few percent.
LONGEST_BUBBLE = 12 * TICKS

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
_NOTHING = Touched()


def _action(instruction: Instruction, cost: Cost) -> Action | None:
    by_op = _BY_OP.get((instruction.op, OPS[instruction.op].kind))
    return by_op if by_op is not None else _BY_PIPE.get(cost.pipe)


@dataclass
class _Cutter:
    """Cuts a stream: the segment under construction, and when what it has computed is ready.

    `cursor` is when the warp may issue next, in ticks from the segment's begin.
    """

    made: list[Segment] = field(default_factory=list)
    tags: int = 0
    cursor: int = 0
    issued: int = 0
    deferred: int = 0
    slots: int = 0
    pipes: dict[str, int] = field(default_factory=dict)
    pipe_free: dict[str, int] = field(default_factory=dict)
    ready: dict[int, tuple[int, Cost]] = field(default_factory=dict)
    pending: dict[int, int] = field(default_factory=dict)
    from_global: set[int] = field(default_factory=set)
    charges: dict[int, int] = field(default_factory=dict)
    action: tuple[Action, int, Touched, int] = (Action.RUN, -1, _NOTHING, -1)

    def close(self, needs: tuple[int, ...] = (), waits_pc: int = -1) -> None:
        """End the segment; the next begins when the results in `needs` are there."""
        action, pc, touched, tag = self.action
        if action is Action.BARRIER and needs:
            self.close()
            return self.close(needs, waits_pc)
        if action is Action.RUN:
            pc = next(iter(self.charges), waits_pc)
        if action is not Action.RUN or self.issued or needs:
            pipes = tuple((PIPES.index(p), t) for p, t in self.pipes.items() if t > self.slots)
            self.made.append(
                Segment(
                    action,
                    pc,
                    touched,
                    tag,
                    self.slots,
                    max(self.cursor, self.slots),
                    needs,
                    waits_pc,
                    not self.from_global.isdisjoint(needs),
                    self.issued,
                    tuple(self.charges.items()),
                    pipes,
                )
            )
        self._begin_anew(has_waited=bool(needs) or action is Action.BARRIER)
        return None

    def _begin_anew(self, *, has_waited: bool) -> None:
        base = self.cursor
        self.ready = {
            register: (there - base, cost)
            for register, (there, cost) in self.ready.items()
            if there + max(cost.elsewhere, cost.deciding) > base and not has_waited
        }
        self.pipe_free = {p: t - base for p, t in self.pipe_free.items() if t > base}
        self.cursor = self.issued = self.slots = self.deferred = 0
        self.charges = {}
        self.pipes = {}
        self.action = (Action.RUN, -1, _NOTHING, -1)

    def await_results(self, reads: tuple[int, ...], pc: int) -> None:
        """End the segment where an instruction reads a result whose latency is not fixed."""
        waits = tuple(sorted({self.pending[r] for r in reads if r in self.pending}))
        if waits:
            self.close(waits, pc)
            self.pending = {r: t for r, t in self.pending.items() if t not in waits}

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

    def act(
        self, action: Action, pc: int, instruction: Instruction, cost: Cost, touched: Touched
    ) -> None:
        """Begin a segment with an action."""
        self.cursor = self.earliest(instruction, cost)
        self.close()
        tag = -1
        if instruction.dst and action is not Action.BARRIER:
            tag = self.tags
            self.tags += 1
            if action in (Action.GLOBAL_LOAD, Action.GLOBAL_ATOMIC):
                self.from_global.add(tag)
            for register in instruction.dst:
                self.pending[register] = tag
                self.ready.pop(register, None)
        self.action = (action, pc, touched, tag)
        self.issued = 1
        self.slots = cost.slot
        self.cursor = max(TICKS, cost.slot)
        self.charges = {pc: self.cursor}
        self.deferred = DEFERRED if action is Action.BARRIER else 0

    def run(self, pc: int, instruction: Instruction, cost: Cost, *, is_taken: bool) -> None:
        """Add an instruction that takes a fixed time."""
        if self.action[0] is Action.BARRIER:
            if not self.deferred or cost.after or cost.pipe == "uniform":
                self.close()
            else:
                self.deferred -= 1
        at = self.earliest(instruction, cost)
        if at - self.cursor > LONGEST_BUBBLE and self.issued:
            self.charges[next(reversed(self.charges))] += at - self.cursor
            self.cursor = at
            self.close()
            at = 0
        self.issued += 1
        self.slots += cost.slot
        if cost.pipe in PIPES:
            self.pipes[cost.pipe] = self.pipes.get(cost.pipe, 0) + cost.interval
            self.pipe_free[cost.pipe] = at + cost.interval
        before = self.cursor
        self.cursor = at + cost.slot + (cost.jump if is_taken else cost.after)
        for register in instruction.dst:
            self.ready[register] = (at + cost.latency, cost)
            self.pending.pop(register, None)
        self.charges[pc] = self.charges.get(pc, 0) + self.cursor - before

    def leave(self, pc: int, issued: int) -> None:
        """End the stream with the warp's exit."""
        self.close()
        self.action = (Action.EXIT, pc, _NOTHING, -1)
        self.issued = issued
        self.slots = self.cursor = issued * TICKS
        self.close()


def segments(
    stream: WarpStream, program: Program, costs: list[Cost]
) -> tuple[tuple[Segment, ...], int]:
    """Return a warp's stream as segments, and how many tags they use."""
    cutter = _Cutter()
    pcs = stream.pc.tolist()
    columns = (stream.is_on, stream.is_taken, stream.cost, stream.fresh, stream.lines, stream.joins)
    rows = zip(pcs, *(column.tolist() for column in columns), strict=True)
    for place, (pc, is_on, is_taken, passes, fresh, lines, joins) in enumerate(rows):
        instruction, cost = program.instructions[pc], costs[pc]
        guard = () if instruction.guard is None else (instruction.guard,)
        cutter.await_results((*instruction.src, *guard), pc)
        action = _action(instruction, cost)
        if action is Action.ADDRESS:
            cutter.act(action, pc, instruction, cost, Touched(cost.latency))
        elif action is not None:
            found = instruction.memory
            is_float = found is not None and found.dtype.kind == "f"
            what = Touched(passes, fresh, lines, joins, is_float) if is_on else _NOTHING
            cutter.act(action, pc, instruction, cost, what)
        elif OPS[instruction.op].kind == "exit" and place == len(pcs) - 1:
            cutter.cursor = cutter.earliest(instruction, cost)
            cutter.leave(pc, 1)
        else:
            cutter.run(pc, instruction, cost, is_taken=is_taken)
    if not cutter.made or cutter.made[-1].action is not Action.EXIT:
        cutter.leave(pcs[-1] if pcs else 0, 0)
    return tuple(cutter.made), cutter.tags
