"""Where the bytes come from that a launch reads, and where those go that it writes."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.memory import SECTOR_BYTES
from gpusim.prediction.memory import MemoryShare
from gpusim.prediction.streams import Classes


@dataclass(frozen=True)
class Traffic:
    """Bytes of a launch: fetched from L1, L2 and DRAM, written to L2, and on to DRAM by its end.

    Accesses to sectors that the same block has fetched before are not among them.
    """

    l1_bytes: float
    l2_bytes: float
    dram_bytes: float
    written_bytes: float
    written_back_bytes: float


def traffic_of(classes: Classes, share: MemoryShare) -> Traffic:
    """Return the traffic of a launch whose blocks are of these classes."""
    read, written = (
        SECTOR_BYTES * sectors for sectors in (classes.read_sectors, classes.written_sectors)
    )
    l1_bytes, dram_bytes = read * share.whole.first.l1_hit, read * share.whole.first.l2_miss
    return Traffic(
        l1_bytes=l1_bytes,
        l2_bytes=max(0.0, read - l1_bytes - dram_bytes),
        dram_bytes=dram_bytes,
        written_bytes=written,
        written_back_bytes=written * share.written_back,
    )
