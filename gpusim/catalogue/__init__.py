"""The kernels that come with gpusim, with launch rules and expected results."""

from gpusim.catalogue.registry import (
    NUMBERS,
    REDUCTION,
    SCAN,
    BlockRule,
    Call,
    Entry,
    Family,
    Kernel,
    Origin,
    Setup,
    Template,
    entries,
    find,
    kernel,
    sample,
)
from gpusim.catalogue.request import PASSES, Request

__all__ = [
    "NUMBERS",
    "PASSES",
    "REDUCTION",
    "SCAN",
    "BlockRule",
    "Call",
    "Entry",
    "Family",
    "Kernel",
    "Origin",
    "Request",
    "Setup",
    "Template",
    "entries",
    "find",
    "kernel",
    "sample",
]
