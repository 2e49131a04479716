"""Splits of a warp: divergence, waiting for lanes and reconvergence.

`BSSY` gives lanes a token, `BSYNC` blocks them until all live lanes with the same one arrive. Lanes
keep a token that is saved in a register while a function uses the barrier. Warp barriers, shuffles
and votes wait for the live lanes of a mask.
"""

from __future__ import annotations

from gpusim.machine.warps.state import (
    ALL_LANES,
    ASIDE,
    AT_CONVERGENCE,
    AT_MASK,
    AT_WARP,
    BARRIER_BITS,
    IN,
    MOST_ASIDE,
    NOW,
    OUT,
    READY,
    Split,
    Warp,
    Word,
)
from gpusim.wasm.integers import popcount, trailing_zeros
from gpusim.wasm.memory import TrapError, u32
from gpusim.wasm.sources import external

_BARRIER = (1 << BARRIER_BITS) - 1


@external("appended")
def appended(warp: Warp, number: u32) -> None:
    """Handle a new split, the last of its warp."""


@external("removed")
def removed(warp: Warp, number: u32, last: u32) -> None:
    """Handle a split that ends: the last one takes its place."""


@external("united")
def united(warp: Warp, one: Split, other: Split) -> None:
    """Handle a split that another one joins."""


@external("met")
def met(warp: Warp, split: Split, here: u32) -> None:
    """Handle a split that passes a warp barrier, as some lanes have met at several."""


def append(warp: Warp, block: u32, lanes: u32, path: u32) -> None:
    """Continue lanes at a basic block as a new split."""
    number = warp.splits
    appended(warp, number)
    hold(warp, number, block, lanes, READY, path)
    NOW.next_block = min(NOW.next_block, block)
    warp.splits = number + 1


def remove(warp: Warp, number: u32) -> None:
    """Remove a split; the last one takes its place."""
    last = warp.splits - 1
    removed(warp, number, last)
    warp.splits = last
    moved = warp.split(last)
    hold(warp, number, moved.block, moved.lanes, moved.state, moved.waits_for)


def hold(warp: Warp, number: u32, block: u32, lanes: u32, state: u32, waits_for: u32) -> None:
    """Set a split."""
    split = warp.split(number)
    split.block = block
    split.lanes = lanes
    split.state = state
    split.waits_for = waits_for


def part(warp: Warp, number: u32, block: u32, lanes: u32) -> None:
    """Let lanes of a split continue at a block of code, lanes with equal operands together."""
    left = lanes
    while left:
        value, mine = Word(IN + 4 * trailing_zeros(left)).value, 0
        for lane in range(32):
            if left >> lane & 1 and Word(IN + 4 * lane).value == value:
                mine = mine | 1 << lane
        if left == lanes:
            hold(warp, number, block, mine, READY, new_path())
        else:
            append(warp, block, mine, new_path())
        left = left & ~mine


def new_path() -> u32:
    """Return a path that no other split has."""
    NOW.paths -= 1 << BARRIER_BITS
    return NOW.paths


# -- convergence barriers --------------------------------------------------------------------


def give(warp: Warp, barrier: u32, lanes: u32) -> None:
    """Give lanes a new token of a barrier, in place of their current one."""
    take(warp, barrier, lanes)
    newest = 0
    for number in range(warp.tokens):
        newest = max(newest, warp.token(number).name >> BARRIER_BITS)
    _append_token(warp, newest + 1 << BARRIER_BITS | barrier, lanes)


def take(warp: Warp, barrier: u32, lanes: u32) -> None:
    """Take their token of a barrier from lanes."""
    _take(warp, barrier, _BARRIER, lanes)


def get_token(warp: Warp, barrier: u32, lanes: u32) -> None:
    """Take their token of a barrier from lanes, and give its number as a result: it is aside."""
    for lane in range(32):
        Word(OUT + 4 * lane).value = 0
    for number in range(warp.tokens):
        token = warp.token(number)
        left = token.lanes & lanes
        if left and token.name & _BARRIER == barrier:
            _hand(warp, token.name | ASIDE, left)
            while left:
                Word(OUT + 4 * trailing_zeros(left)).value = token.name >> BARRIER_BITS
                left = left & (left - 1)
    take(warp, barrier, lanes)


