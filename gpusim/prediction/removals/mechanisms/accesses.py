"""Accesses to memory without conflicts, scattered sectors, repetition or latency."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from gpusim.gpu.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.isa.ops import OPS, Instruction
from gpusim.launch.grid import WARP_SIZE
from gpusim.prediction.memory import MemoryShare
from gpusim.prediction.memory.atomics import AtomicLoad
from gpusim.prediction.removals.registry import mechanism
from gpusim.prediction.removals.rows import are_at, with_columns, without
from gpusim.prediction.setting import Setting
from gpusim.prediction.streams import BlockStream, WarpStream
from gpusim.typing import Array

WAVEFRONT_BYTES = 128  # of shared memory: CUDA's guide, 32 banks of 4 bytes


def accesses(setting: Setting, pcs: Iterable[int], space: str, *kinds: str) -> list[int]:
    """Return the instructions among some that access a space, of some kinds of access."""
    rows = setting.prepared.program.instructions
    return [pc for pc in sorted(pcs) if _is_access(rows[pc], space, kinds)]


def _is_access(row: Instruction, space: str, kinds: tuple[str, ...]) -> bool:
    return row.memory is not None and row.memory.space == space and OPS[row.op].kind in kinds


def _of_warps(edit: Callable[[WarpStream], WarpStream]) -> Callable[[BlockStream], BlockStream]:
    """Return the edit of a block that edits each of its warps."""
    return lambda block: BlockStream(tuple(map(edit, block.warps)))


def _widths(setting: Setting, pcs: Iterable[int]) -> Array:
    """Return the bytes of a lane's access by pc, 0 for other instructions."""
    rows = setting.prepared.program.instructions
    widths = np.zeros(len(rows), dtype=np.int64)
    for pc in pcs:
        memory = rows[pc].memory
        assert memory is not None
        widths[pc] = memory.width_bytes
    return widths


