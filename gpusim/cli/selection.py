"""A catalogue kernel with the options that a user chose for it, checked before anything runs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpusim.catalogue import REDUCTION, Call, Entry, Request, find, sample
from gpusim.cli import inputs
from gpusim.errors import InputError
from gpusim.launch.grid import Launch
from gpusim.machine import DEFAULT_STEP_LIMIT


@dataclass(frozen=True, eq=False)
class Selection:
    """The request for a kernel, its size included, and the numbers of a file, if one is given."""

    request: Request
    data: Any

    @property
    def entry(self) -> Entry:
        """The kernel."""
        return self.request.entry

    def call(self) -> Call:
        """Return the first launch, with its data."""
        return self.request.setup().call(self._numbers())

    def launches(self) -> list[Launch]:
        """Return every launch that the whole job takes."""
        passes = "all" if self.entry.family is REDUCTION else "one"
        return [setup.launch for setup in replace(self.request, passes=passes).setups()]

    def run(self, launch: Callable[[Call], None]) -> list[Call]:
        """Run the whole job, a reduction until one value is left; return its launches."""
        if self.entry.family is not REDUCTION:
            call = self.call()
            launch(call)
            return [call]
        from gpusim.catalogue.reduction import reduce_all

        return [one.call for one in reduce_all(self.request, self._numbers(), launch).passes]

    def _numbers(self) -> Any:
        setup = self.request.setup()
        return sample(setup.n, setup.dtype) if self.data is None else self.data


def asked_of(name: str, chosen: Namespace) -> Request:
    """Return the request of a ranking or a sweep for a kernel, of the usual size."""
    kind = inputs.dtype(chosen.dtype).name if chosen.dtype is not None else None
    entry, operation = find(name), chosen.op or "sum"
    return Request(
        entry.name,
        entry.predicted_n,
        operation=operation,
        dtype=kind,
        passes=chosen.passes,
        cluster=_one(getattr(chosen, "cluster", None), "the cluster"),
    )


def step_limit(chosen: Namespace) -> int:
    """Return how many instructions a block may run."""
    if chosen.step_limit is None:
        return DEFAULT_STEP_LIMIT
    return inputs.count(chosen.step_limit, "the step limit", most=2**62)


def selected(entry: Entry, chosen: Namespace, *, is_timed: bool = False) -> Selection:
    """Return the kernel with its options; InputError or LaunchError if they do not fit.

    Without a size it has the kernel's own, or that of predictions where it `is_timed`.
    """
    kind = inputs.dtype(chosen.dtype) if chosen.dtype is not None else None
    usual = entry.predicted_n if is_timed else None
    count = inputs.count(chosen.n) if chosen.n is not None else usual
    data = None
    file = getattr(chosen, "input", None)  # commands that need no data have no such option
    if file is not None:
        from gpusim.cli.arrays import numbers

        data = numbers(Path(file), kind)
        if data.ndim != 1:
            raise InputError(f"{file} holds an array of shape {data.shape}; give a row of numbers")
        if chosen.n is not None and count is not None and count > data.size:
            raise InputError(f"{file} holds {data.size:,} numbers, fewer than n = {count:,}")
        data = data[:count]
        count, kind = data.size, data.dtype
    request = Request(
        entry.name,
        count,
        block=_one(chosen.block, "the block"),
        operation=chosen.op or "sum",
        dtype=kind,
        grid=_one(chosen.grid, "the grid"),
        coarse=_one(chosen.coarse, "the coarse factor"),
        cluster=_one(getattr(chosen, "cluster", None), "the cluster"),
    )
    request.setup().launch  # noqa: B018  refuses a launch that no GPU would accept
    return Selection(request, data)


def _one(text: str | None, what: str) -> int | None:
    if text is None:
        return None
    sizes = inputs.sizes(text, what)
    if len(sizes) > 1 and any(size != 1 for size in sizes[1:]):
        raise InputError(f"{what} of a catalogue kernel has one direction, not {text}")
    return sizes[0]
