"""Options that describe a launch, of a kernel of the catalogue or of `FILE.cu:KERNEL`."""

from __future__ import annotations

from gpusim.cli.options import (
    BLOCK,
    COARSE,
    COMPILING,
    COUNT,
    DATA_TYPE,
    GRID,
    INPUT,
    OPERATION,
    Option,
)

ARGUMENT = Option("--arg", "an argument of FILE.py:FUNCTION, see below", "[NAME=]VALUE", None, True)
ARGUMENT_ORDER = "arguments of FILE.py:FUNCTION, in order, or by name as NAME=VALUE:"
WITH_ELEMENTS = (
    "an array with elements, for data-dependent control flow or addresses: zeros, ones, arange, "
    "random, random:SEED:LEAST:MOST, full:NUMBER"
)
SIZES_OF_N = (
    "sizes as expressions of -n N and the block's threads, in --grid too, as ceil(n/16)xn: "
    "+ - * / %, min, max, ceil"
)
SHARED_BYTES = Option(
    "--shared-bytes", "dynamic shared memory of a block, for FILE.py:FUNCTION", "BYTES"
)
# How a launch is described, of the catalogue or of one's own.
LAUNCHING = (
    COUNT,
    BLOCK,
    GRID,
    OPERATION,
    DATA_TYPE,
    INPUT,
    COARSE,
    ARGUMENT,
    SHARED_BYTES,
)

# How the launch of one's own kernel is described beside its size and its block.
OWN = (GRID, ARGUMENT, SHARED_BYTES, *COMPILING)
