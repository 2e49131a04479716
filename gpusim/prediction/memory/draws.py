"""How many latencies lines have that are fetched together: near lines mostly have one.

Streams say how far lines lie apart (`streams.distances`); what that amounts to is measured.
Everything is counted in hundredths of a latency.
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
    """Return what the lines of an access beyond its first add, by the gaps between them."""
    counts = counts_of(gaps)
    return sum(n * each for n, each in zip(counts, LATENCY_BY_DISTANCE, strict=True))


@cache
def of_another_access(earlier: int, under_way: int) -> int:
    """Return what an access's first line adds to accesses `under_way` before it."""
    return LATENCY_BY_DISTANCE[nearest(earlier, under_way)]


def of_first_access(sectors: int, lines: int) -> int:
    """Return what the first of some accesses counts for, its further lines aside."""
    has_both_halves = sectors > SECTORS_OF_A_HALF * lines
    return LATENCY + BOTH_HALVES * has_both_halves
