"""Full loop unrolling: a loop of known iteration count is written out if the result is small.

Barriers and shuffles are copied like anything else.
"""

from __future__ import annotations

import itertools
from typing import Any

from gpusim.compiler.dominators import Dominators, dominators
from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.analysis.evaluate import evaluate
from gpusim.lowering.analysis.loops import Loop, natural_loops
from gpusim.lowering.graph import add_edge, clone_region, remove_edge, remove_unreachable, set_jump
from gpusim.lowering.passes.simplify import simplify
from gpusim.lowering.passes.ssa_repair import repair

# Found by compiling loops with nvcc 13.0 -O3 for sm_90: bodies of 4 to 10 operations are
# unrolled 128 times, one of 23 operations 16 but not 32 times, one of 83 not 8 times.
MOST_ITERATIONS = 256
SMALL_BODY = 10
MOST_OPERATIONS_SMALL = 1100
MOST_OPERATIONS = 500
# LLVM's -unroll-threshold, and by how much at most it is raised where iterations are folded away
# (-unroll-max-percent-threshold-boost).
THRESHOLD = 300
LARGEST_BOOST = 4


def full_unrolling(function: Function) -> bool:
    """Unroll loops of known length from the inside out; return whether there were any."""
    changed = False
    while _unroll_inner(function):
        simplify(function)
        changed = True
    return changed


def _unroll_inner(function: Function) -> bool:
    """Unroll loops that hold no other loop; one around them may be next, once it is simplified."""
    tree = dominators(function)
    loops = natural_loops(function, tree)
    around = {loop.parent for loop in loops}
    changed = False
    for loop in loops:
        if changed and loop in around:
            break
        found = constant_iteration_count(loop, tree, MOST_ITERATIONS)
        if found is not None and _small(loop, found[1]):
            _unroll(function, loop, *found)
            changed = True
            if loop in around:
                break
    return changed


def body_size(loop: Loop) -> int:
    """Return the number of operations in a loop, a branch counted as one."""
    operations = sum(1 for b in loop.blocks for v in b.body if not v.operation.is_free)
    return operations + sum(1 for b in loop.blocks if b.condition is not None)


def _small(loop: Loop, count: int) -> bool:
    size = body_size(loop)
    if size * count <= (MOST_OPERATIONS_SMALL if size <= SMALL_BODY else MOST_OPERATIONS):
        return True
    left = size - _constant_when_unrolled(loop)
    return left * count <= THRESHOLD * min(size / left, LARGEST_BOOST)


def _constant_when_unrolled(loop: Loop) -> int:
    """Return how many of a loop's operations are constants in each iteration, branches too."""
    phis = set(loop.header.phis)
    while True:
        known = _computed_from(loop, phis)
        lasting = {p for p in phis if all(a.constant is not None or a in known for a in p.args)}
        if lasting == phis:
            break
        phis = lasting
    operations = sum(1 for v in known if v.op != "phi" and not v.operation.is_free)
    operations += sum(1 for b in loop.blocks if b.condition in known)
    return operations + len(_displacements(loop, known))


def _displacements(loop: Loop, known: set[Value]) -> list[Value]:
    """Return the sums of a constant of each iteration that accesses take as displacements."""
    body = [v for b in loop.blocks for v in (*b.phis, *b.body) if not v.operation.describes]
    placed = {v.args[0] for v in body if v.operation.access}
    needed = {a for v in body for a in v.args[1 if v.operation.access else 0 :]}
    return [
        v for v in body if v.op == "add" and v in placed - needed and not known.isdisjoint(v.args)
    ]


def _computed_from(loop: Loop, phis: set[Value]) -> set[Value]:
    """Return the values a loop computes from these phis and constants alone, with the phis."""
    known = set(phis)
    for block in loop.blocks:
        for value in block.body:
            fixed = all(a.constant is not None or a in known for a in value.args)
            if value.operation.pure and value.args and fixed:
                known.add(value)
    return known


def _unroll(function: Function, loop: Loop, deciding: Block, count: int) -> None:
    """Replace the loop by `count` copies of its body; `deciding` leaves in the last alone."""
    header = loop.header
    copies: dict[Value, dict[Block, Value]] = {
        v: {b: v} for b in loop.blocks for v in (*b.phis, *b.body)
    }
    home = {v: b for b in loop.blocks for v in (*b.phis, *b.body)}
    iterations: list[dict[Block, Block]] = [{b: b for b in loop.blocks}]
    for _ in range(count - 1):
        values: dict[Value, Value] = {}
        blocks = clone_region(function, loop.blocks, values)
        for value, copy in values.items():
            copies[value][blocks[home[value]]] = copy
        iterations.append(blocks)
    for before, after in itertools.pairwise(iterations):
        for latch in loop.latches:
            _relink(before[latch], before[header], after[header])
    outside = {t for b, t in loop.exits if b is deciding}
    for i, blocks in enumerate(iterations):
        block = blocks[deciding]
        leaving = next(t for t in block.targets if t in outside)
        staying = next(t for t in block.targets if t is not leaving)
        set_jump(block, leaving if i == count - 1 else staying)
    remove_unreachable(function)
    repair(function, _used_outside(function, copies, set(loop.blocks)))


def _relink(latch: Block, header: Block, following: Block) -> None:
    """Lead `latch` on to the next copy of the header instead of back."""
    place = header.preds.index(latch)
    values = [phi.args[place] for phi in header.phis]
    remove_edge(latch, header)
    latch.targets = tuple(following if t is header else t for t in latch.targets)
    add_edge(latch, following, values)


def _used_outside(
    function: Function, copies: dict[Value, dict[Block, Value]], inside: set[Block]
) -> dict[Value, dict[Block, Value]]:
    """Return the part of `copies` used by blocks other than the original ones."""
    used: set[Value] = set()
    for block in function.blocks:
        if block not in inside:
            for value in (*block.phis, *block.body):
                used.update(value.args)
            if block.condition is not None:
                used.add(block.condition)
    return {v: where for v, where in copies.items() if v in used}


# The number of iterations is found by running the induction variable: `i += 1`, `offset >>= 1`.


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
