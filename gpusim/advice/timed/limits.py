"""The nearest limit of a launch, with its remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpusim.advice.evidence import Evidence
from gpusim.advice.records import LIMIT, Advice, microseconds
from gpusim.advice.registry import rule
from gpusim.advice.stalls import STALLS
from gpusim.prediction.bounds import LAUNCH_OVERHEAD, SPINNING
from gpusim.prediction.records import Prediction

LATENCY = "latency"
REMEDIES: Mapping[str, str] = {
    "issue": "fewer instructions",
    "shared memory": "fewer wavefronts: fewer shared accesses, or fewer bank conflicts",
    "L2": "fewer bytes from L2",
    "DRAM": "fewer bytes from DRAM",
    "constants": "fewer distinct constants per warp",
    "atomics": "fewer atomics, or atomics on more addresses",
    "block launch": "fewer blocks with more work each",
    "tensor cores": "fewer matrix products, or smaller types",
    LATENCY: "shorter dependency chains, or more warps",
    LAUNCH_OVERHEAD: "more work per launch, or fewer launches",
    SPINNING: "a shorter path from acquire to release in each block, or fewer blocks",
}
AT_A_BOUND = 0.8  # a bound counts as reached from this fraction of the time on


@rule(LIMIT)
def limit(evidence: Evidence) -> Iterator[Advice]:
    """The nearest limit, whether it is reached, and the change that would move it."""
    made = evidence.prediction
    if made is not None and made.limiter.name != LAUNCH_OVERHEAD:  # it has a rule of its own
        yield limit_of(made)


def limit_of(made: Prediction) -> Advice:
    """Return the finding on the limit that is nearest to a predicted time."""
    bound = made.limiter
    fraction = bound.time_us / made.time_us
    remedy = REMEDIES.get(bound.name, f"less work for {bound.name}")
    if bound.name == SPINNING:
        text = (
            f"Limiter: blocks spin on other blocks for {microseconds(bound.time_us)}. "
            f"Fix: {remedy}."
        )
    elif bound.name == LAUNCH_OVERHEAD:
        text = f"Limiter launch overhead: {100 * fraction:.0f} % of the duration. Fix: {remedy}."
    elif fraction >= AT_A_BOUND:
        cause = _longest_stall(made) if bound.name == LATENCY else f". Fix: {remedy}"
        text = (
            f"Limiter {bound.name}: the duration is near its lower bound "
            f"({100 * fraction:.0f} %){cause}."
        )
    else:
        text = (
            f"No resource is saturated; the tightest bound, {bound.name}, is "
            f"{microseconds(bound.time_us)}: at most a {made.time_us / bound.time_us:.1f}x speedup"
            f"{_longest_stall(made)}."
        )
    return Advice(LIMIT, 0, text)


def _longest_stall(made: Prediction) -> str:
    """Name the stall reason with most of the warps' time, the line with most of it, the remedy."""
    reasons = {name: part for name, part in made.stalls.items() if name != "selected" and part}
    if not reasons:
        return "; the rest is exposed latency"
    reason = max(reasons, key=lambda name: (reasons[name], name))
    rows, lines = made.prepared.program.instructions, dict[int, float]()
    for pc, row in made.stalls_by_pc.items():
        if pc >= 0 and rows[pc].line:
            lines[rows[pc].line] = lines.get(rows[pc].line, 0.0) + row[reason]
    line = max(lines, key=lambda number: (lines[number], -number), default=0)
    where = f", {100 * lines[line]:.0f} % at line {line}" if line and lines[line] else ""
    return (
        f"; the longest stall is {reason}, {100 * reasons[reason]:.0f} % of the warps' time"
        f"{where}. Fix: {STALLS[reason].remedy}"
    )
