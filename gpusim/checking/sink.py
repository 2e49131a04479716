"""Collects findings: one for each rule, pair of lines and array, and a count."""

from __future__ import annotations

from dataclasses import replace

from gpusim.checking.findings import Finding, place_of


class Sink:
    """Findings so far. Repeated ones are counted, and represented by the first."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Finding] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, finding: Finding) -> None:
        """Add a finding."""
        key = (finding.rule, finding.lines, finding.array)
        known = self._found.get(key)
        if known is None:
            self._found[key] = finding
        else:
            self._found[key] = replace(known, count=known.count + finding.count)

    def add_new(self, other: Sink) -> None:
        """Add the findings of another one that are not known here."""
        self._found = {**other._found, **self._found}

    def has(self, rule: str) -> bool:
        """Return whether a rule has findings."""
        return any(finding.rule == rule for finding in self._found.values())

    def sorted(self) -> tuple[Finding, ...]:
        """Return all findings, errors first, then by line."""
        return tuple(sorted(self._found.values(), key=place_of))
