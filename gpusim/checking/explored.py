"""Findings of several launches of one kernel: each with the smallest launch that has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpusim.checking.findings import Finding, Findings


@dataclass(frozen=True)
class Tried:
    """A launch by the command line that repeats it, its findings, and its size.

    The size counts elements and threads. `refused` says why it was not run, if it was not.
    """

    command: str
    findings: Findings | None = None
    size: int = 0
    refused: str = ""


def alike(finding: Finding) -> tuple[Any, ...]:
    """Return the identity of a finding across launches: rule and lines."""
    return finding.rule, finding.lines


@dataclass(frozen=True)
class Explored:
    """Launches with other inputs, by a seed, the given one first."""

    seed: int
    tried: Sequence[Tried]

    @property
    def ran(self) -> list[Tried]:
        """The launches that could run, the smallest first."""
        return sorted((one for one in self.tried if one.findings is not None), key=_size)

    @property
    def has_errors(self) -> bool:
        """Whether a launch has an error."""
        return any(one.findings.errors for one in self.ran if one.findings is not None)

    @property
    def has_warnings(self) -> bool:
        """Whether a launch has a warning."""
        return any(one.findings.warnings for one in self.ran if one.findings is not None)

    @property
    def smallest(self) -> list[Tried]:
        """The smallest launches of the findings, each with the findings of no smaller one."""
        known: set[tuple[Any, ...]] = set()
        found = []
        for one in self.ran:
            assert one.findings is not None
            new = tuple(finding for finding in one.findings if alike(finding) not in known)
            if new:
                found.append(replace(one, findings=replace(one.findings, found=new)))
                known |= set(map(alike, new))
        return found

    @property
    def lines_not_run(self) -> list[int]:
        """The lines with machine code that no launch has run."""
        left = [one.findings.coverage.lines_not_run for one in self.ran if one.findings is not None]
        return sorted(frozenset.intersection(*map(frozenset, left))) if left else []

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        return {
            "seed": self.seed,
            "launches": len(self.ran),
            "refused": len(self.tried) - len(self.ran),
            "lines_not_run": self.lines_not_run,
            "smallest": [
                {"command": one.command, **one.findings.to_dict()}
                for one in self.smallest
                if one.findings is not None
            ],
            "tried": [_row(one) for one in self.tried],
        }


def _size(tried: Tried) -> int:
    return tried.size


def _row(one: Tried) -> dict[str, Any]:
    found = () if one.findings is None else one.findings
    rules = list(dict.fromkeys(finding.rule for finding in found))
    return {"command": one.command, "size": one.size, "rules": rules, "refused": one.refused}
