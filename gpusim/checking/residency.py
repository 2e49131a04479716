"""Blocks that wait for blocks: deadlock on a GPU that cannot hold all blocks at once.

A kernel with spin loops, and more blocks than fit, is run once more with at most as many blocks at
a time as the GPU holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.checking.findings import Finding, Place
from gpusim.gpu.device import Device
from gpusim.gpu.occupancy import occupancy
from gpusim.launch.prepared import Prepared
from gpusim.machine.compiled.by_clock import run_by_clock
from gpusim.machine.compiled.instance import LeftError
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.no_progress import livelock
from gpusim.machine.pace import even_pace
from gpusim.program.polling import polls

# Backward branches of a warp: times the instructions of a run with all blocks resident, and more.
PATIENCE = 4
LEAST_PATIENCE = 2_000


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
    program = prepared.program
    with suppress(LeftError, NotDerivedError):  # a fault is a finding of its own
        ended = run_by_clock(
            replace(prepared, arguments=arguments),
            even_pace(program, blocks),
            held,
            PATIENCE * instructions * -(-blocks // held) + LEAST_PATIENCE,
            lambda *_: blocks,
        )
        if ended.standing is not None:
            place = livelock(program, *ended.standing).place
            line = 0 if place is None else place.line
            message = (
                f"blocks wait in line {line} for blocks that are not resident: on "
                f"{device.gpu.name} {held:,} of the {blocks:,} blocks are resident at a time, and "
                "the others start when one ends"
            )
            return Finding("residency", message, (Place(line, "waits"),))
    return None
