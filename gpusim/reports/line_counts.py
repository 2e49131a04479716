"""A source line's sums over counters, as reports show them."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.tracing.records import LineCounters


def lanes_on(line: LineCounters) -> float:
    """Return the mean number of predicated-on threads per warp, 0 where nothing is issued."""
    issued = line.counters.get("instructions", 0)
    return line.counters.get("thread_instructions_guard_on", 0) / issued if issued else 0.0


def divergent(line: LineCounters) -> int:
    """Return the divergent conditionals of the source; of the machine where it has none."""
    if line.counters.get("source_branches"):
        return _sum(line, "source_divergent_branches")
    return _sum(line, "divergent_branches")


def wavefronts(line: LineCounters) -> int:
    """Return the wavefronts of shared memory."""
    return _sum(line, "shared_load_wavefronts", "shared_store_wavefronts")


def conflicts(line: LineCounters) -> int:
    """Return the wavefronts above the least."""
    return _sum(line, "shared_load_bank_conflicts", "shared_store_bank_conflicts")


def sectors(line: LineCounters) -> int:
    """Return the sectors of global memory that are requested."""
    return _sum(line, "global_load_sectors", "global_store_sectors")


def shares(lines: Sequence[LineCounters]) -> list[float]:
    """Return how much of the launch each line is: its largest share of any count."""
    measures = [
        [measure(line) for line in lines]
        for measure in (_instructions, divergent, wavefronts, conflicts, sectors)
    ]
    totals = [sum(counts) or 1 for counts in measures]
    return [
        max(counts[place] / total for counts, total in zip(measures, totals, strict=True))
        for place in range(len(lines))
    ]


def _instructions(line: LineCounters) -> int:
    return _sum(line, "instructions")


def _sum(line: LineCounters, *names: str) -> int:
    return sum(line.counters.get(name, 0) for name in names)
