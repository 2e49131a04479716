"""The microbenchmarks: each gives numbers of a device file, and its docstring says how.

None of them is a kernel of the catalogue, nor like one: what a device file gets from here is
as true for kernels that nobody has thought of.
"""

from . import launching, memory, pipes, shared
from .probing import PROBES, Probe

__all__ = ["PROBES", "Probe", "launching", "memory", "pipes", "shared"]
