"""Pairs of division and remainder: with the quotient available, the remainder is computed from it.

LLVM's DivRemPairs, where no instruction gives both: `a % b` is `a - a / b * b`, and all
bits are set where `b` is zero. By a power of two both are shifts and masks, which stay; so do
64-bit ones: their sequences are counted by length alone.
"""

from __future__ import annotations

from gpusim.compiler.dominators import dominators
from gpusim.compiler.ir import BOOL, Block, Function, Value, constant
from gpusim.compiler.operations import SPECIAL_REGISTERS
from gpusim.lowering.analysis.algebra import number, power_of_two, type_of
from gpusim.lowering.passes.gvn import value_key

WIDE = 8


def div_rem_pairs(function: Function) -> bool:
    """Rewrite remainders of quotients that dominate them; return whether there were any."""
    tree = dominators(function)
    quotients: dict[object, tuple[Block, Value]] = {}
    for block in reversed(tree.preorder()):
        quotients |= {_operands(v): (block, v) for v in block.body if v.op == "idiv"}
    changed = False
    for block in function.blocks:
        for value in [v for v in block.body if v.op == "rem" and _is_dear(v)]:
            home, quotient = quotients.get(_operands(value), (None, value))
            if home is not None and tree.dominates(home, block):
                _rewrite(block, value, quotient)
                changed = True
    return changed


def _is_dear(value: Value) -> bool:
    return type_of(value).itemsize < WIDE and power_of_two(number(value.args[1])) is None


def _operands(value: Value) -> object:
    return value.dtype, *map(value_key, value.args)


def _rewrite(block: Block, value: Value, quotient: Value) -> None:
    """Subtract the product from the dividend; a quotient of the same block goes first."""
    dividend, divisor = value.args
    product = Value("mul", value.dtype, [quotient, divisor], line=value.line)
    place = block.body.index(value)
    before = [product]
    if quotient in block.body[place:]:
        block.body.remove(quotient)
        before = [quotient, product]
    if _is_never_zero(divisor):
        value.op, value.args = "sub", [dividend, product]
    else:
        dtype = type_of(value)
        rest = Value("sub", dtype, [dividend, product], line=value.line)
        zero = Value("eq", BOOL, [divisor, constant(0, dtype)], line=value.line)
        before += [rest, zero]
        value.op, value.args = "select", [zero, constant(-1, dtype), rest]
    block.body[place:place] = before


def _is_never_zero(divisor: Value) -> bool:
    known = number(divisor)
    if known is not None:
        return known != 0
    return divisor.op == "sreg" and SPECIAL_REGISTERS[divisor.detail].is_of_launch
