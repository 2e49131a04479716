"""Two algorithms for all analyses: reachability, and facts that flow along edges.

A graph is a function from a node to its neighbours, forwards or backwards. It knows nothing of
programs: nodes are pcs, blocks of SSA form or registers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
Fact = TypeVar("Fact")


def reachable(
    starts: Iterable[Node],
    following: Callable[[Node], Iterable[Node]],
    without: Container[object] = (),
) -> set[Node]:
    """Return `starts` and all nodes reachable from them, on paths `without` some nodes."""
    found: set[Node] = set()
    waiting = [node for node in starts if node not in without]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [one for one in following(node) if one not in without]
    return found


def solve(
    at_first: Mapping[Node, Fact],
    onward: Callable[[Node, Fact], Iterable[tuple[Node, Fact]]],
    join: Callable[[Fact, Fact], Fact],
) -> dict[Node, Fact]:
    """Return the fact at each node reachable from `at_first`: a fixed point, by a worklist.

    `onward(node, fact)` gives the neighbours of a node with the fact that arrives there. Where
    several arrive, `join` combines two, or returns its first argument if the second adds nothing.
    Both functions have to be monotone. Nodes are visited first in the order of `at_first`.
    """
    facts, waiting = dict(at_first), deque(at_first)
    queued = set(waiting)
    while waiting:
        node = waiting.popleft()
        queued.discard(node)
        for target, arriving in onward(node, facts[node]):
            if target in facts:
                known = facts[target]
                arriving = join(known, arriving)
                if arriving is known or arriving == known:
                    continue
            facts[target] = arriving
            if target not in queued:
                queued.add(target)
                waiting.append(target)
    return facts
