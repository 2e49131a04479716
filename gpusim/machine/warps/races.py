"""Race detection at each access: the last writer and reader of each element.

They are packed as by `checking/element_access.py` {time 24 bits, block 24, thread 10, flags 4}, in
cells {writer, reader}. A possible finding traps: the launch then runs again, with its steps
recorded. Bit 62 of an atomic says that a barrier of its block stands between a plain store and it:
for other blocks that store is unordered.

Bit 62 of a reader says that all such readers may meet atomics in any order: volatile loads, and
loads of a value that a compare-and-swap compares.

Time goes on with each barrier, and each time that lanes meet; it begins again where blocks begin.
"""

from __future__ import annotations

from gpusim.machine.warps.accesses import drain
from gpusim.machine.warps.state import (
    IN,
    LAUNCH,
    NOW,
    OPERAND_BYTES,
    OUT,
    Long,
    Warp,
    Word,
)
from gpusim.wasm.integers import trailing_zeros
from gpusim.wasm.memory import Record, TrapError, i64, u32

TIME_SHIFT, BLOCK_SHIFT, THREAD_SHIFT = 38, 14, 4
LAST_TIME = 0xFFFFFE
OTHERS = 0x3FFFFFFFF0  # block and thread
BLOCKS = 0x3FFFFFC000
OTHER_BLOCK, OTHER_WARP = 1 << BLOCK_SHIFT, 1 << 9  # the least difference
LANES, WARPS, BLOCKS_TOO, IS_ATOMIC = 1, 2, 4, 8  # flags: the scope of other, unordered accesses
SCOPES = LANES | WARPS | BLOCKS_TOO
AFTER_STORE = MEETS_ATOMICS = 1 << 62
ADDED_BYTES = 32


class Cell(Record):
    """The last accesses to an element."""

    writer: i64
    reader: i64


class Added(Record):
    """An addition to a sum: its instruction, block (of shared memory), address and numbers."""

    pc: u32
    block: u32
    place: i64
    before: i64
    value: i64


def begins(warp: Warp) -> None:
    """Start a warp in another block."""
    place = warp.row % NOW.block_warps
    block = NOW.first_block + warp.row // NOW.block_warps
    warp.owner = block << BLOCK_SHIFT - 9 | place
    warp.met = 0
    warp.passed = 0
    if place == 0:
        NOW.time = 1


def _report() -> None:
    """End the run where a rule might report something."""
    NOW.reports = 1
    raise TrapError


def _tick() -> int:
    now = NOW.time
    if now >= LAST_TIME:
        _report()
    NOW.time = now + 1
    return now


def opened(warp: Warp) -> None:
    """Open a block's barrier with all threads at one instruction, none exited."""
    block = warp.split(0).block
    now = _tick()
    for _ in range(NOW.block_warps):
        if warp.live != warp.lanes:
            _report()
        for number in range(warp.splits):
            if warp.split(number).block != block:
                _report()
        warp.passed = now
        warp = Warp(warp.address + LAUNCH.warp_bytes)


def meets(warp: Warp, on: u32) -> None:
    """Synchronise lanes of a warp: all of its lanes, or no order results."""
    if on == warp.lanes:
        warp.met = _tick()


def _time_of(access: int) -> int:
    return access >> TIME_SHIFT & 0xFFFFFF


def _is_ordered(earlier: i64, mine: i64, warp: Warp) -> bool:
    """Whether something orders an earlier access before one of a thread."""
    apart = (earlier ^ mine) & OTHERS
    if apart >= OTHER_BLOCK or earlier & BLOCKS_TOO:
        return False
    time = _time_of(earlier)
    if time <= warp.passed:
        return True
    if apart >= OTHER_WARP or earlier & WARPS:
        return False
    return time <= warp.met or not (apart or earlier & LANES)


def _require(earlier: i64, mine: i64, warp: Warp) -> None:
    """Trap unless something orders an earlier access before one of a thread, if there is one."""
    if earlier != 0:
        NOW.ordered += 1
        if not _is_ordered(earlier, mine, warp):
            _report()


def _count(earlier: i64, mine: i64, warp: Warp) -> None:
    """Count a pair of accesses that may be made at the same time."""
    if earlier != 0:
        is_ordered = _is_ordered(earlier & ~SCOPES, mine, warp)
        NOW.ordered += is_ordered
        NOW.free += not is_ordered


