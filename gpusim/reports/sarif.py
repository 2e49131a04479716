"""Findings as SARIF 2.1.0, the format of static analysis results that code hosts import.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpusim.checking.findings import Finding, Findings, Place
from gpusim.checking.rules import RULES, Rule
from gpusim.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_document(findings: Findings) -> dict[str, Any]:
    """Return findings as one SARIF run; files below the current directory are named from there."""
    return sarif_of_launches([findings])


def sarif_of_launches(launches: Iterable[Findings]) -> dict[str, Any]:
    """Return the findings of several launches as one SARIF run."""
    driver = {
        "name": "gpusim",
        "version": __version__,
        "rules": [_rule(rule) for rule in RULES.values()],
    }
    results = [
        _result(finding, _uri(findings.source_file))
        for findings in launches
        for finding in findings
    ]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.title},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(finding: Finding, uri: str) -> dict[str, Any]:
    """Return one result: the last access is its place, the others are related to it."""
    places = [_location(place, uri, number) for number, place in enumerate(finding.places)]
    return {
        "ruleId": finding.rule,
        "ruleIndex": list(RULES).index(finding.rule),
        "level": finding.severity,
        "message": {"text": f"{finding.message}. Fix: {finding.fix}"},
        "locations": places[-1:],
        "relatedLocations": places[:-1],
        "occurrenceCount": finding.count,
    }


def _location(place: Place, uri: str, number: int) -> dict[str, Any]:
    who = f"{place.thread} {place.does}" if place.thread is not None else place.does
    return {
        "id": number,
        "physicalLocation": {
            "artifactLocation": {"uri": uri},
            "region": {"startLine": max(place.line, 1)},
        },
        "message": {"text": who},
    }


def _uri(file: str) -> str:
    path = Path(file).resolve() if file else Path("kernel")
    if path.is_relative_to(Path.cwd()):
        return path.relative_to(Path.cwd()).as_posix()
    return path.as_uri() if path.is_absolute() else path.as_posix()
