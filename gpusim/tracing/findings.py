"""Findings of a trace: sentences that name a line and the cause.

Each rule looks at one thing and computes its cost in the traced block, so that the
costliest comes first. The cause is derived from the lanes' addresses, never from a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.tracing import lanes
from gpusim.tracing.iterations import iterations
from gpusim.tracing.records import Execution, Finding, LineCounters, Trace

# A condition is worth a sentence where at least this fraction of its executions is divergent,
# or has no lane to do its body; accesses, where they fetch this many times the least.
DIVERGENT_FRACTION = 1 / 3
IDLE_FRACTION = 1 / 4
SECTORS_ABOVE_LEAST = 1.5


@dataclass(frozen=True)
class Numbered:
    """An execution, and the number of its line's iteration that it belongs to."""

    execution: Execution
    iteration: int


@dataclass(frozen=True)
class Weighed:
    """A finding, and its cost to the block in wavefronts, executions or fetches."""

    finding: Finding
    cost: float


@dataclass(frozen=True)
class Evidence:
    """A trace, with its executions sorted as the rules need them."""

    trace: Trace

    @cached_property
    def numbered(self) -> list[Numbered]:
        """Executions with their iterations."""
        executions = self.trace.executions
        return [Numbered(e, i) for e, i in zip(executions, iterations(executions), strict=True)]

    @cached_property
    def by_line(self) -> dict[int, list[Numbered]]:
        """Executions by line, lines in order."""
        table: dict[int, list[Numbered]] = {}
        for numbered in self.numbered:
            table.setdefault(numbered.execution.line, []).append(numbered)
        return dict(sorted(table.items()))

    @cached_property
    def lines(self) -> dict[int, LineCounters]:
        """Line counters by line."""
        return {line.line: line for line in self.trace.lines}

    def count(self, line: int, *names: str) -> int:
        """Return the sum of a line's counters over the launch."""
        found = self.lines.get(line)
        return sum(found.counters.get(name, 0) for name in names) if found else 0

    def conditions(self, line: int) -> list[Numbered]:
        """Return the conditionals of a line; machine branches where it has none."""
        deciding = [
            p
            for p in self.by_line[line]
            if p.execution.taken is not None and lanes.deciding_lanes(p.execution)
        ]
        return [p for p in deciding if lanes.is_condition(p.execution)] or deciding


def find(trace: Trace) -> list[Finding]:
    """Return the findings of a trace, the costliest first; one of kind "none" if all is well.

    Kinds are bank-conflict, divergence, uncoalesced, idle-lanes and none.
    """
    evidence = Evidence(trace)
    weighed = [found for rule in RULES for found in rule(evidence)]
    weighed.sort(key=lambda found: (-found.cost, found.finding.line))
    return [found.finding for found in weighed] or [_nothing(evidence)]


def bank_conflicts(evidence: Evidence) -> Iterable[Weighed]:
    """Lanes of a warp that want different words of one bank."""
    for line, numbered in evidence.by_line.items():
        shared = [p for p in numbered if p.execution.space == "shared"]
        cost = sum(lanes.replays(p.execution) for p in shared)
        if not cost:
            continue
        worst = max(
            shared, key=lambda p: (lanes.replays(p.execution), len(lanes.on_lanes(p.execution)))
        )
        extra = evidence.count(line, "shared_load_bank_conflicts", "shared_store_bank_conflicts")
        total = evidence.count(line, "shared_load_wavefronts", "shared_store_wavefronts")
        message = f"line {line}: {_conflict_cause(worst.execution, evidence.trace.cc)}"
        when = _when(worst, shared)
        if total:
            message += f"{when}; {extra:,} of the line's {total:,} wavefronts are excessive"
        else:
            message += f"{when}; {cost} excessive wavefronts in the block"
        yield Weighed(Finding("bank-conflict", line, message + "."), cost)


def _conflict_cause(execution: Execution, cc: str) -> str:
    on = lanes.on_lanes(execution)
    table = lanes.words_in_banks(execution, lanes.bank_count(cc))
    step = lanes.stride(execution)
    least = execution.least_wavefronts
    instead = f" instead of {least}" if least > 1 else ""
    banks = f"{len(table)} bank{'s' if len(table) != 1 else ''}"
    cost = f"{execution.wavefronts} wavefronts each{instead}"
    if step is not None:
        return f"stride {abs(step)} puts {len(on)} lanes on {banks}, {cost}"
    deepest = max((len(words) for words in table.values()), default=0)
    return (
        f"{len(on)} lanes of {execution.array} fall on {banks}, "
        f"up to {deepest} different words in one, {cost}"
    )


