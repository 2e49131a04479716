"""Collects findings: one for each rule, pair of lines and array, and a count."""

from __future__ import annotations

from dataclasses import replace

from gpusim.checking.findings import Finding, place_of
from gpusim.checking.order_reports import UNFENCED


class Sink:
    """Findings so far. Repeated ones are counted, and represented by the first."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Finding] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def knows(self, finding: Finding) -> bool:
        """Return whether a finding would be counted with an earlier one."""
        return _key(finding) in self._found

    def add(self, finding: Finding) -> None:
        """Add a finding."""
        key = _key(finding)
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
        """Return all findings, errors first, then by line.

        A flag without a fence is one of its own only where no race of its data names it.
        """
        every = self._found.values()
        named = {one.flag for one in every if one.missing != UNFENCED}
        found = (one for one in every if one.missing != UNFENCED or one.flag not in named)
        return tuple(sorted(found, key=place_of))


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.rule, finding.lines, finding.array
