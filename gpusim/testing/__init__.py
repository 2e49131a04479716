"""Assertions about kernels, exercises with their judgement, and the pytest plugin."""

from gpusim.testing.assertions import (
    assert_at_most,
    assert_correct,
    assert_no_bank_conflicts,
    assert_no_divergence,
    assert_none_wrong,
    checks_every_launch,
    run_checked,
)
from gpusim.testing.exercises import EXERCISES, Verdict, exercise, judged

__all__ = [
    "EXERCISES",
    "Verdict",
    "assert_at_most",
    "assert_correct",
    "assert_no_bank_conflicts",
    "assert_no_divergence",
    "assert_none_wrong",
    "checks_every_launch",
    "exercise",
    "judged",
    "run_checked",
]
