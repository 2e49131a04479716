"""Records of steps for observers: of each run of a basic block, and of some instructions.

These are guarded instructions, decisions and accesses to memory. For an access the module records
its work for the memory hierarchy, and the bytes that it touches.
"""

from __future__ import annotations

from gpusim.gpu.memory import LINE_BYTES, MIDDLE_BYTES, NEAR_BYTES
from gpusim.machine.warps.banks import wavefronts
from gpusim.machine.warps.state import IN, LAUNCH, NOW, SORTED, Long, Warp, Word
from gpusim.wasm.integers import as_i32, as_u32, trailing_zeros
from gpusim.wasm.memory import Record, i32, i64, u32
from gpusim.wasm.sources import external

RUN_BYTES, DETAIL_BYTES, TOUCHED_BYTES = 16, 32, 12
ON, TAKEN = 30, 31  # bits of a record's pc
TOLD = 304  # of the distances between an access's addresses: its last record
_NEAR, _MIDDLE = NEAR_BYTES // LINE_BYTES, MIDDLE_BYTES // LINE_BYTES
_NONE = 0xFFFFFFFF  # in place of a basic block or a line
_MOST_KEPT = 4  # records of touched bytes
LOAD, STORE, ATOMIC = range(3)


class Run(Record):
    """A run of a basic block by lanes of a warp, and where details follow; or an opened barrier."""

    pc: u32
    row: u32
    lanes: u32
    details: u32


class Detail(Record):
    """An instruction of a run: whether lanes are on, and take a branch, beside its pc.

    `passes` are sectors or serialised passes, `gaps` counts lines that are near, further or far
    from the one before, 8 bits each, `lowest` is the first line or offset, `is_one` whether all
    lanes have one address. So many records of touched bytes belong to it.
    """

    pc: u32
    passes: u32
    lines: u32
    wavefronts: u32
    gaps: u32
    lowest: i32
    is_one: u32
    touched: u32


class Touched(Record):
    """Bytes touched without an untouched sector between them: first and last address, lanes."""

    first: u32
    last: u32
    lanes: u32


class Told(Record):
    """An access to global memory, with at most four records of touched bytes.

    It also describes the next access by the same lanes, at the same distances, moved by whole
    lines.
    """

    lanes: u32
    first: u32
    passes: u32
    lines: u32
    wavefronts: u32
    gaps: u32
    lowest: i32
    is_one: u32
    touched: u32

    def part(self, number: int) -> Touched:
        """Return one of its records of accessed bytes, which follow it."""
        return Touched(self.address + 36 + TOUCHED_BYTES * number)


@external("take_steps")
def take_steps() -> None:
    """Let the host take all records, and clear them."""


def begun(warp: Warp, pc: u32, lanes: u32) -> None:
    """Record that a warp begins a basic block with some lanes."""
    if (
        (NOW.runs >= NOW.runs_full)
        | (NOW.details >= NOW.details_full)
        | (NOW.touched >= NOW.touched_full)
    ):
        take_steps()
    run = Run(NOW.runs)
    run.pc = pc
    run.row = warp.row
    run.lanes = lanes
    run.details = NOW.details
    NOW.runs += RUN_BYTES


def opened(warp: Warp) -> None:
    """Record that the barrier of a block opens."""
    begun(warp, _NONE, 0)


def decided(pc: u32, on: u32, taken: u32) -> None:
    """Record an instruction with some lanes on, and the lanes that take a branch."""
    Detail(NOW.details).pc = pc | (on != 0) << ON | (taken != 0) << TAKEN
    NOW.details += DETAIL_BYTES


def detail(
    pc: u32,
    on: u32,
    passes: u32,
    lines: u32,
    waves: u32,
    gaps: u32,
    lowest: i32,
    is_one: u32,
    begin: u32,
) -> None:
    """Record an access; the records of the bytes that it touches begin at an address."""
    record = Detail(NOW.details)
    record.passes = passes
    record.lines = lines
    record.wavefronts = waves
    record.gaps = gaps
    record.lowest = lowest
    record.is_one = is_one
    record.touched = (NOW.touched - begin) // TOUCHED_BYTES
    decided(pc, on, 0)


def _touch(first: u32, last: u32, lanes: u32) -> None:
    record = Touched(NOW.touched)
    record.first = first
    record.last = last
    record.lanes = lanes
    NOW.touched += TOUCHED_BYTES


# -- places of lanes -------------------------------------------------------------------------


def narrow(begin: i64) -> None:
    """Replace addresses by places from one on; global ones keep their lines."""
    for lane in range(32):
        Word(IN + 4 * lane).value = Long(IN + 8 * lane).value - begin


def side_by_side() -> None:
    """Replace addresses of local memory by places: a word of each lane lies beside the next's."""
    for lane in range(32):
        word = Word(IN + 4 * lane)
        word.value = 4 * lane + (word.value >> 2 << 7)


