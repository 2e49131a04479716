"""The log of one block, step by step: every access, branch and condition of its warps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpusim.host.garbage import uncollected
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.events import Observer, Ran, Step, StepsOfWarps
from gpusim.launch.grid import WARP_SIZE, Launch
from gpusim.typing import Array


@dataclass(frozen=True)
class BlockPart:
    """One block in a step. `rows` are places in the step's arrays, `warps` the block's warps."""

    copy: int
    rows: tuple[int, ...]
    warps: tuple[int, ...]

    def lanes(self, values: Array, row: int) -> Array:
        """Return the 32 lanes of one of its rows from an array that is to be broadcast."""
        of_copy = values[self.copy if len(values) > 1 else 0]
        found = of_copy[row if len(of_copy) > 1 else 0]
        return found if len(found) == WARP_SIZE else np.repeat(found, WARP_SIZE)


def part_of(step: Step, block: int) -> BlockPart | None:
    """Return a block's part of a step, None where the block has none."""
    placement = step.placement
    position = block - int(placement.blocks[0])
    if not 0 <= position < len(placement.blocks):
        return None
    warps = placement.warp_of(step.rows)
    if placement.folded:
        return BlockPart(position, tuple(range(len(warps))), tuple(warps.tolist()))
    rows = np.flatnonzero(step.rows // placement.warps_per_block == position)
    return BlockPart(0, tuple(rows.tolist()), tuple(warps[rows].tolist()))


MAX_ENTRIES = 100_000


class Entry(NamedTuple):
    """One instruction run by one warp; arrays are by lane."""

    pc: int
    instruction: Instruction
    warp: int
    occurrence: int
    active: Array
    on: Array
    addresses: Array | None
    taken: Array | None
    sources: Array | None


class BlockLog(Observer):
    """Keeps the steps of one block that access memory, branch, decide or synchronise.

    `is_complete` is False where the block did more than MAX_ENTRIES of these. Entries of compiled
    code are made for the first reader: they take longer than the launch.
    """

    def __init__(self, block_index: int, ops: Collection[str] = ()) -> None:
        self.block_index = block_index
        self._ops = ops
        self._entries: list[Entry] = []
        self._ran: tuple[StepsOfWarps, Array, list[int]] | None = None  # without entries yet
        self.is_complete = True
        self._seen: dict[tuple[int, int], int] = {}
        self._wanted: list[bool] = []
        self._rows: Sequence[Instruction] = ()

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch."""
        self._rows = program.instructions
        self._wanted = [
            row.op in self._ops if self._ops else not OPS[row.op].gives_value for row in self._rows
        ]

    def watched(self) -> Mapping[int, int]:
        """Return the block, and one step more than there is room for."""
        return {self.block_index: MAX_ENTRIES + 1}

    def ran(self, ran: Ran) -> None:
        """Keep the block's steps in compiled code."""
        steps, placement = ran.steps, ran.placement
        position = self.block_index - int(placement.blocks[0])
        kept = np.array(self._wanted)[steps.pc]
        places = np.flatnonzero(kept & (steps.row // placement.warps_per_block == position))
        if len(places):
            self.is_complete = len(places) <= MAX_ENTRIES
            self._ran = steps, places, placement.warp_of(steps.row).tolist()

    @property
    def entries(self) -> list[Entry]:
        """The steps in their order."""
        if self._ran is not None:
            found, self._ran = self._ran, None
            self._keep_all(*found)
        return self._entries

    @uncollected()
    def _keep_all(self, steps: StepsOfWarps, places: Array, warps: list[int]) -> None:
        columns = steps.pc, steps.decides, steps.accesses, steps.shuffles
        pcs, decides, accesses, shuffles = (column.tolist() for column in columns)
        for place in places.tolist():
            self._keep(
                pcs[place],
                warps[place],
                steps.active[place],
                steps.on[place],
                steps.addresses[place] if accesses[place] else None,
                steps.taken[place] if decides[place] else None,
                steps.sources[place] if shuffles[place] else None,
            )

    def step(self, step: Step) -> None:
        """Keep the part of a step that is this block's."""
        if not self.is_complete or not self._wanted[step.pc]:
            return
        part = part_of(step, self.block_index)
        if part is None:
            return

        def lanes(values: Array | None, row: int) -> Array | None:
            return None if values is None else part.lanes(values, row)

        for row, warp in zip(part.rows, part.warps, strict=True):
            self._keep(
                step.pc,
                warp,
                part.lanes(step.active, row),
                part.lanes(step.on, row),
                lanes(step.addresses, row),
                lanes(step.taken, row),
                lanes(step.sources, row),
            )

    def _keep(self, pc: int, warp: int, *columns: Any) -> None:
        """Keep one warp's step, if there is room: masks, addresses, lanes taken, sources."""
        if len(self._entries) >= MAX_ENTRIES:
            self.is_complete = False
            return
        occurrence = self._seen.get((pc, warp), 0)
        self._seen[pc, warp] = occurrence + 1
        self._entries.append(Entry(pc, self._rows[pc], warp, occurrence, *columns))
