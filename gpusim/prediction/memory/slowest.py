"""Excess wait of the slowest warp of a launch over the slowest one of the simulated SM."""

from __future__ import annotations

import math
from statistics import NormalDist

from gpusim.gpu.device import Device
from gpusim.prediction.memory.share import MemoryShare


def slowest_excess_cycles(
    device: Device, share: MemoryShare, simulated: tuple[int, int], whole: tuple[int, int]
) -> float:
    """Return the excess of the slowest warp's waits for DRAM over the slowest simulated one's.

    In cycles. Both pairs are the number of fetches that a warp waits for, and of warps.
    """
    source = share.whole.first
    l2_miss = max(source.l2_miss, share.first_wave * source.first_l2_miss)
    deviation = device.latency_cycles.dram_deviation * l2_miss
    return deviation * (_latest(*whole) - _latest(*simulated))


def _latest(fetches: int, warps: int) -> float:
    """Return the expected maximum wait of warps above the mean, in standard deviations of a fetch.

    Sums of exponential variables have a gamma distribution; this is Wilson and Hilferty's quantile.
    """
    if not fetches or warps < 2:
        return 0.0
    normal = NormalDist().inv_cdf(1 - 1 / warps)
    root = 1 - 1 / (9 * fetches) + normal / (3 * math.sqrt(fetches))
    return fetches * (root**3 - 1)
