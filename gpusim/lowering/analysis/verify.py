"""The verifier of the SSA form: what every pass relies on, for tests.

The product does not run it.
"""

from __future__ import annotations

from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.analysis.def_use import definitions
from gpusim.lowering.analysis.dominators import dominators


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
