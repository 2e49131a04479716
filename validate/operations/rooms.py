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
    for module in (single, double, half, conversion, integer, warp, atomic, memory, features)
}
# Rooms that no GPU has a record of yet: they are packed and run by name alone.
UNMEASURED = {
    module.__name__.rpartition(".")[2]: module.operations for module in (classes, library, idioms)
}


@cache
def room(name: str) -> tuple[Operation, ...]:
    """Return the operations of a room; InputError for a name that there is not."""
    known = ROOMS | UNMEASURED
    if name not in known:
        raise InputError(f"there is no room {name!r} of operations: {', '.join(known)}")
    made = tuple(known[name]())
    twice = [one for one, count in Counter(o.name for o in made).items() if count > 1]
    assert not twice, twice
    return made
