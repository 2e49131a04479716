"""Diagnostics as SARIF 2.1.0, the format of static analysis results that code hosts import.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpusim.checking.rules import ERROR, RULES, WARNING, Rule
from gpusim.reports.diagnostics import EXCEEDED, FAULT, Diagnostic, file_of_checkout
from gpusim.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LIMIT_RULES = (
    Rule(EXCEEDED, ERROR, "limit of a launch exceeded", "reduce the measure, or raise its limit"),
    Rule(FAULT, ERROR, "error that ends the launch", "correct the access or the barrier"),
)


def sarif(diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """Return diagnostics as one SARIF run."""
    found = list(diagnostics)
    rules = dict(RULES)
    kinds = {one.rule for one in found} - rules.keys()
    rules |= {rule.name: rule for rule in LIMIT_RULES if rule.name in kinds}
    rules |= {kind: _rule_of_advice(kind) for kind in sorted(kinds - rules.keys())}
    numbers = {name: number for number, name in enumerate(rules)}
    driver = {
        "name": "gpusim",
        "version": __version__,
        "rules": [_rule(rule) for rule in rules.values()],
    }
    results = [_result(one, numbers[one.rule]) for one in found]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule_of_advice(kind: str) -> Rule:
    from gpusim.advice.registry import title

    return Rule(kind, WARNING, title(kind), "see docs/reading-a-trace.md, Findings")


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.title},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(one: Diagnostic, rule: int) -> dict[str, Any]:
    """Return one result: the last access is its place, the others are related to it."""
    uri, last = _uri(one.file), len(one.related)
    fix = f". Fix: {one.fix}" if one.fix else ""
    return {
        "ruleId": one.rule,
        "ruleIndex": rule,
        "level": one.level,
        "message": {"text": f"{one.message}{fix}"},
        "locations": [_location(one.line, one.place, uri, last)],
        "relatedLocations": [
            _location(place.line, place.text, uri, number)
            for number, place in enumerate(one.related)
        ],
        "occurrenceCount": one.count,
    }


def _location(line: int, text: str, uri: str, number: int) -> dict[str, Any]:
    message = {"message": {"text": text}} if text else {}
    return {
        "id": number,
        "physicalLocation": {
            "artifactLocation": {"uri": uri},
            "region": {"startLine": max(line, 1)},
        },
        **message,
    }


def _uri(file: str) -> str:
    name = file_of_checkout(file) if file else "kernel"
    return Path(name).as_uri() if Path(name).is_absolute() else name
