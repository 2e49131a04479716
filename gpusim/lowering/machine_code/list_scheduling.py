"""List scheduling within a block: loads go first, so that a warp waits for several at once.

As ptxas does for an unrolled loop. A load keeps its position among the loads, and
after all rows that may store to its address or that other threads may notice. Rows that wait
for a load from global memory come last, and copies that stand after a barrier go before it.
Loads go as far ahead as there are registers for (`register_pressure.py`).
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush

from gpusim.isa.ops import OPS
from gpusim.lowering.code import Code, Row
from gpusim.lowering.machine_code.dependences import checks_first, dependences, with_needs
from gpusim.lowering.machine_code.register_pressure import within_register_pressure

LATENCY = 4  # cycles until another instruction can use a result
WORTH = 32  # cycles that another order has to save: short code keeps its written order


def list_scheduling(code: Code) -> None:
    """Issue the loads of every block, with their operands, as early as possible."""
    for block, rows in code.rows.items():
        start = 0
        ordered: list[Row] = []
        early = _copied_early(rows)
        for place, row in enumerate([*early, None]):
            if row is None or not OPS[row.op].is_movable:
                ordered += _ordered(early[start:place])
                ordered += [] if row is None else [row]
                start = place + 1
        code.rows[block] = ordered
    within_register_pressure(code)


def _copied_early(rows: list[Row]) -> list[Row]:
    """Return rows with copies before a barrier that stood after it, where anything stands there.

    So a branch after it waits for nothing but its predicate.
    """
    after = dependences(rows)
    made: list[int] = []  # places in `rows`
    barrier = -1  # where in `made` the last barrier is that has something before it
    for place, row in enumerate(rows):
        op = OPS[row.op]
        if op.kind == "barrier":
            barrier = len(made) if made and OPS[rows[made[-1]].op].is_movable else -1
        elif not op.is_movable:
            barrier = -1
        elif barrier >= 0 and op.is_copy and after[place].isdisjoint(made[barrier:]):
            made.insert(barrier, place)
            barrier += 1
            continue
        made.append(place)
    return [rows[place] for place in made]


def _ordered(rows: list[Row]) -> list[Row]:
    loads = [place for place, row in enumerate(rows) if OPS[row.op].kind == "load"]
    after = dependences(rows)
    first: dict[int, None] = {}
    if len(loads) > 1:
        for load in loads:
            with_needs(load, after, first)
    late = _late(rows, after)
    rest = [place for place in range(len(rows)) if place not in first]
    rest.sort(key=late.__contains__)
    order = _quicker(rows, after, [], list(first))
    order += _quicker(rows, after, order, rest)
    return [rows[place] for place in checks_first(rows, after, order)]


def _quicker(
    rows: list[Row], after: list[set[int]], done: list[int], order: list[int]
) -> list[int]:
    """Return the rows in list-scheduled order if it saves enough stalls, else in their own."""
    spread = _spread(rows, after, done, order)
    saved = _cycles(rows, after, done, order) - _cycles(rows, after, done, spread)
    return spread if saved >= WORTH else order


def _cycles(rows: list[Row], after: list[set[int]], done: list[int], order: list[int]) -> int:
    """Return the cycles to issue rows in an order, after the rows in `done`."""
    there = dict.fromkeys(done, 0)
    now = 0
    for place in order:
        now = max([now, *(there[needed] for needed in after[place])])
        there[place] = now
        if OPS[rows[place].op].issued:
            there[place] += LATENCY
            now += 1
    return now


def _spread(rows: list[Row], after: list[set[int]], done: list[int], order: list[int]) -> list[int]:
    """Return the rows in list-scheduled order: the first ready one, else the one ready first."""
    there = dict.fromkeys(done, 0)
    position = {place: number for number, place in enumerate(order)}
    needs = {place: sum(one not in there for one in after[place]) for place in order}
    users: dict[int, list[int]] = defaultdict(list)
    for place in order:
        for one in after[place]:
            users[one].append(place)
    waiting = [(0, position[place]) for place in order if not needs[place]]  # by when, and where
    ready: list[int] = []
    made: list[int] = []
    now = 0
    while len(made) < len(order):
        while waiting and waiting[0][0] <= now:
            heappush(ready, heappop(waiting)[1])
        at, number = (now, heappop(ready)) if ready else heappop(waiting)
        best = order[number]
        made.append(best)
        now = there[best] = max(now, at)
        if OPS[rows[best].op].issued:
            there[best] += LATENCY
            now += 1
        for user in users[best]:
            needs[user] -= 1
            if not needs[user]:
                when = max(there[needed] for needed in after[user])
                heappush(waiting, (when, position[user]))
    return made


def _late(rows: list[Row], after: list[set[int]]) -> set[int]:
    """Return the rows that wait for loads from global memory in this block."""
    loaded: set[int] = set()
    late: set[int] = set()
    for place, row in enumerate(rows):
        if not loaded.isdisjoint(row.reads) or not late.isdisjoint(after[place]):
            late.add(place)
        if OPS[row.op].kind == "load" and row.memory is not None and row.memory.space == "global":
            loaded.update(row.dst)
    return late
