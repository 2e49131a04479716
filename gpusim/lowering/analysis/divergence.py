"""Divergence analysis: the values, branches and blocks that may diverge within a warp."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.compiler.dominators import reverse_postorder
from gpusim.compiler.ir import Block, Function, Value
from gpusim.compiler.operations import SPECIAL_REGISTERS
from gpusim.lowering.analysis.def_use import users
from gpusim.lowering.analysis.loops import natural_loops, reachable
from gpusim.program import dataflow


def is_end(block: Block) -> bool:
    """Whether a block does nothing but end the thread."""
    return not block.targets and not block.body


def _varies_by_lane(value: Value) -> bool:
    """Whether an operation itself gives the lanes of a warp different values."""
    if value.op == "sreg" and SPECIAL_REGISTERS[value.detail].varies_by_lane:
        return True
    return value.operation.varies_by_lane


class Divergence:
    """The values, branches and blocks of a function that may differ between a warp's lanes.

    `join` gives, for each block, where its paths reconverge (see `reconvergence`).
    """

    def __init__(self, function: Function, join: Mapping[Block, Block | None]) -> None:
        self.branches: set[Block] = set()
        self.apart: set[Block] = set()
        self._join = join
        self._users = users(function)
        self._conditions: dict[Value, list[Block]] = {}
        self._loops = natural_loops(function)
        for block in reverse_postorder(function):
            if block.condition is not None:
                self._conditions.setdefault(block.condition, []).append(block)
        self.divergent = dataflow.reachable(
            filter(_varies_by_lane, function.values()), self._made_divergent
        )

    def _made_divergent(self, value: Value) -> list[Value]:
        """Return the values on which lanes disagree because they disagree on `value`."""
        found = list(self._users.get(value, ()))
        for block in self._conditions.get(value, ()):
            self.branches.add(block)
            found += self._after_branch(block)
        return found

    def _after_branch(self, block: Block) -> list[Value]:
        """Return the values that differ because lanes part at the end of `block`."""
        join = self._join.get(block)
        sides = [reachable([t], join) for t in block.targets]
        if not any(is_end(t) for t in block.targets):
            self.apart |= sides[0] | sides[1]
        reconverging = sides[0] & sides[1]
        if join is not None:
            reconverging.add(join)
        found = [phi for b in reconverging for phi in b.phis]
        for loop in self._loops:
            inside = set(loop.blocks)
            if block in inside and join not in inside:
                found += [
                    value
                    for b in loop.blocks
                    for value in (*b.phis, *b.body)
                    if any(self._outside(user, inside) for user in self._users.get(value, []))
                ]
        return found

    def _outside(self, user: Value, inside: set[Block]) -> bool:
        return not any(user in b.phis or user in b.body for b in inside)
