"""Order within a block: loads go first, so that a warp waits for several at once.

As ptxas does for the rows of an unrolled loop. A load keeps its place among the loads, and
behind everything that may store to what it reads or that other threads may notice.
"""

from __future__ import annotations

from gpusim.isa import OPS
from gpusim.lowering.code import Code, Row

MOVABLE = frozenset(("compute", "load", "special", "constant", "store", "source_branch"))


def schedule(code: Code) -> None:
    """Let the loads of every block, and what they need, be issued as early as they may."""
    for block, rows in code.rows.items():
        start = 0
        ordered: list[Row] = []
        for place, row in enumerate([*rows, None]):
            if row is None or OPS[row.op].kind not in MOVABLE:
                ordered += _ordered(rows[start:place])
                ordered += [] if row is None else [row]
                start = place + 1
        code.rows[block] = ordered


def _ordered(rows: list[Row]) -> list[Row]:
    loads = [place for place, row in enumerate(rows) if OPS[row.op].kind == "load"]
    if len(loads) < 2:
        return rows
    after = _dependences(rows)
    first: dict[int, None] = {}
    for load in loads:
        _with_needs(load, after, first)
    return [rows[place] for place in (*first, *(p for p in range(len(rows)) if p not in first))]


def _with_needs(place: int, after: list[set[int]], done: dict[int, None]) -> None:
    """Add a row to what is done, behind all that has to come before it."""
    if place in done:
        return
    for needed in sorted(after[place]):
        _with_needs(needed, after, done)
    done[place] = None


def _dependences(rows: list[Row]) -> list[set[int]]:
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
