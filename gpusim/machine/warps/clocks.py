"""Warps in the order of their clocks: the one with the smallest clock runs next.

A clock is the time of a warp in ticks. Generated code adds the time of instructions to it, and
waits for the results of earlier ones; a warp runs on until its clock is ahead of another's before
an instruction that other blocks see, or a backward branch. Blocks begin as others end. A split is
parked where it would repeat a poll that found the same again, until a word that it polled is
written.
"""

from __future__ import annotations

from gpusim.machine.warps.accesses import counted, new_set
from gpusim.machine.warps.clusters import opened
from gpusim.machine.warps.convergence import hold
from gpusim.machine.warps.scheduling import (
    ENDED,
    STANDS_STILL,
    begin,
    furthest_behind,
    open_barrier,
    prepare,
    progress,
    run_warp,
)
from gpusim.machine.warps.state import (
    AT_BARRIER,
    AT_WORD,
    ENTRY_BYTES,
    IN,
    LAUNCH,
    OPERAND_BYTES,
    OUT,
    READY,
    Byte,
    Entry,
    Long,
    Warp,
    Word,
)
from gpusim.wasm.integers import as_i64, trailing_zeros
from gpusim.wasm.memory import Record, TrapError, fill, i64, u32

PACED = 11264  # where the record lies that a module has once
NEVER = 1 << 62  # the clock of a warp that waits for others
LINE_BITS = 7
MOST_RESULTS = 4  # of a poll, that are kept
END_BYTES, SERVED_BYTES = 16, 16
_PROBES = 64  # of the places of a word in the table of words
_HASH = 0x9E3779B97F4A7C15 - (1 << 64)


class Paced(Record):
    """Times in ticks and places of a launch whose warps have clocks, and its state.

    A barrier opens `barrier` after its last warp has come, a block begins `turnover` after the end
    of another, parked polls are repeated `wake_after` the write of their word, atomics on one word
    are served `apart`.

    `clocks` and `winners` are a tree of `leaves`, one for each warp; the `running` warp goes on
    until its clock is beyond `next`. A warp keeps its `Timed` at `timed_at`, of `timed_bytes`. Of
    `words` that atomics change there are `word_mask` + 1, and as many lists of parked polls from
    `polls` on. `lines` has a byte for each of `line_count` lines of memory from `first_line` on.
    `delays` are those of blocks whose access comes first to a line, by instruction. The ends of
    blocks are written from `ends` on; the host is asked whether to go on after `next_look` of them.

    The last access was `served` at a time, or comes `late`; a poll `is_vain`.
    """

    begin: i64
    barrier: i64
    turnover: i64
    wake_after: i64
    apart: i64
    next: i64
    served: i64
    late: i64
    first_line: i64
    line_count: i64
    running: u32
    clocks: u32
    winners: u32
    leaves: u32
    timed_at: u32
    timed_bytes: u32
    words: u32
    word_mask: u32
    polls: u32
    lines: u32
    delays: u32
    ends: u32
    begun: u32
    ended: u32
    next_look: u32
    is_vain: u32


class Poll(Record):
    """A lane's parked poll of a word, in a list: `before` is where the list refers to it, or 0."""

    word: i64
    warp: Warp
    following: u32
    before: u32
    unused: u32


class Timed(Record):
    """The clock of a warp, and its last poll: when it was, where, and by which lanes.

    Addresses, results and the polls of lanes follow, then the times at which registers are there.
    """

    clock: i64
    since: i64
    asked: u32
    lanes: u32

    def told(self, lane: int) -> Long:
        """Return the address that a lane polled."""
        return Long(self.address + TOLD + 8 * lane)

    def result(self, number: int, lane: int) -> Long:
        """Return a result of a lane."""
        return Long(self.address + RESULTS + OPERAND_BYTES * number + 8 * lane)

    def poll(self, lane: int) -> Poll:
        """Return the parked poll of a lane."""
        return Poll(self.address + POLLS + POLL_BYTES * lane)


class Served(Record):
    """A word, and when the atomics on it have been served."""

    word: i64
    free: i64


class End(Record):
    """The end of a block."""

    at: i64
    block: u32
    unused: u32


TOLD, POLL_BYTES = 24, 24
RESULTS = TOLD + 32 * 8
POLLS = RESULTS + MOST_RESULTS * OPERAND_BYTES
TIMED_BYTES = POLLS + 32 * POLL_BYTES
PACE = Paced(PACED)


def _timed(warp: Warp) -> Timed:
    return Timed(warp.address + PACE.timed_at)


def _warp_of(place: int) -> Warp:
    return Warp(LAUNCH.warps_at + place * LAUNCH.warp_bytes)


# -- the smallest clock ----------------------------------------------------------------------


def _clock(place: int) -> Long:
    return Long(PACE.clocks + 8 * place)


def _winner(node: int) -> int:
    """Return the place with the smallest clock below a node of the tree."""
    return node - PACE.leaves if node >= PACE.leaves else Word(PACE.winners + 4 * node).value


