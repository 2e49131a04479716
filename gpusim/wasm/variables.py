"""The local variables of a function, and values in memory."""

from __future__ import annotations

import ast
import enum
import types
from collections.abc import Iterator
from itertools import count
from typing import Any

from gpusim.wasm.sources import NotTranslatedError, Source
from gpusim.wasm.value_types import BOOL, INT, SLOT, Integer, Kind, Slot, flat
from gpusim.wasm.values import Value, folded


class Variables:
    """The local variables of one function, `within` another one if it is inlined there."""

    def __init__(self, source: Source, within: Variables | None = None) -> None:
        self.source = source
        self.variables: dict[str, Kind] = {}
        self._standing: dict[str, Value] = {}
        self.locals: list[str] = []
        self.depth: int = 0 if within is None else within.depth + 1
        self._numbers: Iterator[int] = count() if within is None else within._numbers
        self._prefix = "$" if within is None else f"${next(self._numbers)}."

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
