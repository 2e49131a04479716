"""Divergence, and warps that have nothing to do while others work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpusim.advice.decisions import GUARD, SOURCE, Decision, compilers_own, lines_without_conditions
from gpusim.advice.evidence import Evidence
from gpusim.advice.records import Advice
from gpusim.advice.registry import rule
from gpusim.isa.ops import OPS
from gpusim.program.decisions import deciding_lines
from gpusim.tracing import lanes

# A condition is worth a sentence where at least this fraction of its executions is divergent, or
# has no lane for its body.
DIVERGENT_FRACTION = 1 / 3
IDLE_FRACTION = 1 / 4
PREDICATED = 5  # times the least cost of a finding: selects and guards of a few instructions


@rule("divergence", removal="divergence")
def divergence(evidence: Evidence) -> Iterable[Advice]:
    """Lanes of a warp that disagree about a condition."""
    for line, decisions in evidence.decisions.items():
        divergent = [one for one in decisions if one.diverges]
        if len(divergent) < 2 or len(divergent) < DIVERGENT_FRACTION * len(decisions):
            continue
        if _one_lane_once(divergent):
            continue
        cost = _wasted(evidence, line)
        if evidence.instructions and not evidence.is_worth_saying(cost):
            continue
        first = divergent[0]
        which = lanes.which(first.passed, first.deciding)
        verb = "takes" if len(first.passed) == 1 or which.startswith("every") else "take"
        message = (
            f"line {line}: {which} {verb} the branch{_when(first, decisions)}, the rest of the "
            f"warp waits; {len(divergent)} of the block's {len(decisions)} executions diverge"
            f"{_predicated(evidence, first)}"
        )
        yield Advice("divergence", line, message + ".", cost or len(divergent), cause=which)

    plain = lines_without_conditions(evidence.trace)
    for line, pcs in evidence.pcs_by_line():
        if line not in evidence.decisions and line not in plain:
            yield from _by_predicates(evidence, line, pcs)


def _by_predicates(evidence: Evidence, line: int, pcs: Sequence[int]) -> Iterable[Advice]:
    """Yield a line with threads predicated off in instructions without memory accesses."""
    assert evidence.trace.prepared is not None
    lines = deciding_lines(evidence.trace.prepared.program)
    decided = [pc for pc, by in lines.items() if by == line and evidence.runs[pc] > 0]
    decided = [pc for pc in decided if not OPS[evidence.instructions[pc].op].leaves]
    cost = _wasted(evidence, line)
    if not pcs or not decided or not evidence.is_worth_saying(cost / PREDICATED):
        return
    runs = evidence.runs[decided]
    on = 32 * float((evidence.fraction_on[decided] * runs).sum() / runs.sum())
    yield Advice(
        "divergence",
        line,
        f"line {line}: {on:.1f} of 32 threads of a warp are predicated on, on the mean, in the "
        f"{len(decided)} instructions that its condition decides.",
        cost,
    )


def _when(decision: Decision, among: Iterable[Decision]) -> str:
    several = len({one.iteration for one in among}) > 1
    return f" (iteration {decision.iteration})" if several else ""


def _predicated(evidence: Evidence, decision: Decision) -> str:
    """Say that a compiler made predicates of a condition, where no branch diverges."""
    if evidence.trace.counters.get("divergent_branches") or decision.origin not in (SOURCE, GUARD):
        return ""
    return " (in the source: the machine code predicates the body, without a divergent branch)"


def _one_lane_once(divergent: Sequence[Decision]) -> bool:
    """Return whether a lane alone passes, and not in a loop: to write down the warp's result."""
    alone = all(len(one.passed) == 1 for one in divergent)
    return alone and len({one.iteration for one in divergent}) == 1


