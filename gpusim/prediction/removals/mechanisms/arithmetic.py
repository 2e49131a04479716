"""Arithmetic without divisions, 64-bit numbers, double precision or special functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gpusim.isa.ops import OPS
from gpusim.prediction.clock.issue import Issue
from gpusim.prediction.clock.steps import Action
from gpusim.prediction.removals.registry import mechanism
from gpusim.prediction.removals.rows import are_at, without
from gpusim.prediction.setting import Setting
from gpusim.prediction.streams import BlockStream
from gpusim.program.uses import address_registers

UNITS = ("fma", "imad", "alu")


def _as_multiplied(setting: Setting, pcs: Iterable[int]) -> Setting:
    """Return a launch with some instructions at the cost of a multiplication of 32 bits."""
    rows = setting.prepared.program.instructions
    units = {OPS[row.op].unit: issue for row, issue in zip(rows, setting.issues, strict=True)}
    model = next((units[unit] for unit in UNITS if unit in units), None)
    if model is None:
        return setting
    changed: dict[int, Issue] = {}
    for pc in pcs:
        if OPS[rows[pc].op].issued and rows[pc].memory is None:
            issue = _at_once(setting.issues[pc])
            changed[pc] = issue._replace(cost=model.cost, action=Action.RUN)
    return setting.with_issues(changed)


def _at_once(issue: Issue) -> Issue:
    """Return an instruction that holds its warp no longer than the pipe requests."""
    return issue._replace(instruction=replace(issue.instruction, stall_cycles=0))


def of_unit(setting: Setting, pcs: Iterable[int], *units: str) -> list[int]:
    """Return the instructions among some that these units serve."""
    rows = setting.prepared.program.instructions
    return [pc for pc in sorted(pcs) if OPS[rows[pc].op].unit in units]


@mechanism("double-precision")
def double_precision(setting: Setting, pcs: frozenset[int]) -> Setting:
    """Its arithmetic is in single precision, without conversions."""
    mine = of_unit(setting, pcs, "fp64")
    rows = setting.prepared.program.instructions
    turned = [pc for pc in pcs if "F2F" in rows[pc].op]
    edited = setting.with_blocks(_without_rows(turned))
    return _as_multiplied(edited, mine)


@mechanism("special-functions")
def special_functions(setting: Setting, pcs: frozenset[int]) -> Setting:
    """Results of the special function unit take as long as a multiplication."""
    return _as_multiplied(setting, of_unit(setting, pcs, "xu"))


@mechanism("dependent-instructions")
def dependent_instructions(setting: Setting, pcs: frozenset[int]) -> Setting:
    """Its results are there for the next instruction: independent ones stand between."""
    rows = setting.prepared.program.instructions
    changed = {}
    for pc in pcs:
        issue = setting.issues[pc]
        if OPS[rows[pc].op].kind == "compute" and issue.action is Action.RUN:
            cost = issue.cost
            soon = replace(cost, latency=cost.slot, elsewhere=0, deciding=0)
            changed[pc] = _at_once(issue)._replace(cost=soon)
    return setting.with_issues(changed)


@mechanism("integers-64")
def integers_64(setting: Setting, pcs: frozenset[int]) -> Setting:
    """Its integers have 32 bits: no upper halves, no carries."""
    rows = setting.prepared.program.instructions
    wide = [pc for pc in pcs if "WIDE" in rows[pc].op]
    upper = set(upper_halves(setting, pcs))
    edited = setting.with_blocks(_without_rows(upper))
    return _as_multiplied(edited, [pc for pc in wide if pc not in upper])


def upper_halves(setting: Setting, pcs: Iterable[int]) -> list[int]:
    """Return the instructions among some that work on upper halves of integers of a chain.

    Of a chain of wide multiplications they are the narrow ones beside each.
    """
    rows = setting.prepared.program.instructions
    addresses = address_registers(setting.prepared.program)
    mine = [pc for pc in sorted(pcs) if OPS[rows[pc].op].kind == "compute"]
    mine = [pc for pc in mine if addresses.isdisjoint(rows[pc].dst)]
    if not any("WIDE" in rows[pc].op for pc in mine):
        return []
    return [pc for pc in mine if "WIDE" not in rows[pc].op and OPS[rows[pc].op].unit in UNITS]


@mechanism("integer-division")
def integer_division(setting: Setting, pcs: frozenset[int]) -> Setting:
    """A quotient or remainder takes two instructions, as a shift and a mask would."""
    rows = setting.prepared.program.instructions
    mine = [pc for pc in pcs if OPS[rows[pc].op].kind == "compute"]
    highs = [pc for pc in sorted(mine) if "HI" in rows[pc].op.split(".")]
    kept = {pc for high in highs for pc in (high, high + 1)} if highs else set(sorted(mine)[:2])
    edited = setting.with_blocks(_without_rows(set(mine) - kept))
    return _as_multiplied(edited, kept.intersection(mine))


def _without_rows(pcs: Iterable[int]) -> Callable[[BlockStream], BlockStream]:
    """Return the edit of a block that leaves some instructions out."""
    mine = sorted(pcs)

    def edit(block: BlockStream) -> BlockStream:
        return BlockStream(tuple(without(warp, are_at(warp, mine)) for warp in block.warps))

    return edit
