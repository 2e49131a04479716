"""Launches with arrays that are given by type and shape alone: no element may decide anything."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim.errors import MissingElementsError
from gpusim.launch.arguments import ArraySpec
from gpusim.launch.prepared import Prepared
from gpusim.program.fast_paths import on_fast_paths
from gpusim.program.taint import data_dependent_lines


@dataclass(frozen=True)
class OfZeros(ArraySpec):
    """An array of zeros, as the machine reads arrays without elements."""


def without_elements(prepared: Prepared) -> frozenset[str]:
    """Return the arrays among a launch's arguments that have no elements."""
    given = prepared.arguments.items()
    return frozenset(
        name
        for name, value in given
        if isinstance(value, ArraySpec) and not isinstance(value, OfZeros)
    )


def with_fast_paths(prepared: Prepared) -> Prepared:
    """Return a launch in which elements that are not given are assumed to be ordinary numbers.

    Where nothing but tests of 64-bit integers depends on them, they are zeros: a test depends on
    what the code adds to them.
    """
    without = without_elements(prepared)
    if not without:
        return prepared
    program = on_fast_paths(prepared.program, without)
    if program is prepared.program:
        return prepared
    testing = on_fast_paths(prepared.program, without, integers=False)
    is_same = testing.instructions == program.instructions
    if is_same or data_dependent_lines(program, without):
        return replace(prepared, program=program)
    zeros = {name: OfZeros(*_fields(prepared.arguments[name])) for name in without}
    return replace(prepared, program=testing, arguments={**prepared.arguments, **zeros})


def _fields(spec: ArraySpec) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return spec.shape, spec.dtype


def refuse_missing_elements(prepared: Prepared) -> None:
    """Raise MissingElementsError where control flow or addresses depend on missing elements."""
    program = prepared.program
    missing = without_elements(prepared)
    without = [name for name in prepared.arguments if name in missing]
    unknown = data_dependent_lines(program, set(without))
    if unknown:
        where = ", ".join(map(str, unknown[:4]))
        needed = [name for name in without if data_dependent_lines(program, {name})] or without
        raise MissingElementsError(
            f"control flow or addresses of {prepared.kernel} in line {where} depend on the arrays' "
            f"elements: give the elements of {', '.join(needed)}, with the arrays themselves in "
            "place of array_spec, or on the command line with a filling, as in "
            f"{needed[0]}=TYPE[SHAPE]=random"
        )
