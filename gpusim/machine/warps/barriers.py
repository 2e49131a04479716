"""Barriers of a block with a result, or with a number (`bar.sync`).

A named barrier opens when as many threads have come as it is given, or all of the block where it is
given none; a warp that arrives as a whole counts for 32 threads (PTX ISA, bar).
"""

from __future__ import annotations

from gpusim.machine.warps.convergence import hold, new_path
from gpusim.machine.warps.state import (
    AT_NAMED_BARRIER,
    BARRIER_BITS,
    IN,
    LAUNCH,
    OPERAND_BYTES,
    READY,
    REDUCTION_BYTES,
    Reduction,
    Split,
    Warp,
    Word,
)
from gpusim.wasm.integers import popcount, trailing_zeros
from gpusim.wasm.memory import Record, TrapError, u32
from gpusim.wasm.sources import external

COUNT, ALL, SOME = range(3)  # the results of a barrier
NAMED_BARRIERS = 16
ARRIVAL_BYTES = 8
ARRIVALS_BYTES = ARRIVAL_BYTES * NAMED_BARRIERS
_NUMBER = (1 << BARRIER_BITS) - 1  # of `Split.waits_for`


class Arrivals(Record):
    """Threads that have arrived at a named barrier and do not wait, and those that it waits for."""

    value: u32
    wanted: u32


@external("lets_pass")
def lets_pass(warp: Warp, split: Split) -> None:
    """Handle a split that a named barrier lets pass."""


# -- results ---------------------------------------------------------------------------------


def reduce(first: Warp) -> None:
    """Give the lanes at a block's barriers the results of these."""
    block, value = -1, 0
    warp = first
    for _ in range(LAUNCH.warps):
        for number in range(warp.splits):
            split = warp.split(number)
            found = _reduction(split)
            if found.result:
                if split.block != block:
                    block = split.block
                    value = _reduced(first, block)
                _give(warp, split, found, value)
        warp = Warp(warp.address + LAUNCH.warp_bytes)


def _reduction(split: Split) -> Reduction:
    return Reduction(LAUNCH.reductions + REDUCTION_BYTES * split.block)


def _reduced(first: Warp, block: int) -> int:
    """Return the result of the barrier after a basic block."""
    yes = every = how = 0
    warp = first
    for _ in range(LAUNCH.warps):
        for number in range(warp.splits):
            split = warp.split(number)
            if split.block == block:
                found = _reduction(split)
                how = found.how
                yes += popcount(split.lanes & Word(warp.address + found.predicate).value)
                every += popcount(split.lanes)
        warp = Warp(warp.address + LAUNCH.warp_bytes)
    if how == COUNT:
        return yes
    return 1 if yes == every or (how == SOME and yes > 0) else 0


def _give(warp: Warp, split: Split, found: Reduction, value: int) -> None:
    at = warp.address + found.result
    lanes = split.lanes
    if found.is_mask:
        held = Word(at)
        held.value = held.value | lanes if value else held.value & ~lanes
        return
    while lanes:
        Word(at + 4 * trailing_zeros(lanes)).value = value
        lanes = lanes & (lanes - 1)


# -- named barriers --------------------------------------------------------------------------


def asked(lanes: u32, is_packed: u32) -> u32:
    """Return the number of a named barrier, and its threads above it, as the operands of lanes say.

    Of several it is the greatest. Packed, one register holds the number and, in its upper half, the
    threads.
    """
    number = threads = 0
    left = lanes
    while left:
        at = IN + 4 * trailing_zeros(left)
        one, other = Word(at).value, Word(at + OPERAND_BYTES).value
        if is_packed:
            other = one >> 16
            one = one & NAMED_BARRIERS - 1
        number = max(number, one)
        threads = max(threads, other)
        left = left & (left - 1)
    if number >= NAMED_BARRIERS:
        raise TrapError
    return threads << BARRIER_BITS | number


def sync(warp: Warp, number: u32, block: u32, lanes: u32, barrier: u32) -> None:
    """Block a split until enough threads arrive."""
    hold(warp, number, block, lanes, AT_NAMED_BARRIER, barrier)
    _open(_first(warp), barrier & _NUMBER)


def arrive(warp: Warp, lanes: u32, barrier: u32) -> None:
    """Count the lanes of a running split as arrived, without waiting."""
    count_arrival(warp, lanes, barrier)
    open_named(warp)


def count_arrival(warp: Warp, lanes: u32, barrier: u32) -> None:
    """Count the lanes of a running split as arrived at a named barrier that opens later."""
    arrived = _arrived(_first(warp), barrier & _NUMBER)
    arrived.value += _threads(warp, lanes)
    arrived.wanted = barrier >> BARRIER_BITS


def open_named(warp: Warp) -> None:
    """Open the named barriers of a warp's block with enough threads."""
    first = _first(warp)
    for number in range(NAMED_BARRIERS):
        _open(first, number)
        arrived = _arrived(first, number)
        if arrived.wanted and arrived.value >= arrived.wanted:  # none waits there
            arrived.value = 0
            arrived.wanted = 0


def _first(warp: Warp) -> Warp:
    """Return the first warp of a warp's block."""
    place = (warp.address - LAUNCH.warps_at) // LAUNCH.warp_bytes % LAUNCH.warps
    return Warp(warp.address - place * LAUNCH.warp_bytes)


def _arrived(first: Warp, number: int) -> Arrivals:
    return Arrivals(first.address + LAUNCH.arrivals + ARRIVAL_BYTES * number)


def _threads(warp: Warp, lanes: int) -> int:
    """Return the threads that lanes count for: 32 for all remaining lanes of a warp."""
    return 32 if warp.splits == 1 else popcount(lanes)


def _waits_at(split: Split, number: int) -> bool:
    return split.state == AT_NAMED_BARRIER and split.waits_for & _NUMBER == number


def _open(first: Warp, barrier: int) -> None:
    """Release the splits at a named barrier, if enough threads have arrived."""
    came, warps = _arrived(first, barrier).value, 0
    warp = first
    for _ in range(LAUNCH.warps):
        if warp.splits:
            warps += 1
        for number in range(warp.splits):
            split = warp.split(number)
            if _waits_at(split, barrier):
                came += _threads(warp, split.lanes)
        warp = Warp(warp.address + LAUNCH.warp_bytes)
    warp = first
    for _ in range(LAUNCH.warps):
        for number in range(warp.splits):
            split = warp.split(number)
            wanted = split.waits_for >> BARRIER_BITS
            if _waits_at(split, barrier) and came >= (wanted if wanted else 32 * warps):
                lets_pass(warp, split)
                split.block += 1
                split.state = READY
                split.waits_for = new_path()
                _arrived(first, barrier).value = 0
        warp = Warp(warp.address + LAUNCH.warp_bytes)
