"""The memory hierarchy behind an SM: L1, L2 and DRAM, on the clock.

What goes in before the clock starts: the classes of a grid with the addresses that their streams
touch, and a device (`memory_share`). What comes out is a `MemoryShare`: bandwidths, and where each
instruction's sectors come from. On the clock a `GlobalMemory` made of it takes an `Access` of a
`Requester` at a time and answers with the time at which it is served. Nothing else of this
package is used outside it, but for `draws`, which counts the latencies of loads under way,
`slowest_excess_cycles`, for warps that are not simulated, and `SAMPLED`, how many sectors of each
instruction stand for all.
"""

from gpusim.prediction.locality.sample import SAMPLED
from gpusim.prediction.memory.access import NO_ACCESS, Access, Requester
from gpusim.prediction.memory.hierarchy import GlobalMemory
from gpusim.prediction.memory.miss_ratios import Source, Sources
from gpusim.prediction.memory.share import MemoryShare, memory_share
from gpusim.prediction.memory.slowest import slowest_excess_cycles
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
