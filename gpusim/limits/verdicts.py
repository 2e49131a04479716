"""The limits of a launch: each with the value found, the value allowed and its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpusim.errors import KernelFault
from gpusim.limits.measures import Measured, Share, Subject, counts_of_findings, measured

OF_LAUNCH, OF_PROJECT, OF_BASELINE = "launch", "project", "baseline"


@dataclass(frozen=True)
class Limits:
    """The largest values allowed: a launch's own, those for all launches, and a baseline's.

    A baseline's value plus `growth_percent` is allowed where the launch has no limit of its own,
    also above a limit for all. Findings do not grow.
    """

    own: Mapping[str, float]
    common: Mapping[str, float]
    lifted: frozenset[str] = frozenset()
    baseline: Mapping[str, float] | None = None
    growth_percent: float = 0.0

    def allowed(self) -> dict[str, tuple[float, str]]:
        """Return the value allowed of each measure, and its origin."""
        found = {name: (limit, OF_PROJECT) for name, limit in self.common.items()}
        if self.baseline is not None:
            found |= self._of_baseline(found)
        found |= {name: (limit, OF_LAUNCH) for name, limit in self.own.items()}
        return {name: limit for name, limit in found.items() if name not in self.lifted}

    def _of_baseline(self, common: Mapping[str, tuple[float, str]]) -> dict[str, tuple[float, str]]:
        assert self.baseline is not None
        kinds = counts_of_findings()
        held = dict.fromkeys(kinds, 0.0) | dict(self.baseline)
        grown = {
            name: value if name in kinds else value * (1 + self.growth_percent / 100)
            for name, value in held.items()
        }
        return {
            name: (value, OF_BASELINE)
            for name, value in grown.items()
            if name not in common or value > common[name][0]
        }


@dataclass(frozen=True)
class Held:
    """A limit: its measure, the value found, the value allowed, its origin, and lines."""

    measure: str
    found: float
    allowed: float
    origin: str
    shares: tuple[Share, ...] = ()

    @property
    def is_exceeded(self) -> bool:
        """Whether more was found than is allowed."""
        return self.found > self.allowed

    def __str__(self) -> str:
        of_baseline = " of the baseline" if self.origin == OF_BASELINE else ""
        return f"{self.measure} is {number(self.found)}, allowed are {number(self.allowed)}" + (
            of_baseline
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the limit, ready for JSON."""
        return {
            "measure": self.measure,
            "found": self.found,
            "allowed": self.allowed,
            "origin": self.origin,
            "exceeded": self.is_exceeded,
            "lines": [{"line": one.line, "text": one.text} for one in self.shares],
        }


@dataclass(frozen=True)
class Verdict:
    """All limits of a launch, in order; `fault` is the error that ended its run, if one did."""

    limits: tuple[Held, ...]
    fault: str = ""
    fault_line: int = 0

    @property
    def exceeded(self) -> tuple[Held, ...]:
        """The limits that are exceeded."""
        return tuple(one for one in self.limits if one.is_exceeded)

    @property
    def is_within(self) -> bool:
        """Whether the launch keeps all its limits."""
        return not self.exceeded and not self.fault


def judged(subject: Subject, limits: Limits) -> Verdict:
    """Return a launch checked against its limits; a fault of the kernel ends both."""
    held: list[Held] = []
    for name, (allowed, origin) in limits.allowed().items():
        try:
            found: Measured = measured(name, subject)
        except KernelFault as fault:
            line = 0 if fault.place is None else fault.place.line
            return Verdict(tuple(held), str(fault), line)
        held.append(Held(name, found.value, allowed, origin, found.shares))
    return Verdict(tuple(held))


def number(value: float) -> str:
    """Return a value with commas and six digits at most."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"