def _wasted(evidence: Evidence, line: int) -> float:
    """Return the cycles of an SM that a block issues for lanes that a line's condition leaves off.

    Guarded instructions count, and the code between a branch and its target.
    """
    rows = evidence.instructions
    if not rows:
        return 0.0
    assert evidence.trace.prepared is not None
    lines = deciding_lines(evidence.trace.prepared.program)
    decided = {pc for pc, by in lines.items() if by == line and not OPS[rows[pc].op].leaves}
    own = compilers_own(evidence.trace)
    for pc, row in enumerate(rows):
        mine = pc not in own and (row.line == line or lines.get(pc) == line)
        if mine and OPS[row.op].kind == "branch" and row.guard is not None:
            low, high = sorted((pc + 1, row.target))
            decided.update(range(low, high))
    waste = (evidence.runs[pc] * (1 - evidence.fraction_on[pc]) for pc in decided)
    return float(sum(waste)) / 4


@rule("idle-lanes", removal="idle-lanes")
def idle_lanes(evidence: Evidence) -> Iterable[Advice]:
    """Warps without a lane for the body of a condition, iteration after iteration."""
    told: list[set[int]] = []  # warps active: nested conditions are one cause
    for line, decisions in evidence.decisions.items():
        numbers = {one.iteration for one in decisions}
        idle = [one for one in decisions if not one.passed]
        if len(numbers) < 2 or len(idle) < IDLE_FRACTION * len(decisions):
            continue
        if _ends_a_loop(decisions):
            continue
        warps = {one.warp for one in decisions}
        last = max(numbers)
        at_work = {one.warp for one in decisions if one.iteration == last and one.passed}
        if not _some_work(decisions) or at_work in told:
            continue
        told.append(at_work)
        few = _with_as_few(decisions, len(at_work))
        message = (
            f"line {line}: in {len(idle)} of the block's {len(decisions)} executions no lane "
            f"takes the branch; in the last {f'{few} ' if few > 1 else ''}of {len(numbers)} "
            f"iterations {len(at_work)} of "
            f"{len(warps)} warps {'has' if len(at_work) == 1 else 'have'} work"
        )
        yield Advice(
            "idle-lanes",
            line,
            message + _still_done(evidence) + ".",
            len(idle),
            explains=frozenset({"barrier"}),
        )


def _ends_a_loop(decisions: Sequence[Decision]) -> bool:
    """Return whether every warp passes each time but the last, as in the head of a loop."""
    by_warp: dict[int, list[bool]] = {}
    for one in decisions:
        by_warp.setdefault(one.warp, []).append(bool(one.passed))
    return all(all(passes[:-1]) and not passes[-1] for passes in by_warp.values())


def _some_work(decisions: Sequence[Decision]) -> bool:
    """Return whether in an iteration some warps pass and the others stay idle."""
    works: dict[int, dict[int, bool]] = {}  # by iteration and warp: a line may decide twice
    for one in decisions:
        of_warps = works.setdefault(one.iteration, {})
        of_warps[one.warp] = of_warps.get(one.warp, False) or bool(one.passed)
    some = any(len(set(of_warps.values())) > 1 for of_warps in works.values())
    at_work = [{warp for warp, on in works[number].items() if on} for number in sorted(works)]
    return some and all(at_work[-1] <= before for before in at_work)


def _with_as_few(decisions: Sequence[Decision], warps: int) -> int:
    """Return how many iterations at the end have no more warps active."""
    numbers = sorted({one.iteration for one in decisions})
    counts = [len({d.warp for d in decisions if d.iteration == n and d.passed}) for n in numbers]
    return next((k for k, count in enumerate(reversed(counts)) if count > warps), len(counts))


def _still_done(evidence: Evidence) -> str:
    """Say what idle warps still do: issue guarded instructions, wait at barriers."""
    guarded = sorted(
        {
            p.execution.line
            for p in evidence.numbered
            if p.iteration and p.execution.space and not lanes.on_lanes(p.execution)
        }
    )
    waits: dict[int, int] = {}
    for p in evidence.numbered:
        if p.execution.op == "BAR":
            waits[p.execution.line] = waits.get(p.execution.line, 0) + 1
    parts = []
    if guarded:
        parts.append(
            f"issue the predicated-off accesses of line{'s' if len(guarded) > 1 else ''} "
            f"{lanes.ranges(guarded)}"
        )
    if waits:
        barrier = max(waits, key=lambda line: (waits[line], -line))
        parts.append(f"wait at the barrier of line {barrier}")
    return f", the others still {' and '.join(parts)}" if parts else ""
