"""How much of what a grid fetches is found in L1 and L2, from streams and the sizes of arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.device import Device
from gpusim.isa import OPS
from gpusim.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.prediction.measured import (
    L2_ALL_HIT,
    L2_ALL_MISS,
    LINES_A_CONCURRENT_ATOMIC,
    MOST_CONCURRENT_ATOMICS,
)
from gpusim.prediction.memory.share import MemoryShare, Source
from gpusim.prediction.streams import Classes
from gpusim.prepared import Prepared


@dataclass(frozen=True)
class _Fetches:
    """What the grid fetches of an array: its size, and bytes by pc, each block's own counted."""

    size_bytes: float
    by_pc: dict[int, float]

    @property
    def total_bytes(self) -> float:
        return sum(self.by_pc.values())

    @property
    def distinct_bytes(self) -> float:
        return min(self.total_bytes, self.size_bytes)


@dataclass(frozen=True)
class _Hits:
    """How one SM of `sms` with `resident` blocks finds the caches, in a cold or a warm launch."""

    device: Device
    sms: int
    l1_room_bytes: int
    l2_miss: float

    def l1_hit(self, one: _Fetches) -> float:
        """Return the fraction of an array's sectors that SMs fetch again and have in their L1s."""
        if one.size_bytes > self.l1_room_bytes:
            return 0.0
        return max(0.0, 1 - one.size_bytes * self.sms / one.total_bytes)


def memory_share(
    prepared: Prepared, classes: Classes, device: Device, resident: int, l2: str
) -> MemoryShare:
    """Return what one of the SMs that have a block has of the memory system.

    `resident` is how many blocks an SM holds at a time, `l2` whether the arrays lie in the L2
    before ("warm") or not ("cold").
    """
    blocks, bandwidth = prepared.launch.blocks, device.bandwidth
    sms = min(device.gpu.sms, blocks)
    fetches = _fetches(prepared, classes)
    distinct = sum(one.distinct_bytes for one in fetches)
    miss = _l2_miss(distinct, device.capacity.l2_bytes) if l2 == "warm" else 1.0
    hits = _Hits(device, sms, _l1_room_bytes(prepared, device, resident), miss)
    sources = _sources(fetches, hits)
    clock = device.gpu.sm_clock_mhz
    from_l2 = min(bandwidth.l2_gbps * 1000 / clock / sms, bandwidth.l2_to_sm_bytes_per_cycle)
    return MemoryShare(
        dram_bytes_per_cycle=min(bandwidth.dram_gbps * 1000 / clock / sms, from_l2),
        l2_bytes_per_cycle=from_l2,
        whole=sources[-1],
        written_back=sources[-1].l2_miss * _not_kept(distinct, device),
        write_factor=_write_factor(classes, device),
        sms=sms,
        busiest=blocks - sms * (-(-blocks // sms) - 1),
        first_wave=min(1.0, sms * resident / blocks),
        by_pc=sources,
        concurrent_atomics=_concurrent_atomics(prepared),
    )


def _l1_room_bytes(prepared: Prepared, device: Device, resident: int) -> int:
    """Return what of the L1 its blocks' shared memory leaves to global loads."""
    cached = device.capacity.l1_bytes if device.capacity.l1_caches_global else 0
    return cached - resident * prepared.program.shared_bytes


def _not_kept(distinct_bytes: float, device: Device) -> float:
    """Return the fraction of what is written that the L2 does not keep until the launch ends."""
    kept_bytes = device.capacity.l2_bytes * device.capacity.l2_written_fraction
    return max(0.0, 1 - (kept_bytes / distinct_bytes if distinct_bytes else 1.0))


def _write_factor(classes: Classes, device: Device) -> float:
    """Return how much longer than a read DRAM takes for a write, as far as both are done."""
    writes = classes.written_sectors
    beside_reads = min(1.0, classes.read_sectors / writes) if writes else 1.0
    return 1 + (device.bandwidth.dram_write_factor - 1) * beside_reads


def _sources(fetches: Iterable[_Fetches], hits: _Hits) -> dict[int, Source]:
    """Return where what each pc fetches comes from, and as that of pc -1 all of it together.

    What blocks have in common is new to the instruction that comes to it first.
    """
    sources: dict[int, Source] = {}
    total = from_dram = from_l1 = 0.0
    for one in fetches:
        left, l1_hit = one.size_bytes, hits.l1_hit(one)
        for pc, size in one.by_pc.items():
            new = min(left, size)
            left -= new
            sources[pc] = Source(new / size * hits.l2_miss, hits.l2_miss, l1_hit)
            total, from_dram, from_l1 = total + size, from_dram + new, from_l1 + l1_hit * size
    new_fraction, l1_hit = (from_dram / total, from_l1 / total) if total else (1.0, 0.0)
    sources[-1] = Source(new_fraction * hits.l2_miss, hits.l2_miss, l1_hit)
    return sources


def _concurrent_atomics(prepared: Prepared) -> dict[int, float]:
    """Return how many global atomics the L2 does at a time, by pc: more in a larger array."""
    found: dict[int, float] = {}
    for pc, instruction in enumerate(prepared.program.instructions):
        memory = instruction.memory
        is_atomic = OPS[instruction.op].kind == "atomic"
        if is_atomic and memory is not None and memory.space == "global":
            lines = prepared.bytes_of(memory.name) / LINE_BYTES
            atomics = 1 / (1 / MOST_CONCURRENT_ATOMICS + LINES_A_CONCURRENT_ATOMIC / lines)
            found[pc] = max(1.0, atomics)
    return found


def _l2_miss(size_bytes: float, l2_bytes: int) -> float:
    """Return the fraction of arrays of a size that is gone from a warm L2.

    Read again in the order in which it came, what does not fit is gone when its turn comes.
    """
    filled = size_bytes / l2_bytes if l2_bytes else math.inf
    return min(1.0, max(0.0, (filled - L2_ALL_HIT) / (L2_ALL_MISS - L2_ALL_HIT)))


def _fetches(prepared: Prepared, classes: Classes) -> list[_Fetches]:
    """Return what blocks touch first of each array, in the order of the instructions."""
    instructions = prepared.program.instructions
    by_pc: Any = np.zeros(len(instructions))
    for one in classes.classes:
        for warp in one.stream.warps:
            by_pc += one.blocks * np.bincount(
                warp.pc, weights=warp.times * warp.fresh, minlength=len(by_pc)
            )
    found: dict[str, dict[int, float]] = {}
    for pc, sectors in enumerate(by_pc.tolist()):
        memory = instructions[pc].memory
        if sectors and memory is not None:
            found.setdefault(memory.name, {})[pc] = SECTOR_BYTES * sectors
    return [_Fetches(prepared.bytes_of(name), bytes_by_pc) for name, bytes_by_pc in found.items()]
