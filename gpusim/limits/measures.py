"""The measures that may have a limit: counters and sums of them, time, registers, findings.

A measure of a launch is found once, by the run that it needs: a trace, a prediction or a check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gpusim.checking.rules import ERROR, RULES, WARNING
from gpusim.errors import InputError, did_you_mean
from gpusim.host.files import shown
from gpusim.tracing.counters import COUNTERS

if TYPE_CHECKING:
    from gpusim.advice.records import Advice
    from gpusim.checking.findings import Finding, Findings
    from gpusim.prediction.records import Prediction
    from gpusim.tracing.records import Trace

# Sums of counters that belong together.
SUMS: Mapping[str, tuple[str, ...]] = {
    "bank_conflicts": ("shared_load_bank_conflicts", "shared_store_bank_conflicts"),
    "shared_wavefronts": ("shared_load_wavefronts", "shared_store_wavefronts"),
}
SECTORS = ("global_load_sectors", "global_store_sectors")
REQUESTS = ("global_load_requests", "global_store_requests")
NO_ADVICE = "none"


class Subject:
    """A launch under limits: its trace, prediction and check, each made when it is requested."""

    def __init__(
        self,
        trace: Callable[[], Trace],
        prediction: Callable[[], tuple[float, Prediction]],
        check: Callable[[], Findings],
    ) -> None:
        self._trace, self._predict, self._check = trace, prediction, check

    @cached_property
    def trace(self) -> Trace:
        """Its counters, line by line."""
        return self._trace()

    @cached_property
    def timed(self) -> tuple[float, Prediction]:
        """Its time in microseconds, launch overhead included, and the prediction of a launch."""
        return self._predict()

    @cached_property
    def check(self) -> Findings:
        """Its races, barrier errors and undefined behaviour."""
        return self._check()

    @property
    def advice(self) -> list[Advice]:
        """The findings on performance."""
        return [one for one in self.trace.findings if one.kind != NO_ADVICE]


@dataclass(frozen=True)
class Share:
    """A line's share of a measure: source line, 0 for the whole launch, and what is there."""

    line: int
    text: str


@dataclass(frozen=True)
class Measured:
    """A measure's value in a launch, and the lines that it comes from, the largest share first."""

    value: float
    shares: tuple[Share, ...] = ()


def require_known(names: Sequence[str], where: str) -> None:
    """Raise InputError for a name that no measure has."""
    known = measure_names()
    for name in names:
        if name not in known:
            raise InputError(
                f"{where}: {shown(name)!r} cannot have a limit{did_you_mean(name, known)}; limits "
                "are for counters (docs/counters.md), time_us, registers, bank_conflicts, "
                "shared_wavefronts, sectors_per_request, errors, warnings, findings, and kinds of "
                "findings"
            )


def measure_names() -> list[str]:
    """Return the names of all measures."""
    return [*_SINGLE, *SUMS, *COUNTERS, *_kinds_of_advice(), *RULES]


def measured(name: str, subject: Subject) -> Measured:
    """Return a measure of a launch; InputError for a counter that its code does not have."""
    if name in _SINGLE:
        return _SINGLE[name](subject)
    if name in RULES:
        return _of_findings([one for one in subject.check if one.rule == name])
    counters = SUMS.get(name, (name,))
    if all(one in COUNTERS for one in counters):
        return _sum_of(counters, subject, name)
    return _of_advice([one for one in subject.advice if one.kind == name])


def recorded(subject: Subject) -> dict[str, float]:
    """Return the measures that a baseline holds: all but kinds of findings that are not there."""
    found = {name: measured(name, subject).value for name in (*_SINGLE, *SUMS)}
    found |= subject.trace.counters
    kinds = [one.kind for one in subject.advice] + [one.rule for one in subject.check]
    return found | {kind: float(kinds.count(kind)) for kind in sorted(set(kinds))}


def counts_of_findings() -> list[str]:
    """Return the names of measures that count findings."""
    return ["errors", "warnings", "findings", *_kinds_of_advice(), *RULES]


def _kinds_of_advice() -> list[str]:
    from gpusim.advice.registry import rules

    return list(rules(timed=False))


def _sum_of(counters: Sequence[str], subject: Subject, name: str) -> Measured:
    trace = subject.trace
    missing = [one for one in counters if one not in trace.counters]
    if missing:
        raise InputError(
            f"{name} is not counted in {trace.generator or 'this code'}: conditions of the source "
            "are only in the lowering's code (code = 'lowering')"
        )
    shares = [(sum(line.counters[one] for one in counters), line) for line in trace.lines]
    shares = sorted((one for one in shares if one[0]), key=lambda one: -one[0])
    return Measured(
        sum(trace.counters[one] for one in counters),
        tuple(Share(line.line, f"{count:,}  {line.text.strip()}") for count, line in shares),
    )


def _sectors_per_request(subject: Subject) -> Measured:
    counters = subject.trace.counters
    sectors, requests = (sum(counters[one] for one in names) for names in (SECTORS, REQUESTS))
    return Measured(sectors / requests if requests else 0.0, _sum_of(SECTORS, subject, "").shares)


def _time(subject: Subject) -> Measured:
    return Measured(subject.timed[0])


def _registers(subject: Subject) -> Measured:
    return Measured(subject.timed[1].prepared.program.register_estimate)


def _of_findings(found: Sequence[Finding]) -> Measured:
    shares = tuple(Share(max(one.lines, default=0), one.message) for one in found)
    return Measured(len(found), shares)


def _of_advice(found: Sequence[Advice]) -> Measured:
    shares = [Share(line, one.message) for one in found for line in one.places or (0,)]
    return Measured(len(shares), tuple(shares))


_SINGLE: Mapping[str, Callable[[Subject], Measured]] = {
    "time_us": _time,
    "registers": _registers,
    "sectors_per_request": _sectors_per_request,
    "errors": lambda subject: _of_findings(subject.check.of(ERROR)),
    "warnings": lambda subject: _of_findings(subject.check.of(WARNING)),
    "findings": lambda subject: _of_advice(subject.advice),
}
