"""Logic of three inputs: LOP3 computes any function of the bits of three words at once.

An operation absorbs its operands as long as the whole has three inputs: its cuts are
enumerated, as in technology mapping to look-up tables, and the largest one is taken. An
operation absorbed by all its uses is not computed.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.compiler.ir import INT32, UINT32, Block, Value
from gpusim.isa.lookup_tables import INPUTS, LOGIC, logic
from gpusim.lowering.passes.gvn import value_key
from gpusim.lowering.selection.selection import Selection

ALL_BITS = 0xFF
MOST_CUTS = 16


@dataclass(frozen=True)
class Cut:
    """The inputs of an operation as a function of them, and the operations it absorbs."""

    inputs: tuple[Value, ...] = ()
    parts: frozenset[Value] = frozenset()

    def joined(self, other: Cut) -> Cut:
        """Return both together; equal constants are one input."""
        inputs = {value_key(v): v for v in (*self.inputs, *other.inputs)}
        return Cut(tuple(inputs.values()), self.parts | other.parts)


def absorb_logic(selection: Selection, block: Block) -> None:
    """Find the operations of a block that become part of the logic that uses them."""
    here = [v for v in block.body if v.op in LOGIC and v.dtype in (INT32, UINT32)]
    here = [v for v in here if v in selection.live]
    cuts: dict[Value, list[Cut]] = {}
    for value in here:
        cuts[value] = _cuts(selection, value, cuts)
    needed: set[Value] = set()
    for value in reversed(here):
        elsewhere = any(user not in cuts for user in selection.users.get(value, ()))
        if not (elsewhere or value in needed or value in selection.of_source):
            selection.inside.add(value)
            continue
        alone = _masks_shared_index(selection, value)
        best = max(cuts[value], key=lambda cut: len(cut.parts))
        needed.update(value.args if alone else best.inputs)
        if best.parts and not alone:
            selection.logic[value] = best.inputs


def _cuts(selection: Selection, value: Value, cuts: dict[Value, list[Cut]]) -> list[Cut]:
    """Return the cuts of an operation with up to three inputs, the plain one first."""
    found = [Cut()]
    for arg in value.args:
        apart = arg in selection.uniform and value not in selection.uniform
        deeper = [] if apart else cuts.get(arg, [])
        ways = [Cut((arg,)), *(Cut(cut.inputs, cut.parts | {arg}) for cut in deeper)]
        found = [one.joined(way) for one in found for way in ways]
        found = [cut for cut in found if len(cut.inputs) <= len(INPUTS)]
    return found[:MOST_CUTS]


def _masks_shared_index(selection: Selection, value: Value) -> bool:
    """Whether a mask is for an index of shared memory: it is applied to that as scaled, alone."""
    users = selection.users.get(value, ())
    while len(users) == 1 and users[0].op == "cast":
        users = selection.users.get(users[0], ())
    places = bool(users) and all(u.op == "address" and u.dtype == UINT32 for u in users)
    return places and value.args[-1].constant is not None


def write_logic(selection: Selection, value: Value) -> None:
    """Write the one instruction for an operation and all that it has absorbed."""
    inputs = selection.logic[value]
    known = {value_key(v): table for v, table in zip(inputs, INPUTS, strict=False)}
    assert value.dtype is not None
    sources = [selection.register(v) for v in inputs]
    sources += [selection.emit.number(0, value.dtype)] * (len(INPUTS) - len(inputs))
    selection.write(value, "LOP3", *sources, detail=_table(value, known))


def _table(value: Value, known: dict[object, int]) -> int:
    """Return the look-up table of a value, a function of the inputs' tables."""
    found = known.get(value_key(value))
    if found is not None:
        return found
    tables = [_table(arg, known) for arg in value.args]
    return int(logic(value.op, *tables)) & ALL_BITS
