"""The memory order of loads, stores and atomics: the PTX that became the machine code has it.

Machine code keeps neither `volatile` in shared memory nor an acquire in block scope. Its rows name
the instructions of PTX with both. Without PTX the machine code alone decides: an acquire in a wider
scope drops the lines of the L1 cache (`CCTL.IVALL`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpusim.isa.ops import OPS, Memory
from gpusim.sass.decoding import Micro
from gpusim.sass.listing import Row
from gpusim.sass.ptx import Ptx, PtxRow

KINDS = {"ld": "load", "st": "store", "atom": "atomic", "red": "atomic"}
_ORDERS = ("volatile", "relaxed", "acquire", "release", "acq_rel")
_NO_FLAGS = {"param", "const", "local", "nc"}  # spaces and caches without strong accesses
_ACQUIRES = ("acquire", "acq_rel")


def joins_atomics(micro: Micro, row: Row, ptx: Ptx) -> bool:
    """Return whether the compiler lets lanes meet there, to make one atomic of theirs."""
    became_of = ptx.rows(row.ptx_line)
    return OPS[micro.op].orders_lanes and any(KINDS.get(o.mnemonic) == "atomic" for o in became_of)


def ordered(micros: Sequence[Micro], rows: Sequence[Row], ptx: Ptx | None) -> Iterator[Micro]:
    """Yield the steps of a kernel, their accesses with the order that PTX or machine code has."""
    for micro in micros:
        memory, op = micro.memory, OPS[micro.op]
        if micro.op == "NOP" and _shows_barriers(rows[micro.row], ptx):
            yield Micro("ERRBAR", micro.row, "block", (), (), micro.guard, issued=False)
        if memory is None or not op.kind or op.copies:
            yield micro
            continue
        became_of = () if ptx is None else ptx.rows(rows[micro.row].ptx_line)
        if op.kind == "load" and any(_asks_for_phase(one) for one in became_of):
            yield replace(micro, memory=replace(memory, volatile=True, of_block=True))
            yield Micro("MEMBAR", micro.row, "block", (), (), micro.guard, issued=False)
            continue
        order = _known(became_of, op.kind)
        if order is None:
            yield replace(micro, memory=_as_the_code_says(memory, micro, rows))
        else:
            made = _with_order(memory, order, is_atomic=op.kind == "atomic")
            yield replace(micro, memory=made)


def _shows_barriers(row: Row, ptx: Ptx | None) -> bool:
    """Return whether a row is a fence.mbarrier_init: in machine code a NOP holds its place."""
    became_of = () if ptx is None else ptx.rows(row.ptx_line)
    return any(one.mnemonic == "fence" and "mbarrier_init" in one.words for one in became_of)


def _asks_for_phase(row: PtxRow) -> bool:
    """Return whether a row requests a barrier's phase: a plain load before cc 9.0, an acquire."""
    return row.mnemonic == "mbarrier" and not {"test_wait", "try_wait"}.isdisjoint(row.words)


def _known(became_of: Sequence[PtxRow], kind: str) -> str | None:
    """Return the order of an access in PTX: "" for a weak one, None where that is not known."""
    orders = {
        _order(one)
        for one in became_of
        if KINDS.get(one.mnemonic) == kind and _NO_FLAGS.isdisjoint(one.words)
    }
    return orders.pop() if len(orders) == 1 else None


def _order(row: PtxRow) -> str:
    """Return an access's order; an atomic without one is relaxed (PTX ISA, atom)."""
    named = next((word for word in row.words if word in _ORDERS), "")
    return named or ("relaxed" if KINDS[row.mnemonic] == "atomic" else "")


def _with_order(memory: Memory, order: str, *, is_atomic: bool) -> Memory:
    return replace(
        memory,
        volatile=memory.volatile or (bool(order) and not is_atomic),
        relaxed=order not in ("", "volatile"),
        acquires=order in _ACQUIRES,
        releases=order == "release" and not is_atomic,
    )


def _as_the_code_says(memory: Memory, micro: Micro, rows: Sequence[Row]) -> Memory:
    """Return an access with the order that its row and the next one show.

    Volatile ones are of system scope. Acquires in block scope look as relaxed ones: all count.
    """
    row, behind = rows[micro.row], rows[micro.row + 1 : micro.row + 2]
    if memory.space == "shared":
        return memory
    drops = any(one.name == "CCTL.IVALL" and one.guard == row.guard for one in behind)
    is_relaxed = memory.volatile and "SYS" not in row.modifiers
    return replace(memory, relaxed=is_relaxed or drops, acquires=drops or memory.of_block)
