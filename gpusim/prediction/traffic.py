"""Traffic of a launch: origin of the bytes it reads, destination of the bytes it writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.isa.ops import BULK_STORE, OPS, Instruction
from gpusim.launch.prepared import Prepared
from gpusim.machine.storage import Allocation, allocate
from gpusim.prediction.clock.code_fetch import code_bytes
from gpusim.prediction.memory import MemoryShare
from gpusim.prediction.memory.measured import (
    CODE_PIECE_BYTES,
    CODE_READ_AGAIN,
    LAUNCH_DRAM_BYTES,
    LAUNCH_SECTORS,
)
from gpusim.prediction.streams import Classes
from gpusim.typing import Array

CACHED = ("global", "local")  # memory cached in the L1


@dataclass(frozen=True)
class Fetch:
    """An instruction's loads from an array, and their origin: fractions that add up to 1.

    Of its `sectors`, as requested by warps, `l1` hit in the SM's L1, `l2` in the L2, and `dram`
    come from DRAM. `reuse_distance_bytes` is the median reuse distance in the L2, in bytes of
    lines; None if most lines are touched once.
    """

    pc: int
    line: int
    array: str
    sectors: int
    l1: float
    l2: float
    dram: float
    reuse_distance_bytes: float | None


@dataclass(frozen=True)
class Traffic:
    """Bytes of a launch: loaded out of L1, L2 and DRAM, written to L2, and on to DRAM by its end.

    `compulsory_bytes` are the distinct sectors loaded and the distinct sectors stored or updated,
    a lower bound of traffic. `moved_bytes` are DRAM reads, in whole grains for loads, and for
    partial stores and updates. Loads make `l2_lookup_sectors` sector lookups in the L2's parts;
    loads, stores and atomics make `l1_requested_sectors` in the L1s, `l1_hit_sectors` of them hits.
    Code, constants and parameters add `own_sectors` through the L2 and `own_bytes` from DRAM.
    `fetches` are loads by instruction.
    """

    l1_bytes: int
    l2_bytes: int
    dram_bytes: int
    moved_bytes: float
    written_bytes: int
    written_back_bytes: float
    compulsory_bytes: int
    l2_lookup_sectors: float = 0.0
    l1_requested_sectors: int = 0
    l1_hit_sectors: float = 0.0
    own_sectors: float = 0.0
    own_bytes: int = 0
    fetches: tuple[Fetch, ...] = ()

    @property
    def counters(self) -> dict[str, float]:
        """Counters of Nsight Compute by name, predicted; a model."""
        return {name: count(self) for name, (_, _, count) in PREDICTED.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the traffic as plain data."""
        counters = {
            name: {"value": value, "kind": "model"} for name, value in self.counters.items()
        }
        return {**asdict(self), "counters": counters}


def _hit_rate(traffic: Traffic) -> float:
    return (
        100 * traffic.l1_hit_sectors / traffic.l1_requested_sectors
        if traffic.l1_requested_sectors
        else 0.0
    )


# By Nsight Compute's names: unit, description, and derivation.
PREDICTED: Mapping[str, tuple[str, str, Callable[[Traffic], float]]] = {
    "lts__t_sectors_op_read.sum": (
        "sectors",
        "32-byte sectors of loads that miss in the L1, twice for the far partition of the L2, and "
        "of the launch's own data.",
        lambda traffic: traffic.l2_lookup_sectors + traffic.own_sectors,
    ),
    "dram__bytes_read.sum": (
        "bytes",
        "Bytes read from DRAM on L2 misses: bursts of loads and atomics, sectors stored in part, "
        "and the launch's own data.",
        lambda traffic: traffic.moved_bytes + traffic.own_bytes,
    ),
    "l1tex__t_sector_hit_rate.pct": (
        "%",
        "Sectors of loads and stores that hit in the L1, over all sectors, atomics included.",
        _hit_rate,
    ),
}


