"""Python objects in the memory of a module: copied in, and results copied back."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from gpusim.typing import Array
from gpusim.wasm.layouts import Layouts, special_slots
from gpusim.wasm.value_types import FLOAT, INT, SLOT, Kind, ListOf, Reference

BASE = 1024  # where the first object lies; None is 0
_LIST_SLOTS = 3  # of a list: address of its elements, length, capacity
_ADDRESS = (1 << 32) - 1  # the bits of a slot that hold an address or a length
Read = Callable[[int, int], "array[int]"]  # the given number of slots from an address on


class Image:
    """Objects for a module and all objects reachable from them, slot by slot.

    It may lie `after` another image and refer to its objects. Floats and references stay Python
    objects in their slots until all objects are placed: recursion would exceed Python's limit,
    because chains of references are long. Objects of one batch are converted slot by slot. Columns
    of objects, and long lists of integers, are finished parts as they are.
    """

    def __init__(self, layouts: Layouts, behind: Image | None = None) -> None:
        self._layouts = layouts
        self.begin = BASE if behind is None else behind.end
        self._slots: list[Any] = []
        self._parts: list[Array] = []  # finished slots before those
        self._done = 0  # the number of finished slots
        # Addresses of objects and lists by identity; `_added` keeps all of them alive.
        self._places: dict[int, int] = {id(None): 0} if behind is None else dict(behind._places)
        self._added: list[Any] = []
        # Slots, one row length apart, still to be converted, and their kind.
        self._unfinished: list[tuple[slice, Kind]] = []

    @property
    def end(self) -> int:
        """The address after the last object."""
        return self.begin + SLOT * (self._done + len(self._slots))

    def parts(self) -> Iterator[tuple[int, Array]]:
        """Yield parts of the memory with their addresses; TypeError for a slot without a number."""
        self._add_part(self._finished())
        begin = self.end - SLOT * sum(map(len, self._parts))
        for part in self._parts:
            yield begin, part
            begin += SLOT * len(part)

    def let_go(self) -> None:
        """Keep only the addresses of objects that have been copied into memory."""
        self._add_part(self._finished())
        self._parts.clear()

    def add(self, given: Any) -> int:
        """Place an object with all that it refers to; return its address."""
        self._added.append(given)
        self._objects(type(given), (given,))
        self._finish()
        return self.address(given)

    def add_list(self, element: Kind, items: Sequence[Any]) -> None:
        """Place a list with all that its elements refer to."""
        self._added.append(items)
        self._list(element, items)
        self._finish()

    def add_integers(self, items: Sequence[int]) -> None:
        """Place a list of integers, fast for an array of 64 bits each."""
        self.add_slots(items, np.asarray(items, dtype=np.int64))

    def add_slots(self, items: Sequence[Any], slots: Array) -> None:
        """Place a list with elements of a slot each, which is finished."""
        self._added.append(items)
        self._add_part(self._finished())
        self._places[id(items)] = self.end
        head = self.end + SLOT * _LIST_SLOTS, len(slots), len(slots)
        self._add_part(np.array(head, dtype=np.int64))
        self._add_part(slots)

    def add_columns(self, cls: type, columns: Mapping[str, Array]) -> Array:
        """Place objects of a class with finished `columns` as fields; return their addresses."""
        self._add_part(self._finished())
        layout, count = self._layouts.of(cls), len(next(iter(columns.values())))
        addresses = self.end + layout.size * np.arange(count)
        slots = np.empty((count, layout.size // SLOT), dtype=np.int64)
        for name, field in layout.fields.items():
            slots[:, field.offset // SLOT] = columns[name]
        self._add_part(slots.reshape(-1))
        return addresses

    def holds(self, lists: Iterable[Sequence[Any]]) -> bool:
        """Return whether all of these lists are placed."""
        return all(id(items) in self._places for items in lists)

    def address(self, given: Any) -> int:
        """Return the address of an object or list."""
        return self._places[id(given)]

    def read_back(self, given: Any, names: Sequence[str], read: Read) -> None:
        """Set fields of an object to their present values in memory."""
        fields = self._layouts.of(type(given)).fields
        for name in names:
            [slot] = read(self.address(given) + fields[name].offset, 1)
            setattr(given, name, _value(slot, fields[name].kind, read))

    def update(self, items: Sequence[int], read: Read) -> None:
        """Set the elements of an array of integers to their present values in memory."""
        data, _, _ = read(self.address(items), _LIST_SLOTS)
        np.asarray(items)[:] = read(data & _ADDRESS, len(items))

    def _finished(self) -> Array:
        """Return the slots that were not finished before."""
        slots, self._slots = array("q", self._slots), []
        return np.frombuffer(slots, dtype=np.int64)

    def _add_part(self, slots: Array) -> None:
        if len(slots):
            self._parts.append(slots)
            self._done += len(slots)

    def _finish(self) -> None:
        """Replace floats and references by their bits and addresses."""
        slots, places, unfinished = self._slots, self._places, self._unfinished
        while unfinished:
            here, kind = unfinished.pop()
            values = slots[here]
            if kind == FLOAT:
                slots[here] = array("q", array("d", values).tobytes())
                continue
            if isinstance(kind, Reference):
                self._objects(kind.cls, values)
            elif isinstance(kind, ListOf):
                for items in values:
                    self._list(kind.element, items)
            slots[here] = [places[id(value)] for value in values]

    def _objects(self, cls: type, objects: Sequence[Any]) -> None:
        """Place objects of a class, except those already placed."""
        cls = self._layouts.bindings.get(cls, cls)
        layout = self._layouts.of(cls)
        slots, places, values = self._slots, self._places, layout.values
        first = len(slots)
        for one in objects:
            if id(one) not in places:
                if type(one) is not cls:
                    raise TypeError(f"a {type(one).__name__} is given as a {cls.__name__}")
                places[id(one)] = self.end
                slots.extend(values(one))
        self._leave(first, layout.size // SLOT, layout.special)

    def _list(self, element: Kind, items: Sequence[Any]) -> None:
        """Place a list, unless it is already placed."""
        if id(items) in self._places:
            return
        special, length = special_slots(element)
        self._places[id(items)] = address = self.end
        self._slots.extend((address + SLOT * _LIST_SLOTS, len(items), len(items)))
        first = len(self._slots)
        self._slots.extend(items if length == 1 else chain.from_iterable(items))
        self._leave(first, length, special)

    def _leave(self, first: int, length: int, special: Sequence[tuple[int, Kind]]) -> None:
        """Note slots to convert later, in the rows of a length from slot `first` on."""
        end = len(self._slots)
        if end > first:
            for number, kind in special:
                self._unfinished.append((slice(first + number, end, length), kind))


def _value(slot: int, kind: Kind, read: Read) -> Any:
    """Return an int, an array of ints, or a list of these, from a slot."""
    if not isinstance(kind, ListOf):
        return slot
    data, length, _ = (part & _ADDRESS for part in read(slot & _ADDRESS, _LIST_SLOTS))
    slots = read(data, length)
    return slots if kind.element == INT else [_value(one, kind.element, read) for one in slots]
