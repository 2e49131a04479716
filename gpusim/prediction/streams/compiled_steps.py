"""Streams of blocks whose steps come from compiled code as columns, in the order of each warp."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.isa.ops import OPS, Instruction
from gpusim.launch.events import Accesses, Placement, Steps
from gpusim.launch.prepared import Prepared
from gpusim.prediction.streams.constants import looked_up_lines
from gpusim.prediction.streams.executed import TYPES, Executed
from gpusim.prediction.streams.folding import folded
from gpusim.prediction.streams.local_rows import LocalRows
from gpusim.prediction.streams.stream import BlockStream
from gpusim.prediction.streams.touches import Touches, joined

Array = np.ndarray[Any, Any]
MOST_AT_ONCE = 1 << 17  # instructions; above it sorting leaves the cache


@dataclass(frozen=True)
class KindsByPc:
    """What a program's instructions are, by pc: what the columns of an access mean.

    `are_loads` load from global memory; `touch` instructions have sectors that may be touched
    anew, of which `are_stores` write and `are_local` ones lie in local memory, with some of them
    twice. `behind_l1` access memory there, `are_global_atomics` update it and `add_up` lanes on one
    address; `are_looked_up` load constants, from `banks`; `are_barriers` wait for other warps or
    let them go on.
    """

    local: LocalRows
    are_loads: Array
    touch: Array
    are_stores: Array
    are_local: Array
    are_local_without_rows: Array
    are_global: Array
    add_up: Array
    are_looked_up: Array
    are_barriers: Array
    instructions: Sequence[Instruction]

    @classmethod
    def of(cls, prepared: Prepared, local: LocalRows, *, adds_up: bool) -> KindsByPc:
        """Return the kinds of a program's instructions."""
        rows = prepared.program.instructions
        kinds = [OPS[row.op].kind for row in rows]
        spaces = ["" if row.memory is None else row.memory.space for row in rows]
        kind, space = np.array(kinds), np.array(spaces)
        is_integer = np.array([r.memory is not None and r.memory.dtype.kind in "iu" for r in rows])
        is_load = np.array([row.is_load for row in rows])
        behind, own = space == "global", space == "local"
        plain = behind & np.isin(kind, ("load", "store"))
        return cls(
            local=local,
            are_loads=plain & is_load,
            touch=plain | (own & ~is_load & local.has),
            are_stores=kind == "store",
            are_local=own,
            are_local_without_rows=own & (not local.has),
            are_global=behind,
            add_up=behind & (kind == "atomic") & is_integer & adds_up,
            are_looked_up=np.array(
                [k == "bank" and bool(r.src) for k, r in zip(kinds, rows, strict=True)]
            ),
            are_barriers=np.isin(kind, ("barrier", "named_barrier", "arrive")),
            instructions=rows,
        )


def compiled_streams(
    before: Executed,
    touches: Touches,
    stored: Touches,
    compiled: Sequence[Steps],
    kinds: KindsByPc,
    *,
    folds: bool,
) -> list[BlockStream]:
    """Return the streams of a batch's blocks, from what they did before and in compiled code.

    With `folds`, what repeats is stored once.
    """
    streams: list[BlockStream] = []
    known: dict[bytes, BlockStream] = {}
    for part in _parts(before, touches, stored, compiled, kinds):
        executed = part.executed
        columns = executed.columns(
            executed.in_order(part.touches), executed.in_order(part.stored), kinds.are_loads
        )
        made = executed.streams(columns, lambda _, places: [[] for _ in places])
        for one in made:
            if one.key not in known:
                known[one.key] = folded(one, kinds.are_barriers) if folds else one
            streams.append(known[one.key])
    return streams


@dataclass(frozen=True)
class _Part:
    """Instructions of some of the blocks, with their touches: all of them, and of stores."""

    executed: Executed
    touches: Touches
    stored: Touches


def _parts(
    before: Executed,
    touches: Touches,
    stored: Touches,
    compiled: Sequence[Steps],
    kinds: KindsByPc,
) -> Iterator[_Part]:
    """Yield the blocks of a batch, a few at a time."""
    placement, whole = before.placement, _Whole(before, compiled)
    warps, blocks = placement.warps_per_block, len(placement.blocks)
    block = whole.rows // warps
    order = np.argsort(block, kind="stable")
    ends = np.searchsorted(block[order], np.arange(blocks + 1))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    accesses = _sorted(whole.accesses, place)
    begun = 0
    while begun < blocks:
        end = int(np.searchsorted(ends, ends[begun] + MOST_AT_ONCE, side="right")) - 1
        end = min(max(end, begun + 1), blocks)
        here = order[ends[begun] : ends[end]]
        yield _part(whole, before, (touches, stored), accesses, kinds, (begun, end), here, ends)
        begun = end


