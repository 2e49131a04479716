"""Issue properties of a program's instructions on a device: cost, action and operands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gpusim.gpu.device import Device
from gpusim.gpu.memory import WORD_BYTES
from gpusim.isa.ops import BULK_STORE, OPS, Instruction, Op, Program
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.clock.costs import Cost, instruction_costs
from gpusim.prediction.clock.steps import Action
from gpusim.prediction.streams.phases import ARRIVE, ASK, COPY, SET, roles

_OF_MBARRIERS = {
    SET: Action.MBARRIER_SET,
    ARRIVE: Action.MBARRIER_ARRIVE,
    ASK: Action.MBARRIER_WAIT,
}
# Parts of instructions in groups of bulk copies, which are awaited as other copies are.
_OF_GROUPS = {BULK_STORE: "begins", "UTMACMDFLUSH": "commits"}


class Issue(NamedTuple):
    """An instruction as input of the step builder: cost, action and operands.

    It `is_held` if a warp past a barrier cannot issue it before it is held there. It occupies its
    scheduler's memory `port` for some ticks, and has `words` 32-bit words per lane. `copies` is its
    role in asynchronous copies to shared memory: see `isa.Op`. `joins` is the fraction of a store
    that merges with a store to the same sectors right before it.
    """

    instruction: Instruction
    cost: Cost
    action: Action
    reads: tuple[int, ...]
    is_held: bool
    is_exit: bool
    is_float: bool
    is_swap: bool
    port: int
    words: int
    copies: str
    joins: float


def issues(program: Program, device: Device) -> list[Issue]:
    """Return each instruction of a program with its issue properties on a device."""
    costs = instruction_costs(program, device)
    interval = device.interval_cycles
    ports = ticks(interval.lsu_scheduler), ticks(interval.store_scheduler)
    actions = {pc: _OF_MBARRIERS[role] for pc, role in roles(program).items() if role != COPY}
    return [
        _issue(row, cost, actions.get(pc), ports, interval.store_joined)
        for pc, (row, cost) in enumerate(zip(_reading_what_is_issued(program), costs, strict=True))
    ]


def _reading_what_is_issued(program: Program) -> Iterator[Instruction]:
    """Yield the instructions, with pseudo-instructions replaced by their sources as operands.

    In a compiler's code these are operand expressions: an address as a sum of registers, a negated
    predicate. They are ready when their sources are. In the lowering's code no instruction of the
    hardware would wait for them.
    """
    if not program.compiler:
        yield from program.instructions
        return
    made: dict[int, dict[int, None]] = {}
    for row in program.instructions:
        if not OPS[row.op].issued:
            for register in row.dst:
                sources = dict.fromkeys(one for read in row.src for one in made.get(read, (read,)))
                made.setdefault(register, {}).update(sources)
    for row in program.instructions:
        if made.keys().isdisjoint(row.src):
            yield row
        else:
            yield replace(
                row, src=tuple(one for read in row.src for one in made.get(read, (read,)))
            )


def _issue(
    instruction: Instruction,
    cost: Cost,
    of_mbarrier: Action | None,
    ports: tuple[int, int],
    store_joined: float,
) -> Issue:
    op, found = OPS[instruction.op], instruction.memory
    action = _action(op, instruction) if of_mbarrier is None else of_mbarrier
    guard = () if instruction.guard is None else (instruction.guard,)
    waits = bool(cost.after) or op.copies == "awaits"
    is_held = action is not Action.RUN or waits or cost.pipe == "uniform"
    is_float = found is not None and found.dtype.kind == "f"
    reads = (*instruction.src, *guard)
    words = 1 if found is None else max(1, found.width_bytes // WORD_BYTES)
    port = _port(op, instruction, words, ports)
    is_in_global = found is not None and found.space == "global"
    joins = store_joined if is_in_global and action is Action.GLOBAL_STORE else 0.0
    return Issue(
        instruction,
        cost,
        action,
        reads,
        is_held=is_held,
        is_exit=op.kind == "exit",
        is_float=is_float,
        is_swap=op.kind == "atomic" and instruction.detail == "cas",
        port=port,
        words=words,
        copies=op.copies or _OF_GROUPS.get(instruction.op, ""),
        joins=joins,
    )


def _action(op: Op, instruction: Instruction) -> Action:
    """Return the action of variable latency; a fence within the block waits for nothing."""
    waits = op.kind != "fence" or instruction.detail != "block"
    return Action[op.action.upper()] if op.action and waits else Action.RUN


def _port(op: Op, instruction: Instruction, words: int, ports: tuple[int, int]) -> int:
    """Return the ticks on the scheduler's memory port: one interval per register read.

    `ports` are the times for a load and for a store of one word in shared memory, with one and two
    registers.
    """
    load, store = ports
    if instruction.memory is None:
        return load if op.action == "shuffle" else TICKS
    more = (instruction.memory.space == "global") + (words if op.writes_memory else 0)
    return load + more * (store - load)
