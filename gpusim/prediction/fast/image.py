"""Objects as they lie in the memory of a module: brought there, and read back."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from gpusim.prediction.fast.kinds import (
    FLOAT,
    SLOT,
    Kind,
    ListOf,
    Reference,
    flat,
    is_whole,
)
from gpusim.prediction.fast.layouts import Layout, Layouts

BASE = 1024  # where the first object lies; None is 0
_LIST_SLOTS = 3  # of a list: where its elements lie, how many there are, room for how many
_ADDRESS = (1 << 32) - 1  # a slot's bits that are an address or a length
_double, _word = struct.Struct("<d"), struct.Struct("<q")


Read = Callable[[int, int], list[int]]  # what lies in so many slots from an address on


class Image:
    """Objects that are to be played, with all that they lead to, slot by slot."""

    def __init__(self, layouts: Layouts) -> None:
        self._layouts = layouts
        self._slots: list[int] = []
        self._places: dict[int, int] = {}  # by identity: the address of an object or list
        self._held: list[Any] = []  # so that no other object gets the identity of one
        self._unfinished: list[Callable[[], None]] = []

    @property
    def end(self) -> int:
        """The address behind the last object."""
        return BASE + SLOT * len(self._slots)

    def bytes(self) -> bytes:
        """Return what lies in memory from the first object on; TypeError for what is no number."""
        return array("q", self._slots).tobytes()

    def add(self, given: Any) -> int:
        """Bring an object into memory, with all that it leads to; return its address."""
        address = self._object(given, type(given))
        while self._unfinished:
            self._unfinished.pop()()
        return address

    def address(self, given: Any) -> int:
        """Return where an object or list lies."""
        return self._places[id(given)]

    def read_back(self, given: Any, names: Sequence[str], read: Read) -> None:
        """Set fields of an object to what lies in memory now."""
        fields = self._layouts.of(type(given)).fields
        for name in names:
            [slot] = read(self.address(given) + fields[name].offset, 1)
            setattr(given, name, _value(slot, fields[name].kind, read))

    def _object(self, given: Any, cls: type) -> int:
        if given is None:
            return 0
        place = self._places.get(id(given))
        if place is not None:
            return place
        cls = self._layouts.bindings.get(cls, cls)
        if type(given) is not cls:
            raise TypeError(f"a {type(given).__name__} is played as if it were a {cls.__name__}")
        layout = self._layouts.of(cls)
        values = layout.values(given)
        return self._placed(given, layout, values)

    def _placed(self, given: Any, layout: Layout, values: Sequence[Any]) -> int:
        first = len(self._slots)
        address = BASE + SLOT * first
        self._places[id(given)] = address
        self._held.append(given)
        self._slots.extend(values)
        special = layout.special
        if special:
            self._unfinished.append(lambda: self._finish(first, special))
        return address

    def _finish(self, first: int, special: Sequence[tuple[int, Kind]]) -> None:
        """Put what is no whole number in its slot as it lies in memory."""
        slots = self._slots
        for number, kind in special:
            slots[first + number] = self._slot(slots[first + number], kind)

    def _slot(self, value: Any, kind: Kind) -> int:
        if kind == FLOAT:
            return int(_word.unpack(_double.pack(value))[0])
        if isinstance(kind, Reference):
            return self._object(value, kind.cls)
        return self._list(value, kind) if isinstance(kind, ListOf) else int(value)

    def _list(self, items: Sequence[Any], kind: ListOf) -> int:
        place = self._places.get(id(items))
        if place is not None:
            return place
        first = len(self._slots)
        address = BASE + SLOT * first
        self._places[id(items)] = address
        self._held.append(items)
        count = len(items)
        self._slots.extend((address + SLOT * _LIST_SLOTS, count, count))
        self._elements(items, kind.element)
        return address

    def _elements(self, items: Sequence[Any], element: Kind) -> None:
        first, parts = len(self._slots), flat(element)
        if len(parts) > 1:
            items = [value for item in items for value in item]
        self._slots.extend(items)
        special = [(n, kind) for n, kind in enumerate(parts) if not is_whole(kind)]
        if special:
            step = len(parts)
            rows = range(len(items) // step)
            each = [(row * step + n, kind) for row in rows for n, kind in special]
            self._unfinished.append(lambda: self._finish(first, each))


def _value(slot: int, kind: Kind, read: Read) -> Any:
    """Return a whole number, or a list of such, by what lies in a slot."""
    if not isinstance(kind, ListOf):
        return slot
    data, length, _ = (part & _ADDRESS for part in read(slot & _ADDRESS, _LIST_SLOTS))
    slots = read(data, length)
    return [_value(one, kind.element, read) for one in slots] if slots else []
