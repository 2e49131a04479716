"""Kernels of one body each, with the one rule that a check must find broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from gpusim.sass.kernels import CodeKernel, CudaSource, cuda_source


class PlantedBodies:
    """Bodies by rule, "" for right ones; the macro KERNEL(name, body) of `head` makes kernels."""

    def __init__(self, head: str, by_rule: Mapping[str, Sequence[str]]) -> None:
        self._head = head
        self.kinds = [(rule, body) for rule, every in by_rule.items() for body in every]

    @cached_property
    def _source(self) -> CudaSource:
        kernels = (f"KERNEL(k{number}, {body})\n" for number, (_, body) in enumerate(self.kinds))
        return cuda_source(self._head + "".join(kernels))

    def kernel(self, number: int) -> CodeKernel:
        """Return the kernel of a body."""
        return self._source[f"k{number}"]
