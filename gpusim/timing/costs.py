"""From a warp stream to what the clock plays: segments that end where a warp may wait.

Within a segment nothing depends on other warps: its instructions and the bubbles that their
fixed latencies leave are added up here, once for each different stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from gpusim.device import Device
from gpusim.isa import OPS, Instruction, Program
from gpusim.streams import WarpStream

TICKS = 16  # ticks per cycle: intervals that are no whole number of cycles stay integers


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
    BARRIER = 8
    EXIT = 9


class Segment(NamedTuple):
    """One action and the instructions after it, up to the next action or wait.

    `cost` is the action's wavefronts, sectors or lanes with one address, `fresh` its sectors
    that miss the L1, `lines` its 128-byte lines; it `joins` where it waits for what another warp
    fetches. The result, if any, is known as `tag`; the
    warp goes on when the results in `needs` are there. `slots` is how long the instructions
    keep the scheduler, `pipes` how long each pipe that is slower than the scheduler, `chain` how
    long they take one warp; all in ticks.
    `waits_long` says that a needed result comes from global memory; `charges` are the pcs
    that `chain` is made of, with their ticks.
    """

    action: Action
    pc: int
    cost: int
    fresh: int
    lines: int
    joins: bool
    tag: int
    slots: int
    chain: int
    needs: tuple[int, ...]
    waits_pc: int
    waits_long: bool
    issued: int
    charges: tuple[tuple[int, int], ...] = ()
    pipes: tuple[tuple[int, int], ...] = ()


PIPES = ("alu", "fma", "imad", "fp64", "xu", "uniform")

# A longer bubble ends a segment, and the scheduler looks for another warp meanwhile. Ending one
# at every bubble is more than twice as slow and changes times by a few percent.
LONGEST_BUBBLE = 12 * TICKS

_ACTIONS = {
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


@dataclass(frozen=True)
class Cost:
    """What a computing instruction costs: result after `latency`, pipe kept for `interval`.

    Where another pipe takes the result it is there `elsewhere` later.
    """

    pipe: str
    latency: int
    interval: int
    elsewhere: int = 0


def ticks(cycles: float) -> int:
    """Return cycles as a whole number of ticks."""
    return round(cycles * TICKS)


def instruction_costs(program: Program, device: Device) -> list[Cost]:
    """Return, per pc, what a computing instruction costs on a device."""
    return [_cost(instruction, device) for instruction in program.instructions]


def _cost(instruction: Instruction, device: Device) -> Cost:
    latency, interval = device.latency_cycles, device.interval_cycles
    pipe = OPS[instruction.op].pipe
    by_pipe = {
        "alu": (latency.alu, interval.alu),
        "fma": (latency.fma, interval.fma),
        "fp64": (latency.fp64, interval.fp64),
        "xu": (latency.xu, interval.xu),
        "uniform": (latency.uniform, interval.uniform),
    }
    cycles: tuple[float, float]
    if instruction.op in ("S2R", "S2UR"):
        cycles = (latency.special_register, 1)
    elif OPS[instruction.op].kind == "constant":
        cycles = (latency.constant if instruction.op == "LDC" else latency.uniform, 1)
    elif instruction.op == "VOTE":
        cycles = (latency.vote, interval.alu)
    elif instruction.op.startswith("IMAD"):
        cycles = (latency.imad, interval.imad)
        pipe = "imad"
    else:
        cycles = by_pipe.get(pipe, (latency.alu, 1))
    decides = "SETP" in instruction.op or instruction.op == "PLOP3"
    result = latency.predicate if decides else cycles[0]
    elsewhere = 0 if decides or pipe not in PIPES else latency.other_pipe
    return Cost(pipe, ticks(result), ticks(cycles[1]), ticks(elsewhere))


_NO_ACTION = (Action.RUN, -1, 0, 0, 0, False, -1)


@dataclass
class _Builder:
    """The segment under construction: when the next instruction may issue, and what is ready."""

    issue: int
    made: list[Segment] = field(default_factory=list)
    cursor: int = 0
    issued: int = 0
    slots: int = 0
    pipes: dict[str, int] = field(default_factory=dict)
    pipe_free: dict[str, int] = field(default_factory=dict)
    ready: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    pending: dict[int, int] = field(default_factory=dict)
    from_global: set[int] = field(default_factory=set)
    charges: dict[int, int] = field(default_factory=dict)
    action: tuple[Action, int, int, int, int, bool, int] = _NO_ACTION

    def close(self, needs: tuple[int, ...] = (), waits_pc: int = -1) -> None:
        """End the segment; the next begins when the results in `needs` are there."""
        action, pc, cost, fresh, lines, joins, tag = self.action
        if action is Action.RUN:
            pc = next(iter(self.charges), waits_pc)
        if action is not Action.RUN or self.issued or needs:
            slots = self.slots
            chain = max(self.cursor, slots)
            pipes = tuple((PIPES.index(p), t) for p, t in self.pipes.items() if t > slots)
            self.made.append(
                Segment(
                    action,
                    pc,
                    cost,
                    fresh,
                    lines,
                    joins,
                    tag,
                    slots,
                    chain,
                    needs,
                    waits_pc,
                    not self.from_global.isdisjoint(needs),
                    self.issued,
                    tuple(self.charges.items()),
                    pipes,
                )
            )
        base = self.cursor
        self.ready = {
            r: (t - base, extra, pipe)
            for r, (t, extra, pipe) in self.ready.items()
            if t + extra > base and not needs
        }
        self.pipe_free = {p: t - base for p, t in self.pipe_free.items() if t > base}
        self.cursor = self.issued = self.slots = 0
        self.charges = {}
        self.pipes = {}
        self.action = _NO_ACTION


def segments(
    stream: WarpStream, program: Program, costs: list[Cost], device: Device
) -> tuple[tuple[Segment, ...], int]:
    """Return a warp's stream as segments, and how many tags they use.

    A segment ends before each action and where an instruction reads a result whose latency
    is not fixed.
    """
    instructions = program.instructions
    issue = TICKS // max(1, device.sm.issue_width)
    bubble = ticks(device.latency_cycles.branch)
    state = _Builder(issue)
    tags = 0
    pcs, on, taken = stream.pc.tolist(), stream.is_on.tolist(), stream.is_taken.tolist()
    costly, lines, fresh = stream.cost.tolist(), stream.lines.tolist(), stream.fresh.tolist()
    joins = stream.joins.tolist()
    for place, pc in enumerate(pcs):
        instruction = instructions[pc]
        kind = OPS[instruction.op].kind
        reads = (
            instruction.src
            if instruction.guard is None
            else (
                *instruction.src,
                instruction.guard,
            )
        )
        waits = tuple(sorted({state.pending[r] for r in reads if r in state.pending}))
        if waits:
            state.close(waits, pc)
            state.pending = {r: t for r, t in state.pending.items() if t not in waits}
        mine = costs[pc].pipe
        at = max(state.cursor, state.pipe_free.get(mine, 0))
        for register in reads:
            if register in state.ready:
                there, elsewhere, pipe = state.ready[register]
                at = max(at, there if pipe == mine else there + elsewhere)
        action = _ACTIONS.get((instruction.op, kind))
        if action is not None and (on[place] or action is Action.BARRIER):
            state.cursor = at
            state.close()
            tag = -1
            if instruction.dst and action is not Action.BARRIER:
                tag = tags
                tags += 1
                if action in (Action.GLOBAL_LOAD, Action.GLOBAL_ATOMIC):
                    state.from_global.add(tag)
                for register in instruction.dst:
                    state.pending[register] = tag
                    state.ready.pop(register, None)
            touched = (costly[place], fresh[place], lines[place], joins[place])
            state.action = (action, pc, *touched, tag)
            state.issued = 1
            state.slots = issue
            state.cursor = TICKS
            state.charges = {pc: TICKS}
            if action is Action.BARRIER:
                state.close()
            continue
        if kind == "exit" and place == len(pcs) - 1:
            state.cursor = at
            state.close()
            state.action = (Action.EXIT, pc, 0, 0, 0, False, -1)
            state.issued = 1
            state.slots = state.cursor = TICKS
            break
        if at - state.cursor > LONGEST_BUBBLE and state.issued:
            last = next(reversed(state.charges))
            state.charges[last] += at - state.cursor
            state.cursor = at
            state.close()
            at = state.cursor
        cost = costs[pc]
        state.issued += 1
        state.slots += issue
        if cost.pipe in PIPES:
            state.pipes[cost.pipe] = state.pipes.get(cost.pipe, 0) + cost.interval
            state.pipe_free[cost.pipe] = at + cost.interval
        before = state.cursor
        state.cursor = at + issue
        for register in instruction.dst:
            state.ready[register] = (at + cost.latency, cost.elsewhere, cost.pipe)
            state.pending.pop(register, None)
        if taken[place]:
            state.cursor += bubble
        state.charges[pc] = state.charges.get(pc, 0) + state.cursor - before
    state.close()
    if not state.made or state.made[-1].action is not Action.EXIT:
        state.action = (Action.EXIT, pcs[-1] if pcs else 0, 0, 0, 0, False, -1)
        state.issued = 0
        state.close()
    return tuple(state.made), tags
