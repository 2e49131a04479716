"""Comparison of the results of two launches: arrays by parameter, element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim import machine
from gpusim.launch.configured import ConfiguredKernel
from gpusim.launch.prepared import Prepared
from gpusim.reports.layout import plural
from gpusim.typing import Array

EQUAL, ROUNDED, DIFFERENT = "equal", "equal within rounding", "different"
TOTALS = "equal in total: a value for each block"
# Sums in another order differ by some units of the last place for each doubling of their length.
_MOST_ULPS = 1024


@dataclass(frozen=True)
class Outputs:
    """The arrays that a launch has changed, by parameter, of all that it was given.

    `written` are the elements that it has changed, `blocks` are those of its grid.
    """

    changed: Mapping[str, Array]
    given: Mapping[str, Array]
    written: Mapping[str, Array] = field(default_factory=dict)
    blocks: int = 0

    def of_blocks(self, name: str) -> Array | None:
        """Return an array's changed elements, None where they are more than one for each block."""
        found = self.written.get(name)
        return found if found is not None and 0 < found.size <= self.blocks else None


@dataclass(frozen=True)
class Agreement:
    """Whether two launches leave equal elements in an array, and the first that differs."""

    array: str
    verdict: str
    elements: int = 0
    differing: int = 0
    first: int = 0
    values: tuple[str, str] = ("", "")

    @property
    def agrees(self) -> bool:
        """Whether the elements are equal, but for rounding."""
        return self.verdict != DIFFERENT

    def __str__(self) -> str:
        if self.agrees:
            return f"{self.array}: {self.verdict} ({plural(self.elements, 'element')})"
        if not self.differing:
            return f"{self.array}: {self.values[0]} elements and {self.values[1]}"
        return (
            f"{self.array}: {self.differing:,} of {self.elements:,} elements differ, first "
            f"[{self.first}]: {self.values[0]} and {self.values[1]}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        made: dict[str, Any] = {"array": self.array, "verdict": self.verdict}
        if self.differing:
            made |= {"differing": self.differing, "first": self.first, "values": list(self.values)}
        return made | {"elements": self.elements}


def arrays_of(configured: ConfiguredKernel, values: Sequence[Any]) -> dict[str, Array]:
    """Return the arrays that a launch is given, by parameter."""
    names = configured.kernel.source.parameters  # type: ignore[attr-defined]
    pairs = zip(names, values, strict=True)
    return {name: one for name, one in pairs if isinstance(one, np.ndarray) and one.ndim}


def outputs(arrays: Mapping[str, Array], before: Mapping[str, Array], blocks: int = 0) -> Outputs:
    """Return the arrays after a launch of some blocks, given copies of them from before."""
    changed = {n: one for n, one in arrays.items() if not _same_bits(one, before[n])}
    written = {n: one[one != before[n]] for n, one in changed.items()}
    return Outputs(changed, arrays, written, blocks)


def copied(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return copies of some arrays."""
    return {name: one.copy() for name, one in arrays.items()}


def ran(
    configured: ConfiguredKernel, values: Sequence[Any], prepared: Prepared, step_limit: int
) -> Outputs:
    """Run a prepared launch, and return its outputs; KernelFault where it cannot."""
    arrays = arrays_of(configured, values)
    before = copied(arrays)
    machine.run(prepared, step_limit=step_limit)
    prepared.give_back()
    return outputs(arrays, before, configured.launch.blocks)


def agreements(one: Outputs, other: Outputs) -> list[Agreement]:
    """Return how the arrays agree that either launch has changed.

    Arrays correspond by name, or else by their place among those of their launch. Of arrays with
    a value for each block, of different grids, the totals are compared.
    """
    places = dict(zip(one.given, other.given, strict=False))
    pairs = {name: name if name in other.given else places.get(name, "") for name in one.given}
    made = []
    for name, held in one.given.items():
        beside = pairs[name]
        if name not in one.changed and beside not in other.changed:
            continue
        found = _agreement(name, held, other.given.get(beside))
        if not found.agrees and one.blocks != other.blocks:
            is_same = _have_one_total(name, one.of_blocks(name), other.of_blocks(beside))
            found = Agreement(name, TOTALS, held.size) if is_same else found
        made.append(found)
    return made


def _have_one_total(name: str, one: Array | None, other: Array | None) -> bool:
    """Return whether the sum, the largest or the least of some values is the same."""
    if one is None or other is None:
        return False
    totals = ((total(one), total(other)) for total in (np.sum, np.max, np.min))
    return any(
        _agreement(name, *(np.asarray(value).reshape(1) for value in pair)).agrees
        for pair in totals
    )


def _agreement(name: str, one: Array, other: Array | None) -> Agreement:
    if other is None or one.shape != other.shape:
        sizes = f"{one.size:,}", "none" if other is None else f"{other.size:,}"
        return Agreement(name, DIFFERENT, one.size, values=sizes)
    if _same_bits(one, other):
        return Agreement(name, EQUAL, one.size)
    same = one == other
    if one.dtype.kind == "f" and other.dtype.kind == "f":
        same |= np.isnan(one) & np.isnan(other)
        far = ~np.isclose(one, other, rtol=_tolerance(one, other), atol=0.0, equal_nan=True)
        scale = np.nanmax(np.abs(np.where(np.isfinite(one), one, 0.0)), initial=0.0)
        far &= ~(np.abs(one.astype(float) - other.astype(float)) <= _tolerance(one, other) * scale)
        if not far.any():
            return Agreement(name, ROUNDED, one.size, int(np.count_nonzero(~same)))
        same = ~far
    first = int(np.argmin(same.reshape(-1)))
    values = (str(one.reshape(-1)[first]), str(other.reshape(-1)[first]))
    return Agreement(name, DIFFERENT, one.size, int(np.count_nonzero(~same)), first, values)


def _tolerance(one: Array, other: Array) -> float:
    return _MOST_ULPS * max(float(np.finfo(array.dtype).eps) for array in (one, other))


def _same_bits(one: Array, other: Array) -> bool:
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()
