"""What one SM has of the memory hierarchy: bandwidths, and where its sectors come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpusim.gpu.device import Device
from gpusim.launch.prepared import Prepared
from gpusim.prediction.locality.compulsory import Compulsory, compulsory_of
from gpusim.prediction.locality.patterns import patterns_of
from gpusim.prediction.locality.reuse import touches_of
from gpusim.prediction.locality.schedule import Schedule
from gpusim.prediction.memory.atomics import answering_atomics, concurrent_atomics
from gpusim.prediction.memory.carve_out import l1_left
from gpusim.prediction.memory.measured import L2_PARTIAL_FRACTION, MIXED_FRACTION
from gpusim.prediction.memory.miss_ratios import Caches, Capacity, Sources
from gpusim.prediction.memory.stores import Stored, stores_of
from gpusim.prediction.streams import Classes


@dataclass(frozen=True)
class MemoryShare:
    """What one SM has of the device: bytes per cycle from DRAM and L2, and how busy others are.

    `by_pc` says where the sectors come from that an instruction loads, `stored` what becomes of
    those that one stores. A sector takes DRAM `write_factor` times as long to write as to read.
    `busiest` of the `sms` get as many blocks as this one, the others one less; `first_wave` is the
    fraction of the blocks that runs from the beginning on. `concurrent_atomics` is how many atomics
    of an instruction the L2 does at a time, `compulsory` what all SMs move at the least.
    """

    dram_bytes_per_cycle: float
    l2_bytes_per_cycle: float
    by_pc: Mapping[int, Sources]
    stored: Mapping[int, Stored]
    write_factor: float
    sms: int
    busiest: int
    first_wave: float = 1.0
    concurrent_atomics: Mapping[int, float] = field(default_factory=dict)
    answering: Mapping[int, float] = field(default_factory=dict)
    compulsory: Compulsory = field(default_factory=Compulsory)

    @property
    def whole(self) -> Sources:
        """Where all that is loaded comes from."""
        return self.by_pc[-1]

    def sources(self, pc: int) -> Sources:
        """Return where an instruction's sectors come from."""
        found = self.by_pc.get(pc)
        return self.by_pc[-1] if found is None else found

    def written(self, pc: int) -> Stored:
        """Return what becomes of an instruction's stores."""
        found = self.stored.get(pc)
        return self.stored[-1] if found is None else found

    def gain(self, left: int, resident: int) -> float:
        """Return how much more than its share an SM has while `left` of its blocks remain.

        Where other SMs have no blocks left, those that have share what there is.
        """
        if left > resident or not left:
            return 1.0
        others = (self.sms - self.busiest) * (left - 1)
        return left * self.sms / (self.busiest * left + others)


def memory_share(
    prepared: Prepared,
    classes: Classes,
    device: Device,
    resident: int,
    l2: str,
) -> MemoryShare:
    """Return what one of the SMs that have a block has of the memory system.

    `resident` is how many blocks an SM holds at a time, `l2` whether the arrays lie in the L2
    before ("warm") or not ("cold").
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
    clock = device.gpu.sm_clock_mhz
    from_l2 = min(bandwidth.l2_gbps * 1000 / clock / sms, bandwidth.l2_to_sm_bytes_per_cycle)
    return MemoryShare(
        dram_bytes_per_cycle=min(bandwidth.dram_gbps * 1000 / clock / sms, from_l2),
        l2_bytes_per_cycle=from_l2,
        by_pc=sources,
        stored=stores_of(caches),
        write_factor=_write_factor(sources[-1].fetched, classes.written_sectors, device),
        sms=sms,
        busiest=blocks - sms * (-(-blocks // sms) - 1),
        first_wave=min(1.0, sms * resident / blocks),
        concurrent_atomics=concurrent_atomics(patterns, schedule, device),
        answering=answering_atomics(prepared.program, device),
        compulsory=compulsory_of(patterns),
    )


def _under_way(steps: int, prepared: Prepared, device: Device, on_sm: int) -> float:
    """Return for how many lives of a block what DRAM fetches is under way.

    A block lives as long as its scheduler takes for the steps of all its warps, and once as long as
    DRAM's latency.
    """
    latency = device.latency_cycles.dram
    warps = on_sm * prepared.launch.warps_per_block / device.sm.schedulers
    return latency / (latency + steps * max(1.0, warps))


def _capacity(prepared: Prepared, device: Device, resident: int, l2: str) -> Capacity:
    """Return what the caches hold, the L1 beside its blocks' shared memory."""
    held = device.capacity.l1_bytes if device.capacity.l1_caches_global else 0
    shared = resident * (prepared.program.shared_bytes + device.sm.shared_reserved_bytes)
    bandwidth = device.bandwidth
    return Capacity(
        caches=device.capacity,
        l1_bytes=l1_left(held, shared, device.capacity.l1_without_lines_bytes, device.cc),
        is_warm=l2 == "warm",
        line_alone=bandwidth.dram_gbps / bandwidth.dram_scattered_lines_gbps,
        grain_alone=bandwidth.dram_gbps / bandwidth.dram_scattered_gbps,
        half_lines=bandwidth.dram_half_lines_factor,
    )


def _write_factor(read: float, written: float, device: Device) -> float:
    """Return how much longer than a read DRAM takes for a write, beside so many sectors read."""
    bandwidth = device.bandwidth
    alone = bandwidth.dram_write_alone_factor
    beside_reads = min(1.0, read / (MIXED_FRACTION * written)) if written else 1.0
    return alone + (bandwidth.dram_write_factor - alone) * beside_reads
