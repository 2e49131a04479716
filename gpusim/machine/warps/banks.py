"""Wavefronts of an access to shared memory: the words that lanes name in one bank, one by one."""

from __future__ import annotations

from gpusim.machine.warps.state import ALL_LANES
from gpusim.machine.warps.vectors import in_pairs, is_free, rising, wavefronts_of
from gpusim.wasm.integers import trailing_zeros
from gpusim.wasm.memory import i64, u32

BANKS = 32
_ONE = 1 << 32 | 1


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
