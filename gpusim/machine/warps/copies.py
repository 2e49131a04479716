"""Asynchronous copies to shared memory: a queue of each warp.

As in NumPy (`machine/pending_copies.py`), values are stored once the lanes that issued their copy
have waited for its group. A copy is an entry of a pool; a launch with more copies on their way than
the pool has entries traps: it is NumPy's.
"""

from __future__ import annotations

from gpusim.machine.warps.state import IN, LAUNCH, NOW, OPERAND_BYTES, Warp, Word
from gpusim.machine.warps.vectors import below
from gpusim.wasm.integers import trailing_zeros
from gpusim.wasm.memory import Record, TrapError, copy, i32, u32

ENTRIES, ENTRIES_EACH = 4096, 32  # of the pool, at least in all and of a warp
MOST_WORDS = 4
_ROW = 128  # bytes of a word for each lane
_GROUPS, _TO, _VALUES = 16, 16 + _ROW, 16 + 2 * _ROW
ENTRY_BYTES = _VALUES + MOST_WORDS * _ROW
QUEUE_BYTES = 16 + _ROW


class Copy(Record):
    """A copy of some words a lane: the next one of its warp, and the lanes that wait for it.

    After these fields lie the group of each lane, its place after an address, and its words.
    """

    next: u32
    lanes: u32
    words: u32
    begin: u32


class Queue(Record):
    """The first and the last copy of a warp; after them the number of groups of each lane."""

    first: u32
    last: u32


def _queue(warp: Warp) -> Queue:
    return Queue(warp.address + LAUNCH.queue_at)


def commit_copies(warp: Warp, on: u32) -> None:
    """Make a group of the copies of lanes since their last group."""
    queue, left = _queue(warp), on
    while left:
        groups = Word(queue.address + _GROUPS + 4 * trailing_zeros(left))
        groups.value += 1
        left = left & (left - 1)


def begin_copy(warp: Warp, on: u32, at: u32, words: u32) -> None:
    """Begin a copy of some words a lane: operands are its places, after an address, and values."""
    queue, new = _queue(warp), _new()
    new.next = 0
    new.lanes = on
    new.words = words
    new.begin = at
    copy(new.address + _GROUPS, queue.address + _GROUPS, _ROW)
    copy(new.address + _TO, IN, _ROW)
    for word in range(words):
        copy(new.address + _VALUES + _ROW * word, IN + OPERAND_BYTES * (word + 1), _ROW)
    if queue.first:
        Copy(queue.last).next = new.address
    else:
        queue.first = new.address
    queue.last = new.address


def _new() -> Copy:
    """Return an entry of the pool that is not used."""
    free = Copy(NOW.free_copies)
    if free.address:
        NOW.free_copies = free.next
        return free
    if NOW.copies >= LAUNCH.copies_end:
        raise TrapError
    NOW.copies += ENTRY_BYTES
    return Copy(NOW.copies - ENTRY_BYTES)


def _free(one: Copy) -> None:
    one.next = NOW.free_copies
    NOW.free_copies = one.address


def forget_copies(warp: Warp) -> None:
    """Drop the copies of a warp that has ended."""
    queue = _queue(warp)
    at = queue.first
    while at:
        one = Copy(at)
        at = one.next
        _free(one)
    queue.first = 0


def land_copies(warp: Warp, on: u32, allowed: i32) -> None:
    """Set the values of copies of lanes, except in their last `allowed` groups."""
    queue, before = _queue(warp), 0
    at = queue.first
    while at:
        one = Copy(at)
        following = one.next
        _land(queue, one, on, allowed)
        if one.lanes:
            before = at
        else:
            if before:
                Copy(before).next = following
            else:
                queue.first = following
            if not following:
                queue.last = before
            _free(one)
        at = following


def _land(queue: Queue, one: Copy, on: u32, allowed: i32) -> None:
    """Set a copy's values for the lanes with a completed group."""
    left = one.lanes & on & below(one.address + _GROUPS, queue.address + _GROUPS, allowed)
    one.lanes = one.lanes & ~left
    while left:
        lane = trailing_zeros(left)
        to = one.begin + Word(one.address + _TO + 4 * lane).value
        for word in range(one.words):
            value = Word(one.address + _VALUES + _ROW * word + 4 * lane).value
            Word(to + 4 * word).value = value
        left = left & (left - 1)
