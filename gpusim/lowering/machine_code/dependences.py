"""Dependences between the rows of a block: constraints on any order of issue."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container

from gpusim.isa.ops import OPS
from gpusim.lowering.code import Row


def dependences(rows: list[Row]) -> list[set[int]]:
    """Return, for each row, the earlier rows that have to stay before it."""
    after: list[set[int]] = []
    written: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    memory: dict[str, int] = {}
    last_load = -1
    for place, row in enumerate(rows):
        needs = {written[r] for r in row.reads if r in written}
        for register in row.dst:
            needs.update(readers.get(register, ()))
            if register in written:
                needs.add(written[register])
        kind = OPS[row.op].kind
        if row.memory is not None:
            space = row.memory.space
            if space in memory:
                needs.add(memory[space])
            if kind == "load":
                needs.add(last_load)
                last_load = place
            else:
                needs.add(last_load)
                memory[space] = place
        after.append({n for n in needs if n >= 0})
        for register in row.reads:
            readers.setdefault(register, []).append(place)
        for register in row.dst:
            written[register] = place
            readers[register] = []
    return after


def with_needs(
    place: int, after: list[set[int]], done: dict[int, None], before: Container[int] = ()
) -> None:
    """Add a row to `done`, after its dependences that are neither done nor in `before`."""
    if place in done or place in before:
        return
    waiting = [(place, iter(sorted(after[place])))]
    while waiting:
        last, needs = waiting[-1]
        needed = next((one for one in needs if one not in done and one not in before), None)
        if needed is None:
            done[last] = None
            waiting.pop()
        else:
            waiting.append((needed, iter(sorted(after[needed]))))


def checks_first(rows: list[Row], after: list[set[int]], order: list[int]) -> list[int]:
    """Return an order with checks of indices before the accesses that they belong to.

    Only rows that are never issued move for it.
    """
    left = [place for place, row in enumerate(rows) if OPS[row.op].kind == "bounds"]
    made: dict[int, None] = {}
    for place in order:
        if rows[place].memory is not None and left:
            end = bisect_left(left, place)
            for check in left[:end]:
                moved: dict[int, None] = {}
                with_needs(check, after, moved, made)
                if not any(OPS[rows[p].op].issued for p in moved):
                    made |= moved
            left[:end] = [check for check in left[:end] if check not in made]
        made.setdefault(place)
    return list(made)
