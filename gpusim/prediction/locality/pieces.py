"""Pieces of memory that sampled blocks touch: sectors, DRAM grains or lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.streams.ordering import stable_order
from gpusim.prediction.streams.stretches import Stretches
from gpusim.typing import Array

MOST_ITERATIONS = 64  # iterations of a loop with sectors of their own, by sampled block
_BLOCK_BITS, _PC_BITS = 6, 16  # of a key; sector numbers have 41
_BELOW_PIECE = _BLOCK_BITS + _PC_BITS
_FAR = 1 << 40  # above all sectors
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Pieces:
    """Pieces touched by up to 64 sampled blocks, once for each instruction of each block.

    A key is a piece, then an instruction as its place in `pcs`, then a block, counted from 0, in
    one integer: sorted, it takes a tenth of the time of three columns. `keys` are in order.
    """

    blocks: int
    pcs: Array
    keys: Array

    @property
    def piece(self) -> Array:
        """The piece of each key."""
        return np.asarray(self.keys >> _BELOW_PIECE)

    @property
    def pc(self) -> Array:
        """The instruction of each key."""
        return np.asarray(self.pcs[self._place])

    @property
    def block(self) -> Array:
        """The block of each key."""
        return np.asarray(self.keys & (1 << _BLOCK_BITS) - 1)

    @property
    def by_block(self) -> Array:
        """The order of the keys by block, of these by instruction, then by piece."""
        return stable_order(self.block * len(self.pcs) + self._place)

    @cached_property
    def _place(self) -> Array:
        place = self.keys >> _BLOCK_BITS & (1 << _PC_BITS) - 1
        return np.asarray(place.astype(np.min_scalar_type(len(self.pcs))))

    def at(self, which: Array) -> Pieces:
        """Return some of the pieces."""
        return Pieces(self.blocks, self.pcs, self.keys[which])

    def of_size(self, size: int) -> Pieces:
        """Merge sectors into pieces of `size` bytes, a multiple of the sector size."""
        if size == SECTOR_BYTES:
            return self
        below = self.keys & (1 << _BELOW_PIECE) - 1
        piece = self.piece // (size // SECTOR_BYTES)
        return Pieces(self.blocks, self.pcs, _distinct(piece << _BELOW_PIECE | below))

    def by_pcs(self, pcs: Array) -> Array:
        """Return the keys of some instructions, as a mask."""
        return np.asarray(np.isin(self.pcs, pcs)[self._place])

    def once(self) -> Pieces:
        """Return each piece once for each block, by the first instruction that touches it."""
        below = self.block << _PC_BITS | self._place
        others = _distinct(self.keys & ~((1 << _BELOW_PIECE) - 1) | below)
        others = others[np.diff(others >> _PC_BITS, prepend=-1) != 0]
        place, block = others & (1 << _PC_BITS) - 1, others >> _PC_BITS & (1 << _BLOCK_BITS) - 1
        keys = others >> _BELOW_PIECE << _BELOW_PIECE | place << _BLOCK_BITS | block
        return Pieces(self.blocks, self.pcs, np.sort(keys, kind="stable"))

    @cached_property
    def counts(self) -> tuple[Array, Array]:
        """The distinct pieces, and the number of sampled blocks that touch each."""
        first = self._first
        if not len(first):
            return first, first
        touching = np.bitwise_or.reduceat(np.uint64(1) << self.block.astype(np.uint64), first)
        return self.piece[first], np.bitwise_count(touching).astype(np.int64)

    @cached_property
    def _first(self) -> Array:
        """Where the keys of each distinct piece begin."""
        return np.flatnonzero(np.diff(self.piece, prepend=-1))

    def touching(self, pieces: Array) -> Array:
        """Return the number of sampled blocks that touch each of some pieces."""
        values, counts = self.counts
        if not len(values):
            return np.zeros(len(pieces), dtype=np.int64)
        at = np.minimum(np.searchsorted(values, pieces), len(values) - 1)
        return np.where(values[at] == pieces, counts[at], 0)

    @cached_property
    def in_others(self) -> Mapping[int, Array]:
        """By instruction, the histogram of its pieces by number of other touching blocks.

        Each piece counts once for each block that touches it by this instruction.
        """
        others = np.repeat(self.counts[1], np.diff(np.append(self._first, len(self.keys)))) - 1
        size = self.blocks + 1
        table = np.bincount(self._place * np.int64(size) + others, minlength=len(self.pcs) * size)
        return dict(zip(self.pcs.tolist(), table.reshape(-1, size), strict=True))

    @cached_property
    def extents(self) -> Mapping[int, int]:
        """By instruction, the number of pieces from its first one to its last."""
        low, high = np.zeros((2, len(self.pcs)), dtype=np.int64)
        piece = self.piece
        high[self._place] = piece  # the last one counts
        low[self._place[::-1]] = piece[::-1]
        return dict(zip(self.pcs.tolist(), (high - low + 1).tolist(), strict=True))

    @cached_property
    def different(self) -> Mapping[int, int]:
        """By instruction, the number of its distinct pieces."""
        is_new = np.diff(self.keys >> _BLOCK_BITS, prepend=-1) != 0
        counts = np.bincount(self._place[is_new], minlength=len(self.pcs))
        return dict(zip(self.pcs.tolist(), counts.tolist(), strict=True))


def pieces_of(single: Mapping[int, Stretches], blocks: tuple[int, ...]) -> Pieces:
    """Return the sectors touched by blocks."""
    found = [single[block] for block in blocks]
    pcs = numbers_of(one.pc for one in found)
    place = np.zeros(1 + max(pcs.tolist(), default=0), dtype=np.int64)
    place[pcs] = np.arange(len(pcs))
    keys = [_keys(one, place[one.pc]) | block for block, one in enumerate(found)]
    return Pieces(len(blocks), pcs, _distinct(np.concatenate([_NONE, *keys])))


def _keys(rows: Stretches, place: Array) -> Array:
    """Return the distinct keys of a block's sectors, by stretch with the `place` of its pc."""
    row, sectors = sectors_of(rows)
    lowest, bits = int(sectors.min(initial=_FAR)), int(place.max(initial=0)).bit_length()
    keys = (sectors - lowest) << bits | place[row]
    keys = keys[stable_order(keys)]  # a third of the time of a sort
    keys = keys[np.diff(keys, prepend=-1) != 0]
    piece, place = (keys >> bits) + lowest, keys & (1 << bits) - 1
    return np.asarray(piece << _BELOW_PIECE | place << _BLOCK_BITS)


