"""Slots: the operands possible at a place of a row, by kind, sign and suffixes.

A row of the table names a code for each of its operands. Signs and suffixes that the code, or
the row itself, does not name are refused: no row runs with a part of its text ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpusim.sass.operands import Operand

# The two halves of a register of half-precision numbers, in other orders than their own.
TURNED = "H0_NH1"  # the upper one, negated, below the lower one
HALVES = frozenset(("H0_H0", "H1_H1", TURNED))


@dataclass(frozen=True)
class Slot:
    """The kinds of operand that may stand at a place, their signs (- ~ | !) and suffixes."""

    kinds: str
    signs: str = ""
    suffixes: frozenset[str] = frozenset()
    may_have_descriptor: bool = False
    is_false: bool = False  # the predicate that is never true, and no other
    most_suffixes: int = 1

    def fits(self, operand: Operand) -> bool:
        """Return whether an operand is of a kind that may stand here."""
        return operand.kind in self.kinds

    def takes(self, operand: Operand) -> bool:
        """Return whether an operand may stand here as it is written."""
        has_descriptor = operand.kind == "M" and bool(operand.name)
        return (
            self.fits(operand)
            and _signs(operand) <= set(self.signs)
            and set(operand.suffixes) <= self.suffixes
            and len(operand.suffixes) <= self.most_suffixes
            and not (operand.absolute and TURNED in operand.suffixes)  # in which order?
            and (self.may_have_descriptor or not has_descriptor)
            and (not self.is_false or (operand.is_true and operand.negated))
        )


def _signs(operand: Operand) -> set[str]:
    """Return the signs of an operand; the minus of a number belongs to the number."""
    minus = "!" if operand.kind == "P" else "-"
    said = {
        minus: operand.negated and operand.kind != "I",
        "~": operand.inverted,
        "|": operand.absolute,
    }
    return {sign for sign, is_there in said.items() if is_there}


_WORD, _NUMBER = Slot("RCI"), Slot("RCIF", "-|")
# Codes of operands of rows that compute (see `table.Mnemonic`), and of the others: o a register as
# it is, e one with a minus, j and y one of a matrix by rows and by columns, G descriptors of
# matrices, w a register or number, m a mask of lanes, q a predicate that is written, a an address,
# g one with a descriptor of global memory, c a word of a constant bank, l a label, b a convergence
# barrier, s a special register, k scoreboards, t a text of the row's own.
SLOTS: Mapping[str, Slot] = {
    **dict.fromkeys("uixrUIXRw", _WORD),
    **dict.fromkeys("fdD", _NUMBER),
    "h": replace(_NUMBER, suffixes=HALVES),
    "p": Slot("P", "!"),
    "v": Slot("PR", "!", frozenset(("SIGN",))),
    "m": replace(_WORD, signs="~"),
    "o": Slot("R"),
    "j": Slot("R", suffixes=frozenset(("ROW",))),
    "y": Slot("R", suffixes=frozenset(("COL",))),
    "e": Slot("R", "-"),
    "G": Slot("G", suffixes=frozenset(("negA", "negB", "tnspA", "tnspB")), most_suffixes=4),
    "q": Slot("P"),
    "#": Slot("I"),
    "0": Slot("P", "!", is_false=True),
    "a": Slot("M"),
    "g": Slot("M", may_have_descriptor=True),
    "c": Slot("C"),
    "l": Slot("L"),
    "b": Slot("B"),
    "s": Slot("SR"),
    "k": Slot("K"),
    **dict.fromkeys("?t", Slot("X")),
}
