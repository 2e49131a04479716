"""The log of one block, step by step: every access, branch and condition of its warps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.events import Observer, Ran, Step
from gpusim.launch.grid import Launch
from gpusim.tracing.block_part import part_of

Array = np.ndarray[Any, Any]

MAX_ENTRIES = 200_000


@dataclass(frozen=True)
class Entry:
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

    `is_complete` is False where the block did more than MAX_ENTRIES of these.
    """

    def __init__(self, block_index: int, ops: Collection[str] = ()) -> None:
        self.block_index = block_index
        self._ops = ops
        self.entries: list[Entry] = []
        self.is_complete = True
        self._seen: dict[tuple[int, int], int] = {}
        self._wanted: list[bool] = []

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch."""
        rows = program.instructions
        self._wanted = [
            row.op in self._ops if self._ops else not OPS[row.op].gives_value for row in rows
        ]

    def watched(self) -> Mapping[int, int]:
        """Return the block, and one step more than there is room for."""
        return {self.block_index: MAX_ENTRIES - len(self.entries) + 1}

    def ran(self, ran: Ran) -> None:
        """Keep the block's steps in compiled code."""
        for step in ran.steps:
            self.step(step)

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
            if len(self.entries) >= MAX_ENTRIES:
                self.is_complete = False
                return
            occurrence = self._seen.get((step.pc, warp), 0)
            self._seen[step.pc, warp] = occurrence + 1
            active, on = part.lanes(step.active, row), part.lanes(step.on, row)
            addresses, taken = lanes(step.addresses, row), lanes(step.taken, row)
            sources = lanes(step.sources, row)
            self.entries.append(
                Entry(
                    step.pc,
                    step.instruction,
                    warp,
                    occurrence,
                    active,
                    on,
                    addresses,
                    taken,
                    sources,
                )
            )
