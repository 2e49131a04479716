"""Translation of expressions to WebAssembly text: each leaves its value on the stack."""

from __future__ import annotations

import ast
import bisect
import enum
import math
import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from gpusim.wasm import integers, library, memory
from gpusim.wasm.layouts import Layouts
from gpusim.wasm.memory import Record
from gpusim.wasm.sources import Function, NotTranslatedError, Source, origin
from gpusim.wasm.value_types import (
    BOOL,
    FLOAT,
    INT,
    LOW_BITS,
    NONE,
    NOTHING,
    SLOT,
    Integer,
    Kind,
    ListOf,
    Reference,
    Slot,
    TupleOf,
    flat,
    size_of,
)

WHOLE = 1 << 64


@dataclass(frozen=True)
class Value:
    """Text that leaves a value on the stack, and the value's kind.

    `slots` are the texts that read the single slots of a stored tuple, after `before`.
    """

    code: str
    kind: Kind
    slots: tuple[str, ...] = ()
    before: str = ""


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


def folded(*parts: object) -> str:
    """Return an instruction with its operands before it."""
    return f"({' '.join(map(str, parts))})"


def is_simple(code: str) -> bool:
    """Whether a text reads a variable or a constant: it may be repeated, or stand elsewhere."""
    return code.count("(") == 1 and code.startswith(("(local.get ", "(i32.const ", "(i64.const "))


def _wrapped(code: str) -> str:
    """Return the text of the low 32 bits of a text of 64 bits."""
    if _end(code) == len(code) - 1:
        for wide, narrow in _NARROWED:
            if code.startswith(wide):
                return narrow + code[len(wide) :] if narrow else code[len(wide) : -1]
        name, operands = code[5:].split(" ", 1)
        first = _end(operands)
        if name in _OF_LOW_BITS and operands.startswith("(") and operands[first + 1] == " ":
            one, other = operands[: first + 1], operands[first + 2 : -1]
            return folded(f"i32.{name}", _wrapped(one), _wrapped(other))
    return folded("i32.wrap_i64", code)


def _end(code: str) -> int:
    """Return where the instruction ends with which a text begins."""
    depth = 0
    for place in re.finditer(r"[()]", code):
        depth += 1 if place[0] == "(" else -1
        if not depth:
            return place.start()
    return -1


_OF_LOW_BITS = frozenset(("add", "sub", "mul", "and", "or", "xor"))
# Instructions of 64 bits with a form of 32 bits, or with an operand that is the result.
_NARROWED = (
    ("(i64.extend_i32_u ", ""),
    ("(i64.extend_i32_s ", ""),
    ("(i64.load32_u ", "(i32.load "),
    ("(i64.load32_s ", "(i32.load "),
    ("(i64.const ", "(i32.const "),
)


def constant(value: object) -> Value | None:
    """Return a number, truth value, record or None as a literal, else None."""
    if isinstance(value, bool):
        return Value(f"(i32.const {int(value)})", BOOL)
    if isinstance(value, int):
        return Value(f"(i64.const {int(value)})", INT)
    if isinstance(value, float):
        return Value(f"(f64.const {value.hex()})", FLOAT)
    if isinstance(value, Record):
        return Value(f"(i32.const {value.address})", Reference(type(value)))
    return Value("(i32.const 0)", NONE) if value is None else None


