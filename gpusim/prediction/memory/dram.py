"""DRAM: one SM's share of the bandwidth, and the loaded latency."""

from __future__ import annotations

from gpusim.gpu.device import Device
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.arithmetic.elementary import exp
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.memory.measured import BANDWIDTH_WINDOW_CYCLES
from gpusim.prediction.memory.share import MemoryShare

WINDOW = BANDWIDTH_WINDOW_CYCLES * TICKS


def made_up(free: int, now: int) -> int:
    """Return when a server with a share is free; unused time of the last window is credited."""
    return now if free < 0 else max(free, now - WINDOW)


class Dram:
    """Serves sectors in turn and tracks the bytes in flight.

    `free` is the time from which on it can serve, -1 before the first sector. `loaded` is the
    increase of its latency over that of an idle DRAM, as a multiple of the latter.
    """

    free: int
    loaded: float
    _latency: int
    _growth: float
    _growth_by_writes: float
    _own_sector: float
    _sector: float
    _noted: int
    _recent: float
    _recently_written: float
    _evicted: float

    def __init__(self, device: Device, share: MemoryShare) -> None:
        bandwidth = device.bandwidth
        self.free = -1
        self.loaded = 0.0
        self._latency = ticks(device.latency_cycles.dram)
        self._growth = bandwidth.dram_latency_growth
        self._growth_by_writes = bandwidth.dram_latency_growth_by_writes
        sector = 0 if "bandwidth" in device.ablations else SECTOR_BYTES * TICKS
        self._own_sector = sector / share.dram_bytes_per_cycle
        self._sector = self._own_sector
        self._noted = 0
        self._evicted = share.evicted
        self._recent = self._recently_written = 0.0

    def scale_bandwidth(self, gain: float) -> None:
        """Multiply the SM's share of the bandwidth by `gain` from now on."""
        self._sector = self._own_sector / gain

    def read(self, sectors: int, fraction: float, at: int) -> None:
        """Serve reads of `sectors * fraction` sectors, and writes of those that they evict."""
        busy = round(sectors * fraction * self._sector)
        written = round(sectors * fraction * self._evicted * self._sector)
        self.free = made_up(self.free, at) + busy + written
        self._note_busy(at, busy + written, written)

    def write(self, sectors: float, at: int) -> int:
        """Serve writes that take as long as reading `sectors`; return their end, 0 for none."""
        if not sectors:
            return 0
        busy = round(sectors * self._sector)
        self.free = made_up(self.free, at) + busy
        self._note_busy(at, busy, busy)
        return self.free

    def _note_busy(self, now: int, busy: int, written: int) -> None:
        """Update the loaded latency from the data in flight, in all and of writes.

        By Little's law the utilisation is the data in flight over the bandwidth-delay product.
        Requests decay exponentially with the latency as time constant.
        """
        passed = max(0, now - self._noted)
        left = exp(-passed / self._latency)
        self._noted = max(now, self._noted)
        self._recent = self._recent * left + busy
        self._recently_written = self._recently_written * left + written
        utilisation = min(1.0, self._recent / self._latency)
        by_writes = self._growth_by_writes * min(1.0, self._recently_written / self._latency)
        self.loaded = self._growth * utilisation * utilisation * utilisation + by_writes
