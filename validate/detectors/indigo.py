"""Indigo: irregular codes on graphs, with the planted bugs in the names of files.

Liu, Azami, Walters, Burtscher: The Indigo Program-Verification Microbenchmark Suite of Irregular
Parallel Code Patterns, ISPASS 2022. The folder has `CUDA/`, as its generator writes it, and beside
it (or beside the generator) the header `indigo_cuda.h`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.errors import InputError

from .case import BOUNDS, RACE, Case

RACES = {"atomicBug", "guardBug", "raceBug", "syncBug"}
OUTSIDE = {"boundsBug"}
HEADER, KERNEL = "indigo_cuda.h", "test_kernel"
VERTICES, MOST_NEIGHBOURS, THREADS, SEED = 100, 6, 64, 1


def cases(folder: Path) -> Iterator[Case]:
    """Yield the suite's kernels, each on one graph."""
    header = next(folder.rglob(HEADER), None)
    if header is None:
        raise InputError(f"{folder} has no {HEADER}")
    for file in sorted(folder.rglob("*.cu")):
        words = set(file.stem.split("_"))
        defects = {RACE} & {RACE for _ in words & RACES} | {BOUNDS for _ in words & OUTSIDE}
        yield Case(
            file.stem,
            file,
            (KERNEL,),
            frozenset({RACE, BOUNDS}),
            frozenset(defects),
            grid=(VERTICES,),
            block=(THREADS,),
            arguments=(arguments,),
            includes=(str(header.parent),),
        )


def arguments(_declared: Any) -> list[Any]:
    """Return a random graph in rows (CSR), and two arrays as the suite's main fills them.

    The first and the last vertex have no neighbours: bugs at either end of the lists are met.
    """
    random = np.random.default_rng(SEED)
    degrees = random.integers(0, MOST_NEIGHBOURS + 1, VERTICES)
    degrees[[0, -1]] = 0
    starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
    edges = int(starts[-1])
    neighbours = random.integers(0, VERTICES, edges).astype(np.int32)
    size = max(VERTICES, edges)
    first, second = (
        random.integers(0, below, size).astype(np.int32) for below in (VERTICES, edges)
    )
    first[0] = second[0] = 0
    return [starts, neighbours, first, second, np.int32(VERTICES)]
