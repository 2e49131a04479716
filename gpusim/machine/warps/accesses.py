"""Accesses of lanes: the array of an address, its chunks, marks of sectors, and numbers alike.

Work on all lanes at once is vector code of `compiled/runtime.wat`.
"""

from __future__ import annotations

from gpusim.machine.warps.banks import wavefronts
from gpusim.machine.warps.state import IN, LAUNCH, NOW, SCRATCH, Byte, Long, Warp, Word
from gpusim.wasm.integers import as_i64, leading_zeros, trailing_zeros
from gpusim.wasm.memory import Record, TrapError, copy, i32, i64, u32
from gpusim.wasm.sources import external

ARRAY_COUNT, DISORDER = 512, 524  # of arrays; whether the order of atomics is the warps' own
TABLE, TABLE_BYTES = 24576, 2048  # of a set of numbers that lanes hold
ARRAYS, ARRAY_BYTES, MOST_ARRAYS = 32768, 32, 2048
BROUGHT = ARRAYS + ARRAY_BYTES * MOST_ARRAYS
NOTE_BYTES = 288
WIDE_SLOT, SLOT = 256, 128  # bytes of distances, of addresses of 64 and of 32 bits
_HASH = 0x9E3779B97F4A7C15 - (1 << 64)
_UNKNOWN = -1  # of wavefronts


class Array(Record):
    """An array of a launch: its address, its bytes, the writable ones, and whether stored to."""

    begin: i64
    bytes: i64
    writable: i64
    is_stored: i64

    def brought(self) -> Brought:
        """Return its entry of the table of arrays copied in chunks."""
        return Brought(self.address + BROUGHT - ARRAYS)


class Brought(Record):
    """An array in chunks of `1 << bits` bytes; `chunks` are bytes, 1 for a chunk that is there."""

    bytes: i64
    writable: i64
    chunks: i64
    bits: i64


class Held(Record):
    """A number of a set, how often it was added, and the set that it is of."""

    number: i64
    times: u32
    of: u32


class Distances(Record):
    """Distances of global addresses from the first lane's, stored before this record.

    They are kept from the instruction's last run, as most runs have the same. `lanes` were on,
    `firsts` have the first access to a sector if the first address is `within` bytes of its sector;
    `kind` is 0 for no distances, 1 for 4 bytes from lane to lane, else 2. `bits` are those of all
    distances.
    """

    lanes: u32
    firsts: u32
    within: i32
    kind: u32
    least: i64
    greatest: i64
    bits: i64


class OwnDistances(Record):
    """The same in memory of a block or thread; wavefronts, and the least in their upper half."""

    lanes: u32
    kind: u32
    least: i32
    greatest: i32
    bits: u32
    unused: u32
    wavefronts: i64


class Note(Record):
    """A step of a watched warp: its lanes, the predicated-on ones, and takers of a branch.

    Addresses lie after it, of 64 bits in space 1 and 32 bits in space 2; above these, the lanes of
    a shuffle and its limits.
    """

    pc: u32
    row: u32
    lanes: u32
    on: u32
    taken: u32
    space: u32
    unused: i64


@external("bring")
def bring(array: Array, chunk: u32) -> None:
    """Let the host copy a chunk of an array."""


@external("drain")
def drain() -> None:
    """Let the host take all notes, and clear them."""


# -- arrays ----------------------------------------------------------------------------------


def find(address: i64, width: i64) -> Array:
    """Return the array with that many bytes at an address; every other array traps."""
    array = Array(ARRAYS)
    for _ in range(Word(ARRAY_COUNT).value):
        begin = array.begin
        if address >= begin and address + width <= begin + array.brought().bytes:
            return array
        array = Array(array.address + ARRAY_BYTES)
    raise TrapError


def is_there(array: Array, address: i64, slot: u32, width: i64, limit: u32) -> bool:
    """Whether an access is in an array copied in chunks; its chunks are then present.

    Lanes' addresses are `address` plus the distances at `slot`. `limit` is the offset, in the
    entry, of the bytes that may be touched.
    """
    brought, far = array.brought(), Distances(slot + WIDE_SLOT)
    bits = brought.bits
    if bits == 0:
        return False
    first = address + far.least - array.begin
    end = address + far.greatest - array.begin + width
    is_misaligned = (address | far.bits) & (width - 1)
    if is_misaligned or first < 0 or end > Long(brought.address + limit).value:
        return False
    if first >> bits == end - 1 >> bits:
        _want(array, first >> bits)
    else:
        for lane in range(32):
            at = Long(IN + 8 * lane).value - array.begin
            _want(array, at >> bits)
            _want(array, at + width - 1 >> bits)
    return True


def _want(array: Array, chunk: int) -> None:
    """Copy a chunk of an array, unless it is present."""
    if not Byte(array.brought().chunks + chunk).value:
        bring(array, chunk)


