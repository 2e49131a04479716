"""One SM's share of the memory hierarchy: bandwidths, and the origin of its sectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpusim.gpu.device import Device
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.isa.ops import OPS, Program
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.prepared import Prepared
from gpusim.prediction.locality.compulsory import Compulsory, compulsory_of
from gpusim.prediction.locality.patterns import patterns_of
from gpusim.prediction.locality.reuse import touches_of
from gpusim.prediction.locality.schedule import Schedule
from gpusim.prediction.memory.atomics import AtomicLoad, answering_atomics, atomic_loads
from gpusim.prediction.memory.measured import (
    L2_DIRTY_FRACTION,
    L2_EVICTED_FRACTION,
    L2_PARTIAL_FRACTION,
    MIXED_FRACTION,
)
from gpusim.prediction.memory.miss_ratios import Caches, Capacity, Sources
from gpusim.prediction.memory.stores import Stored, stores_of
from gpusim.prediction.streams import Classes


@dataclass(frozen=True)
class MemoryShare:
    """One SM's share of the device: bytes per cycle from DRAM and L2, and the load by others.

    `by_pc` is the origin of each instruction's loads, `stored` the fate of its stores. DRAM takes
    `write_factor` times as long to write a sector as to read one. `busiest` of the `sms` get as
    many blocks as this one, the others one less; `first_wave` is the fraction of blocks in the
    first wave. `atomics` is how an instruction's atomics meet in the L2, `answering` the
    additional time of those that return old values, `compulsory` the compulsory traffic of all
    SMs. For each sector that it reads, DRAM writes `evicted` sectors that were stored before the
    launch. `peers` are loads that may be of the shared memory of other blocks in a cluster of
    `cluster_blocks`.
    """

    dram_bytes_per_cycle: float
    l2_bytes_per_cycle: float
    by_pc: Mapping[int, Sources]
    stored: Mapping[int, Stored]
    write_factor: float
    sms: int
    busiest: int
    first_wave: float = 1.0
    atomics: Mapping[int, AtomicLoad] = field(default_factory=dict)
    answering: Mapping[int, float] = field(default_factory=dict)
    compulsory: Compulsory = field(default_factory=Compulsory)
    peers: frozenset[int] = frozenset()
    cluster_blocks: int = 1
    evicted: float = 0.0

    @property
    def whole(self) -> Sources:
        """The origin of all loads."""
        return self.by_pc[-1]

    def sources(self, pc: int) -> Sources:
        """Return the origin of an instruction's loads."""
        found = self.by_pc.get(pc)
        return self.by_pc[-1] if found is None else found

    def written(self, pc: int) -> Stored:
        """Return the fate of an instruction's stores."""
        found = self.stored.get(pc)
        return self.stored[-1] if found is None else found

    def gain(self, left: int, resident: int) -> float:
        """Return the factor on the SM's share of bandwidth while `left` of its blocks remain.

        SMs without blocks leave their share to the others.
        """
        if left > resident or not left:
            return 1.0
        others = (self.sms - self.busiest) * (left - 1)
        return left * self.sms / (self.busiest * left + others)


