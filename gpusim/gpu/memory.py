"""Memory arithmetic: addresses and masks in, wavefronts and sectors out. No state.

Arrays have 32 lanes in their last axis; any axes may stand before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpusim.launch.choice import chosen
from gpusim.typing import Array

SECTOR_BYTES = 32
SECTOR_BITS, LINE_BITS = 5, 7  # a shift takes a third of the time of a division
LINE_BYTES = 128
# Lines out of DRAM 128 bytes to 64 MB apart, on an idle H200: within 512 bytes a warp waits for
# them least, within 4 KB longer, and beyond that longest.
NEAR_BYTES, MIDDLE_BYTES = 512, 4096
WORD_BYTES, WORD_BITS = 4, 2
BANKS = 32
BANKS_CC1 = 16
CC_OF_MULTICAST = 2  # and of 32 banks
CC_OF_PAIRS = 7
CC_OF_WRITE_THROUGH = 7
TAG_BANKS = 4  # a power of two
NOWHERE = np.asarray(2**62)  # after all values
MARKS_AT_ONCE = 1 << 16
BEHIND_32 = np.asarray(2**31 - 1, dtype=np.int32)  # after all of 32 bits but itself


def lanes_in(mask: Array) -> Array:
    """Return how many of each warp's 32 lanes a mask holds.

    Packing the bits of all of them first is thirty times faster than adding up booleans.
    """
    bits = np.packbits(mask.reshape(-1)).view(np.uint32)
    return np.bitwise_count(bits).astype(np.int64).reshape(mask.shape[:-1])


def in_order(values: Array, on: Array) -> Array:
    """Return each warp's values in order; lanes that are off come last, as NOWHERE."""
    return _sorted(values, on, NOWHERE)


def _sorted(values: Array, on: Array, behind: Array) -> Array:
    ordered = chosen(on, values, behind)
    ordered.sort(axis=-1)
    return ordered


def distinct(values: Array, on: Array) -> Array:
    """Return how many different values the lanes that are on hold, per warp."""
    values, on = np.broadcast_arrays(values, on)
    if on.all() and (values[..., 1:] >= values[..., :-1]).all():
        return lanes_in(_first_of_runs(values))
    values, behind = _narrow(values)
    ordered = _sorted(values, on, behind)
    return lanes_in(_first_of_runs(ordered) & (ordered < behind))


def _narrow(values: Array) -> tuple[Array, Array]:
    """Return values in 32 bits if they fit (twice as fast), and a number above all of them."""
    is_narrow = values.size and values.min() > -BEHIND_32 and values.max() < BEHIND_32
    return (values.astype(np.int32), BEHIND_32) if is_narrow else (values, NOWHERE)


def _first_of_runs(values: Array) -> Array:
    """Return where along the last axis a value differs from the one before it.

    All are compared in a row, a sixth of the time of going along an axis of 32.
    """
    first = np.empty(values.shape, dtype=bool)
    flat = values.reshape(-1)
    np.not_equal(flat[1:], flat[:-1], out=first.reshape(-1)[1:])
    first[..., :1] = True
    return first


def distinct_values(values: Array, on: Array) -> Array:
    """Return each warp's values once, in order, filled up with -1; for non-negative values."""
    values, on = np.broadcast_arrays(values, on)
    ordered = in_order(values, on)
    return np.where(_first_of_runs(ordered) & (ordered < NOWHERE), ordered, -1)


def first_of_each(values: Array, on: Array) -> Array:
    """Return, per warp, the lanes that are on and the first with their value."""
    values, on = np.broadcast_arrays(values, on)
    lanes = np.arange(values.shape[-1])
    ordered = np.sort(np.where(on, values * 32 + lanes, NOWHERE + lanes), axis=-1)
    first = np.empty(ordered.shape, dtype=bool)
    np.put_along_axis(first, ordered & 31, _first_of_runs(ordered >> 5), axis=-1)
    return np.asarray(on & first)


def sectors(addresses: Array, on: Array) -> Array:
    """Return the 32-byte sectors that each warp's access touches.

    An access of up to 16 bytes, aligned to its width, lies in one sector.
    """
    return distinct(addresses >> SECTOR_BITS, on)


