"""What the played code calls of Python's library, in the words of what is played."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T", bound=Any)


def heappush(heap: list[T], item: T) -> None:
    """Add an item to a heap."""
    place = len(heap)
    heap.append(item)
    while place > 0:
        above = (place - 1) // 2
        if not item < heap[above]:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item


def heappop(heap: list[T]) -> T:
    """Take the least item from a heap."""
    least, item = heap[0], heap[len(heap) - 1]
    size = len(heap) - 1
    del heap[size]
    place = 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and heap[below + 1] < heap[below]:
            below += 1
        if not heap[below] < item:
            break
        heap[place] = heap[below]
        place = below
    if size > 0:
        heap[place] = item
    return least


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
