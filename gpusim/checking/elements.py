"""Input elements that a kernel of the catalogue omits or adds more than once.

A sum is linear: with distinct bits in each input number, the result shows how often every element
was added. The search runs only if a run on random numbers has a wrong result.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gpusim.catalogue import REDUCTION, Setup
from gpusim.catalogue.oracle import exclusive_scan
from gpusim.checking.findings import Finding, Place
from gpusim.typing import Array

FIELD_BITS = 8  # of a result, for one element: counted up to 255
MOST_ELEMENTS = 2048  # are tested one by one
MOST_SHOWN = 6
LEAST_BYTES = 4  # of a number: sums of wider ones are hardly ever right by chance
WIDE = ("int64", "uint64")


def findings(setup: Setup) -> list[Finding]:
    """Return findings for elements that sums omit or repeat."""
    entry = setup.entry
    wide = next((name for name in WIDE if name in entry.dtypes), None)
    if wide is None:
        return []
    own = setup.dtype  # if wide enough: its code is already compiled
    dtype = own.name if own.kind in "iu" and own.itemsize >= LEAST_BYTES else wide
    if _is_whole(_launch(setup, setup.n, dtype)):
        return []
    small = _launch(
        setup, min(setup.n, max(2 * setup.chunk * setup.cluster, 64), MOST_ELEMENTS), wide
    )
    if small.n < setup.n and _is_whole(small):
        small = _launch(setup, min(setup.n, MOST_ELEMENTS), wide)
    return _named(small)


def _launch(setup: Setup, n: int, dtype: str) -> Setup:
    """Return a launch of the same kernel for sums of `n` whole numbers."""
    entry = setup.entry
    grid = setup.grid if entry.grid_free else None
    coarse = setup.coarse if entry.default_coarse else None
    block = setup.block if not entry.one_block or n <= setup.block else None
    cluster = setup.cluster if entry.default_cluster else None
    return entry.setup(n, block=block, dtype=dtype, grid=grid, coarse=coarse, cluster=cluster)


def _sums(setup: Setup, data: Array) -> Array:
    """Return the results of a launch on given unsigned integers, as such."""
    call = setup.call(data.view(setup.dtype))
    call.run()
    result = call.result.view(data.dtype)
    return (
        result.sum(keepdims=True, dtype=data.dtype) if setup.entry.family is REDUCTION else result
    )


def _should_be(setup: Setup, data: Array) -> Array:
    if setup.entry.family is REDUCTION:
        return np.asarray(data.sum(keepdims=True, dtype=data.dtype))
    return exclusive_scan(data).values


def _is_whole(setup: Setup) -> bool:
    """Return whether random numbers are summed correctly."""
    bits = 8 * setup.dtype.itemsize
    data = np.random.default_rng(0).integers(0, 2**bits, setup.n, dtype=f"uint{bits}")
    return bool((_sums(setup, data) == _should_be(setup, data)).all())


def _named(setup: Setup) -> list[Finding]:
    """Return findings that name the missing and the repeated elements of a result."""
    each = 64 // FIELD_BITS
    missing: dict[int, int] = {}
    more: dict[int, int] = {}
    for start in range(0, setup.n, each):
        places = np.arange(start, min(start + each, setup.n))
        data = np.zeros(setup.n, dtype=np.uint64)
        data[places] = np.uint64(1) << np.uint64(FIELD_BITS) * (places - start).astype(np.uint64)
        found, wanted = (_fields(sums) for sums in (_sums(setup, data), _should_be(setup, data)))
        for position, place in enumerate(places.tolist()):
            fewer = int(np.count_nonzero(found[:, position] < wanted[:, position]))
            above = int(np.count_nonzero(found[:, position] > wanted[:, position]))
            missing.update({place: fewer} if fewer else {})
            more.update({place: above} if above else {})
    made = [_finding("left-out", missing, setup), _finding("doubled", more, setup)]
    return [finding for finding in made if finding is not None]


def _fields(sums: Array) -> Array:
    """Return the counts in results, (results, elements)."""
    shifts = np.arange(0, 64, FIELD_BITS, dtype=np.uint64)
    counts: Array = (sums[:, None] >> shifts) & np.uint64(2**FIELD_BITS - 1)
    return counts


def _finding(rule: str, elements: dict[int, int], setup: Setup) -> Finding | None:
    if not elements:
        return None
    kernel = setup.kernel
    line = kernel.source.line(kernel.source.tree)
    array = kernel.source.parameters[setup.entry.signature.index("input")]
    how = "missing from" if rule == "left-out" else "too often in"
    sums = "the sum" if setup.entry.family is REDUCTION else "sums"
    message = (
        f"{len(elements):,} of {setup.n:,} elements, with a block of {setup.block}, are {how} "
        f"{sums}: {array}[{ranges(elements)}]"
    )
    place = Place(line, "sums up")
    first = min(elements)
    return Finding(rule, message, (place,), array, first, count=len(elements))


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as "4-7, 12", the first few runs of them."""
    ordered = np.array(sorted(numbers))
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    shown = [f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:MOST_SHOWN]]
    return ", ".join(shown) + (", ..." if len(runs) > MOST_SHOWN else "")