def reached(array: Array, address: i64, width: i64, stores: u32) -> Array:
    """Return the array with that many bytes at an address, of several the given one.

    They are then there. Every other address traps, and so does one that is not aligned to them.
    """
    found = array
    end = address + width
    if found.address == 0 or address < found.begin or end > found.begin + found.brought().bytes:
        found = find(address, width)
    brought = found.brought()
    if address & (width - 1) or (stores and end > found.begin + brought.writable):
        raise TrapError
    if brought.bits:
        _want(found, address - found.begin >> brought.bits)
        _want(found, end - 1 - found.begin >> brought.bits)
    if stores:
        found.is_stored = 1
    return found


# -- sets of numbers -------------------------------------------------------------------------


def new_set() -> None:
    """Begin a set of numbers of lanes."""
    NOW.set += 1


def counted(number: i64) -> u32:
    """Add a number to the set; return its count."""
    at = 16 * (as_i64(number * _HASH) >> 57 & 127)
    while True:
        held = Held(TABLE + at)
        if held.of != NOW.set:
            held.number = number
            held.times = 1
            held.of = NOW.set
            return 1
        if held.number == number:
            held.times += 1
            return held.times
        at = at + 16 & TABLE_BYTES - 1


def most_alike(on: u32) -> u32:
    """Return the most lanes with one address of global memory."""
    new_set()
    most = 0
    left = on
    while left:
        most = max(most, counted(Long(IN + 8 * trailing_zeros(left)).value))
        left = left & (left - 1)
    return most


def most_of_a_bank(on: u32) -> u32:
    """Return the most lanes with a word in one bank of shared memory."""
    for part in range(4):
        Long(SCRATCH + 8 * part).value = 0
    most = 0
    left = on
    while left:
        bank = Byte(SCRATCH + (Word(IN + 4 * trailing_zeros(left)).value >> 2 & 31))
        bank.value += 1
        most = max(most, bank.value)
        left = left & (left - 1)
    return most


# -- all lanes -------------------------------------------------------------------------------


def fit_wide(on: u32) -> None:
    """Give lanes that are off the address of the first that is on, or after it of the last."""
    begin = trailing_zeros(on)
    first = Long(IN + 8 * begin).value
    last = Long(IN + 8 * (63 - leading_zeros(on))).value
    off = on ^ 0xFFFFFFFF
    while off:
        lane = trailing_zeros(off)
        Long(IN + 8 * lane).value = first if lane < begin else last
        off = off & (off - 1)


def fit(on: u32) -> None:
    """Give lanes that are off the address of the first that is on, of 32 bits."""
    first = Word(IN + 4 * trailing_zeros(on)).value
    off = on ^ 0xFFFFFFFF
    while off:
        Word(IN + 4 * trailing_zeros(off)).value = first
        off = off & (off - 1)


def is_outside(slot: u32, low: u32, most: i32, align: u32) -> bool:
    """Whether an address is misaligned, below `low`, or more than `most` above it."""
    far, first = OwnDistances(slot + SLOT), Word(IN).value
    is_misaligned = align & (first | far.bits) != 0
    above = first - low
    return is_misaligned | (above + far.least < 0) | (above + far.greatest > most)


def wavefronts_again(on: u32, words: u32, pairs: u32, slot: u32) -> i64:
    """Return the wavefronts of an access, cached for equal distances."""
    far = OwnDistances(slot + SLOT)
    found = far.wavefronts
    if found == _UNKNOWN or on != far.lanes:
        found = wavefronts(on, words, pairs)
        far.wavefronts = found
        far.lanes = on
    return found


def mark(on: u32, marks: u32) -> None:
    """Mark the sectors that lanes touch, in a table of marks by place in memory."""
    left = on
    while left:
        place = Long(IN + 8 * trailing_zeros(left)).value - LAUNCH.shift
        Byte(marks + (place >> 5)).value = 1
        left = left & (left - 1)


def mark_row(marks: u32, place: u32, count: u32) -> None:
    """Mark some sectors in a row."""
    first = marks + (place >> 5)
    for sector in range(count):
        Byte(first + sector).value = 1


# -- notes and orders ------------------------------------------------------------------------


def note(warp: Warp, pc: u32, lanes: u32, on: u32, taken: u32, space: u32) -> None:
    """Write a step down."""
    if NOW.notes >= LAUNCH.notes_end:
        drain()
    at = Note(NOW.notes)
    at.pc = pc
    at.row = warp.row
    at.lanes = lanes
    at.on = on
    at.taken = taken
    at.space = space
    if space < 3:
        copy(at.address + 32, IN, 256)
    else:
        lane = IN + 256 * (space - 2)
        copy(at.address + 32, lane, 128)
        copy(at.address + 160, lane + 256, 128)
    NOW.notes += NOTE_BYTES


def is_in_order(path: u32, at: u32) -> bool:
    """Whether splits come to an atomic by one path alone, kept at a place; if not, note it."""
    known = Word(at)
    if known.value == 0:
        known.value = path | 1
    if known.value == path | 1:
        return True
    Word(DISORDER).value = 1
    return False
