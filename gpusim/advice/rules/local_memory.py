"""Local memory: indexed arrays of a thread, and spilled registers."""

from __future__ import annotations

from collections.abc import Iterable

from gpusim.advice.evidence import Evidence
from gpusim.advice.records import Advice
from gpusim.advice.registry import rule


@rule("local-memory", removal="local-memory")
def local_memory(evidence: Evidence) -> Iterable[Advice]:
    """Arrays of a thread that are indexed, or registers that are spilled, in local memory."""
    by_line: dict[int, float] = {}
    for line, pcs in evidence.pcs_by_line():
        cost = sum(evidence.runs[pc] for pc in pcs if _is_local(evidence, pc))
        if cost:
            by_line[line] = float(cost)
    if not by_line:
        return
    line = max(by_line, key=lambda number: (by_line[number], -number))
    cost = sum(by_line.values()) * 4  # sectors of a warp's words, side by side
    if not evidence.is_worth_saying(cost):
        return
    yield Advice(
        "local-memory",
        line,
        f"line {line}: {by_line[line]:,.0f} accesses of a block's warps are to local memory, for "
        "an array that is indexed by a variable, or for registers that are spilled; shared memory "
        "or constant indices would keep it on the SM.",
        cost,
        explains=frozenset({"long-scoreboard", "lg-throttle", "latency"}),
    )


def _is_local(evidence: Evidence, pc: int) -> bool:
    memory = evidence.instructions[pc].memory
    return memory is not None and memory.space == "local"
