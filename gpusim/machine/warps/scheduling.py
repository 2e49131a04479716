"""One block after the other, each of its warps in turn to its next barrier."""

from __future__ import annotations

from gpusim.machine.warps.barriers import ARRIVALS_BYTES, reduce
from gpusim.machine.warps.bulk_copies import forget_bulk
from gpusim.machine.warps.clusters import member, open_cluster, opened
from gpusim.machine.warps.convergence import exchanges_apart, let_go, new_path, with_those_present
from gpusim.machine.warps.copies import QUEUE_BYTES
from gpusim.machine.warps.state import (
    ALL_LANES,
    AT_BARRIER,
    BARRIER_BITS,
    ENTRY_BYTES,
    LAUNCH,
    NOW,
    READY,
    Entry,
    Warp,
)
from gpusim.wasm.integers import as_u32, trailing_zeros
from gpusim.wasm.memory import Record, copy, fill, i32, i64, u32
from gpusim.wasm.sources import external

ENDED, STANDS_STILL, WAITS = range(3)  # the end of a batch, or a block that waits for others
_FNV_PRIME = 0x01000193


@external("warp")
def run_warp(warp: Warp, number: u32) -> None:
    """Run a split of a warp until it waits, ends, or another one is at a lower pc."""


@external("start")
def start(warp: Warp) -> None:
    """Set the registers that a program reads before it writes them."""


@external("begins")
def begins(warp: Warp) -> None:
    """Handle a warp that begins in another block."""


@external("progress")
def progress(warp: Warp) -> i32:  # noqa: ARG001
    """Return the number of backward branches of a warp until its next sample.

    In NumPy's order it is the number of steps of all warps, given a warp at address 0. A number
    below 0 ends the batch.
    """
    return -1


class _Words(Record):
    """Sixteen bytes."""

    first: i64
    second: i64


def prepare() -> None:
    """Set a module's state to the begin of a batch."""
    NOW.notes = LAUNCH.notes
    NOW.copies = LAUNCH.copies
    NOW.free_copies = 0
    NOW.bulk = 0


