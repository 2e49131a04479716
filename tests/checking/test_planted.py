"""Planted bugs: each is found at its lines by its rule, and the corrected twin has no error."""

from __future__ import annotations

import importlib

import pytest
from checking.planted import CASES, KINDS, Case, marked_lines

for kind in KINDS:
    importlib.import_module(f"checking.planted_{kind}")

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every_case
def test_a_planted_bug_is_found_at_its_lines(case: Case) -> None:
    bug, _ = case.pair()
    found = case.check(bug)
    lines = marked_lines(case.pair)
    assert lines
    assert any(f.rule == case.rule and lines <= set(f.lines) for f in found), [
        (f.rule, f.lines, f.message) for f in found
    ]


@every_case
def test_the_corrected_twin_has_no_error(case: Case) -> None:
    _, twin = case.pair()
    found = case.check(twin)
    assert [(f.rule, f.lines, f.message) for f in found.errors] == []


def test_there_are_at_least_eighty_planted_bugs() -> None:
    assert len(CASES) >= 80
    assert len({case.name for case in CASES}) == len(CASES)