class _Whole:
    """All steps of a batch, what NumPy ran and what compiled code ran, as columns of one length."""

    def __init__(self, before: Executed, compiled: Sequence[Steps]) -> None:
        self.before = len(before)
        first = before.values
        self.pc = np.concatenate([before.pc, *(s.pc for s in compiled)])
        self.rows = np.concatenate([before.rows, *(s.row for s in compiled)])
        self.lanes = np.concatenate([first["lanes"][0], *(s.lanes for s in compiled)])
        self.is_on = np.concatenate([first["is_on"][0], *(s.is_on for s in compiled)])
        self.is_taken = np.concatenate([first["is_taken"][0], *(s.is_taken for s in compiled)])
        begins = np.cumsum([len(before), *(len(s.pc) for s in compiled)])
        shifted = [
            s.accesses._replace(at=s.accesses.at + begin)
            for s, begin in zip(compiled, begins[:-1].tolist(), strict=True)
        ]
        self.accesses = Accesses(*map(np.concatenate, zip(*shifted, strict=True)))
        opened = [s.opened + np.array([n, 0]) for s, n in zip(compiled, begins, strict=False)]
        self.opened = np.concatenate(opened)
        compiled_times = times_of(
            before.placement, self.rows[self.before :], self.opened - [self.before, 0], before.clock
        )
        self.times = np.concatenate([before.times, compiled_times])


def times_of(placement: Placement, rows: Array, opened: Array, clock: Array) -> Array:
    """Return how many instructions the warps of `rows` ran before each, `clock` before the first.

    The warps of a block have run equally many when a barrier opens: `opened` are instructions
    before, and the block. Compiled code runs a warp to its next barrier, then the next warp.
    """
    warps, far = placement.warps_per_block, len(rows) + 1
    block = rows // warps
    # Intervals between openings are numbered through all blocks.
    openings = np.sort(opened[:, 1] * far + opened[:, 0])
    starts = np.searchsorted(openings, np.arange(len(placement.blocks) + 1) * far)
    starts += np.arange(len(starts))
    interval = block + np.searchsorted(openings, block * far + np.arange(len(rows)), side="right")
    order = np.lexsort((interval, rows))
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (np.diff(rows[order]) != 0) | (np.diff(interval[order]) != 0)
    begins = np.flatnonzero(is_first)
    counts = np.diff(np.append(begins, len(order)))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order)) - np.repeat(begins, counts)
    firsts = order[begins]
    head = np.where(interval[firsts] == starts[block[firsts]], clock[rows[firsts]], 0)
    longest = np.zeros(int(starts[-1]), dtype=np.int64)
    np.maximum.at(longest, interval[firsts], counts + head)
    np.maximum.at(longest, starts[:-1], clock.reshape(-1, warps).max(axis=1))
    done = np.cumsum(longest) - longest
    done -= np.repeat(done[starts[:-1]], np.diff(starts))
    base = np.where(interval == starts[block], clock[rows], done[interval])
    return np.asarray(base + number)


def _sorted(accesses: Accesses, place: Array) -> Accesses:
    """Return accesses with the places of their steps among those of all blocks, in that order."""
    at = place[accesses.at]
    order = np.argsort(at, kind="stable")
    counts = accesses.runs[order]
    first = (np.cumsum(accesses.runs) - accesses.runs)[order]
    runs = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    columns = [column[order] for column in accesses[1:8]]
    return Accesses(at[order], *columns, *(column[runs] for column in accesses[8:]))


