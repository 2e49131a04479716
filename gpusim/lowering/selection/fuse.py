"""Instruction fusion: a product and a sum, three terms, a shift and a sum at once."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.compiler.ir import Block, Value
from gpusim.compiler.operations import COMPARISONS
from gpusim.lowering.choices import CHOICES, type_class
from gpusim.lowering.selection.selection import Selection
from gpusim.lowering.selection.wide import is_product, narrow_sources

# Operations that are fused into a sum, or into a condition, by class of type; the first group
# takes precedence.
SUMS = frozenset(("add", "sub"))
CONDITIONS = frozenset(("and", "or"))
PRODUCTS = frozenset(("mul",))
# Operations fused into all their uses, if these are of the first group, by class of type.
SHARED: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "i": (SUMS, frozenset(("shl",))),
    "p": (CONDITIONS, frozenset(COMPARISONS)),
}
PARTS: Mapping[str, tuple[frozenset[str], ...]] = {
    "i": (frozenset(("mul", "shl")), SUMS),
    "l": (frozenset(("mul", "shl")),),
    "f": (PRODUCTS,),
    "d": (PRODUCTS,),
    "p": (frozenset(COMPARISONS),),
}


def absorb(selection: Selection, block: Block) -> None:
    """Find the operations of a block that become part of the one that uses them."""
    here = set(block.body)
    for value in block.body:
        if value.dtype is None or value.op not in SUMS | CONDITIONS:
            continue
        kind = type_class(value.dtype)
        if value.op in (CONDITIONS if kind == "p" else SUMS):
            for ops in PARTS.get(kind, ()):
                if _take(selection, here, value, ops):
                    break


def absorb_shared(selection: Selection) -> None:
    """Find operations that are fused into all of several uses: each computes them again.

    A comparison within each condition costs nothing, nor does a shift within each sum.
    """
    for block in selection.function.blocks:
        for value in block.body:
            if value.dtype is None or value in selection.inside or value.op == "const":
                continue
            users = dict.fromkeys(selection.users.get(value, ()))
            kept = value in selection.branches or value in selection.of_source
            if len(users) > 1 and not kept and all(_could(selection, u, value) for u in users):
                selection.absorbed.update(dict.fromkeys(users, value))
                selection.inside.add(value)


def absorb_signs(selection: Selection) -> None:
    """Find negations used by fused multiply-adds only: operands there have either sign."""
    for value in selection.function.values():
        users = selection.users.get(value, ())
        if value.op == "neg" and users and all(u.detail == "fma" for u in users):
            selection.inside.add(value)


def _could(selection: Selection, user: Value, value: Value) -> bool:
    """Whether `user` has nothing absorbed yet and can absorb `value`."""
    assert value.dtype is not None
    if user.dtype is None or user in selection.absorbed or user in selection.inside:
        return False
    shared = SHARED.get(type_class(user.dtype))
    if shared is None or user.op not in shared[0] or value.op not in shared[1]:
        return False
    return _fits(selection, user, value)


def _take(selection: Selection, here: set[Value], user: Value, ops: frozenset[str]) -> bool:
    """Let `user` absorb an operand that is one of `ops`; return whether there is one."""
    for arg in user.args:
        if arg.op not in ops or arg not in here or arg in selection.absorbed:
            continue
        alone = len(selection.users.get(arg, ())) == 1 and arg not in selection.branches
        if alone and _fits(selection, user, arg):
            selection.absorbed[user] = arg
            selection.inside.add(arg)
            return True
    return False


def _fits(selection: Selection, user: Value, arg: Value) -> bool:
    """Whether the machine has an instruction for both."""
    assert user.dtype is not None
    if type_class(user.dtype) == "l":
        return user.op == "add" and is_product(selection, arg)
    if arg.op == "shl" and (arg.args[1].constant is None or user.op == "sub"):
        return False
    if arg.op == "mul" and user.op == "sub" and user.dtype.kind in "iu":
        return False
    return arg not in selection.uniform or user in selection.uniform


def joined(selection: Selection, value: Value, part: Value) -> None:
    """Write one row for an operation and the one that it has absorbed."""
    assert value.dtype is not None
    kind = type_class(value.dtype)
    first = value.args[0] is part
    other = selection.register(value.args[1] if first else value.args[0])
    if kind == "l":
        selection.write(value, "IMAD.WIDE", *narrow_sources(selection, part), other)
        return
    a, b = selection.sources(part)[:2]
    if kind == "p":
        assert part.args[0].dtype is not None
        choice = CHOICES[part.op, type_class(part.args[0].dtype)]
        selection.emit.blank(choice.before)
        selection.write(value, choice.op, a, b, other, detail=(part.op, value.op))
    elif kind in "fd":
        signs = "++" if value.op == "add" else "+-" if first else "-+"
        op = "FFMA" if kind == "f" else "DFMA"
        selection.write(value, op, a, b, other, detail=signs)
    elif part.op == "mul":
        selection.write(value, "IMAD", a, b, other)
    elif part.op == "shl":
        selection.write(value, "LEA", a, other, detail=int(part.args[1].constant))
    else:
        inner = "++" if part.op == "add" else "+-"
        if value.op == "sub" and not first:
            inner = "-" + ("-" if part.op == "add" else "+")
        outer = "-" if value.op == "sub" and first else "+"
        selection.write(value, "IADD3", a, b, other, detail=inner + outer)
