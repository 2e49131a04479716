"""A whole reduction: the same kernel, pass after pass, until one value is left.

How a pass is run (plainly, traced, timed) is the caller's business: it gives the function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from gpusim.catalogue import REDUCTION, Call, Entry, Setup, find, oracle
from gpusim.catalogue.oracle import Array, DType, Expected
from gpusim.errors import InputError

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Pass(Generic[Outcome]):
    """One launch of a reduction, and what running it gave."""

    call: Call
    outcome: Outcome


class Reduction(NamedTuple):
    """The value that is left, of the input's type, and the passes that led to it."""

    value: Any
    passes: list[Pass[Any]]


def run(call: Call) -> None:
    """Run a launch and keep nothing but its results."""
    call.run()


def plan(
    kernel: Entry | str,
    n: int | None = None,
    *,
    block: int | None = None,
    operation: str = "sum",
    dtype: DType | str | None = None,
    grid: int | None = None,
    coarse: int | None = None,
) -> list[Setup]:
    """Return the launches that reduce `n` elements to one value.

    `grid` is the first launch's. A kernel with a fixed grid then finishes in one block; any
    other is launched by its rule until one block is enough.
    """
    entry = find(kernel) if isinstance(kernel, str) else kernel
    if entry.family is not REDUCTION:
        raise InputError(f"{entry.name} is a {entry.family.name}; it leaves more than one value")
    setups: list[Setup] = []
    while not setups or setups[-1].results > 1:
        if setups:
            n, grid = setups[-1].results, 1 if entry.default_grid else None
        setups.append(
            entry.setup(n, block=block, operation=operation, dtype=dtype, grid=grid, coarse=coarse)
        )
    return setups


def reduce_all(
    kernel: Entry | str,
    data: Array,
    *,
    block: int | None = None,
    operation: str = "sum",
    grid: int | None = None,
    coarse: int | None = None,
    launch: Callable[[Call], Any] = run,
) -> Reduction:
    """Reduce `data`, of any length from 1, to one value; `launch` runs each pass.

    Integers wrap in the type of `data`. Raises InputError or LaunchError where the kernel does
    not work for what is asked, before anything runs.
    """
    numbers = np.asarray(data)
    if numbers.ndim != 1 or not numbers.size:
        raise InputError(f"a reduction takes a row of numbers, not shape {numbers.shape}")
    setups = plan(
        kernel,
        numbers.size,
        block=block,
        operation=operation,
        dtype=numbers.dtype,
        grid=grid,
        coarse=coarse,
    )
    passes: list[Pass[Any]] = []
    for setup in setups:
        call = setup.call(numbers)
        passes.append(Pass(call, launch(call)))
        numbers = call.result
    return Reduction(numbers[0], passes)


def expected(data: Array, setups: list[Setup]) -> Expected:
    """Return the one value that these launches should leave of `data`, from NumPy."""
    additions = sum(setup.additions for setup in setups)
    return oracle.reduce_whole(np.asarray(data), setups[0].operation, additions)


def is_right(reduction: Reduction) -> bool:
    """Return whether a reduction's value is what NumPy finds, within what rounding allows."""
    setups = [one.call.setup for one in reduction.passes]
    should_be = expected(reduction.passes[0].call.data, setups)
    return not should_be.wrong(np.array([reduction.value]))[0]
