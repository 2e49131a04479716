"""Which step of code may follow which: branches, calls, returns, and the way straight on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpusim.sass.decode import Micro
from gpusim.sass.listing import Guard

ENDS = ("EXIT", "BRA", "BRX", "RET.REL", "CALL.REL", "CALL.REG")
CALLS = ("CALL.REL", "CALL.REG")


@dataclass(frozen=True)
class Edge:
    """A way to go on, and what the lanes that go it have in common: a guard that is true."""

    target: int
    condition: Guard | None = None


def edges(micros: Sequence[Micro], labels: Mapping[str, int]) -> list[tuple[Edge, ...]]:
    """Return the ways on from each step; `labels` are numbers of steps."""
    returns = [Edge(number + 1) for number, micro in enumerate(micros) if micro.op in CALLS]
    # Functions whose addresses may be in registers: all that the section holds.
    functions = [Edge(step) for label, step in labels.items() if label.startswith("$")]
    return [
        _ways(number, micro, labels, tuple(returns), tuple(functions))
        for number, micro in enumerate(micros)
    ]


def _ways(
    number: int,
    micro: Micro,
    labels: Mapping[str, int],
    returns: tuple[Edge, ...],
    functions: tuple[Edge, ...],
) -> tuple[Edge, ...]:
    on: tuple[Edge, ...] = (Edge(number + 1),)
    if micro.op not in ENDS and micro.op != "BRA.APART":
        return on
    jumps: tuple[Edge, ...] = ()
    if micro.op in ("BRA", "CALL.REL", "BRA.APART"):
        jumps = (Edge(labels[micro.label], micro.guard),)
    elif micro.op == "BRX":
        jumps = tuple(Edge(labels[target]) for target in micro.targets)
    elif micro.op == "CALL.REG":
        jumps = functions
    elif micro.op == "RET.REL":
        jumps = returns
    if micro.op == "BRA.APART":
        return on + jumps
    if micro.guard is None:
        return jumps
    stays = Guard(micro.guard.register, not micro.guard.negated)
    return (Edge(number + 1, stays), *jumps)


def blocks(ways: Sequence[tuple[Edge, ...]]) -> list[tuple[int, int]]:
    """Return the straight stretches of code, as first steps and the steps after the last."""
    leaders = {0}
    for number, edges_on in enumerate(ways):
        if len(edges_on) != 1 or edges_on[0].target != number + 1:
            leaders.add(number + 1)
            leaders.update(edge.target for edge in edges_on)
    starts = sorted(leader for leader in leaders if leader < len(ways))
    return list(zip(starts, [*starts[1:], len(ways)], strict=True))
