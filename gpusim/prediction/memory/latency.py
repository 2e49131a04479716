"""Latency of a fetch from L1, L2 or DRAM under load, deterministic and evenly distributed.

DRAM's latency varies between fetches: an exponential distribution above the minimum. It is always
the same for the same fetch, evenly spread over blocks and pseudo-random over warps.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from gpusim.gpu.device import Device
from gpusim.prediction.arithmetic.elementary import exp, log, power
from gpusim.prediction.arithmetic.quasirandom import FETCHES_APART, MOST_DRAWN
from gpusim.prediction.arithmetic.ticks import ticks
from gpusim.prediction.memory.access import Access, Requester
from gpusim.prediction.memory.dram import Dram
from gpusim.prediction.memory.measured import (
    L2_LATENCY_GROWTH_BY_STORES,
    OWN_LATENCY_FRACTION,
    OWN_QUEUE_FRACTION,
)
from gpusim.prediction.memory.miss_ratios import Source
from gpusim.prediction.memory.share import MemoryShare
from gpusim.prediction.streams.distances import SHARED_LATENCY_LINES

# Fractional parts of the golden ratio's multiples are evenly spread for any count; those of its
# multiples by squares are pseudo-random.
_WHOLE = 1 << 64
_GOLDEN_PART = 0x9E3779B97F4A7C15  # its fractional part times 2^64
_GOLDEN = _GOLDEN_PART / _WHOLE


class FetchLatency:
    """The latencies of one SM's fetches, in ticks."""

    _l1: int
    _l2: int
    _l2_far: int
    _l2_places: int
    _l2_growth: float
    _l2_loaded: int  # increase of the latency over that of an idle L2
    _noted: int
    _recent: float
    _recently_stored: float
    _dram: int
    _least: float
    _queue: Dram
    _shared_out: float
    _shared_above: float
    # The last fetch shared by several warps: block, place in it, waits before, latencies.
    _shared_block: int
    _shared_place: int
    _shared_waits: int
    _shared_draws: float

    def __init__(self, device: Device, dram: Dram) -> None:
        latency = device.latency_cycles
        self._l1, self._l2, self._dram = (ticks(c) for c in (latency.l1, latency.l2, latency.dram))
        self._l2_far = self._l2 + ticks(latency.l2_far)
        self._l2_places = ticks(latency.l2_places)
        self._l2_growth = device.bandwidth.l2_latency_growth
        self._l2_loaded = self._noted = 0
        self._recent = self._recently_stored = 0.0
        self._least = latency.dram_least / latency.dram
        self._queue = dram
        self._shared_out = self._shared_above = 0.0
        self._shared_block = -1
        self._shared_place = self._shared_waits = 0
        self._shared_draws = 0.0

    def of(self, source: Source, requester: Requester, access: Access, sectors: int) -> int:
        """Return the latency of an access's sectors, looked up in the caches.

        The outcomes are distributed evenly over fetches: all lines hit in the L1, the last one hits
        in the near or in the far part of the L2, or one comes from DRAM. Warps of a block that
        fetch together wait almost equally long, diverged ones do not.
        """
        l1_hit = source.first_l1_hit if requester.is_first else source.l1_hit
        l2_miss, apart = source.first_l2_miss, source.first_apart
        if not requester.is_first:
            apart = source.apart
            l2_miss = source.l2_miss + (1 - source.l2_miss) * source.late
        missing = (1 - l1_hit) * l2_miss
        if missing < 1:
            self._shared_out = (self._shared_out + _GOLDEN) % 1.0
            lines = 1 + (access.places - 1) * min(1.0, sectors / max(1, access.lines))
            in_l1 = power(l1_hit, lines)
            cached = max(in_l1, power(1 - missing, 1 + (lines - 1) * apart))
            if self._shared_out < in_l1:
                return self._l1
            left = self._shared_out - in_l1 - (1 - cached)
            if left >= 0:
                near = max(0.0, 1 - missing - (1 - l1_hit) * (1 - l2_miss) * source.far)
                all_near = power(near, lines)
                left -= cached - all_near
                if left >= 0:
                    l2, place = self._l2, left / all_near
                else:
                    l2, place = self._l2_far, 1 + left / (cached - all_near)
                return l2 + self._later_place(place, lines) + self._l2_loaded
        # Each line from DRAM draws a latency, at least one does.
        draws = 1 + (access.draws - 1) * missing
        return self._of_dram(requester, access, draws)

    def note_busy(self, now: int, loading: int, storing: int) -> None:
        """Record time of the L2 spent on loads and on stores now.

        Its latency grows with its utilisation by either, as DRAM's does.
        """
        passed = max(0, now - self._noted)
        left = exp(-passed / self._l2)
        self._recent = self._recent * left + loading
        self._recently_stored = self._recently_stored * left + storing
        self._noted = max(now, self._noted)
        by_loads = min(1.0, self._recent / self._l2)
        by_stores = min(1.0, self._recently_stored / self._l2)
        grown = by_loads * by_loads * by_loads
        grown += L2_LATENCY_GROWTH_BY_STORES * by_stores * by_stores * by_stores
        self._l2_loaded = round(self._l2 * self._l2_growth * grown)

    def _later_place(self, place: float, lines: float) -> int:
        """Return the additional latency of the last of `lines` lines over the L2's mean.

        Each line's is uniform between the nearest and the farthest; `place` is a quantile, from 0
        to 1.
        """
        return round(self._l2_places * (2 * power(min(place, 1.0), 1 / lines) - 1))

    def _of_dram(self, requester: Requester, access: Access, draws: float) -> int:
        place = _place(requester, requester.number)
        above = own = _drawn(place, draws)
        if not requester.is_apart:
            shared = self._shared_by_several(requester, access, draws)
            above += (1 - OWN_LATENCY_FRACTION) * (shared - above)
        varied = self._least + (1 - self._least) * above
        queued = self._queue.loaded * (1 - OWN_QUEUE_FRACTION + OWN_QUEUE_FRACTION * own)
        return round(self._dram * (varied + queued))

    def _shared_by_several(self, requester: Requester, access: Access, draws: float) -> float:
        """Return the latency above the minimum for a fetch shared by several warps."""
        together = requester.number * access.apart // SHARED_LATENCY_LINES
        if (
            requester.block != self._shared_block
            or together != self._shared_place
            or requester.waits != self._shared_waits
            or draws != self._shared_draws
        ):
            self._shared_block = requester.block
            self._shared_place = together
            self._shared_waits = requester.waits
            self._shared_draws = draws
            self._shared_above = _drawn(_place(requester, together), draws)
        return self._shared_above


def _place(requester: Requester, number: int) -> float:
    """Return the quantile in DRAM's distribution of a warp's fetch, from 0 to 1.

    Evenly spread over blocks, and pseudo-random over warps and fetches.
    """
    name = number * FETCHES_APART + requester.waits
    return (requester.block * (name * name + 1) + name) * _GOLDEN_PART % _WHOLE / _WHOLE


def _drawn(place: float, draws: float) -> float:
    """Return the maximum of `draws` exponential variables above the minimum, in means."""
    return -log(1 - power(place * MOST_DRAWN, 1 / draws))


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
