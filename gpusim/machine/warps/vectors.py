"""Vector code of `compiled/runtime.wat`, for all lanes of a warp at once: as CPython runs it.

These functions define its results. Operands lie at `IN`, lane by lane.
"""

from __future__ import annotations

import numpy as np

from gpusim.machine.warps.state import IN, OPERAND_BYTES
from gpusim.typing import Array
from gpusim.wasm.memory import held, i32, u32
from gpusim.wasm.sources import external

SECTOR_BITS = 5
_u4, _i4, _i8 = (np.dtype(name) for name in ("<u4", "<i4", "<i8"))
_LANES = np.arange(32)
_NEXT, _NEXT_WIDE = 4 * np.arange(32, dtype=_i4), 4 * np.arange(32, dtype=_i8)
_AWAY = {1: np.subtract, 2: np.add, 3: np.bitwise_xor}  # by the mode of a shuffle


def _words(at: int, dtype: np.dtype[np.generic] = _u4, count: int = 32) -> Array:
    return np.ndarray((count,), dtype, held(), at)


def _bits(lanes: Array) -> int:
    return int.from_bytes(np.packbits(lanes, bitorder="little"), "little")


def _mask(bits: int) -> Array:
    return (bits >> _LANES & 1).astype(bool)


# -- wavefronts ------------------------------------------------------------------------------


@external("rising")
def rising(by: u32) -> bool:
    """Whether addresses rise by 4 from lane to lane, or (0) are all the same."""
    addresses = _words(IN)
    return bool((addresses - addresses[0] == (_LANES * by).astype(_u4)).all())


@external("is_free")
def is_free(lane: u32, end: u32, shift: u32, banks: u32) -> bool:
    """Whether lanes from one to before `end` do not name two words of one bank.

    Of several words a lane, each has as many banks beside each other: `shift` and `banks` count
    in such words.
    """
    words = _words(IN)[lane:end] >> np.uint32(shift)
    last = np.empty(banks + 1, _u4)
    last[words & banks] = words
    return bool((last[words & banks] == words).all())


@external("in_pairs")
def in_pairs(on: u32, apart: u32) -> bool:
    """Whether pairs of lanes, `apart` from each other, access one word, or one of them is off."""
    first = _LANES[_LANES & apart == 0]
    lanes, addresses = _mask(on), _words(IN)
    same = addresses[first] == addresses[first + apart]
    return bool((same | ~(lanes[first] & lanes[first + apart])).all())


@external("wavefronts_of")
def wavefronts_of(on: u32, words: u32, first: u32, end: u32) -> u32:
    """Return the wavefronts of some lanes: the most words of a bank.

    Translated, a loop over the lanes takes 1.1 to 1.5 times as long: 166 ns for random words, not
    109.
    """
    begin = _words(IN)[first:end][_mask(on)[first:end]] >> np.uint32(2)
    every = np.unique(begin[:, None] + np.arange(words, dtype=_u4))
    return int(np.bincount(every & 31).max(initial=0))


# -- distances of addresses ------------------------------------------------------------------


@external("look_wide")
def look_wide(slot: u32) -> None:
    """Keep the distances of global addresses from the first lane's (`accesses.Distances`)."""
    addresses, kept = _words(IN, _i8), _words(slot, _i8)
    apart = addresses - addresses[0]
    if (apart == kept).all():
        return
    kept[:] = apart
    kind = 1 if (apart == _NEXT_WIDE).all() else 2 * bool(apart.any())
    _words(slot + 264, _u4, 2)[:] = 0xFFFFFFFF, kind
    _words(slot + 272, _i8, 3)[:] = apart.min(), apart.max(), np.bitwise_or.reduce(apart)
    _words(slot + 304, _u4, 1)[:] = 0


@external("look")
def look(slot: u32) -> None:
    """Keep the distances of addresses in memory of a block or thread (`accesses.OwnDistances`)."""
    addresses, kept = _words(IN, _i4), _words(slot, _i4)
    apart = addresses - addresses[0]
    if (apart == kept).all():
        return
    kept[:] = apart
    kind = 1 if (apart == _NEXT).all() else 2 * bool(apart.any())
    _words(slot + 132, _i4, 4)[:] = kind, apart.min(), apart.max(), np.bitwise_or.reduce(apart)
    _words(slot + 152, _i8, 1)[:] = -1


@external("firsts")
def firsts(on: u32, slot: u32) -> u32:
    """Return the lanes with the first access to a sector."""
    addresses, kept = _words(IN, _i8), _words(slot + 256, _u4, 3)
    within = int(addresses[0]) & (1 << SECTOR_BITS) - 1
    if kept[2] == within and kept[0] == on:
        return int(kept[1])
    sectors = addresses >> SECTOR_BITS
    rises = np.ones(32, bool)
    rises[1:] = sectors[1:] != sectors[:-1]
    if (sectors[1:] < sectors[:-1]).any():
        lanes = np.flatnonzero(_mask(on))
        rises[:] = False
        rises[lanes[np.unique(sectors[lanes], return_index=True)[1]]] = True
    kept[:] = on, _bits(rises), within
    return int(kept[1])


# -- operations among lanes ------------------------------------------------------------------


@external("are_all")
def are_all(on: u32) -> bool:
    """Whether all lanes run, and name all lanes of the warp in their first operand."""
    return on == 0xFFFFFFFF and bool((_words(IN) == 0xFFFFFFFF).all())


@external("below")
def below(one: u32, other: u32, more: i32) -> u32:
    """Return the lanes where the number at an address, plus `more`, is below the other's."""
    return _bits(_words(one, _i4) + np.uint32(more & 0xFFFFFFFF).view(_i4) < _words(other, _i4))


@external("splat")
def splat(out: u32, value: u32) -> None:
    """Set all lanes of a result."""
    _words(out)[:] = value


@external("shuffle")
def shuffle(on: u32, mode: u32, first: u32, out: u32) -> u32:
    """Shuffle words; return the lanes with a source inside their segment.

    The operands value, lane and limits lie at `first`. The modes are idx, up, down and bfly.
    """
    value = _words(first)
    lane = _words(first + OPERAND_BYTES, _i4) & 31
    last = _words(first + 2 * OPERAND_BYTES, _i4)
    segment = last >> 8 & 31
    last = _LANES & segment | last & 31 & ~segment
    source = _LANES & segment | lane & ~segment if mode == 0 else _AWAY[mode](_LANES, lane)
    inside = source >= last if mode == 1 else source <= last
    source = np.where(inside, source, _LANES)
    lanes = _mask(on)
    _words(out)[:] = np.where(lanes[source], value[source], 0)
    return _bits(inside & lanes)


@external("match")
def match(on: u32, first: u32, words: u32, out: u32) -> u32:
    """Give each lane the lanes with its value, of some words; return -1 if all have one, else 0."""
    lanes = np.flatnonzero(_mask(on))
    values = np.stack([_words(first + OPERAND_BYTES * word)[lanes] for word in range(words)])
    same = (values[:, :, None] == values[:, None, :]).all(axis=0)
    _words(out)[lanes] = (same << lanes.astype(np.int64)).sum(axis=1)
    return 0xFFFFFFFF if same.all() else 0


FUNCTIONS = (
    rising, is_free, in_pairs, wavefronts_of, look_wide, look, firsts, are_all, below, splat,
    shuffle, match,
)  # fmt: skip
