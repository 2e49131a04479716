"""Warps that wait: for data, for each other, for their own results, for pipes and queues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpusim.advice.barriers import UnknownOrder, ordered_by
from gpusim.advice.evidence import Evidence
from gpusim.advice.records import Advice
from gpusim.advice.registry import rule
from gpusim.advice.stalls import STALLS
from gpusim.isa.ops import OPS
from gpusim.prediction.bounds import SPINNING
from gpusim.prediction.records import Prediction

NEAR = 0.6  # of the nearest limit: above, more warps or loads would change little
LONG, BARRIER, DEPENDENT, OTHER = 0.4, 0.1, 0.4, 0.3  # of the warps' time


def nearness(made: Prediction) -> float:
    """Return the nearest limit other than latency, as a fraction of the kernel's own time."""
    limits = [b.time_us for b in made.bounds if b.name not in ("latency", SPINNING)]
    return max(limits, default=0.0) * made.device.gpu.sm_clock_mhz / max(1.0, made.cycles)


def is_waiting(made: Prediction | None) -> bool:
    """Return whether a prediction is far from all limits, and no block waits for another."""
    if made is None:
        return False
    return nearness(made) < NEAR and made.limiter.name != SPINNING


def _by_line(evidence: Evidence, stalls: Mapping[int, float]) -> dict[int, float]:
    table: dict[int, float] = {}
    for pc, fraction in stalls.items():
        line = evidence.instructions[pc].line if pc >= 0 else 0
        table[line] = table.get(line, 0.0) + fraction
    return table


def _most(table: Mapping[int, float]) -> int:
    return max(table, key=lambda line: (table[line], -line))


@rule("latency", removal="latency")
def latency(evidence: Evidence) -> Iterator[Advice]:
    """Too few loads in flight for the latency of memory (Little's law)."""
    made = evidence.prediction
    if made is None or not is_waiting(made) or made.stalls["long_scoreboard"] < LONG:
        return
    waits: dict[int, float] = {}
    for pc, fraction in evidence.stalls("long_scoreboard").items():
        line = _load_line(evidence, pc)
        waits[line] = waits.get(line, 0.0) + fraction
    line = _most(waits)
    if not line:
        return
    clock, sms = made.device.gpu.sm_clock_mhz, min(made.device.gpu.sms, made.launch.blocks)
    dram = made.device.bandwidth.dram_gbps * 1000 / clock / made.device.gpu.sms
    needed = dram * made.device.latency_cycles.dram
    moved = made.traffic.compulsory_bytes / max(1.0, made.cycles) / sms
    under_way = moved * made.device.latency_cycles.dram
    yield Advice(
        "latency",
        line,
        f"line {line}: warps wait {100 * waits[line]:.0f} % of their time for its loads; about "
        f"{under_way:,.0f} bytes are in flight on an SM, and {needed:,.0f} would hide the latency "
        "of DRAM. Fix: more loads in flight per thread, or more warps.",
        waits[line] * evidence.cycles,
        explains=frozenset({"long-scoreboard"}),
    )


def _load_line(evidence: Evidence, pc: int) -> int:
    """Return the line of the global load that an instruction waits for, or its own."""
    rows = evidence.instructions
    if pc < 0:
        return 0
    wanted = {*rows[pc].src, rows[pc].guard}
    for before in (*range(pc - 1, -1, -1), *range(len(rows) - 1, pc, -1)):
        row = rows[before]
        if OPS[row.op].kind == "load" and not wanted.isdisjoint(row.dst):
            return int(row.line)
        if not OPS[row.op].issued and not wanted.isdisjoint(row.dst):
            wanted |= set(row.src)
    return int(rows[pc].line)