def set_token(warp: Warp, barrier: u32, lanes: u32) -> None:
    """Restore the tokens of a barrier by their numbers in operands; 0 for none."""
    take(warp, barrier, lanes)
    left = lanes
    while left:
        lane = left & -left
        token = Word(IN + 4 * trailing_zeros(left)).value << BARRIER_BITS
        left = left & (left - 1)
        if token:
            _take(warp, token | ASIDE, ALL_LANES, lane)
            _hand(warp, token | barrier, lane)


def _take(warp: Warp, name: int, mask: int, lanes: int) -> None:
    """Take the tokens of a name from the lanes of a mask."""
    kept = 0
    for number in range(warp.tokens):
        token = warp.token(number)
        left = token.lanes
        if token.name & mask == name:
            left = left & ~lanes
        if left:
            to = warp.token(kept)
            to.name = token.name
            to.lanes = left
            kept += 1
    warp.tokens = kept


def _hand(warp: Warp, name: int, lanes: int) -> None:
    """Give lanes a token that other lanes may have."""
    count = 0
    for number in range(warp.tokens):
        token = warp.token(number)
        if token.name == name:
            token.lanes = token.lanes | lanes
            return
        count += token.name & _BARRIER == ASIDE
    if count >= MOST_ASIDE:
        raise TrapError
    _append_token(warp, name, lanes)


def _append_token(warp: Warp, name: int, lanes: int) -> None:
    token = warp.token(warp.tokens)
    token.name = name
    token.lanes = lanes
    warp.tokens += 1


def newest_token(warp: Warp, split: Split) -> int:
    """Return the newest token of a split's lanes for its barrier, -1 for none."""
    barrier = split.waits_for & _BARRIER
    found, newest = -1, 0
    for number in range(warp.tokens):
        token = warp.token(number)
        if token.name & _BARRIER == barrier and token.lanes & split.lanes and token.name > newest:
            found = number
            newest = token.name
    return found


def holders(warp: Warp, split: Split, number: int) -> int:
    """Return the lanes with a token, or with none of a split's barrier."""
    if number >= 0:
        return warp.token(number).lanes
    barrier = split.waits_for & _BARRIER
    lanes = ALL_LANES
    for other in range(warp.tokens):
        token = warp.token(other)
        if token.name & _BARRIER == barrier:
            lanes = lanes & ~token.lanes
    return lanes


def _aside(warp: Warp, number: int) -> int:
    """Return the lanes that have a token in a register: they come to its barrier once more."""
    lanes = 0
    if number >= 0:
        name = warp.token(number).name | ASIDE
        for other in range(warp.tokens):
            token = warp.token(other)
            if token.name == name:
                lanes = token.lanes
    return lanes


def release(warp: Warp) -> None:
    """Continue splits at a BSYNC that miss no live lane with their token; equal ones join."""
    at = 0
    while at < warp.splits:
        split = warp.split(at)
        at += 1
        if split.state == AT_CONVERGENCE:
            here = 0
            for number in range(warp.splits):
                other = warp.split(number)
                if other.state == AT_CONVERGENCE and other.block == split.block:
                    here = here | other.lanes
            token = newest_token(warp, split)
            absent = holders(warp, split, token) & ~here | _aside(warp, token)
            if not absent & warp.live:
                _join(warp, split, at, token)
                split.block += 1
                split.state = READY
                split.waits_for = split.waits_for & -(1 << BARRIER_BITS)


def _join(warp: Warp, split: Split, at: int, token: int) -> None:
    """Let the splits from a number on that wait with the same token become part of one."""
    while at < warp.splits:
        other = warp.split(at)
        alike = other.state == AT_CONVERGENCE and other.block == split.block
        if alike and newest_token(warp, other) == token:
            split.lanes = split.lanes | other.lanes
            split.waits_for += other.waits_for
            united(warp, split, other)
            remove(warp, at)
        else:
            at += 1


def let_go(warp: Warp) -> bool:
    """Continue splits at a BSYNC, without their token, if others of the warp wait for lanes.

    As on a GPU, where all lanes wait: warp barriers, shuffles and votes may need those at a
    convergence barrier (independent thread scheduling). Return whether any continued.
    """
    waits = False
    for number in range(warp.splits):
        state = warp.split(number).state
        if state == READY:
            return False
        waits = waits | (state >= AT_WARP)
    return waits and go_alone(warp)


