"""The instructions of asynchronous copies: lanes make groups of their copies, and wait for them."""

from __future__ import annotations

import numpy as np

from gpusim.isa.ops import Instruction
from gpusim.launch.grid import WARP_SIZE
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.typing import Array


def lanes_of(group: Group) -> Array:
    """Return the numbers of a group's lanes throughout the blocks, (copies, rows, 32)."""
    placement = group.batch.placement
    lanes = group.rows[None, :, None] * WARP_SIZE + np.arange(WARP_SIZE)
    if not placement.folded:
        return np.asarray(lanes)
    block = np.arange(placement.copies)[:, None, None]
    return np.asarray(block * (placement.warps_per_block * WARP_SIZE) + lanes)


def commit(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Make a group of the copies that lanes have issued."""
    context.batch.copies.commit(_on(group, on))
    context.report(group, instruction, on)


def await_groups(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Complete the copies that lanes wait for; without a number no copy is awaited."""
    if instruction.detail is not None:
        landed = context.batch.copies.land(_on(group, on), int(instruction.detail))
        context.changes.count += landed
    context.report(group, instruction, on)


def _on(group: Group, on: Array) -> Array:
    lanes = lanes_of(group)
    return np.asarray(lanes[np.broadcast_to(on, lanes.shape)])