@rule("barrier", removal="barriers")
def barrier(evidence: Evidence) -> Iterator[Advice]:
    """Warps that wait for the others of their block."""
    made = evidence.prediction
    if made is None or made.stalls["barrier"] < BARRIER or nearness(made) > 0.9:
        return
    rows = evidence.instructions
    meets = [pc for pc, row in enumerate(rows) if OPS[row.op].action == "barrier"]
    waits: dict[int, float] = {}
    for pc, fraction in evidence.stalls("barrier").items():
        before = [meet for meet in meets if meet < pc] or meets
        if before:
            line = rows[before[-1]].line
            waits[line] = waits.get(line, 0.0) + fraction
    if not waits:
        return
    line = _most(waits)
    yield Advice(
        "barrier",
        line,
        f"line {line}: warps wait {100 * waits[line]:.0f} % of their time at its barrier for the "
        f"others of their block; {_barrier_remedy(evidence, line)}.",
        waits[line] * evidence.cycles,
    )


def _barrier_remedy(evidence: Evidence, line: int) -> str:
    """Return the remedy for waits at a line's barrier, by the accesses that it orders."""
    try:
        ordered = ordered_by(evidence, line)
    except UnknownOrder:
        return (
            "smaller blocks reduce the wait; a warp barrier or no barrier is enough "
            "where no warp reads another's words"
        )
    if ordered is None:
        return (
            f"block {evidence.trace.block_index} has no accesses of different warps that need it: "
            "a warp barrier or no barrier is enough"
        )
    first, second = ordered.line, ordered.later_line
    pair = f"lines {first} and {second}" if first != second else f"iterations of line {first}"
    return (
        f"it orders {pair} on {ordered.array} and is required for correctness; smaller blocks "
        "reduce the wait, more resident blocks hide it"
    )


@rule("dependent-instructions", removal="dependent-instructions")
def dependent_instructions(evidence: Evidence) -> Iterator[Advice]:
    """Chains of instructions that each wait for the one before, and too few warps beside."""
    made = evidence.prediction
    if made is None or made.stalls["wait"] < DEPENDENT or not is_waiting(made):
        return
    waits = _by_line(evidence, evidence.stalls("wait"))
    line = _most(waits)
    if not line:
        return
    yield Advice(
        "dependent-instructions",
        line,
        f"line {line}: its instructions wait for each other, {100 * waits[line]:.0f} % of the "
        "warps' time. Fix: independent instructions in between, or more warps.",
        waits[line] * evidence.cycles,
    )


def _throttled(evidence: Evidence, reason: str) -> Iterable[Advice]:
    """Yield the line with the longest stall for a reason, where it is a large part of all time."""
    made = evidence.prediction
    if made is None or made.stalls.get(reason, 0.0) < OTHER or not is_waiting(made):
        return
    kind, known = reason.replace("_", "-"), STALLS[reason]
    waits = _by_line(evidence, evidence.stalls(reason))
    line = _most(waits)
    where = f"line {line}" if line else "code without a source line"
    yield Advice(
        kind,
        line,
        f"{where}: warps wait {100 * waits[line]:.0f} % of their time: {reason} ({known.meaning}). "
        f"Fix: {known.remedy}.",
        waits[line] * evidence.cycles,
    )


@rule("short-scoreboard")
def short_scoreboard(evidence: Evidence) -> Iterable[Advice]:
    """Waits for shared memory, shuffles, special registers and functions, and constants."""
    return _throttled(evidence, "short_scoreboard")


@rule("long-scoreboard")
def long_scoreboard(evidence: Evidence) -> Iterable[Advice]:
    """Waits for data of global and local memory."""
    return _throttled(evidence, "long_scoreboard")


@rule("mio-throttle")
def mio_throttle(evidence: Evidence) -> Iterable[Advice]:
    """Waits for room in the queue of shared memory, shuffles and constants."""
    return _throttled(evidence, "mio_throttle")


@rule("lg-throttle")
def lg_throttle(evidence: Evidence) -> Iterable[Advice]:
    """Waits for room in the queue of global memory."""
    return _throttled(evidence, "lg_throttle")


@rule("math-pipe-throttle")
def math_pipe_throttle(evidence: Evidence) -> Iterable[Advice]:
    """Waits for pipes of arithmetic."""
    return _throttled(evidence, "math_pipe_throttle")
