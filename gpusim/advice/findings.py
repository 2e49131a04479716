"""Findings of a launch: the rules' advice, each cause once, in one order with and without times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpusim.advice.evidence import Evidence
from gpusim.advice.records import LIMIT, NONE, Advice
from gpusim.advice.registry import is_timed, mechanism_of, rules
from gpusim.errors import InputError
from gpusim.launch.removal import Removal
from gpusim.tracing.lanes import ranges
from gpusim.tracing.records import Trace

if TYPE_CHECKING:
    from gpusim.prediction.records import Prediction

FEW_BLOCKS = "few-blocks"
PLAYED = 5  # findings with simulated gains
LEAST_GAIN = 0.01  # of the time: below, only defects proved by addresses and masks are reported
CERTAIN = frozenset(
    {"bank-conflict", "uncoalesced", "divergence", "repeated-accesses", "narrow-loads", "atomics"}
)


def find(
    trace: Trace, prediction: Prediction | None = None, *, grid_is_open: bool = True
) -> list[Advice]:
    """Return advice on a launch, its limit first, then the costliest; kind "none" without any.

    One cause is one finding, of all its lines. With a prediction there are findings on time and
    the launch's shape as well, and the first ones have gains, by replays without the mechanism.
    Findings without a need for a prediction keep their order. A small grid is no finding unless
    it `grid_is_open`: n determines the blocks of a kernel of the catalogue.
    """
    if prediction is not None and not _is_of(trace, prediction):
        prediction = None
    evidence = Evidence(trace, prediction)
    spoken = rules(timed=prediction is not None)
    found = [advice for rule in spoken.values() for advice in rule(evidence)]
    found.sort(key=lambda advice: (-advice.cost, advice.line, advice.kind))
    found = [one for one in _each_cause_once(found) if grid_is_open or one.kind != FEW_BLOCKS]
    found = _with_all_lines(found)
    if prediction is not None:
        found = sorted(with_gains(found, prediction), key=lambda advice: advice.kind != LIMIT)
    return found or [_nothing(evidence)]


def _is_of(trace: Trace, prediction: Prediction) -> bool:
    """Return whether trace and prediction are of the same machine code."""
    if trace.prepared is None:
        return False
    mine, other = trace.prepared.program.instructions, prediction.prepared.program.instructions
    return [row.op for row in mine] == [row.op for row in other]


def _each_cause_once(found: Sequence[Advice]) -> list[Advice]:
    """Return advice without the kinds that another finding of the same line explains."""
    kept: list[Advice] = []
    for advice in found:
        explained = any(
            advice.kind in other.explains and (not other.lines or advice.line in other.lines)
            for other in found
            if other is not advice
        )
        if not explained:
            kept.append(advice)
    return kept


def _with_all_lines(found: Sequence[Advice]) -> list[Advice]:
    """Return advice with the findings of one kind and cause as one, the costliest first."""
    alike: dict[tuple[str, str | int], list[Advice]] = {}
    for place, one in enumerate(found):
        alike.setdefault((one.kind, one.cause or place), []).append(one)
    made = [_of_all(ones) for ones in alike.values()]
    return sorted(made, key=lambda advice: (-advice.cost, advice.line, advice.kind))


def _of_all(ones: Sequence[Advice]) -> Advice:
    """Return the first of findings with the lines and costs of all."""
    first = ones[0]
    others = tuple(sorted({one.line for one in ones} - {first.line}))
    if not others:
        return first
    several = "lines" if len(others) > 1 else "line"
    also = f"likewise {several} {ranges(others)}, {len(others) + 1} places in all"
    return replace(
        first,
        message=f"{first.message.rstrip('.')}; {also}.",
        cost=sum(one.cost for one in ones),
        others=others,
    )


def with_gains(found: Sequence[Advice], prediction: Prediction) -> list[Advice]:
    """Return advice with the gains of the first findings, in the order of these to a hundredth.

    Findings that need no prediction keep their order: each is ranked by the largest gain among
    itself and the later ones.
    """
    from gpusim.prediction.removals import replay

    played: list[Advice] = []
    rest: list[Advice] = []
    for advice in found:
        removal = removal_of(advice)
        if removal is None or len(played) >= PLAYED or prediction.setting is None:
            rest.append(advice)
            continue
        try:
            gain = replay(prediction, removal)
        except InputError:  # mbarriers whose arrivals the mechanism made
            rest.append(advice)
            continue
        if gain.saves >= LEAST_GAIN or advice.kind in CERTAIN:
            played.append(replace(advice, gain=gain))
    ranks: list[float] = []
    largest = 0.0
    for advice in reversed(played):
        rank = round(advice.gain.saves, 2) if advice.gain else 0.0
        if not is_timed(advice.kind):
            rank = largest = max(rank, largest)
        ranks.append(-rank)
    order = sorted(range(len(played)), key=ranks[::-1].__getitem__)
    return [*(played[place] for place in order), *rest]


# Quantities that rules of a trace examine: counters of a part and of the whole, and words.
_CONFLICTS = ("shared_load_bank_conflicts", "shared_store_bank_conflicts")
_WAVEFRONTS = ("shared_load_wavefronts", "shared_store_wavefronts")
_LOOKED_AT = (
    ("bank conflicts", _CONFLICTS, _WAVEFRONTS, "{0:,} of {1:,} wavefronts excessive"),
    ("divergence", ("divergent_branches",), ("branches",), "{0:,} of {1:,} branches divergent"),
    (
        "global accesses",
        ("global_load_sectors", "global_store_sectors"),
        ("global_load_requests", "global_store_requests"),
        "{2:.1f} sectors a request",
    ),
)


def _nothing(evidence: Evidence) -> Advice:
    """Return the quantities examined, each with its largest value of a line."""
    first = min((line.line for line in evidence.trace.lines), default=0)
    said = []
    for what, parts, wholes, words in _LOOKED_AT:
        values = [
            (part / whole, line.line, part, whole)
            for line in evidence.trace.lines
            if (part := sum(line.counters.get(name, 0) for name in parts))
            and (whole := sum(line.counters.get(name, 0) for name in wholes))
        ]
        if not values:
            said.append(f"no {what}")
            continue
        ratio, line, part, whole = max(values)
        said.append(f"{what} at most {words.format(part, whole, ratio)} (line {line})")
    return Advice(NONE, first, f"No findings with a gain: {'; '.join(said)}.")


def removal_of(advice: Advice) -> Removal | None:
    """Return the removal that simulates the gain of an advice, None without one."""
    from gpusim.prediction.removals.registry import REMOVALS

    name = mechanism_of(advice.kind)
    if name is None:
        return None
    return Removal(name, advice.places if REMOVALS.all()[name].of_a_line else ())
