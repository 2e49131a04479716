"""Blocks that wait for blocks: whether a GPU that holds so many at a time ever gets through."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.checking.findings import Finding, Place
from gpusim.device import Device
from gpusim.occupancy import occupancy
from gpusim.prepared import Prepared


def stuck(prepared: Prepared, device: Device, waits_for: Mapping[int, int]) -> tuple[int, int]:
    """Return how many blocks the GPU holds, and how many ever start.

    `waits_for` is, by block, the last of those it waited for. Blocks start in order, and one more
    with each that ends; a block ends once all that it waits for have started.
    """
    held = occupancy(prepared, device).blocks * device.gpu.sms
    blocks = prepared.launch.blocks
    started = min(held, blocks)
    while True:
        stay = sum(1 for block, other in waits_for.items() if block < started <= other)
        more = min(held + started - stay, blocks)
        if more <= started:
            return held, started
        started = more


def finding(
    prepared: Prepared, device: Device, waits_for: Mapping[int, int], line: int
) -> Finding | None:
    """Return that a launch stands still on a GPU, None where it comes through."""
    if not waits_for:
        return None
    held, started = stuck(prepared, device, waits_for)
    blocks = prepared.launch.blocks
    if started == blocks:
        return None
    message = (
        f"blocks wait in line {line} for blocks that come after them: {device.gpu.name} holds "
        f"{held:,} of the {blocks:,} blocks at a time, and the others start only when one ends"
    )
    return Finding("residency", message, (Place(line, "waits"),))
