"""Touches of warps in compiled code, kept as columns from when their steps are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.launch.events import Placement, Steps
from gpusim.prediction.streams.kinds_of_touches import TouchKinds
from gpusim.prediction.streams.local_rows import EVERYWHERE
from gpusim.prediction.streams.sections import Ran, begun_sections
from gpusim.prediction.streams.touch_columns import TouchColumns, type_of
from gpusim.typing import Array


@dataclass(frozen=True)
class CompiledTouches:
    """Touches among steps of compiled code, `ahead` steps behind the begin of their `section`.

    All sections of the steps are known (`ran`). The other columns are those of `TouchColumns`.
    """

    ran: Ran
    section: Array
    ahead: Array
    pc: Array
    begin: Array
    size: Array
    asked: Array

    @classmethod
    def of(cls, steps: Steps, kinds: TouchKinds) -> CompiledTouches:
        """Return the touches of some steps."""
        found, placement = steps.accesses, steps.placement
        ran = Ran.of(steps)
        owner = np.repeat(found.at, found.runs)
        pc = steps.pc[owner]
        wanted = np.flatnonzero(kinds.widths[pc])
        owner, pc = owner[wanted], pc[wanted]
        width, row = kinds.widths[pc], steps.row[owner]
        position, warp = np.divmod(row, placement.warps_per_block)
        shift = kinds.begin_of(pc, warp, position, placement)
        first, last, lanes = (column[wanted] for column in found[8:])
        fences = np.flatnonzero(kinds.are_fences[steps.pc])
        nowhere = np.full(len(fences), EVERYWHERE)
        at = np.concatenate([owner, fences])
        section = np.searchsorted(ran.sections.first, at, side="right") - 1
        columns = {
            "ahead": at - ran.sections.first[section],
            "pc": np.concatenate([pc, steps.pc[fences]]),
            "begin": np.concatenate([first + shift, nowhere]),
            "size": np.concatenate([last - first + width, np.full(len(fences), SECTOR_BYTES)]),
            "asked": np.concatenate([lanes * width, np.zeros(len(fences), dtype=np.int64)]),
        }
        narrow = {name: one.astype(type_of(name), copy=False) for name, one in columns.items()}
        return cls(ran, section.astype(np.int32), **narrow)

    def columns(self, times: Array, warps_per_block: int) -> TouchColumns:
        """Return the columns of the touches, by the begin times of sections."""
        return TouchColumns.narrow(
            block=(self.ran.sections.rows // warps_per_block)[self.section],
            pc=self.pc,
            time=times.astype(np.int32)[self.section] + self.ahead,
            begin=self.begin,
            size=self.size,
            asked=self.asked,
        )


def columns_of(
    touches: Sequence[CompiledTouches], placement: Placement, clock: Array
) -> list[TouchColumns]:
    """Return the columns of a batch's touches in the order of their steps; set the `clock`."""
    sections, times = begun_sections([one.ran for one in touches], placement, clock)
    # Of a warp's sections the last one counts.
    clock[sections.rows] = times + sections.counts
    ends = np.cumsum([len(one.ran.sections) for one in touches])
    of_each = np.split(times, ends[:-1])
    return [
        one.columns(mine, placement.warps_per_block)
        for one, mine in zip(touches, of_each, strict=True)
    ]
