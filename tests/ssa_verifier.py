"""The verifier of the SSA form: invariants of the form between passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gpusim.compiler.dominators import Dominators, dominators
from gpusim.compiler.ir import BOOL, INT64, UINT32, Array, Block, Function, Value
from gpusim.compiler.operations import OPERATIONS
from gpusim.lowering.analysis.def_use import definitions
from gpusim.lowering.analysis.loops import reachable

NOWHERE = frozenset(("const",))  # operations that stand in no block and are there everywhere


def verify(function: Function, nowhere: frozenset[str] = NOWHERE) -> None:
    """Raise AssertionError, naming every mistake, where the SSA form contradicts itself."""
    found = list(mistakes(function, nowhere))
    assert not found, "\n".join(found)


def mistakes(function: Function, nowhere: frozenset[str] = NOWHERE) -> Iterator[str]:
    """Yield violations in the graph, in the uses of values, and in their types."""
    found = list(_of_graph(function))
    yield from found
    if not found:  # dominators need a valid graph
        yield from _of_uses(function, nowhere)
    for value in function.values():
        yield from _of_value(value)


def _of_graph(function: Function) -> Iterator[str]:
    """Check that predecessors match targets, and that conditions have two targets."""
    expected: dict[Block, list[Block]] = {block: [] for block in function.blocks}
    for block in function.blocks:
        if len(block.targets) > 2 or (len(block.targets) == 2) != (block.condition is not None):
            yield f"{block} has {len(block.targets)} targets and condition {block.condition}"
        if block.condition is not None and block.condition.dtype != BOOL:
            yield f"{block} branches on {block.condition}: not a predicate"
        for target in block.targets:
            if target in expected:
                expected[target].append(block)
            else:
                yield f"{block} leads to {target}, which is not in the function"
    for block, preds in expected.items():
        if sorted(map(id, block.preds)) != sorted(map(id, preds)):
            yield f"{block} has predecessors {block.preds}; {preds} lead to it"
    reached = reachable([function.entry])
    yield from (f"no path leads to {b}" for b in function.blocks if b not in reached)


def _of_uses(function: Function, nowhere: frozenset[str]) -> Iterator[str]:
    """A value's definition dominates its uses; a phi has a value for each predecessor."""
    here = _Positions(function, nowhere)
    for block in function.blocks:
        for phi in block.phis:
            if phi.op != "phi" or len(phi.args) != len(block.preds):
                yield f"{phi} in {block} has {len(phi.args)} values for {len(block.preds)} paths"
                continue
            for arg, pred in zip(phi.args, block.preds, strict=True):
                if not here.is_defined(arg, pred, len(pred.body)):
                    yield f"{phi} in {block} takes {arg} from {pred}, where it is not defined"
        for index, value in enumerate(block.body):
            if value.op == "phi":
                yield f"{value} is among the operations of {block}"
            for arg in value.args:
                if not here.is_defined(arg, block, index):
                    yield f"{value} in {block} uses {arg}, which is not defined there"
        condition = block.condition
        if condition is not None and not here.is_defined(condition, block, len(block.body)):
            yield f"{block} branches on {condition}, which is not defined there"


class _Positions:
    """Where values are defined; operations in `nowhere` are, everywhere."""

    def __init__(self, function: Function, nowhere: frozenset[str]) -> None:
        self.nowhere = nowhere
        self.tree: Dominators = dominators(function)
        self.home = definitions(function)
        self.index = {v: i for b in function.blocks for i, v in enumerate(b.body)}

    def is_defined(self, value: Value, block: Block, index: int) -> bool:
        """Whether a value is there before the operation at `index` of a block."""
        home = self.home.get(value)
        if home is None:
            return value.op in self.nowhere
        if home is block:
            return value.op == "phi" or self.index[value] < index
        return self.tree.dominates(home, block)


def _of_value(value: Value) -> Iterator[str]:
    """An operation has as many operands as its row says, and their types agree."""
    operation = OPERATIONS.get(value.op)
    if operation is None:
        yield f"{value} is not an operation"
        return
    if operation.arity not in (-1, len(value.args)):
        yield f"{value} has {len(value.args)} operands"
        return
    rule = _compares if operation.is_comparison else TYPES.get(value.op)
    if rule is not None and not rule(value):
        given = ", ".join(str(arg.dtype) for arg in value.args)
        yield f"{value} works on {given}"


def _alike(value: Value) -> bool:
    return all(arg.dtype == value.dtype for arg in value.args)


def _compares(value: Value) -> bool:
    return value.dtype == BOOL and value.args[0].dtype == value.args[1].dtype


def _selects(value: Value) -> bool:
    condition, *arms = value.args
    return condition.dtype == BOOL and all(arm.dtype == value.dtype for arm in arms)


def _is_addressed(value: Value) -> bool:
    """Whether the first operand can be an index or an address."""
    return value.args[0].dtype is not None and value.args[0].dtype.kind in "iu"


def _array(value: Value) -> Array:
    found = value.detail[0] if isinstance(value.detail, tuple) else value.detail
    assert isinstance(found, Array)
    return found


def _loads(value: Value) -> bool:
    return _is_addressed(value) and value.dtype == _array(value).dtype


def _stores(value: Value) -> bool:
    dtype = _array(value).dtype
    return _is_addressed(value) and all(arg.dtype == dtype for arg in value.args[1:])


def _adds_address(value: Value) -> bool:
    index, base = value.args
    is_index = index.dtype is not None and index.dtype.kind in "iu"
    return is_index and value.dtype == base.dtype and value.dtype in (INT64, UINT32)


_ALIKE = (
    *("phi", "add", "sub", "mul", "div", "idiv", "rem", "and", "or", "xor", "min", "max"),
    *("shl", "shr", "funnel", "neg", "not", "abs", "brev", "held", "element"),
)
# Rules on the types of operands and results; operations without one may mix types.
TYPES: Mapping[str, Callable[[Value], bool]] = {
    **dict.fromkeys(_ALIKE, _alike),
    "const": lambda value: value.detail.dtype == value.dtype,
    "select": _selects,
    "load": _loads,
    "load_vector": _loads,
    "store": _stores,
    "store_vector": _stores,
    "address": _adds_address,
    "shuffle": lambda value: value.args[1].dtype == value.dtype,
    "source_branch": lambda value: value.args[0].dtype == BOOL,
    "source_check": lambda value: value.args[0].dtype == BOOL,
}
