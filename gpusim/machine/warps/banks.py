"""Wavefronts of an access to shared memory: the words that lanes name in one bank, one by one."""

from __future__ import annotations

from gpusim.machine.warps.state import ALL_LANES, IN, SCRATCH, WORDS, Byte, Long, Word
from gpusim.wasm.integers import as_u32, trailing_zeros
from gpusim.wasm.memory import i64, u32
from gpusim.wasm.sources import external

BANKS, BANK_BYTES = 32, 256  # of a bank's words, while they are counted
_ONE = 1 << 32 | 1


# Vector code of `compiled/runtime.wat`: these bodies define its results.


@external("rising")
def rising(by: u32) -> bool:
    """Whether addresses rise by 4 from lane to lane, or (0) are all the same."""
    first = Word(IN).value
    return all(Word(IN + 4 * lane).value == as_u32(first + by * lane) for lane in range(32))


@external("is_free")
def is_free(lane: u32, end: u32, shift: u32, banks: u32) -> bool:
    """Whether lanes from one to before `end` do not name two words of one bank.

    Of several words a lane, each has as many banks beside each other: `shift` and `banks` count
    in such words.
    """
    words = {Word(IN + 4 * one).value >> shift for one in range(lane, end)}
    return len({word & banks for word in words}) == len(words)


@external("in_pairs")
def in_pairs(on: u32, apart: u32) -> bool:
    """Whether pairs of lanes, `apart` from each other, access one word, or one of them is off."""
    pairs = [(lane, lane + apart) for lane in range(32) if not lane & apart]
    return all(
        Word(IN + 4 * a).value == Word(IN + 4 * b).value
        for a, b in pairs
        if on >> a & 1 and on >> b & 1
    )


@external("wavefronts_of")
def wavefronts_of(on: u32, words: u32, first: u32, end: u32) -> u32:
    """Return the wavefronts of some lanes: the most words of a bank.

    Translated, this body takes 1.1 to 1.5 times as long: 166 ns for random words, not 109.
    """
    for part in range(BANKS // 8):
        Long(SCRATCH + 8 * part).value = 0
    most = 0
    left = on & (1 << end) - (1 << first)
    while left:
        word = Word(IN + 4 * trailing_zeros(left)).value >> 2
        behind = word + words
        while word < behind:
            bank = word & BANKS - 1
            count = Byte(SCRATCH + bank)
            at = WORDS + BANK_BYTES * bank
            new = at + 4 * count.value
            while at < new and Word(at).value != word:
                at += 4
            if at == new:
                Word(at).value = word
                count.value += 1
                most = max(most, count.value)
            word += 1
        left = left & (left - 1)
    return most


def wavefronts(on: u32, words: u32, pairs: u32) -> i64:
    """Return the wavefronts of an access, and in the upper half the least that it could take.

    Lanes have that many words each, those that are off the address of another; `pairs` where a
    load's parts may be twice as large.
    """
    if on == 0:
        return 0
    lanes = 32
    if words == 1:
        if on == ALL_LANES and (rising(4) or rising(0)):
            return _ONE
        if is_free(0, 32, 2, BANKS - 1):
            return _ONE
    else:
        lanes = 32 // words
        if pairs and (in_pairs(on, 1) or in_pairs(on, 2)):
            lanes *= 2
        parts = _free_parts(words, lanes) if on == ALL_LANES else 0
        if parts:
            return parts | parts << 32
    taken = least = first = 0
    while first < 32:
        most = wavefronts_of(on, words, first, first + lanes)
        taken += most
        least += most != 0
        first += lanes
    return taken | least << 32


def _free_parts(words: u32, lanes: int) -> int:
    """Return the number of parts of a whole warp, 0 if one takes more than one wavefront."""
    shift = 2 + trailing_zeros(words)
    parts = first = 0
    while first < 32:
        if not is_free(first, first + lanes, shift, BANKS // words - 1):
            return 0
        parts += 1
        first += lanes
    return parts
