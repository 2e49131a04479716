"""Functions that choose the instructions of an operation; others are rows of `choices.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpusim.compiler.ir import Value
from gpusim.lowering.selection import memory, threads, values
from gpusim.lowering.selection.selection import Selection

Chooser = Callable[[Selection, Value], None]

CHOOSERS: Mapping[str, Chooser] = {
    "param": memory.fetch,
    "length": memory.fetch,
    "stride": memory.fetch,
    "pointer": memory.fetch,
    "sreg": memory.special_register,
    "shared_base": memory.shared_base,
    "address": memory.address,
    "load": memory.load,
    "load_vector": memory.load_vector,
    "element": memory.element,
    "store": memory.store,
    "store_vector": memory.store,
    "atomic": memory.atomic,
    "bounds": memory.bounds,
    "barrier": threads.barrier,
    "syncwarp": threads.syncwarp,
    "shuffle": threads.shuffle,
    "vote": threads.vote,
    "match": threads.match,
    "activemask": threads.activemask,
    "fence": threads.fence,
    "source_branch": threads.source_branch,
    "source_check": threads.source_check,
    "select": values.select,
    "cast": values.cast,
    "held": values.held,
    "math": values.math,
    "undef": values.undefined,
    "idiv": values.division,
    "rem": values.division,
}
