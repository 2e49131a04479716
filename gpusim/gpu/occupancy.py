"""Occupancy: the blocks of a kernel resident on an SM, and the limiter."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.errors import LaunchError
from gpusim.gpu.device import Device
from gpusim.launch.grid import WARP_SIZE
from gpusim.launch.prepared import Prepared

# Blocks of clusters that an SM holds, of any size: clusters of 2, 4 and 8 blocks of 32 to 256
# threads on an H200, as they were seen and by cudaOccupancyMaxActiveClusters.
MOST_OF_CLUSTERS = 8


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps resident on an SM at a time, and the resource that limits them.

    `limit` is "threads", "blocks", "blocks of clusters", "registers" or "shared memory"; `fraction`
    is of the warps that an SM could hold.
    """

    blocks: int
    warps: int
    fraction: float
    limit: str


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def occupancy(prepared: Prepared, device: Device) -> Occupancy:
    """Return a launch's occupancy; LaunchError where an SM cannot hold one block.

    The rules are from NVIDIA's occupancy calculator: registers are given to warps in
    units, shared memory to blocks, some of it kept by the system.
    """
    program, launch = prepared.program, prepared.launch
    sm, warps = device.sm, launch.warps_per_block
    registers = _up(program.register_estimate * WARP_SIZE, sm.register_unit) * warps
    shared = prepared.block_shared_bytes + sm.shared_reserved_bytes
    shared = _up(shared, sm.shared_unit_bytes)
    limits = {
        "threads": sm.max_threads // (warps * WARP_SIZE),
        "blocks": sm.max_blocks,
        "registers": sm.registers // registers,
        "shared memory": sm.shared_bytes // shared if shared else sm.max_blocks,
    }
    if launch.cluster_blocks > 1:
        limits["blocks of clusters"] = MOST_OF_CLUSTERS
    limit = min(limits, key=lambda name: limits[name])
    blocks = limits[limit]
    if blocks < 1:
        raise LaunchError(
            f"{device.gpu.name} cannot hold a block of {launch.threads_per_block} threads: "
            f"not enough {limit}"
        )
    return Occupancy(blocks, blocks * warps, blocks * warps * WARP_SIZE / sm.max_threads, limit)
