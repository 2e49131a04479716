"""The table of mnemonics: a row for each, or for each form with a meaning of its own.

A row has the syntax: operands, signs and known modifiers; anything else is refused and never runs
wrongly. Unit, traits and evaluator are those of the row of `isa.OPS` that it shares; a mnemonic
without one names its unit and has an evaluator here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gpusim.isa.ops import Op
from gpusim.sass.form import Evaluate, Form
from gpusim.sass.slots import SLOTS, Slot

_CODE = re.compile(r"([\w#])(\??)")


@dataclass(frozen=True)
class Mnemonic:
    """A row: a mnemonic, with the modifiers that choose the row.

    `results` and `sources` are codes of operands in the disassembler's order: u, i, f a register
    as unsigned, signed or floating-point number; U, I, d the same as pairs; D the upper word of a
    d; x and X signed, but unsigned where the modifier U32 (or U64) says so; h two half-precision
    numbers; r and R bits with signs handled by the row itself; p a predicate; v the same, or the
    sign of a register; # an immediate. Operands after a bar are optional.
    `modifiers` are the known ones; `kind` is the machine's handler. A row that does
    not only compute has a `shape` instead: codes of `slots.SLOTS`, each with a question mark if
    it is optional.

    `signs` are the possible signs of each source, between blanks, and a dot for none: the row
    handles them itself if its code is r, R or h. `suffixes` are possible for any source. All
    others are refused, and so are the modifiers that the row `refuses`.
    """

    name: str
    shares: Op
    results: str = ""
    sources: str = ""
    evaluate: Evaluate | None = None
    modifiers: frozenset[str] = frozenset()
    kind: str = "compute"
    op: str = ""
    affine: str = ""
    detail: Any = None
    shape: str = ""
    signs: str = ""
    suffixes: str = ""
    refuses: Callable[[Form], bool] | None = None

    @property
    def unit(self) -> str:
        """The unit that serves it."""
        return self.shares.unit

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The slot of each source."""
        codes, said = self.sources.replace("|", ""), self.signs.replace(".", "").split(" ")
        found = [SLOTS[code] for code in codes]
        if self.signs:
            for place, signs in enumerate(said):
                found[place] = replace(found[place], signs=signs)
        own = frozenset(self.suffixes.split())
        return tuple(replace(slot, suffixes=slot.suffixes | own) for slot in found)

    @cached_property
    def shaped(self) -> tuple[tuple[Slot, bool], ...]:
        """The slot of each operand, and whether it is optional."""
        return tuple((SLOTS[code], bool(may)) for code, may in _CODE.findall(self.shape))

    @cached_property
    def chosen(self) -> tuple[str, ...]:
        """The modifiers that choose this row, in their order."""
        return tuple(self.name.split(".")[1:])

    def fits(self, modifiers: tuple[str, ...]) -> bool:
        """Return whether the row is one of a mnemonic with these modifiers."""
        rest = iter(modifiers)
        in_order = all(name in rest for name in self.chosen)
        others = list(modifiers)
        for name in self.chosen if in_order else ():
            others.remove(name)
        is_once = len(set(others)) == len(others)
        return in_order and is_once and set(others) <= self.modifiers


MNEMONICS: dict[str, Mnemonic] = {}


def row(
    names: str,
    shares: str | Op,
    results: str = "",
    sources: str = "",
    modifiers: str = "",
    **facts: Any,
) -> Callable[[Evaluate], Evaluate]:
    """Register a function as the evaluator of some mnemonics: see `add`."""

    def register(function: Evaluate) -> Evaluate:
        add(names, shares, results, sources, modifiers, evaluate=function, **facts)
        return function

    return register


def add(
    names: str,
    shares: str | Op,
    results: str = "",
    sources: str = "",
    modifiers: str = "",
    **facts: Any,
) -> None:
    """Add a row for each of some names.

    `shares` is the row of `isa.OPS` with the same meaning, or else a unit: names that begin with a
    U are of the uniform datapath. A shared evaluator holds where a row states no adaptation.
    """
    op = shares if isinstance(shares, Op) else Op(shares)
    facts = {"affine": op.affine, **facts}
    if results:
        facts.setdefault("evaluate", op.evaluate)
    for name in names.split():
        assert name not in MNEMONICS
        known = frozenset(modifiers.split())
        own = replace(op, unit="uniform") if name.startswith("U") else op
        MNEMONICS[name] = Mnemonic(name, own, results, sources, modifiers=known, **facts)


def find(mnemonic: str, modifiers: tuple[str, ...]) -> Mnemonic | None:
    """Return the row of a mnemonic, the one that names the most of its modifiers."""
    fitting = [found for found in _by_mnemonic().get(mnemonic, ()) if found.fits(modifiers)]
    return max(fitting, key=lambda found: len(found.chosen), default=None)


_kept: dict[str, list[Mnemonic]] = {}


def _by_mnemonic() -> Mapping[str, list[Mnemonic]]:
    if not _kept:
        for name, found in MNEMONICS.items():
            _kept.setdefault(name.partition(".")[0], []).append(found)
    return _kept
