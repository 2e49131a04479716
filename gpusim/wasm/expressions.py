"""Translation of expressions to WebAssembly text: each leaves its value on the stack."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from gpusim.wasm import library
from gpusim.wasm.layouts import Layouts
from gpusim.wasm.memory import Record
from gpusim.wasm.sources import Function, Source, origin
from gpusim.wasm.value_types import (
    BOOL,
    FLOAT,
    INT,
    LOW_BITS,
    NONE,
    Integer,
    Kind,
    ListOf,
    Reference,
    TupleOf,
    flat,
    size_of,
)
from gpusim.wasm.values import Value, constant, folded, wrapped
from gpusim.wasm.variables import Variables

WHOLE = 1 << 64


@dataclass(frozen=True)
class Signature:
    """Calling convention of a function: name in the module, parameters, defaults and result.

    With a `source`, the function may be inlined.
    """

    name: str
    parameters: dict[str, Kind]
    defaults: dict[str, Any]
    result: Kind
    source: Source | None = None


class Surroundings(Protocol):
    """The module as seen by the translation of one of its functions."""

    layouts: Layouts
    packages: tuple[str, ...]  # whose numbers are known: their source is in the module's digest

    def function(self, function: Function, given: tuple[Kind, ...]) -> Signature:
        """Return the signature for arguments of these kinds."""

    def constructor(self, cls: type) -> Signature:
        """Return the signature of a class's constructor."""

    def require(self, called: Signature) -> None:
        """Queue the translation of a function, unless it is known or inlined wherever called."""

    def inlined(self, caller: Expressions, called: Signature, given: list[Value]) -> Value | None:
        """Return the value of an inlined call, None for a function too large to inline."""


