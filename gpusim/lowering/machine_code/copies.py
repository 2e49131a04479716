"""Parallel copies: the copies at the end of a block happen all at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Copy:
    """One register copied to another; `line` is the source line it belongs to."""

    dst: int
    src: int
    line: int
