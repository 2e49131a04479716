"""Control flow and def-use bookkeeping that every pass shares.

Questions about a function (order, dominance, loops) are answered from its
present state and not kept up to date; edits to the graph keep phis in step with `preds`.
Constants need no place in a body: they dominate everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpusim.compiler.ir import Block, Function, Value


def reverse_postorder(function: Function) -> list[Block]:
    """Return the reachable blocks, each before its successors but for back edges."""
    order: list[Block] = []
    seen = {function.entry}
    stack = [(function.entry, iter(reversed(function.entry.targets)))]
    while stack:
        block, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(reversed(target.targets))))
                break
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    return order


def _immediate(
    order: list[Block], before: Mapping[Block, Iterable[Block]], roots: Iterable[Block]
) -> dict[Block, Block | None]:
    """Immediate dominators along `before` edges; roots hang below a virtual None.

    Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm".
    """
    number = {block: i + 1 for i, block in enumerate(order)}
    above = [0] + [-1] * len(order)
    starts = set(roots)
    changed = True
    while changed:
        changed = False
        for block in order:
            here = number[block]
            best = 0 if block in starts else -1
            for other in before[block]:
                there = number.get(other, -1)
                if there < 0 or above[there] < 0:
                    continue
                if best < 0:
                    best = there
                    continue
                while there != best:
                    if there > best:
                        there = above[there]
                    else:
                        best = above[best]
            if best != above[here]:
                above[here] = best
                changed = True
    return {b: order[above[number[b]] - 1] if above[number[b]] else None for b in order}


@dataclass
class Dominators:
    """The dominator tree: `parent` (None for the entry), `children`, blocks in `order`."""

    parent: dict[Block, Block | None]
    children: dict[Block, list[Block]]
    order: list[Block]
    _first: dict[Block, int]
    _last: dict[Block, int]

    def dominates(self, above: Block, below: Block) -> bool:
        """Whether every way to `below` leads through `above`; a block dominates itself."""
        return self._first[above] <= self._first[below] <= self._last[above]

    def preorder(self) -> list[Block]:
        """Return the blocks, each after the one that dominates it."""
        return sorted(self.order, key=self._first.__getitem__)


def dominators(function: Function) -> Dominators:
    """Return the dominator tree of the reachable blocks."""
    order = reverse_postorder(function)
    parent = _immediate(order, {b: b.preds for b in order}, [function.entry])
    children: dict[Block, list[Block]] = {b: [] for b in order}
    for block in order:
        above = parent[block]
        if above is not None:
            children[above].append(block)
    first: dict[Block, int] = {}
    last: dict[Block, int] = {}
    stack = [(function.entry, False)]
    while stack:
        block, done = stack.pop()
        if done:
            last[block] = len(first) - 1
            continue
        first[block] = len(first)
        stack.append((block, True))
        stack += [(child, False) for child in reversed(children[block])]
    return Dominators(parent, children, order, first, last)


def post_dominators(function: Function) -> dict[Block, Block | None]:
    """Return each reachable block's immediate post-dominator.

    None where that is the thread's end, or where no way leads out (an endless loop).
    """
    forward = reverse_postorder(function)
    exits = [b for b in forward if not b.targets]
    seen = set(exits)
    order: list[Block] = []
    stack = [(b, iter(b.preds)) for b in exits]
    while stack:
        block, preds = stack[-1]
        for pred in preds:
            if pred not in seen:
                seen.add(pred)
                stack.append((pred, iter(pred.preds)))
                break
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    found = _immediate(order, {b: b.targets for b in order}, exits)
    return {b: found.get(b) for b in forward}


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
    """Return the loops, inner ones before those around them."""
    tree = tree or dominators(function)
    loops: list[Loop] = []
    for header in reversed(tree.order):
        latches = [p for p in header.preds if p in tree.parent and tree.dominates(header, p)]
        if not latches:
            continue
        inside = {header}
        stack = list(latches)
        while stack:
            block = stack.pop()
            if block not in inside:
                inside.add(block)
                stack += [p for p in block.preds if p in tree.parent]
        blocks = [b for b in tree.order if b in inside]
        exits = [(b, t) for b in blocks for t in b.targets if t not in inside]
        loops.append(Loop(header, blocks, latches, exits))
    loops.sort(key=lambda loop: len(loop.blocks))
    for i, loop in enumerate(loops):
        loop.parent = next((o for o in loops[i + 1 :] if loop.header in o.blocks), None)
    for loop in reversed(loops):
        loop.depth = 1 if loop.parent is None else loop.parent.depth + 1
    return loops


@dataclass
class Liveness:
    """SSA values live on entry to and on exit from each block.

    A phi's operand is live out of the predecessor it comes from; the phi itself is
    defined in its block and not live in. Constants are never live.
    """

    into: dict[Block, set[Value]] = field(default_factory=dict)
    out: dict[Block, set[Value]] = field(default_factory=dict)


def users(function: Function) -> dict[Value, list[Value]]:
    """Return, for each value that an operation or phi uses, its users, once per operand.

    Branch conditions are not operations: see `Block.condition`.
    """
    found: dict[Value, list[Value]] = {}
    for value in function.values():
        for arg in value.args:
            found.setdefault(arg, []).append(value)
    return found


def definitions(function: Function) -> dict[Value, Block]:
    """Return the block in which each phi and operation stands."""
    return {v: b for b in function.blocks for v in (*b.phis, *b.body)}


def replace_uses(function: Function, replacements: Mapping[Value, Value]) -> None:
    """Use `replacements[v]` for every v, following chains; the old values stay in place."""
    if not replacements:
        return

    def final(value: Value) -> Value:
        while value in replacements:
            value = replacements[value]
        return value

    for block in function.blocks:
        for value in (*block.phis, *block.body):
            if any(a in replacements for a in value.args):
                value.args = [final(a) for a in value.args]
        if block.condition is not None and block.condition in replacements:
            block.condition = final(block.condition)


def remove_values(function: Function, gone: set[Value]) -> None:
    """Take values that nothing uses out of their blocks."""
    if not gone:
        return
    for block in function.blocks:
        block.phis = [v for v in block.phis if v not in gone]
        block.body = [v for v in block.body if v not in gone]


def remove_edge(source: Block, target: Block) -> None:
    """Forget that `source` leads to `target`: one entry of `preds` and of each phi.

    The caller changes `source.targets`.
    """
    position = target.preds.index(source)
    target.preds = target.preds[:position] + target.preds[position + 1 :]
    for phi in target.phis:
        phi.args = phi.args[:position] + phi.args[position + 1 :]


def add_edge(source: Block, target: Block, values: Iterable[Value] = ()) -> None:
    """Record that `source` leads to `target`, with a value for each of its phis.

    The caller changes `source.targets`.
    """
    target.preds = [*target.preds, source]
    for phi, value in zip(target.phis, values, strict=True):
        phi.args = [*phi.args, value]


def set_jump(block: Block, target: Block) -> None:
    """End `block` with a jump to `target`, one of its present targets."""
    for other in block.targets:
        if other is not target:
            remove_edge(block, other)
    if block.targets.count(target) == 2:
        remove_edge(block, target)
    block.condition = None
    block.targets = (target,)


def remove_unreachable(function: Function) -> bool:
    """Drop blocks that no way leads to; return whether there were any."""
    order = reverse_postorder(function)
    if len(order) == len(function.blocks):
        return False
    reached = set(order)
    for block in function.blocks:
        if block not in reached:
            for target in block.targets:
                if target in reached:
                    remove_edge(block, target)
    function.blocks = [b for b in function.blocks if b in reached]
    return True


def new_block(function: Function, line: int = 0, before: Block | None = None) -> Block:
    """Return a new empty block, placed before `before` in the layout or at its end."""
    block = Block(1 + max(b.name for b in function.blocks), line=line)
    place = len(function.blocks) if before is None else function.blocks.index(before)
    function.blocks.insert(place, block)
    return block


def split_edge(function: Function, source: Block, target: Block) -> Block:
    """Put an empty block on the edge from `source` to `target` and return it.

    Where both ways of a branch lead to `target`, the first is split.
    """
    middle = new_block(function, line=target.line, before=target)
    middle.targets = (target,)
    middle.preds = [source]
    position = source.targets.index(target)
    source.targets = (*source.targets[:position], middle, *source.targets[position + 1 :])
    place = target.preds.index(source)
    target.preds = [*target.preds[:place], middle, *target.preds[place + 1 :]]
    return middle


def make_preheader(function: Function, loop: Loop) -> Block:
    """Return the block that leads into the loop and nowhere else, made where there is none."""
    found = loop.preheader
    if found is not None:
        return found
    header, entering = loop.header, loop.entering
    if len(entering) == 1:
        return split_edge(function, entering[0], header)
    middle = new_block(function, line=header.line, before=header)
    middle.preds = list(entering)
    for block in entering:
        block.targets = tuple(middle if t is header else t for t in block.targets)
    keep = [i for i, p in enumerate(header.preds) if p in loop.latches]
    move = [i for i, p in enumerate(header.preds) if p not in loop.latches]
    header.preds = [middle] + [header.preds[i] for i in keep]
    middle.targets = (header,)
    for phi in header.phis:
        joined = Value("phi", phi.dtype, [phi.args[i] for i in move], line=phi.line)
        middle.phis.append(joined)
        phi.args = [joined] + [phi.args[i] for i in keep]
    return middle


def copy_value(value: Value, values: Mapping[Value, Value]) -> Value:
    """Return a new value like `value` whose operands are looked up in `values`."""
    args = [values.get(a, a) for a in value.args]
    return Value(value.op, value.dtype, args, value.detail, value.line)


def clone_region(
    function: Function, blocks: list[Block], values: dict[Value, Value]
) -> dict[Block, Block]:
    """Copy `blocks`, phis and all, and return each one's copy; `values` gains each value's.

    Edges within the region lead to copies. An edge out of it leads to the same block as
    before, which gains a predecessor with the copied value for each phi. The copies'
    `preds` are those within the region: the caller links what leads in with `add_edge`.
    """
    copies = {b: new_block(function, line=b.line) for b in blocks}
    for block in blocks:
        for value in (*block.phis, *block.body):
            values[value] = Value(value.op, value.dtype, [], value.detail, value.line)
    for block, copy in copies.items():
        inner = [i for i, p in enumerate(block.preds) if p in copies]
        copy.preds = [copies[block.preds[i]] for i in inner]
        for phi in block.phis:
            values[phi].args = [values.get(phi.args[i], phi.args[i]) for i in inner]
            copy.phis.append(values[phi])
        for value in block.body:
            values[value].args = [values.get(a, a) for a in value.args]
            copy.body.append(values[value])
        if block.condition is not None:
            copy.condition = values.get(block.condition, block.condition)
        copy.targets = tuple(copies.get(t, t) for t in block.targets)
    for block, copy in copies.items():
        for target in block.targets:
            if target not in copies:
                incoming = [phi.args[target.preds.index(block)] for phi in target.phis]
                add_edge(copy, target, [values.get(v, v) for v in incoming])
    return copies


def verify(function: Function) -> None:
    """Raise AssertionError where the graph contradicts itself. For tests."""
    tree = dominators(function)
    place = definitions(function)
    position = {v: i for b in function.blocks for i, v in enumerate(b.body)}
    assert len(tree.order) == len(function.blocks), "unreachable blocks"
    expected: dict[Block, list[Block]] = {b: [] for b in function.blocks}
    for block in function.blocks:
        assert (len(block.targets) == 2) == (block.condition is not None), block
        for target in block.targets:
            expected[target].append(block)

    def available(value: Value, block: Block, index: int) -> bool:
        if value.op == "const":
            return True
        home = place.get(value)
        if home is None:
            return False
        if home is block:
            return value.op == "phi" or position[value] < index
        return tree.dominates(home, block)

    for block in function.blocks:
        assert sorted(map(id, block.preds)) == sorted(map(id, expected[block])), block
        for phi in block.phis:
            assert phi.op == "phi", (block, phi)
            assert len(phi.args) == len(block.preds), (block, phi)
            for arg, pred in zip(phi.args, block.preds, strict=True):
                assert available(arg, pred, len(pred.body)), (block, phi, arg)
        for i, value in enumerate(block.body):
            for arg in value.args:
                assert available(arg, block, i), (block, value, arg)
        if block.condition is not None:
            assert available(block.condition, block, len(block.body)), (block, "condition")
