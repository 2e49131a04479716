"""The measured launches: every kernel, at the block and input sizes of the bar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from gpusim.catalogue import REDUCTION, Entry
from gpusim.kernels.origins import LECTURE

from .records import L2_STATES, Case
from .twins import twinned

Pair = tuple[Entry, Case]

BLOCKS = (64, 128, 256, 512, 1024)
SIZES = tuple(2**k for k in (20, 22, 24, 26, 28))
WARM_SIZES = SIZES[:3]
COUNTER_SIZE = 2**20

# A scan of n elements by n threads each: quadratic work.
NAIVE_SIZES = tuple(2**k for k in (10, 12, 14, 16))

# Kernels with instructions that came later, or of blocks that wait for each other, measured with
# the sizes that the tour compares; in `measured/h200-hopper.json`, without counters.
LATER = ("reduce_bulk", "reduce_cluster", "reduce_redux", "lookback_scan")
LATER_SIZES: tuple[int, ...] = tuple(2**k for k in (16, 20, 24))
LATER_BLOCKS: tuple[int, ...] = (128, 256, 512)

# Four blocks for each SM of an H200: the intended grid of a kernel with a grid-stride loop.
STRIDING_GRID = 528

# Element types besides a kernel's first, at these sizes and blocks.
OTHER_DTYPES = ("int32", "float32", "float64")
OTHER_SIZES = (2**22, 2**26)
OTHER_BLOCKS = (128, 512)


def sizes_of(kernel: Entry, block: int) -> tuple[int, ...]:
    """Return the input sizes of a kernel, in elements."""
    if kernel.family is REDUCTION:
        return SIZES
    return (block,) if kernel.one_block else NAIVE_SIZES


def blocks_of(kernel: Entry) -> tuple[int, ...]:
    """Return the block sizes of a kernel."""
    return tuple(block for block in BLOCKS if kernel.block_rule.allows(block))


def _grids_of(kernel: Entry) -> tuple[int | None, ...]:
    """Return the grids: the launch rule's, and a small one for kernels with a grid-stride loop."""
    return (None, STRIDING_GRID) if kernel.grid_free and not kernel.default_grid else (None,)


def times_of(kernel: Entry) -> Iterator[Case]:
    """Yield the timed launches of one kernel."""
    first = kernel.dtypes[0]
    for block in blocks_of(kernel):
        for n in sizes_of(kernel, block):
            for grid in _grids_of(kernel):
                yield Case(n, block, first, grid=grid)
                if n in WARM_SIZES or (kernel.family is not REDUCTION and not kernel.defect):
                    yield Case(n, block, first, grid=grid, l2="warm")
                if kernel.family is REDUCTION:
                    yield Case(n, block, first, grid=grid, scope="all")
    if kernel.family is REDUCTION:
        for dtype in OTHER_DTYPES:
            if dtype in kernel.dtypes and dtype != first:
                for block in OTHER_BLOCKS:
                    for n in OTHER_SIZES:
                        yield Case(n, block, dtype)


def counters_of(kernel: Entry) -> Iterator[Case]:
    """Yield the launches of one kernel with counters."""
    first = kernel.dtypes[0]
    for block in blocks_of(kernel):
        n = COUNTER_SIZE if kernel.family is REDUCTION else sizes_of(kernel, block)[0]
        for grid in _grids_of(kernel):
            yield Case(n, block, first, grid=grid)


def later_times() -> Iterator[Pair]:
    """Yield the timed launches of `LATER`, and the lecture's kernels at their least size."""
    for kernel in twinned():
        if kernel.name in LATER:
            sizes, blocks = LATER_SIZES, LATER_BLOCKS
        elif kernel.origin == LECTURE and not kernel.defect:
            sizes, blocks = LATER_SIZES[:1], LATER_BLOCKS[1:2]
        else:
            continue
        for n, block, l2 in product(sizes, blocks, L2_STATES):
            yield kernel, Case(n, block, kernel.dtypes[0], l2=l2)


def all_times() -> list[Pair]:
    """Return every timed launch, ordered by input."""
    pairs = [(kernel, case) for kernel in _measured() for case in times_of(kernel)]
    pairs += later_times()
    return sorted(pairs, key=lambda pair: (_may_fault(pair), pair[1].dtype, pair[1].n))


def all_counters() -> list[Pair]:
    """Return every launch with counters."""
    pairs = [(kernel, case) for kernel in _measured() for case in counters_of(kernel)]
    return sorted(pairs, key=_may_fault)


def _measured() -> list[Entry]:
    return [kernel for kernel in twinned() if kernel.name not in LATER]


def profiled_together(pairs: Sequence[Pair]) -> list[tuple[str, list[Pair]]]:
    """Return named groups of launches: each potentially faulting kernel in its own process."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair[0].name if _may_fault(pair) else "all", []).append(pair)
    return list(groups.items())


def _may_fault(pair: Pair) -> bool:
    """Return whether the kernel may access memory out of bounds: such kernels come last.

    After a fault the process has lost the GPU.
    """
    return pair[0].one_block and pair[0].defect is not None
