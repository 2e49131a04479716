"""Number of latencies of lines fetched together: near lines mostly share one.

Streams hold distance classes of lines (`streams.distances`); their weights are measured. All counts
are in hundredths of a latency.
"""

from __future__ import annotations

import numpy as np

from gpusim.prediction.memory.measured import (
    BOTH_HALVES,
    LATENCY,
    LATENCY_BY_DISTANCE,
    SECTORS_OF_A_HALF,
)
from gpusim.prediction.streams.distances import counts_of, nearest
from gpusim.typing import Array

_BY_DISTANCE = np.array(LATENCY_BY_DISTANCE)


def of_further_lines(gaps: Array) -> Array:
    """Return the contribution of an access's lines beyond its first, from their packed gaps."""
    return np.asarray(counts_of(gaps) @ _BY_DISTANCE)


def of_another_access(earlier: Array, under_way: Array) -> Array:
    """Return the contribution of an access's first line, with `under_way` accesses before it."""
    return np.asarray(_BY_DISTANCE[nearest(earlier, under_way)])


def of_first_access(sectors: Array, lines: Array) -> Array:
    """Return the contribution of the first of some accesses, without its further lines."""
    has_both_halves = sectors > SECTORS_OF_A_HALF * lines
    return LATENCY + BOTH_HALVES * has_both_halves