def bulk_sectors(begin: int, place: int, size: int, *, is_multicast: bool = False) -> int:
    """Return the sectors that a bulk copy of bytes moves, as Nsight Compute counts them.

    `begin` is the address in global memory (of a copy between blocks the source), `place` that in
    shared memory. Each 128-byte line of shared memory has a request of its own, in a multicast each
    line of global memory too, and three sectors come as four. Counted on an
    H200 (validate/bulk/counters.csv).
    """
    found, end = 0, begin + size
    while begin < end:
        left = LINE_BYTES - place % LINE_BYTES
        if is_multicast:
            left = min(left, LINE_BYTES - begin % LINE_BYTES)
        last = min(begin + left, end) - 1
        moved = (last >> SECTOR_BITS) - (begin >> SECTOR_BITS) + 1
        found += 4 if is_multicast and moved == 3 else moved
        place += last + 1 - begin
        begin = last + 1
    return found


class Coalesced(NamedTuple):
    """What each warp's access touches: the number of `sectors` and `lines`, and the `lowest` line.

    The lowest is -1 without a lane that is on. `touched` are the sectors of all warps, one warp
    after the other, `ordered` the addresses in order, NOWHERE for lanes that are off.
    """

    sectors: Array
    lines: Array
    lowest: Array
    touched: Array
    ordered: Array


def coalesced(addresses: Array, on: Array) -> Coalesced:
    """Return the sectors and lines of each warp's access: lanes are put in order once for both."""
    ordered = in_order(*np.broadcast_arrays(addresses, on))
    is_on = ordered < NOWHERE
    lines, sectors = ordered >> LINE_BITS, ordered >> SECTOR_BITS
    is_sector = _first_of_runs(sectors) & is_on
    return Coalesced(
        lanes_in(is_sector),
        lanes_in(_first_of_runs(lines) & is_on),
        np.where(is_on[..., 0], lines[..., 0], -1),
        sectors[is_sector],
        ordered,
    )


def local_places(addresses: Array) -> Array:
    """Return the physical position, in bytes among its warp's, of each lane's local address.

    Words of one address lie side by side, lane by lane: a line holds a word of each lane (CUDA C++
    Programming Guide, "Local Memory").
    """
    return addresses // WORD_BYTES * LINE_BYTES + np.arange(32) * WORD_BYTES


def banks(addresses: Array, cc_major: int = 9) -> Array:
    """Return the shared-memory bank of each byte address."""
    return addresses // WORD_BYTES % (BANKS_CC1 if cc_major < CC_OF_MULTICAST else BANKS)


