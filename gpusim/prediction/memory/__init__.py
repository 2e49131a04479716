"""The memory hierarchy of an SM on the clock: L1, L2 and DRAM.

`memory_share` turns a grid's classes and the addresses of their streams, for a device, into a
`MemoryShare`: bandwidths, and the source of each instruction's sectors. On the clock a
`GlobalMemory` built from it serves one `Access` of a `Requester` at a time and returns its
completion time. Also used outside: `draws` for the latencies of loads in flight,
`slowest_excess_cycles` for warps outside the simulation, and `SAMPLED`, the number of sampled
sectors of each instruction.
"""

from gpusim.prediction.locality.sample import SAMPLED
from gpusim.prediction.memory.access import NO_ACCESS, Access, Requester
from gpusim.prediction.memory.hierarchy import GlobalMemory
from gpusim.prediction.memory.latency import slowest_excess_cycles
from gpusim.prediction.memory.miss_ratios import Source, Sources
from gpusim.prediction.memory.share import MemoryShare, memory_share
from gpusim.prediction.memory.stores import Stored

__all__ = [
    "NO_ACCESS",
    "SAMPLED",
    "Access",
    "GlobalMemory",
    "MemoryShare",
    "Requester",
    "Source",
    "Sources",
    "Stored",
    "memory_share",
    "slowest_excess_cycles",
]
