"""Divergence by value: lanes of a warp with different words at an instruction diverge."""

from __future__ import annotations

import numpy as np

from gpusim.isa.ops import Instruction
from gpusim.machine.group import Group, agreed
from gpusim.typing import Array


def diverge_by(group: Group, named: Array, pc: int) -> None:
    """Continue lanes at `pc`, a split for each set of lanes with an equal word."""
    batch, which = group.batch, group.which
    splits = batch.splits
    splits.pc[which] = pc
    held = splits.mask[0, which]
    first = held.argmax(axis=1)
    stays = held & (named[0] == np.take_along_axis(named[0], first[:, None], axis=1))
    left = held & ~stays
    splits.remove(which, left[None])
    while left.any():
        some = np.flatnonzero(left.any(axis=1))
        first = left[some].argmax(axis=1)
        alike = named[0][some] == np.take_along_axis(named[0][some], first[:, None], axis=1)
        going = splits.take(which[some])
        going.mask = (left[some] & alike)[None]
        splits = splits.extended(going)
        left[some] &= ~alike
    batch.splits = splits


def agreed_words(group: Group, instruction: Instruction, lanes: Array) -> Array:
    """Return the first operand of some lanes, equal in all blocks of the group.

    Shaped (1, rows, 32). Raises BlocksDisagreeError where they do not.
    """
    held = group.read(instruction.src[0], np.uint32)
    found = agreed(np.where(lanes, held, np.uint32(0)))
    return np.broadcast_to(found, (1, len(group.rows), 32))