class Expressions(Variables):
    """The expressions of one function, and its local variables."""

    def __init__(
        self, source: Source, around: Surroundings, within: Expressions | None = None
    ) -> None:
        super().__init__(source, within)
        self.around = around
        self._wraps = False  # whether only the low 64 bits of an int are needed

    # -- expressions -------------------------------------------------------------------

    def value(self, node: ast.expr, wanted: Kind | None = None) -> Value:
        """Return an expression's value, converted to the `wanted` kind if given."""
        found = self._value(node, wanted)
        return found if wanted is None else self.fitted(found, wanted, node)

    def _value(self, node: ast.expr, wanted: Kind | None) -> Value:
        try:
            known = self.known(node)
        except KeyError:
            known = ...
        found = constant(known)
        if found is not None:
            self._check(known, node)
        if found is not None:
            if isinstance(wanted, Reference | ListOf) and found.kind == NONE:
                return Value(found.code, wanted)
            return found
        if isinstance(node, ast.List):
            return self._list(node, wanted)
        if isinstance(node, ast.IfExp):
            return self._choice(node, wanted)
        if isinstance(node, ast.Tuple):
            return self._tuple(node, wanted)
        translate = _EXPRESSIONS.get(type(node))
        if translate is None:
            raise self.refuse(f"{type(node).__name__} is not translated", node)
        return translate(self, node)

    def _check(self, number: object, node: ast.expr) -> None:
        """Refuse a number of more than 64 bits, or from a module outside the digest."""
        if isinstance(number, int) and number >> 63 not in (0, -1) and not self._wraps:
            raise self.refuse("this whole number has more than 64 bits", node)
        module = origin(self.source.file, node.id) if isinstance(node, ast.Name) else ""
        if module and not module.startswith(self.around.packages):
            raise self.refuse(f"a number of {module} is not known to the translation", node)

    def fitted(self, value: Value, wanted: Kind, node: ast.AST) -> Value:
        """Return a value converted to another kind: None to a reference, bool to int to float."""
        if value.kind == wanted:
            return value
        if value.kind == NONE and isinstance(wanted, Reference):
            return Value(value.code, wanted)
        if value.kind == INT and wanted == FLOAT:
            return Value(folded("f64.convert_i64_s", value.code), FLOAT)
        if value.kind == BOOL and wanted == INT:
            return Value(folded("i64.extend_i32_u", value.code), INT)
        if value.kind in (INT, BOOL) and isinstance(wanted, Integer):
            whole = self.fitted(value, INT, node).code
            return Value(whole if wanted.bytes == 8 else wrapped(whole), wanted)
        raise self.refuse(f"this is {value.kind}, where {wanted} is expected", node)

    def condition(self, node: ast.expr) -> str:
        """Return the text that leaves the truth value of an expression, 1 or 0."""
        if isinstance(node, ast.BoolOp):
            parts = [self.condition(part) for part in node.values]
            return self._short_circuit(node.op, parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return folded("i32.eqz", self.condition(node.operand))
        value = self.value(node)
        if value.kind == BOOL:
            return value.code
        if value.kind == INT:
            return folded("i64.ne", value.code, "(i64.const 0)")
        if value.kind == FLOAT:
            return folded("f64.ne", value.code, "(f64.const 0)")
        if isinstance(value.kind, ListOf):
            return folded("i32.ne", self.length(value), "(i32.const 0)")
        raise self.refuse(f"{value.kind} has no truth value", node)

    def _short_circuit(self, op: ast.boolop, parts: list[str]) -> str:
        code = parts[-1]
        for part in reversed(parts[:-1]):
            if isinstance(op, ast.And):
                code = f"(if (result i32) {part} (then {code}) (else (i32.const 0)))"
            else:
                code = f"(if (result i32) {part} (then (i32.const 1)) (else {code}))"
        return code

    @staticmethod
    def length(items: Value) -> str:
        """Return the text that leaves a list's length, as i32."""
        return folded("i32.load offset=8", items.code)

    def _truth(self, node: ast.expr) -> Value:
        if isinstance(node, ast.BoolOp):
            for part in node.values:
                self.value(part, BOOL)
        return Value(self.condition(node), BOOL)

    def _name(self, node: ast.expr) -> Value:
        assert isinstance(node, ast.Name)
        if node.id not in self.variables:
            raise self.refuse(f"{node.id} is not a known variable, number or function", node)
        return self.widened(self.get(node.id))

    @staticmethod
    def widened(value: Value) -> Value:
        """Return a parameter or result of some width with 64 bits, any other value as it is."""
        kind = value.kind
        if not isinstance(kind, Integer):
            return value
        if kind.bytes == 8:
            return Value(value.code, INT)
        code = value.code
        if kind.bytes < 4:
            low = f"i32.extend{8 * kind.bytes}_s"
            code = (
                folded(low, code)
                if kind.signed
                else folded("i32.and", code, f"(i32.const {(1 << 8 * kind.bytes) - 1})")
            )
        return Value(folded(f"i64.extend_i32_{'us'[kind.signed]}", code), INT)

    def field(self, node: ast.Attribute) -> tuple[Value, int, Kind]:
        """Return the object of an attribute, and the field's offset and kind."""
        held = self.value(node.value)
        if isinstance(held.kind, Reference):
            found = self.around.layouts.of(held.kind.cls).fields.get(node.attr)
            if found is not None:
                return held, found.offset, found.kind
        raise self.refuse(f"{held.kind} has no translated field {node.attr}", node)

    def _attribute(self, node: ast.expr) -> Value:
        assert isinstance(node, ast.Attribute)
        if node.attr == "address":
            held = self.value(node.value)
            if isinstance(held.kind, Reference) and issubclass(held.kind.cls, Record):
                return Value(folded("i64.extend_i32_u", held.code), INT)
        held, offset, kind = self.field(node)
        return self.load(held.code, offset, kind)

    def element(self, node: ast.Subscript) -> tuple[str, Kind]:
        """Return the address and kind of a list's element; an index out of range is a trap."""
        found = self.value(node.value)
        if not isinstance(found.kind, ListOf):
            raise self.refuse(f"{found.kind} has no translated elements", node)
        keep, items = self.kept(found)
        keep_index, place = self.kept(Value(self.place(node.slice, items), BOOL))
        size = size_of(found.kind.element)
        return (
            f"{keep} {keep_index} "
            f"(if (i32.ge_u {place.code} {self.length(items)}) (then (unreachable))) "
            f"(i32.add (i32.load {items.code}) (i32.mul {place.code} (i32.const {size})))"
        ), found.kind.element

    def place(self, index: ast.expr, items: Value) -> str:
        """Return the text that leaves the position of a list index, as i32.

        Only literal negative indices count from the end: -1 is the last.
        """
        if isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant):
            behind = self.value(index.operand, INT)
            return folded("i32.sub", self.length(items), folded("i32.wrap_i64", behind.code))
        return folded("i32.wrap_i64", self.value(index, INT).code)

    def _subscript(self, node: ast.expr) -> Value:
        assert isinstance(node, ast.Subscript)
        if isinstance(node.value, ast.Subscript):  # of a list of tuples
            address, kind = self.element(node.value)
            if isinstance(kind, TupleOf) and isinstance(node.slice, ast.Constant):
                place = int(node.slice.value)  # type: ignore[arg-type]
                offset = sum(map(size_of, kind.elements[:place]))
                return self.load(address, offset, kind.elements[place])
        address, kind = self.element(node)
        return self.load(address, 0, kind)

    def _tuple(self, node: ast.Tuple, wanted: Kind | None) -> Value:
        kinds: list[Kind | None] = [None] * len(node.elts)
        if isinstance(wanted, TupleOf) and len(wanted.elements) == len(node.elts):
            kinds = list(wanted.elements)
        values = [self.value(part, kind) for part, kind in zip(node.elts, kinds, strict=True)]
        return Value(" ".join(v.code for v in values), TupleOf(tuple(v.kind for v in values)))

    def _list(self, node: ast.List, wanted: Kind | None) -> Value:
        if node.elts or not isinstance(wanted, ListOf):
            raise self.refuse("a list is [0] * n, or [] with an annotated type", node)
        return Value("(call $list (i32.const 0))", wanted)

    def _choice(self, node: ast.IfExp, wanted: Kind | None) -> Value:
        one, other = self.value(node.body, wanted), self.value(node.orelse, wanted)
        if one.kind == NONE:
            one = self.fitted(one, other.kind, node.body)
        other = self.fitted(other, one.kind, node.orelse)
        results = " ".join(slot.wasm for slot in flat(one.kind))
        test = self.condition(node.test)
        code = f"(if (result {results}) {test} (then {one.code}) (else {other.code}))"
        return Value(code, one.kind)

    # -- arithmetic --------------------------------------------------------------------

    def _unary(self, node: ast.expr) -> Value:
        assert isinstance(node, ast.UnaryOp)
        if isinstance(node.op, ast.Not):
            return Value(self.condition(node), BOOL)
        value = self.value(node.operand)
        if isinstance(node.op, ast.Invert) and value.kind == INT:
            return Value(folded("i64.xor", value.code, "(i64.const -1)"), INT)
        if isinstance(node.op, ast.USub) and value.kind == FLOAT:
            return Value(folded("f64.neg", value.code), FLOAT)
        if isinstance(node.op, ast.USub) and value.kind == INT:
            return Value(folded("i64.sub", "(i64.const 0)", value.code), INT)
        raise self.refuse(f"{type(node.op).__name__} of {value.kind} is not translated", node)

    def _binary(self, node: ast.expr) -> Value:
        assert isinstance(node, ast.BinOp)
        if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
            return self._filled(node.left, node.right)
        if isinstance(node.op, ast.Mod) and self._is_whole(node.right):
            self._wraps = True
            value = self.value(node.left, INT)
            self._wraps = False
            return Value(value.code, LOW_BITS)
        one = self.value(node.left)
        if one.kind == LOW_BITS and isinstance(node.op, ast.Div) and self._is_whole(node.right):
            part = folded("f64.convert_i64_u", one.code)
            return Value(folded("f64.mul", part, f"(f64.const {(1 / WHOLE).hex()})"), FLOAT)
        return self.combined(node.op, one, self.value(node.right), node, node.right)

    def _is_whole(self, node: ast.expr) -> bool:
        try:
            return bool(self.known(node) == WHOLE)
        except KeyError:
            return False

    def _filled(self, items: ast.List, times: ast.expr) -> Value:
        if len(items.elts) != 1:
            raise self.refuse("a list is made of one element, n times", items)
        item, n = self.value(items.elts[0], INT), self.value(times, INT)
        return Value(folded("call $filled", item.code, n.code), ListOf(INT))

    def combined(
        self, op: ast.operator, one: Value, other: Value, node: ast.AST, right: ast.expr
    ) -> Value:
        """Return the result of a binary operator on two values."""
        if FLOAT in (one.kind, other.kind) or isinstance(op, ast.Div):
            one, other = self.fitted(one, FLOAT, node), self.fitted(other, FLOAT, node)
            return self._of_floats(op, one, other, node, right)
        if one.kind == other.kind == BOOL and type(op) in _OF_BOOLS:
            return Value(folded(_OF_BOOLS[type(op)], one.code, other.code), BOOL)
        one, other = self.fitted(one, INT, node), self.fitted(other, INT, node)
        divided = self._by_constant(op, one, right)
        if divided is not None:
            return divided
        name = _OF_INTS.get(type(op))
        if name is None:
            raise self.refuse(f"{type(op).__name__} of whole numbers is not translated", node)
        return Value(folded(name, one.code, other.code), INT)

    def _by_constant(self, op: ast.operator, one: Value, right: ast.expr) -> Value | None:
        """Return an integer division or modulo by a positive literal, else None.

        By a power of two it is a shift or a mask; compilers divide by others without a division.
        """
        try:
            number = self.known(right)
        except KeyError:
            return None
        if not isinstance(number, int) or number < 1 or not isinstance(op, ast.FloorDiv | ast.Mod):
            return None
        is_quotient = isinstance(op, ast.FloorDiv)
        if number & (number - 1) == 0:
            shift, mask = number.bit_length() - 1, number - 1
            code = "i64.shr_s", one.code, f"(i64.const {shift if is_quotient else mask})"
            return Value(folded(*code) if is_quotient else folded("i64.and", *code[1:]), INT)
        keep, there = self.kept(one)
        divisor = f"(i64.const {number})"
        below = f"(i64.shr_s (i64.rem_s {there.code} {divisor}) (i64.const 63))"
        if is_quotient:
            return Value(f"{keep} (i64.add (i64.div_s {there.code} {divisor}) {below})", INT)
        rest = f"(i64.rem_s {there.code} {divisor})"
        return Value(f"{keep} (i64.add {rest} (i64.and {below} {divisor}))", INT)

    def _of_floats(
        self, op: ast.operator, one: Value, other: Value, node: ast.AST, right: ast.expr
    ) -> Value:
        if isinstance(op, ast.Mod) and isinstance(right, ast.Constant) and right.value == 1:
            keep, there = self.kept(one)
            return Value(f"{keep} (f64.sub {there.code} (f64.floor {there.code}))", FLOAT)
        if isinstance(op, ast.Div) and not isinstance(right, ast.Constant):
            return Value(folded("call $divided", one.code, other.code), FLOAT)
        name = _OF_FLOATS.get(type(op))
        if name is None:
            raise self.refuse(f"{type(op).__name__} of floats is not translated", node)
        return Value(folded(name, one.code, other.code), FLOAT)

    # -- comparison --------------------------------------------------------------------

    def _compare(self, node: ast.expr) -> Value:
        assert isinstance(node, ast.Compare)
        keeps, values = [], []
        for part in (node.left, *node.comparators):
            value = self.value(part)
            if len(node.ops) > 1 and part is not node.left:
                keep, value = self.kept(value)
                keeps.append(keep)
            values.append(value)
        if len(node.ops) > 1:  # in a chain all parts are read first: none has effects
            keep, values[0] = self.kept(values[0])
            keeps.insert(0, keep)
        tests = [
            self.compared(op, values[place], values[place + 1], node)
            for place, op in enumerate(node.ops)
        ]
        return Value(" ".join([*keeps, self._short_circuit(ast.And(), tests)]), BOOL)

    def compared(self, op: ast.cmpop, one: Value, other: Value, node: ast.AST) -> str:
        """Return the text that compares two values."""
        if isinstance(op, ast.In | ast.NotIn):
            return self._contained(op, one, other)
        if isinstance(one.kind, TupleOf) and isinstance(op, ast.Lt):
            return self._is_less(one, other)
        kinds = {one.kind, other.kind}
        if kinds == {INT, FLOAT}:
            one, other = self.fitted(one, FLOAT, node), self.fitted(other, FLOAT, node)
        name = _COMPARED.get(type(op))
        prefix = _PREFIX.get(one.kind, "i32")
        is_identity = not isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq)
        if name is None or isinstance(one.kind, TupleOf) or (is_identity and prefix == "i32"):
            raise self.refuse(f"{type(op).__name__} of {one.kind} is not translated", node)
        if one.kind != other.kind and NONE not in kinds:
            raise self.refuse(f"{one.kind} and {other.kind} are not compared", node)
        sign = "_s" if prefix == "i64" and is_identity else ""
        return folded(f"{prefix}.{name}{sign}", one.code, other.code)

    def _contained(self, op: ast.cmpop, item: Value, items: Value) -> str:
        code = self.call_of(library.contains, [items, item]).code
        return code if isinstance(op, ast.In) else folded("i32.eqz", code)

    def _is_less(self, one: Value, other: Value) -> str:
        """Compare tuples lexicographically by their integer slots; other slots are ignored."""
        assert isinstance(one.kind, TupleOf)
        (before, slots), (before_other, others) = self.parts(one), self.parts(other)
        numbers = [n for n, kind in enumerate(flat(one.kind)) if kind == INT]
        code = f"(i64.lt_s {slots[numbers[-1]]} {others[numbers[-1]]})"
        for number in reversed(numbers[:-1]):
            a, b = slots[number], others[number]
            code = f"(if (result i32) (i64.eq {a} {b}) (then {code}) (else (i64.lt_s {a} {b})))"
        return f"{before} {before_other} {code}"

    # -- calls -------------------------------------------------------------------------

    def call(self, node: ast.expr) -> Value:
        """Return the value of a call."""
        raise NotImplementedError

    def call_of(self, function: Function, values: list[Value]) -> Value:
        """Return the value of a call of a function with these values."""
        called = self.around.function(function, tuple(value.kind for value in values))
        self.around.require(called)
        code = " ".join(value.code for value in values)
        return Value(folded(f"call {called.name}", code), called.result)