def run_in_turn() -> u32:
    """Run the clusters of a batch, one after the other in the memory of one cluster.

    A block with the sums of the one before it shares them: their number is written into its entry.
    Return how the batch ended.
    """
    prepare()
    first = Warp(LAUNCH.warps_at)
    sums = first.sums
    size = LAUNCH.warps * LAUNCH.sum_bytes
    last = 0
    number = -1
    for cluster in range(LAUNCH.blocks // LAUNCH.cluster):
        entry = Entry(LAUNCH.entries + ENTRY_BYTES * LAUNCH.cluster * cluster)
        fill(sums, 0, size * LAUNCH.cluster)
        warp = first
        for place in range(LAUNCH.held):
            if place % LAUNCH.warps == 0:
                fill(warp.shared, 0, LAUNCH.shared_bytes)
            warp.turns = LAUNCH.turns
            warp.sums = sums + place * LAUNCH.sum_bytes
            begin(warp, Entry(entry.address + ENTRY_BYTES * (place // LAUNCH.warps)))
            begins(warp)
            warp = Warp(warp.address + LAUNCH.warp_bytes)
        end = run_cluster(first)
        if end:
            return end
        made = sums
        for _ in range(LAUNCH.cluster):
            if last == 0 or not _are_equal(last, made, size):
                number += 1
                last = sums
                if made != sums:
                    copy(sums, made, size)
                sums += size
            entry.x = number
            made += size
            entry = Entry(entry.address + ENTRY_BYTES)
    return ENDED


def _are_equal(one: int, other: int, size: int) -> bool:
    """Whether bytes, a multiple of 16, are the same at two places."""
    end = one + size
    while one < end:
        a, b = _Words(one), _Words(other)
        if (a.first ^ b.first) | (a.second ^ b.second):
            return False
        one += 16
        other += 16
    return True


def begin(warp: Warp, entry: Entry) -> None:
    """Set a warp to its start in another block: the rows of warps in a block follow one another."""
    warp.splits = 1
    warp.tokens = 0
    warp.live = warp.lanes
    warp.x = entry.x
    warp.y = entry.y
    warp.z = entry.z
    warp.is_watched = entry.is_watched
    warp.row += LAUNCH.held
    split = warp.split(0)
    split.block = 0
    split.lanes = warp.lanes
    split.state = READY
    split.waits_for = 0
    if LAUNCH.local_bytes:
        fill(warp.local, 0, LAUNCH.local_bytes)
    if LAUNCH.arrivals:
        fill(warp.address + LAUNCH.arrivals, 0, ARRIVALS_BYTES)
    if LAUNCH.queue_at:
        fill(warp.address + LAUNCH.queue_at, 0, QUEUE_BYTES)
    if LAUNCH.groups_at:
        forget_bulk(warp)
    if LAUNCH.cluster_at:
        member(warp).arrived = 0
        member(warp).passed = 0
    start(warp)


def furthest_behind(warp: Warp) -> int:
    """Return the ready split of a warp at the lowest block of code, -1 if none is ready.

    Of several, it is the one with the lowest lane. The block of the next split is kept. Splits at
    one block have been elsewhere in other warps, where one of them comes alone: their paths are
    new.
    """
    first, least, next_block = -1, ALL_LANES, ALL_LANES
    for number in range(warp.splits):
        split = warp.split(number)
        if split.state == READY:
            key = split.block << 5 | trailing_zeros(split.lanes)
            if key < least:
                next_block = least >> 5
                least = key
                first = number
            else:
                next_block = min(next_block, key >> 5)
    NOW.next_block = next_block
    if next_block == least >> 5:
        _part_paths(warp, next_block)
    return first


def _part_paths(warp: Warp, block: int) -> None:
    """Give new paths to the splits that are ready at a block of code, the last one first."""
    number = warp.splits - 1
    while number >= 0:
        split = warp.split(number)
        if split.state == READY and split.block == block:
            split.waits_for = new_path()
        number -= 1


def run_cluster(first: Warp) -> u32:
    """Run a cluster, each of its blocks in turn as far as it comes alone; return how it ended."""
    if LAUNCH.cluster == 1:
        return run_block(first)
    while True:
        is_waiting = False
        block = first
        for _ in range(LAUNCH.cluster):
            end = run_block(block)
            if end == STANDS_STILL:
                return end
            is_waiting = is_waiting | (end == WAITS)
            block = Warp(block.address + LAUNCH.warps * LAUNCH.warp_bytes)
        if not is_waiting:
            return ENDED
        if not open_cluster(first) and not _goes_on(first, LAUNCH.held):
            return WAITS


def run_block(first: Warp) -> u32:
    """Run a block, each warp in turn to its next barrier; return how it ended."""
    while True:
        path = 0
        has_run = is_live = waits = False
        warp = first
        for _ in range(LAUNCH.warps):
            number = furthest_behind(warp)
            while number >= 0:
                run_warp(warp, number)
                if warp.turns < 0:
                    warp.turns = progress(warp)
                    if warp.turns < 0:
                        return STANDS_STILL
                has_run = True
                number = furthest_behind(warp)
            for place in range(warp.splits):
                split = warp.split(place)
                is_live = True
                path = as_u32((path ^ split.waits_for) * _FNV_PRIME)
                waits = waits | (split.state != AT_BARRIER)
            warp = Warp(warp.address + LAUNCH.warp_bytes)
        if not is_live:
            return ENDED
        if not waits:
            opened(first)
            open_barrier(first, path)
        elif not has_run and (LAUNCH.cluster > 1 or not _goes_on(first, LAUNCH.warps)):
            return WAITS


def _goes_on(first: Warp, warps: int) -> bool:
    """Let lanes go on of which no other is ready, as a GPU does; False in a deadlock."""
    warp, goes = first, False
    for _ in range(warps):
        if exchanges_apart(warp):
            return False
        warp = Warp(warp.address + LAUNCH.warp_bytes)
    warp = first
    for _ in range(warps):
        goes = goes | let_go(warp)
        warp = Warp(warp.address + LAUNCH.warp_bytes)
    warp = first
    for _ in range(warps):
        number = -1 if goes else with_those_present(warp)
        if number >= 0:
            NOW.goes_without = 1
            run_warp(warp, number)
            goes = True
        warp = Warp(warp.address + LAUNCH.warp_bytes)
    return goes


def open_barrier(warp: Warp, path: int) -> None:
    """Release the splits of a block from its barrier."""
    if LAUNCH.reductions:
        reduce(warp)
    for _ in range(LAUNCH.warps):
        for number in range(warp.splits):
            split = warp.split(number)
            split.block += 1
            split.state = READY
            split.waits_for = (split.waits_for ^ path) & -(1 << BARRIER_BITS)
        warp = Warp(warp.address + LAUNCH.warp_bytes)
