"""Launches as keys: results that follow from a launch alone are kept for all GPUs that run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from gpusim.isa.ops import ANY_ARRAY, OPS
from gpusim.launch.arguments import ArraySpec
from gpusim.launch.prepared import Prepared
from gpusim.program.taint import data_dependent_lines


@dataclass(frozen=True)
class SameLaunch:
    """A launch of a program, equal to others with equal grids, blocks and arguments.

    Arrays whose elements decide neither control flow nor addresses are given by type and shape.
    """

    prepared: Prepared = field(compare=False)
    key: tuple[Any, ...]

    @classmethod
    def of(cls, prepared: Prepared) -> SameLaunch | None:
        """Return a launch as a key, None for one with elements that may decide something."""
        arrays = {
            name: value
            for name, value in prepared.arguments.items()
            if isinstance(value, np.ndarray)
        }
        if arrays:
            if _may_decide(prepared, arrays):
                return None
            prepared = replace(
                prepared, arguments={**prepared.arguments, **_without_elements(arrays)}
            )
        arguments = prepared.arguments
        layout = prepared.program.layout
        images = {
            name: arrays[name] for name in (layout.images if layout else ()) if name in arrays
        }
        prepared = replace(prepared, arguments={**arguments, **images})  # filled for each run
        given = list(map(id, arguments.values()))
        same = tuple(map(given.index, given))  # aliasing: an array may be passed twice
        items = tuple((name, _hashable(value)) for name, value in arguments.items())
        places = tuple(prepared.places.items())
        return cls(prepared, (prepared.program, prepared.launch, items, places, same, prepared.cc))


def _may_decide(prepared: Prepared, arrays: Mapping[str, np.ndarray[Any, Any]]) -> bool:
    """Return whether it may matter that arrays have elements, and where these are."""
    layout = prepared.program.layout
    banks = () if layout is None else layout.fixed.values()
    has_other_memory = prepared.heap is not None or not all(isinstance(one, bytes) for one in banks)
    are_usual = all(
        one.flags.c_contiguous and one.flags.writeable and one.size for one in arrays.values()
    )
    if has_other_memory or prepared.copies or not are_usual or _overlap(arrays):
        return True
    if any(isinstance(value, dict) for value in prepared.arguments.values()):  # textures
        return True
    if any(OPS[row.op].kind == "call_driver" for row in prepared.program.instructions):  # formats
        return True
    return bool(data_dependent_lines(prepared.program, {ANY_ARRAY}))


def _hashable(value: Any) -> Any:
    """Return an argument as a part of a key: a structure as its bytes."""
    return value.tobytes() if isinstance(value, np.void) else value


def _overlap(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bool:
    """Return whether different arrays share memory."""
    different = {id(one): one for one in arrays.values()}.values()
    extents = sorted(map(np.lib.array_utils.byte_bounds, different))
    return any(after[0] < one[1] for one, after in pairwise(extents))


def _without_elements(arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, ArraySpec]:
    """Return arrays by type and shape; one that is passed twice is one object."""
    specs = {id(one): ArraySpec(one.shape, one.dtype) for one in arrays.values()}
    return {name: specs[id(one)] for name, one in arrays.items()}
