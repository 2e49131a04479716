"""Latencies of a program's instructions for a lone warp.

Contention is left to the clock: other warps, queues, cache capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gpusim.gpu.device import Device
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.prepared import Prepared
from gpusim.machine.pace import Pace, Pacing, places
from gpusim.prediction.arithmetic.quasirandom import FETCHES_APART, GOLDEN, MOST_DRAWN
from gpusim.prediction.arithmetic.ticks import ticks
from gpusim.prediction.clock.issue import Issue, issues
from gpusim.prediction.clock.steps import Action
from gpusim.program.polling import spins
from gpusim.typing import Array

STEP = ticks(256)  # of random latencies


class UnloadedTiming(NamedTuple):
    """The timing of one instruction for a lone warp, in ticks.

    The next instruction follows after `gap`, once the registers it `reads` are ready. A result
    comes after `latency`; out of DRAM `fetch` later at least, plus an exponentially distributed
    time of mean `more`. An access that `is_kept` leaves its line in the L2. An instruction that
    `is_seen` communicates with other blocks through memory; one that `spins` is the poll of a loop
    with no other work.
    """

    gap: int
    latency: int
    fetch: int
    more: int
    reads: tuple[int, ...]
    is_kept: bool
    is_seen: bool
    spins: bool


def unloaded_timings(program: Program, device: Device, l2: str) -> list[UnloadedTiming]:
    """Return the timing of each instruction of a program for a lone warp on a device."""
    spinning = spins(program)
    words, stored = places(program, spinning), places(program, _stores(program))
    rows = issues(program, device)
    found = []
    latency = device.latency_cycles
    for pc, row in enumerate(program.instructions):
        is_word = _is_of(row, words)
        is_fetch = l2 != "warm" and _may_fetch(rows[pc]) and not is_word
        found.append(
            UnloadedTiming(
                gap=_gap(rows, pc),
                latency=ticks(_latency(rows[pc], device, is_passed_on=_is_of(row, words | stored))),
                fetch=ticks(latency.dram_least - latency.l2) if is_fetch else 0,
                more=ticks(latency.dram - latency.dram_least) if is_fetch else 0,
                reads=rows[pc].reads,
                is_kept=l2 != "warm" and row.memory is not None and row.memory.space == "global",
                is_seen=is_word or rows[pc].action is Action.GLOBAL_ATOMIC,
                spins=pc in spinning,
            )
        )
    passing_on = ticks(latency.fenced_flag - latency.flag)
    for pc in _before_words(program, found):
        found[pc] = found[pc]._replace(gap=max(found[pc].gap, passing_on))
    return found


def pace_of(prepared: Prepared, device: Device, l2: str, blocks: int) -> Pace:
    """Return the times of a launch, with delays of so many of its blocks."""
    latency, warps = device.latency_cycles, prepared.launch.warps_per_block
    timings = unloaded_timings(prepared.program, device, l2)
    late = frozenset(pc for pc, one in enumerate(timings) if one.latency)
    registers = {r for pc in late for r in prepared.program.instructions[pc].dst}
    pacing = Pacing(
        reads=tuple(tuple(r for r in one.reads if r in registers) for one in timings),
        late=late,
        fetch=tuple(pc for pc, one in enumerate(timings) if one.more),
        keep=frozenset(pc for pc, one in enumerate(timings) if one.is_kept),
        seen=frozenset(pc for pc, one in enumerate(timings) if one.is_seen),
        spin=frozenset(pc for pc, one in enumerate(timings) if one.spins),
    )
    return Pace(
        pacing,
        gaps=np.array([one.gap for one in timings]),
        latencies=np.array([one.latency for one in timings]),
        delays=_delays(timings, pacing.fetch, blocks),
        begin=ticks(latency.block_start + latency.cold_start),
        turnover=ticks(latency.block_end + latency.block_start),
        barrier=ticks(latency.barrier + warps * latency.barrier_per_warp),
        wake_after=ticks(max(0.0, latency.flag - passed_on_cycles(device))),
        apart=ticks(device.interval_cycles.global_atomic_same_address),
    )


def _delays(timings: Sequence[UnloadedTiming], fetch: Sequence[int], blocks: int) -> Array:
    """Return the latency out of DRAM beyond that of the L2, by load and block."""
    found = np.zeros((len(fetch), blocks), np.int64)
    for delays, pc in zip(found, fetch, strict=True):
        drawn = (np.arange(blocks) + FETCHES_APART * pc) * GOLDEN % 1.0
        far = -np.log1p(-MOST_DRAWN * drawn) * timings[pc].more
        delays[:] = timings[pc].fetch + np.rint(far / STEP).astype(np.int64) * STEP
    return found


def _before_words(program: Program, found: Sequence[UnloadedTiming]) -> Iterator[int]:
    """Yield the last fence before each write of a polled word, unless one is read between them."""
    fence: int | None = None
    for pc, row in enumerate(program.instructions):
        op = OPS[row.op]
        if op.waits_for_memory and row.detail != "block":
            fence = pc
        elif found[pc].is_seen:
            if op.writes_memory and fence is not None:
                yield fence
            fence = None


def _stores(program: Program) -> Iterator[int]:
    """Yield the pcs of stores and atomics to global memory."""
    for pc, row in enumerate(program.instructions):
        if OPS[row.op].writes_memory and row.memory is not None and row.memory.space == "global":
            yield pc


def _is_of(row: Instruction, places: frozenset[str]) -> bool:
    memory = row.memory
    return memory is not None and memory.space != "shared" and memory.may_touch(places)


def _gap(rows: list[Issue], pc: int) -> int:
    """Return the ticks until the next instruction may be issued, if it awaits no result.

    A compiler's stall count where there is one; else the latency, if the very next instruction
    needs the result.
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
    """Return whether an instruction is a load that may hit in the L1."""
    memory = row.instruction.memory
    return row.action is Action.GLOBAL_LOAD and memory is not None and not memory.volatile


def _latency(row: Issue, device: Device, *, is_passed_on: bool) -> float:
    """Return the cycles until a result out of the L2 is ready; 0 for fixed latencies.

    Data that `is_passed_on` between blocks was stored by the launch itself.
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
    """Return the latency of a load of another SM's store, the mean over its place in the L2.

    One of the L2's parts holds the line, and the SMs at all other parts reach it from afar.
    """
    far = 1 - 1 / device.capacity.l2_parts
    return device.latency_cycles.l2 + far * device.latency_cycles.l2_far