def _flags(known: i64, mine: i64, warp: Warp) -> int:
    """Return the flags of an access: the scope of unordered accesses before it."""
    apart = (known ^ mine) & OTHERS
    if apart >= OTHER_BLOCK:
        return BLOCKS_TOO
    flags = known & BLOCKS_TOO
    time = _time_of(known)
    if time <= warp.passed:
        return flags
    flags = flags | known & WARPS
    if apart >= OTHER_WARP:
        return flags | WARPS
    if time > warp.met:
        flags = flags | (apart != 0) | known & LANES
    return flags


# An access of a thread to the element of a cell, after accesses {writer, reader}.


def cell_load(cell: Cell, mine: i64, warp: Warp, writer: i64, reader: i64) -> None:
    """Load an element."""
    _require(writer, mine, warp)
    cell.reader = mine | _flags(reader, mine, warp) if reader else mine


def cell_poll(cell: Cell, mine: i64, warp: Warp, writer: i64, reader: i64) -> None:
    """Load an element that atomics may change at any time."""
    if writer & IS_ATOMIC:
        _count(writer, mine, warp)
        if writer & AFTER_STORE and (writer ^ mine) & BLOCKS:
            _report()
    else:
        _require(writer, mine, warp)
    if reader:
        cell.reader = mine | _flags(reader, mine, warp) | reader & MEETS_ATOMICS
    else:
        cell.reader = mine | MEETS_ATOMICS


def cell_store(cell: Cell, mine: i64, warp: Warp, writer: i64, reader: i64) -> None:
    """Store to an element."""
    _require(writer, mine, warp)
    _require(reader, mine, warp)
    cell.writer = mine


def cell_atomic(cell: Cell, mine: i64, warp: Warp, writer: i64, reader: i64) -> None:
    """Change an element."""
    if reader & MEETS_ATOMICS:
        _count(reader, mine, warp)
    else:
        _require(reader, mine, warp)
    atomic = mine | IS_ATOMIC
    if writer == 0:
        cell.writer = atomic
    elif not writer & IS_ATOMIC:
        _require(writer, atomic, warp)
        if _time_of(writer) > warp.passed:
            _report()
        cell.writer = atomic | AFTER_STORE
    else:
        after = writer & AFTER_STORE
        if after and (writer ^ atomic) & BLOCKS:
            _report()
        cell.writer = atomic | after | _flags(writer, atomic, warp)


def of_block(earlier: i64, mine: i64) -> i64:
    """Return an access of this block's, else 0: the shared memory of each has the same cells."""
    return 0 if (earlier ^ mine) & BLOCKS else earlier


def of_phase(earlier: i64, warp: Warp) -> i64:
    """Return an access of this block after its last barrier, else 0."""
    return 0 if _time_of(earlier) <= warp.passed else earlier


# -- sums of floating-point numbers ------------------------------------------------------------


def shares(writer: i64, mine: i64, element: i64, lowest: Long) -> None:
    """Keep the lowest element, counted from 1, with additions of several threads."""
    is_shared = (writer & IS_ATOMIC != 0) & ((writer ^ mine) & OTHERS != 0)
    if is_shared and (lowest.value == 0 or element < lowest.value):
        lowest.value = element


def swapped(on: u32, size: u32, results: u32) -> u32:
    """Return the lanes with a successful compare-and-swap of `size` bytes."""
    done = 0
    left = on
    while left:
        lane = trailing_zeros(left)
        if _number(IN + OPERAND_BYTES, lane, size, 1) == _number(OUT, lane, size, results):
            done = done | 1 << lane
        left = left & left - 1
    return done


def _number(at: int, lane: int, size: int, registers: int) -> int:
    """Return a lane's operand or result, of that many bytes, in one register or two."""
    if registers == 2:
        low, high = Word(at + 4 * lane).value, Word(at + OPERAND_BYTES + 4 * lane).value
        return high << 32 | low
    return Long(at + 8 * lane).value if size == 8 else Word(at + 4 * lane).value


def adds(
    warp: Warp, on: u32, pc: u32, is_shared: u32, size: u32, results: u32, operand: u32
) -> None:
    """Record the additions of lanes to sums of that many bytes, in order."""
    left = on
    while left:
        lane = trailing_zeros(left)
        if NOW.notes >= LAUNCH.notes_end:
            drain()
        added = Added(NOW.notes)
        added.pc = pc
        added.block = warp.owner >> BLOCK_SHIFT - 9 if is_shared else 0
        added.place = _number(IN, lane, 4 if is_shared else 8, 1)
        added.before = _number(OUT, lane, size, results)
        added.value = _number(operand, lane, size, 1)
        NOW.notes += ADDED_BYTES
        left = left & left - 1