def numbers_of(columns: Iterable[Array]) -> Array:
    """Return the distinct values of several columns, in order: of small numbers from 0 on."""
    counts = [np.bincount(column) for column in columns]
    are_there = np.zeros(max(map(len, counts), default=0), dtype=bool)
    for one in counts:
        are_there[: len(one)] |= one > 0
    return np.flatnonzero(are_there)


def different_sectors(found: Iterable[Stretches]) -> Array:
    """Return the distinct sectors of stretches, with the first iterations of loops."""
    sectors = (_distinct(sectors_of(one)[1]) for one in found)
    return _distinct(np.concatenate([_NONE, *sectors]))


def sectors_of(rows: Stretches) -> tuple[Array, Array]:
    """Return the rows of sectors of stretches, with the first iterations of loops, and these."""
    first = rows.begin // SECTOR_BYTES
    row, place = _repeated((rows.end - 1) // SECTOR_BYTES - first + 1)
    sectors = first[row] + place
    times = np.minimum(rows.times, MOST_ITERATIONS)
    if not times.any():
        return row, sectors
    one, iteration = _repeated(1 + times[row])
    row = row[one]
    return row, sectors[one] + iteration * (rows.stride[row] // SECTOR_BYTES)


def _repeated(counts: Array) -> tuple[Array, Array]:
    """Return the place of each element `counts` times, and the number of each of these times."""
    ends = np.cumsum(counts)
    number = np.repeat(np.arange(len(counts)), counts)
    return number, np.arange(len(number)) - np.repeat(ends - counts, counts)


def _distinct(keys: Array) -> Array:
    """Return distinct numbers in order: merged in a third of a quicksort's time, if in runs.

    Of numbers that are nearly in order it takes no longer than to find those that are not.
    """
    keys = np.sort(keys, kind="stable")
    return np.asarray(keys[np.diff(keys, prepend=-1) != 0])