@mechanism("bank-conflicts")
def bank_conflicts(setting: Setting, pcs: frozenset[int]) -> Setting:
    """Its shared-memory accesses take no more wavefronts than their widths need."""
    mine = accesses(setting, pcs, "shared", "load", "store")
    least = -(-WARP_SIZE * _widths(setting, mine) // WAVEFRONT_BYTES)

    def edit(warp: WarpStream) -> WarpStream:
        return with_columns(warp, are_at(warp, mine), cost=np.minimum(warp.cost, least[warp.pc]))

    return setting.with_blocks(_of_warps(edit))


@mechanism("uncoalesced")
def uncoalesced(setting: Setting, pcs: frozenset[int]) -> Setting:
    """Its global accesses touch as few sectors as their bytes need.

    Bytes that a block fetches once and uses over several accesses come in equal parts with each.
    """
    mine = accesses(setting, pcs, "global", "load", "store")
    widths = _widths(setting, mine)
    groups = _groups(setting, mine)

    def edit(block: BlockStream) -> BlockStream:
        new, wrote = _touched_first(block, groups, widths)
        return BlockStream(
            tuple(_coalesced(warp, mine, widths, new, wrote) for warp in block.warps)
        )

    edited = setting.with_blocks(edit)
    return replace(edited, memory=_side_by_side(edited, groups))


def _groups(setting: Setting, pcs: list[int]) -> list[list[int]]:
    """Return instructions together that load from one array, or store to one: an unrolled loop."""
    rows, groups = setting.prepared.program.instructions, dict[tuple[str, str], list[int]]()
    for pc in pcs:
        memory = rows[pc].memory
        assert memory is not None
        groups.setdefault((OPS[rows[pc].op].kind, memory.name), []).append(pc)
    return list(groups.values())


def _side_by_side(setting: Setting, groups: list[list[int]]) -> MemoryShare:
    """Return the share of memory where some instructions' sectors lie side by side.

    DRAM then moves no more than is used, and fetches as much of it as before, at most all.
    """
    memory = setting.memory
    loaded, stored = dict(memory.by_pc), dict(memory.stored)
    for group in groups:
        here = [pc for pc in group if pc in memory.by_pc]
        fetched, sectors = sum(memory.by_pc[pc].fetched for pc in here), _fresh(setting, here)
        missed = min(1.0, fetched / sectors) if sectors else 0.0
        for pc in here:
            first = replace(
                memory.by_pc[pc].first,
                l2_miss=missed,
                first_l2_miss=missed,
                l1_hit=0.0,
                first_l1_hit=0.0,
                moved=1.0,
                apart=0.0,
                first_apart=0.0,
            )
            loaded[pc] = replace(memory.by_pc[pc], first=first)
        for pc in group:
            if pc in memory.stored:
                stored[pc] = replace(memory.stored[pc], moved=1.0, read_first=0.0, copied=0.0)
    return replace(memory, by_pc=loaded, stored=stored)


def _fresh(setting: Setting, pcs: list[int]) -> int:
    """Return the sectors that blocks touch first in instructions, each block's own counted."""
    return sum(
        one.blocks * int((warp.fresh * warp.times)[are_at(warp, pcs)].sum())
        for one in setting.classes.classes
        for warp in one.stream.warps
    )


def _bytes(warp: WarpStream, widths: Array) -> Array:
    """Return the bytes that the lanes of each row request."""
    return np.bitwise_count(warp.lanes).astype(np.int64) * widths[warp.pc]


def _touched_first(
    block: BlockStream, groups: list[list[int]], widths: Array
) -> tuple[Array, Array]:
    """Return, by pc, the fractions of the needed sectors that a group touches, and stores, first.

    Sectors that a block uses up over several accesses are touched as often, in equal parts.
    """
    new, wrote = np.zeros(len(widths)), np.zeros(len(widths))
    for group in groups:
        needed = fresh = written = 0.0
        for warp in block.warps:
            here = are_at(warp, group) & warp.is_on
            needed += float((_bytes(warp, widths) * warp.times)[here].sum()) / SECTOR_BYTES
            fresh += float((warp.fresh * warp.times)[here].sum())
            written += float((warp.written * warp.times)[here].sum())
        new[group] = min(1.0, fresh / needed) if needed else 0.0
        wrote[group] = min(1.0, written / needed) if needed else 0.0
    return new, wrote


def _coalesced(
    warp: WarpStream, pcs: list[int], widths: Array, new: Array, wrote: Array
) -> WarpStream:
    """Return a warp with lanes side by side in these accesses."""
    here = are_at(warp, pcs) & warp.is_on
    size = _bytes(warp, widths)
    cost = np.minimum(warp.cost, -(-size // SECTOR_BYTES))
    here &= cost < warp.cost
    lines = np.minimum(warp.lines, -(-size // LINE_BYTES))
    return with_columns(
        warp,
        here,
        cost=cost,
        lines=lines,
        wavefronts=np.minimum(warp.wavefronts, np.maximum(lines, 1)),
        fresh=np.rint(cost * new[warp.pc]),
        written=np.rint(cost * wrote[warp.pc]),
        gaps=np.zeros(len(warp)),
        apart=np.minimum(warp.apart, lines),
    )


@mechanism("latency")
def latency(setting: Setting, pcs: frozenset[int]) -> Setting:
    """No warp waits for its loads: they start early enough."""
    rows = accesses(setting, pcs, "global", "load") + accesses(setting, pcs, "shared", "load")
    changed = {}
    for pc in rows:
        issue = setting.issues[pc]
        changed[pc] = issue._replace(instruction=replace(issue.instruction, dst=()))
    return setting.with_issues(changed)


@mechanism("repeated-accesses")
def repeated_accesses(setting: Setting, pcs: frozenset[int]) -> Setting:
    """A block loads and stores no sector of global memory that it has loaded or stored before."""
    loads = accesses(setting, pcs, "global", "load")
    stores = accesses(setting, pcs, "global", "store")

    def edit(warp: WarpStream) -> WarpStream:
        again = are_at(warp, loads) & (warp.fresh == 0) & ~warp.joins & (warp.cost > 0)
        stored = are_at(warp, stores) & (warp.written == 0) & (warp.cost > 0)
        return without(warp, again | stored)

    return setting.with_blocks(_of_warps(edit))


@mechanism("narrow-loads")
def narrow_loads(setting: Setting, pcs: frozenset[int]) -> Setting:
    """Loads of neighbouring words by one thread are one wide load."""
    loads = accesses(setting, pcs, "global", "load")

    def edit(warp: WarpStream) -> WarpStream:
        again = are_at(warp, loads) & (warp.fresh == 0) & (warp.cost > 0)
        return without(warp, again)

    return setting.with_blocks(_of_warps(edit))


@mechanism("local-memory", of_a_line=False)
def local_memory(setting: Setting, pcs: frozenset[int]) -> Setting:
    """A thread's own arrays and spilled registers take no accesses to local memory."""
    mine = accesses(setting, pcs, "local", "load", "store")

    def edit(warp: WarpStream) -> WarpStream:
        return without(warp, are_at(warp, mine))

    return setting.with_blocks(_of_warps(edit))


@mechanism("atomics")
def atomics(setting: Setting, pcs: frozenset[int]) -> Setting:
    """Its atomics have no contention: each lane has a separate address."""
    mine = accesses(setting, pcs, "global", "atomic") + accesses(setting, pcs, "shared", "atomic")
    known = setting.memory.atomics
    alone = AtomicLoad(float(setting.device.bandwidth.l2_atomic_units), 0.0)
    apart = {**known, **{pc: alone for pc in mine if pc in known}}

    def edit(warp: WarpStream) -> WarpStream:
        return with_columns(warp, are_at(warp, mine), cost=np.minimum(warp.cost, 1))

    edited = setting.with_blocks(_of_warps(edit))
    return replace(edited, memory=replace(setting.memory, atomics=apart))


@mechanism("constants")
def constants(setting: Setting, pcs: frozenset[int]) -> Setting:
    """All lanes of a warp read the same constant."""
    rows = setting.prepared.program.instructions
    mine = [pc for pc in pcs if OPS[rows[pc].op].action == "constant"]

    def edit(warp: WarpStream) -> WarpStream:
        return with_columns(warp, are_at(warp, mine), cost=np.minimum(warp.cost, 1))

    return setting.with_blocks(_of_warps(edit))
