"""Warps without barriers, divergence, or rounds without work."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gpusim import machine
from gpusim.isa.ops import OPS, Program
from gpusim.launch.events import Observer, Ran, Step
from gpusim.launch.grid import WARP_SIZE, Launch
from gpusim.prediction.removals.registry import mechanism
from gpusim.prediction.removals.rows import are_at, without
from gpusim.prediction.setting import Setting
from gpusim.prediction.streams import BlockStream, WarpStream, without_results
from gpusim.program.decisions import deciding_lines
from gpusim.typing import Array


@mechanism("barriers")
def barriers(setting: Setting, pcs: frozenset[int]) -> Setting:
    """No warp stops at its barriers."""
    rows = setting.prepared.program.instructions
    mine = [pc for pc in pcs if OPS[rows[pc].op].action == "barrier"]

    def edit(block: BlockStream) -> BlockStream:
        return BlockStream(tuple(without(warp, are_at(warp, mine)) for warp in block.warps))

    return setting.with_blocks(edit)


@mechanism("divergence")
def divergence(setting: Setting, pcs: frozenset[int]) -> Setting:
    """Threads that agree about it share warps: no warp runs both sides, or with idle lanes.

    The work of the lanes of all warps goes to as few warps as have lanes enough.
    """
    guarded = _decided_at(setting, pcs)
    branches = _branches(setting, pcs)
    fractions = fractions_on(setting)

    def edit(block: BlockStream) -> BlockStream:
        count = len(block.warps)
        parts = [_parted(warp, branches) for warp in block.warps]
        firsts = (w.lanes[part] for w, part in zip(block.warps, parts, strict=True) if part.any())
        first = int(next(firsts, np.zeros(1, dtype=np.uint32))[0])
        made = []
        for rank, (warp, part) in enumerate(zip(block.warps, parts, strict=True)):
            lanes = np.bitwise_count(warp.lanes) / WARP_SIZE
            is_other = (warp.lanes & np.uint32(first)) == 0
            place = np.where(is_other & part, count - 1 - rank, rank)
            here = are_at(warp, guarded)
            share = np.where(here, np.minimum(fractions[warp.pc], lanes), lanes)
            needed = np.maximum(np.rint(share * count), 1)
            made.append(without(warp, (part | here) & (place >= needed)))
        return BlockStream(tuple(made))

    return setting.with_blocks(edit)


def _decided_at(setting: Setting, pcs: Iterable[int]) -> list[int]:
    """Return the guarded instructions, but branches and barriers, with a condition on a line."""
    rows = setting.prepared.program.instructions
    lines = {rows[pc].line for pc in pcs}
    decided = deciding_lines(setting.prepared.program).items()
    return [pc for pc, line in decided if line in lines and not OPS[rows[pc].op].leaves]


def _branches(setting: Setting, pcs: Iterable[int]) -> list[int]:
    """Return the guarded branches of a line, and branches that a condition on it decides."""
    rows = setting.prepared.program.instructions
    lines = {rows[pc].line for pc in pcs}
    decided = deciding_lines(setting.prepared.program)
    return [
        pc
        for pc, row in enumerate(rows)
        if OPS[row.op].kind == "branch"
        and row.guard is not None
        and (row.line in lines or decided.get(pc) in lines)
    ]


def _parted(warp: WarpStream, branches: list[int]) -> Array:
    """Return a mask of the rows that a warp runs with a part of the lanes at a branch."""
    parted = np.zeros(len(warp), dtype=bool)
    done = 0
    for place in np.flatnonzero(are_at(warp, branches)).tolist():
        if place < done:
            continue
        whole = warp.lanes[place]
        some = (warp.lanes[place + 1 :] & whole) != whole
        length = len(some) if some.all() else int(some.argmin())
        parted[place + 1 : place + 1 + length] = True
        done = place + 1 + length
    return parted


@mechanism("idle-lanes")
def idle_lanes(setting: Setting, pcs: frozenset[int]) -> Setting:
    """Warps leave when they have no work left; where all are needed later, they share the work."""
    rows = setting.prepared.program.instructions
    useful = [pc for pc, row in enumerate(rows) if OPS[row.op].access or OPS[row.op].convergent]
    meets = [pc for pc, row in enumerate(rows) if OPS[row.op].action == "barrier"]
    useful = sorted(set(useful) - set(meets))
    regions = _regions(setting, pcs)

    def edit(block: BlockStream) -> BlockStream:
        left = [_until_its_last(warp, useful) for warp in block.warps]
        if any(len(a) < len(b) for a, b in zip(left, block.warps, strict=True)):
            return BlockStream(tuple(_alone_without(left, meets)))
        return _shared(block, regions)

    return setting.with_blocks(edit)


def _until_its_last(warp: WarpStream, useful: list[int]) -> WarpStream:
    """Return a warp up to its last access, and its exit."""
    works = np.flatnonzero(are_at(warp, useful) & warp.is_on)
    late = np.arange(len(warp)) > (works[-1] if len(works) else 0)
    late[-1] = False
    return without(warp, late)


def _alone_without(warps: list[WarpStream], meets: list[int]) -> list[WarpStream]:
    """Return warps; the longest one skips barriers where it is alone."""
    counts = [int(are_at(warp, meets) @ warp.times) for warp in warps]
    longest = int(np.argmax(counts))
    others = sorted(counts)[-2] if len(counts) > 1 else 0
    if counts.count(counts[longest]) > 1 or warps[longest].loops:
        return warps
    met = np.cumsum(are_at(warps[longest], meets))
    alone = are_at(warps[longest], meets) & (met > others)
    return [without(w, alone) if n == longest else w for n, w in enumerate(warps)]


def _regions(setting: Setting, pcs: frozenset[int]) -> list[int]:
    """Return the instructions between the branches of a line and where they lead."""
    rows = setting.prepared.program.instructions
    found = set(_decided_at(setting, pcs))
    for pc in _branches(setting, pcs):
        if rows[pc].target > pc:
            found.update(range(pc + 1, rows[pc].target))
    return sorted(pc for pc in found if OPS[rows[pc].op].action not in ("barrier", "exit"))


def _shared(block: BlockStream, regions: list[int]) -> BlockStream:
    """Return a block with a region's work in equal parts for all its warps."""
    runs = [are_at(warp, regions) & warp.is_on for warp in block.warps]
    amounts = [int(run @ warp.times) for run, warp in zip(runs, block.warps, strict=True)]
    mean = sum(amounts) / len(amounts)
    made = []
    for warp, run, amount in zip(block.warps, runs, amounts, strict=True):
        part = min(1.0, mean / amount) if amount else 1.0
        kept = np.floor(np.cumsum(run) * part)
        left_out = run & (np.diff(kept, prepend=0) == 0)
        made.append(without(warp, left_out))
    return BlockStream(tuple(made))


