"""A whole reduction: the same kernel, pass after pass, until one value is left.

How a pass is run (plainly, traced, timed) is the caller's business: it gives the function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from gpusim.catalogue import Call, Request, Setup, oracle
from gpusim.catalogue.oracle import Expected
from gpusim.errors import InputError
from gpusim.typing import Array

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Pass(Generic[Outcome]):
    """One launch of a reduction, and the result of running it."""

    call: Call
    outcome: Outcome


class Reduction(NamedTuple):
    """The value that is left, of the input's type, and the passes that led to it."""

    value: Any
    passes: list[Pass[Any]]


def run(call: Call) -> None:
    """Run a launch and keep nothing but its results."""
    call.run()


def reduce_all(request: Request, data: Array, launch: Callable[[Call], Any] = run) -> Reduction:
    """Reduce `data`, of any length from 1, to one value; `launch` runs each pass.

    Size and type are those of `data`; integers wrap in it. Raises InputError or LaunchError
    for an operation, type or size that the kernel does not support, before anything runs.
    """
    numbers = np.asarray(data)
    if numbers.ndim != 1 or not numbers.size:
        raise InputError(f"a reduction takes a row of numbers, not shape {numbers.shape}")
    passes: list[Pass[Any]] = []
    for setup in replace(request.for_data(numbers), passes="all").setups():
        call = setup.call(numbers)
        passes.append(Pass(call, launch(call)))
        numbers = call.result
    return Reduction(numbers[0], passes)


def expected(data: Array, setups: list[Setup]) -> Expected:
    """Return the one value that these launches should leave of `data`, from NumPy."""
    additions = sum(setup.additions for setup in setups)
    return oracle.reduce_whole(np.asarray(data), setups[0].operation, additions)


def is_right(reduction: Reduction) -> bool:
    """Return whether a reduction's value equals NumPy's, within the bound on rounding."""
    setups = [one.call.setup for one in reduction.passes]
    should_be = expected(reduction.passes[0].call.data, setups)
    return not should_be.wrong(np.array([reduction.value]))[0]
