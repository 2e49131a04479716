"""Convergence barriers: diverged lanes of a warp become one split again.

BSSY gives its lanes a token, BREAK removes it, and BSYNC blocks a split until all live lanes of its
warp with the token arrive. Lanes keep a token that is saved in a register while a function uses the
barrier: they reach the BSYNC after they return.
"""

from __future__ import annotations

import numpy as np

from gpusim.isa.ops import OPS, Instruction
from gpusim.machine import participation
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.machine.state import AT_CONVERGENCE, AT_WARP, READY, Batch, lanes_of_bits
from gpusim.program.loops import yielding
from gpusim.typing import Array

NO_TOKEN = np.zeros((1, 1, 1), dtype=np.int64)


def bssy(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Give the lanes that are on a new token."""
    new = context.batch.new_tokens(len(group.which)).reshape(1, -1, 1)
    _give(group, int(instruction.detail), new, on)
    context.report(group, instruction, on)


def give_back(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Take the token from the lanes that are on."""
    _give(group, int(instruction.detail), NO_TOKEN, on)
    context.report(group, instruction, on)
    context.batch.splits.pc[group.which] = group.pc + 1
    release(context, group.rows)
    return True


def get_token(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Put the lanes' token into a register, and take it from them."""
    number = int(instruction.detail)
    tokens = group.of_rows(group.batch.tokens[number])
    group.write(instruction.dst[0], tokens.astype(np.uint32), on)
    _set_aside(group, tokens, on)
    _give(group, number, NO_TOKEN, on)
    context.report(group, instruction, on)


def set_token(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Restore the lanes' token from a register."""
    token = group.read(instruction.src[0], np.uint32).astype(np.int64)
    _take_back(group, token, on)
    _give(group, int(instruction.detail), token, on)
    context.report(group, instruction, on)


def bsync(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Block a diverged warp's splits until all lanes with their token arrive."""
    context.report(group, instruction, on)
    if not context.batch.is_diverged():
        return False
    group.hold(AT_CONVERGENCE)
    release(context, group.rows)
    return True


def _give(group: Group, number: int, token: Array, on: Array) -> None:
    tokens = group.batch.tokens
    # A value common to all lanes of all warps is kept once for each warp.
    everyone = group.is_all and group.is_full and on is group.mask
    tokens[number] = token if everyone else group.updated(tokens[number], token, on)


def _set_aside(group: Group, tokens: Array, on: Array) -> None:
    """Note the tokens of lanes on the first level that is free for each."""
    levels = group.batch.set_aside
    left = on & (tokens != 0)
    for number, level in enumerate(levels):
        free = left & (group.of_rows(level) == 0)
        levels[number] = group.updated(level, tokens, free)
        left = left & ~free
    if left.any():
        levels.append(group.updated(NO_TOKEN, tokens, left))


def _take_back(group: Group, token: Array, on: Array) -> None:
    """Forget the tokens of lanes that have them again."""
    levels = group.batch.set_aside
    for number, level in enumerate(levels):
        back = on & (group.of_rows(level) == token)
        if back.any():
            levels[number] = group.updated(level, NO_TOKEN, back)
    while levels and not levels[-1].any():
        levels.pop()


def release(context: Context, rows: Array) -> None:
    """Join the splits of some rows that wait at a BSYNC and miss no live lane with their token."""
    batch, splits = context.batch, context.batch.splits
    of_rows = np.zeros(batch.rows, dtype=bool)
    of_rows[rows] = True
    waiting = np.flatnonzero((splits.state == AT_CONVERGENCE) & of_rows[splits.row])
    if not len(waiting):
        return
    mine, complete = _tokens(context, waiting)
    _go_on(batch, waiting[complete], mine[complete])


def _go_on(batch: Batch, going: Array, tokens: Array) -> None:
    """Continue splits after their BSYNC; splits of a warp with equal tokens reconverge."""
    splits = batch.splits
    splits.pc[going] += 1
    batch.splits = splits.joined(going, tokens, splits.pc[going], splits.row[going])


def _tokens(context: Context, waiting: Array) -> tuple[Array, Array]:
    """Return the tokens of splits at a BSYNC, and whether no live lane with them is elsewhere."""
    batch, pc = context.batch, context.batch.splits.pc[waiting]
    mine = np.zeros(len(waiting), dtype=np.int64)
    complete = np.zeros(len(waiting), dtype=bool)
    live = batch.splits.lane_bits(batch.rows)
    for place in set(pc.tolist()):
        at = np.flatnonzero(pc == place)
        tokens = batch.tokens[int(context.instructions[place].detail)]
        mine[at], complete[at] = _waited_for(batch, tokens, waiting[at], live)
    return mine, complete


def _waited_for(batch: Batch, tokens: Array, here: Array, live: Array) -> tuple[Array, Array]:
    """Return the tokens of splits, and whether no live lane with the same one is elsewhere."""
    splits = batch.splits
    rows = splits.row[here]
    tokens = tokens.take(rows, axis=1) if tokens.shape[1] > 1 else tokens
    held = tokens if tokens.shape[2] == 1 else tokens * splits.mask.take(here, axis=1)
    mine = np.broadcast_to(held.max(axis=(0, 2)), here.shape)
    absent = (live & ~splits.lane_bits(batch.rows, here))[:, rows]
    complete = np.asarray(~absent.any(axis=0))
    left = np.flatnonzero(~complete)
    if len(left):  # lanes of their warps may have other tokens, or none
        same = (tokens[:, left] if tokens.shape[1] > 1 else tokens) == mine[left][:, None]
        complete[left] = ~(lanes_of_bits(absent[:, left]) & same).any(axis=(0, 2))
    for level in batch.set_aside:  # also lanes that wait here, in a call of the function by itself
        kept = (level.take(rows, axis=1) if level.shape[1] > 1 else level) == mine[:, None]
        complete &= ~(lanes_of_bits(live[:, rows]) & kept).any(axis=(0, 2))
    return mine, complete


def let_go(context: Context) -> bool:
    """Release splits at a BSYNC that lanes of their warp wait for; return whether any did.

    YIELD in a spin loop, warp barriers, shuffles and votes may need lanes of the same warp that
    wait at a convergence barrier (independent thread scheduling; on an H200, these continue
    together).
    """
    batch, splits = context.batch, context.batch.splits
    waiting = np.flatnonzero(splits.state == AT_CONVERGENCE)
    going = waiting[np.isin(splits.row[waiting], _rows_that_wait_for_lanes(batch))]
    if context.on_fault is not None and len(going):
        _tell_of_barriers(context, splits.row[going])
    tokens, _ = _tokens(context, going)
    for one in going.tolist():
        number = int(context.instructions[int(splits.pc[one])].detail)
        group = Group(batch, np.array([one]))
        _give(group, number, NO_TOKEN, group.mask)
    _go_on(batch, going, tokens)
    return len(going) > 0


def _rows_that_wait_for_lanes(batch: Batch) -> Array:
    """Return the rows with lanes in a loop that yields, or at a mask while no lane runs."""
    splits = batch.splits
    runs = splits.state == READY
    spinning = splits.row[yielding(batch.program)[splits.pc] & runs]
    gathering = np.setdiff1d(splits.row[splits.state == AT_WARP], splits.row[runs])
    return np.concatenate([spinning, gathering])


def _tell_of_barriers(context: Context, rows: Array) -> None:
    """Report warp barriers of whole warps, in some rows, that release without all lanes.

    A warp barrier that the compiler adds before a block barrier is left to the barrier rules.
    """
    splits = context.batch.splits
    barriers = {one.line for one in context.instructions if OPS[one.op].kind == "barrier"}
    for one in np.flatnonzero((splits.state == AT_WARP) & np.isin(splits.row, rows)).tolist():
        instruction = context.instructions[int(splits.pc[one])]
        if instruction.detail == "all" and instruction.line not in barriers:
            group = Group(context.batch, np.array([one]))
            participation.tell_absent(context, group, instruction, np.ones_like(group.mask))
