"""Control flow between steps of code: branches, calls, returns, and falling through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpusim.program.dataflow import reachable
from gpusim.sass.decoding import Micro
from gpusim.sass.listing import Guard

ENDS = ("EXIT", "BRA", "BRX", "RET.REL", "CALL.REL", "CALL.REG")
CALLS = ("CALL.REL", "CALL.REG")


@dataclass(frozen=True)
class Edge:
    """An edge of the control flow, with the guard that is true for the lanes that take it.

    After a call two edges meet: from the function's returns come the registers it may write
    (`only` these, all if None), past the function the registers it preserves (all `but`
    the written ones). Thus one caller's values do not flow back to another.
    """

    target: int
    condition: Guard | None = None
    only: frozenset[str] | None = None
    but: frozenset[str] = frozenset()

    def carries(self, name: str) -> bool:
        """Return whether a register's value flows along this edge."""
        return name not in self.but and (self.only is None or name in self.only)


def edges(micros: Sequence[Micro], labels: Mapping[str, int]) -> list[tuple[Edge, ...]]:
    """Return the ways on from each step; `labels` are numbers of steps."""
    # Functions with addresses possibly in registers: all of the section.
    functions = tuple(Edge(step) for label, step in labels.items() if label.startswith("$"))
    forward = [_forward(number, micro, labels, functions) for number, micro in enumerate(micros)]
    ways = list(forward)
    for number, micro in enumerate(micros):
        if micro.op not in CALLS:
            continue
        begins = [edge.target for edge in _jumps(micro, labels, functions)]
        runs = _within_function(micros, forward, begins, with_callees=True)
        written = frozenset(name for step in runs for name in micros[step].results)
        ways[number] += (Edge(number + 1, micro.guard, but=written),)
        for step in _within_function(micros, forward, begins, with_callees=False):
            if micros[step].op == "RET.REL":
                ways[step] += (Edge(number + 1, only=written),)
    return ways


def _within_function(
    micros: Sequence[Micro],
    ways: Sequence[tuple[Edge, ...]],
    begins: Sequence[int],
    *,
    with_callees: bool,
) -> list[int]:
    """Return the steps of functions by their beginnings, and of their callees, in order."""

    def following(step: int) -> Iterator[int]:
        is_call = micros[step].op in CALLS
        if is_call:
            yield step + 1
        if with_callees or not is_call:
            yield from (edge.target for edge in ways[step])

    return sorted(reachable(begins, following, without=(len(micros),)))


def _forward(
    number: int, micro: Micro, labels: Mapping[str, int], functions: tuple[Edge, ...]
) -> tuple[Edge, ...]:
    """Return the edges from a step, except edges to after a call."""
    on: tuple[Edge, ...] = (Edge(number + 1),)
    if micro.op not in ENDS and micro.op != "BRA.APART":
        return on
    jumps = _jumps(micro, labels, functions)
    if micro.op == "BRA.APART":
        return on + jumps
    if micro.guard is None:
        return jumps
    stays = Guard(micro.guard.register, not micro.guard.negated)
    return (Edge(number + 1, stays), *jumps)


def _jumps(
    micro: Micro, labels: Mapping[str, int], functions: tuple[Edge, ...]
) -> tuple[Edge, ...]:
    if micro.op in ("BRA", "CALL.REL", "BRA.APART"):
        return (Edge(labels[micro.label], micro.guard),)
    if micro.op == "BRX":
        return tuple(Edge(labels[target]) for target in micro.targets)
    return functions if micro.op == "CALL.REG" else ()


def targets(ways: Sequence[tuple[Edge, ...]]) -> list[tuple[int, ...]]:
    """Return the steps that may follow each."""
    return [tuple(edge.target for edge in edges_on) for edges_on in ways]
