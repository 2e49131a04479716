"""Each rule of advice names the mechanism that a launch is played again without."""

from __future__ import annotations

import pytest

from gpusim.advice.findings import removal_of
from gpusim.advice.records import Advice
from gpusim.advice.registry import mechanism_of, rule, rules
from gpusim.launch.removal import MECHANISMS
from gpusim.prediction.removals.registry import REMOVALS, launch_mechanism


def test_a_rule_with_a_mechanism_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="'bank-conflict' is not a mechanism; known are atomics"):
        rule("mine", removal="bank-conflict")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'mine' is not a mechanism"):
        launch_mechanism("mine")  # type: ignore[arg-type]


def test_every_named_mechanism_is_a_function() -> None:
    assert frozenset(REMOVALS.all()) == MECHANISMS
    assert {mechanism_of(kind) for kind in rules(timed=True)} <= {*MECHANISMS, None}


@pytest.mark.parametrize(
    ("kind", "removal"),
    [("bank-conflict", "bank-conflicts@7"), ("tail", "tail"), ("launch-overhead", "None")],
)
def test_a_mechanism_of_a_line_goes_from_the_line_of_the_finding(kind: str, removal: str) -> None:
    rules(timed=True)
    assert str(removal_of(Advice(kind, 7, "line 7: slow."))) == removal
