"""Kernels that are not in the catalogue, measured on an H200: see `plans.py`."""

from __future__ import annotations

from collections.abc import Iterator

from . import (
    assignments,
    atomics,
    backends,
    basics,
    classics,
    engineering,
    fields,
    gathers,
    grids,
    laws,
    models,
    networks,
    pictures,
    queries,
    records,
    rows,
    sciences,
    streams,
    surveys,
    tensors,
    tiles,
    tokens,
    training,
    warehouse,
)
from .plans import KERNELS, LAW, LAWS, Launch

MODULES = (
    basics,
    streams,
    rows,
    gathers,
    atomics,
    grids,
    tiles,
    networks,
    sciences,
    training,
    assignments,
    fields,
    records,
    pictures,
    models,
    queries,
    tensors,
    tokens,
    engineering,
    classics,
    warehouse,
    surveys,
    backends,
    laws,
)
FILES = tuple(module.__name__.rpartition(".")[2] for module in MODULES)


def launches(part: str = "all") -> Iterator[Launch]:
    """Yield the launches of a part, or of all but those that show laws, by kernel and size."""
    for kernel in (LAWS if part == LAW else KERNELS).values():
        if part in ("all", kernel.part):
            yield from map(kernel.at, kernel.sizes)
