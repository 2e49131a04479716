"""What every lane of a warp agrees on: values, branches, and where all lanes run together."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.compiler.ir import INT32, UINT32, Block, Function, Value
from gpusim.compiler.operations import SPECIAL_REGISTERS
from gpusim.lowering.analysis.live_values import needed_values
from gpusim.lowering.graph import natural_loops, reverse_postorder, users


def reachable(starts: list[Block], stop: Block | None) -> set[Block]:
    """Return the blocks that `starts` lead to without passing `stop`."""
    seen: set[Block] = set()
    stack = [b for b in starts if b is not stop]
    while stack:
        block = stack.pop()
        if block not in seen:
            seen.add(block)
            stack += [t for t in block.targets if t is not stop]
    return seen


def is_end(block: Block) -> bool:
    """Whether a block does nothing but end the thread."""
    return not block.targets and not block.body


class Uniformity:
    """Which values, branches and blocks of a function may differ between a warp's lanes.

    `join` gives, for each block, where its ways out meet again (see `reconverge`).
    """

    def __init__(self, function: Function, join: Mapping[Block, Block | None]) -> None:
        self.divergent: set[Value] = set()
        self.branches: set[Block] = set()
        self.apart: set[Block] = set()
        self._join = join
        self._users = users(function)
        self._conditions: dict[Value, list[Block]] = {}
        self._loops = natural_loops(function)
        for block in reverse_postorder(function):
            if block.condition is not None:
                self._conditions.setdefault(block.condition, []).append(block)
        for value in function.values():
            lane = value.op == "sreg" and SPECIAL_REGISTERS[value.detail].varies_by_lane
            if lane or value.operation.varies_by_lane:
                self._mark(value)

    def _mark(self, value: Value) -> None:
        stack = [value]
        while stack:
            value = stack.pop()
            if value in self.divergent:
                continue
            self.divergent.add(value)
            stack += self._users.get(value, [])
            for block in self._conditions.get(value, []):
                if block not in self.branches:
                    self.branches.add(block)
                    stack += self._after_branch(block)

    def _after_branch(self, block: Block) -> list[Value]:
        """Return the values that differ because lanes part at the end of `block`."""
        join = self._join.get(block)
        sides = [reachable([t], join) for t in block.targets]
        if not any(is_end(t) for t in block.targets):
            self.apart |= sides[0] | sides[1]
        meeting = sides[0] & sides[1]
        if join is not None:
            meeting.add(join)
        found = [phi for b in meeting for phi in b.phis]
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


def uniform_values(function: Function, uniformity: Uniformity) -> set[Value]:
    """Return the values that a compiler keeps in uniform registers.

    They are 32-bit integers that all lanes agree on, computed where all lanes run, from the
    launch's constants; and every reader can take a uniform register where it needs it.
    """
    found: set[Value] = set()
    for block in function.blocks:
        if block not in uniformity.apart:
            for value in (*block.phis, *block.body):
                launch = value.op == "sreg" and SPECIAL_REGISTERS[value.detail].is_of_launch
                computed = (
                    value.operation.uniform == "computes" and value not in uniformity.divergent
                )
                if value.dtype in (INT32, UINT32) and (launch or computed):
                    found.add(value)
    needed = needed_values(function)
    readers = {v: [u for u in some if u in needed] for v, some in users(function).items()}
    changed = True
    while changed:
        changed = False
        for value in [v for v in function.values() if v in found]:
            fed = all(a.op == "const" or a in found for a in value.args)
            if not fed or not all(_takes(user, value, found) for user in readers.get(value, [])):
                found.remove(value)
                changed = True
    return found


def _takes(user: Value, value: Value, found: set[Value]) -> bool:
    if user in found:
        return True
    if user.operation.scales:
        return user.args[0] is not value
    if user.operation.is_comparison:
        other = user.args[1] if user.args[0] is value else user.args[0]
        return other.constant is None or other.constant == 0
    return bool(user.operation.uniform)
