"""A program's instructions as a device issues them: what each costs, does and reads."""

from __future__ import annotations

from typing import NamedTuple

from gpusim.device import Device
from gpusim.isa import OPS, Instruction, Op, Program
from gpusim.memory import WORD_BYTES
from gpusim.prediction.clock.costs import Cost, instruction_costs
from gpusim.prediction.clock.steps import Action
from gpusim.prediction.ticks import TICKS, ticks


class Issue(NamedTuple):
    """An instruction as steps are made of it: what it costs, does and reads.

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
