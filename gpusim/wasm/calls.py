"""Translation of calls: of translated functions, of methods of lists, and of built-in functions."""

from __future__ import annotations

import ast
import bisect
import math
import types
from collections.abc import Callable, Iterator
from typing import Any

from gpusim.wasm import integers, library, memory
from gpusim.wasm.expressions import Expressions, Signature
from gpusim.wasm.memory import Record
from gpusim.wasm.sources import Function
from gpusim.wasm.value_types import (
    FLOAT,
    INT,
    NOTHING,
    Kind,
    ListOf,
    Reference,
    TupleOf,
    flat,
    size_of,
)
from gpusim.wasm.values import Value, constant, folded, wrapped


class Calls(Expressions):
    """The expressions of one function, with its calls."""

    def call(self, node: ast.expr) -> Value:
        """Return the value of a call."""
        assert isinstance(node, ast.Call)
        try:
            function = self.known(node.func)
        except KeyError:
            return self._call_of_member(node)
        special = _CALLS.get(function)
        if special is not None:
            return special(self, node)
        if function in _OPERATIONS:
            code = [self.value(one, INT).code for one in node.args]
            return Value(_OPERATIONS[function].format(*code), INT)
        if function in _MEMORY:
            code = [folded("i32.wrap_i64", self.value(one, INT).code) for one in node.args]
            return Value(folded(_MEMORY[function], *code), NOTHING)
        if isinstance(function, type) and issubclass(function, Record):
            address = self.value(node.args[0], INT).code
            return Value(wrapped(address), Reference(function))
        function = _REPLACED.get(function, function)
        if isinstance(function, type):
            return self._arguments(self.around.constructor(function), [], node)
        if isinstance(function, types.FunctionType):
            kinds = tuple(self._kinds(node)) if _is_generic(function) else ()
            return self._arguments(self.around.function(function, kinds), [], node)
        raise self.refuse(f"{function} is not translated", node)

    def _kinds(self, node: ast.Call) -> Iterator[Kind]:
        for argument in node.args:
            yield self.value(argument).kind

    def _call_of_member(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Subscript):
            return self._call_of_table(node, node.func)
        if not isinstance(node.func, ast.Attribute):
            raise self.refuse("this is not a translated function", node.func)
        held = self.value(node.func.value)
        if isinstance(held.kind, ListOf):
            return self._list_method(node, held, node.func.attr)
        method = None
        if isinstance(held.kind, Reference):
            cls = self.around.layouts.bindings.get(held.kind.cls, held.kind.cls)
            method = getattr(cls, node.func.attr, None)
        if not isinstance(method, types.FunctionType):
            raise self.refuse(f"{held.kind} has no translated method {node.func.attr}", node)
        return self._arguments(self.around.function(method, ()), [held], node)

    def _call_of_table(self, node: ast.Call, table: ast.Subscript) -> Value:
        """Call one of a tuple of functions, by its number."""
        try:
            functions = self.known(table.value)
        except KeyError:
            raise self.refuse("this is not a tuple of functions", table) from None
        called = [self.around.function(function, ()) for function in functions]
        keep, place = self.kept(self.value(table.slice, INT))
        keeps, given = [keep], []
        for value in self._given(called[0], [], node):
            keep, value = self.kept(value)
            keeps.append(keep)
            given.append(value)
        cases = [self._called(one, given).code for one in called]
        return Value(" ".join([*keeps, self._switch(place, cases, called[0])]), called[0].result)

    def _switch(self, place: Value, cases: list[str], called: Signature) -> str:
        """Return the text of a jump table over cases, by number; out of range is a trap.

        An indirect call costs as much as ten instructions and cannot be inlined.
        """
        end = f"$end{self.label()}"
        behind = [*(f"{case} (br {end})" for case in cases), "(unreachable)"]
        names = [f"$case{self.label()}" for _ in behind]
        code = f"(br_table {' '.join(names)} (i32.wrap_i64 {place.code}))"
        for name, case in zip(names, behind, strict=True):
            code = f"(block {name} {code})\n{case}"
        results = " ".join(slot.wasm for slot in flat(called.result))
        return f"(block {end} (result {results})\n{code})"

    def _arguments(self, called: Signature, before: list[Value], node: ast.Call) -> Value:
        """Call a function with a call's arguments, after the values `before` them."""
        return self._called(called, self._given(called, before, node))

    def _called(self, called: Signature, given: list[Value]) -> Value:
        """Return the result of a function, called or inlined."""
        inlined = self.around.inlined(self, called, given)
        if inlined is not None:
            return self.widened(inlined)
        self.around.require(called)
        code = " ".join(value.code for value in given)
        return self.widened(Value(f"(call {called.name} {code})", called.result))

    def _given(self, called: Signature, before: list[Value], node: ast.Call) -> list[Value]:
        """Return a call's arguments and defaults, in the order of the function's parameters."""
        names = list(called.parameters)
        given: dict[str, str] = {n: v.code for n, v in zip(names, before, strict=False)}
        written = list(zip(names[len(before) :], node.args, strict=False))
        if len(written) < len(node.args):
            raise self.refuse("there are too many arguments", node)
        written += [(keyword.arg or "", keyword.value) for keyword in node.keywords]
        for name, argument in written:
            if name not in called.parameters:
                raise self.refuse(f"there is no parameter {name}", node)
            given[name] = self.value(argument, called.parameters[name]).code
        for name in names:
            if name not in given:
                default = constant(called.defaults.get(name, ...))
                if default is None:
                    raise self.refuse(f"the argument {name} is missing", node)
                given[name] = self.fitted(default, called.parameters[name], node).code
        return [Value(given[name], kind) for name, kind in called.parameters.items()]

    def _list_method(self, node: ast.Call, items: Value, name: str) -> Value:
        assert isinstance(items.kind, ListOf)
        if name == "clear":
            return Value(f"(i32.store offset=8 {items.code} (i32.const 0))", TupleOf(()))
        if name != "append" or len(node.args) != 1:
            raise self.refuse(f"a list's method {name} is not translated", node)
        keep, item = self.kept(self.value(node.args[0], items.kind.element))
        keep_list, there = self.kept(items)
        length, size = self.length(there), f"(i32.const {size_of(items.kind.element)})"
        grow = f"(call $grow {there.code} {size})"
        is_full = folded("i32.eq", length, folded("i32.load offset=16", there.code))
        place = folded("i32.add", f"(i32.load {there.code})", f"(i32.mul {length} {size})")
        put = self.store(place, 0, item)
        longer = f"(i32.store offset=8 {there.code} (i32.add {length} (i32.const 1)))"
        code = f"{keep} {keep_list} (if {is_full} (then {grow})) {put} {longer}"
        return Value(code, TupleOf(()))

    def _len(self, node: ast.Call) -> Value:
        items = self.value(node.args[0])
        if not isinstance(items.kind, ListOf):
            raise self.refuse(f"{items.kind} has no translated length", node)
        return Value(folded("i64.extend_i32_u", self.length(items)), INT)

    def _round(self, node: ast.Call) -> Value:
        value = self.value(node.args[0], FLOAT)
        return Value(folded("i64.trunc_f64_s", folded("f64.nearest", value.code)), INT)

    def _int(self, node: ast.Call) -> Value:
        value = self.value(node.args[0])
        if value.kind == FLOAT:
            return Value(folded("i64.trunc_f64_s", value.code), INT)
        return self.fitted(value, INT, node)

    def _float(self, node: ast.Call) -> Value:
        return self.value(node.args[0], FLOAT)

    def _least(self, node: ast.Call) -> Value:
        return self._extreme(node, ast.Lt())

    def _greatest(self, node: ast.Call) -> Value:
        return self._extreme(node, ast.Gt())

    def _extreme(self, node: ast.Call, op: ast.cmpop) -> Value:
        """Return the minimum or maximum of values, the first one at equality."""
        if len(node.args) < 2:
            raise self.refuse("the minimum or maximum of a list is not translated", node)
        best = self.value(node.args[0])
        for argument in node.args[1:]:
            other = self.value(argument)
            if other.kind != best.kind:
                raise self.refuse(f"{best.kind} and {other.kind} have no common order", argument)
            keep, one = self.kept(best)
            keep_other, another = self.kept(other)
            test = self.compared(op, another, one, node)
            best = Value(f"{keep} {keep_other} (select {another.code} {one.code} {test})", one.kind)
        return best

    def _frexp(self, node: ast.Call) -> Value:
        value = self.value(node.args[0], FLOAT)
        return Value(folded("call $frexp", value.code), TupleOf((FLOAT, INT)))

    def _ldexp(self, node: ast.Call) -> Value:
        value, exponent = self.value(node.args[0], FLOAT), self.value(node.args[1], INT)
        return Value(folded("call $ldexp", value.code, exponent.code), FLOAT)


