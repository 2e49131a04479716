"""SSA repair, after a pass has given a value several definitions.

Copying blocks makes one value of the source many: each use must see the copy that reaches
it. Definitions are looked up block by block, with a phi where several reach (Braun et al.,
"Simple and Efficient Construction of Static Single Assignment Form").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.analysis.def_use import definitions
from gpusim.lowering.graph import remove_values, replace_uses
from gpusim.typing import DType


class Variable:
    """One variable: its values at the ends of its defining blocks, and the ones found so far."""

    def __init__(
        self, function: Function, dtype: DType | None, ends: Mapping[Block, Value], line: int = 0
    ) -> None:
        self.function = function
        self.dtype = dtype
        self.line = line
        self.ends = dict(ends)
        self.starts: dict[Block, Value] = {}
        self.phis: list[tuple[Block, Value]] = []

    def at_end(self, block: Block) -> Value:
        """Return the variable's value at the end of `block`."""
        found = self.ends.get(block)
        return self.at_start(block) if found is None else found

    def at_start(self, block: Block) -> Value:
        """Return the variable's value at the start of `block`, placing phis."""
        path: list[Block] = []
        while block not in self.starts and len(block.preds) == 1:
            path.append(block)
            block = block.preds[0]
            if block in self.ends:
                value = self.ends[block]
                break
        else:
            value = self._join(block)
        for other in path:
            self.starts[other] = value
        return value

    def _join(self, block: Block) -> Value:
        if block in self.starts:
            return self.starts[block]
        if not block.preds:
            value = Value("undef", self.dtype, line=self.line)
            block.body.insert(0, value)
            self.starts[block] = value
            return value
        phi = Value("phi", self.dtype, line=self.line)
        self.starts[block] = phi
        self.phis.append((block, phi))
        phi.args = [self.at_end(pred) for pred in block.preds]
        return phi


def insert_phis(
    function: Function,
    variables: Iterable[Variable],
    replacements: Mapping[Value, Value] | None = None,
) -> Callable[[Value], Value]:
    """Put the phis that reading the variables made into their blocks, without idle ones.

    `replacements` are values that give way to others, perhaps to such phis. Return the
    function from any value to its present replacement.
    """
    made: dict[Value, Block] = {}
    for variable in variables:
        for block, phi in variable.phis:
            made[phi] = block
    gone = _trivial(made, replacements or {})
    for phi, block in made.items():
        if phi not in gone:
            block.phis.append(phi)
    replace_uses(function, gone)
    remove_values(function, set(gone))

    def final(value: Value) -> Value:
        while value in gone:
            value = gone[value]
        return value

    return final


def _trivial(
    phis: Mapping[Value, Block], replacements: Mapping[Value, Value]
) -> dict[Value, Value]:
    """Return `replacements`, and each phi of nothing but one other value with that."""
    gone = dict(replacements)

    def final(value: Value) -> Value:
        while value in gone:
            value = gone[value]
        return value

    changed = True
    while changed:
        changed = False
        for phi in phis:
            if phi in gone:
                continue
            others = {final(a) for a in phi.args} - {phi}
            if len(others) == 1:
                gone[phi] = others.pop()
                changed = True
    return gone


def repair(function: Function, copies: Mapping[Value, Mapping[Block, Value]]) -> None:
    """Let every use of each key see the definition that reaches it.

    `copies[v]` gives, by block, the value of `v` at that block's end: v itself where v is
    defined, its copies elsewhere. A use after v in v's own block keeps it.
    """
    home, moved = definitions(function), copies.keys()
    variables: dict[Value, Variable] = {}

    def variable(value: Value) -> Variable:
        if value not in variables:
            variables[value] = Variable(function, value.dtype, copies[value], value.line)
        return variables[value]

    def at_start(value: Value, block: Block) -> Value:
        return value if home.get(value) is block else variable(value).at_start(block)

    for block in list(function.blocks):
        for phi in block.phis:
            if not moved.isdisjoint(phi.args):
                phi.args = [
                    variable(a).at_end(pred) if a in copies else a
                    for a, pred in zip(phi.args, block.preds, strict=True)
                ]
        for value in block.body:
            if not moved.isdisjoint(value.args):
                value.args = [at_start(a, block) if a in copies else a for a in value.args]
        if block.condition is not None and block.condition in copies:
            block.condition = at_start(block.condition, block)
    insert_phis(function, variables.values())


def remove_trivial_phis(function: Function) -> None:
    """Let phis of nothing but one value give way to it."""
    gone = _trivial({phi: block for block in function.blocks for phi in block.phis}, {})
    remove_values(function, set(gone))
    replace_uses(function, gone)
