"""Races, looked for where accesses are: the last writer and reader of each element.

They are packed as by `checking/element_access.py` {time 24 bits, block 24, thread 10, flags 4}, in
cells {writer, reader}. What a rule might report traps: the launch is then examined step by step.
Bit 62 of an atomic says that a barrier of its block stands between a plain store and it: for other
blocks that store is in no order.

Time goes on with each barrier, and each time that lanes meet; it begins anew in each block.
"""

from __future__ import annotations

from gpusim.machine.warps.state import LAUNCH, NOW, Warp
from gpusim.wasm.memory import Record, TrapError, i64, u32

TIME_SHIFT, BLOCK_SHIFT, THREAD_SHIFT = 38, 14, 4
LAST_TIME = 0xFFFFFE
OTHERS = 0x3FFFFFFFF0  # block and thread
BLOCKS = 0x3FFFFFC000
OTHER_BLOCK, OTHER_WARP = 1 << BLOCK_SHIFT, 1 << 9  # the least difference
LANES, WARPS, BLOCKS_TOO, IS_ATOMIC = 1, 2, 4, 8  # flags: who else did so, in no order
AFTER_STORE = 1 << 62


class Cell(Record):
    """The last accesses to an element."""

    writer: i64
    reader: i64


def begins(warp: Warp) -> None:
    """Let a warp begin in another block."""
    place = warp.row % NOW.block_warps
    block = NOW.first_block + warp.row // NOW.block_warps
    warp.owner = block << BLOCK_SHIFT | place << 9
    warp.met = 0
    if place == 0:
        NOW.time = 1
        NOW.passed = 0


def _tick() -> int:
    now = NOW.time
    if now >= LAST_TIME:
        raise TrapError
    NOW.time = now + 1
    return now


def opened(warp: Warp) -> None:
    """Open a block's barrier, whose threads all stand at one instruction: none has exited."""
    block = warp.split(0).block
    for _ in range(NOW.block_warps):
        if warp.live != warp.lanes:
            raise TrapError
        for number in range(warp.splits):
            if warp.split(number).block != block:
                raise TrapError
        warp = Warp(warp.address + LAUNCH.warp_bytes)
    NOW.passed = _tick()


def meets(warp: Warp, on: u32) -> None:
    """Let lanes of a warp meet: all of its lanes, or nothing is learnt."""
    if on == warp.lanes:
        warp.met = _tick()


def _time_of(access: int) -> int:
    return access >> TIME_SHIFT & 0xFFFFFF


def _require(earlier: i64, mine: i64, met: u32) -> None:
    """Trap unless something orders an earlier access before one of a thread, if there is one."""
    if earlier == 0:
        return
    NOW.ordered += 1
    apart = (earlier ^ mine) & OTHERS
    if apart >= OTHER_BLOCK or earlier & BLOCKS_TOO:
        raise TrapError
    time = _time_of(earlier)
    if time > NOW.passed:
        if apart >= OTHER_WARP or earlier & WARPS:
            raise TrapError
        if time > met and (apart or earlier & LANES):
            raise TrapError


def _flags(known: i64, mine: i64, met: u32) -> int:
    """Return the flags of an access: the scope of unordered accesses before it."""
    apart = (known ^ mine) & OTHERS
    if apart >= OTHER_BLOCK:
        return BLOCKS_TOO
    flags = known & BLOCKS_TOO
    time = _time_of(known)
    if time <= NOW.passed:
        return flags
    flags = flags | known & WARPS
    if apart >= OTHER_WARP:
        return flags | WARPS
    if time > met:
        flags = flags | (apart != 0) | known & LANES
    return flags


# An access of a thread to the element of a cell, after accesses {writer, reader}.


def cell_load(cell: Cell, mine: i64, met: u32, writer: i64, reader: i64) -> None:
    """Load an element."""
    _require(writer, mine, met)
    cell.reader = mine | _flags(reader, mine, met) if reader else mine


def cell_store(cell: Cell, mine: i64, met: u32, writer: i64, reader: i64) -> None:
    """Store to an element."""
    _require(writer, mine, met)
    _require(reader, mine, met)
    cell.writer = mine


def cell_atomic(cell: Cell, mine: i64, met: u32, writer: i64, reader: i64) -> None:
    """Change an element."""
    _require(reader, mine, met)
    atomic = mine | IS_ATOMIC
    if writer == 0:
        cell.writer = atomic
    elif not writer & IS_ATOMIC:
        _require(writer, atomic, met)
        if _time_of(writer) > NOW.passed:
            raise TrapError
        cell.writer = atomic | AFTER_STORE
    else:
        after = writer & AFTER_STORE
        if after and (writer ^ atomic) & BLOCKS:
            raise TrapError
        cell.writer = atomic | after | _flags(writer, atomic, met)


def cell_sum(cell: Cell, mine: i64, met: u32, writer: i64, reader: i64) -> None:
    """Add numbers of floating point: of several threads, their order is not certain."""
    if writer >> 3 & 1 and (writer ^ mine) & OTHERS:
        raise TrapError
    cell_atomic(cell, mine, met, writer, reader)


def of_block(earlier: i64, mine: i64) -> i64:
    """Return an access of this block's, else 0: the shared memory of each has the same cells."""
    return 0 if (earlier ^ mine) & BLOCKS else earlier
