"""Substitutes for functions of Python's library, in the translated subset of Python."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T", bound=Any)


def insort(items: list[T], item: T) -> None:
    """Insert an item into a sorted list, after its equals."""
    place = len(items)
    items.append(item)
    while place > 0 and item < items[place - 1]:
        items[place] = items[place - 1]
        place -= 1
    items[place] = item


def contains(items: list[T], item: T) -> bool:
    """Whether an item is in a list."""
    found = False
    for one in items:
        found = found or one == item
    return found
