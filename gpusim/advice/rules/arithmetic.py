"""Costly arithmetic: quotients, 64-bit integers, double precision, special functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from gpusim.advice.evidence import SCHEDULERS, Evidence
from gpusim.advice.records import Advice
from gpusim.advice.registry import rule
from gpusim.isa.ops import OPS
from gpusim.program.uses import Slices, address_registers

_DIVISION = re.compile(r"\bI2F\b.* MUFU\b.* F2I\b")
LEAST_KEPT = 0.25  # of these cycles
LEAST_SHARE = 0.1  # of the issue cycles of a block's warps
THROTTLE = frozenset({"math-pipe-throttle", "dependent-instructions", "short-scoreboard"})


# Results of an SM in a cycle, by compute capability: CUDA's programming guide, 5.4.1.
DOUBLES = {"6.0": 32, "7.0": 32, "8.0": 32, "9.0": 64, "10.0": 64}
FEW_DOUBLES, SPECIALS, LANES = 2, 16, 32


def _shares(evidence: Evidence) -> Iterator[tuple[int, list[int]]]:
    """Yield lines with the instructions that only compute."""
    for line, pcs in evidence.pcs_by_line():
        mine = [pc for pc in pcs if OPS[evidence.instructions[pc].op].kind == "compute"]
        mine = [pc for pc in mine if evidence.runs[pc] > 0]
        if mine:
            yield line, mine


@rule("integer-division", removal="integer-division")
def integer_division(evidence: Evidence) -> Iterable[Advice]:
    """Quotients and remainders of integers, a sequence of a dozen instructions and more."""
    for line, pcs in _shares(evidence):
        if not divides(evidence, pcs):
            continue
        cost = evidence.issue_cycles(pcs)
        if cost < LEAST_SHARE * evidence.issued_cycles:
            continue
        yield Advice(
            "integer-division",
            line,
            f"line {line}: a quotient or remainder of integers by a variable, "
            f"{100 * cost / evidence.issued_cycles:.0f} % of the instructions; a power of two "
            "needs only a shift and a mask.",
            cost,
            explains=THROTTLE | {"special-functions", "integers-64"},
            lines=frozenset({line}),
            cause="by a variable",
        )


def divides(evidence: Evidence, pcs: Sequence[int]) -> bool:
    """Return whether instructions of a line divide integers: by way of a float's reciprocal."""
    rows = [evidence.instructions[pc] for pc in pcs]
    converted = {register for row in rows if "I2F" in row.op for register in row.dst}
    if not converted:  # the lowering's sequences have no registers
        return _DIVISION.search(" ".join(row.op for row in rows)) is not None
    slices = Slices(rows)
    inverse = {
        register
        for row in rows
        if "MUFU" in row.op and not slices.of(row.src).isdisjoint(converted)
        for register in row.dst
    }
    return any("F2I" in row.op and not slices.of(row.src).isdisjoint(inverse) for row in rows)


@rule("double-precision", removal="double-precision")
def double_precision(evidence: Evidence) -> Iterable[Advice]:
    """Double precision, and conversions to and from it, that keep a pipe for long."""
    doubles = LANES * SCHEDULERS / DOUBLES.get(evidence.trace.cc, FEW_DOUBLES)
    special = LANES * SCHEDULERS / SPECIALS

    def interval(pc: int) -> float:
        op = evidence.instructions[pc].op
        if OPS[op].unit == "fp64":
            return doubles
        return special if OPS[op].unit == "xu" and "F64" in op else 0.0

    yield from _kept(evidence, interval, "double-precision", "the pipe of double precision")


@rule("special-functions", removal="special-functions")
def special_functions(evidence: Evidence) -> Iterable[Advice]:
    """Square roots, sines, exponentials, conversions: a quarter of a warp or less in a cycle."""

    def interval(pc: int) -> float:
        op = evidence.instructions[pc].op
        return LANES * SCHEDULERS / SPECIALS if OPS[op].unit == "xu" and "F64" not in op else 0.0

    yield from _kept(evidence, interval, "special-functions", "the special function unit")


def _kept(
    evidence: Evidence, interval: Callable[[int], float], kind: str, what: str
) -> Iterator[Advice]:
    """Yield lines with instructions that keep a unit busy for much of the issue cycles.

    `interval` gives an instruction's cycles on the unit, for a whole SM; 0 for one of another unit.
    """
    for line, pcs in _shares(evidence):
        keeps = sum(evidence.issue_cycles([pc]) * interval(pc) for pc in pcs)
        if not keeps or keeps < LEAST_KEPT * evidence.issued_cycles:
            continue
        yield Advice(
            kind,
            line,
            f"line {line}: {what} is busy for {keeps * SCHEDULERS:,.0f} scheduler cycles per "
            f"block; a block issues {evidence.issued_cycles * SCHEDULERS:,.0f} instructions.",
            keeps,
            explains=THROTTLE,
            cause=what,
        )


@rule("integers-64", removal="integers-64")
def integers_64(evidence: Evidence) -> Iterable[Advice]:
    """Arithmetic of 64-bit integers, several instructions each."""
    for line, pcs in _shares(evidence):
        wide = _chained(evidence, pcs)
        cost = evidence.issue_cycles(pcs)
        if len(wide) < 2 or cost < LEAST_SHARE * evidence.issued_cycles or divides(evidence, pcs):
            continue
        yield Advice(
            "integers-64",
            line,
            f"line {line}: 64-bit integers take {len(pcs)} instructions, "
            f"{100 * cost / evidence.issued_cycles:.0f} % of all; 32 bits take a third of them.",
            cost,
            explains=THROTTLE,
            cause="64 bits",
        )


def _chained(evidence: Evidence, pcs: Sequence[int]) -> list[int]:
    """Return wide multiplications with results that are multiplied again: no addresses."""
    rows = evidence.instructions
    assert evidence.trace.prepared is not None
    addresses = address_registers(evidence.trace.prepared.program)
    wide = [pc for pc in pcs if "IMAD.WIDE" in rows[pc].op]
    wide = [pc for pc in wide if addresses.isdisjoint(rows[pc].dst)]
    made = {register for pc in wide for register in rows[pc].dst}
    return [pc for pc in wide if not made.isdisjoint(rows[pc].src)]
