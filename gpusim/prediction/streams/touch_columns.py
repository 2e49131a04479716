"""Touches of a batch as columns, in order of blocks and times, with adjacent ones merged.

A touch is of one warp; the stretches of a block are those of all its warps at one time. Columns are
narrow: many touches are held at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.typing import Array

MOST_TOGETHER = 1 << 18  # touches of several blocks put in order at a time
_TYPES: dict[str, np.dtype[Any]] = {"block": np.dtype(np.int16), "begin": np.dtype(np.int64)}
_USUAL = np.dtype(np.int32)  # of all others


@dataclass(frozen=True)
class TouchColumns:
    """Touches in columns of one length.

    Each is of a `block`, by its position in the batch, by the instruction `pc` after `time` others
    of its warp: of `size` bytes from `begin` on, of which lanes `asked` for some.
    """

    block: Array
    pc: Array
    time: Array
    begin: Array
    size: Array
    asked: Array

    def __len__(self) -> int:
        return len(self.pc)

    @classmethod
    def joined(cls, parts: Sequence[TouchColumns]) -> TouchColumns:
        """Return touches one after the other."""
        return cls(**{name: _joined(name, [getattr(one, name) for one in parts]) for name in NAMES})

    @classmethod
    def narrow(cls, **columns: Array) -> TouchColumns:
        """Return touches of columns of any type."""
        return cls(**{name: columns[name].astype(type_of(name), copy=False) for name in NAMES})

    def at(self, which: Array | slice) -> TouchColumns:
        """Return some of the rows."""
        return TouchColumns(**{name: getattr(self, name)[which] for name in NAMES})


NAMES = tuple(field.name for field in fields(TouchColumns))


def type_of(name: str) -> np.dtype[Any]:
    """Return the type of a column."""
    return _TYPES.get(name, _USUAL)


def _joined(name: str, columns: Sequence[Array]) -> Array:
    if len(columns) == 1:
        return columns[0]
    return np.concatenate([np.zeros(0, dtype=type_of(name)), *columns])


def by_block(touches: TouchColumns, blocks: int) -> Iterator[TouchColumns]:
    """Yield the touches of each block in order, merged; many of them for some blocks at a time."""
    begin = 0
    ends = np.cumsum(np.bincount(touches.block, minlength=blocks))
    order = None
    if ends[-1] > MOST_TOGETHER and (touches.block[1:] < touches.block[:-1]).any():
        order = np.argsort(touches.block, kind="stable")  # counted: of 16 bits
    while begin < blocks:
        before = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, before + MOST_TOGETHER, side="right"))
        end = min(max(end, begin + 1), blocks)
        mine: Array | slice = slice(before, int(ends[end - 1]))
        found = _merged(touches.at(mine if order is None else order[mine]))
        at = np.searchsorted(found.block, np.arange(begin, end + 1))
        for first, last in zip(at.tolist(), at[1:].tolist(), strict=False):
            yield found.at(slice(first, last))
        begin = end


def _merged(touches: TouchColumns) -> TouchColumns:
    """Return touches in order of blocks, times, instructions and addresses; adjacent ones merged.

    Those of a warp are in order already, so that NumPy merges the warps of a block.
    """
    if not len(touches):
        return touches
    key = touches.block * (int(touches.time.max()) + np.int64(1)) + touches.time
    key *= int(touches.pc.max()) + 1
    key += touches.pc
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        touches, key = touches.at(order), key[order]
    is_first = np.ones(len(key), dtype=bool)
    is_first[1:] = key[1:] != key[:-1]
    del key
    if is_first.all():
        return touches
    touches = _by_address(touches, is_first)
    begin, end = touches.begin, touches.begin + touches.size
    is_first[1:] |= begin[1:] - _reach(end, is_first)[:-1] >= SECTOR_BYTES
    first = np.flatnonzero(is_first)
    if len(first) == len(begin):
        return touches
    made = touches.at(first)
    size = np.maximum.reduceat(end, first) - made.begin
    asked = np.add.reduceat(touches.asked, first)
    return TouchColumns.narrow(**vars(made) | {"size": size, "asked": asked})


def _by_address(touches: TouchColumns, is_first: Array) -> TouchColumns:
    """Return touches with those of each group, from a first one on, in order of address."""
    begin = touches.begin
    is_lower = ~is_first[1:] & (begin[1:] < begin[:-1])
    if not is_lower.any():
        return touches
    group = np.cumsum(is_first) - 1
    is_mixed = np.zeros(int(group[-1]) + 1, dtype=bool)
    is_mixed[group[1:][is_lower]] = True
    rows = np.flatnonzero(is_mixed[group])
    group = group[rows]
    apart = begin[rows] - np.minimum.reduceat(begin, np.flatnonzero(is_first))[group]
    bits = int(apart.max()).bit_length()
    if bits + int(group[-1]).bit_length() < 63:  # one key: a third of the time of two
        order = np.argsort(group << bits | apart, kind="stable")
    else:
        order = np.lexsort((apart, group))
    which = np.arange(len(begin))
    which[rows] = rows[order]
    size, asked = touches.size[which], touches.asked[which]
    return replace(touches, begin=begin[which], size=size, asked=asked)


def _reach(end: Array, is_first: Array) -> Array:
    """Return the greatest end so far, of each group that begins at a first one."""
    if (is_first[1:] | (end[1:] >= end[:-1])).all():
        return end
    group = np.cumsum(is_first)
    lowest = int(end.min())
    bits = (int(end.max()) - lowest).bit_length()
    if bits + int(group[-1]).bit_length() < 63:  # one key: a quarter of the time
        reached = np.maximum.accumulate(group << bits | (end - lowest))
        return np.asarray((reached & (1 << bits) - 1) + lowest)
    longest = int(np.diff(np.flatnonzero(is_first), append=len(end)).max())
    end = end.copy()
    for back in (1 << bit for bit in range((longest - 1).bit_length())):
        same = group[back:] == group[:-back]
        end[back:] = np.where(same, np.maximum(end[back:], end[:-back]), end[back:])
    return end
