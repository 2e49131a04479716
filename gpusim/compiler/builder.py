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

from gpusim.compiler.ir import BOOL, INT32, Array, Block, Function, Value
from gpusim.compiler.source import KernelSource
from gpusim.compiler.ssa import Graph
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
