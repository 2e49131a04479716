"""The two algorithms of all analyses, on graphs made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from operator import or_

from gpusim.program.dataflow import reachable, solve

# Two ways from 0 to 3, a loop of 3 and 4, and 5, to which nothing leads.
GRAPH = {0: [1, 2], 1: [3], 2: [3], 3: [4], 4: [3, 6], 5: [6], 6: []}


def test_all_nodes_behind_the_starts_are_reachable_and_the_starts_themselves() -> None:
    assert reachable([0], GRAPH.__getitem__) == {0, 1, 2, 3, 4, 6}
    assert reachable([5, 2], GRAPH.__getitem__) == {2, 3, 4, 5, 6}


def test_no_path_leads_through_a_node_to_be_avoided_not_even_from_it() -> None:
    assert reachable([0], GRAPH.__getitem__, without=(3,)) == {0, 1, 2}
    assert reachable([3], GRAPH.__getitem__, without=(3,)) == set()


def onward(node: int, fact: frozenset[int]) -> Iterator[tuple[int, frozenset[int]]]:
    """Let every node add itself to the facts that pass it."""
    return ((target, fact | {node}) for target in GRAPH[node])


def test_facts_of_some_path_are_joined_by_union_round_loops_too() -> None:
    found = solve({0: frozenset[int]()}, onward, frozenset.union)
    assert found[3] == {0, 1, 2, 3, 4}
    assert found[6] == {0, 1, 2, 3, 4}
    assert 5 not in found


def test_facts_of_every_path_are_joined_by_intersection() -> None:
    found = solve({0: frozenset[int]()}, onward, frozenset.intersection)
    assert found[3] == {0}
    assert found[6] == {0, 3, 4}


def test_each_node_is_visited_again_only_where_a_fact_has_changed() -> None:
    visits: list[int] = []

    def count(node: int, fact: int) -> Iterator[tuple[int, int]]:
        visits.append(node)
        return ((target, fact | 1) for target in GRAPH[node])

    solve({0: 0}, count, or_)
    assert sorted(visits) == [0, 1, 2, 3, 4, 6]
