"""What the played code calls of Python's library, in the words of what is played."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T", bound=Any)


def insort(items: list[T], item: T) -> None:
    """Add an item to a sorted list, behind those that are no greater."""
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