def memory_share(
    prepared: Prepared, classes: Classes, device: Device, resident: int, l2: str
) -> MemoryShare:
    """Return the share of the memory system for one of the SMs with blocks.

    An SM holds `resident` blocks at a time; `l2` is "warm" if the arrays are in the L2 before the
    launch, "dirty" if it is full of other stored lines, else "cold".
    """
    blocks, bandwidth = prepared.launch.blocks, device.bandwidth
    sms = min(device.gpu.sms, blocks)
    at_once = min(blocks, sms * resident)
    partial_bytes = L2_PARTIAL_FRACTION * device.capacity.l2_bytes
    patterns = patterns_of(prepared, classes, at_once)
    schedule = Schedule(
        prepared.launch,
        at_once,
        sms,
        bandwidth.dram_grain_bytes,
        partial_bytes,
        _under_way(patterns.steps, prepared, device, -(-at_once // sms)),
    )
    touches = touches_of(patterns, schedule)
    caches = Caches(touches, schedule, _capacity(prepared, device, resident, l2))
    sources = caches.sources()
    clock, moved = device.gpu.sm_clock_mhz, sources[-1].fetched + classes.written_sectors
    from_l2 = min(bandwidth.l2_gbps * 1000 / clock / sms, bandwidth.l2_to_sm_bytes_per_cycle)
    return MemoryShare(
        dram_bytes_per_cycle=min(bandwidth.dram_gbps * 1000 / clock / sms, from_l2),
        l2_bytes_per_cycle=from_l2,
        by_pc=sources,
        stored=stores_of(caches, patterns),
        write_factor=_write_factor(sources[-1].fetched, classes.written_sectors, device),
        sms=sms,
        busiest=blocks - sms * (-(-blocks // sms) - 1),
        first_wave=min(1.0, sms * resident / blocks),
        atomics=atomic_loads(patterns, schedule, device),
        answering=answering_atomics(prepared.program, device),
        compulsory=compulsory_of(patterns),
        peers=_loads_of_peers(prepared.program),
        cluster_blocks=prepared.launch.cluster_blocks,
        evicted=_evicted(moved, device) if l2 == "dirty" else 0.0,
    )


def _loads_of_peers(program: Program) -> frozenset[int]:
    """Return the loads that may be of another block's shared memory."""
    rows = enumerate(program.instructions if program.clusters else ())
    return frozenset(
        pc
        for pc, row in rows
        if row.memory is not None and row.memory.space == "generic" and OPS[row.op].kind == "load"
    )


def _under_way(steps: int, prepared: Prepared, device: Device, on_sm: int) -> float:
    """Return DRAM's latency in block durations.

    A block takes as long as its scheduler needs for the steps of all its warps, plus one DRAM
    latency.
    """
    latency = device.latency_cycles.dram
    warps = on_sm * prepared.launch.warps_per_block / device.sm.schedulers
    return latency / (latency + steps * max(1.0, warps))


def _capacity(prepared: Prepared, device: Device, resident: int, l2: str) -> Capacity:
    """Return the capacities of the caches, the L1 beside its blocks' shared memory."""
    held = device.capacity.l1_bytes if device.capacity.l1_caches_global else 0
    shared = resident * (prepared.program.shared_bytes + device.sm.shared_reserved_bytes)
    bandwidth = device.bandwidth
    return Capacity(
        caches=device.capacity,
        l1_bytes=l1_left(held, shared, device.capacity.l1_without_lines_bytes, device.cc),
        is_warm=l2 == "warm",
        line_alone=bandwidth.dram_gbps / bandwidth.dram_scattered_lines_gbps,
        grain_alone=bandwidth.dram_gbps / bandwidth.dram_scattered_gbps,
        write_alone=bandwidth.dram_gbps
        / bandwidth.dram_scattered_writes_gbps
        / bandwidth.dram_write_alone_factor,
    )


def _evicted(moved: float, device: Device) -> float:
    """Return the sectors stored before the launch that DRAM writes for each that it reads.

    Each of the `moved` sectors, read from DRAM or stored, takes the place of one of these with
    their fraction of the L2, while there are any; those that stores evict cost no time.
    """
    dirty = L2_DIRTY_FRACTION * device.capacity.l2_bytes / SECTOR_BYTES
    return min(L2_EVICTED_FRACTION, dirty / moved) if moved else 0.0


def _write_factor(read: float, written: float, device: Device) -> float:
    """Return the time of a DRAM write relative to a read, beside `read` sectors of reads."""
    bandwidth = device.bandwidth
    alone = bandwidth.dram_write_alone_factor
    beside_reads = min(1.0, read / (MIXED_FRACTION * written)) if written else 1.0
    return alone + (bandwidth.dram_write_factor - alone) * beside_reads


# KB of shared memory that an SM can have, by the first generation with these sizes (CUDA C++
# Programming Guide, "Compute Capabilities").
_SIZES = {
    (9, 0): (0, 8, 16, 32, 64, 100, 132, 164, 196, 228),
    (8, 6): (0, 8, 16, 32, 64, 100),
    (8, 0): (0, 8, 16, 32, 64, 100, 132, 164),
    (7, 5): (32, 64),
    (7, 0): (0, 8, 16, 32, 64, 96),
}


def l1_left(memory_bytes: int, shared_bytes: int, without_lines: int, cc: ComputeCapability) -> int:
    """Return the bytes left for L1 lines beside `shared_bytes` of shared memory of its blocks.

    The driver chooses the smallest carve-out that holds all resident blocks; `without_lines` bytes
    of the rest hold no lines. Before compute capability 7.0 the L1 is a memory of its own.
    """
    generation = next((first for first in _SIZES if (cc.major, cc.minor) >= first), None)
    if generation is None:
        return memory_bytes
    sizes = [kb * 1024 for kb in _SIZES[generation]]
    carve_out = next((size for size in sizes if size >= shared_bytes), sizes[-1])
    return max(0, memory_bytes - carve_out - without_lines)
