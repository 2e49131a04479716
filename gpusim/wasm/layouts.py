"""Memory layout of a class: the fields of its annotations, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, get_type_hints

from gpusim.wasm import memory
from gpusim.wasm.memory import Record, fields_of
from gpusim.wasm.value_types import (
    Bindings,
    Kind,
    Reference,
    TupleOf,
    flat,
    is_whole,
    kind_of,
    size_of,
)


@dataclass(frozen=True)
class Field:
    """A field of a class: its kind, and its offset from the object's address in bytes."""

    kind: Kind
    offset: int


@dataclass(frozen=True)
class Layout:
    """The translated fields of a class; all others are left out of memory."""

    cls: type
    fields: dict[str, Field]
    size: int

    @cached_property
    def values(self) -> Callable[[Any], tuple[Any, ...]]:
        """A function from an object to the tuple of its fields, in order."""
        return attrgetter(*self.fields) if len(self.fields) > 1 else self._only

    @cached_property
    def special(self) -> Sequence[tuple[int, Kind]]:
        """The slots of floats and references, with their kinds."""
        return special_slots(TupleOf(tuple(field.kind for field in self.fields.values())))[0]

    def _only(self, given: Any) -> tuple[Any, ...]:
        return tuple(getattr(given, name) for name in self.fields)


@cache
def special_slots(kind: Kind) -> tuple[Sequence[tuple[int, Kind]], int]:
    """Return the slots of a value with floats or references and their kinds, and the slot count."""
    slots = flat(kind)
    special = [(number, one) for number, one in enumerate(slots) if not is_whole(one)]
    return special, len(slots)


class Layouts:
    """The layouts of classes; `bindings` maps a protocol to its class."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self._known: dict[type, Layout] = {}

    def of(self, cls: type) -> Layout:
        """Return the layout of a class."""
        if cls not in self._known:
            self._known[cls] = self._made(cls)
        return self._known[cls]

    def _made(self, cls: type) -> Layout:
        fields: dict[str, Field] = {}
        offset = 0
        if issubclass(cls, Record):
            for name, (offset, integer, other) in fields_of(cls).items():
                fields[name] = Field(integer if other is None else Reference(other), offset)
            return Layout(cls, fields, memory.size(cls))
        for name, annotation in get_type_hints(cls, include_extras=True).items():
            kind = kind_of(annotation, self.bindings)
            if kind is not None:
                fields[name] = Field(kind, offset)
                offset += size_of(kind)
        return Layout(cls, fields, offset)
