"""What Hypothesis draws for kernels: types, numbers, blocks, launches."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from gpusim import catalogue
from gpusim.catalogue import REDUCTION, Call, Entry
from gpusim.typing import Array

# Kernels that need nvcc's code take a second for each block and type: test_newer_kernels.py.
ENTRIES = [entry for entry in catalogue.entries() if entry.is_lowered]
RIGHT = [entry for entry in ENTRIES if entry.defect is None]
REDUCTIONS = [entry for entry in RIGHT if entry.family is REDUCTION]
SPECIAL_FLOATS = (np.nan, np.inf, -np.inf, -0.0, 1e30, -1e30, 3e38)


@st.composite
def numbers(draw: st.DrawFn, n: int, dtype: str) -> Array:
    """`n` numbers: over the type's whole range, or few and small; floats also NaN and infinite."""
    kind = np.dtype(dtype)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind.kind == "f":
        array = random.normal(0, draw(st.sampled_from([1e-3, 1.0, 1e6])), n).astype(kind)
        special = draw(st.lists(st.tuples(st.integers(0, n - 1), st.sampled_from(SPECIAL_FLOATS))))
        for place, value in special[:3]:
            array[place] = value
        return array
    limits = np.iinfo(kind)
    low, high = draw(
        st.sampled_from(
            [(limits.min, limits.max), (max(limits.min, -2), 2), (limits.max, limits.max)]
        )
    )
    return random.integers(low, high, n, dtype=kind, endpoint=True)


def blocks(entry: Entry, most: int) -> st.SearchStrategy[int]:
    """Blocks that a kernel allows, up to `most` threads."""
    return st.sampled_from([b for b in range(1, most + 1) if entry.block_rule.allows(b)])


@st.composite
def calls(draw: st.DrawFn, entry: Entry, most_threads: int = 128, most_turns: int = 4) -> Call:
    """A launch of `entry`: any size that it takes, up to a few blocks, any type and operation."""
    block = draw(blocks(entry, most_threads))
    coarse = draw(st.integers(1, 5)) if entry.default_coarse else None
    chunk = block * entry.per_thread * (coarse or 1)
    n = draw(st.integers(1, block if entry.one_block else most_turns * chunk + 1))
    data = draw(numbers(n, draw(st.sampled_from(entry.dtypes))))
    grid = draw(st.integers(1, 3)) if entry.grid_free else None
    operation = draw(st.sampled_from(entry.operations))
    return entry.call(data, block=block, operation=operation, grid=grid, coarse=coarse)
