"""Natural loops: a header, and the blocks with a path back to it; paths between blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from gpusim.compiler.dominators import Dominators, dominators
from gpusim.compiler.ir import Block, Function
from gpusim.program import dataflow

_targets, _preds = attrgetter("targets"), attrgetter("preds")


def reachable(starts: Iterable[Block], without: Block | None = None) -> set[Block]:
    """Return `starts` and the blocks that they lead to, on paths `without` one."""
    return dataflow.reachable(starts, _targets, (without,))


def leading_to(ends: Iterable[Block], without: Block | None = None) -> set[Block]:
    """Return `ends` and the blocks that lead to them, on paths `without` one."""
    return dataflow.reachable(ends, _preds, (without,))


@dataclass(eq=False)
class Loop:
    """A natural loop. `blocks` are in reverse postorder, the header first.

    `latches` jump back to the header. `exits` are edges (from inside, to outside).
    `depth` is 1 for an outermost loop.
    """

    header: Block
    blocks: list[Block]
    latches: list[Block]
    exits: list[tuple[Block, Block]]
    parent: Loop | None = None
    depth: int = 1

    @property
    def entering(self) -> list[Block]:
        """The header's predecessors outside the loop."""
        return [p for p in self.header.preds if p not in self.latches]

    @property
    def preheader(self) -> Block | None:
        """The one block that leads in and nowhere else, if there is one."""
        entering = self.entering
        if len(entering) == 1 and len(entering[0].targets) == 1:
            return entering[0]
        return None


def natural_loops(function: Function, tree: Dominators | None = None) -> list[Loop]:
    """Return the loops, inner ones before outer ones."""
    tree = tree or dominators(function)
    loops: list[Loop] = []
    for header in reversed(tree.order):
        latches = [p for p in header.preds if p in tree.parent and tree.dominates(header, p)]
        if not latches:
            continue
        inside = {header} | leading_to(latches, without=header)
        blocks = [b for b in tree.order if b in inside]
        exits = [(b, t) for b in blocks for t in b.targets if t not in inside]
        loops.append(Loop(header, blocks, latches, exits))
    loops.sort(key=lambda loop: len(loop.blocks))
    for i, loop in enumerate(loops):
        loop.parent = next((o for o in loops[i + 1 :] if loop.header in o.blocks), None)
    for loop in reversed(loops):
        loop.depth = 1 if loop.parent is None else loop.parent.depth + 1
    return loops
