"""Rematerialisation: facts of the launch are fetched again near their uses, as ptxas does.

Parameters and pointers come from constant memory again wherever that is cheaper than keeping
them; facts of the thread are read once at the start.
"""

from __future__ import annotations

from typing import Any

from gpusim.compiler.dominators import Dominators, dominators
from gpusim.compiler.ir import INT32, UINT32, Block, Function, Value
from gpusim.compiler.operations import OPERATIONS, SPECIAL_REGISTERS
from gpusim.lowering.analysis.def_use import definitions, users
from gpusim.lowering.analysis.live_values import live_values
from gpusim.lowering.analysis.loops import Loop, natural_loops, reachable
from gpusim.lowering.graph import remove_values, replace_uses
from gpusim.lowering.passes.address_lowering import Addresses


def is_fetched(value: Value) -> bool:
    """Whether a value lies in constant memory or is the same for the whole block."""
    if value.op == "sreg":
        return SPECIAL_REGISTERS[value.detail].is_of_launch
    return bool(value.operation.fetched)


def rematerialisation(function: Function, addresses: Addresses) -> None:
    """Read thread and block numbers once at the start, the rest where it is used."""
    _sink_terms(function)
    _fetch_as_used(function)
    _read_once(function)
    _Rematerialiser(function, addresses).run()


def _sink_terms(function: Function) -> None:
    """Move sums and products to the one addition that uses them.

    There they cost nothing: additions take three terms or a product. Into a loop go
    products by constants alone, where recomputation is free.
    """
    inner: dict[Block, Loop] = {}
    for loop in reversed(natural_loops(function)):
        inner.update(dict.fromkeys(loop.blocks, loop))
    using = users(function)
    home = definitions(function)
    conditions = {b.condition for b in function.blocks}
    for block in function.blocks:
        for value in list(block.body):
            if value.op not in ("add", "sub") or value.dtype not in (INT32, UINT32):
                continue
            for term in value.args:
                if term.op not in ("add", "sub", "shl", "mul") or term not in home:
                    continue
                scaled = term.op in ("shl", "mul") and term.args[1].constant is not None
                near = inner.get(home[term]) is inner.get(block)
                alone = len(using.get(term, ())) == 1 and term not in conditions
                if alone and home[term] is not block and (near or (scaled and value.op == "add")):
                    home[term].body.remove(term)
                    block.body.insert(block.body.index(value), term)
                    home[term] = block
                    break


def _fetch_as_used(function: Function) -> None:
    """Fetch a 32-bit integer in the type that all its uses convert it to."""
    needed = live_values(function)
    types: dict[Any, set[Any]] = {}
    for value in needed:
        for arg in value.args:
            if is_fetched(arg):
                kind = value.dtype if value.op == "cast" else None
                types.setdefault((arg.op, arg.detail), set()).add(kind)
    instead: dict[Value, Value] = {}
    for value in function.values():
        if value.op != "cast" or not is_fetched(value.args[0]) or value.dtype is None:
            continue
        source = value.args[0]
        integers = source.dtype in (INT32, UINT32) and value.dtype in (INT32, UINT32)
        if integers and types.get((source.op, source.detail)) == {value.dtype}:
            instead[value] = Value(source.op, value.dtype, detail=source.detail, line=value.line)
    replace_uses(function, instead)
    remove_values(function, set(instead))


def _read_once(function: Function) -> None:
    first: dict[str, Value] = {}
    instead: dict[Value, Value] = {}
    for block in function.blocks:
        for value in block.body:
            if value.op == "sreg" and not is_fetched(value):
                instead[value] = first.setdefault(value.detail, value)
    for block in function.blocks:
        block.body = [v for v in block.body if v not in instead]
        for value in (*block.phis, *block.body):
            value.args = [instead.get(a, a) for a in value.args]
    function.entry.body = [*first.values(), *function.entry.body]


class _Use:
    """A use of a value: before the `index`-th operation of a block."""

    def __init__(self, block: Block, index: int, user: Value | None, position: int) -> None:
        self.block = block
        self.index = index
        self.user = user
        self.position = position