def go_alone(warp: Warp) -> bool:
    """Continue splits at a BSYNC without the lanes that they wait for; return whether any did."""
    goes, at = False, 0
    while at < warp.splits:
        split = warp.split(at)
        at += 1
        if split.state == AT_CONVERGENCE:
            _join(warp, split, at, newest_token(warp, split))
            take(warp, split.waits_for & _BARRIER, split.lanes)
            split.block += 1
            split.state = READY
            split.waits_for = new_path()
            goes = True
    return goes


# -- masks -----------------------------------------------------------------------------------


def exchanges_apart(warp: Warp) -> bool:
    """Whether lanes of a mask wait at several instructions: NumPy lets them meet."""
    for number in range(warp.splits):
        split = warp.split(number)
        for before in range(number):
            other = warp.split(before)
            alike = split.state >= AT_MASK and other.state == split.state
            if alike and split.waits_for == other.waits_for and split.block != other.block:
                return True
    return False


def with_those_present(warp: Warp) -> int:
    """Return the split of a warp that exchanges values without missing lanes, -1 for none.

    No lane of the warp can run. Those at the lowest pc go first; at a warp barrier lanes wait on.
    """
    found = -1
    for number in range(warp.splits):
        split = warp.split(number)
        if split.state == READY or split.state == AT_CONVERGENCE:
            return -1
        if split.state == AT_MASK and (found < 0 or split.block < warp.split(found).block):
            found = number
    if found >= 0:
        split = warp.split(found)
        _unite(warp, split, found + 1)
        split.state = READY
        split.waits_for = new_path()
    return found


def _unite(warp: Warp, split: Split, number: int) -> None:
    """Let the splits from a number on that wait with a split become part of it."""
    while number < warp.splits:
        other = warp.split(number)
        if waits_with(split, other):
            split.lanes = split.lanes | other.lanes
            united(warp, split, other)
            remove(warp, number)
        else:
            number += 1


def waits_with(split: Split, other: Split) -> bool:
    """Whether splits wait for the same lanes, at one instruction or at two warp barriers."""
    return (
        split.state == other.state
        and split.waits_for == other.waits_for
        and (split.state < AT_MASK or split.block == other.block)
    )


def gather(warp: Warp) -> None:
    """Continue splits that wait for the lanes of a mask, if all live ones have arrived.

    At one instruction they join and repeat it; after different warp barriers they stay separate.
    """
    at = 0
    while at < warp.splits:
        split = warp.split(at)
        at += 1
        if split.state >= AT_WARP:
            here = 0
            are_apart = False
            for number in range(warp.splits):
                other = warp.split(number)
                if waits_with(split, other):
                    are_apart = are_apart | (other.block != split.block)
                    here = here | other.lanes
            if not split.waits_for & warp.live & ~here:
                _go_on(warp, split, are_apart, here)
                at = 0


def gather_present(warp: Warp, number: u32) -> None:
    """Continue a split at an exchange and those that wait with it, without the missing lanes."""
    asked, at = warp.split(number), 0
    while not waits_with(asked, warp.split(at)):
        at += 1
    split = warp.split(at)
    _unite(warp, split, at + 1)
    split.state = READY
    split.waits_for = new_path()


def _go_on(warp: Warp, split: Split, are_apart: bool, here: int) -> None:
    """Continue a split and the splits that wait with it."""
    number = 0
    while number < warp.splits:
        other = warp.split(number)
        number += 1
        if other.address != split.address and waits_with(split, other):
            if are_apart:
                _pass_barrier(warp, other, here)
            else:
                split.lanes = split.lanes | other.lanes
                united(warp, split, other)
                number -= 1
                remove(warp, number)
    if are_apart:
        _pass_barrier(warp, split, here)
    else:
        split.state = READY
        split.waits_for = new_path()


def _pass_barrier(warp: Warp, split: Split, here: int) -> None:
    """Continue a split after a warp barrier, and count that; lanes `here` have met at several."""
    met(warp, split, here)
    count = warp.count(split.block)
    count.executions += 1
    count.lanes += popcount(split.lanes)
    split.block += 1
    split.waits_for = new_path()
    split.state = READY
