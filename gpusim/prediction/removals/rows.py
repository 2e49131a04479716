"""Edits of streams that removals share: rows left out, columns changed at some instructions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from gpusim.prediction.streams import WarpStream
from gpusim.prediction.streams.instruction_ids import numbered_columns
from gpusim.prediction.streams.instruction_table import COLUMNS
from gpusim.prediction.streams.stream import Loop
from gpusim.typing import Array


def are_at(stream: WarpStream, pcs: Iterable[int]) -> Array:
    """Return a mask of the rows of a stream that run some instructions."""
    return np.isin(stream.pc, np.fromiter(pcs, dtype=stream.pc.dtype))


def without(stream: WarpStream, left_out: Array) -> WarpStream:
    """Return a stream without some rows; an emptied loop is gone."""
    if not left_out.any():
        return stream
    kept = ~left_out
    before = np.concatenate([[0], np.cumsum(kept)]).tolist()
    loops = [Loop(before[a], before[b], times) for a, b, times in stream.loops]
    return stream.at(kept, tuple(loop for loop in loops if loop.end > loop.first))


def repeated(stream: WarpStream, counts: Array) -> WarpStream:
    """Return a stream with each row as often as a count says, its copies one after the other."""
    before = np.concatenate([[0], np.cumsum(counts)]).tolist()
    loops = [Loop(before[a], before[b], times) for a, b, times in stream.loops]
    return stream.at(np.repeat(np.arange(len(stream)), counts), tuple(loops))


def with_columns(stream: WarpStream, where: Array, **columns: Array) -> WarpStream:
    """Return a stream with other values in some columns, where a mask says so."""
    if not where.any():
        return stream
    made = {name: stream.taken(name) for name in COLUMNS}
    for name, values in columns.items():
        made[name] = np.where(where, values, made[name]).astype(made[name].dtype)
    table, numbers = numbered_columns(made)
    return replace(stream, table=table, numbers=numbers)