class _Rematerialiser:
    def __init__(self, function: Function, addresses: Addresses) -> None:
        self.function = function
        self.direct = addresses.direct
        self.tree: Dominators = dominators(function)
        self.loops: list[Loop] = natural_loops(function, self.tree)
        self.around_others = [o for o in self.loops if any(i.parent is o for i in self.loops)]
        self.order = {b: i for i, b in enumerate(self.tree.preorder())}
        self.live = live_values(function)
        self.uses: dict[tuple[Any, ...], list[_Use]] = {}
        self.inserted: dict[Block, list[tuple[int, Value]]] = {}
        self.last_barrier: dict[Block, Value | None] = {}

    def run(self) -> None:
        for block in self.function.blocks:
            block.body = [v for v in block.body if not is_fetched(v)]
        for block in self.tree.preorder():
            parent = self.tree.parent[block]
            last = None if parent is None else self.last_barrier[parent]
            for index, value in enumerate(block.body):
                for position, arg in enumerate(value.args):
                    if is_fetched(arg):
                        self._use(arg, _Use(block, index, value, position))
                if value.op == "barrier":
                    last = value
            self.last_barrier[block] = last
            for phi in block.phis:
                for position, arg in enumerate(phi.args):
                    if is_fetched(arg):
                        pred = block.preds[position]
                        self._use(arg, _Use(pred, len(pred.body), phi, position))
            if block.condition is not None and is_fetched(block.condition):
                self._use(block.condition, _Use(block, len(block.body), None, 0))
        for key, uses in self.uses.items():
            self._place(key, uses)
        for block, new in self.inserted.items():
            for index, value in sorted(new, key=lambda n: n[0], reverse=True):
                block.body.insert(index, value)

    def _use(self, value: Value, use: _Use) -> None:
        self.uses.setdefault((value.op, value.dtype, value.detail), []).append(use)

    def _place(self, key: tuple[Any, ...], uses: list[_Use]) -> None:
        op, dtype, detail = key
        made: list[tuple[Block, int, Value]] = []
        uses.sort(key=lambda u: (self._of_source(u), self.order[u.block], u.index))
        for use in uses:
            block, index = self._outside_loops(op, use.block, use.index)
            value = next((v for b, i, v in made if self._serves(op, b, i, block, index, use)), None)
            if value is None:
                line = block.line if use.user is None else use.user.line
                value = Value(op, dtype, detail=detail, line=line)
                made.append((block, index, value))
                self.inserted.setdefault(block, []).append((index, value))
            if use.user is None:
                use.block.condition = value
            else:
                use.user.args[use.position] = value

    def _of_source(self, use: _Use) -> bool:
        """Whether only a conditional of the source needs the value."""
        return use.user is not None and use.user not in self.live

    def _outside_loops(self, op: str, block: Block, index: int) -> tuple[Block, int]:
        """Leave the loops around; parameters stay in one that holds another loop.

        Pointers stay also in code from late unrolling.
        """
        for loop in self.loops:
            if block in loop.blocks and loop.preheader is not None:
                if OPERATIONS[op].fetched == "constant" and loop in self.around_others:
                    break
                if op == "pointer" and loop.header.late:
                    break
                block = loop.preheader
                index = len(block.body)
        return block, index

    def _serves(self, op: str, home: Block, at: int, block: Block, index: int, use: _Use) -> bool:
        """Whether a value fetched before operation `at` of `home` is kept for this use."""
        if home is block:
            if at > index:
                return False
        elif not self.tree.dominates(home, block):
            return False
        if self._of_source(use):
            return True
        if OPERATIONS[op].fetched == "constant":
            if any(block in o.blocks and home not in o.blocks for o in self.around_others):
                return False
            return self._barrier_before(home, at) is self._barrier_before(block, index)
        if op == "shared_base" and use.user in self.direct:
            return not any(self._between(home, loop, block) for loop in self.loops)
        return True

    def _between(self, home: Block, loop: Loop, block: Block) -> bool:
        """Whether a loop with a conditional in it lies on the path from `home` to `block`."""
        return (
            len(loop.blocks) > 1
            and block not in loop.blocks
            and home not in loop.blocks
            and self.tree.dominates(home, loop.header)
            and block in reachable([loop.header])
        )

    def _barrier_before(self, block: Block, index: int) -> Value | None:
        for value in reversed(block.body[:index]):
            if value.op == "barrier":
                return value
        parent = self.tree.parent[block]
        return None if parent is None else self.last_barrier[parent]
