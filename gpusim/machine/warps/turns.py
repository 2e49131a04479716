"""NumPy's scheduling order (`interpreter.py`), where results depend on it.

The splits at one basic block are the group of a turn, and run together instruction by instruction
where their order matters. A check may request another order (`machine/turns.py`).
"""

from __future__ import annotations

from gpusim.machine.cas_loops import MOST_TOGETHER
from gpusim.machine.interpreter import FAIR_TURNS
from gpusim.machine.livelock import SHORT
from gpusim.machine.turns import FAIR_TURNS as OTHER_FAIR_TURNS
from gpusim.machine.turns import Order
from gpusim.machine.warps.barriers import open_named, reduce
from gpusim.machine.warps.clusters import lets_pass, open_cluster, opened
from gpusim.machine.warps.convergence import exchanges_apart, gather_present, go_alone
from gpusim.machine.warps.scheduling import (
    ENDED,
    STANDS_STILL,
    begin,
    begins,
    prepare,
    progress,
    run_warp,
)
from gpusim.machine.warps.state import (
    ALL_LANES,
    AT_BARRIER,
    AT_CONVERGENCE,
    AT_MASK,
    AT_WARP,
    ENTRY_BYTES,
    LAUNCH,
    MOST_SPLITS,
    NOW,
    READY,
    SPLIT_BYTES,
    Byte,
    Entry,
    Long,
    Split,
    Warp,
)
from gpusim.wasm.integers import as_i64, trailing_zeros
from gpusim.wasm.memory import Record, TrapError, fill, u32
from gpusim.wasm.sources import external

KEY_BYTES, LISTED_BYTES = 8, 8
KEYS_BYTES = MOST_SPLITS * KEY_BYTES  # of the splits of a warp
# Flags of a block of code.
PURE, SWAPPING, WAITING, SWAP, YIELDING, OF_WHOLE_WARPS = 1, 2, 4, 8, 16, 32
MOST_IDLE = 1 << 22  # warps that run one after the other while none writes memory
_TOGETHER, _FAIR_TURNS, _OTHER_FAIR_TURNS = MOST_TOGETHER, FAIR_TURNS, OTHER_FAIR_TURNS
_FIRST, _RANDOM = int(Order.FIRST), int(Order.RANDOM)
_NONE, _FAR = -1, 0x7FFFFFFF
_MORE_STEPS = SHORT  # before the next sample of progress, after lanes go on without others


class Key(Record):
    """A split's position among all, and in the upper half the turn in which it ran last."""

    position: u32
    turn: u32


class Listed(Record):
    """A split of the group: its warp, and its position."""

    warp: Warp
    position: u32


def _key(warp: Warp, number: int) -> Key:
    return Key(warp.address + LAUNCH.keys_at + KEY_BYTES * number)


def _least_key(block: int) -> Long:
    """Return the least key of the splits that are ready at a block of code, -1 for none."""
    return Long(NOW.keys + KEY_BYTES * block)


def _rows(block: int) -> int:
    """Return where a block of code has a bit for each row with a split that is ready there."""
    return NOW.row_bits + block * NOW.row_bytes


def _flags(block: int) -> int:
    return Byte(LAUNCH.flags_at + block).value


def _warp_of(row: int) -> Warp:
    return Warp(LAUNCH.warps_at + row * LAUNCH.warp_bytes)


def _is_at(split: Split, block: int) -> bool:
    return (split.state == READY) & (split.block == block)


# -- splits that come, go and join -----------------------------------------------------------


def appended(warp: Warp, number: u32) -> None:
    """Give a new split the last position."""
    key = _key(warp, number)
    key.position = NOW.positions
    key.turn = NOW.turn
    NOW.positions += 1
    NOW.held += 1
    NOW.apart += number == 1