def _sort(on: u32) -> int:
    """Put the places of lanes in order; return their number."""
    count = 0
    left = on
    while left:
        place = Word(IN + 4 * trailing_zeros(left)).value
        left = left & (left - 1)
        at = SORTED + 4 * count
        while at > SORTED and Word(at - 4).value > place:
            Word(at).value = Word(at - 4).value
            at -= 4
        Word(at).value = place
        count += 1
    return count


# -- accesses --------------------------------------------------------------------------------


def accessed(pc: u32, on: u32, width: u32, times: u32, kind: u32, wants_touched: u32) -> None:
    """Record an access to memory through the L1, by lanes with known places.

    Lanes access `width` bytes, or `times` words side by side in local memory.
    """
    begin = NOW.touched
    if not on:
        detail(pc, on, 0, 0, 0, 0, -1, 0, begin)
        return
    count = _sort(on)
    base = first = last = Word(SORTED).value
    sectors = lines = tags = lanes = same = most = 1
    passes = gaps = 0
    for number in range(1, count):
        place = Word(SORTED + 4 * number).value
        if place == last:
            same += 1
            most = max(most, same)
        else:
            same = 1
            if place >> 5 != last >> 5:
                sectors += 1
                passes += most
                most = 1
            gap = (place >> 7) - (last >> 7)
            if gap:
                lines += 1
                gaps += 1 if gap <= _NEAR else 256 if gap <= _MIDDLE else 65536
                tags += 1 << 8 * _bank_of_tags((place >> 7) - (base >> 7))
            if wants_touched and place - last >= width + 32:
                _touch(first, last, lanes)
                first = place
                lanes = 0
        lanes += 1
        last = place
    if wants_touched:
        _touch(first, last, lanes)
        _repeat(begin, times)
    if kind == ATOMIC:
        detail(pc, on, passes + most, sectors, 0, 0, -1, base == last, begin)
        return
    waves = _waves(on, width, tags) if kind == LOAD else lines
    detail(pc, on, times * sectors, times * lines, times * waves, gaps, base >> 7, 0, begin)


def _bank_of_tags(line: int) -> int:
    folded = line ^ line >> 16
    folded = folded ^ folded >> 8
    folded = folded ^ folded >> 4
    return (folded ^ folded >> 2) & 3


def _waves(on: u32, width: u32, tags: int) -> int:
    """Return the wavefronts of a load: as of shared memory, or of the fullest bank of tags."""
    most = as_u32(wavefronts(on, width >> 2 if width > 4 else 1, 0))
    for bank in range(4):
        most = max(most, tags >> 8 * bank & 255)
    return most


def _repeat(begin: int, times: u32) -> None:
    """Record the bytes that further words of local memory touch."""
    end = NOW.touched
    for word in range(1, times):
        at = begin
        while at < end:
            one = Touched(at)
            _touch(one.first + 128 * word, one.last + 128 * word, one.lanes)
            at += TOUCHED_BYTES


def keep_told(on: u32, slot: u32) -> None:
    """Keep the last record of an access by these lanes, with its distances."""
    told, last = Told(slot + TOLD), Detail(NOW.details - DETAIL_BYTES)
    told.lanes = 0
    if last.touched <= _MOST_KEPT:
        told.lanes = on
        told.first = Word(IN).value
        told.passes = last.passes
        told.lines = last.lines
        told.wavefronts = last.wavefronts
        told.gaps = last.gaps
        told.lowest = last.lowest
        told.is_one = last.is_one
        told.touched = last.touched
        begin = NOW.touched - TOUCHED_BYTES * last.touched
        for number in range(last.touched):
            part, one = told.part(number), Touched(begin + TOUCHED_BYTES * number)
            part.first = one.first
            part.last = one.last
            part.lanes = one.lanes


def told_again(pc: u32, on: u32, slot: u32) -> bool:
    """Record an access like the last one; False if that is unknown."""
    told = Told(slot + TOLD)
    if not on or on != told.lanes:
        return False
    by = as_i32(Long(IN).value - LAUNCH.shift - told.first)
    if by & 127:
        return False
    lowest = told.lowest
    if lowest >= 0:
        lowest += by >> 7
    begin = NOW.touched
    for number in range(told.touched):
        part = told.part(number)
        _touch(part.first + by, part.last + by, part.lanes)
    detail(pc, on, told.passes, told.lines, told.wavefronts, told.gaps, lowest, told.is_one, begin)
    return True


def looked_up(pc: u32, on: u32) -> None:
    """Record a load of constants at offsets in a register: different ones, and the lowest."""
    count = _sort(on)
    different = 0
    for number in range(count):
        at = SORTED + 4 * number
        if number == 0 or Word(at).value != Word(at - 4).value:
            different += 1
    lowest = Word(SORTED).value if on else _NONE
    detail(pc, on, different, 0, 0, 0, lowest, 0, NOW.touched)
