"""The microbenchmarks: each gives numbers of a device file, and its docstring says how.

None of them is a kernel of the catalogue, nor like one: what a device file gets from here is
as true for kernels that nobody has thought of.
"""

from . import (
    atomics,
    fetching,
    l1,
    l2,
    launching,
    memory,
    ordering,
    patterns,
    pipes,
    shared,
    staging,
    stores,
    under_way,
)
from .probing import PROBES, Probe

__all__ = [
    "PROBES",
    "Probe",
    "atomics",
    "fetching",
    "l1",
    "l2",
    "launching",
    "memory",
    "ordering",
    "patterns",
    "pipes",
    "shared",
    "staging",
    "stores",
    "under_way",
]
