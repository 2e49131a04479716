"""SSA form while it grows: blocks, variables and the phis that reading a variable needs.

The construction is that of Braun et al., "Simple and Efficient Construction of Static
Single Assignment Form" (CC 2013): a variable is looked up block by block, and a block
with predecessors yet unknown gets a phi to be completed when it is sealed.
"""

from __future__ import annotations

from typing import Any

from gpusim.compiler.ir import Block, Function, Value, constant
from gpusim.typing import DType


class Graph:
    """The function under construction. `block` is where operations go, None after a jump."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.block: Block | None = None
        self.line = 0
        self._definitions: dict[Block, dict[str, Value]] = {}
        self._sealed: set[Block] = set()
        self._incomplete: dict[Block, list[tuple[str, Value]]] = {}
        self._types: dict[str, DType] = {}
        self._constants: dict[tuple[Any, ...], Value] = {}
        self.start(self.new_block())
        self.seal(self.function.entry)

    def new_block(self) -> Block:
        """Add an empty block."""
        block = Block(len(self.function.blocks), line=self.line)
        self.function.blocks.append(block)
        self._definitions[block] = {}
        return block

    def start(self, block: Block) -> None:
        """Let operations go to `block` from now on."""
        block.line = self.line
        self.block = block

    def enter(self, block: Block) -> None:
        """Seal a block and let operations go there; nowhere where no path leads to it."""
        self.seal(block)
        self.block = None
        if block.preds:
            self.start(block)

    def seal(self, block: Block) -> None:
        """Declare that all predecessors of `block` are known."""
        self._sealed.add(block)
        for variable, phi in self._incomplete.pop(block, []):
            phi.args = [self._read(variable, pred) for pred in block.preds]

    def emit(
        self, op: str, dtype: DType | None, args: list[Value] | None = None, detail: Any = None
    ) -> Value:
        """Append an operation to the current block and return it."""
        assert self.block is not None
        value = Value(op, dtype, args or [], detail, self.line)
        self.block.body.append(value)
        return value

    def constant(self, number: Any, dtype: DType) -> Value:
        """Return a constant; each is made once, in the entry block."""
        value = constant(number, dtype)
        key = (dtype, value.detail.tobytes())
        if key not in self._constants:
            self._constants[key] = value
            self.function.entry.body.insert(0, value)
        return self._constants[key]

    def jump(self, target: Block) -> None:
        """End the current block, if there is one, with a jump."""
        if self.block is not None:
            self.block.line = self.line
            self.block.targets = (target,)
            target.preds.append(self.block)
            self.block = None

    def branch(self, condition: Value, if_true: Block, if_false: Block) -> None:
        """End the current block with a branch."""
        assert self.block is not None
        self.block.line = self.line
        self.block.condition = condition
        self.block.targets = (if_true, if_false)
        if_true.preds.append(self.block)
        if_false.preds.append(self.block)
        self.block = None

    def leave(self) -> None:
        """End the current block, if there is one, with a return."""
        self.block = None

    def write(self, variable: str, value: Value) -> None:
        """Let `variable` be `value` from here on."""
        assert self.block is not None
        assert value.dtype is not None
        self._types[variable] = value.dtype
        self._definitions[self.block][variable] = value

    def read(self, variable: str, dtype: DType) -> Value:
        """Return the value that `variable` has here, `undef` where it has none."""
        assert self.block is not None
        self._types[variable] = dtype
        return self._read(variable, self.block)

    def _read(self, variable: str, block: Block) -> Value:
        definitions = self._definitions[block]
        if variable in definitions:
            return definitions[variable]
        dtype = self._types[variable]
        if block not in self._sealed:
            value = self._phi(block, dtype)
            self._incomplete.setdefault(block, []).append((variable, value))
        elif len(block.preds) == 1:
            value = self._read(variable, block.preds[0])
        elif not block.preds:
            value = Value("undef", dtype, line=block.line)
            block.body.insert(0, value)
        else:
            value = self._phi(block, dtype)
            definitions[variable] = value
            value.args = [self._read(variable, pred) for pred in block.preds]
        definitions[variable] = value
        return value

    @staticmethod
    def _phi(block: Block, dtype: DType) -> Value:
        phi = Value("phi", dtype, line=block.line)
        block.phis.append(phi)
        return phi

    def finish(self) -> Function:
        """Remove unreachable blocks and phis that only repeat one value; return the function."""
        self._remove_unreachable()
        self._remove_trivial_phis()
        for number, block in enumerate(self.function.blocks):
            block.name = number
        return self.function

    def _remove_unreachable(self) -> None:
        reached: dict[Block, None] = {}
        work = [self.function.entry]
        while work:
            block = work.pop()
            if block not in reached:
                reached[block] = None
                work.extend(block.targets)
        self.function.blocks = [b for b in self.function.blocks if b in reached]
        for block in self.function.blocks:
            keep = [i for i, pred in enumerate(block.preds) if pred in reached]
            block.preds = [block.preds[i] for i in keep]
            for phi in block.phis:
                phi.args = [phi.args[i] for i in keep]

    def _remove_trivial_phis(self) -> None:
        replacement: dict[Value, Value] = {}

        def final(value: Value) -> Value:
            while value in replacement:
                value = replacement[value]
            return value

        changed = True
        while changed:
            changed = False
            for block in self.function.blocks:
                for phi in list(block.phis):
                    others = {id(a): a for a in map(final, phi.args) if a is not phi}
                    if len(others) <= 1:
                        undefined = Value("undef", phi.dtype, line=phi.line)
                        replacement[phi] = next(iter(others.values()), undefined)
                        if not others:
                            self.function.entry.body.insert(0, undefined)
                        block.phis.remove(phi)
                        changed = True
        for value in self.function.values():
            value.args = [final(a) for a in value.args]
        for block in self.function.blocks:
            if block.condition is not None:
                block.condition = final(block.condition)