_OF_INTS: dict[type[ast.operator], str] = {
    ast.Add: "i64.add",
    ast.Sub: "i64.sub",
    ast.Mult: "i64.mul",
    ast.FloorDiv: "call $floor_divided",
    ast.Mod: "call $modulo",
    ast.BitAnd: "i64.and",
    ast.BitOr: "i64.or",
    ast.BitXor: "i64.xor",
    ast.LShift: "i64.shl",
    ast.RShift: "i64.shr_s",
}
_OF_BOOLS: dict[type[ast.operator], str] = {
    ast.BitAnd: "i32.and",
    ast.BitOr: "i32.or",
    ast.BitXor: "i32.xor",
}
_OF_FLOATS: dict[type[ast.operator], str] = {
    ast.Add: "f64.add",
    ast.Sub: "f64.sub",
    ast.Mult: "f64.mul",
    ast.Div: "f64.div",
}
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Is: "eq",
    ast.IsNot: "ne",
}
_PREFIX: dict[Kind, str] = {INT: "i64", FLOAT: "f64"}
_EXPRESSIONS: dict[type[ast.expr], Callable[[Expressions, ast.expr], Value]] = {
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.UnaryOp: Expressions._unary,
    ast.BinOp: Expressions._binary,
    ast.BoolOp: Expressions._truth,
    ast.Compare: Expressions._compare,
    ast.Call: lambda code, node: code.call(node),
}
