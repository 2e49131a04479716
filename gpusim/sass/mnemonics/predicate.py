"""Predicates: looked up, and packed into a register."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.isa.lookup_tables import looked_up
from gpusim.isa.ops import OPS
from gpusim.sass.form import Form
from gpusim.sass.table import row
from gpusim.typing import Array

U32 = np.uint32
PREDICATES = tuple(f"P{number}" for number in range(7))


@row("PLOP3 UPLOP3", OPS["PLOP3"], "pp", "vvv##", "LUT")
def predicate_logic(form: Form, a: Array, b: Array, c: Array) -> Any:
    first, second = form.numbers
    other = looked_up(second, a, b, c) if 1 in form.kept else None
    return looked_up(first, a, b, c), other


@row("P2R UP2UR", "alu", "u", "?u#")
def to_register(form: Form, *operands: Array) -> Array:
    """Put the predicates that a mask names into a register, over its old bits."""
    *predicates, old = operands
    mask = form.numbers[0]
    bits = old & U32(~mask & 0xFFFFFFFF)
    for place, predicate in enumerate(predicates):
        if mask >> place & 1:
            bits = bits | (predicate.astype(U32) << U32(place))
    return bits


@row("R2P", "alu", "?", "u#", suffixes="B0 B1 B2 B3")
def from_register(form: Form, value: Array) -> Any:
    """Set the predicates that a mask names from a register."""
    byte = next((int(s[1]) for s in form.signs[0].suffixes if s in ("B1", "B2", "B3")), 0)
    return tuple(((value >> U32(8 * byte + place)) & U32(1)) != 0 for place in range(7))


@row("USETMAXREG.TRY_ALLOC.CTAPOOL", "cbu", "p", "#")
def are_granted(form: Form) -> Array:
    """Return true: a warp has the registers it requests, as others have released theirs."""
    return np.full((1, 1, 1), True)
