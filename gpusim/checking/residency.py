"""Blocks that wait for blocks: deadlock on a GPU that cannot hold all blocks at once.

A kernel with spin loops, and more blocks than fit, is run once more with at most as many blocks at
a time as the GPU holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim import machine
from gpusim.checking.findings import Finding, Place
from gpusim.errors import KernelFault, NoProgressError
from gpusim.gpu.device import Device
from gpusim.gpu.occupancy import occupancy
from gpusim.launch.prepared import Prepared
from gpusim.program.polling import polls

# Blocks run in groups of this share of the GPU's capacity: others start where a group ends.
GROUPS = 8
PATIENCE = 4  # times the instructions of a run with all blocks resident, and some more
LEAST_PATIENCE = 2_000


class _StuckError(Exception):
    """No block can make progress any more."""


def copied(prepared: Prepared) -> Mapping[str, Any]:
    """Return a launch's arguments with copies of the arrays, before it runs."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in prepared.arguments.items()
    }


def held_blocks(prepared: Prepared, device: Device) -> int:
    """Return the number of blocks resident on a GPU at a time."""
    return occupancy(prepared, device).blocks * device.gpu.sms


def may_be_stuck(prepared: Prepared, device: Device) -> bool:
    """Return whether blocks might wait for blocks that have not started."""
    return bool(polls(prepared.program)) and prepared.launch.blocks > held_blocks(prepared, device)


def finding(
    prepared: Prepared, device: Device, arguments: Mapping[str, Any], instructions: int
) -> Finding | None:
    """Return the finding that a launch deadlocks on a GPU, None if it completes.

    `arguments` are copies from before the first run, in which a block ran `instructions`.
    """
    held, blocks = held_blocks(prepared, device), prepared.launch.blocks

    def stop(fault: KernelFault) -> None:
        if isinstance(fault, NoProgressError):
            raise _StuckError(fault.place.line if fault.place is not None else 0)

    try:
        machine.run(
            replace(prepared, arguments=arguments),
            step_limit=PATIENCE * instructions * -(-blocks // held) + LEAST_PATIENCE,
            on_fault=stop,
            schedule=machine.Schedule(chunk=max(1, held // GROUPS), resident=held),
        )
    except _StuckError as stuck:
        (line,) = stuck.args
        message = (
            f"blocks wait in line {line} for blocks that are not resident: on "
            f"{device.gpu.name} {held:,} of the {blocks:,} blocks are resident at a time, and the "
            "others start when one ends"
        )
        return Finding("residency", message, (Place(line, "waits"),))
    return None
