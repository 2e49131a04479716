"""How long a fetch takes, as busy as DRAM is: from L1, L2 or DRAM, drawn evenly for each warp.

DRAM's latency differs from fetch to fetch: an exponential law above the least. It is always the
same for the same fetch, spread evenly over blocks and as if drawn at random over warps.
"""

from __future__ import annotations

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
from gpusim.prediction.streams.distances import SHARED_LATENCY_LINES

# Fractions of the golden ratio's multiples lie evenly, however many there are; of its multiples by
# squares as if drawn at random.
_WHOLE = 1 << 64
_GOLDEN_PART = 0x9E3779B97F4A7C15  # of it
_GOLDEN = _GOLDEN_PART / _WHOLE


class FetchLatency:
    """The latencies of one SM's fetches, in ticks."""

    _l1: int
    _l2: int
    _l2_far: int
    _l2_places: int
    _l2_growth: float
    _l2_loaded: int  # how much longer than an idle L2's its latency is now
    _noted: int
    _recent: float
    _recently_stored: float
    _dram: int
    _least: float
    _queue: Dram
    _shared_out: float
    _shared_above: float
    # Which the last fetch of several warps was: block, place in it, waits before, latencies.
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
        """Return the latency of sectors of an access that are looked for in the caches.

        Whether all of its lines are found in the L1, the last of them in the near or far part of
        the L2, or one comes from DRAM, is shared out evenly over the fetches. Warps of a block that
        fetch together wait almost equally long, those that drifted apart do not.
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
        # Of its lines those draw a latency that come out of DRAM, one at least.
        draws = 1 + (access.draws - 1) * missing
        return self._of_dram(requester, access, draws)

    def note_busy(self, now: int, loading: int, storing: int) -> None:
        """Take note that the L2 is busy for so long with what is loaded and what is stored now.

        Its latency grows with its utilisation by either as DRAM's does.
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
        """Return how much later than the mean the last of some lines of the L2 is.

        Each lies anywhere between the nearest and the farthest: `place` says where, from 0 to 1.
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
        """Return how far above the least a fetch's latency lies that several warps wait for."""
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
    """Return the place in DRAM's law of a warp's fetch, from 0 to 1.

    Evenly spread over blocks, and as if drawn at random over warps and fetches.
    """
    name = number * FETCHES_APART + requester.waits
    return (requester.block * (name * name + 1) + name) * _GOLDEN_PART % _WHOLE / _WHOLE


def _drawn(place: float, draws: float) -> float:
    """Return how many means an exponential law's value lies above its least, the last of some."""
    return -log(1 - power(place * MOST_DRAWN, 1 / draws))