def divergence(evidence: Evidence) -> Iterable[Weighed]:
    """Lanes of a warp that disagree about a condition."""
    for line in evidence.by_line:
        conditions = evidence.conditions(line)
        divergent = [p for p in conditions if lanes.diverges(p.execution)]
        if len(divergent) < 2 or len(divergent) < DIVERGENT_FRACTION * len(conditions):
            continue
        if _one_lane_once(divergent):
            continue
        first = divergent[0]
        execution = first.execution
        taken, active = lanes.taken_lanes(execution), lanes.deciding_lanes(execution)
        verb = (
            "takes"
            if len(taken) == 1 or lanes.which(taken, active).startswith("every")
            else ("take")
        )
        message = (
            f"line {line}: {lanes.which(taken, active)} {verb} the branch{_when(first, conditions)}"
            f", the rest of the warp waits; {len(divergent)} of the block's {len(conditions)} "
            f"executions diverge"
        )
        if execution.op == ".IF" and not evidence.trace.counters.get("divergent_branches"):
            message += (
                " (in the source: the machine code predicates the body, without a divergent branch)"
            )
        yield Weighed(Finding("divergence", line, message + "."), len(divergent))


def _one_lane_once(divergent: Sequence[Numbered]) -> bool:
    """Return whether a single lane passes, and not in a loop: to write the warp's result."""
    alone = all(len(lanes.taken_lanes(p.execution)) == 1 for p in divergent)
    return alone and len({p.iteration for p in divergent}) == 1


def uncoalesced(evidence: Evidence) -> Iterable[Weighed]:
    """Global accesses that fetch more sectors than their bytes need."""
    for line, numbered in evidence.by_line.items():
        accesses = [p for p in numbered if p.execution.space == "global" and p.execution.sectors]
        sectors = sum(p.execution.sectors for p in accesses)
        least = sum(_least_sectors(p.execution) for p in accesses)
        if not accesses or sectors < SECTORS_ABOVE_LEAST * least:
            continue
        worst = max(accesses, key=lambda p: p.execution.sectors - _least_sectors(p.execution))
        execution = worst.execution
        on, step = lanes.on_lanes(execution), lanes.stride(execution)
        how = f"stride {abs(step)}" if step is not None else "scattered addresses"
        name = f" of {execution.array}" if execution.array else ""
        spread = "spreads" if step is not None else "spread"
        few = _least_sectors(execution)
        message = (
            f"line {line}: {how} {spread} {len(on)} lanes{name} over {execution.sectors} sectors "
            f"instead of {few}"
            f"{_when(worst, accesses)}; {100 * least / sectors:.0f} % of the fetched bytes are used"
        )
        yield Weighed(Finding("uncoalesced", line, message + "."), (sectors - least) / 4)


def _least_sectors(execution: Execution) -> int:
    addresses = execution.addresses or ()
    touched = {addresses[lane] for lane in lanes.on_lanes(execution)}
    return -(-len(touched) * execution.width_bytes // SECTOR_BYTES)


def idle_lanes(evidence: Evidence) -> Iterable[Weighed]:
    """Warps without a lane for the body of a condition, iteration after iteration."""
    for line in evidence.by_line:
        conditions = [p for p in evidence.conditions(line) if lanes.is_condition(p.execution)]
        numbers = {p.iteration for p in conditions}
        idle = [p for p in conditions if not lanes.taken_lanes(p.execution)]
        if len(numbers) < 2 or len(idle) < IDLE_FRACTION * len(conditions):
            continue
        if _ends_a_loop(conditions):
            continue
        warps = {p.execution.warp for p in conditions}
        last = max(numbers)
        at_work = {
            p.execution.warp
            for p in conditions
            if p.iteration == last and lanes.taken_lanes(p.execution)
        }
        message = (
            f"line {line}: in {len(idle)} of the block's {len(conditions)} executions no lane "
            f"takes the branch; in the last of {len(numbers)} iterations {len(at_work)} of "
            f"{len(warps)} warps {'has' if len(at_work) == 1 else 'have'} work"
        )
        yield Weighed(Finding("idle-lanes", line, message + _idle_cost(evidence) + "."), len(idle))


def _ends_a_loop(conditions: Sequence[Numbered]) -> bool:
    """Return whether every warp passes each time but the last, as in the head of a loop."""
    by_warp: dict[int, list[bool]] = {}
    for p in conditions:
        by_warp.setdefault(p.execution.warp, []).append(bool(lanes.taken_lanes(p.execution)))
    return all(all(passes[:-1]) and not passes[-1] for passes in by_warp.values())


def _idle_cost(evidence: Evidence) -> str:
    """Return the cost of idle warps in words: issuing predicated instructions, barrier waits."""
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


def _nothing(evidence: Evidence) -> Finding:
    first = min((line.line for line in evidence.trace.lines), default=0)
    return Finding(
        "none",
        first,
        "No findings: no bank conflicts, few divergent branches, global accesses close to "
        "coalesced.",
    )


def _when(numbered: Numbered, among: Iterable[Numbered]) -> str:
    """Return " (iteration k)" where the line runs in more than one."""
    several = len({p.iteration for p in among}) > 1
    return f" (iteration {numbered.iteration})" if several else ""


RULES: tuple[Callable[[Evidence], Iterable[Weighed]], ...] = (
    bank_conflicts,
    divergence,
    uncoalesced,
    idle_lanes,
)
