"""Touches of warps in compiled code, as columns from the recording of their steps on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.launch.events import Omitted, Placement, Steps
from gpusim.prediction.streams.kinds_by_pc import TouchKinds
from gpusim.prediction.streams.local_rows import EVERYWHERE
from gpusim.prediction.streams.sections import Ran, begun_sections
from gpusim.prediction.streams.touch_columns import TouchColumns, type_of
from gpusim.typing import Array

MOST_WRITTEN_OUT = 1 << 18  # touches of omitted iterations of a batch


def _none() -> Array:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class CompiledTouches:
    """Touches among steps of compiled code, `ahead` steps after the begin of their `section`.

    All sections of the steps are known (`ran`). The other columns are those of `TouchColumns`.
    Iterations may be `omitted`: they repeat the touches of the `last` one, each at its stride.
    """

    ran: Ran
    section: Array
    ahead: Array
    pc: Array
    begin: Array
    size: Array
    asked: Array
    omitted: Omitted | None = None
    last: Array = field(default_factory=_none)
    strides: Array = field(default_factory=_none)

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
        narrow: dict[str, Any] = {
            name: one.astype(type_of(name), copy=False) for name, one in columns.items()
        }
        made = cls(ran, section=section.astype(np.int32), **narrow)
        if steps.omitted is None:
            return made
        end = steps.omitted.at
        begin = end - steps.omitted.period
        last = np.arange(*np.searchsorted(owner, (begin, end)))
        before = np.searchsorted(np.repeat(found.at, found.runs), begin)
        strides = steps.omitted.strides[wanted[last] - before]
        return replace(made, omitted=steps.omitted, last=last, strides=strides)

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

    @property
    def omitted_count(self) -> int:
        """The number of touches in omitted iterations."""
        return 0 if self.omitted is None else self.omitted.times * len(self.strides)


def written_out(touches: TouchColumns, one: CompiledTouches) -> TouchColumns:
    """Return the touches of omitted iterations, in addition to the recorded `touches`."""
    assert one.omitted is not None
    last, number = touches.at(one.last), np.arange(1, one.omitted.times + 1)[:, None]
    columns = {name: np.tile(column, one.omitted.times) for name, column in vars(last).items()}
    columns["time"] = (last.time + one.omitted.period * number).reshape(-1)
    columns["begin"] = (last.begin + one.strides * number).reshape(-1)
    return TouchColumns.narrow(**columns)


@dataclass(frozen=True)
class OmittedTouches:
    """Touches with `times` repetitions, each `stride` bytes and `period` further."""

    touches: TouchColumns
    times: int
    stride: Array
    period: int


def columns_of(
    touches: Sequence[CompiledTouches], placement: Placement, clock: Array
) -> tuple[list[TouchColumns], list[OmittedTouches]]:
    """Return the columns of a batch's touches in the order of their steps; set the `clock`.

    The touches of omitted iterations are among them, unless these are many.
    """
    sections, times = begun_sections([one.ran for one in touches], placement)
    # Of a warp's sections the last one counts.
    clock[sections.rows] = times + sections.counts
    ends = np.cumsum([len(one.ran.sections) for one in touches])
    of_each = np.split(times, ends[:-1])
    are_few = sum(one.omitted_count for one in touches) <= MOST_WRITTEN_OUT
    made: list[TouchColumns] = []
    left: list[OmittedTouches] = []
    for one, mine in zip(touches, of_each, strict=True):
        found = one.columns(mine, placement.warps_per_block)
        made.append(found)
        if one.omitted is not None and are_few:
            made.append(written_out(found, one))
        elif one.omitted is not None:
            often, period = one.omitted.times, one.omitted.period
            left.append(OmittedTouches(found.at(one.last), often, one.strides, period))
    return made, left
