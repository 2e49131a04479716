"""The rules of constant folding and instruction combining: one for each operation that has any."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.compiler.operations import COMPARISONS
from gpusim.lowering.passes import fold_arithmetic, fold_compare
from gpusim.lowering.passes.folder import Rule

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
