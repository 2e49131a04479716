"""Lazy copies of memory, page by page, on first access.

A few blocks of a grid access few of its pages: a full copy of a launch's writable arrays takes
as long, and as much memory, as all the rest of a prediction.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator

import numpy as np

from gpusim.typing import Array

PAGE_BYTES = 4096


class PagedCopy:
    """A lazy copy of memory: zeros, until its pages are filled from the `original`.

    One that `is_filled` is a copy at once, in memory that is faster to fill as a whole.
    """

    def __init__(self, original: Array, *, is_filled: bool = False) -> None:
        self.bytes = original.copy() if is_filled else _zeros(original.size)
        self._original = original
        self._is_filled = np.full(-(-original.size // PAGE_BYTES), is_filled)

    def fill_all(self) -> None:
        """Fill all pages that are not yet filled."""
        if not self._is_filled.any():
            self.bytes[:] = self._original
            self._is_filled[:] = True
            return
        self.fill(np.arange(0, self.bytes.size, PAGE_BYTES), 1)

    def fill(self, begin: Array, size: int) -> None:
        """Fill the pages of `size` bytes after each place."""
        for place in (begin, begin + (size - 1)):
            page = place // PAGE_BYTES
            for missing in np.unique(page[~self._is_filled[page]]).tolist():
                here = slice(missing * PAGE_BYTES, (missing + 1) * PAGE_BYTES)
                self.bytes[here] = self._original[here]
                self._is_filled[missing] = True

    def copy_to(self, target: Array, begin: int) -> None:
        """Copy bytes from a place on, without filling pages."""
        end = begin + len(target)
        first = begin // PAGE_BYTES
        filled = self._is_filled[first : -(-end // PAGE_BYTES)]
        if filled.all():
            target[:] = self.bytes[begin:end]
            return
        target[:] = self._original[begin:end]
        for low, high in runs(filled):
            here = slice(
                max((first + low) * PAGE_BYTES, begin), min((first + high) * PAGE_BYTES, end)
            )
            target[here.start - begin : here.stop - begin] = self.bytes[here]

    def copy_from(self, source: Array, begin: int) -> None:
        """Set bytes from a place on."""
        end = begin + len(source)
        if not len(source):
            return
        self.fill(np.array([begin, end - 1]), 1)
        self.bytes[begin:end] = source
        self._is_filled[begin // PAGE_BYTES : (end - 1) // PAGE_BYTES + 1] = True


def runs(chosen: Array) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each run of true elements in a mask."""
    ends = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).tolist()
    yield from zip(ends[::2], ends[1::2], strict=True)


def _zeros(size: int) -> Array:
    """Return bytes that take memory where they are touched: pages of 4 KB, not of 2 MB."""
    held = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with contextlib.suppress(OSError):  # a system that has no large pages
            held.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(held, dtype=np.uint8)
