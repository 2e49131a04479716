"""How many lanes take part in each instruction, by running one block of each class."""

from __future__ import annotations

import numpy as np

from gpusim import machine
from gpusim.isa.ops import OPS, Program
from gpusim.launch.events import Observer, Ran, Step
from gpusim.launch.grid import WARP_SIZE, Launch
from gpusim.prediction.setting import Setting
from gpusim.prediction.streams import without_results
from gpusim.typing import Array

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
