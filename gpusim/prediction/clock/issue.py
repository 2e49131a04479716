"""A program's instructions as a device issues them: what each costs, does and reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gpusim.gpu.device import Device
from gpusim.gpu.memory import WORD_BYTES
from gpusim.isa.ops import OPS, Instruction, Op, Program
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.clock.costs import Cost, instruction_costs
from gpusim.prediction.clock.steps import Action


class Issue(NamedTuple):
    """An instruction as steps are made of it: what it costs, does and reads.

    It `is_held` where a warp that is behind a barrier does not issue it before it is held there.
    It keeps its scheduler's `port` to memory for some ticks, and has so many `words` for a lane.
    `copies` is its part in copies to shared memory that go on behind it: see `isa.Op`. Such a part
    of it `joins` an instruction like it right before it, to the same sectors.
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
    """Return each instruction of a program as a device issues it."""
    costs = instruction_costs(program, device)
    interval = device.interval_cycles
    ports = ticks(interval.lsu_scheduler), ticks(interval.store_scheduler)
    pairs = zip(_reading_what_is_issued(program), costs, strict=True)
    return [_issue(instruction, cost, ports, interval.store_joined) for instruction, cost in pairs]


def _reading_what_is_issued(program: Program) -> Iterator[Instruction]:
    """Yield the instructions, reading what the rows that are never issued put together for them.

    In a compiler's code these are operands: an address that is a sum of registers, a predicate
    that is the opposite of one. They are as late as what they are made of. In the lowering's they
    stand for nothing that an instruction of the hardware would wait for.
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
    instruction: Instruction, cost: Cost, ports: tuple[int, int], store_joined: float
) -> Issue:
    op, found = OPS[instruction.op], instruction.memory
    action = _action(op, instruction)
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
        copies=op.copies,
        joins=joins,
    )


def _action(op: Op, instruction: Instruction) -> Action:
    """Return what takes no fixed time: a fence within the block waits for nothing."""
    waits = op.kind != "fence" or instruction.detail != "block"
    return Action[op.action.upper()] if op.action and waits else Action.RUN


def _port(op: Op, instruction: Instruction, words: int, ports: tuple[int, int]) -> int:
    """Return how long an access keeps its scheduler's port to memory: for each register it reads.

    `ports` are those of a load and of a store of a word in shared memory, of one register and two.
    """
    load, store = ports
    if instruction.memory is None:
        return load if op.action == "shuffle" else TICKS
    more = (instruction.memory.space == "global") + (words if op.writes_memory else 0)
    return load + more * (store - load)
