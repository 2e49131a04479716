"""The rooms of the corpus, by name."""

from __future__ import annotations

from collections import Counter
from functools import cache

from gpusim.errors import InputError

from . import (
    atomic,
    classes,
    conversion,
    double,
    features,
    half,
    idioms,
    integer,
    library,
    memory,
    single,
    warp,
)
from .operation import Operation

ROOMS = {
    module.__name__.rpartition(".")[2]: module.operations
    for module in (
        single, double, half, conversion, integer, warp, atomic, memory, features, classes,
        library, idioms,
    )
}  # fmt: skip


@cache
def room(name: str) -> tuple[Operation, ...]:
    """Return the operations of a room; InputError for a name that there is not."""
    if name not in ROOMS:
        raise InputError(f"there is no room {name!r} of operations: {', '.join(ROOMS)}")
    made = tuple(ROOMS[name]())
    twice = [one for one, count in Counter(o.name for o in made).items() if count > 1]
    assert not twice, twice
    return made
