"""The tables of statements and expressions: the function that builds each kind of Python's syntax.

Syntax outside the dialect is refused before, in `source`.
"""

from __future__ import annotations

import ast

from gpusim.compiler import arithmetic, arrays, calls, conditions, loops, names, statements
from gpusim.compiler.builder import Meanings

MEANINGS = Meanings(
    statements={
        ast.AnnAssign: statements.assign_annotated,
        ast.Assign: statements.assign,
        ast.AugAssign: statements.augment,
        ast.Break: loops.leave_loop,
        ast.Continue: loops.go_on,
        ast.Expr: statements.evaluate,
        ast.For: loops.for_loop,
        ast.If: statements.choose,
        ast.Pass: statements.leave_out,
        ast.Return: statements.leave,
        ast.While: loops.while_loop,
    },
    expressions={
        ast.Attribute: names.attribute,
        ast.BinOp: arithmetic.binary_operation,
        ast.BoolOp: conditions.boolean_operation,
        ast.Call: calls.call,
        ast.Compare: conditions.comparisons,
        ast.Constant: names.constant,
        ast.IfExp: conditions.conditional,
        ast.Name: names.name,
        ast.Subscript: arrays.subscript,
        ast.Tuple: names.tuple_of,
        ast.UnaryOp: arithmetic.unary_operation,
    },
)
