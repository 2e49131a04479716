"""Translation of statements and whole functions to WebAssembly text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from gpusim.wasm.calls import Calls
from gpusim.wasm.expressions import Signature
from gpusim.wasm.value_types import (
    BOOL,
    INT,
    NONE,
    NOTHING,
    Integer,
    Kind,
    ListOf,
    TupleOf,
    flat,
    kind_of,
    size_of,
)
from gpusim.wasm.values import Value, folded, is_simple


class Statements(Calls):
    """The statements of one function."""

    _result: Kind
    _loops: list[tuple[str, str]]  # targets of `break` and `continue`, the innermost last
    _end: str  # target of `return` in an inlined function
    _returned: str  # the variable of its result

    def translated(self, signature: Signature) -> str:
        """Return the function as text."""
        self._result, self._loops, self._end = signature.result, [], ""
        for name, kind in signature.parameters.items():
            self.variables[name] = kind
        body = self._block(self.source.tree.body)
        parameters = [
            f"(param {slot} {one.wasm})"
            for name, kind in signature.parameters.items()
            for slot, one in self._slots(name, kind)
        ]
        results = [f"(result {one.wasm})" for one in flat(signature.result)]
        end = "(unreachable)" if results else ""
        head = " ".join([signature.name, *parameters, *results, *self.locals])
        return f"(func {head}\n{body}\n{end})"

    def inlined(self, signature: Signature, given: list[Value]) -> Value:
        """Return the result of the function, inlined with variables of its own."""
        self._result, self._loops = signature.result, []
        self._end = f"$end{self.label()}"
        begin = []
        assert signature.source is not None
        changed = signature.source.assigned
        for (name, kind), value in zip(signature.parameters.items(), given, strict=True):
            if is_simple(value.code) and name not in changed:
                self.stand_for(name, Value(value.code, kind, (value.code,)))
            else:
                self.declare(name, kind)
                begin.append(self.set(name, value))
        only = signature.source.only_value
        if only is not None:
            value = self.value(only, signature.result)
            return Value(" ".join([*begin, value.code]), signature.result)
        self._returned = self.temporary(signature.result)
        body = self._block(self.source.tree.body)
        returned = self.get(self._returned)
        code = f"{' '.join(begin)} (block {self._end}\n{body})"
        return Value(f"{code} {returned.code}", signature.result)

    def _block(self, body: Sequence[ast.stmt]) -> str:
        return "\n".join(self._statement(node) for node in body)

    def _statement(self, node: ast.stmt) -> str:
        translate = _STATEMENTS.get(type(node))
        if translate is None:
            raise self.refuse(f"{type(node).__name__} is not translated", node)
        return translate(self, node)

    # -- assignments -------------------------------------------------------------------

    def _assign(self, node: Any) -> str:
        if len(node.targets) == 1:
            return self._assign_to(node.targets[0], self.value(node.value, self._wanted(node)))
        keep, value = self.kept(self.value(node.value, self._wanted(node)))
        return " ".join([keep, *(self._assign_to(target, value) for target in node.targets)])

    def _wanted(self, node: ast.Assign) -> Kind | None:
        """Return the kind of an assignment's target, None for a new variable or several."""
        target = node.targets[0]
        if isinstance(target, ast.Name):
            return self.variables.get(target.id)
        if isinstance(target, ast.Attribute):
            return self.field(target)[2]
        return self.element(target)[1] if isinstance(target, ast.Subscript) else None

    def _assign_to(self, target: ast.expr, value: Value) -> str:
        if isinstance(target, ast.Name):
            return self._assign_to_name(target, value)
        if isinstance(target, ast.Tuple):
            return self._unpack(target, value)
        if isinstance(target, ast.Attribute):
            held, offset, kind = self.field(target)
            value = self.fitted(value, kind, target)
            if is_simple(held.code):
                return self.store(held.code, offset, value)
            keep, value = self.kept(value)
            return f"{keep} {self.store(held.code, offset, value)}"
        if isinstance(target, ast.Subscript):
            keep, value = self.kept(value)
            address, kind = self.element(target)
            keep_address, there = self.kept(Value(address, BOOL))
            value = self.fitted(value, kind, target)
            return f"{keep} {keep_address} {self.store(there.code, 0, value)}"
        raise self.refuse(f"nothing is assigned to a {type(target).__name__}", target)

    def _assign_to_name(self, target: ast.Name, value: Value) -> str:
        if target.id not in self.variables:
            if value.kind == NONE:
                raise self.refuse(f"{target.id} needs an annotation besides None", target)
            self.declare(target.id, value.kind)
        self._check_changes(target)
        return self.set(target.id, self.fitted(value, self.variables[target.id], target))

    def _check_changes(self, target: ast.Name) -> None:
        """Refuse a new value of a parameter with a width: CPython would not cut it."""
        if isinstance(self.variables.get(target.id), Integer):
            raise self.refuse(f"{target.id} is a parameter with a width: not assignable", target)

    def _unpack(self, target: ast.Tuple, value: Value) -> str:
        if not isinstance(value.kind, TupleOf) or len(value.kind.elements) != len(target.elts):
            raise self.refuse(f"{value.kind} has another number of elements", target)
        before, parts = self.parts(value)
        texts = [before]
        for one, kind in zip(target.elts, value.kind.elements, strict=True):
            mine, parts = parts[: len(flat(kind))], parts[len(flat(kind)) :]
            if not (isinstance(one, ast.Name) and one.id == "_"):
                texts.append(self._assign_to(one, Value(" ".join(mine), kind, mine)))
        return " ".join(texts)

    def _annotated(self, node: Any) -> str:
        scope = self.source.function.__globals__
        annotation = eval(ast.unparse(node.annotation), scope)
        kind = kind_of(annotation, self.around.layouts.bindings)
        if kind is None or not isinstance(node.target, ast.Name):
            raise self.refuse("this type is not translated", node.annotation)
        if node.target.id not in self.variables:
            self.declare(node.target.id, kind)
        return "" if node.value is None else self.set(node.target.id, self.value(node.value, kind))

    def _augmented(self, node: Any) -> str:
        """Change a value in place; its address is computed once."""
        keep, there, put = self._place(node.target)
        calls = any(isinstance(part, ast.Call) for part in ast.walk(node.value))
        if calls and isinstance(node.target, ast.Subscript):
            raise self.refuse("the called function may change the assigned element", node.value)
        made = self.combined(node.op, there, self.value(node.value), node, node.value)
        return f"{keep} {put(self.fitted(made, there.kind, node))}"

    def _place(self, target: ast.expr) -> tuple[str, Value, Callable[[Value], str]]:
        """Return text that saves an address, the value there, and a function that stores one."""
        if isinstance(target, ast.Name):
            self._check_changes(target)
            return "", self._name(target), lambda value: self.set(target.id, value)
        if isinstance(target, ast.Attribute):
            held, offset, kind = self.field(target)
            keep = ""
            if not is_simple(held.code):
                keep, held = self.kept(held)
            there = held.code
        elif isinstance(target, ast.Subscript):
            address, kind = self.element(target)
            offset = 0
            keep, place = self.kept(Value(address, BOOL))
            there = place.code
        else:
            raise self.refuse(f"a {type(target).__name__} is not changed", target)

        def put(value: Value) -> str:
            return self.store(there, offset, self.fitted(value, kind, target))

        return keep, self.load(there, offset, kind), put

    def _delete(self, node: Any) -> str:
        [target] = node.targets
        if not isinstance(target, ast.Subscript):
            raise self.refuse("only a list's element is deleted", node)
        found = self.value(target.value)
        if not isinstance(found.kind, ListOf):
            raise self.refuse(f"{found.kind} has no translated elements", node)
        keep, items = self.kept(found)
        size = f"(i32.const {size_of(found.kind.element)})"
        gone = folded("call $delete", items.code, self.place(target.slice, items), size)
        return f"{keep} {gone}"

    # -- control flow ------------------------------------------------------------------

    def _if(self, node: Any) -> str:
        test, then = self.condition(node.test), self._block(node.body)
        other = f"(else {self._block(node.orelse)})" if node.orelse else ""
        return f"(if {test}\n(then {then})\n{other})"

    def _while(self, node: Any) -> str:
        number = self.label()
        self._loops.append((f"$out{number}", f"$again{number}"))
        test, body = self.condition(node.test), self._block(node.body)
        self._loops.pop()
        return (
            f"(block $out{number} (loop $again{number}\n(br_if $out{number} (i32.eqz {test}))\n"
            f"{body}\n(br $again{number})))"
        )

    def _for(self, node: Any) -> str:
        if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name):
            if node.iter.func.id == "range" and len(node.iter.args) <= 2:
                return self._for_number(node, *node.iter.args)
            if node.iter.func.id == "enumerate" and len(node.iter.args) == 1:
                place, one = node.target.elts
                return self._for_each(node, node.iter.args[0], one, place)
        return self._for_each(node, node.iter, node.target, None)

    def _for_number(self, node: ast.For, *bounds: ast.expr) -> str:
        begin = self.value(bounds[0], INT) if len(bounds) > 1 else _ZERO
        keep, last = self.kept(self.value(bounds[-1], INT))
        name = self.temporary(INT)
        keep = f"{self.set(name, begin)} {keep}"
        take = self._assign_to(node.target, self.get(name))
        test = folded("i64.lt_s", self.get(name).code, last.code)
        return f"{keep} {self._loop(node, name, test, take)}"

    def _for_each(
        self, node: ast.For, over: ast.expr, target: ast.expr, place: ast.expr | None
    ) -> str:
        """Iterate over a list that may grow meanwhile, as in Python."""
        found = self.value(over)
        if not isinstance(found.kind, ListOf):
            raise self.refuse(f"{found.kind} has no translated elements", over)
        keep, items = self.kept(found)
        name = self.temporary(INT)
        index = folded("i32.wrap_i64", self.get(name).code)
        size = f"(i32.const {size_of(found.kind.element)})"
        address = folded("i32.add", folded("i32.load", items.code), folded("i32.mul", index, size))
        take = self._assign_to(target, self.load(address, 0, found.kind.element))
        if place is not None:
            take = f"{take} {self._assign_to(place, self.get(name))}"
        test = folded("i32.lt_u", index, self.length(items))
        keep = f"{keep} {self.set(name, _ZERO)}"
        return f"{keep} {self._loop(node, name, test, take)}"

    def _loop(self, node: ast.For, name: str, test: str, take: str) -> str:
        """Count a variable up while a test holds."""
        number = self.label()
        self._loops.append((f"$out{number}", f"$next{number}"))
        body = self._block(node.body)
        self._loops.pop()
        step = folded("i64.add", self.get(name).code, "(i64.const 1)")
        return (
            f"(block $out{number} (loop $again{number}\n"
            f"(br_if $out{number} (i32.eqz {test}))\n(block $next{number} {take}\n{body})\n"
            f"{self.set(name, Value(step, INT))} (br $again{number})))"
        )

    def _break(self, node: Any) -> str:
        return f"(br {self._loops[-1][0]})"

    def _continue(self, node: Any) -> str:
        return f"(br {self._loops[-1][1]})"

    def _return(self, node: Any) -> str:
        value = Value("", NOTHING)
        if node.value is not None and self._result != NOTHING:
            value = self.value(node.value, self._result)
        if self._end:
            return f"{self.set(self._returned, value)} (br {self._end})"
        return folded("return", value.code)

    def _expression(self, node: Any) -> str:
        if isinstance(node.value, ast.Constant):  # a docstring
            return ""
        value = self.value(node.value)
        return value.code + " (drop)" * len(flat(value.kind))

    def _pass(self, node: Any) -> str:
        return ""

    def _raise(self, node: Any) -> str:
        return "(unreachable)"


_ZERO = Value("(i64.const 0)", INT)
_STATEMENTS: dict[type[ast.stmt], Callable[[Statements, Any], str]] = {
    ast.Assign: Statements._assign,
    ast.AnnAssign: Statements._annotated,
    ast.AugAssign: Statements._augmented,
    ast.Delete: Statements._delete,
    ast.If: Statements._if,
    ast.While: Statements._while,
    ast.For: Statements._for,
    ast.Break: Statements._break,
    ast.Continue: Statements._continue,
    ast.Return: Statements._return,
    ast.Expr: Statements._expression,
    ast.Pass: Statements._pass,
    ast.Raise: Statements._raise,
}
