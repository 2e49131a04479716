"""Code of operations among the lanes of a warp: shuffles, votes, matches and reductions.

`isa.lanes` defines them; the machine's handlers serve all others, and partial masks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpusim.isa.ops import OPS, Instruction
from gpusim.machine.compiled import layout
from gpusim.machine.warps.state import SCRATCH

_MODES = ("idx", "up", "down", "bfly")
_YES = "(local.get $x)"
_NO = "(i32.and (local.get $on) (i32.xor (local.get $x) (i32.const -1)))"
# Results of votes from the lanes $on, and $x of them with a true predicate.
_VERDICTS: Mapping[str, str] = {
    "all": f"(i32.eqz {_NO})",
    "any": f"(i32.ne {_YES} (i32.const 0))",
    "alike": f"(i32.or (i32.eqz {_NO}) (i32.eqz {_YES}))",
    "none": f"(i32.eqz {_YES})",
    "not-all": f"(i32.ne {_NO} (i32.const 0))",
}
_BALLOTS: Mapping[str, str] = {"ballot": _YES, "ballot-not": _NO}
_VALUE = f"(i32.load offset={layout.IN} (i32.shl (i32.ctz (local.get $y)) (i32.const 2)))"
_COMBINED: Mapping[str, str] = {
    **{name: f"(i32.{name} (local.get $x) {_VALUE})" for name in ("add", "and", "or", "xor")},
    "min": f"(select (local.get $x) {_VALUE} (i32.lt_{{sign}} (local.get $x) {_VALUE}))",
    "max": f"(select (local.get $x) {_VALUE} (i32.gt_{{sign}} (local.get $x) {_VALUE}))",
}


def operation(row: Instruction, types: Sequence[np.dtype[np.generic]]) -> str:
    """Return the code of an operation with operands of these types, empty if it has none."""
    kind, checks = OPS[row.op].kind, OPS[row.op].checks_mask
    first = layout.operand(int(checks))
    if any(dtype.itemsize > 4 for dtype in types):
        return ""
    if kind == "shuffle" and types[int(checks)].itemsize == 4:
        return _shuffle(row, first)
    if kind == "vote":
        return _vote(row, first if len(types) > int(checks) else 0)
    if kind == "match" and all(dtype.kind != "b" for dtype in types[int(checks) :]):
        return _match(row, first, len(types) - int(checks))
    return _reduction(row) if kind == "reduce_lanes" else ""


def _shuffle(row: Instruction, first: int) -> str:
    mode, *results = row.detail
    places = dict(zip(results, range(len(row.dst)), strict=False))
    out = layout.result(places["value"]) if "value" in places else SCRATCH
    call = (
        f"(call $shuffle (local.get $on) (i32.const {_MODES.index(mode)}) (i32.const {first})"
        f" (i32.const {out}))"
    )
    if "inside" in places:
        return f"(i32.store (i32.const {layout.result(places['inside'])}) {call})"
    return f"(drop {call})"


def _vote(row: Instruction, predicate: int) -> str:
    yes = "(local.get $on)"
    if predicate:
        yes = f"(i32.and {yes} (i32.load (i32.const {predicate})))"
    parts = [f"(local.set $x {yes})"]
    for number, result in enumerate(row.detail):
        out = layout.result(number)
        if result in _BALLOTS:
            parts.append(f"(call $splat (i32.const {out}) {_BALLOTS[result]})")
        else:
            verdict = f"(i32.sub (i32.const 0) {_VERDICTS[result]})"
            parts.append(f"(i32.store (i32.const {out}) {verdict})")
    return " ".join(parts)


def _match(row: Instruction, first: int, words: int) -> str:
    """Return the code of a match; a value of several words is several operands."""
    places = {result: layout.result(number) for number, result in enumerate(row.detail)}
    out = places.get("any", places.get("all", SCRATCH))
    call = (
        f"(local.set $x (call $match (local.get $on) (i32.const {first}) (i32.const {words})"
        f" (i32.const {out})))"
    )
    parts = [call]
    if "all" in places:
        none = f"(call $splat (i32.const {out}) (i32.const 0))"
        parts.append(f"(if (i32.eqz (local.get $x)) (then {none}))")
    if "agree" in places:
        parts.append(f"(i32.store (i32.const {places['agree']}) (local.get $x))")
    return " ".join(parts)


def _reduction(row: Instruction) -> str:
    name, signed = row.detail
    combined = _COMBINED[name].replace("{sign}", "s" if signed else "u")
    step = "(local.set $y (i32.and (local.get $y) (i32.sub (local.get $y) (i32.const 1))))"
    return f"""(if (local.get $on) (then (local.set $y (local.get $on)) (local.set $x {_VALUE})
(block $reduced (loop $each {step} (br_if $reduced (i32.eqz (local.get $y)))
(local.set $x {combined}) (br $each)))
(call $splat (i32.const {layout.result(0)}) (local.get $x))))"""
