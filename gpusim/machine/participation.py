"""Checks of the participating lanes of a shuffle, a vote or a warp barrier against its mask.

The faults here are undefined in CUDA (CUDA C++ Programming Guide, "Warp Vote Functions" and "Warp
Shuffle Functions"): a lane outside its own mask, lanes of a mask that do not arrive, a value read
from a lane outside the mask or a missing one. They are faults for every compute capability,
although hardware below 7.0 ignores masks. Only checks report lanes of the block that do not arrive:
GPUs continue without them, and their value is 0. A mask may name lanes beyond the block; they have
no value.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpusim.errors import FaultPlace, LaneMaskError
from gpusim.isa.lanes import LANE_BITS
from gpusim.isa.ops import OPS, Instruction
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.typing import Array

EVERY_LANE = 0xFFFFFFFF

# Their names in the source, by kind and detail of the instruction.
WORDS: Mapping[str, str] = {
    "shuffle idx": "shfl_sync",
    "shuffle up": "shfl_up_sync",
    "shuffle down": "shfl_down_sync",
    "shuffle bfly": "shfl_xor_sync",
    "vote all": "all_sync",
    "vote any": "any_sync",
    "vote ballot": "ballot_sync",
    "match any": "match_any_sync",
    "match all": "match_all_sync",
    "warpsync": "syncwarp",
}


def check(
    context: Context,
    group: Group,
    instruction: Instruction,
    mask: Array,
    on: Array,
    source: Array | None = None,
) -> None:
    """Report the faults of active lanes; `source` are their source lanes."""
    if group.is_full and mask.size == 1 and int(mask.reshape(-1)[0]) & EVERY_LANE == EVERY_LANE:
        return
    bits = np.where(on, mask.astype(np.uint32), np.uint32(0))
    _tell(
        context, group, instruction, on & ((bits & LANE_BITS) == 0), "{who} not in their own mask"
    )
    union = np.bitwise_or.reduce(bits, axis=2, keepdims=True)
    there = _exists(group) if context.on_fault is None else group.mask
    if context.on_fault is not None:
        named = ((union & LANE_BITS) != 0) & on.any(axis=2, keepdims=True)
        tell_absent(context, group, instruction, named)
    if source is not None:
        is_named = (bits >> source.astype(np.uint32)) & 1 != 0
        is_there = np.take_along_axis(*_alike(on | there, source), axis=2)
        text = "{who} read from a lane that their mask does not name or that is not there"
        _tell(context, group, instruction, on & ~(is_named & is_there), text)


def tell_absent(context: Context, group: Group, instruction: Instruction, named: Array) -> None:
    """Report the named lanes of the block that are not in the group."""
    absent = named & _exists(group) & ~group.mask
    _tell(context, group, instruction, absent, "the mask names {who}, but they do not arrive")


def _exists(group: Group) -> Array:
    """Return the lanes that the block has."""
    batch = group.batch
    return group.of_rows(batch.thread_number()) < batch.launch.threads_per_block


def _alike(lanes: Array, source: Array) -> tuple[Array, Array]:
    """Return both in the shape that they have together."""
    shape = np.broadcast_shapes(lanes.shape, source.shape)
    return np.broadcast_to(lanes, shape), np.broadcast_to(source, shape)


def _tell(
    context: Context, group: Group, instruction: Instruction, wrong: Array, text: str
) -> None:
    """Report a fault of the first warp with wrong lanes, if there is one."""
    if not wrong.any():
        return
    copy, split = (int(place[0]) for place in np.nonzero(wrong.any(axis=2)))
    placement = group.batch.placement
    warp = int(group.rows[split]) % placement.warps_per_block
    of_row = int(group.rows[split]) // placement.warps_per_block
    block = int(placement.blocks[copy if placement.folded else of_row])
    lanes = np.flatnonzero(wrong[copy, split])
    who = f"{_listed(lanes)} of warp {warp} (block {block})"
    kind = OPS[instruction.op].kind
    word = WORDS["warpsync" if kind == "warpsync" else f"{kind} {instruction.detail[0]}"]
    place = FaultPlace(instruction.line, block, 32 * warp + int(lanes[0]), lanes=len(lanes))
    message = f"line {instruction.line}: {word}: {text.format(who=who)}"
    context.fault(LaneMaskError(message, place))


def _listed(lanes: Array) -> str:
    """Return lanes as a user writes them: "lanes 0-3, 7"."""
    runs = np.split(lanes, np.flatnonzero(np.diff(lanes) > 1) + 1)
    shown = [f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ("lane " if len(lanes) == 1 else "lanes ") + ", ".join(shown)
