"""State of a build: the graph, the stack of functions and loops, the types of variables.

The functions that build statements and expressions share a `Builder`, and are found in its
`meanings`, a table by kind of syntax. It also converts numbers to SSA values.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim.compiler.ir import BOOL, INT32, Array, Block, Function, Value, constant
from gpusim.compiler.source import KernelSource
from gpusim.compiler.symbols import SpecialRegister
from gpusim.compiler.types import (
    DTYPES,
    Number,
    common,
    converted,
    default_type,
    promoted,
    weak_common,
)
from gpusim.errors import KernelSourceError
from gpusim.isa.lines import Call, SourceLine
from gpusim.typing import DType

Operand = Value | Number


@dataclass
class Frame:
    """One function being built: the kernel, or a device function inlined into it.

    `prefix` sets its variables apart, `bindings` are its names that are no variables.
    `known` are the numbers of its expressions of constants, None for other expressions.
    `returned` are the values of its return statements, passed on to `exit`. `call_line` is
    the line of its operations, None for the lines of its own statements; `calls` are those by
    which it was inlined, as far as they are in the kernel's file.
    """

    source: KernelSource
    prefix: str = ""
    bindings: dict[str, Any] = field(default_factory=dict)
    known: dict[ast.expr, Number | None] = field(default_factory=dict)
    returned: list[Any] = field(default_factory=list)
    exit: Block | None = None
    call_line: int | None = None
    calls: tuple[Call, ...] = ()


@dataclass
class Loop:
    """The targets of `break` and `continue` in the innermost loop."""

    after: Block
    again: Block


@dataclass(frozen=True)
class Meanings:
    """The functions that build statements and expressions, by the kind of syntax."""

    statements: Mapping[type[ast.stmt], Callable[[Builder, Any], None]]
    expressions: Mapping[type[ast.expr], Callable[[Builder, Any], Any]]


class Builder:
    """The function under construction; `meanings` build its syntax.

    `types` are the variables' types so far. `static_shared_bytes` and `local_bytes` are the sizes
    of declared arrays in a block's shared and a thread's local memory, `dynamic_offset` the start
    of dynamic shared memory, and `declared` holds the arrays by their place in the source.
    """

    def __init__(
        self,
        source: KernelSource,
        arguments: Mapping[str, DType | Array],
        types: Mapping[str, DType],
        dynamic_offset: int,
        meanings: Meanings,
    ) -> None:
        self._meanings = meanings
        self.types = dict(types)
        self.function = Function(source.name, dict(arguments))
        self.graph = Graph(self.function)
        self.frames = [Frame(source)]
        self.loops: list[Loop] = []
        self.static_shared_bytes = 0
        self.local_bytes = 0
        self.dynamic_offset = dynamic_offset
        self.declared: dict[tuple[str, int, int], Array] = {}
        self._numbers_given = 0
        self._place: ast.AST = source.tree

    @property
    def frame(self) -> Frame:
        """The function under construction: the innermost of the inlined calls."""
        return self.frames[-1]

    def new_number(self) -> int:
        """Return a number not given before, for a unique name."""
        self._numbers_given += 1
        return self._numbers_given

    def error(self, message: str, node: ast.AST) -> KernelSourceError:
        """Return an error that marks `node` in the user's source."""
        return self.frame.source.error(message, node)

    def mark(self, node: ast.AST) -> None:
        """Let operations from now on belong to the line of `node`."""
        self._place = node
        frame = self.frame
        line = frame.source.line(node) if frame.call_line is None else frame.call_line
        self.graph.line = SourceLine(line, frame.calls)

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Build statements up to the first that leaves: return, break or continue."""
        for statement in body:
            if self.graph.block is None:
                return
            self.mark(statement)
            self._meanings.statements[type(statement)](self, statement)

    def expression(self, node: ast.expr) -> Any:
        """Return an expression's value: a Value, a Python number, a tuple, an array or object."""
        outer, self._place = self._place, node
        made = self._meanings.expressions[type(node)](self, node)
        self._place = outer
        return made

    def number(self, item: Any, node: ast.AST) -> Operand:
        """Return `item` if it is a number; KernelSourceError otherwise."""
        if isinstance(item, np.generic):
            if item.dtype not in DTYPES:
                raise self.error(f"kernels have no numbers of {item.dtype}", node)
            return self.graph.constant(item, item.dtype)
        if isinstance(item, Value | bool | int | float):
            return item
        if isinstance(item, Array):
            raise self.error(f"{item.name} is an array; give an index", node)
        if isinstance(item, SpecialRegister):
            return self.graph.emit("sreg", INT32, detail=item.name)
        raise self.error("this is not a number", node)

    def as_type(self, operand: Operand | np.generic, dtype: DType) -> Value:
        """Return a number converted to `dtype` as C converts."""
        if isinstance(operand, Value):
            return operand if operand.dtype == dtype else self.cast(operand, dtype)
        number = operand.item() if isinstance(operand, np.generic) else operand
        try:
            return self.graph.constant(converted(number, dtype), dtype)
        except OverflowError as reason:
            raise self.error(str(reason), self._place) from None

    def cast(self, value: Value, dtype: DType) -> Value:
        """Return a conversion to `dtype`."""
        if dtype == BOOL:
            return self.truth(value)
        return self.graph.emit("cast", dtype, [value])

    def truth(self, operand: Operand) -> Value:
        """Return whether a number is not zero."""
        if not isinstance(operand, Value):
            return self.graph.constant(bool(operand), BOOL)
        dtype = type_of(operand)
        if dtype == BOOL:
            return operand
        return self.graph.emit("ne", BOOL, [operand, self.graph.constant(0, dtype)])

    def widened(self, value: Value, dtype: DType) -> Value:
        """Return a value of type `dtype` after integer promotion."""
        narrow = dtype.kind in "iu" and dtype.itemsize < 4
        return self.cast(value, INT32) if narrow else value


def type_of(operand: Operand) -> DType:
    """Return a value's type, or the one that a bare number has on its own."""
    if isinstance(operand, Value):
        assert operand.dtype is not None
        return operand.dtype
    return default_type(operand)


def common_type(*operands: Operand) -> DType:
    """Return the common type of numbers; bare ones take the others'."""
    dtype: DType | None = None
    for value in operands:
        if isinstance(value, Value):
            dtype = promoted(type_of(value)) if dtype is None else common(dtype, type_of(value))
    for number in operands:
        if not isinstance(number, Value):
            alone = promoted(default_type(number))
            dtype = alone if dtype is None else weak_common(number, dtype)
    assert dtype is not None
    return dtype


# The construction is that of Braun et al., "Simple and Efficient Construction of Static Single
# Assignment Form" (CC 2013): a variable is looked up block by block, and a block with predecessors
# yet unknown gets a phi to be completed when it is sealed.


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
