"""Collects findings: one for each rule, pair of lines and array, and a count."""

from __future__ import annotations

from dataclasses import replace

from gpusim.checking.findings import Finding, place_of
from gpusim.checking.order_reports import UNFENCED

VOLATILE = "volatile-warp-race"
# Races between threads that are further and further apart, the widest first.
SCOPES = ("block-race", "global-race", "shared-race", "warp-race")


class Sink:
    """Findings so far, without muted rules. Repeated ones are counted, with the first."""

    def __init__(self) -> None:
        self.muted: set[str] = set()
        self._found: dict[tuple[object, ...], Finding] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def knows(self, finding: Finding) -> bool:
        """Return whether a finding would be counted with an earlier one."""
        return _key(finding) in self._found

    def add(self, finding: Finding) -> None:
        """Add a finding."""
        if finding.rule in self.muted:
            return
        key = _key(finding)
        known = self._found.get(key)
        if known is None:
            self._found[key] = finding
        else:
            self._found[key] = replace(known, count=known.count + finding.count)

    def merge(self, other: Sink) -> None:
        """Add the findings of another one."""
        for finding in other._found.values():
            self.add(finding)

    def add_new(self, other: Sink) -> None:
        """Add the findings of another one that are not known here."""
        self._found = {**other._found, **self._found}

    def has(self, rule: str) -> bool:
        """Return whether a rule has findings."""
        return any(finding.rule == rule for finding in self._found.values())

    def raced(self) -> set[tuple[str, int]]:
        """Return the arrays with races, each with the lines of their accesses."""
        races = (one for one in self._found.values() if one.rule in SCOPES)
        return {(one.array, line) for one in races for line in one.lines}

    def sorted(self) -> tuple[Finding, ...]:
        """Return all findings, errors first, then by line, without consequences of others.

        A flag without a fence is a separate finding only if no race of its data names it. Races of
        one place are one, of the widest scope; words uninitialised because of a race belong to it.
        """
        every = self._found.values()
        named = {one.flag for one in every if one.missing != UNFENCED}
        races, raced = [one for one in every if one.rule in SCOPES], self.raced()
        widest: dict[tuple[object, ...], Finding] = {}
        for one in sorted(races, key=lambda race: SCOPES.index(race.rule)):
            known = widest.setdefault((one.lines, one.array), one)
            if known is not one:
                widest[one.lines, one.array] = replace(known, count=known.count + one.count)
        others = (
            one
            for one in every
            if one.rule not in SCOPES
            and not (one.rule == "uninitialised" and (one.array, one.lines[0]) in raced)
        )
        found = (
            one
            for one in (*others, *widest.values())
            if one.missing != UNFENCED or one.flag not in named
        )
        return tuple(sorted(found, key=place_of))


def _key(finding: Finding) -> tuple[object, ...]:
    """Return the identity of repeated findings; one for an array's volatile warp races."""
    lines = () if finding.rule == VOLATILE else finding.lines
    return finding.rule, lines, finding.array