class Expressions:
    """The expressions of one function, and its local variables."""

    def __init__(
        self, source: Source, around: Surroundings, within: Expressions | None = None
    ) -> None:
        self.source = source
        self.around = around
        self.variables: dict[str, Kind] = {}
        self._standing: dict[str, Value] = {}
        self.locals: list[str] = []
        self.depth: int = 0 if within is None else within.depth + 1
        self._numbers: Iterator[int] = count() if within is None else within._numbers
        self._prefix = "$" if within is None else f"${next(self._numbers)}."
        self._wraps = False  # whether only the low 64 bits of an int are needed

    # -- variables ---------------------------------------------------------------------

    def refuse(self, message: str, node: ast.AST) -> NotTranslatedError:
        """Return the error with a caret under a node."""
        return self.source.refusal(message, node)

    def declare(self, name: str, kind: Kind) -> None:
        """Declare a variable."""
        self.variables[name] = kind
        self.locals.extend(f"(local {n} {one.wasm})" for n, one in self._slots(name, kind))

    def temporary(self, kind: Kind) -> str:
        """Return the name of a new variable."""
        name = f".{next(self._numbers)}"
        self.declare(name, kind)
        return name

    def label(self) -> int:
        """Return a new number for labels."""
        return next(self._numbers)

    def _slots(self, name: str, kind: Kind) -> Iterator[tuple[str, Slot]]:
        for number, one in enumerate(flat(kind)):
            yield f"{self._prefix}{name}.{number}", one

    def stand_for(self, name: str, value: Value) -> None:
        """Let a name stand for a value that can be repeated."""
        self.variables[name] = value.kind
        self._standing[name] = value

    def get(self, name: str) -> Value:
        """Return a variable's value."""
        if name in self._standing:
            return self._standing[name]
        kind = self.variables[name]
        slots = tuple(f"(local.get {slot})" for slot, _ in self._slots(name, kind))
        return Value(" ".join(slots), kind, slots)

    def set(self, name: str, value: Value) -> str:
        """Return the text that puts a value into a variable."""
        slots = [slot for slot, _ in self._slots(name, value.kind)]
        if len(slots) == 1:
            return f"(local.set {slots[0]} {value.code})"
        return " ".join([value.code, *(f"(local.set {slot})" for slot in reversed(slots))])

    def kept(self, value: Value) -> tuple[str, Value]:
        """Return the text that saves a value in a new variable, and a value that reads it."""
        name = self.temporary(value.kind)
        return self.set(name, value), self.get(name)

    def load(self, address: str, offset: int, kind: Kind) -> Value:
        """Return a value of a kind from memory at `address + offset`."""
        if isinstance(kind, Integer):
            return Value(folded(f"{kind.load} offset={offset}", address), INT)
        before = ""
        if len(flat(kind)) > 1:
            before, there = self.kept(Value(address, BOOL))
            address = there.code
        slots = tuple(
            f"({one.wasm}.load offset={offset + SLOT * number} {address})"
            for number, one in enumerate(flat(kind))
        )
        return Value(" ".join([before, *slots]), kind, slots, before)

    def store(self, address: str, offset: int, value: Value) -> str:
        """Return the text that puts a value into memory."""
        if isinstance(value.kind, Integer):
            return folded(f"{value.kind.store} offset={offset}", address, value.code)
        slots = flat(value.kind)
        if len(slots) == 1:
            return f"({slots[0].wasm}.store offset={offset} {address} {value.code})"
        before, parts = self.parts(value)
        stores = (
            f"({one.wasm}.store offset={offset + SLOT * number} {address} {part})"
            for number, (one, part) in enumerate(zip(slots, parts, strict=True))
        )
        return " ".join([before, *stores])

    def parts(self, value: Value) -> tuple[str, tuple[str, ...]]:
        """Return the text to run first, and the texts that read a value's slots."""
        if value.slots:
            return value.before, value.slots
        before, there = self.kept(value)
        return before, there.slots

    def known(self, node: ast.expr) -> Any:
        """Return the object after a name known at translation; KeyError for any other."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name) and node.id not in self.variables:
            scope = self.source.function.__globals__
            builtins = scope["__builtins__"]
            names = builtins if isinstance(builtins, dict) else vars(builtins)
            return scope[node.id] if node.id in scope else names[node.id]
        if isinstance(node, ast.Attribute):
            base = self.known(node.value)
            if isinstance(base, types.ModuleType | enum.EnumMeta):
                return getattr(base, node.attr)
        raise KeyError

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
            return Value(whole if wanted.bytes == 8 else _wrapped(whole), wanted)
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
        raise self.refuse(f"{value.kind} is neither true nor false", node)

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
            raise self.refuse(f"{node.id} is no known variable, number or function", node)
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
            raise self.refuse("a list is made empty, of a kind that is said, or by [0] * n", node)
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
        code = self._call_of(library.contains, [items, item]).code
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

    def _call(self, node: ast.expr) -> Value:
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
            return Value(_wrapped(address), Reference(function))
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

    def _call_of(self, function: Function, values: list[Value]) -> Value:
        called = self.around.function(function, tuple(value.kind for value in values))
        self.around.require(called)
        code = " ".join(value.code for value in values)
        return Value(folded(f"call {called.name}", code), called.result)

    def _call_of_member(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Subscript):
            return self._call_of_table(node, node.func)
        if not isinstance(node.func, ast.Attribute):
            raise self.refuse("this is no translated function", node.func)
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
            raise self.refuse("this is no tuple of functions", table) from None
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
            raise self.refuse("the extreme of a list is not translated", node)
        best = self.value(node.args[0])
        for argument in node.args[1:]:
            other = self.value(argument)
            if other.kind != best.kind:
                raise self.refuse(f"{best.kind} and {other.kind} have no common extreme", argument)
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
    ast.Call: Expressions._call,
}
_CALLS: dict[Any, Callable[[Expressions, ast.Call], Value]] = {
    len: Expressions._len,
    round: Expressions._round,
    int: Expressions._int,
    float: Expressions._float,
    min: Expressions._least,
    max: Expressions._greatest,
    math.frexp: Expressions._frexp,
    math.ldexp: Expressions._ldexp,
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
