"""How fast a warp that has the device for itself goes through a program, row by row.

What only a clock knows is left out: other warps, queues, what caches hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gpusim.gpu.device import Device
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.prediction.arithmetic.ticks import ticks
from gpusim.prediction.clock.issue import Issue, issues
from gpusim.prediction.clock.steps import Action
from gpusim.program.polling import spins


class Pace(NamedTuple):
    """An instruction as a warp goes through it. Times in ticks.

    The next one follows after `gap`, once what it `reads` is there; a result that is waited for
    comes after `latency`, and out of DRAM `fetch` later at least, to which an exponential law of
    the mean `more` adds. What it touches `is_kept` in the L2 from then on. It `is_seen` where
    other blocks may find what it does to memory, or it finds what they do; it `spins` where a loop
    does nothing but repeat it until they have.
    """

    gap: int
    latency: int
    fetch: int
    more: int
    reads: tuple[int, ...]
    is_kept: bool
    is_seen: bool
    spins: bool


def paces(program: Program, device: Device, l2: str) -> list[Pace]:
    """Return each instruction of a program as a warp goes through it on a device."""
    spinning = spins(program)
    words, stored = _places(program, spinning), _places(program, _stores(program))
    rows = issues(program, device)
    found = []
    latency = device.latency_cycles
    for pc, row in enumerate(program.instructions):
        is_word = _is_of(row, words)
        is_fetch = l2 == "cold" and _may_fetch(rows[pc]) and not is_word
        found.append(
            Pace(
                gap=_gap(rows, pc),
                latency=ticks(_latency(rows[pc], device, is_passed_on=_is_of(row, words | stored))),
                fetch=ticks(latency.dram_least - latency.l2) if is_fetch else 0,
                more=ticks(latency.dram - latency.dram_least) if is_fetch else 0,
                reads=rows[pc].reads,
                is_kept=l2 == "cold" and row.memory is not None and row.memory.space == "global",
                is_seen=is_word or rows[pc].action is Action.GLOBAL_ATOMIC,
                spins=pc in spinning,
            )
        )
    passing_on = ticks(latency.fenced_flag - latency.flag)
    for pc in _before_words(program, found):
        found[pc] = found[pc]._replace(gap=max(found[pc].gap, passing_on))
    return found


def _before_words(program: Program, found: Sequence[Pace]) -> Iterator[int]:
    """Yield the last fence before each word that is written, if none is read between them."""
    fence: int | None = None
    for pc, row in enumerate(program.instructions):
        op = OPS[row.op]
        if op.waits_for_memory and row.detail != "block":
            fence = pc
        elif found[pc].is_seen:
            if op.writes_memory and fence is not None:
                yield fence
            fence = None


def _places(program: Program, pcs: Iterable[int]) -> frozenset[str]:
    """Return the arrays that instructions may touch."""
    found = (program.instructions[pc].memory for pc in pcs)
    nothing: frozenset[str] = frozenset()
    return nothing.union(*(memory.places for memory in found if memory is not None))


def _stores(program: Program) -> Iterator[int]:
    """Yield the pcs of what stores to global memory."""
    for pc, row in enumerate(program.instructions):
        if OPS[row.op].writes_memory and row.memory is not None and row.memory.space == "global":
            yield pc


def _is_of(row: Instruction, places: frozenset[str]) -> bool:
    memory = row.memory
    return memory is not None and memory.space != "shared" and memory.may_touch(places)


def _gap(rows: list[Issue], pc: int) -> int:
    """Return how long after an instruction the next one may be issued, if it awaits no result.

    A compiler's code says so; else a result is waited for where the very next instruction needs it.
    """
    instruction, cost = rows[pc].instruction, rows[pc].cost
    op = OPS[instruction.op]
    if not op.issued:
        return 0
    jumps = op.kind == "branch" and (instruction.guard is None or instruction.target <= pc)
    waits = op.kind != "fence" or op.waits_for_memory
    after = cost.jump if jumps else cost.after if waits else 0
    gap = max(cost.slot + after, ticks(instruction.stall_cycles))
    following = rows[pc + 1] if pc + 1 < len(rows) else None
    if instruction.stall_cycles or rows[pc].action is not Action.RUN or following is None:
        return gap
    if following.instruction.guard in instruction.dst:
        return max(gap, cost.latency + cost.deciding)
    return gap if set(instruction.dst).isdisjoint(following.reads) else max(gap, cost.latency)


def _may_fetch(row: Issue) -> bool:
    """Return whether an instruction loads what the L1 may keep."""
    memory = row.instruction.memory
    return row.action is Action.GLOBAL_LOAD and memory is not None and not memory.volatile


def _latency(row: Issue, device: Device, *, is_passed_on: bool) -> float:
    """Return after how many cycles a result is there, out of the L2; 0 where these are fixed.

    What `is_passed_on` from one block to another was stored by the launch itself.
    """
    latency = device.latency_cycles
    if row.action is Action.GLOBAL_LOAD:
        return latency.l2 if _may_fetch(row) and not is_passed_on else passed_on_cycles(device)
    if row.action in (Action.RUN, Action.BARRIER) or not row.instruction.dst:
        return 0.0
    if row.action is Action.SPECIAL:
        return latency.xu
    return float(getattr(latency, row.action.name.lower()))  # a device key for each


def passed_on_cycles(device: Device) -> float:
    """Return the latency of a load of what another SM stored, the mean over where that lies.

    Of an L2 with several parts one has it: for as many SMs as belong to the others it is far.
    """
    far = 1 - 1 / device.capacity.l2_parts
    return device.latency_cycles.l2 + far * device.latency_cycles.l2_far
