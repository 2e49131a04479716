"""Number of latencies of lines fetched together: near lines mostly share one.

Streams hold distance classes of lines (`streams.distances`); their weights are measured. All counts
are in hundredths of a latency.
"""

from __future__ import annotations

from functools import cache

from gpusim.prediction.memory.measured import (
    BOTH_HALVES,
    LATENCY,
    LATENCY_BY_DISTANCE,
    SECTORS_OF_A_HALF,
)
from gpusim.prediction.streams.distances import counts_of, nearest


@cache
def of_further_lines(gaps: int) -> int:
    """Return the contribution of an access's lines beyond its first, from their packed gaps."""
    counts = counts_of(gaps)
    return sum(n * each for n, each in zip(counts, LATENCY_BY_DISTANCE, strict=True))


@cache
def of_another_access(earlier: int, under_way: int) -> int:
    """Return the contribution of an access's first line, with `under_way` accesses before it."""
    return LATENCY_BY_DISTANCE[nearest(earlier, under_way)]


def of_first_access(sectors: int, lines: int) -> int:
    """Return the contribution of the first of some accesses, without its further lines."""
    has_both_halves = sectors > SECTORS_OF_A_HALF * lines
    return LATENCY + BOTH_HALVES * has_both_halves