def _is_generic(function: Function) -> bool:
    return function.__module__ == library.__name__


_CALLS: dict[Any, Callable[[Calls, ast.Call], Value]] = {
    len: Calls._len,
    round: Calls._round,
    int: Calls._int,
    float: Calls._float,
    min: Calls._least,
    max: Calls._greatest,
    math.frexp: Calls._frexp,
    math.ldexp: Calls._ldexp,
}
_OPERATIONS: dict[Any, str] = {
    integers.as_u8: "(i64.and {0} (i64.const 0xFF))",
    integers.as_u16: "(i64.and {0} (i64.const 0xFFFF))",
    integers.as_u32: "(i64.and {0} (i64.const 0xFFFFFFFF))",
    integers.as_i8: "(i64.extend8_s {0})",
    integers.as_i16: "(i64.extend16_s {0})",
    integers.as_i32: "(i64.extend32_s {0})",
    integers.as_i64: "{0}",
    integers.popcount: "(i64.popcnt {0})",
    integers.trailing_zeros: "(i64.ctz {0})",
    integers.leading_zeros: "(i64.clz {0})",
}
_MEMORY: dict[Any, str] = {memory.copy: "memory.copy", memory.fill: "memory.fill"}
_REPLACED: dict[Any, Function] = {bisect.insort: library.insort}
