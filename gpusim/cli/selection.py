"""A catalogue kernel with the options that a user chose for it, checked before anything runs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusim.catalogue import REDUCTION, Call, Entry, Setup, sample
from gpusim.catalogue.reduction import plan, reduce_all
from gpusim.cli import inputs
from gpusim.cli.arrays import numbers
from gpusim.errors import InputError
from gpusim.launch import Launch
from gpusim.machine import DEFAULT_STEP_LIMIT


@dataclass(frozen=True, eq=False)
class Selection:
    """A kernel, how it is to be launched, and the file its numbers come from, if any."""

    entry: Entry
    setup: Setup
    data: Any
    grid: int | None

    @property
    def coarse(self) -> int | None:
        """Elements a thread adds up first; None for kernels that have no such factor."""
        return self.setup.coarse if self.entry.default_coarse else None

    def call(self) -> Call:
        """Return the first launch, with its data."""
        return self.setup.call(self._numbers())

    def launches(self) -> list[Launch]:
        """Return every launch that the whole job takes."""
        return [setup.launch for setup in self._setups()]

    def run(self, launch: Callable[[Call], None]) -> list[Call]:
        """Run the whole job, a reduction until one value is left; return its launches."""
        if self.entry.family is not REDUCTION:
            call = self.call()
            launch(call)
            return [call]
        setup = self.setup
        reduction = reduce_all(
            self.entry,
            self._numbers(),
            block=setup.block,
            operation=setup.operation,
            grid=self.grid,
            coarse=self.coarse,
            launch=launch,
        )
        return [one.call for one in reduction.passes]

    def _numbers(self) -> Any:
        return sample(self.setup.n, self.setup.dtype) if self.data is None else self.data

    def _setups(self) -> list[Setup]:
        if self.entry.family is not REDUCTION:
            return [self.setup]
        setup = self.setup
        return plan(
            self.entry,
            setup.n,
            block=setup.block,
            operation=setup.operation,
            dtype=setup.dtype,
            grid=self.grid,
            coarse=self.coarse,
        )


def step_limit(chosen: Namespace) -> int:
    """Return how many instructions a block may run."""
    if chosen.step_limit is None:
        return DEFAULT_STEP_LIMIT
    return inputs.count(chosen.step_limit, "the step limit", most=2**62)


def selected(entry: Entry, chosen: Namespace) -> Selection:
    """Return the kernel with its options; InputError or LaunchError for what does not work."""
    kind = inputs.dtype(chosen.dtype) if chosen.dtype is not None else None
    count = inputs.count(chosen.n) if chosen.n is not None else None
    data = None
    file = getattr(chosen, "input", None)  # commands that need no data have no such option
    if file is not None:
        data = numbers(Path(file), kind)
        if data.ndim != 1:
            raise InputError(f"{file} holds an array of shape {data.shape}; give a row of numbers")
        if count is not None and count > data.size:
            raise InputError(f"{file} holds {data.size:,} numbers, fewer than n = {count:,}")
        data = data[:count]
        count, kind = data.size, data.dtype
    blocks = _one(chosen.grid, "the grid")
    setup = entry.setup(
        count,
        block=_one(chosen.block, "the block"),
        operation=chosen.op or "sum",
        dtype=kind,
        grid=blocks,
        coarse=_one(chosen.coarse, "the coarse factor"),
    )
    setup.launch  # noqa: B018  refuses a launch that no GPU would accept
    return Selection(entry, setup, data, blocks)


def _one(text: str | None, what: str) -> int | None:
    if text is None:
        return None
    sizes = inputs.sizes(text, what)
    if len(sizes) > 1 and any(size != 1 for size in sizes[1:]):
        raise InputError(f"{what} of a catalogue kernel has one direction, not {text}")
    return sizes[0]
