"""The slowest of all warps of a launch, of which those of one SM are simulated."""

from __future__ import annotations

import math
from statistics import NormalDist

from gpusim.gpu.device import Device
from gpusim.prediction.memory.share import MemoryShare


def slowest_excess_cycles(
    device: Device, share: MemoryShare, simulated: tuple[int, int], whole: tuple[int, int]
) -> float:
    """Return how much longer the slowest warp of all waits for DRAM than that of those simulated.

    Both are numbers of fetches that a warp waits for, and of warps.
    """
    source = share.whole.first
    l2_miss = max(source.l2_miss, share.first_wave * source.first_l2_miss)
    deviation = device.latency_cycles.dram_deviation * l2_miss
    return deviation * (_latest(*whole) - _latest(*simulated))


def _latest(fetches: int, warps: int) -> float:
    """Return how much longer than the mean the last of some warps waits, in deviations of a fetch.

    Exponential laws add up to a gamma law, of which this is Wilson and Hilferty's quantile.
    """
    if not fetches or warps < 2:
        return 0.0
    normal = NormalDist().inv_cdf(1 - 1 / warps)
    root = 1 - 1 / (9 * fetches) + normal / (3 * math.sqrt(fetches))
    return fetches * (root**3 - 1)
