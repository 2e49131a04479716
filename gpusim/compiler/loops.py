"""Loops: `while`, `for` over a range, `break` and `continue`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gpusim.compiler import names
from gpusim.compiler.builder import Builder, Loop, Operand, common_type, type_of
from gpusim.compiler.conditions import branch, decide, static_condition
from gpusim.compiler.constants import static
from gpusim.compiler.ir import BOOL, INT64, Block, Value
from gpusim.compiler.operations import SPECIAL_REGISTERS
from gpusim.compiler.types import converted, weak_common
from gpusim.typing import DType


def leave_loop(builder: Builder, node: ast.Break) -> None:
    """Go on after the innermost loop."""
    if not builder.loops:
        raise builder.error("break outside a loop", node)
    builder.graph.jump(builder.loops[-1].after)


def go_on(builder: Builder, node: ast.Continue) -> None:
    """Go to the innermost loop's next iteration."""
    if not builder.loops:
        raise builder.error("continue outside a loop", node)
    builder.graph.jump(builder.loops[-1].again)


def while_loop(builder: Builder, node: ast.While) -> None:
    """Run the body as long as the condition is true."""
    graph = builder.graph
    header = _header(builder)
    body, after = graph.new_block(), graph.new_block()
    known = static_condition(builder, node.test)
    if known is None:
        branch(builder, node.test, body, after)
    else:
        graph.jump(body if known else after)
    graph.enter(body)
    _body(builder, node.body, Loop(after, again=header))
    graph.seal(header)
    graph.enter(after)


def for_loop(builder: Builder, node: ast.For) -> None:
    """Run the body for each number of a range."""
    graph = builder.graph
    start, stop, step = _range(builder, node)
    if not isinstance(node.target, ast.Name):
        raise builder.error("a loop over range has one variable", node.target)
    counter = f"{builder.frame.prefix}range.{builder.new_number()}"
    computed = common_type(start, stop, step)
    dtype = _counting_type(computed, start, stop, step)
    bound, stride = builder.as_type(stop, dtype), builder.as_type(step, dtype)
    graph.write(counter, builder.as_type(start, dtype))
    rising = _is_rising(builder, step, stride)
    header = _header(builder)
    body, again, after = (graph.new_block() for _ in range(3))
    test = _goes_on(builder, graph.read(counter, dtype), bound, rising)
    decide(builder, test, body, after)
    graph.enter(body)
    index = builder.as_type(graph.read(counter, dtype), computed)
    names.assign(builder, node.target.id, index, node.target)
    _body(builder, node.body, Loop(after, again))
    graph.enter(again)
    if graph.block is not None:
        builder.mark(node)
        graph.write(counter, graph.emit("add", dtype, [graph.read(counter, dtype), stride]))
        graph.jump(header)
    graph.seal(header)
    graph.enter(after)


def _header(builder: Builder) -> Block:
    """Begin the block that a loop comes back to; not all of its predecessors are known yet."""
    header = builder.graph.new_block()
    builder.graph.jump(header)
    builder.graph.start(header)
    return header


def _body(builder: Builder, statements: Sequence[ast.stmt], loop: Loop) -> None:
    builder.loops.append(loop)
    builder.statements(statements)
    builder.loops.pop()
    builder.graph.jump(loop.again)


def _range(builder: Builder, node: ast.For) -> tuple[Operand, Operand, Operand]:
    """Return start, stop and step of a loop's range."""
    call = node.iter
    if not (isinstance(call, ast.Call) and static(builder, call.func) is range):
        raise builder.error("kernels loop over range(...)", node.iter)
    numbers = [builder.number(builder.expression(argument), argument) for argument in call.args]
    for number, argument in zip(numbers, call.args, strict=True):
        if type_of(number).kind not in "biu":
            raise builder.error("range takes integers", argument)
    if not 1 <= len(numbers) <= 3:
        raise builder.error("range takes one to three integers", call)
    if len(numbers) == 1:
        return 0, numbers[0], 1
    step = numbers[2] if len(numbers) == 3 else 1
    if _known(step) == 0:
        raise builder.error("the step of a range cannot be 0", call.args[2])
    return numbers[0], numbers[1], step


def _known(number: Operand) -> int | None:
    """Return a constant integer of any type, None for a value known only at run time."""
    if not isinstance(number, Value):
        return int(number)
    if number.op == "cast" and number.args[0].constant is not None:
        return int(converted(number.args[0].constant.item(), type_of(number)))
    return None if number.constant is None else int(number.constant)


def _counting_type(computed: DType, start: Operand, stop: Operand, step: Operand) -> DType:
    """Return the type in which a range counts: one that represents start, stop and step.

    Where an unsigned type would make a negative number a large one, or the count would pass the
    end of a type, it is int64; the loop's variable has the numbers' common type.
    """
    numbers = [_known(number) for number in (start, stop, step)]
    if computed.kind == "u":
        if any(number is not None and number < 0 for number in numbers):
            return INT64
        if isinstance(step, Value) and type_of(step).kind == "i" and not _is_positive(step):
            return INT64
    _, end, by = numbers
    if end is None or by is None or weak_common(end + by, computed) == computed:
        return computed
    return INT64


def _is_rising(builder: Builder, step: Operand, stride: Value) -> bool | Value:
    """Return whether a loop's step is positive, as a value where only the launch knows."""
    dtype, known = type_of(stride), _known(step)
    if known is not None:
        return known > 0
    if dtype.kind == "u" or _is_positive(stride):
        return True
    return builder.graph.emit("gt", BOOL, [stride, builder.graph.constant(0, dtype)])


def _is_positive(value: Value) -> bool:
    """Return whether a value is positive in every launch (unless it overflows)."""
    known = _known(value)
    if known is not None:
        return known > 0
    if value.op == "sreg":
        return SPECIAL_REGISTERS[value.detail].is_of_launch
    if value.op in ("add", "mul", "min", "max"):
        return all(_is_positive(a) for a in value.args)
    if value.op == "cast" and type_of(value).itemsize < type_of(value.args[0]).itemsize:
        return False
    return value.op in ("cast", "shl") and _is_positive(value.args[0])


def _goes_on(builder: Builder, index: Value, bound: Value, rising: bool | Value) -> Value:
    """Return whether a counter has not come to its bound yet."""
    emit = builder.graph.emit
    if isinstance(rising, bool):
        return emit("lt" if rising else "gt", BOOL, [index, bound])
    up, down = emit("lt", BOOL, [index, bound]), emit("gt", BOOL, [index, bound])
    return emit("select", BOOL, [rising, up, down])