def traffic_of(prepared: Prepared, classes: Classes, share: MemoryShare, l2: str) -> Traffic:
    """Return the traffic of a launch with these classes of blocks, with a cold or warm L2."""
    fetches = []
    loaded = from_l2 = from_dram = 0
    moved = looked_up = 0.0
    requested = _requested(prepared, classes)
    arrays = allocate(prepared.arguments, places=prepared.places)
    for pc, sectors in requested["load"].items():
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
                array=_array_at(arrays, found.address),
                sectors=sectors,
                l1=1 - missed / sectors,
                l2=(missed - fetched) / sectors,
                dram=fetched / sectors,
                reuse_distance_bytes=found.reuse_distance_bytes
                if math.isfinite(found.reuse_distance_bytes)
                else None,
            )
        )
    sent = requested["store"] | requested["atomic"]
    read_first = sum(share.stored[pc].dram_bytes for pc in sent if pc in share.stored)
    kept = sum(
        max(0.0, sectors - share.stored[pc].missed)
        for pc, sectors in requested["store"].items()
        if pc in share.stored
    )
    written = SECTOR_BYTES * classes.written_sectors
    code = code_bytes(prepared.program, prepared.cc)
    pieces = math.ceil(code / CODE_PIECE_BYTES)
    return Traffic(
        l1_bytes=SECTOR_BYTES * (loaded - from_l2 - from_dram),
        l2_bytes=SECTOR_BYTES * from_l2,
        dram_bytes=SECTOR_BYTES * from_dram,
        moved_bytes=moved + read_first,
        written_bytes=written,
        written_back_bytes=written * share.stored[-1].written_back,
        compulsory_bytes=share.compulsory.bytes,
        l2_lookup_sectors=looked_up,
        l1_requested_sectors=loaded + sum(sent.values()),
        l1_hit_sectors=loaded - from_l2 - from_dram + kept,
        own_sectors=LAUNCH_SECTORS + CODE_READ_AGAIN * code / SECTOR_BYTES,
        own_bytes=LAUNCH_DRAM_BYTES + CODE_PIECE_BYTES * pieces if l2 != "warm" else 0,
        fetches=tuple(fetches),
    )


def _requested(prepared: Prepared, classes: Classes) -> dict[str, dict[int, int]]:
    """Return the number of sectors requested by warps from the L1, by kind of access and pc."""
    kinds = [_kind(one) for one in prepared.program.instructions]
    is_atomic = np.array([kind == "atomic" for kind in kinds], dtype=bool)
    counts = np.zeros(len(kinds))
    sectors: dict[int, Array] = {}  # by table, of its rows
    for block_class in classes.classes:
        for warp in block_class.stream.warps:
            rows = warp.table.columns
            if id(warp.table) not in sectors:
                asked = np.where(is_atomic[rows["pc"]], rows["lines"], rows["cost"])
                sectors[id(warp.table)] = asked.astype(np.int64)
            own = sectors[id(warp.table)].take(warp.numbers)
            for first, end, times in warp.loops:
                own[first:end] *= 1 + times
            at = np.flatnonzero(own)
            weights = own[at] * block_class.blocks
            counts += np.bincount(rows["pc"][warp.numbers[at]], weights, minlength=len(counts))
    numbers = {pc: int(counts[pc]) for pc in np.flatnonzero(counts).tolist()}
    return {
        kind: {pc: number for pc, number in numbers.items() if kinds[pc] == kind}
        for kind in ("load", "store", "atomic")
    }


def _kind(instruction: Instruction) -> str:
    """Return the kind of access to global or local memory, of a bulk copy its direction."""
    kind, memory = OPS[instruction.op].kind, instruction.memory
    if kind == "bulk_copy":
        return "store" if instruction.op == BULK_STORE else "load"
    return kind if memory is not None and memory.space in CACHED else ""


def _array_at(arrays: Mapping[str, Allocation], address: int) -> str:
    """Return the name of the array at an address, empty if there is none."""
    for name, one in arrays.items():
        if 0 <= address - one.address < max(1, one.array.nbytes):
            return name
    return ""