MOST_BLOCKS = 2


class LanesOn(Observer):
    """Adds up, by pc, how often warps run an instruction and how many lanes take part."""

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch."""
        count = len(program.instructions)
        self.runs = np.zeros(count, dtype=np.int64)
        self.lanes = np.zeros(count, dtype=np.int64)
        self._issued = [OPS[row.op].issued for row in program.instructions]

    def ran(self, ran: Ran) -> None:
        """Add the sums of steps in compiled code."""
        times = np.bincount(ran.table_of_block, minlength=len(ran.tables))
        sums = np.tensordot(times, ran.tables.sum(axis=1, dtype=np.int64), axes=1)
        for pc, columns in ran.sums.items():
            if self._issued[pc]:
                self.runs[pc] += sums[columns.times]
                self.lanes[pc] += sums[columns.on]

    def step(self, step: Step) -> None:
        """Add a step."""
        if self._issued[step.pc]:
            copies = len(step.placement.blocks) if step.placement.folded else 1
            self.runs[step.pc] += copies * len(step.rows)
            self.lanes[step.pc] += int(step.on.sum()) * copies // len(step.on)


def fractions_on(setting: Setting) -> Array:
    """Return the fraction of a warp's lanes that take part in each instruction, by pc; 1 if none.

    As they do in the first blocks of the largest classes.
    """
    classes = sorted(setting.classes.classes, key=lambda one: -one.blocks)[:MOST_BLOCKS]
    observer = LanesOn()
    machine.run(
        without_results(setting.usual),
        observers=(observer,),
        blocks=[one.ranges[0][0] for one in classes],
    )
    return np.where(observer.runs, observer.lanes / np.maximum(observer.runs, 1) / WARP_SIZE, 1.0)
