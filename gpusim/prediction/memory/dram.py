"""DRAM's bandwidth, as far as one SM has it, and how much longer its latency is under load."""

from __future__ import annotations

from gpusim.gpu.device import Device
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.arithmetic.elementary import exp
from gpusim.prediction.arithmetic.ticks import TICKS, ticks
from gpusim.prediction.memory.measured import BANDWIDTH_WINDOW_CYCLES
from gpusim.prediction.memory.share import MemoryShare

WINDOW = BANDWIDTH_WINDOW_CYCLES * TICKS


def made_up(free: int, now: int) -> int:
    """Return from when a server with a share is free, what was left unused in a window used."""
    return now if free < 0 else max(free, now - WINDOW)


class Dram:
    """Serves sectors one after the other; keeps what is under way.

    `free` is from when on it can serve, -1 before the first sector. `loaded` is how much longer
    than an idle DRAM's its latency is now, as a multiple of that.
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
        self._recent = self._recently_written = 0.0

    def scale_bandwidth(self, gain: float) -> None:
        """Let the SM have so much more than its share of the bandwidth from now on."""
        self._sector = self._own_sector / gain

    def read(self, sectors: int, fraction: float, at: int) -> None:
        """Serve a fraction of sectors, or a multiple, requested at a time."""
        busy = round(sectors * fraction * self._sector)
        self.free = made_up(self.free, at) + busy
        self._note_busy(at, busy, 0)

    def write(self, sectors: float, at: int) -> int:
        """Take what is as long as reading so many sectors; return when, or 0 where nothing is."""
        if not sectors:
            return 0
        busy = round(sectors * self._sector)
        self.free = made_up(self.free, at) + busy
        self._note_busy(at, busy, busy)
        return self.free

    def _note_busy(self, now: int, busy: int, written: int) -> None:
        """Work out the loaded latency from what is under way, in all and of writes.

        Its utilisation is by Little's law what is under way over what it can hold. What was
        requested counts for less and less, over the time of a latency.
        """
        passed = max(0, now - self._noted)
        left = exp(-passed / self._latency)
        self._noted = max(now, self._noted)
        self._recent = self._recent * left + busy
        self._recently_written = self._recently_written * left + written
        utilisation = min(1.0, self._recent / self._latency)
        by_writes = self._growth_by_writes * min(1.0, self._recently_written / self._latency)
        self.loaded = self._growth * utilisation * utilisation * utilisation + by_writes
