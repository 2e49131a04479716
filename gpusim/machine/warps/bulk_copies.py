"""Bulk copies between global and shared memory, pending until a thread waits for them.

A copy to shared memory completes when a thread tests the phase of its barrier after all arrivals,
one to global memory when its warp waits for its group: both as late as possible. An engine moves 16
bytes at a time (PTX ISA, cp.async.bulk).
"""

from __future__ import annotations

from gpusim.gpu.memory import LINE_BYTES, SECTOR_BITS
from gpusim.isa.ops import RANK_SHIFT
from gpusim.machine.warps.accesses import Array, reached
from gpusim.machine.warps.barrier_words import completed
from gpusim.machine.warps.clusters import member
from gpusim.machine.warps.state import (
    IN,
    LAUNCH,
    NOW,
    OPERAND_BYTES,
    SHARED_LIMIT,
    Long,
    Warp,
    Word,
)
from gpusim.wasm.integers import trailing_zeros
from gpusim.wasm.memory import Record, TrapError, copy, i32, i64, u32

MOST_BULK = 512  # pending copies of a batch
UNIT = 16  # bytes
_RANK, _LINE, _SECTOR = RANK_SHIFT, LINE_BYTES, SECTOR_BITS
WIDE = 8  # of a barrier


class Bulk(Record):
    """A copy of a warp, of `units` between a place in shared memory and a global address.

    One to shared memory has a barrier, one to global memory the number of its group above 0.
    """

    warp: u32
    barrier: u32
    place: u32
    units: u32
    at: i64
    group: u32
    is_there: u32


class Groups(Record):
    """The number of a warp's groups of bulk copies, from 1 on."""

    made: u32


BULK_BYTES, GROUPS_BYTES = 32, 16


def _bulk(number: int) -> Bulk:
    return Bulk(LAUNCH.bulk + BULK_BYTES * number)


def _groups(warp: Warp) -> Groups:
    return Groups(warp.address + LAUNCH.groups_at)


def _operand(on: u32, number: int) -> int:
    """Return an operand of the first lane that is on."""
    return Word(IN + OPERAND_BYTES * number + 4 * trailing_zeros(on)).value


def _place(warp: Warp, address: int, bytes_there: int) -> int:
    """Return where an address of the block's shared memory is, less the begin of its window."""
    if address & 7 or address < 0 or address + bytes_there > Word(SHARED_LIMIT).value:
        raise TrapError
    return warp.shared + address


def _own(warp: Warp, address: int) -> int:
    """Return an address of a block's own shared memory without the rank of the block."""
    if LAUNCH.cluster_at:
        if address >> _RANK != member(warp).rank:
            raise TrapError
        return address & (1 << _RANK) - 1
    return address


def _new() -> Bulk:
    for number in range(NOW.bulk):
        if _bulk(number).is_there == 0:
            return _bulk(number)
    if NOW.bulk >= MOST_BULK:
        raise TrapError
    NOW.bulk += 1
    return _bulk(NOW.bulk - 1)


def begin_bulk(warp: Warp, on: u32, is_store: u32) -> u32:
    """Begin a copy and return its sectors (`gpu.memory.bulk_sectors`).

    Operands are the place in shared memory, its barrier, address and units.
    """
    new = _new()
    new.warp = warp.address
    new.units = _operand(on, 4) & 0xFFFF
    new.place = _place(warp, _own(warp, _operand(on, 0)), UNIT * new.units)
    new.at = _operand(on, 3) << 32 | _operand(on, 2)
    if new.place & UNIT - 1 or new.at & UNIT - 1:
        raise TrapError
    new.barrier = new.group = 0
    new.is_there = 1
    if is_store:
        new.group = _groups(warp).made + 1
    else:
        new.barrier = _place(warp, _own(warp, _operand(on, 1)), WIDE)
    return _sectors(new.at, new.place - warp.shared, UNIT * new.units)


def _sectors(begin: int, place: int, size: int) -> u32:
    found, end = 0, begin + size
    while begin < end:
        left = _LINE - (place & _LINE - 1)
        if left > end - begin:
            left = end - begin
        found += (begin + left - 1 >> _SECTOR) - (begin >> _SECTOR) + 1
        place += left
        begin += left
    return found


def commit_bulk(warp: Warp) -> None:
    """Make a group of the copies of a warp since its last group."""
    _groups(warp).made += 1


def land_bulk(warp: Warp, on: u32) -> None:
    """Complete the copies of tested phases that wait for nothing else."""
    left = on
    while left:
        lane = 4 * trailing_zeros(left)
        barrier = _place(warp, Word(IN + lane).value, WIDE)
        phase = Word(IN + OPERAND_BYTES + lane).value >> 31
        is_tested = Long(barrier).value >> 63 & 1 == phase & 1
        left = left & (left - 1)
        for number in range(NOW.bulk):
            one = _bulk(number)
            is_of_it = one.is_there != 0 and one.barrier == barrier
            if is_of_it and is_tested and Long(barrier).value & 1:
                _move(one)
                word = Long(barrier)
                word.value = completed(word.value, UNIT * one.units)


def land_groups(warp: Warp, allowed: i32) -> None:
    """Complete the copies of a warp to global memory, except its last `allowed` groups."""
    last = _groups(warp).made - allowed
    for number in range(NOW.bulk):
        one = _bulk(number)
        if one.is_there and one.group and one.warp == warp.address and one.group <= last:
            _move(one)


def _move(one: Bulk) -> None:
    """Make a copy, unit by unit, and forget it."""
    array, at, place = Array(0), one.at, one.place
    for _ in range(one.units):
        array = reached(array, at, UNIT, one.group)
        there = at - LAUNCH.shift
        if one.group:
            copy(there, place, UNIT)
        else:
            copy(place, there, UNIT)
        at += UNIT
        place += UNIT
    one.is_there = 0
    NOW.idle = 0


def forget_bulk(warp: Warp) -> None:
    """Drop the copies of a warp that begins in another block."""
    _groups(warp).made = 0
    for number in range(NOW.bulk):
        if _bulk(number).warp == warp.address:
            _bulk(number).is_there = 0
