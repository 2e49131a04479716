"""Objects as they lie in the memory of a module: brought there, and read back."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

from gpusim.prediction.fast.kinds import FLOAT, INT, SLOT, Kind, ListOf, Reference, flat, is_whole
from gpusim.prediction.fast.layouts import Layouts

BASE = 1024  # where the first object lies; None is 0
_LIST_SLOTS = 3  # of a list: where its elements lie, how many there are, room for how many
_ADDRESS = (1 << 32) - 1  # a slot's bits that are an address or a length
_double, _word = struct.Struct("<d"), struct.Struct("<q")

Read = Callable[[int, int], list[int]]  # what lies in so many slots from an address on
Convert = Callable[[Any], int]  # from a value to what lies in its slot


class Image:
    """Objects that are to be played, with all that they lead to, slot by slot.

    It may lie `behind` another, whose objects it leads to. What is no whole number stands in its
    slot as it is until all else is there: objects lead to each other in chains that are longer
    than Python's calls are deep.
    """

    def __init__(self, layouts: Layouts, behind: Image | None = None) -> None:
        self._layouts = layouts
        self.begin = BASE if behind is None else behind.end
        self._slots: list[Any] = []
        # By identity: the address of an object or list. They are all held by what was added.
        self._places: dict[int, int] = {id(None): 0} if behind is None else dict(behind._places)
        self._added: list[Any] = []
        self._unfinished: list[tuple[int, Sequence[tuple[int, Convert]]]] = []
        self._of_class: dict[type, list[tuple[int, Convert]]] = {}

    @property
    def end(self) -> int:
        """The address behind the last object."""
        return self.begin + SLOT * len(self._slots)

    def bytes(self) -> bytes:
        """Return what lies in memory from the first object on; TypeError for what is no number."""
        return array("q", self._slots).tobytes()

    def add(self, given: Any) -> int:
        """Bring an object into memory, with all that it leads to; return its address."""
        self._added.append(given)
        address = self._object(type(given), given)
        self._finish()
        return address

    def add_list(self, element: type, items: Sequence[Any]) -> None:
        """Bring a list of objects into memory, with all that they lead to."""
        self._added.append(items)
        if id(items) not in self._places:
            self._list(Reference(element), items)
            self._finish()

    def holds(self, lists: Iterable[Sequence[Any]]) -> bool:
        """Return whether all of some lists are there."""
        return all(id(items) in self._places for items in lists)

    def _finish(self) -> None:
        """Put addresses and bits in the place of what is no whole number."""
        slots, place_of, unfinished = self._slots, self._places.get, self._unfinished
        while unfinished:
            first, special = unfinished.pop()
            for number, convert in special:
                value = slots[first + number]
                place = place_of(id(value))
                slots[first + number] = convert(value) if place is None else place

    def address(self, given: Any) -> int:
        """Return where an object or list lies."""
        return self._places[id(given)]

    def read_back(self, given: Any, names: Sequence[str], read: Read) -> None:
        """Set fields of an object to what lies in memory now."""
        fields = self._layouts.of(type(given)).fields
        for name in names:
            [slot] = read(self.address(given) + fields[name].offset, 1)
            setattr(given, name, _value(slot, fields[name].kind, read))

    def _object(self, cls: type, given: Any) -> int:
        """Bring an object into memory that is not there; return its address."""
        address = self.end
        self._objects(cls, (given,))
        return address

    def _objects(self, cls: type, objects: Sequence[Any]) -> None:
        """Bring those of some objects into memory that are not there."""
        cls = self._layouts.bindings.get(cls, cls)
        layout = self._layouts.of(cls)
        if cls not in self._of_class:
            self._of_class[cls] = [(n, self._converting(kind)) for n, kind in layout.special]
        special, values = self._of_class[cls], layout.values
        slots, places, unfinished = self._slots, self._places, self._unfinished
        for one in objects:
            if id(one) not in places:
                if type(one) is not cls:
                    raise TypeError(f"a {type(one).__name__} is played as a {cls.__name__}")
                first = len(slots)
                places[id(one)] = self.begin + SLOT * first
                slots.extend(values(one))
                unfinished.append((first, special))

    def _list(self, element: Kind, items: Sequence[Any]) -> int:
        """Bring a list into memory that is not there; return its address."""
        count, parts = len(items), flat(element)
        first = len(self._slots) + _LIST_SLOTS
        self._places[id(items)] = address = self.end
        self._slots.extend((address + SLOT * _LIST_SLOTS, count, count))
        self._slots.extend(items if len(parts) == 1 else chain.from_iterable(items))
        if isinstance(element, Reference):
            self._objects(element.cls, items)
            places = self._places
            self._slots[first : first + count] = [places[id(item)] for item in items]
            return address
        special = [(n, self._converting(k)) for n, k in enumerate(parts) if not is_whole(k)]
        if special:
            rows = range(0, count * len(parts), len(parts))
            each = [(row + number, convert) for row in rows for number, convert in special]
            self._unfinished.append((first, each))
        return address

    def _converting(self, kind: Kind) -> Convert:
        if isinstance(kind, Reference):
            return partial(self._object, kind.cls)
        return partial(self._list, kind.element) if isinstance(kind, ListOf) else _CONVERTED[kind]


def _bits(number: float) -> int:
    """Return a float's bits as a whole number."""
    return int(_word.unpack(_double.pack(number))[0])


_CONVERTED: dict[Kind, Convert] = {FLOAT: _bits}


def _value(slot: int, kind: Kind, read: Read) -> Any:
    """Return a whole number, or a list of such, by what lies in a slot."""
    if not isinstance(kind, ListOf):
        return slot
    data, length, _ = (part & _ADDRESS for part in read(slot & _ADDRESS, _LIST_SLOTS))
    slots = read(data, length)
    return slots if kind.element == INT else [_value(one, kind.element, read) for one in slots]
