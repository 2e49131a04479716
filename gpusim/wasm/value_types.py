"""Kinds of Python values in the translation, and their types in WebAssembly.

Each takes a slot of eight bytes in memory, a tuple one for each element. Objects and lists are
addresses; that of None is 0.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

SLOT = 8


@dataclass(frozen=True)
class Scalar:
    """A number, a truth value, or an intermediate form of one."""

    name: str
    wasm: str

    def __str__(self) -> str:
        return self.name


INT, FLOAT, BOOL = Scalar("int", "i64"), Scalar("float", "f64"), Scalar("bool", "i32")
LOW_BITS = Scalar("the low 64 bits of an int", "i64")
NONE = Scalar("None", "i32")


@dataclass(frozen=True)
class Integer:
    """An integer in memory, or as a parameter; computed with it is in 64 bits."""

    bytes: int
    signed: bool

    def __str__(self) -> str:
        return f"{'i' if self.signed else 'u'}{8 * self.bytes}"

    @property
    def wasm(self) -> str:
        """The type of a parameter."""
        return "i64" if self.bytes == 8 else "i32"

    @property
    def bits(self) -> int:
        """A number with all of its bits."""
        return (1 << 8 * self.bytes) - 1

    @property
    def _width(self) -> str:
        return "" if self.bytes in (4, 8) else str(8 * self.bytes)

    @property
    def load(self) -> str:
        """The instruction that reads it as 64 bits."""
        return "i64.load" if self.bytes == 8 else f"i64.load{8 * self.bytes}_{'us'[self.signed]}"

    @property
    def store(self) -> str:
        """The instruction that writes a parameter to memory."""
        return f"{self.wasm}.store{self._width}"


@dataclass(frozen=True)
class Reference:
    """An object of a class, or None."""

    cls: type
    wasm: str = "i32"

    def __str__(self) -> str:
        return self.cls.__name__


@dataclass(frozen=True)
class ListOf:
    """A list, or a tuple of any length: of one kind of elements."""

    element: Kind
    wasm: str = "i32"

    def __str__(self) -> str:
        return f"list[{self.element}]"


@dataclass(frozen=True)
class TupleOf:
    """A tuple of known length, without an address: its elements side by side."""

    elements: tuple[Kind, ...]

    def __str__(self) -> str:
        return f"tuple[{', '.join(map(str, self.elements))}]"


Slot = Scalar | Integer | Reference | ListOf
Kind = Slot | TupleOf
NOTHING = TupleOf(())
Bindings = Mapping[Any, Any]  # concrete types of type variables and protocols


def flat(kind: Kind) -> list[Slot]:
    """Return the kinds of a value's slots."""
    if isinstance(kind, TupleOf):
        return [one for element in kind.elements for one in flat(element)]
    return [kind]


def size_of(kind: Kind) -> int:
    """Return the size of a value in memory, in bytes."""
    return SLOT * len(flat(kind))


def is_whole(kind: Kind) -> bool:
    """Whether a value is an integer in memory."""
    return kind in (INT, BOOL)


def kind_of(annotation: Any, bindings: Bindings) -> Kind | None:
    """Return the kind of an annotation, None for one that is not translated."""
    if isinstance(annotation, TypeVar) or annotation in bindings:
        annotation = bindings.get(annotation)
    if isinstance(annotation, Scalar | Integer | Reference | ListOf | TupleOf):
        return annotation
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return kind_of(parts[1], bindings)
    if origin in (Union, types.UnionType):
        rest = [part for part in parts if part is not type(None)]
        kind = kind_of(rest[0], bindings) if len(rest) == 1 else None
        return kind if isinstance(kind, Reference) else None
    if origin in (list, Sequence, MutableSequence) or (origin is tuple and parts[1:] == (...,)):
        element = kind_of(parts[0], bindings)
        return None if element is None else ListOf(element)
    if origin is tuple:
        elements = [kind_of(part, bindings) for part in parts]
        return None if None in elements else TupleOf(tuple(e for e in elements if e is not None))
    if isinstance(annotation, type) and origin is None:
        if issubclass(annotation, IntEnum):
            return INT
        return Reference(annotation) if annotation.__module__ != "builtins" else None
    return None


_PLAIN: dict[Any, Kind] = {int: INT, float: FLOAT, bool: BOOL, None: NOTHING, type(None): NOTHING}