def wavefronts(
    addresses: Array, on: Array, width_bytes: int = 4, cc_major: int = 9, *, is_load: bool = False
) -> tuple[Array, Array]:
    """Return the wavefronts of each warp's shared-memory access, and the least it could take.

    A wavefront serves one word of each bank, and every lane that wants it (broadcast, multicast).
    8-byte accesses are served a half-warp at a time, 16-byte accesses a quarter-warp at a
    time. For compute capability 1.x half-warps meet 16 banks, and only one word is
    broadcast in a wavefront. The least is one wavefront for each part of the warp with a lane on
    (CUDA C++ Programming Guide, "Shared Memory").

    From 7.0 on the parts of a load are twice as large where lanes in pairs want the same, or one
    of them nothing: each lane and the next one, or each and the next but one (Nsight Compute's
    counts of 600 patterns on an H200, with all lanes or some; taken to be so since
    7.0).
    """
    addresses, on = np.broadcast_arrays(addresses, on)
    words_per_lane = max(1, width_bytes // WORD_BYTES)
    lanes = (BANKS_CC1 if cc_major < CC_OF_MULTICAST else BANKS) // words_per_lane
    taken, least = _in_parts(addresses, on, words_per_lane, lanes, cc_major)
    if is_load and cc_major >= CC_OF_PAIRS and words_per_lane > 1:
        in_pairs = _in_pairs(addresses, on, 1) | _in_pairs(addresses, on, 2)
        if in_pairs.any():
            merged = _in_parts(addresses, on, words_per_lane, 2 * lanes, cc_major)
            taken = np.where(in_pairs, merged[0], taken)
            least = np.where(in_pairs, merged[1], least)
    return taken, least


def _in_pairs(addresses: Array, on: Array, apart: int) -> Array:
    """Return, per warp, whether active lanes at a distance of `apart` have equal addresses."""
    pairs = (*on.shape[:-1], -1, 2, apart)
    one, other = np.moveaxis(addresses.reshape(pairs), -2, 0)
    both = on.reshape(pairs).all(-2)
    found: Array = ((one == other) | ~both).all((-1, -2))
    return found


def _in_parts(
    addresses: Array, on: Array, words_per_lane: int, lanes: int, cc_major: int
) -> tuple[Array, Array]:
    """Return the wavefronts, and the least, of warps served `lanes` lanes at a time."""
    words = (addresses // WORD_BYTES)[..., None] + np.arange(words_per_lane)
    words = words.reshape(-1, lanes * words_per_lane)
    taking = np.broadcast_to(on[..., None], (*on.shape, words_per_lane))
    taking = taking.reshape(-1, lanes * words_per_lane)
    if cc_major < CC_OF_MULTICAST:
        taken = _with_one_broadcast(words, taking)
    else:
        taken = _with_multicast(words, taking, BANKS)
    taken = taken.reshape(*addresses.shape[:-1], 32 // lanes)
    return taken.sum(-1), np.count_nonzero(taken, axis=-1)


def _with_multicast(words: Array, on: Array, width: int) -> Array:
    """Return, per row, the most different words requested of any one bank."""
    row, found = _different(in_order(words, on))
    return _fullest(row, found % width, len(words), width)


def _fullest(row: Array, bank: Array, rows: int, width: int) -> Array:
    """Return, per row, the most values of any one of `width` banks."""
    counts = np.bincount(row * width + bank, minlength=rows * width)
    most: Array = counts.reshape(rows, width).max(axis=-1)
    return most


def _different(ordered: Array, bits: int = 0) -> tuple[Array, Array]:
    """Return the different values of each row, without some bits, and the row of each.

    Values are in order, NOWHERE where there is none.
    """
    values = ordered >> bits
    at = np.flatnonzero(_first_of_runs(values) & (ordered < NOWHERE))
    return at // values.shape[-1], values.reshape(-1)[at]


def _with_one_broadcast(words: Array, on: Array) -> Array:
    """Return wavefronts of half-warps on 16 banks; the first waiting lane's word is broadcast."""
    taken = np.zeros(len(words), dtype=np.int64)
    for row in range(len(words)):
        waiting = list(words[row][on[row]])
        while waiting:
            broadcast, busy, later = waiting[0], {int(waiting[0]) % BANKS_CC1}, []
            for word in waiting[1:]:
                bank = int(word) % BANKS_CC1
                if word == broadcast:
                    continue
                if bank in busy:
                    later.append(word)
                busy.add(bank)
            waiting = later
            taken[row] += 1
    return taken


def load_wavefronts(addresses: Array, on: Array, width_bytes: int = 4, cc_major: int = 9) -> Array:
    """Return the passes of each warp's load from global memory that finds all of it in the L1.

    Tags of lines lie in four banks, by the exclusive or of the pairs of bits of a line's number
    (here counted from the warp's first line): a pass looks one line up in each. Data found
    comes in as many wavefronts as it would from shared memory, except that lanes with equal
    addresses do not reduce the count of wide loads. The longer of both counts (cycles of the SM
    and Nsight Compute's counts of 150 patterns on an H200; loads of 1, 2 and 4 words by 1 to 32
    lanes).
    """
    addresses, on = np.broadcast_arrays(addresses, on)
    if on.size > 32 and on.all():
        lowest = addresses.min(axis=-1, keepdims=True) // LINE_BYTES * LINE_BYTES
        rows = (addresses - lowest).reshape(-1, 32)
        if (rows == rows[0]).all():  # half of the time, where warps are alike
            one = load_wavefronts(rows[0], on.reshape(-1, 32)[0], width_bytes, cc_major)
            return np.full(addresses.shape[:-1], one)
    found, _ = wavefronts(addresses, on, width_bytes, cc_major)
    return np.asarray(np.maximum(found, _tag_passes(in_order(addresses, on))))


def word_load_wavefronts(ordered: Array) -> Array:
    """Return the same passes of loads of a word, from compute capability 2.0 on.

    Addresses are in order, shaped (warps, 32), NOWHERE for lanes that are off.
    """
    row, words = _different(ordered, WORD_BITS)
    return np.maximum(_fullest(row, words % BANKS, len(ordered), BANKS), _tag_passes(ordered))


def _tag_passes(ordered: Array) -> Array:
    """Return, per warp, the number of its lines in the fullest bank of tags."""
    row, different = _different(ordered, LINE_BITS)
    is_first = np.ones(len(row), dtype=bool)
    is_first[1:] = row[1:] != row[:-1]
    first = different[is_first][np.cumsum(is_first) - 1]
    warps = ordered.shape[:-1]
    most = _fullest(row, _folded(different - first), math.prod(warps), TAG_BANKS)
    return most.reshape(warps)


def _folded(lines: Array) -> Array:
    """Return the exclusive or of the pairs of bits of each number."""
    for shift in (32, 16, 8, 4, 2):
        lines = lines ^ lines >> shift
    return np.asarray(lines % TAG_BANKS)


def shared_atomic_wavefronts(addresses: Array, on: Array, *, by_word: bool = False) -> Array:
    """Return, per warp, an atomic's wavefronts on shared memory: the lanes of the fullest bank.

    Where it goes `by_word`, lanes of one word are served at once (times of ATOMS.ADD and
    ATOMS.POPC.INC on an H200, 1 to 32 words of a bank and 1 to 32 lanes of a word).
    """
    if by_word:
        return wavefronts(addresses, on)[0]
    return same_address_lanes(banks(addresses), on)


def same_address_lanes(addresses: Array, on: Array) -> Array:
    """Return, per warp, the most lanes of one address: an atomic serves them one by one.

    In order, lanes of one address stand side by side: each as far from the first as there are.
    """
    addresses, on = np.broadcast_arrays(addresses, on)
    place = np.arange(32, dtype=np.int8)
    first = _first_of_runs(_sorted(addresses, on, NOWHERE + place))
    most = np.array(lanes_in(on) > 0, dtype=np.int64)
    shared = np.asarray(lanes_in(first) < 32)  # most warps have an address for each lane
    if shared.any():
        runs = first[shared]
        behind = place - np.maximum.accumulate(np.where(runs, place, np.int8(0)), axis=-1)
        most[shared] = behind.max(-1) + np.int64(1)
    return most


def atomic_passes(addresses: Array, on: Array) -> Array:
    """Return the passes of each warp's atomic on global memory: lanes of a word one by one.

    Words of a sector are served together, sectors one after the other (rates of patterns on an
    H200, with 1 to 32 words in 1 to 32 sectors).
    """
    addresses, on = np.broadcast_arrays(addresses, on)
    ordered = in_order(addresses, on)
    is_first = _first_of_runs(ordered) & (ordered < NOWHERE)
    at = np.flatnonzero(is_first)  # words of each warp
    row, sector = at // 32, ordered.reshape(-1)[at] // SECTOR_BYTES
    ends = np.minimum(np.append(at[1:], 2**62), row * 32 + lanes_in(on).reshape(-1)[row])
    is_sector = np.ones(len(at), dtype=bool)
    is_sector[1:] = (sector[1:] != sector[:-1]) | (row[1:] != row[:-1])
    begins = np.flatnonzero(is_sector)
    most = np.maximum.reduceat(ends - at, begins) if len(begins) else begins
    passes = np.bincount(row[begins], weights=most, minlength=math.prod(on.shape[:-1]))
    return np.asarray(passes.astype(np.int64).reshape(on.shape[:-1]))


def marked(marks: Array) -> Iterator[slice]:
    """Yield the parts of an array of marks, a byte for each sector, that have one.

    The operating system allocates only pages that are written to: others are left alone.
    """
    for begin in range(0, len(marks), MARKS_AT_ONCE):
        part = slice(begin, begin + MARKS_AT_ONCE)
        if marks[part].any():
            yield part
