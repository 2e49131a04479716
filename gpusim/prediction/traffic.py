"""Where the bytes come from that a launch reads, and where those go that it writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpusim.isa import OPS
from gpusim.machine.storage import allocate
from gpusim.memory import SECTOR_BYTES
from gpusim.prediction.memory import MemoryShare
from gpusim.prediction.streams import Classes
from gpusim.prepared import Prepared


@dataclass(frozen=True)
class Fetch:
    """What an instruction loads of an array, and where that comes from: fractions that add up to 1.

    Of its `sectors`, as warps ask for them, `l1` are in the SM's L1, `l2` in the L2, and `dram`
    come from DRAM. Between two touches of a line `reuse_bytes` of lines come into the L2, on the
    median; None where most lines are touched once.
    """

    pc: int
    line: int
    array: str
    sectors: int
    l1: float
    l2: float
    dram: float
    reuse_bytes: float | None


@dataclass(frozen=True)
class Traffic:
    """Bytes of a launch: loaded out of L1, L2 and DRAM, written to L2, and on to DRAM by its end.

    `moved_bytes` are what DRAM moves for what comes from there, in whole grains. The L2's parts are
    asked for so many `looked_up` sectors by loads. `fetches` say it by instruction.
    """

    l1_bytes: int
    l2_bytes: int
    dram_bytes: int
    moved_bytes: float
    written_bytes: int
    written_back_bytes: float
    looked_up: float = 0.0
    fetches: tuple[Fetch, ...] = ()

    @property
    def counters(self) -> dict[str, float]:
        """What Nsight Compute counts of it, by its names; a model."""
        return {name: count(self) for name, (_, _, count) in PREDICTED.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the traffic as plain data."""
        counters = {
            name: {"value": value, "kind": "model"} for name, value in self.counters.items()
        }
        return {**asdict(self), "counters": counters}


def _hit_rate(traffic: Traffic) -> float:
    loaded = traffic.l1_bytes + traffic.l2_bytes + traffic.dram_bytes
    return 100 * traffic.l1_bytes / loaded if loaded else 0.0


# By Nsight Compute's names: unit, what is counted, and how it follows.
PREDICTED: Mapping[str, tuple[str, str, Callable[[Traffic], float]]] = {
    "lts__t_sectors_op_read.sum": (
        "sectors",
        "32-byte sectors of loads that no L1 has, once more where another part of the L2 is asked.",
        lambda traffic: traffic.looked_up,
    ),
    "dram__bytes_read.sum": (
        "bytes",
        "Bytes that DRAM moves for sectors that are not in the L2, in whole grains.",
        lambda traffic: traffic.moved_bytes,
    ),
    "l1tex__t_sector_hit_rate.pct": (
        "%",
        "Sectors of loads that are found in the L1, of all that warps ask for.",
        _hit_rate,
    ),
}


def traffic_of(prepared: Prepared, classes: Classes, share: MemoryShare) -> Traffic:
    """Return the traffic of a launch whose blocks are of these classes."""
    fetches = []
    loaded = from_l2 = from_dram = 0
    moved = looked_up = 0.0
    for pc, sectors in _requested(prepared, classes).items():
        found = share.by_pc.get(pc)
        if found is None:
            continue
        missed = min(round(found.missed), sectors)
        fetched = min(round(found.fetched), missed)
        loaded, from_dram = loaded + sectors, from_dram + fetched
        looked_up += found.looked_up
        from_l2, moved = from_l2 + missed - fetched, moved + found.dram_bytes
        fetches.append(
            Fetch(
                pc=pc,
                line=prepared.program.instructions[pc].line,
                array=_array_at(prepared, found.address),
                sectors=sectors,
                l1=1 - missed / sectors,
                l2=(missed - fetched) / sectors,
                dram=fetched / sectors,
                reuse_bytes=found.reuse_bytes if math.isfinite(found.reuse_bytes) else None,
            )
        )
    written = SECTOR_BYTES * classes.written_sectors
    return Traffic(
        l1_bytes=SECTOR_BYTES * (loaded - from_l2 - from_dram),
        l2_bytes=SECTOR_BYTES * from_l2,
        dram_bytes=SECTOR_BYTES * from_dram,
        moved_bytes=moved,
        written_bytes=written,
        written_back_bytes=written * share.stored[-1].written_back,
        looked_up=looked_up,
        fetches=tuple(fetches),
    )


def _requested(prepared: Prepared, classes: Classes) -> dict[int, int]:
    """Return how many sectors the warps ask for with each load from global memory, by pc."""
    instructions = prepared.program.instructions
    loads = np.array(
        [
            OPS[one.op].kind == "load" and one.memory is not None and one.memory.space == "global"
            for one in instructions
        ],
        dtype=bool,
    )
    counts = np.zeros(len(instructions))
    for block_class in classes.classes:
        for warp in block_class.stream.warps:
            sectors = warp.times * np.where(loads[warp.pc], warp.cost, 0) * block_class.blocks
            counts += np.bincount(warp.pc, weights=sectors, minlength=len(counts))
    return {pc: int(counts[pc]) for pc in np.flatnonzero(counts).tolist()}


def _array_at(prepared: Prepared, address: int) -> str:
    """Return the name of the array that has an address, empty where none has."""
    for name, one in allocate(prepared.arguments).items():
        if 0 <= address - one.address < max(1, one.array.nbytes):
            return name
    return ""
