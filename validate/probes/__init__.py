"""The microbenchmarks: each measures keys of a device file; its docstring is the method.

None of them is a kernel of the catalogue or resembles one: their numbers hold for any kernel.
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
    staging_in_bulk,
    stores,
    thread_block_clusters,
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
    "staging_in_bulk",
    "stores",
    "thread_block_clusters",
    "under_way",
]