def set_clock(place: int, at: i64) -> None:
    """Set the clock of the warp at a place, NEVER for one that waits."""
    _clock(place).value = at
    node = place + PACE.leaves >> 1
    while node:
        one, other = _winner(2 * node), _winner(2 * node + 1)
        first = Word(PACE.winners + 4 * node)
        before = first.value
        first.value = one if _clock(one).value <= _clock(other).value else other
        if first.value == before and before != place:
            return
        node >>= 1


def _turn_of(place: int) -> int:
    """Return the last time at which the running warp goes before another.

    Of equal clocks, that of the first place is smaller.
    """
    return _clock(place).value - (place < PACE.running)


# -- blocks ----------------------------------------------------------------------------------


def run_by_clock() -> u32:
    """Run blocks, the warp with the smallest clock first; return how this ended."""
    prepare()
    for place in range(PACE.leaves):
        _clock(place).value = NEVER
    for number in range(1, PACE.leaves):
        node = PACE.leaves - number
        Word(PACE.winners + 4 * node).value = _winner(2 * node)
    for slot in range(LAUNCH.held // LAUNCH.warps):
        _begin(slot, PACE.begin)
    while PACE.ended < LAUNCH.blocks:
        place = _winner(1)
        if _clock(place).value >= NEVER or not _has_run(place):
            return STANDS_STILL
        if PACE.ended >= PACE.next_look:
            more = progress(Warp(0))
            if more < 0:
                return ENDED
            PACE.next_look = more
    return ENDED


def _begin(slot: int, at: int) -> None:
    """Let the next block begin in a slot."""
    entry = Entry(LAUNCH.entries + ENTRY_BYTES * PACE.begun)
    first = slot * LAUNCH.warps
    for place in range(first, first + LAUNCH.warps):
        warp = _warp_of(place)
        if place == first:
            fill(warp.shared, 0, LAUNCH.shared_bytes)
        timed = _timed(warp)
        fill(timed.address, 0, PACE.timed_bytes)
        timed.clock = at
        warp.turns = LAUNCH.turns
        begin(warp, entry)
        warp.row = LAUNCH.warps * PACE.begun + place - first
        set_clock(place, at)
    PACE.begun += 1


def _has_run(place: int) -> bool:
    """Run a warp until its clock is ahead of another's, or it waits; False if it never ends."""
    warp = _warp_of(place)
    timed = _timed(warp)
    set_clock(place, NEVER)
    PACE.running = place
    PACE.next = _turn_of(_winner(1))
    number = furthest_behind(warp)
    while number >= 0 and timed.clock <= PACE.next:
        PACE.is_vain = 0
        run_warp(warp, number)
        if warp.turns < 0:
            warp.turns = progress(warp)
            if warp.turns < 0:
                return False
        number = furthest_behind(warp)
    if number >= 0:
        set_clock(place, timed.clock)
    else:
        _settle(place // LAUNCH.warps)
    return True


def _settle(slot: int) -> None:
    """Open the barrier of a block if all of its splits have come, and note its end."""
    first = slot * LAUNCH.warps
    last = end = 0
    is_live = False
    for place in range(first, first + LAUNCH.warps):
        warp = _warp_of(place)
        for number in range(warp.splits):
            if warp.split(number).state != AT_BARRIER:
                return
        end = max(end, _timed(warp).clock)
        if warp.splits:
            is_live = True
            last = max(last, _timed(warp).clock)
    if not is_live:
        _end(slot, end)
        return
    if _warp_of(first).is_watched:
        opened(_warp_of(first))
    open_barrier(_warp_of(first), 0)
    for place in range(first, first + LAUNCH.warps):
        if _warp_of(place).splits:
            _timed(_warp_of(place)).clock = last + PACE.barrier
            set_clock(place, last + PACE.barrier)


def _end(slot: int, at: int) -> None:
    """Note the end of a block, and let another begin."""
    end = End(PACE.ends + END_BYTES * PACE.ended)
    end.at = at
    end.block = _warp_of(slot * LAUNCH.warps).row // LAUNCH.warps
    PACE.ended += 1
    if PACE.begun < LAUNCH.blocks:
        _begin(slot, at + PACE.turnover)


# -- lines of memory -------------------------------------------------------------------------


def keep_lines(on: u32) -> bool:
    """Mark the lines that lanes touch; return whether one of them is new."""
    is_new = False
    left = on
    while left:
        line = (Long(IN + 8 * trailing_zeros(left)).value >> LINE_BITS) - PACE.first_line
        if line >= 0 and line < PACE.line_count:
            mark = Byte(PACE.lines + line)
            if not mark.value:
                is_new = True
                mark.value = 1
        left = left & (left - 1)
    return is_new


def fetch_lines(warp: Warp, on: u32, number: u32) -> None:
    """Mark the lines of a load; it comes late if one is new."""
    PACE.late = 0
    if keep_lines(on):
        delay = PACE.delays + 8 * (number * LAUNCH.blocks + warp.row // LAUNCH.warps)
        PACE.late = Long(delay).value


# -- words that blocks pass on ---------------------------------------------------------------


def _place_of(word: i64) -> int:
    return as_i64(word * _HASH) >> 32 & PACE.word_mask


def _found(word: i64) -> int:
    """Return where a word is in the table of words, 0 if it is not."""
    first = _place_of(word)
    for probe in range(_PROBES):
        at = PACE.words + SERVED_BYTES * (first + probe & PACE.word_mask)
        if Served(at).word == word:
            return at
    return 0


def _entered(word: i64, now: i64) -> Served:
    """Return the entry of a word: its own, or one of a word that is free."""
    known = _found(word)
    if known:
        return Served(known)
    first = _place_of(word)
    for probe in range(_PROBES):
        one = Served(PACE.words + SERVED_BYTES * (first + probe & PACE.word_mask))
        if one.free <= now:
            one.word = word
            one.free = now
            return one
    raise TrapError


def serve(warp: Warp, on: u32) -> None:
    """Serve an atomic after those on the same word: on the one that most of its lanes change."""
    at = _timed(warp).clock
    PACE.served = at
    if on == 0:
        return
    new_set()
    word, most = 0, 0
    left = on
    while left:
        address = Long(IN + 8 * trailing_zeros(left)).value
        times = counted(address)
        if times > most or (times == most and address < word):
            word = address
            most = times
        left = left & (left - 1)
    entry = _entered(word, at)
    PACE.served = max(at, entry.free)
    entry.free = PACE.served + most * PACE.apart


def poll(warp: Warp, pc: u32, on: u32, results: u32, is_wide: u32) -> None:
    """Note a poll of lanes with its results, and whether it gives the same again: it is vain."""
    timed = _timed(warp)
    is_same = timed.asked == pc + 1 and timed.lanes == on and on != 0
    left = on
    while left:
        lane = trailing_zeros(left)
        address, told = Long(IN + 8 * lane).value, timed.told(lane)
        is_same = is_same & (told.value == address)
        told.value = address
        for number in range(results):
            at, kept = OUT + OPERAND_BYTES * number, timed.result(number, lane)
            value = Long(at + 8 * lane).value if is_wide else Word(at + 4 * lane).value
            is_same = is_same & (kept.value == value)
            kept.value = value
        left = left & (left - 1)
    timed.asked = pc + 1
    timed.lanes = on
    timed.since = timed.clock
    PACE.is_vain = is_same


def poll_served(warp: Warp, on: u32) -> None:
    """Serve a poll: after atomics in progress, for one in between would be repeated."""
    at = _timed(warp).clock
    busy = 0
    left = on
    while left:
        known = _found(Long(IN + 8 * trailing_zeros(left)).value)
        if known:
            busy = max(busy, Served(known).free)
        left = left & (left - 1)
    PACE.served = busy + PACE.wake_after if busy > at else at


def _list_of(word: i64) -> Word:
    """Return the first of the parked polls of a word, among others."""
    return Word(PACE.polls + 4 * _place_of(word))


def park(warp: Warp, number: u32, block: u32, lanes: u32, path: u32) -> None:
    """Hold a split that would repeat a poll in vain, until one of the polled words is written."""
    hold(warp, number, block, lanes, AT_WORD, path)
    timed = _timed(warp)
    left = timed.lanes
    while left:
        lane = trailing_zeros(left)
        one = timed.poll(lane)
        _forget(one)
        one.word = timed.told(lane).value
        one.warp = warp
        first = _list_of(one.word)
        one.following = first.value
        one.before = first.address
        if one.following:
            Poll(one.following).before = one.address + 12
        first.value = one.address
        left = left & (left - 1)


def _forget(one: Poll) -> None:
    """Take a poll from its list."""
    if one.before:
        Word(one.before).value = one.following
        if one.following:
            Poll(one.following).before = one.before
        one.before = 0


def write_words(on: u32, at: i64) -> None:
    """Wake the polls of words that lanes have written at a time."""
    left = on
    while left:
        word = Long(IN + 8 * trailing_zeros(left)).value
        one = _list_of(word).value
        while one:
            if Poll(one).word == word:
                _wake(Poll(one).warp, at + PACE.wake_after)
                one = _list_of(word).value
            else:
                one = Poll(one).following
        left = left & (left - 1)


def _wake(warp: Warp, at: i64) -> None:
    """Let the parked splits of a warp go on at a time."""
    timed = _timed(warp)
    for lane in range(32):
        _forget(timed.poll(lane))
    is_alone = True
    for number in range(warp.splits):
        split = warp.split(number)
        is_alone = is_alone and split.state != READY
        if split.state == AT_WORD:
            split.state = READY
    timed.clock = max(at, timed.since if is_alone else timed.clock)
    place = (warp.address - LAUNCH.warps_at) // LAUNCH.warp_bytes
    if place != PACE.running:
        set_clock(place, timed.clock)
        PACE.next = min(PACE.next, _turn_of(place))
