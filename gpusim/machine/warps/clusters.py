"""Thread block clusters: blocks that run together, and the barrier of all their threads.

A phase of the barrier ends when all threads of the cluster that have not exited have arrived (PTX
ISA, barrier.cluster).
"""

from __future__ import annotations

from gpusim.machine.warps.state import AT_CLUSTER, BARRIER_BITS, LAUNCH, READY, Split, Warp
from gpusim.wasm.memory import Record, u32
from gpusim.wasm.sources import external


class Member(Record):
    """A warp in a cluster: its block's rank, the lanes that have arrived at the barrier.

    `passed` are lanes with a completed phase.
    """

    rank: u32
    arrived: u32
    passed: u32


MEMBER_BYTES = 16


@external("opened")
def opened(warp: Warp) -> None:
    """Handle a barrier that opens, given the first warp of its block."""


@external("lets_pass")
def lets_pass(warp: Warp, split: Split) -> None:
    """Handle a split that a barrier of its cluster lets pass."""


def member(warp: Warp) -> Member:
    """Return a warp's record of its cluster."""
    return Member(warp.address + LAUNCH.cluster_at)


def open_cluster(first: Warp) -> bool:
    """End the barrier's phase if all have arrived, and continue lanes that waited for it.

    `first` is the first warp of the cluster. Returns whether any lanes continue.
    """
    arrived = missing = 0
    warp = first
    for _ in range(LAUNCH.cluster * LAUNCH.warps):
        arrived = arrived | member(warp).arrived
        missing = missing | warp.live & ~member(warp).arrived
        warp = Warp(warp.address + LAUNCH.warp_bytes)
    if arrived and not missing:
        warp = first
        for _ in range(LAUNCH.cluster * LAUNCH.warps):
            one = member(warp)
            one.passed = one.passed | one.arrived
            one.arrived = 0
            warp = Warp(warp.address + LAUNCH.warp_bytes)
    has_opened = False
    block = first
    for _ in range(LAUNCH.cluster):
        if _let_go(block):
            opened(block)
            has_opened = True
        block = Warp(block.address + LAUNCH.warps * LAUNCH.warp_bytes)
    return has_opened


def _let_go(warp: Warp) -> bool:
    """Continue lanes of a block that wait for a completed phase; return whether there are any."""
    goes = False
    for _ in range(LAUNCH.warps):
        one = member(warp)
        for number in range(warp.splits):
            split = warp.split(number)
            if split.state == AT_CLUSTER and split.lanes & ~one.passed == 0:
                lets_pass(warp, split)
                one.passed = one.passed & ~split.lanes
                split.block += 1
                split.state = READY
                split.waits_for = split.waits_for & -(1 << BARRIER_BITS)
                goes = True
        warp = Warp(warp.address + LAUNCH.warp_bytes)
    return goes