def removed(warp: Warp, number: u32, last: u32) -> None:
    """Give the last split's key to the place of a split that ends."""
    key, moved = _key(warp, number), _key(warp, last)
    key.position = moved.position
    key.turn = moved.turn
    NOW.held -= 1
    NOW.apart -= last == 1


def united(warp: Warp, one: Split, other: Split) -> None:
    """Give a split that takes in another the place of the first of both."""
    first = _key(warp, (one.address - warp.address) // SPLIT_BYTES - 4)
    second = _key(warp, (other.address - warp.address) // SPLIT_BYTES - 4)
    if second.position < first.position:
        first.position = second.position
        first.turn = second.turn


# -- the splits at a block of code -----------------------------------------------------------


def _enter(warp: Warp, number: int, block: int) -> None:
    """Enter a split that is ready at a block of code."""
    rows = Byte(_rows(block) + (warp.row >> 3))
    rows.value = rows.value | 1 << (warp.row & 7)
    least, key = _least_key(block), Long(_key(warp, number).address).value
    if least.value == _NONE or key < least.value:
        least.value = key


def _enter_all(warp: Warp) -> None:
    for number in range(warp.splits):
        split = warp.split(number)
        if split.state == READY:
            _enter(warp, number, split.block)


def _first_at(warp: Warp, block: int, least: int, by_lane: bool) -> int:
    """Return the first split of a warp at a basic block, -1 if there is none.

    It is the first by position, of those from `least` on, or the first by its lowest lane.
    """
    found, lowest = -1, ALL_LANES
    for number in range(warp.splits):
        split = warp.split(number)
        position = _key(warp, number).position
        if _is_at(split, block) and position >= least:
            place = trailing_zeros(split.lanes) if by_lane else position
            if place < lowest:
                lowest = place
                found = number
    return found


def _enlist(warp: Warp, number: int) -> None:
    key, listed = _key(warp, number), Listed(NOW.list_end)
    key.turn = NOW.turn
    listed.warp = warp
    listed.position = key.position
    NOW.list_end += LISTED_BYTES


def _enlist_warp(warp: Warp, block: int, only_one: bool) -> None:
    """Put the splits of a warp at a block of code on the list: one, or all."""
    number = _first_at(warp, block, 0, only_one)
    if only_one and number >= 0:
        _enlist(warp, number)
        for other in range(warp.splits):
            if other != number and _is_at(warp.split(other), block):
                _enter(warp, other, block)
        return
    while number >= 0:
        _enlist(warp, number)
        number = _first_at(warp, block, _key(warp, number).position + 1, False)


def _row_of(block: int, key: int) -> int:
    """Return the row of the split with a key that is ready at a block of code."""
    for row in range(LAUNCH.warps * LAUNCH.blocks):
        warp = _warp_of(row)
        for number in range(warp.splits):
            if _is_at(warp.split(number), block) and Long(_key(warp, number).address).value == key:
                return row
    raise TrapError


def _collect(block: int, only_one: bool) -> None:
    """Make the list of the splits at a block of code that take a turn, row by row.

    With `only_one`, of each warp one does; others stay there.
    """
    NOW.turn += 1
    NOW.list_end = NOW.list
    _least_key(block).value = _NONE
    for word in range(NOW.row_bytes >> 3):
        bits = Long(_rows(block) + 8 * word)
        left = bits.value
        bits.value = 0
        while left:
            _enlist_warp(_warp_of(64 * word + trailing_zeros(left)), block, only_one)
            left = as_i64(left & left - 1)


# -- the choice of a group -------------------------------------------------------------------


def _half_of(row: int) -> int:
    """Return the half of its block that goes through loops that swap with a row: 1 or 2."""
    place = row % LAUNCH.warps
    return 2 if LAUNCH.warps > _TOGETHER and place >= LAUNCH.warps >> 1 else 1


def _follow(block: int, begun: int) -> bool:
    """Choose the splits of the round at a block of code that ran no later than a turn.

    False if there are none.
    """
    is_listed = False
    turn = NOW.turn + 1
    NOW.list_end = NOW.list
    for row in range(LAUNCH.warps * LAUNCH.blocks):
        if Byte(_rows(block) + (row >> 3)).value >> (row & 7) & 1 and _half_of(row) == NOW.half:
            warp = _warp_of(row)
            number = _first_at(warp, block, 0, False)
            while number >= 0:
                key = _key(warp, number)
                position = key.position
                if key.turn <= begun:
                    NOW.turn = turn
                    _enlist(warp, number)
                    is_listed = True
                number = _first_at(warp, block, position + 1, False)
    if is_listed:
        _leave_others(block)
    return is_listed


def _leave_others(block: int) -> None:
    """Let the splits at a block of code that are not on the list stay there."""
    _least_key(block).value = _NONE
    for row in range(LAUNCH.warps * LAUNCH.blocks):
        held = Byte(_rows(block) + (row >> 3))
        if held.value >> (row & 7) & 1:
            held.value = held.value & ~(1 << (row & 7))
            warp = _warp_of(row)
            for number in range(warp.splits):
                if _is_at(warp.split(number), block) and _key(warp, number).turn != NOW.turn:
                    _enter(warp, number, block)


def _choose_in_round() -> bool:
    """Choose the group that comes next in a round of loops that swap: all load, then they swap.

    False at its end.
    """
    if NOW.half == 0:
        return False
    for block in range(LAUNCH.code_blocks):
        if _flags(block) & SWAPPING and _follow(block, NOW.begun):
            return True
    for block in range(LAUNCH.code_blocks):
        if _flags(block) & SWAP and _follow(block, NOW.turn):
            return True
    NOW.half = 0
    return False


def _choose_waiting() -> bool:
    """Choose the group of the split that has waited longest, as warps wait for others.

    Loops that touch no memory go first, but for a round of loops that swap. False if no split is
    ready.
    """
    if _choose_in_round():
        return True
    found, least, is_pure = -1, 0, 0
    for block in range(LAUNCH.code_blocks):
        key = _least_key(block).value
        if key != _NONE:
            pure = _flags(block) & PURE
            if found < 0 or pure > is_pure or (pure == is_pure and key < least):
                found, least, is_pure = block, key, pure
    if found < 0:
        return False
    if _flags(found) & SWAPPING:
        NOW.half = _half_of(_row_of(found, least))
        NOW.begun = NOW.turn
        return _choose_in_round()
    _collect(found, False)
    return True


def _choose_behind() -> bool:
    """Choose the group of the splits that are furthest behind, of each warp one.

    In some turns it is that of a warp that has waited longest. False if no split is ready.
    """
    found = _longest_waiting() if NOW.turn % _FAIR_TURNS == 0 else -1
    if found < 0:
        for block in range(LAUNCH.code_blocks):
            if found < 0 and _least_key(block).value != _NONE:
                found = block
        if found < 0:
            return False
    _collect(found, True)
    return True


@external("draw")
def draw(count: u32, arranges: u32) -> u32:  # noqa: ARG001
    """Put the splits on the list in random order, or return the index of a random one."""
    return 0


def _choose_otherwise() -> bool:
    """Choose the group of the split that another order than the usual one names.

    False if no split is ready.
    """
    count = _list_ready()
    if count == 0:
        return False
    NOW.taken += 1
    if NOW.taken % _OTHER_FAIR_TURNS == 0:
        block = _block_of_oldest()
    elif LAUNCH.order == _RANDOM:
        drawn = Listed(NOW.list + LISTED_BYTES * (draw(count, 0) if count > 1 else 0))
        block = drawn.warp.split(_index_of(drawn.warp, drawn.position)).block
    else:
        block = _block_of_end()
    _collect(block, False)
    count = (NOW.list_end - NOW.list) // LISTED_BYTES
    if LAUNCH.order == _RANDOM:
        if count > 1:
            draw(count, 1)
    elif LAUNCH.order != _FIRST:
        _reverse(NOW.list, NOW.list_end)
        listed = Listed(NOW.list)
        while listed.address < NOW.list_end:
            following = _next_warp(listed)
            _reverse(listed.address, following.address)
            listed = following
    return True


def _list_ready() -> int:
    """Put all splits that are ready on the list; return their count."""
    count = 0
    for row in range(LAUNCH.warps * LAUNCH.blocks):
        warp = _warp_of(row)
        for number in range(warp.splits):
            if warp.split(number).state == READY:
                listed = Listed(NOW.list + LISTED_BYTES * count)
                listed.warp = warp
                listed.position = _key(warp, number).position
                count += 1
    return count


def _block_of_oldest() -> int:
    """Return the block of code of the ready split that has waited longest."""
    block, least = 0, _NONE
    for row in range(LAUNCH.warps * LAUNCH.blocks):
        warp = _warp_of(row)
        for number in range(warp.splits):
            split, key = warp.split(number), Long(_key(warp, number).address).value
            if split.state == READY and (least == _NONE or key < least):
                block, least = split.block, key
    return block


def _block_of_end() -> int:
    """Return the block of code of the first ready split of the first or last warp with any."""
    rows = LAUNCH.warps * LAUNCH.blocks
    for place in range(rows):
        warp = _warp_of(place if LAUNCH.order == _FIRST else rows - 1 - place)
        block, least = -1, 0
        for number in range(warp.splits):
            split, position = warp.split(number), _key(warp, number).position
            if split.state == READY and (block < 0 or position < least):
                block, least = split.block, position
        if block >= 0:
            return block
    raise TrapError


def _exchange(one: Listed, other: Listed) -> None:
    warp, position = one.warp, one.position
    one.warp = other.warp
    one.position = other.position
    other.warp = warp
    other.position = position


def _reverse(begin: int, end: int) -> None:
    """Reverse a part of the list."""
    end -= LISTED_BYTES
    while begin < end:
        _exchange(Listed(begin), Listed(end))
        begin += LISTED_BYTES
        end -= LISTED_BYTES


def _choose() -> bool:
    """Choose the group of the next turn. False if no split is ready."""
    if LAUNCH.order:
        return _choose_otherwise()
    return _choose_waiting() if LAUNCH.awaits else _choose_behind()


def _first_of(warp: Warp) -> int:
    """Return the ready split of a warp that goes first, by block of code and lane, -1 for none."""
    found, least = -1, 1 << 40
    for number in range(warp.splits):
        split = warp.split(number)
        key = split.block << 5 | trailing_zeros(split.lanes)
        if split.state == READY and key < least:
            least = key
            found = number
    return found


def _longest_waiting() -> int:
    """Return the block of code of the first split of the warp that has waited longest.

    -1 unless all splits that are ready there are the first of their warps.
    """
    least, block = ALL_LANES, -1
    rows = LAUNCH.warps * LAUNCH.blocks
    for row in range(rows):
        warp = _warp_of(row)
        number = _first_of(warp)
        if number >= 0 and _key(warp, number).turn < least:
            least = _key(warp, number).turn
            block = warp.split(number).block
    if block >= 0:
        for row in range(rows):
            if not _stands_first(_warp_of(row), block):
                return -1
    return block


def _stands_first(warp: Warp, block: int) -> bool:
    """Whether at most one split of a warp is ready at a block of code, and goes first there."""
    count = 0
    for number in range(warp.splits):
        count += _is_at(warp.split(number), block)
    return count == 0 or (count == 1 and _is_at(warp.split(_first_of(warp)), block))


# -- a turn ----------------------------------------------------------------------------------


def _index_of(warp: Warp, position: int) -> int:
    for number in range(warp.splits):
        if _key(warp, number).position == position:
            return number
    raise TrapError


def _arrange() -> None:
    """Sort a group of all splits."""
    if (NOW.list_end - NOW.list) // LISTED_BYTES != NOW.held:
        return
    at, last = NOW.list, -1
    while at < NOW.list_end and Listed(at).position > last:
        last = Listed(at).position
        at += LISTED_BYTES
    if at == NOW.list_end:
        return
    at = NOW.list
    while at < NOW.list_end:
        listed = Listed(at)
        _key(listed.warp, _index_of(listed.warp, listed.position)).position = NOW.positions
        listed.position = NOW.positions
        NOW.positions += 1
        at += LISTED_BYTES


def _run_group() -> None:
    """Run the group as far as all of it goes together; its steps are the first split's."""
    before, after = NOW.steps, 0
    NOW.passes += 1 - NOW.asks
    NOW.goes_on = 0
    at = NOW.list
    while at < NOW.list_end:
        listed = Listed(at)
        NOW.steps = before
        NOW.goes_without = NOW.present
        run_warp(listed.warp, _index_of(listed.warp, listed.position))
        if at == NOW.list:
            after = NOW.steps
        at += LISTED_BYTES
    NOW.idle += (NOW.list_end - NOW.list) // LISTED_BYTES
    NOW.steps = after


def _gives_way(block: int) -> bool:
    """Whether other lanes of the group's warps are at a basic block or before it."""
    at = NOW.list
    while at < NOW.list_end:
        warp = Listed(at).warp
        for number in range(warp.splits):
            split = warp.split(number)
            is_behind = (split.state == READY) & (split.block <= block)
            if is_behind and _key(warp, number).turn != NOW.turn:
                return True
        at += LISTED_BYTES
    return False


def _take_turn() -> None:
    NOW.is_diverged = NOW.apart
    NOW.settles = 0
    NOW.jumped = 0
    is_going = True
    has_run = False
    while is_going:
        first = Listed(NOW.list)
        block = first.warp.split(_index_of(first.warp, first.position)).block
        if NOW.is_diverged and _flags(block) & WAITING and not NOW.present:
            is_going = _all_are_there(block, has_run)
        if is_going:
            has_run = True
            _run_group()
            NOW.present = NOW.goes_without = 0
            if NOW.arrives:
                NOW.arrives = 0
                _open_named()
            is_going = NOW.goes_on != 0
    if NOW.jumped:
        _arrange_jumped()
    _enter_group()


def _all_are_there(block: int, has_run: bool) -> bool:
    """Whether no split of the group misses lanes that it waits for, or gives way to others."""
    steps = NOW.steps
    if has_run and _gives_way(block):
        NOW.steps = steps + 1
        return False
    NOW.asks = 1
    NOW.misses = 0
    _run_group()
    NOW.asks = 0
    NOW.steps = steps + NOW.misses
    return NOW.misses == 0


def _next_warp(listed: Listed) -> Listed:
    """Return the place on the list after the splits of a warp."""
    at = listed.address
    while at < NOW.list_end and Listed(at).warp.address == listed.warp.address:
        at += LISTED_BYTES
    return Listed(at)


def _arrange_jumped() -> None:
    """Move lanes that have jumped to the end, target by target, unless all have one target.

    The target of lanes that stay is the block of code after the jump.
    """
    last = -1
    several = False
    while True:
        target = _FAR
        listed = Listed(NOW.list)
        while listed.address < NOW.list_end:
            warp = listed.warp
            for number in range(warp.splits):
                key, block = _key(warp, number), warp.split(number).block
                if key.turn == NOW.turn:
                    if block == NOW.jumped:
                        several = True
                    elif block == last:
                        if several:
                            key.position = NOW.positions
                            NOW.positions += 1
                    elif block > last:
                        target = min(target, block)
            listed = _next_warp(listed)
        if target == _FAR:
            return
        if last >= 0 and not several:  # there are several targets: begin again
            several = True
            target = -1
        last = target


def _enter_group() -> None:
    """Enter the group's splits at their new blocks, and open complete barriers."""
    block = -1
    listed = Listed(NOW.list)
    while listed.address < NOW.list_end:
        _enter_all(listed.warp)
        if NOW.settles:
            mine = listed.warp.row // LAUNCH.warps
            if mine != block and block >= 0:
                _settle(block)
            block = mine
        listed = _next_warp(listed)
    if block >= 0:
        _settle(block)
        if LAUNCH.cluster_at:
            _settle_clusters()


def _settle_clusters() -> None:
    """End the phases of the barriers of clusters, where all have arrived."""
    size = LAUNCH.cluster * LAUNCH.warps
    for cluster in range(LAUNCH.blocks // LAUNCH.cluster):
        if open_cluster(_warp_of(size * cluster)):
            for row in range(size * cluster, size * (cluster + 1)):
                _enter_all(_warp_of(row))


def _open_named() -> None:
    """Open the named barriers of the group's blocks with enough threads."""
    block = -1
    listed = Listed(NOW.list)
    while listed.address < NOW.list_end:
        mine = listed.warp.row // LAUNCH.warps
        if mine != block:
            _settle_named(mine)
        block = mine
        listed = _next_warp(listed)


def _settle_named(block: int) -> None:
    """Open the named barriers of a block with enough threads."""
    first = block * LAUNCH.warps
    open_named(_warp_of(first))
    for row in range(first, first + LAUNCH.warps):
        _enter_others(_warp_of(row))


def _enter_others(warp: Warp) -> None:
    """Enter the splits of a warp that are ready and not of the group."""
    for number in range(warp.splits):
        split = warp.split(number)
        if split.state == READY and _key(warp, number).turn != NOW.turn:
            _enter(warp, number, split.block)


def _settle(block: int) -> None:
    """Open the barriers of a block with enough threads, and its own if all have arrived."""
    first = block * LAUNCH.warps
    if LAUNCH.arrivals:
        open_named(_warp_of(first))
        for row in range(first, first + LAUNCH.warps):
            _enter_all(_warp_of(row))
    is_live = False
    for row in range(first, first + LAUNCH.warps):
        warp = _warp_of(row)
        for number in range(warp.splits):
            is_live = True
            if warp.split(number).state != AT_BARRIER:
                return
    if is_live:
        opened(_warp_of(first))
        if LAUNCH.reductions:
            reduce(_warp_of(first))
        for row in range(first, first + LAUNCH.warps):
            _go_on(_warp_of(row))


def _go_on(warp: Warp) -> None:
    for number in range(warp.splits):
        split = warp.split(number)
        split.block += 1
        split.state = READY
        split.waits_for = 0
    _enter_all(warp)


# -- warps whose lanes wait for each other ---------------------------------------------------


def _lets_go() -> bool:
    """Choose lanes that go on without others of their warp, as no lane can run; False for none.

    CUDA leaves this undefined. Lanes at convergence barriers go first, then lanes at an exchange.
    """
    if _go_alone():
        return _choose()
    return _choose_present()


def _go_alone() -> bool:
    """Let lanes at convergence barriers go on that other lanes of their warp wait for."""
    goes = False
    for row in range(LAUNCH.warps * LAUNCH.blocks):
        warp = _warp_of(row)
        if _waits_for_lanes(warp):
            _tell_of_barriers(warp)
            if go_alone(warp):
                goes = True
                _enter_all(warp)
    return goes


def _waits_for_lanes(warp: Warp) -> bool:
    """Whether lanes of a warp are in a loop that yields, or at a mask while no lane runs."""
    runs = yields = is_masked = has_token = False
    for number in range(warp.splits):
        split = warp.split(number)
        has_token = has_token | (split.state == AT_CONVERGENCE)
        is_masked = is_masked | (split.state >= AT_WARP)
        if split.state == READY:
            runs = True
            yields = yields | (_flags(split.block) & YIELDING != 0)
    return has_token and (yields or (is_masked and not runs))


def _tell_of_barriers(warp: Warp) -> None:
    """Report warp barriers of whole warps that release without all lanes."""
    for number in range(warp.splits):
        split = warp.split(number)
        if split.state == AT_WARP and _flags(split.block) & OF_WHOLE_WARPS:
            lets_pass(warp, split)


def _choose_present() -> bool:
    """Choose lanes at an exchange, of warps of which no lane can run; False if there are none.

    Those at the lowest block of code go first, of each warp with one mask.
    """
    found = -1
    for row in range(LAUNCH.warps * LAUNCH.blocks):
        warp = _warp_of(row)
        if exchanges_apart(warp):
            raise TrapError
        number = _first_at_exchange(warp)
        if number >= 0:
            block = warp.split(number).block
            found = block if found < 0 else min(found, block)
    if found < 0:
        return False
    for row in range(LAUNCH.warps * LAUNCH.blocks):
        warp = _warp_of(row)
        number = _first_at_exchange(warp)
        if number >= 0 and warp.split(number).block == found:
            gather_present(warp, number)
            _enter(warp, number, found)
    _collect(found, True)
    NOW.present = 1
    return True


def _first_at_exchange(warp: Warp) -> int:
    """Return the first split of a warp at the lowest exchange, -1 for none or if a lane can run."""
    found, least, first = -1, 0, 0
    for number in range(warp.splits):
        split, position = warp.split(number), _key(warp, number).position
        if split.state == READY or split.state == AT_CONVERGENCE:
            return -1
        if split.state == AT_MASK:
            is_lower = split.block < least or (split.block == least and position < first)
            if found < 0 or is_lower:
                found, least, first = number, split.block, position
    return found


# -- a batch ---------------------------------------------------------------------------------


def _begin_all() -> None:
    """Set the warps of blocks to their start."""
    for row in range(LAUNCH.warps * LAUNCH.blocks):
        warp = _warp_of(row)
        block = row // LAUNCH.warps
        if block * LAUNCH.warps == row:
            fill(warp.shared, 0, LAUNCH.shared_bytes)
        begin(warp, Entry(LAUNCH.entries + ENTRY_BYTES * block))
        begins(warp)
        key = _key(warp, 0)
        key.position = warp.row
        key.turn = 0


def run_in_order() -> u32:
    """Run the blocks of a batch turn by turn; return how it ended."""
    prepare()
    rows = LAUNCH.warps * LAUNCH.blocks
    NOW.row_bytes = rows + 63 >> 6 << 3
    NOW.keys = LAUNCH.group
    NOW.row_bits = NOW.keys + KEY_BYTES * LAUNCH.code_blocks
    NOW.list = NOW.row_bits + NOW.row_bytes * LAUNCH.code_blocks
    NOW.turn = NOW.steps = NOW.idle = NOW.asks = NOW.held = NOW.apart = 0
    NOW.half = 0
    _begin_all()
    fill(NOW.keys, 255, KEY_BYTES * LAUNCH.code_blocks)
    fill(NOW.row_bits, 0, NOW.list - NOW.row_bits)
    for row in range(rows):
        warp = _warp_of(row)
        NOW.held += warp.splits
        NOW.apart += warp.splits > 1
        _enter_all(warp)
    NOW.positions = NOW.held
    NOW.present = 0
    while _choose() or (NOW.held and _lets_go()):
        _arrange()
        _take_turn()
        if NOW.held == 0:
            return ENDED
        if NOW.steps >= LAUNCH.most_steps or NOW.idle >= LAUNCH.most_idle:
            more = progress(Warp(0))
            if more < 0:
                if not _go_alone():
                    return STANDS_STILL
                more = _MORE_STEPS
            LAUNCH.most_steps = NOW.steps + more
            NOW.idle = 0
    return STANDS_STILL if NOW.held else ENDED
