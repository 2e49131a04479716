"""The number of a loop's iterations where it is known at compile time.

It is found by running the loop's induction variable, so that any will do: `i += 1`,
`offset >>= 1`.
"""

from __future__ import annotations

from typing import Any

from gpusim.compiler.dominators import Dominators
from gpusim.compiler.ir import Block, Value
from gpusim.lowering.analysis.evaluate import evaluate
from gpusim.lowering.analysis.loops import Loop


def constant_iteration_count(loop: Loop, tree: Dominators, limit: int) -> tuple[Block, int] | None:
    """Return a block that decides when the loop ends, and how often it runs till then.

    None if that is not known at compile time, or more than `limit`.
    """
    for block, outside in loop.exits:
        decides = all(tree.dominates(block, latch) for latch in loop.latches)
        if decides and block.condition is not None:
            count = _count(loop, block, block.targets.index(outside) == 0, limit)
            if count is not None:
                return block, count
    return None


def _count(loop: Loop, block: Block, leaves_on: bool, limit: int) -> int | None:
    """Run the loop's induction variable until the condition of `block` is `leaves_on`."""
    assert block.condition is not None
    inside = {v for b in loop.blocks for v in (*b.phis, *b.body)}
    steps = _slice(loop, block.condition, inside)
    if steps is None:
        return None
    phis, operations = steps
    now: dict[Value, Any] = {phi: start.constant for phi, (start, _) in phis.items()}

    def known(value: Value) -> Any:
        return value.constant if value.op == "const" else now[value]

    for count in range(1, limit + 1):
        for value in operations:
            assert value.dtype is not None
            sources = [known(a) for a in value.args]
            now[value] = evaluate(value.op, value.dtype, value.detail, sources)
            if now[value] is None:
                return None
        if bool(known(block.condition)) == leaves_on:
            return count
        now.update({phi: known(step) for phi, (_, step) in phis.items()})
    return None


def _slice(
    loop: Loop, condition: Value, inside: set[Value]
) -> tuple[dict[Value, tuple[Value, Value]], list[Value]] | None:
    """Return the slice of a condition, if it depends only on constants.

    The header's phis, each with its value at first and the one that it takes next, and the
    operations within the loop, operands first.
    """
    phis: dict[Value, tuple[Value, Value]] = {}
    operations: list[Value] = []
    seen: set[Value] = set()
    work: list[tuple[Value, bool]] = [(condition, False)]
    while work:
        value, ready = work.pop()
        if ready:
            operations.append(value)
            continue
        if value in seen or value.op == "const":
            continue
        seen.add(value)
        if value.op == "phi" and value in loop.header.phis:
            ends = [value.args[i] for i, p in enumerate(loop.header.preds) if p in loop.latches]
            starts = [a for a, p in zip(value.args, loop.header.preds, strict=True)
                      if p not in loop.latches]  # fmt: skip
            if len(starts) != 1 or starts[0].op != "const" or len(set(ends)) != 1:
                return None
            phis[value] = (starts[0], ends[0])
            work.append((ends[0], False))
        elif value in inside and value.operation.pure and value.op != "phi" and value.args:
            work.append((value, True))
            work += [(a, False) for a in value.args]
        else:
            return None
    return phis, operations
