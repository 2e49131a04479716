"""From a syntax tree to SSA form, for one combination of argument types.

A variable has one type: the one in which all its assignments meet. It is found by building
until no variable's type changes any more, which takes two or three rounds.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpusim.compiler import ir
from gpusim.compiler.ir import BOOL, INT32, Array, Block, DType, Function, Value
from gpusim.compiler.source import KernelSource
from gpusim.compiler.ssa import Graph
from gpusim.compiler.types import (
    Number,
    common,
    default_type,
    dtype_of,
    promoted,
    unify,
    weak_common,
)
from gpusim.compiler.words import SpecialRegister
from gpusim.errors import KernelSourceError

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "idiv",
    ast.Mod: "rem",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
INTEGER_ONLY = {"and", "or", "xor", "shl", "shr"}
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "idiv": lambda a, b: (
        math.trunc(a / b) if isinstance(a / b, float) and abs(a) < 2**53 else a // b
    ),
    "rem": lambda a, b: math.fmod(a, b) if isinstance(a, float) else int(math.fmod(a, b)),
    "div": lambda a, b: a / b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
SIMPLE = (ast.Name, ast.Constant, ast.Attribute, ast.Compare, ast.BinOp, ast.UnaryOp, ast.BoolOp)
MAX_INLINE_DEPTH = 32


@dataclass
class Frame:
    """One function being built: the kernel, or a device function inlined into it."""

    source: KernelSource
    prefix: str
    bindings: dict[str, Any]  # names that are compile-time objects, not variables
    result: list[Any] = field(default_factory=list)
    exit: Block | None = None
    call_line: int | None = None


@dataclass
class Loop:
    """Where `break` and `continue` of the innermost loop go."""

    after: Block
    again: Block


def build(source: KernelSource, arguments: Mapping[str, DType | Array]) -> Function:
    """Return the kernel in SSA form for these parameter types.

    Raises KernelSourceError, marking the place, for what has no meaning or no type.
    """
    types: dict[str, DType] = {}
    static_bytes = 0
    for _ in range(20):
        builder = Builder(source, arguments, types, static_bytes)
        function = builder.run()
        if builder.types == types and builder.static_shared_bytes == static_bytes:
            return function
        types, static_bytes = builder.types, builder.static_shared_bytes
    raise source.error("the types of this kernel's variables cannot be settled", source.tree)


class Builder:
    """Walks a kernel's statements once and emits their operations."""

    def __init__(
        self,
        source: KernelSource,
        arguments: Mapping[str, DType | Array],
        types: Mapping[str, DType],
        static_bytes: int,
    ) -> None:
        self.types = dict(types)
        self.known = types
        self.function = Function(source.name, dict(arguments))
        self.graph = Graph(self.function)
        self.frames = [Frame(source, "", {})]
        self.loops: list[Loop] = []
        self.static_shared_bytes = 0
        self.local_bytes = 0
        self._dynamic_offset = -(-static_bytes // 16) * 16
        self._declared: dict[tuple[str, int, int], Array] = {}
        self._counter = 0
        self._unassigned: dict[str, ast.AST] = {}

    @property
    def frame(self) -> Frame:
        """The function whose statements are being built."""
        return self.frames[-1]

    def run(self) -> Function:
        """Build the kernel's body."""
        frame = self.frame
        self.graph.line = frame.source.line(frame.source.tree)
        for name, kind in self.function.params.items():
            if isinstance(kind, Array):
                frame.bindings[name] = kind
            else:
                value = self.graph.emit("param", kind, detail=name)
                self.assign_name(name, value if kind.itemsize >= 4 else self.cast(value, INT32))
        self.statements(frame.source.tree.body)
        self.graph.leave()
        return self.graph.finish()

    def error(self, message: str, node: ast.AST) -> KernelSourceError:
        """Return an error that marks `node` in the user's source."""
        return self.frame.source.error(message, node)

    # -- statements --------------------------------------------------------------------

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Build statements until one of them leaves."""
        for statement in body:
            if self.graph.block is None:
                return
            self.mark(statement)
            getattr(self, f"_{type(statement).__name__.lower()}")(statement)

    def mark(self, node: ast.AST) -> None:
        """Let operations from now on belong to the line of `node`."""
        self.graph.line = next(
            (f.call_line for f in self.frames if f.call_line is not None),
            self.frame.source.line(node),
        )

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.expression(node.value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign_to(node.target, self.expression(node.value))

    def _assign(self, node: ast.Assign) -> None:
        value = self.expression(node.value)
        for target in node.targets:
            self._assign_to(target, value)

    def _assign_to(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value, target)
        elif isinstance(target, ast.Subscript):
            array, index = self.element(target)
            self.store(array, index, value, target)
        elif isinstance(target, ast.Tuple):
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                raise self.error(f"this needs {len(target.elts)} values on the right", target)
            for part, item in zip(target.elts, value, strict=True):
                self._assign_to(part, item)
        else:
            raise self.error("kernels assign to variables and to elements of arrays", target)

    def assign_name(self, name: str, value: Any, node: ast.AST | None = None) -> None:
        """Let the variable `name` be `value`: a number, or an array or tuple as such."""
        frame = self.frame
        if isinstance(value, SpecialRegister):
            value = self.number(value, node or frame.source.tree)
        if isinstance(value, tuple):
            for position, item in enumerate(value):
                self.assign_name(f"{name}.{position}", item, node)
            frame.bindings[name] = ("tuple", len(value))
            return
        if not isinstance(value, Value | bool | int | float | np.generic):
            bound = frame.bindings.get(name)
            if bound is not None and bound != value:
                raise self.error(
                    f"{name!r} already names something else; an array keeps its name",
                    node or frame.source.tree,
                )
            frame.bindings[name] = value
            return
        if isinstance(frame.bindings.get(name), Array):
            raise self.error(
                f"{name!r} is an array and cannot become a number", node or frame.source.tree
            )
        variable = frame.prefix + name
        if isinstance(value, Value):
            assert value.dtype is not None
            seen = value.dtype
        else:
            seen = self._weak_type(variable, value)
        self.types[variable] = unify(self.types[variable], seen) if variable in self.types else seen
        frame.bindings.pop(name, None)
        self.graph.write(variable, self.as_type(value, self.types[variable]))

    def _weak_type(self, variable: str, value: Number | np.generic) -> DType:
        """Return what a number makes of a variable: nothing, where it already has a type."""
        if isinstance(value, np.generic):
            return value.dtype
        known = self.types.get(variable)
        return default_type(value) if known is None else _weaker(value, known)

    def _augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):
            array, index = self.element(node.target)
            old = self.load(array, index)
            new = self.binary(node.op, old, self.expression(node.value), node)
            self.store(array, index, new, node.target)
        elif isinstance(node.target, ast.Name):
            old = self.name(node.target)
            value = self.binary(node.op, old, self.expression(node.value), node)
            self.assign_name(node.target.id, value, node.target)
        else:
            raise self.error("kernels assign to variables and to elements of arrays", node.target)

    def _return(self, node: ast.Return) -> None:
        frame = self.frame
        value = None if node.value is None else self.expression(node.value)
        if frame.exit is None:
            if value is not None:
                raise self.error("a kernel returns nothing; only device functions do", node)
            self.graph.leave()
            return
        if value is not None:
            self.assign_name("return", value, node)
        frame.result.append(value)
        self.graph.jump(frame.exit)

    def _break(self, node: ast.Break) -> None:
        if not self.loops:
            raise self.error("break stands outside a loop", node)
        self.graph.jump(self.loops[-1].after)

    def _continue(self, node: ast.Continue) -> None:
        if not self.loops:
            raise self.error("continue stands outside a loop", node)
        self.graph.jump(self.loops[-1].again)

    def _if(self, node: ast.If) -> None:
        known = self.static_condition(node.test)
        if known is not None:
            self.statements(node.body if known else node.orelse)
            return
        then, after = self.graph.new_block(), self.graph.new_block()
        other = self.graph.new_block() if node.orelse else after
        self.branch(node.test, then, other)
        self.graph.seal(then)
        self.graph.start(then)
        self.statements(node.body)
        self.graph.jump(after)
        if node.orelse:
            self.graph.seal(other)
            self.graph.start(other)
            self.statements(node.orelse)
            self.graph.jump(after)
        self._continue_at(after)

    def _continue_at(self, block: Block) -> None:
        """Go on in `block`, whose predecessors are all known; nowhere if there are none."""
        self.graph.seal(block)
        if block.preds:
            self.graph.start(block)
        else:
            self.graph.block = None

    def _while(self, node: ast.While) -> None:
        header = self.graph.new_block()
        self.graph.jump(header)
        self.graph.start(header)
        body, after = self.graph.new_block(), self.graph.new_block()
        known = self.static_condition(node.test)
        if known is None:
            self.branch(node.test, body, after)
        else:
            self.graph.jump(body if known else after)
        self._loop_body(node.body, body, header, after, header)

    def _loop_body(
        self, statements: Sequence[ast.stmt], body: Block, again: Block, after: Block, header: Block
    ) -> None:
        self.graph.seal(body)
        if body.preds:
            self.graph.start(body)
            self.loops.append(Loop(after, again))
            self.statements(statements)
            self.loops.pop()
            self.graph.jump(again)
        if again is not header:
            self._continue_at(again)
            return
        self.graph.seal(header)
        self._continue_at(after)

    def _for(self, node: ast.For) -> None:
        start, stop, step = self._range(node)
        if not isinstance(node.target, ast.Name):
            raise self.error("a loop over range has one variable", node.target)
        self._counter += 1
        hidden = f"{self.frame.prefix}range.{self._counter}"
        dtype = self._meeting(start, stop, step)
        bound, stride = self.as_type(stop, dtype), self.as_type(step, dtype)
        self.graph.write(hidden, self.as_type(start, dtype))
        rising = self._sign(step, stride)
        header, body = self.graph.new_block(), self.graph.new_block()
        again, after = self.graph.new_block(), self.graph.new_block()
        direction = (
            None
            if rising
            else self.graph.emit("gt", BOOL, [stride, self.graph.constant(0, dtype)])
            if rising is None
            else None
        )
        self.graph.jump(header)
        self.graph.start(header)
        index = self.graph.read(hidden, dtype)
        if direction is not None:
            up = self.graph.emit("lt", BOOL, [index, bound])
            down = self.graph.emit("gt", BOOL, [index, bound])
            test = self.graph.emit("select", BOOL, [direction, up, down])
        else:
            test = self.graph.emit("lt" if rising else "gt", BOOL, [index, bound])
        self.graph.emit("source_branch", None, [test])
        self.graph.branch(test, body, after)
        self.graph.seal(body)
        self.graph.start(body)
        self.assign_name(node.target.id, self.graph.read(hidden, dtype), node.target)
        self._loop_body(node.body, body, again, after, header)
        if self.graph.block is not None:
            self.mark(node)
            moved = self.graph.emit("add", dtype, [self.graph.read(hidden, dtype), stride])
            self.graph.write(hidden, moved)
            self.graph.jump(header)
        self.graph.seal(header)
        self._continue_at(after)

    def _range(self, node: ast.For) -> tuple[Any, Any, Any]:
        call = node.iter
        if not (isinstance(call, ast.Call) and self.static(call.func) is range):
            raise self.error("kernels loop over range(...)", node.iter)
        numbers = [self.number(self.expression(a), a) for a in call.args]
        for number, arg in zip(numbers, call.args, strict=True):
            if _kind(number) not in "biu":
                raise self.error("range takes integers", arg)
        if not 1 <= len(numbers) <= 3:
            raise self.error("range takes one to three integers", call)
        if len(numbers) == 1:
            return 0, numbers[0], 1
        if len(numbers) == 3 and not isinstance(numbers[2], Value) and numbers[2] == 0:
            raise self.error("the step of a range cannot be 0", call.args[2])
        return numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 1

    def _sign(self, step: Any, stride: Value) -> bool | None:
        """Return whether a loop's step is positive, None where only the launch knows."""
        if not isinstance(step, Value):
            return bool(step > 0)
        if stride.constant is not None:
            return bool(stride.constant > 0)
        return (
            True
            if stride.dtype is not None and (stride.dtype.kind == "u" or _is_positive(stride))
            else None
        )

    # -- conditions --------------------------------------------------------------------

    def static_condition(self, node: ast.expr) -> bool | None:
        """Return a condition's value where only compile-time constants decide it."""
        value = self.static_number(node)
        return None if value is None else bool(value)

    def branch(self, node: ast.expr, if_true: Block, if_false: Block) -> None:
        """End the current block by a condition, with `and`, `or` and `not` as short circuits."""
        self.mark(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.branch(node.operand, if_false, if_true)
            return
        if isinstance(node, ast.BoolOp) and not all(map(_is_simple, node.values[1:])):
            is_and = isinstance(node.op, ast.And)
            for part in node.values[:-1]:
                following = self.graph.new_block()
                self.branch(
                    part, following if is_and else if_true, if_false if is_and else following
                )
                self.graph.seal(following)
                self.graph.start(following)
            self.branch(node.values[-1], if_true, if_false)
            return
        test = self.condition(node)
        self.graph.emit("source_branch", None, [test])
        self.graph.branch(test, if_true, if_false)

    def condition(self, node: ast.expr) -> Value:
        """Return an expression as a truth value."""
        return self.truth(self.expression(node), node)

    def truth(self, value: Any, node: ast.AST) -> Value:
        """Return whether a number is not zero."""
        value = self.number(value, node)
        if not isinstance(value, Value):
            return self.graph.constant(bool(value), BOOL)
        assert value.dtype is not None
        if value.dtype == BOOL:
            return value
        return self.graph.emit("ne", BOOL, [value, self.graph.constant(0, value.dtype)])

    # -- expressions -------------------------------------------------------------------

    def expression(self, node: ast.expr) -> Any:
        """Return what an expression is: a Value, a Python number, a tuple, an array or object."""
        return getattr(self, f"_{type(node).__name__.lower()}")(node)

    def number(self, value: Any, node: ast.AST) -> Any:
        """Return `value` if one can compute with it; KernelSourceError otherwise."""
        if isinstance(value, np.generic):
            return self.graph.constant(value, value.dtype)
        if isinstance(value, Value | bool | int | float):
            return value
        if isinstance(value, Array):
            raise self.error(f"{value.name} is an array; give an index", node)
        if isinstance(value, SpecialRegister):
            return self.graph.emit("sreg", INT32, detail=value.name)
        raise self.error("this is no number", node)

    def typed(self, node: ast.expr) -> Value:
        """Return an expression as a Value, a bare number in its own type."""
        value = self.number(self.expression(node), node)
        return value if isinstance(value, Value) else self.as_type(value, default_type(value))

    def as_type(self, value: Any, dtype: DType) -> Value:
        """Return a number converted to `dtype` as C converts."""
        if not isinstance(value, Value):
            if isinstance(value, np.generic):
                value = value.item()
            return self.graph.constant(_wrapped(value, dtype), dtype)
        return value if value.dtype == dtype else self.cast(value, dtype)

    def cast(self, value: Value, dtype: DType) -> Value:
        """Return a conversion to `dtype`."""
        if dtype == BOOL and value.dtype != BOOL:
            assert value.dtype is not None
            return self.graph.emit("ne", BOOL, [value, self.graph.constant(0, value.dtype)])
        return self.graph.emit("cast", dtype, [value])

    def _meeting(self, *values: Any) -> DType:
        """Return the type in which numbers meet; bare ones take the others' type."""
        strong = [v.dtype for v in values if isinstance(v, Value) and v.dtype is not None]
        dtype: DType | None = None
        for other in strong:
            dtype = promoted(other) if dtype is None else common(dtype, other)
        for value in values:
            if not isinstance(value, Value):
                if dtype is None:
                    dtype = promoted(default_type(value))
                else:
                    dtype = weak_common(value, dtype)
        assert dtype is not None
        return dtype

    def _constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bool | int | float | str) or node.value is None:
            return node.value
        raise self.error(f"kernels do not have {type(node.value).__name__} constants", node)

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.expression(part) for part in node.elts)

    def _name(self, node: ast.Name) -> Any:
        return self.name(node)

    def name(self, node: ast.Name) -> Any:
        """Return what a name means: a variable, something bound, or a compile-time object."""
        frame, name = self.frame, node.id
        variable = frame.prefix + name
        if name in frame.bindings:
            bound = frame.bindings[name]
            if isinstance(bound, tuple) and bound[:1] == ("tuple",):
                return tuple(self._variable(f"{name}.{k}") for k in range(bound[1]))
            return bound
        if variable in self.types:
            return self.graph.read(variable, self.types[variable])
        if _assigns(frame.source.tree, name):
            if name in frame.source.parameters:
                return frame.bindings[name]
            raise self.error(f"{name!r} is read before it is assigned", node)
        try:
            return frame.source.lookup(name)
        except KeyError:
            raise self.error(f"{name!r} is not defined", node) from None

    def _variable(self, name: str) -> Any:
        if name in self.frame.bindings:
            return self.frame.bindings[name]
        variable = self.frame.prefix + name
        return self.graph.read(variable, self.types[variable])

    def static(self, node: ast.expr) -> Any:
        """Return the compile-time object that a dotted name means, None where it is none."""
        if isinstance(node, ast.Name):
            frame = self.frame
            if node.id in frame.bindings:
                return frame.bindings[node.id]
            if _assigns(frame.source.tree, node.id):
                return None
            try:
                return frame.source.lookup(node.id)
            except KeyError:
                return None
        if isinstance(node, ast.Attribute):
            owner = self.static(node.value)
            return None if owner is None else getattr(owner, node.attr, None)
        return None

    def static_number(self, node: ast.expr) -> Number | None:
        """Return the number that an expression of compile-time constants has, None for others."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, bool | int | float) else None
        if isinstance(node, ast.Name | ast.Attribute):
            value = self.static(node)
            if isinstance(value, np.generic):
                value = value.item()
            return value if isinstance(value, bool | int | float) else None
        parts = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        if not isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp) or any(
            self.static_number(part) is None for part in parts
        ):
            return None
        value = self.expression(node)
        return value if isinstance(value, bool | int | float) else None

    def _attribute(self, node: ast.Attribute) -> Any:
        owner = self.expression(node.value)
        if isinstance(owner, Array):
            if node.attr == "dtype":
                return owner.dtype
            if node.attr == "size":
                return self.length(owner, None)
            if node.attr == "shape":
                rank = self.rank(owner)
                return tuple(self.length(owner, axis) for axis in range(rank))
            if node.attr == "ndim":
                return self.rank(owner)
            raise self.error(f"arrays in kernels have no {node.attr!r}", node)
        if isinstance(owner, Value | bool | int | float | tuple):
            raise self.error(f"numbers in kernels have no {node.attr!r}", node)
        try:
            return getattr(owner, node.attr)
        except AttributeError:
            where = getattr(owner, "__name__", type(owner).__name__)
            raise self.error(f"{where} has no {node.attr!r}", node) from None

    def _binop(self, node: ast.BinOp) -> Any:
        return self.binary(node.op, self.expression(node.left), self.expression(node.right), node)

    def binary(self, operator: ast.operator, a: Any, b: Any, node: ast.AST) -> Any:
        """Return `a operator b` in the type in which both meet."""
        a, b = self.number(a, node), self.number(b, node)
        if isinstance(operator, ast.Pow):
            return self._power(a, b, node)
        if isinstance(operator, ast.Div):
            return self._divide(a, b, node)
        op = BINARY[type(operator)]
        both_bool = all(_kind(v) == "b" for v in (a, b))
        if op in INTEGER_ONLY and "f" in (_kind(a), _kind(b)):
            raise self.error("bits and shifts need integers", node)
        if not isinstance(a, Value) and not isinstance(b, Value):
            if op in ("idiv", "rem") and b == 0:
                raise self.error("division by the constant 0", node)
            return FOLD[op](a, b)
        if op in ("shl", "shr"):
            dtype = self._meeting(a)
        elif both_bool and op in ("and", "or", "xor"):
            dtype = BOOL
        else:
            dtype = self._meeting(a, b)
        left, right = self.as_type(a, dtype), self.as_type(b, dtype)
        if dtype.kind == "f" and op in ("idiv", "rem"):
            if op == "rem":
                return self.graph.emit("math", dtype, [left, right], "fmod")
            quotient = self.graph.emit("div", dtype, [left, right])
            return self.graph.emit("math", dtype, [quotient], "floor")
        return self.graph.emit(op, dtype, [left, right])

    def _divide(self, a: Any, b: Any, node: ast.AST) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            if b == 0:
                raise self.error("division by the constant 0", node)
            return a / b
        dtype = self._meeting(a, b)
        dtype = dtype if dtype.kind == "f" else ir.FLOAT64
        return self.graph.emit("div", dtype, [self.as_type(a, dtype), self.as_type(b, dtype)])

    def _power(self, a: Any, b: Any, node: ast.AST) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return a**b
        if isinstance(b, int) and isinstance(a, Value) and 1 <= b <= 8:
            result = a
            for _ in range(b - 1):
                result = self.binary(ast.Mult(), result, a, node)
            return result
        dtype = self._meeting(a, b)
        dtype = dtype if dtype.kind == "f" else ir.FLOAT64
        return self.graph.emit(
            "math", dtype, [self.as_type(a, dtype), self.as_type(b, dtype)], "pow"
        )

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            known = self.static_number(node.operand)
            if known is not None:
                return not known
            return self.graph.emit("not", BOOL, [self.condition(node.operand)])
        value = self.number(self.expression(node.operand), node)
        if not isinstance(value, Value):
            if isinstance(node.op, ast.USub):
                return -value
            if isinstance(node.op, ast.Invert):
                return ~int(value)
            return value
        assert value.dtype is not None
        value = self.as_type(value, promoted(value.dtype))
        assert value.dtype is not None
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert):
            if value.dtype.kind == "f":
                raise self.error("~ needs an integer", node)
            return self.graph.emit("not", value.dtype, [value])
        return self.graph.emit("neg", value.dtype, [value])

    def _compare(self, node: ast.Compare) -> Any:
        left = self.number(self.expression(node.left), node.left)
        result: Any = None
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.number(self.expression(right_node), right_node)
            one = self.compare(COMPARE[type(operator)], left, right)
            if result is None:
                result = one
            elif isinstance(result, bool) and isinstance(one, bool):
                result = result and one
            else:
                parts = [self.as_type(result, BOOL), self.as_type(one, BOOL)]
                result = self.graph.emit("and", BOOL, parts)
            left = right
        return result

    def compare(self, op: str, a: Any, b: Any) -> Any:
        """Return the comparison of two numbers in the type in which they meet."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            return bool(FOLD[op](a, b))
        dtype = self._meeting(a, b)
        return self.graph.emit(op, BOOL, [self.as_type(a, dtype), self.as_type(b, dtype)])

    def _boolop(self, node: ast.BoolOp) -> Any:
        known = [self.static_number(part) for part in node.values]
        if all(value is not None for value in known):
            test = all if isinstance(node.op, ast.And) else any
            return test(bool(value) for value in known)
        if all(map(_is_simple, node.values[1:])):
            op = "and" if isinstance(node.op, ast.And) else "or"
            result = self.condition(node.values[0])
            for part in node.values[1:]:
                result = self.graph.emit(op, BOOL, [result, self.condition(part)])
            return result
        return self._chosen(node, True, False, node)

    def _ifexp(self, node: ast.IfExp) -> Any:
        known = self.static_condition(node.test)
        if known is not None:
            return self.expression(node.body if known else node.orelse)
        return self._chosen(node.test, node.body, node.orelse, node)

    def _chosen(self, test: ast.expr, if_true: Any, if_false: Any, node: ast.AST) -> Value:
        """Return one of two expressions; only the chosen one is evaluated."""
        self._counter += 1
        name = f"choice.{self._counter}"
        then, other, after = (self.graph.new_block() for _ in range(3))
        self.branch(test, then, other)
        for block, part in ((then, if_true), (other, if_false)):
            self.graph.seal(block)
            self.graph.start(block)
            value = self.expression(part) if isinstance(part, ast.expr) else part
            self.assign_name(name, self.number(value, node), node)
            self.graph.jump(after)
        self._continue_at(after)
        variable = self.frame.prefix + name
        return self.graph.read(variable, self.types[variable])

    # -- memory ------------------------------------------------------------------------

    def _subscript(self, node: ast.Subscript) -> Any:
        owner = self.expression(node.value)
        if isinstance(owner, tuple):
            position = self.static_number(node.slice)
            if not isinstance(position, int) or not -len(owner) <= position < len(owner):
                raise self.error("a tuple's position is a constant within it", node)
            return owner[position]
        array, index = self.element(node)
        return self.load(array, index)

    def element(self, node: ast.Subscript) -> tuple[Array, Value]:
        """Return the array and the flat index that a subscript names."""
        array = self.expression(node.value)
        if not isinstance(array, Array):
            raise self.error("only arrays have elements", node.value)
        return array, self.flat_index(array, self.expression(node.slice), node)

    def flat_index(self, array: Array, index: Any, node: ast.AST) -> Value:
        """Return an index of one or more parts as a count of elements from the start."""
        parts = index if isinstance(index, tuple) else (index,)
        rank = self.rank(array)
        if len(parts) != rank:
            raise self.error(f"{array.name} has {rank} dimension(s), not {len(parts)}", node)
        flat: Any = None
        for axis, part in enumerate(parts):
            part = self.number(part, node)
            if _kind(part) not in "iu":
                raise self.error("an index is an integer", node)
            if flat is None:
                flat = part
            else:
                scaled = self.binary(ast.Mult(), flat, self.length(array, axis), node)
                flat = self.binary(ast.Add(), scaled, part, node)
        return flat if isinstance(flat, Value) else self.as_type(flat, default_type(flat))

    def rank(self, array: Array) -> int:
        """Return an array's number of dimensions."""
        return len(array.shape) or 1

    def length(self, array: Array, axis: int | None) -> Any:
        """Return an array's size along an axis, or in all: a number, or known at launch."""
        declared = array.space != "global"
        if declared and array.shape != (0,):
            return math.prod(array.shape) if axis is None else array.shape[axis]
        if self.rank(array) == 1:
            axis = None
        return self.graph.emit("length", INT32, detail=(array.name, axis))

    def load(self, array: Array, index: Value) -> Value:
        """Return an element; narrow integers are promoted to int32."""
        value = self.graph.emit("load", array.dtype, [index], array)
        return self.widen(value)

    def widen(self, value: Value) -> Value:
        """Return what was loaded as C computes with it."""
        assert value.dtype is not None
        narrow = value.dtype.kind in "iu" and value.dtype.itemsize < 4
        return self.graph.emit("cast", INT32, [value]) if narrow else value

    def store(self, array: Array, index: Value, value: Any, node: ast.AST) -> None:
        """Store a number, converted to the array's type."""
        value = self.as_type(self.number(value, node), array.dtype)
        self.graph.emit("store", None, [index, value], array)

    def declare(self, space: str, shape: Any, dtype: Any, node: ast.Call) -> Array:
        """Return the shared or local array that a call declares; once for each place."""
        key = (self.frame.source.file, self.frame.source.line(node), node.col_offset)
        if key in self._declared and space == "shared":
            return self._declared[key]
        sizes = shape if isinstance(shape, tuple) else (shape,)
        if not all(isinstance(s, int | np.integer) and s >= 0 for s in sizes):
            raise self.error("an array's shape is made of compile-time constants", node)
        kind = dtype_of(dtype)
        if kind is None:
            raise self.error("the array's dtype is not one that kernels have", node)
        sizes = tuple(int(s) for s in sizes)
        elements = math.prod(sizes)
        if elements == 0 and (space == "local" or len(sizes) > 1):
            raise self.error("an array of no elements", node)
        name = self._declared_name(node, space)
        size_bytes = elements * kind.itemsize
        if space == "local":
            offset = -(-self.local_bytes // 16) * 16
            self.local_bytes = offset + size_bytes
        elif elements == 0:
            offset = self._dynamic_offset
        else:
            offset = -(-self.static_shared_bytes // 16) * 16
            self.static_shared_bytes = offset + size_bytes
        array = Array(name, space, kind, sizes, offset)
        self._declared[key] = array
        (self.function.local if space == "local" else self.function.shared).append(array)
        return array

    def _declared_name(self, node: ast.Call, space: str) -> str:
        """Return the name of the variable that a declaration is assigned to."""
        for statement in ast.walk(self.frame.source.tree):
            if isinstance(statement, ast.Assign) and statement.value is node:
                target = statement.targets[0]
                if isinstance(target, ast.Name):
                    return target.id
        return space

    # -- calls -------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Any:
        from gpusim.compiler import calls

        callee = self.expression(node.func)
        arguments = [*node.args, *(k.value for k in node.keywords)]
        return calls.call(self, callee, arguments, node)

    def inline(self, source: KernelSource, arguments: Sequence[Any], node: ast.Call) -> Any:
        """Build a device function's body here and return its result."""
        if any(frame.source is source for frame in self.frames):
            raise self.error(f"{source.name} calls itself; device functions are inlined", node)
        if len(arguments) != len(source.parameters):
            raise self.error(
                f"{source.name} takes {len(source.parameters)} arguments, not {len(arguments)}",
                node,
            )
        self._counter += 1
        elsewhere = source.file != self.frames[0].source.file
        line = self.graph.line if elsewhere else None
        call_line = self.frame.call_line if self.frame.call_line is not None else line
        frame = Frame(source, f"{source.name}.{self._counter}.", {}, call_line=call_line)
        frame.exit = self.graph.new_block()
        loops, self.loops = self.loops, []
        self.frames.append(frame)
        for name, value in zip(source.parameters, arguments, strict=True):
            reassigned = _assigns(source.tree, name, parameters=False)
            if isinstance(value, bool | int | float) and not reassigned:
                frame.bindings[name] = value
            else:
                self.assign_name(name, value, node)
        self.statements(source.tree.body)
        falls_off = self.graph.block is not None
        self.graph.jump(frame.exit)
        self._continue_at(frame.exit)
        result = self._result(frame, falls_off, node)
        self.frames.pop()
        self.loops = loops
        self.mark(node)
        if self.graph.block is None:
            raise self.error(f"{source.name} never returns", node)
        return result

    def _result(self, frame: Frame, falls_off: bool, node: ast.Call) -> Any:
        given = [value for value in frame.result if value is not None]
        if not given:
            return None
        if falls_off or len(given) != len(frame.result):
            raise self.error(f"{frame.source.name} returns a value only on some of its ways", node)
        if self.graph.block is None:
            return None
        if "return" in frame.bindings:
            bound = frame.bindings["return"]
            if isinstance(bound, tuple) and bound[:1] == ("tuple",):
                return tuple(self._variable(f"return.{k}") for k in range(bound[1]))
            return bound
        return self._variable("return")


def volatile(array: Array) -> Array:
    """Return the same array with every access made, in order."""
    return replace(array, volatile=True)


def _kind(value: Any) -> str:
    if isinstance(value, Value):
        return value.dtype.kind if value.dtype is not None else "?"
    return default_type(value).kind


def _weaker(number: Number, known: DType) -> DType:
    """Return what a bare number contributes to a variable that has a type already."""
    if isinstance(number, float):
        return known if known.kind == "f" else ir.FLOAT64
    if isinstance(number, bool):
        return known
    return known if known != BOOL else INT32


def _wrapped(number: Number, dtype: DType) -> Any:
    """Return a Python number as C converts it: integers wrap, floats truncate."""
    if dtype.kind in "iu":
        whole = int(number)
        bits = dtype.itemsize * 8
        whole &= (1 << bits) - 1
        if dtype.kind == "i" and whole >> (bits - 1):
            whole -= 1 << bits
        return whole
    return number


def _is_simple(node: ast.expr) -> bool:
    """Return whether an operand of `and` may be evaluated although it need not be."""
    return all(
        isinstance(
            part, (*SIMPLE, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)
        )
        and not isinstance(part, ast.Div | ast.FloorDiv | ast.Mod | ast.Pow)
        for part in ast.walk(node)
    )


def _is_positive(value: Value) -> bool:
    """Return whether a value is positive in every launch (unless it overflows)."""
    if value.constant is not None:
        return bool(value.constant > 0)
    if value.op == "sreg":
        return str(value.detail).startswith(("ntid", "nctaid"))
    if value.op in ("add", "mul", "min", "max"):
        return all(_is_positive(a) for a in value.args)
    return value.op in ("cast", "shl") and _is_positive(value.args[0])


_ASSIGNED: dict[int, tuple[ast.FunctionDef, frozenset[str]]] = {}


def _assigns(tree: ast.FunctionDef, name: str, *, parameters: bool = True) -> bool:
    """Return whether a function assigns `name` somewhere (or has it as a parameter)."""
    if id(tree) not in _ASSIGNED:
        stored = frozenset(
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        _ASSIGNED[id(tree)] = (tree, stored)
    if parameters and any(argument.arg == name for argument in tree.args.args):
        return True
    return name in _ASSIGNED[id(tree)][1]