def _part(
    whole: _Whole,
    before: Executed,
    touched: tuple[Touches, Touches],
    accesses: Accesses,
    kinds: KindsByPc,
    blocks: tuple[int, int],
    here: Array,
    ends: Array,
) -> _Part:
    """Return the instructions of blocks from one to another: those at some indices."""
    begun, end = blocks
    first, warps = int(ends[begun]), before.placement.warps_per_block
    placement = Placement(before.placement.blocks[begun:end], warps, folded=False)
    values = {name: np.zeros((1, len(here)), dtype=dtype) for name, dtype in TYPES.items()}
    values["lowest"][:] = values["constant"][:] = -1
    is_before = here < whole.before
    for name in ("cost", "lines", "wavefronts", "lowest", "gaps", "constant"):
        values[name][0, is_before] = before.values[name][0, here[is_before]]
    for name in ("lanes", "is_on", "is_taken"):
        values[name][0] = getattr(whole, name)[here]
    low, high = np.searchsorted(accesses.at, (first, int(ends[end])))
    mine = _of_range(accesses, int(low), int(high), first)
    pc = whole.pc[here]
    _set_accesses(values, mine, pc, kinds)
    rows = whole.rows[here] - begun * warps
    executed = Executed(placement, rows, pc, whole.times[here], values, before.clock[:0])
    made = _touches(mine, executed, kinds)
    is_store = kinds.are_stores[pc[made.place]]
    old = [_moved(one, here, before, (begun, end)) for one in touched]
    return _Part(executed, joined([old[0], made]), joined([old[1], made.at(is_store)]))


def _of_range(accesses: Accesses, low: int, high: int, first: int) -> Accesses:
    """Return a range of accesses, with steps counted from `first` on."""
    run = np.cumsum(accesses.runs[:high])
    begin = int(run[low - 1]) if low else 0
    end = int(run[-1]) if high else 0
    columns = [column[low:high] for column in accesses[:8]]
    made = Accesses(*columns, *(column[begin:end] for column in accesses[8:]))
    return made._replace(at=made.at - first)


def _set_accesses(
    values: dict[str, Array], accesses: Accesses, pcs: Array, kinds: KindsByPc
) -> None:
    """Set the columns of accesses."""
    at, pc = accesses.at, pcs[accesses.at]
    passes = np.where(kinds.add_up[pc] & accesses.is_one, 1, accesses.passes)
    is_within_l1 = kinds.are_local_without_rows[pc]
    values["cost"][0, at] = np.where(is_within_l1, 0, passes)
    values["lines"][0, at] = np.where(is_within_l1, 0, accesses.lines)
    values["wavefronts"][0, at] = accesses.wavefronts
    is_load = kinds.are_loads[pc]
    values["lowest"][0, at] = np.where(is_load, accesses.lowest, -1)
    values["gaps"][0, at] = np.where(is_load, accesses.gaps, 0)
    looked_up = kinds.are_looked_up[pc]
    values["constant"][0, at[looked_up]] = looked_up_lines(
        kinds.instructions, pc[looked_up], accesses.lowest[looked_up]
    )


def _touches(accesses: Accesses, executed: Executed, kinds: KindsByPc) -> Touches:
    """Return the sectors that accesses touch, each once."""
    owner = np.repeat(np.arange(len(accesses.at)), accesses.runs)
    is_local = kinds.are_local[executed.pc[accesses.at]][owner]
    warp = executed.rows[accesses.at][owner] % executed.placement.warps_per_block
    shift = np.where(is_local, kinds.local.begin_of(warp), 0)
    wanted = kinds.touch[executed.pc[accesses.at]][owner]
    begin = ((accesses.first + shift) // SECTOR_BYTES)[wanted]
    counts = ((accesses.last + shift) // SECTOR_BYTES)[wanted] - begin + 1
    place = np.repeat(accesses.at[owner[wanted]], counts)
    sector = np.repeat(begin - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    block = executed.rows[place] // executed.placement.warps_per_block
    made = Touches(block, place, place, sector)
    if not is_local.any():
        return made
    # Words of lanes side by side may be touched twice by one access.
    order = np.lexsort((sector, place))
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (np.diff(place[order]) != 0) | (np.diff(sector[order]) != 0)
    return made.at(order[is_new])


def _moved(touches: Touches, here: Array, before: Executed, blocks: tuple[int, int]) -> Touches:
    """Return the touches of some blocks, with places among their instructions."""
    begun, end = blocks
    mine = touches.at((touches.block >= begun) & (touches.block < end))
    back = np.full(len(before), -1)
    is_before = here < len(before)
    back[here[is_before]] = np.flatnonzero(is_before)
    places = back[mine.place]
    return Touches(mine.block - begun, mine.step, places, mine.sector)
