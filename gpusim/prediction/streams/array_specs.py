"""Launches with arrays that are given by type and shape alone: no element may decide anything."""

from __future__ import annotations

from dataclasses import replace

from gpusim.errors import InputError
from gpusim.launch.arguments import ArraySpec
from gpusim.launch.prepared import Prepared
from gpusim.program.fast_paths import on_fast_paths
from gpusim.program.taint import data_dependent_lines


def without_elements(prepared: Prepared) -> frozenset[str]:
    """Return the arrays among a launch's arguments that have no elements."""
    given = prepared.arguments.items()
    return frozenset(name for name, value in given if isinstance(value, ArraySpec))


def with_fast_paths(prepared: Prepared) -> Prepared:
    """Return a launch in which elements that are not given are taken for ordinary numbers."""
    without = without_elements(prepared)
    if not without:
        return prepared
    program = on_fast_paths(prepared.program, without)
    return prepared if program is prepared.program else replace(prepared, program=program)


def refuse_missing_elements(prepared: Prepared) -> None:
    """Raise InputError where control flow or addresses depend on arrays without elements."""
    program = prepared.program
    without = [name for name in prepared.arguments if name in without_elements(prepared)]
    unknown = data_dependent_lines(program, set(without))
    if unknown:
        where = ", ".join(map(str, unknown[:4]))
        needed = [name for name in without if data_dependent_lines(program, {name})] or without
        raise InputError(
            f"what {prepared.kernel} does at line {where} depends on the arrays' elements: give "
            f"those of {', '.join(needed)}, with the arrays themselves in place of array_spec, "
            f"or on the command line with a filling, as in {needed[0]}=TYPE[SHAPE]=random"
        )
