"""Issue properties of a program's instructions on a device: cost, action and operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpusim.gpu.device import Device
from gpusim.gpu.memory import WORD_BYTES
from gpusim.isa.ops import BULK_STORE, OPS, WARPGROUP_WAIT, Instruction, Op, Program
from gpusim.isa.warpgroups import WarpgroupProduct
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.clock.costs import Cost, instruction_costs
from gpusim.prediction.clock.steps import Action
from gpusim.prediction.streams.peers import ARRIVE, ASK, SEND
from gpusim.prediction.streams.phases import COPY, SET, roles

_OF_MBARRIERS = {
    SET: Action.MBARRIER_SET,
    ARRIVE: Action.MBARRIER_ARRIVE,
    ASK: Action.MBARRIER_WAIT,
    SEND: Action.PEER_ARRIVE,
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
    rows = _awaiting_products(program.instructions)
    if program.compiler:
        rows = [*_reading_what_is_issued(rows)]
    return [
        _issue(row, cost, actions.get(pc), ports, interval.store_joined)
        for pc, (row, cost) in enumerate(zip(rows, costs, strict=True))
    ]


def _reading_what_is_issued(rows: Sequence[Instruction]) -> Iterator[Instruction]:
    """Yield the instructions, with pseudo-instructions replaced by their sources as operands.

    In a compiler's code these are operand expressions: an address as a sum of registers, a negated
    predicate. They are ready when their sources are. In the lowering's code no instruction of the
    hardware would wait for them.
    """
    made: dict[int, dict[int, None]] = {}
    for row in rows:
        if not OPS[row.op].issued:
            for register in row.dst:
                sources = dict.fromkeys(one for read in row.src for one in made.get(read, (read,)))
                made.setdefault(register, {}).update(sources)
    for row in rows:
        if made.keys().isdisjoint(row.src):
            yield row
        else:
            yield replace(
                row, src=tuple(one for read in row.src for one in made.get(read, (read,)))
            )


def _awaiting_products(rows: Sequence[Instruction]) -> Sequence[Instruction]:
    """Return instructions, with the sums of warpgroups' products as operands of waits for all.

    A product that adds to such sums waits for its unit alone.
    """
    products = [row for row in rows if isinstance(row.detail, WarpgroupProduct)]
    sums = tuple(sorted({register for row in products for register in row.dst}))

    def awaiting(row: Instruction) -> Instruction:
        if isinstance(row.detail, WarpgroupProduct):
            return replace(row, src=row.src[: -row.detail.form.registers[2]])
        is_wait_for_all = row.op == WARPGROUP_WAIT and not row.detail
        return replace(row, src=sums) if is_wait_for_all else row

    return [awaiting(row) for row in rows] if products else rows


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
    if op.kind == "bulk_copy" and op.timing != "peer_copy":
        parts = str(instruction.detail).split(".")
        if parts[-1] == "multicast":
            return Action.MULTICAST
        if parts[0] == "tensor":
            return Action.BOX_STORE if instruction.op == BULK_STORE else Action.BOX_LOAD
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
