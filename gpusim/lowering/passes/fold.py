"""Constant folding and instruction combining: simpler operations with the same result.

Constants, algebraic identities, compares, casts, branches. Each operation has at
most one rule, of `fold_arithmetic` or `fold_compare`.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.compiler.dominators import reverse_postorder
from gpusim.compiler.ir import Block, Function, Value
from gpusim.compiler.operations import COMPARISONS
from gpusim.lowering.analysis.algebra import same, type_of
from gpusim.lowering.graph import remove_unreachable, remove_values, replace_uses, set_jump
from gpusim.lowering.passes import fold_arithmetic, fold_compare
from gpusim.lowering.passes.folder import Folder, Rule

RULES: Mapping[str, Rule] = {
    "add": fold_arithmetic.fold_add,
    "sub": fold_arithmetic.fold_sub,
    "mul": fold_arithmetic.fold_mul,
    "div": fold_arithmetic.fold_div,
    "idiv": fold_arithmetic.fold_idiv,
    "rem": fold_arithmetic.fold_rem,
    "shl": fold_arithmetic.fold_shl,
    "shr": fold_arithmetic.fold_shr,
    "and": fold_arithmetic.fold_and,
    "or": fold_arithmetic.fold_or,
    "xor": fold_arithmetic.fold_xor,
    "neg": fold_arithmetic.fold_neg,
    "not": fold_arithmetic.fold_not,
    "min": fold_compare.fold_extreme,
    "max": fold_compare.fold_extreme,
    **dict.fromkeys(COMPARISONS, fold_compare.fold_compare),
    "select": fold_compare.fold_select,
    "cast": fold_compare.fold_cast,
}


def fold(function: Function) -> bool:
    """Apply every rule once, in an order that sees operands first; return whether any did."""
    folder = Folder(function, RULES)
    changed = False
    seen: set[Block] = set()
    for block in reverse_postorder(function):
        if block is not function.entry and seen.isdisjoint(block.preds):
            continue  # the path to it was folded away just now
        seen.add(block)
        folder.body = []
        for phi in block.phis:
            phi.args = [folder.now(a) for a in phi.args]
            folder.line = phi.line
            found = _phi(folder, phi, block)
            if found is not None:
                folder.replace(phi, found)
        for value in block.body:
            if folder.replacements:
                value.args = [folder.now(a) for a in value.args]
            folder.line = value.line
            found = folder.simplify(value)
            if found is None:
                folder.body.append(value)
            else:
                folder.replace(value, found)
        block.body = folder.body
        if block.condition is not None:
            block.condition = folder.now(block.condition)
            changed |= _branch(block)
    replace_uses(function, folder.replacements)
    remove_values(function, {v for v in folder.replacements if v.op == "phi"})
    changed |= bool(folder.replacements)
    return remove_unreachable(function) or changed


def _branch(block: Block) -> bool:
    """Turn a branch with a known side into a jump, and one on `not` into one on its operand."""
    condition = block.condition
    assert condition is not None
    if_true, if_false = block.targets
    if if_true is if_false:
        set_jump(block, if_true)
    elif condition.op == "const":
        set_jump(block, if_true if condition.constant else if_false)
    elif condition.op == "not":
        block.condition, block.targets = condition.args[0], (if_false, if_true)
    else:
        return False
    return True


def _phi(folder: Folder, phi: Value, block: Block) -> Value | None:
    """A phi of one value is that value; one of like operations is the operation of a phi."""
    others = [a for a in phi.args if a is not phi]
    if not others:
        return None
    first = others[0]
    if all(same(first, a) for a in others[1:]):
        return first
    if not first.operation.passes_phi or len(others) != len(phi.args):
        return None
    for other in others:
        alike = other.op == first.op and other.dtype == first.dtype and folder.once(other)
        if not alike or type_of(other.args[0]) != type_of(first.args[0]):
            return None
        if any(a.op != "const" or not same(a, b) for a, b in _tails(other, first)):
            return None
    if any(a.args[0].op == "const" for a in others):
        return None
    inner = Value("phi", first.args[0].dtype, [a.args[0] for a in others], line=phi.line)
    block.phis = [*block.phis, inner]
    moved = Value(first.op, first.dtype, [inner, *first.args[1:]], first.detail, phi.line)
    folder.body.append(moved)
    return moved


def _tails(a: Value, b: Value) -> list[tuple[Value, Value]]:
    return list(zip(a.args[1:], b.args[1:], strict=True))
